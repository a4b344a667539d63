//! Several values of one writer in one finding.
//!
//! What nobody reads in one file has one cause as a rule, and one entry for each key would push what breaks
//! out of the first few.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_diag::{Diagnostic, Span};
use tiphys_graph::Files;

use super::ignore_comments;

/// How many are named.
const MOST: usize = 5;

/// `a`; `a and b`; `a, b, c, d, e and 3 more`.
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] if names.len() <= MOST => format!("{} and {last}", all.join(", ")),
        _ => format!("{} and {} more", names[..MOST].join(", "), names.len() - MOST),
    }
}

/// The same after `the value`, or `the values`.
pub(crate) fn the_values<T: AsRef<str>>(names: &[T]) -> String {
    let word = if names.len() == 1 { "value" } else { "values" };
    format!("the {word} {}", listed(names))
}

/// The places at which, or alone above which, a comment silences something: that is one value's, and not that
/// of all that are told with it.
#[derive(Default)]
pub(crate) struct SilencedLines {
    /// By file. A text is read once, however many values stand in it.
    lines: BTreeMap<Arc<str>, BTreeSet<u32>>,
}

impl SilencedLines {
    /// Whether a comment silences something at a place.
    pub(crate) fn contains(&mut self, files: &Files, span: &Span) -> bool {
        let read = || files.text(&span.file).map(|text| ignore_comments::lines_with_comment(&text));
        let lines = self.lines.entry(span.file.clone()).or_insert_with(|| read().unwrap_or_default());
        lines.contains(&span.start.line)
    }
}

/// A diagnostic with a label at the first place, and one at each of a few others that are not the same line.
pub(crate) fn at_each(
    mut diagnostic: Diagnostic,
    spans: impl IntoIterator<Item = Span>,
    first: &str,
    other: &str,
) -> Diagnostic {
    let mut lines = BTreeSet::new();
    for span in spans.into_iter().take(MOST) {
        let is_first = lines.is_empty();
        if lines.insert((span.file.clone(), span.start.line)) {
            diagnostic = match is_first {
                true => diagnostic.at(span, first),
                false => diagnostic.see(span, other),
            };
        }
    }
    diagnostic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_and_the_rest_is_counted() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(the_values(&names[..1]), "the value a");
        assert_eq!(the_values(&names[..2]), "the values a and b");
        assert_eq!(listed(&names[..5]), "a, b, c, d and e");
        assert_eq!(listed(&names), "a, b, c, d, e and 2 more");
    }

    #[test]
    fn a_line_is_shown_once() {
        let spans = [1, 2, 2, 1].map(|line| Span::point("values.yaml", line, 1));
        let diagnostic = at_each(Diagnostic::error("r", "m"), spans, "has no effect", "nor has this");
        assert!(diagnostic.primary.is_some_and(|label| label.span.start.line == 1));
        assert_eq!(diagnostic.related.len(), 1);
    }
}
