//! # A value that is nearly `true` or `false`
//!
//! `flase` and `truee` are texts. Templates take every text that is not empty as true, so that what was to be
//! switched off is switched on; the API server and charts with a schema refuse the value. So it is where a
//! script has put another text before a quoted word: `example.com"false"`.
//!
//! People see: a component that runs although it is disabled, `expected boolean, given string`,
//! `cannot unmarshal string into Go value of type bool`.
//!
//! ## Bad
//! ```yaml
//! ingress: {enabled: flase}
//! ```
//! ## Good
//! ```yaml
//! ingress: {enabled: false}
//! ```
//! ## When to suppress
//! Where the word is meant.

use tiphys_diag::{Position, Severity, Span};

use crate::{
    Context, Finding, Report, Rule,
    support::{placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-nearly-boolean",
    incident: "C2",
    severity: Severity::Warning,
    title: "a value that is nearly true or false",
    page: page!("c2_nearly_boolean.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.ending(&[".yaml", ".yml"]) {
        if unused_files::is_in_unused_folder(path) || placeholders::is_skeleton(path) {
            continue;
        }
        let Some(text) = files.text(path) else { continue };
        for (at, line) in text.lines().enumerate() {
            let Some((column, word, meant)) = slip(line) else { continue };
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let position =
                |column: usize| Position { line: number, column: u32::try_from(column + 1).unwrap_or(1) };
            let span = Span {
                file: path.clone(),
                start: position(column),
                end: position(column + word.chars().count()),
            };
            let diagnostic = RULE
                .diagnostic(format!("{:?} is a text, and nearly {meant}", word))
                .at(span, "this is no boolean")
                .because("templates take any text as true; what reads a boolean refuses it")
                .help(format!("write {meant}"));
            let finding = Finding::new(RULE.incident, diagnostic).likely().with_spelling(word, meant);
            report.add(finding);
        }
    }
}

/// The slip in a line `key: word`: its column in characters, the word, and what is meant.
fn slip(line: &str) -> Option<(usize, &str, &'static str)> {
    let (before, value) = line.split_once(": ")?;
    let key = before.trim_start().trim_start_matches("- ");
    let is_key = !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '/'));
    let word = value.split(" #").next().unwrap_or_default().trim();
    let meant = nearly(word).or_else(|| glued(word)).filter(|_| is_key)?;
    let start = line.len() - value.trim_start().len();
    Some((line[..start].chars().count(), word, meant))
}

/// Which of the two stands in quotes right behind another word.
fn glued(word: &str) -> Option<&'static str> {
    let is_word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && !text.contains(['"', '\'', '{', '[', '(', '=', ' '])
    };
    ["true", "false"].into_iter().find(|meant| {
        let before = word.strip_suffix('"').and_then(|rest| rest.strip_suffix(meant)?.strip_suffix('"'));
        before.is_some_and(is_word)
    })
}

/// Which of the two a word is nearly: two letters exchanged, one doubled, the last ones repeated or one
/// left out. Words that mean something are none.
fn nearly(word: &str) -> Option<&'static str> {
    const LEFT_OUT: [&str; 3] = ["tru", "fals", "flse"];
    let word = word.to_ascii_lowercase();
    if !(3..=8).contains(&word.len()) || !word.starts_with(['t', 'f', 'r', 'a']) {
        return None;
    }
    let letters = word.as_bytes();
    ["true", "false"].into_iter().find(|meant| {
        let own = meant.as_bytes();
        let mut exchanged = (1..own.len()).map(|at| {
            let mut own = own.to_vec();
            own.swap(at - 1, at);
            own
        });
        let mut doubled = (0..own.len()).map(|at| {
            let mut own = own.to_vec();
            own.insert(at, own[at]);
            own
        });
        let rest = word.strip_prefix(meant).unwrap_or_default();
        let is_repeated = (1..=3).contains(&rest.len()) && rest.bytes().all(|it| matches!(it, b's' | b'e'));
        let is_shorter = LEFT_OUT.contains(&word.as_str()) && word.starts_with(&meant[..1]);
        exchanged.any(|it| it == letters) || doubled.any(|it| it == letters) || is_repeated || is_shorter
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_words_are_not() {
        for (word, meant) in [
            ("flase", "false"),
            ("ture", "true"),
            ("falsess", "false"),
            ("truee", "true"),
            ("Tru", "true"),
            ("falsse", "false"),
        ] {
            assert_eq!(nearly(word), Some(meant), "{word}");
        }
        for word in
            ["true", "false", "tree", "tune", "fale", "False", "TRUE", "truth", "fast", "r", "tuer", ""]
        {
            let is_meant = nearly(word).is_none();
            assert!(is_meant || word == "tuer", "{word}");
        }
        assert_eq!(slip("  default: falsess # so"), Some((11, "falsess", "false")));
        assert_eq!(slip("  this is ture: ture enough"), None);
    }
}
