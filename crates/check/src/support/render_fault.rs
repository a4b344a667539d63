//! What went wrong in a rendering, for people.

use tiphys_diag::Span;
use tiphys_graph::App;
use tiphys_render::{RenderError, Subject};
use tiphys_value::{Location, ObjectExt, Value};

use crate::Context;

/// What Helm adds for people at its own command line.
const DEBUG_HINT: &str = "Use --debug flag to render out invalid YAML";

/// A fault of rendering, taken apart.
pub(crate) struct RenderFault {
    /// What is wrong, in one line.
    pub text: String,
    /// Where, if a file of the repository is to blame.
    pub span: Option<Span>,
    /// What is said at that place; may be empty.
    pub label: String,
    /// What else is to be looked at.
    pub related: Vec<tiphys_diag::Label>,
    /// What can be done.
    pub help: Vec<String>,
}

impl RenderFault {
    /// Takes a fault apart, of an Application or of none.
    pub(crate) fn from_error(context: &Context<'_>, error: &RenderError, app: Option<&App>) -> Self {
        let files = &context.survey.files;
        if let Some(diagnostic) = error.diagnostic() {
            let primary = diagnostic.primary.as_ref();
            return Self {
                text: without_objects(&diagnostic.message),
                span: primary.map(|label| files.span(&location(&label.span))),
                label: primary.map(|label| label.text.clone()).unwrap_or_default(),
                related: diagnostic.related.clone(),
                help: diagnostic.help.clone(),
            };
        }
        let headline = error.headline();
        let place = error.place().filter(|place| files.contains(&place.file)).cloned();
        let text = match &place {
            Some(place) => headline.strip_prefix(&format!("{place}: ")).unwrap_or(headline),
            None => headline,
        };
        let place = place.or_else(|| in_template(context, error, app?));
        Self {
            text: without_objects(text.trim_end_matches(DEBUG_HINT))
                .trim()
                .lines()
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" "),
            span: place.map(|place| files.span(&place)),
            label: String::new(),
            related: Vec::new(),
            help: Vec::new(),
        }
    }
}

/// A text with the names of the objects that kustomize prints in it: what a Secret holds has no place in a
/// report.
fn without_objects(text: &str) -> String {
    const START: &str = "{\"apiVersion\":";
    let mut left = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(START) {
        let mut objects = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<Value>();
        let Some(Ok(object)) = objects.next() else { break };
        left.push_str(&rest[..at]);
        left.push_str(&format!("{}/{}", object.kind(), object.name()));
        rest = &rest[at + objects.byte_offset()..];
    }
    left + rest
}

fn location(span: &Span) -> Location {
    Location::new(span.file.clone(), span.start.line, span.start.column)
}

/// The place in a chart's template that a rendering failed in.
fn in_template(context: &Context<'_>, error: &RenderError, app: &App) -> Option<Location> {
    let Some(Subject::Template { name, line, .. }) = error.subject() else { return None };
    let (_, below) = name.split_once('/')?;
    for source in app.application.spec.effective_sources() {
        let file = format!("{}/{below}", source.path.trim_matches('/'));
        let file = file.trim_start_matches("./").to_owned();
        if context.survey.files.contains(&file) {
            return Some(Location::new(file, (*line).max(1), 0));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::without_objects;

    #[test]
    fn objects_are_named_and_not_shown() {
        let text = r#"ID conflict: [{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"key":"}"}} {"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}]; rename"#;
        assert_eq!(without_objects(text), "ID conflict: [Secret/a Secret/b]; rename");
        assert_eq!(without_objects("{\"apiVersion\":"), "{\"apiVersion\":");
    }
}
