//! What is told where an object names another that is not there, and one is that is similarly named.

use tiphys_diag::similar_names;
use tiphys_graph::Object;
use tiphys_value::FieldPath;

use crate::{Context, Finding, Rule};

/// A name that leads nowhere, and what it may mean.
pub(crate) struct Misnamed<'a> {
    /// The kind of what is named.
    pub kind: &'a str,
    /// The name.
    pub name: &'a str,
    /// Where it stands in the object that says it.
    pub path: &'a FieldPath,
    /// What is similarly named.
    pub meant: &'a Object,
}

impl Misnamed<'_> {
    /// The finding: `lack` completes "names Kind/name, which …", and `why` says what comes of it.
    pub(crate) fn finding(
        &self,
        rule: &Rule,
        context: &Context<'_>,
        by: &Object,
        lack: &str,
        why: &str,
    ) -> Finding {
        let Self { kind, name, path, meant } = self;
        let is_near = similar_names::nearest_slip(name, std::iter::once(meant.key.name.as_str())).is_some();
        let why_meant = if is_near { "is nearly called so" } else { "is what nothing names" };
        let diagnostic = rule
            .diagnostic(format!("{} names {kind}/{name}, which {lack}", by.title()))
            .at(context.survey.span(by, path), "named here")
            .see(context.survey.start(meant), format!("{} {why_meant}", meant.key.name))
            .because(why);
        rule.finding(context, by, diagnostic).likely().perhaps(name, Some(&meant.key.name))
    }
}

/// Whether one of two names has one word more than the other, and all others in the same order:
/// `s3TempoKey` and `s3Key`, `web-hook-proxy` and `web-proxy`. One word alone is too little to tell by.
pub(crate) fn is_one_word_apart(one: &str, other: &str) -> bool {
    const FEWEST: usize = 2;
    let (one, other) = (words(one), words(other));
    let (long, short) = if one.len() > other.len() { (one, other) } else { (other, one) };
    long.len() == short.len() + 1
        && short.len() >= FEWEST
        && (0..long.len()).any(|left_out| {
            let rest = long.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, word)| word);
            rest.eq(short.iter())
        })
}

/// The words of a name in lower case: between dashes and dots, and from capital to capital.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_new = matches!(c, '-' | '_' | '.') || c.is_uppercase() && was_lower;
        if is_new {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod word_tests {
    use super::is_one_word_apart;

    #[test]
    fn names_differ_by_one_word() {
        for (one, other) in [
            ("s3TempoCredentialsId", "s3CredentialsId"),
            ("webhook-play-when", "webhook-proxy-play-when"),
            ("a.b-c", "a-c"),
        ] {
            assert!(is_one_word_apart(one, other) && is_one_word_apart(other, one), "{one} {other}");
        }
        for (one, other) in [("web", "web-db"), ("web-db", "db-web"), ("a-b-c", "a-b-c"), ("a-b-c-d", "a-b")]
        {
            assert!(!is_one_word_apart(one, other), "{one} {other}");
        }
    }
}
