//! Patches that write one word in the place of another.

use std::ops::Range;

use tiphys_diag::{Edit, Position, Span};
use tiphys_graph::{Files, Object, Survey};
use tiphys_value::FieldPath;

use crate::{Confidence, Finding, Fix};

/// Gives the findings that another word would mend the patch that writes it. Where the word does not stand in
/// the file as it is read, but is put together by a template, or stands there twice, there is none.
pub(crate) fn patches(files: &Files, findings: &mut [Finding]) {
    for finding in findings.iter_mut().filter(|finding| finding.fix.is_none()) {
        let Some(respelling) = &finding.respelling else { continue };
        let Some(label) = &finding.diagnostic.primary else { continue };
        let Some(edit) = edit(files, &label.span, &respelling.wrong, &respelling.meant) else { continue };
        finding.fix = Some(Fix {
            description: format!("write {}", respelling.meant),
            patch: vec![edit],
            confidence: Confidence::Likely,
        });
    }
}

/// The same finding, mended by another word where a field of an object stands, if it stands there as it is
/// read.
pub(crate) fn with_replacement(
    survey: &Survey,
    object: &Object,
    field: &FieldPath,
    to: (&str, &str),
    finding: Finding,
) -> Finding {
    let (wrong, meant) = to;
    if field.get(object.value()).and_then(tiphys_value::Value::as_str) != Some(wrong) {
        return finding;
    }
    match edit(&survey.files, &survey.span(object, field), wrong, meant) {
        Some(edit) => finding.guess(format!("write {meant}"), vec![edit]),
        None => finding,
    }
}

/// The edit of the only place that says a word: from where a span begins to the end of the line, or in all of
/// the line.
fn edit(files: &Files, span: &Span, wrong: &str, meant: &str) -> Option<Edit> {
    let text = files.text(&span.file)?;
    let line = text.lines().nth(span.start.line.max(1) as usize - 1)?;
    let from =
        line.char_indices().nth(span.start.column.max(1) as usize - 1).map_or(line.len(), |(at, _)| at);
    let behind = single_occurrence(&line[from..], wrong).map(|at| at.start + from..at.end + from);
    let found = behind.or_else(|| single_occurrence(line, wrong))?;
    let column = |byte: usize| u32::try_from(line[..byte].chars().count()).ok().map(|count| count + 1);
    let at = |byte| Some(Position { line: span.start.line.max(1), column: column(byte)? });
    let span = Span { file: span.file.clone(), start: at(found.start)?, end: at(found.end)? };
    Some(Edit { span, replacement: meant.to_owned() })
}

/// Where a text has a word, if it has it once.
fn single_occurrence(text: &str, word: &str) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_whole = |at: usize| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        // A dot at the end of a sentence or before a domain ends a word; one inside of it does not.
        !before.ends_with(is_part) && !after.starts_with(|c: char| is_part(c) && c != '.')
    };
    let mut found = text.match_indices(word).map(|(at, _)| at).filter(|at| !word.is_empty() && is_whole(*at));
    let first = found.next()?;
    found.next().is_none().then(|| first..first + word.len())
}

#[cfg(test)]
mod tests {
    use super::single_occurrence;

    #[test]
    fn a_word_is_found_where_it_stands_once_and_whole() {
        assert_eq!(single_occurrence("port: htpp", "htpp"), Some(6..10));
        assert_eq!(single_occurrence("name: \"web\"", "web"), Some(7..10));
        assert_eq!(single_occurrence("http://oredrs.shop.svc/", "oredrs"), Some(7..13));
        assert_eq!(single_occurrence("name: web-app", "web"), None);
        assert_eq!(single_occurrence("web: web", "web"), None);
        assert_eq!(single_occurrence("no such", ""), None);
    }
}
