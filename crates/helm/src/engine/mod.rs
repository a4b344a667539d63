//! Executing a chart's templates.

mod data;
mod errors;
mod files;
mod functions;
mod glob;
mod metadata;
mod objects;
mod parallel;
mod state;
mod thread_context;
mod to_yaml_pretty;
mod toml;
mod yaml_origins;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Instant,
};

use rustc_hash::FxHashSet;
use tiphys_gotemplate::{Limit, Limits, MissingKey, TemplateSet, Text, TextContent};
use tiphys_value::RenderLimits;

use crate::{
    Chart, Compat, HelmError, RenderOptions, TemplateError, capabilities::Capabilities, origins::Trace,
    release::Examined, values::Table,
};

pub(crate) use data::Renderable;
use parallel::ParsedTemplates;
pub(crate) use parallel::{BackgroundParser, Worker};
pub use state::ClusterLookup;
pub(crate) use state::NO_VALUE;
use state::ROOT;
use thread_context::{Rendering, ThreadContext};

/// Templates of a chart, parsed, with the files that they were parsed from.
#[derive(Default)]
pub(crate) struct TemplateCache {
    last: Mutex<Option<Parsed>>,
    parser: Mutex<Option<BackgroundParser>>,
    /// Whether a rendering by two threads has found that templates change what they share.
    needs_order: AtomicBool,
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
    pub(crate) fn with_parser(parser: BackgroundParser) -> Self {
        Self { parser: Mutex::new(Some(parser)), ..Self::default() }
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
        set.parse_all(&texts).map_err(|error| {
            HelmError::Template(TemplateError {
                message: errors::parse_error(&error.to_string()),
                line: error.line,
                column: 0,
                template: error.name,
                is_syntax: true,
            })
        })?;
        let set = Arc::new(set);
        if !options.strict {
            *cached = Some(Parsed { key, set: set.clone() });
        }
        Ok(set)
    }

    fn parsed_ahead(&self, key: &[(String, usize)]) -> ParsedTemplates {
        let parser = self.parser.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(parser) = parser else { return ParsedTemplates::default() };
        let wanted: FxHashSet<usize> = key.iter().map(|(_, address)| *address).collect();
        parser.finish(|address| wanted.contains(&address))
    }
}

/// What a template rendered to.
pub(crate) enum Output {
    /// Its text.
    Text(String),
    /// Its text, examined by the thread that executed the template.
    Examined(Examined),
}

impl Output {
    /// The text alone.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Examined(examined) => Arc::unwrap_or_clone(examined.text),
        }
    }
}

/// Whether a template is one for notes, which are no manifests.
pub(crate) fn is_notes(path: &str) -> bool {
    path.ends_with("NOTES.txt")
}

/// Hands out what the templates of a chart and its subcharts render to, with full template names; partials
/// are left out.
///
/// # Errors
/// A template that does not parse or fails, in Helm's words.
#[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no output")]
pub(crate) fn render(
    chart: &Chart,
    values: &Table,
    capabilities: &Capabilities,
    options: &RenderOptions,
    trace: Option<&mut Trace>,
    rendered: impl FnMut(String, Output),
) -> Result<(), HelmError> {
    let limits =
        Limits { deadline: Some(Instant::now() + RenderLimits::current().time), ..Limits::default() };
    let rendering = Rendering { chart, values, capabilities, options, limits };
    if trace.is_none() && parallel::is_worth_it(&rendering) {
        parallel::render(&rendering, rendered)
    } else {
        render_alone(&rendering, trace, rendered)
    }
}

/// Executes all templates on this thread.
fn render_alone(
    rendering: &Rendering<'_>,
    mut trace: Option<&mut Trace>,
    mut rendered: impl FnMut(String, Output),
) -> Result<(), HelmError> {
    let world = ThreadContext::new(rendering, trace.as_deref_mut());
    let executor = world.executor(rendering.chart.cache.parse(world.templates(), rendering.options)?);
    for at in 0..executor.len() {
        let output = executor.execute(at, trace.as_deref_mut())?;
        rendered(executor.name(at).to_owned(), Output::Text(output));
    }
    Ok(())
}

/// The flag that raises a limit, if one does.
fn flag(limit: Limit) -> Option<&'static str> {
    let [memory, time, _] = RenderLimits::FLAGS;
    match limit {
        Limit::Memory => Some(memory),
        Limit::Time => Some(time),
        Limit::Depth | Limit::Output | Limit::Steps => None,
    }
}

fn exec_error(name: &str, error: &tiphys_gotemplate::ExecError, compat: Compat) -> HelmError {
    if error.limit.is_some() {
        return HelmError::Limit(match error.limit.and_then(flag) {
            Some(flag) => format!("{}; {flag} raises the limit", error.message),
            None => error.message.clone(),
        });
    }
    HelmError::Template(TemplateError {
        message: errors::exec_error(name, &error.message, compat),
        template: if error.file.is_empty() { name.to_owned() } else { error.file.clone() },
        line: error.line,
        column: error.column,
        is_syntax: false,
    })
}
