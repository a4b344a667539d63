//! What one thread executes a chart's templates with: values belong to the thread that made them.

use std::{cell::Cell, cmp::Reverse, sync::Arc};

use tiphys_gotemplate::{
    Clock, Entropy, Env, Limits, Memo, SeededEntropy, SystemClock, SystemEntropy, TemplateSet, Value,
};

use super::{
    NO_VALUE,
    data::{self, Renderable, Roots},
    exec_error,
    state::RenderState,
};
use crate::{
    Chart, Compat, HelmError, RenderOptions, capabilities::Capabilities, origins::Trace, values::Table,
};

/// What is rendered, and with what.
#[derive(Clone)]
pub(super) struct Rendering<'a> {
    pub(super) chart: &'a Chart,
    pub(super) values: &'a Table,
    pub(super) capabilities: &'a Capabilities,
    pub(super) options: &'a RenderOptions,
    pub(super) limits: Limits,
}

/// A thread's own values and templates.
pub(super) struct ThreadContext<'a> {
    rendering: &'a Rendering<'a>,
    templates: Vec<Renderable<'a>>,
    state: RenderState,
    seeded: Option<SeededEntropy>,
    /// Holds what all charts share until the world ends.
    _roots: Roots,
}

impl<'a> ThreadContext<'a> {
    pub(super) fn new(rendering: &'a Rendering<'a>, trace: Option<&mut Trace>) -> Self {
        let Rendering { chart, values, capabilities, options, .. } = rendering;
        let roots = Roots::new(values, capabilities, options, trace);
        let templates = in_order(data::renderables(chart, &roots));
        let state = RenderState::new(options.lookup.clone(), options.compat);
        let seeded = options.seed.as_ref().map(|seed| {
            SeededEntropy::new([seed.as_str(), chart.name()]).mocking_secrets(options.mock_secrets)
        });
        Self { rendering, templates, state, seeded, _roots: roots }
    }

    /// The templates parsed, as the chart keeps them over renderings.
    pub(super) fn parsed(&self) -> Result<Arc<TemplateSet>, HelmError> {
        let templates: Vec<_> =
            self.templates.iter().map(|template| (template.name.as_str(), template.file)).collect();
        self.rendering.chart.cache.parse(&templates, self.rendering.options)
    }

    /// What executes the templates, partials left out.
    pub(super) fn executor<'w>(&'w self, set: Arc<TemplateSet>) -> Executor<'w> {
        let options = self.rendering.options;
        let entropy: &dyn Entropy = match &self.seeded {
            Some(seeded) => seeded,
            None => &SystemEntropy,
        };
        let clock: &dyn Clock = match &options.clock {
            Some(clock) => clock,
            None => &SystemClock,
        };
        let (limits, memo) = (self.rendering.limits.clone(), Memo::default());
        let env =
            Env { clock, entropy, limits, made: Cell::new(0), worked: Cell::new(0), memo, user: &self.state };
        let templates = self.templates.iter().filter(|template| is_executed(&template.name)).collect();
        Executor { set, templates, env, compat: options.compat }
    }
}

/// Whether a template of that path is executed for its own sake, and not a partial.
pub(super) fn is_executed(path: &str) -> bool {
    !tiphys_vfs::base_name(path).starts_with('_')
}

/// The order in which templates are parsed and executed.
fn in_order(mut templates: Vec<Renderable<'_>>) -> Vec<Renderable<'_>> {
    // Deep paths first, and the greater name first among equals: what is parsed later wins.
    let depth = |name: &str| name.bytes().filter(|byte| *byte == b'/').count();
    templates.sort_by_cached_key(|template| Reverse((depth(&template.name), template.name.clone())));
    // Two versions of a subchart are one chart to Helm, with the files of both; of two of one name the last
    // counts.
    templates.dedup_by(|later, kept| {
        let is_same = later.name == kept.name;
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    templates
}

/// Executes templates, each named by its place in their order.
pub(super) struct Executor<'w> {
    set: Arc<TemplateSet>,
    templates: Vec<&'w Renderable<'w>>,
    env: Env<'w>,
    compat: Compat,
}

impl Executor<'_> {
    /// How many templates there are.
    pub(super) fn len(&self) -> usize {
        self.templates.len()
    }

    /// The full name of a template.
    pub(super) fn name(&self, at: usize) -> &str {
        &self.templates[at].name
    }

    /// What the limit of memory counts by now.
    pub(super) fn memory_used(&self) -> u64 {
        self.env.made.get()
    }

    /// What all templates together may take.
    pub(super) fn limits(&self) -> &Limits {
        &self.env.limits
    }

    /// Which Helm to equal.
    pub(super) fn compat(&self) -> Compat {
        self.compat
    }

    /// What a template renders to.
    ///
    /// # Errors
    /// The template fails, in Helm's words.
    pub(super) fn execute(&self, at: usize, mut trace: Option<&mut Trace>) -> Result<String, HelmError> {
        let template = self.templates[at];
        let own = data::template_data(template, self.compat);
        template.dot.vary("Template", own.clone());
        self.env.memo.vary(own);
        let dot = Value::Map(template.dot.clone());
        let tracer = trace.as_deref_mut().map(|trace| trace.begin(&template.name));
        let output = self
            .set
            .execute(&template.name, dot, &self.env, tracer)
            .map_err(|error| exec_error(&template.name, &error, self.compat))?;
        Ok(match trace {
            Some(trace) => trace.finish(&template.name, output),
            None if output.contains(NO_VALUE) => output.replace(NO_VALUE, ""),
            None => output,
        })
    }

    /// Makes each chart's `.Template`, which the charts above can see, what it is once all templates have
    /// been executed; none must have been by now.
    pub(super) fn go_to_the_end(&self) {
        let is_last = |template: &&&Renderable<'_>| !template.dot.contains("Template");
        self.templates.iter().rev().filter(is_last).for_each(|template| self.announce(template));
    }

    /// Makes `.Template` what it was before the template at a place was executed, from what it was after
    /// that.
    pub(super) fn go_back_over(&self, at: usize) {
        let dot = &self.templates[at].dot;
        match self.templates[..at].iter().rfind(|template| template.dot.same(dot)) {
            Some(before) => self.announce(before),
            None => dot.unvary("Template"),
        }
    }

    fn announce(&self, template: &Renderable<'_>) {
        template.dot.vary("Template", data::template_data(template, self.compat));
    }
}
