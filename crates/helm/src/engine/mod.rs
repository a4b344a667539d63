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
mod template_cache;
mod thread_context;
mod to_yaml_pretty;
mod toml;
mod yaml_origins;

use std::{sync::Arc, time::Instant};

use tiphys_gotemplate::{Limit, Limits};
use tiphys_value::RenderLimits;

use crate::{
    Chart, Compat, HelmError, RenderOptions, TemplateError, capabilities::Capabilities, origins::Trace,
    release::Examined, values::Table,
};

pub(crate) use parallel::{BackgroundParser, Worker};
pub use state::ClusterLookup;
pub(crate) use state::NO_VALUE;
pub(crate) use template_cache::TemplateCache;
use thread_context::{Rendering, ThreadContext};

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
    let executor = world.executor(world.parsed()?);
    for at in 0..executor.len() {
        let output = executor.execute(at, trace.as_deref_mut())?;
        rendered(executor.name(at).to_owned(), Output::Text(output));
    }
    Ok(())
}

fn exec_error(name: &str, error: &tiphys_gotemplate::ExecError, compat: Compat) -> HelmError {
    if error.limit.is_some() {
        return HelmError::Limit(match error.limit.and_then(Limit::flag) {
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
