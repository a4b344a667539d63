//! Cutting a stream into documents without parsing it, as the Go tools do (and as they differ).

use crate::{Error, ErrorKind, Position};

const SEPARATOR: &str = "---";

/// The documents of a stream as k8s.io/apimachinery's `YAMLReader` cuts them: at lines that begin
/// with `---`. Each with the byte offset of its first byte. Documents of nothing but blanks and
/// comments are returned as well; there is none between two separators that follow each other.
///
/// # Errors
/// A separator with anything but a comment behind it.
pub fn split_kubernetes_documents(text: &str) -> Result<Vec<(usize, &str)>, Error> {
    let mut documents = Vec::new();
    let mut start = 0;
    let mut offset = 0;
    for (number, line) in lines(text).enumerate() {
        if let Some(rest) = line.strip_prefix(SEPARATOR) {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                let message = format!("invalid Yaml document separator: {rest}");
                let at = Position { offset: offset as u32, line: number as u32 + 1, column: 1 };
                return Err(Error::new(ErrorKind::Syntax, message).located_at(at));
            }
            if offset > start {
                documents.push((start, &text[start..offset]));
            }
            start = offset + line.len();
        }
        offset += line.len();
    }
    if offset > start {
        documents.push((start, &text[start..]));
    }
    Ok(documents)
}

/// The lines of a text, each with its line break.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    let ends = ends.chain((!text.is_empty() && !text.ends_with('\n')).then_some(text.len()));
    ends.map(move |to| &text[std::mem::replace(&mut from, to)..to])
}

/// The documents of rendered templates as Helm 4's `SplitManifests` cuts them: at `---` at the start of
/// any line, even if text follows on that line. Blank documents are left out, and blanks before a
/// document. Each with the byte offset of its first byte.
pub fn split_helm_manifests(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let mut start = text.len() - text.trim_start().len();
    let mut from = start;
    let mut search = start;
    while let Some(found) = memchr::memmem::find(&text.as_bytes()[search..], SEPARATOR.as_bytes()) {
        let at = search + found;
        search = at + SEPARATOR.len();
        if at == from || text.as_bytes()[at - 1] == b'\n' {
            pieces.push((start, &text[start..at]));
            let rest = &text[search..];
            start = search + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
            search = start;
        }
        // `^` also matches at the very start, but only there.
        from = usize::MAX;
    }
    pieces.push((start, &text[start..]));
    pieces
        .into_iter()
        .filter(|(_, piece)| !piece.trim().is_empty())
        .map(|(at, piece)| {
            let trimmed = piece.trim_start();
            (at + piece.len() - trimmed.len(), trimmed)
        })
        .collect()
}

/// As [`split_helm_manifests`], but as Helm 3 cuts: blanks around separators and documents go too.
pub fn split_helm3_manifests(text: &str) -> Vec<(usize, &str)> {
    let is_space = |c: char| matches!(c, '\t' | '\n' | '\u{C}' | '\r' | ' ');
    let begin = text.len() - text.trim_start().len();
    let text_end = begin + text.trim().len();
    let body = &text[..text_end];
    let mut pieces = Vec::new();
    let skip = |at: usize| body.len() - body[at..].trim_start_matches(is_space).len();
    let mut start = begin;
    if body[begin..].starts_with(SEPARATOR) {
        pieces.push((begin, ""));
        start = skip(begin + SEPARATOR.len());
    }
    while let Some(found) = memchr::memmem::find(&body.as_bytes()[start..], b"\n---") {
        let at = start + found;
        pieces.push((start, body[start..at].trim_end_matches(is_space)));
        start = skip(at + 1 + SEPARATOR.len());
    }
    pieces.push((start, &body[start..]));
    pieces
        .into_iter()
        .filter(|(_, piece)| !piece.is_empty())
        .map(|(at, piece)| {
            let trimmed = piece.trim_start();
            (at + piece.len() - trimmed.len(), trimmed.trim_end())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_cuts_at_lines_that_begin_with_dashes() {
        let text = "# first\n---\na: 1\n--- # note\n---\nb: |\n  ---\n";
        let documents = split_kubernetes_documents(text).expect("separators are clean");
        assert_eq!(documents, [(0, "# first\n"), (12, "a: 1\n"), (32, "b: |\n  ---\n")]);
    }

    #[test]
    fn kubernetes_refuses_text_behind_a_separator() {
        let error = split_kubernetes_documents("a: 1\n--- b: 2\n").expect_err("text follows");
        assert_eq!(error.to_string(), "invalid Yaml document separator: b: 2");
        assert_eq!(error.position().map(|at| at.line), Some(2));
    }

    #[test]
    fn helm_cuts_even_where_text_follows() {
        let text = "\n---\n\na: 1\n---b: 2\n---  \n  \n--- c: 3\nd: x---\n";
        let documents = split_helm_manifests(text);
        let texts: Vec<&str> = documents.iter().map(|(_, text)| *text).collect();
        assert_eq!(texts, ["a: 1\n", "b: 2\n", "c: 3\nd: x---\n"]);
        for (at, document) in documents {
            assert!(text[at..].starts_with(document));
        }
    }

    #[test]
    fn helm3_trims_both_ends() {
        let text = "---\na: 1\n\n  \n---\nb: 2\n---\n";
        let documents = split_helm3_manifests(text);
        assert_eq!(documents, [(4, "a: 1"), (17, "b: 2")]);
        assert_eq!(split_helm3_manifests(" \n"), []);
    }
}
