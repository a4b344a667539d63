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
            let (text, rest) = with_short_lists(&without_objects(&diagnostic.message));
            return Self {
                text,
                span: primary.map(|label| files.span(&location(&label.span))),
                label: primary.map(|label| label.text.clone()).unwrap_or_default(),
                related: diagnostic.related.clone(),
                help: diagnostic.help.iter().cloned().chain(rest).collect(),
            };
        }
        let headline = error.headline();
        let place = error.place().filter(|place| files.contains(&place.file)).cloned();
        let text = match &place {
            Some(place) => headline.strip_prefix(&format!("{place}: ")).unwrap_or(headline),
            None => headline,
        };
        let place = place.or_else(|| in_template(context, error, app?));
        let text = without_objects(text.trim_end_matches(DEBUG_HINT));
        let line = text.trim().lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let (text, rest) = with_short_lists(&line);
        Self {
            text,
            span: place.map(|place| files.span(&place)),
            label: String::new(),
            related: Vec::new(),
            help: rest,
        }
    }
}

/// A text in which each long list, as Go prints it, is its first element and how many more; and what was left
/// out of each. A generator that fails prints all that it was given before it says what is wrong.
fn with_short_lists(text: &str) -> (String, Vec<String>) {
    const LONG: usize = 120;
    const FEWEST: usize = 4;
    const MOST_LEFT_OUT: usize = 12;
    let (mut short, mut left_out, mut rest) = (String::new(), Vec::new(), text);
    while let Some(at) = rest.find('[') {
        let (before, list) = rest.split_at(at);
        let Some(end) = end_of_list(list) else { break };
        short.push_str(before);
        let items: Vec<&str> = list[1..end].split_whitespace().collect();
        match items.as_slice() {
            [first, others @ ..] if items.len() >= FEWEST && end > LONG => {
                short.push_str(&format!("[{first} and {} more]", others.len()));
                let shown = &others[..others.len().min(MOST_LEFT_OUT)];
                let more = match others.len() - shown.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                left_out.push(format!("behind {first} the list has {}{more}", shown.join(" ")));
                rest = &list[end + 1..];
            }
            _ => {
                short.push('[');
                rest = &list[1..];
            }
        }
    }
    (short + rest, left_out)
}

/// Where the bracket is closed that a text begins with.
fn end_of_list(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
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
    use super::{with_short_lists, without_objects};

    #[test]
    fn of_a_long_list_the_first_is_shown() {
        let items: Vec<String> = (0..20).map(|at| format!("rules-{at}.yaml=rules/of/{at}.yaml")).collect();
        let text = format!("loading: [{}]: open x: no such file", items.join(" "));
        let (short, left_out) = with_short_lists(&text);
        assert_eq!(short, "loading: [rules-0.yaml=rules/of/0.yaml and 19 more]: open x: no such file");
        assert!(left_out.len() == 1 && left_out[0].ends_with("rules-12.yaml=rules/of/12.yaml and 7 more"));
        for same in ["[a b c d e]", "a [b", "x] y", "no.v1.[noNs] is [a.[b] c]", ""] {
            assert_eq!(with_short_lists(same), (same.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn objects_are_named_and_not_shown() {
        let text = r#"ID conflict: [{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"key":"}"}} {"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}]; rename"#;
        assert_eq!(without_objects(text), "ID conflict: [Secret/a Secret/b]; rename");
        assert_eq!(without_objects("{\"apiVersion\":"), "{\"apiVersion\":");
    }
}
