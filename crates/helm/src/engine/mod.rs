//! Executing a chart's templates.

mod ahead;
mod data;
mod errors;
mod files;
mod functions;
mod glob;
mod metadata;
mod objects;
mod pretty;
mod state;
mod texts;
mod toml;

use std::{
    cell::Cell,
    cmp::Reverse,
    sync::{Arc, Mutex, PoisonError},
};

use rustc_hash::FxHashSet;
use tiphys_gotemplate::{
    Clock, Entropy, Env, Limits, Memo, MissingKey, SeededEntropy, SystemClock, SystemEntropy, TemplateSet,
    Text, TextContent, Value,
};

use crate::{
    Chart, Compat, HelmError, RenderOptions, capabilities::Capabilities, origins::Trace, values::Table,
};

pub(crate) use ahead::Ahead;
use ahead::ParsedAhead;
pub(crate) use data::{Renderable, Roots};
pub use state::ClusterLookup;
use state::RenderState;

/// The name that Helm gives to the template above all templates.
const ROOT: &str = "gotpl";

/// How long one chart may render.
const MAX_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// Templates of a chart, parsed, with the files that they were parsed from.
#[derive(Default)]
pub(crate) struct TemplateCache {
    last: Mutex<Option<Parsed>>,
    ahead: Mutex<Option<Ahead>>,
}

struct Parsed {
    key: Vec<(String, usize)>,
    set: Arc<TemplateSet>,
}

impl std::fmt::Debug for TemplateCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemplateCache").finish_non_exhaustive()
    }
}

impl TemplateCache {
    /// An empty cache that makes use of templates which are being parsed.
    pub(crate) fn with_ahead(ahead: Ahead) -> Self {
        Self { last: Mutex::default(), ahead: Mutex::new(Some(ahead)) }
    }

    /// The parsed templates, from the last rendering if it had the same files under the same names.
    fn parse(
        &self,
        templates: &[Renderable<'_>],
        options: &RenderOptions,
    ) -> Result<Arc<TemplateSet>, HelmError> {
        let key: Vec<_> = templates
            .iter()
            .map(|template| Ok((template.name.clone(), template.file.data()?.as_ptr() as usize)))
            .collect::<Result<_, HelmError>>()?;
        let mut cached = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = cached.as_ref().filter(|parsed| parsed.key == key) {
            return Ok(parsed.set.clone());
        }
        let missing = if options.strict { MissingKey::Error } else { MissingKey::Zero };
        let mut set = TemplateSet::new(functions::table()).with_missing_key(missing).with_root_name(ROOT);
        let mut ahead = self.parsed_ahead(&key);
        let texts: Vec<_> = templates
            .iter()
            .map(|template| {
                let content = match ahead.remove(&(template.file.data()?.as_ptr() as usize)) {
                    Some(parsed) => TextContent::Parsed(parsed),
                    None => TextContent::Unparsed(template.file.text()?),
                };
                Ok(Text::new(&template.name, content))
            })
            .collect::<Result<_, HelmError>>()?;
        set.parse_all(&texts)
            .map_err(|error| HelmError::Template(errors::parse_error(&error.to_string())))?;
        let set = Arc::new(set);
        if !options.strict {
            *cached = Some(Parsed { key, set: set.clone() });
        }
        Ok(set)
    }

    fn parsed_ahead(&self, key: &[(String, usize)]) -> ParsedAhead {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ahead) = ahead else { return ParsedAhead::default() };
        let wanted: FxHashSet<usize> = key.iter().map(|(_, address)| *address).collect();
        ahead.finish(|address| wanted.contains(&address))
    }
}

/// Hands out what the templates of a chart and its subcharts render to, with full template names; partials are left
/// out.
///
/// # Errors
/// A template that does not parse or fails, in Helm's words.
pub(crate) fn render(
    chart: &Chart,
    values: &Table,
    capabilities: &Capabilities,
    options: &RenderOptions,
    trace: Option<&mut Trace>,
    mut rendered: impl FnMut(String, String),
) -> Result<(), HelmError> {
    let mut trace = trace;
    let roots = Roots::new(values, capabilities, options, trace.as_deref_mut());
    let mut templates = data::renderables(chart, &roots);
    // Deep paths first, and the greater name first among equals: what is parsed later wins.
    let depth = |name: &str| name.bytes().filter(|byte| *byte == b'/').count();
    templates.sort_by_cached_key(|template| Reverse((depth(&template.name), template.name.clone())));
    // Two versions of a subchart are one chart to Helm, with the files of both; of two of one name the last counts.
    templates.dedup_by(|later, kept| {
        let is_same = later.name == kept.name;
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    let set = chart.cache.parse(&templates, options)?;
    let state = RenderState::new(options.lookup.clone(), options.compat);
    let seeded = options
        .seed
        .as_ref()
        .map(|seed| SeededEntropy::new([seed.as_str(), chart.name()]).mocking_secrets(options.mock_secrets));
    let entropy: &dyn Entropy = match &seeded {
        Some(seeded) => seeded,
        None => &SystemEntropy,
    };
    let clock: &dyn Clock = match &options.clock {
        Some(clock) => clock,
        None => &SystemClock,
    };
    let limits = Limits { deadline: Some(std::time::Instant::now() + MAX_TIME), ..Limits::default() };
    let env = Env { clock, entropy, limits, made: Cell::new(0), memo: Memo::default(), user: &state };
    for template in templates {
        if tiphys_vfs::base_name(&template.name).starts_with('_') {
            continue;
        }
        let own = data::template_data(&template, options.compat);
        template.dot.vary("Template", own.clone());
        env.memo.vary(own);
        let dot = Value::Map(template.dot);
        let tracer = trace.as_deref_mut().map(|trace| trace.begin(&template.name));
        let output = set
            .execute(&template.name, dot, &env, tracer)
            .map_err(|error| exec_error(&template.name, &error, options.compat))?;
        let output = match &mut trace {
            Some(trace) => trace.finish(&template.name, output),
            None if output.contains(NO_VALUE) => output.replace(NO_VALUE, ""),
            None => output,
        };
        rendered(template.name, output);
    }
    if options.is_last {
        std::mem::forget(roots);
    }
    Ok(())
}

/// What Go prints for nothing, and Helm removes.
pub(crate) const NO_VALUE: &str = "<no value>";

fn exec_error(name: &str, error: &tiphys_gotemplate::ExecError, compat: Compat) -> HelmError {
    if error.limit.is_some() {
        return HelmError::Limit(error.message.clone());
    }
    HelmError::Template(errors::exec_error(name, &error.message, compat))
}
