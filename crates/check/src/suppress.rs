//! Suppression by comment: `# tiphys:ignore RULE reason` at the end of the line or alone above it, and
//! `# tiphys:ignore-file RULE reason` anywhere in a file. A rule, an incident or a family may be named.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use tiphys_diag::{Diagnostic, Severity, Span};

use crate::{
    Finding, Rule,
    config::{rules_named, select},
    support::ignore_comments::{MARK, WHOLE_FILE, is_comment},
};

/// The most faults that are told of the comments of one file. Hundreds of thousands fit into a file.
const MOST_TOLD: usize = 100;

/// One comment that names rules.
#[derive(Clone, Debug)]
struct Comment {
    /// By its number what its name selects.
    name: usize,
    /// Where it stands.
    span: Span,
}

/// What the comments of a repository suppress.
#[derive(Default)]
pub(crate) struct Suppressions {
    /// The rules that each name covers.
    names: Vec<BTreeSet<&'static str>>,
    /// By name its number.
    numbers: HashMap<String, usize>,
    /// By name that no rule has why it selects nothing: each is compared with every rule.
    unknown: HashMap<String, String>,
    /// All that name rules, in the order of the files.
    comments: Vec<Comment>,
    /// By file, line (0 for the whole file) and number of the name the comments that hold there.
    ignored: BTreeMap<Arc<str>, BTreeMap<(u32, usize), Held>>,
    /// Comments that name no rule that exists.
    pub faults: Vec<Diagnostic>,
}

/// Comments that name the same rules and hold at one place.
#[derive(Default)]
struct Held {
    comments: Vec<usize>,
    /// Whether they have suppressed something.
    used: Cell<bool>,
}

impl Suppressions {
    /// Reads the comments of texts.
    pub(crate) fn from_texts(texts: impl IntoIterator<Item = (Arc<str>, Arc<str>)>) -> Self {
        let mut all = Self::default();
        for (file, text) in texts {
            if text.contains(MARK) {
                all.read(&file, &text);
            }
        }
        all
    }

    fn read(&mut self, file: &Arc<str>, text: &str) {
        let mut unknown = Told::default();
        // A comment alone on its line is about the next line that is none.
        let mut waiting: Vec<usize> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let comment = self.comment(file, line, content, &mut unknown);
            if content.contains(WHOLE_FILE) {
                self.hold(file, 0, comment);
            } else if is_comment(content) {
                waiting.extend(comment);
            } else {
                self.hold(file, line, waiting.drain(..).chain(comment));
            }
        }
        self.faults.extend(unknown.rest().map(|(span, count)| {
            unknown_rule(span, format!("{count} more comments of this file, from this one on, name no rule"))
        }));
    }

    /// Notes that comments hold at a line.
    fn hold(&mut self, file: &Arc<str>, line: u32, comments: impl IntoIterator<Item = usize>) {
        for comment in comments {
            let lines = self.ignored.entry(file.clone()).or_default();
            lines.entry((line, self.comments[comment].name)).or_default().comments.push(comment);
        }
    }

    /// The comment of a line, if it has one that names rules, by its number.
    fn comment(&mut self, file: &Arc<str>, line: u32, content: &str, unknown: &mut Told) -> Option<usize> {
        let at = content.find(MARK)?;
        let rest = content[at + MARK.len()..].trim_start_matches("-file");
        let name = rest.split_whitespace().next().unwrap_or_default();
        let column = u32::try_from(content[..at].chars().count()).unwrap_or_default() + 1;
        let span = Span::point(file.clone(), line, column);
        if let Some(name) = self.number(name) {
            self.comments.push(Comment { name, span });
            return Some(self.comments.len() - 1);
        }
        if unknown.is_told(&span) {
            let message = self.unknown.entry(name.to_owned()).or_insert_with(|| match select(name) {
                Ok(_) => String::new(),
                Err(unknown) => unknown.to_string(),
            });
            self.faults.push(unknown_rule(span, message.clone()));
        }
        None
    }

    /// The number of a name of rules, if there are such rules.
    fn number(&mut self, name: &str) -> Option<usize> {
        if let Some(known) = self.numbers.get(name) {
            return Some(*known);
        }
        let ids: BTreeSet<&str> = rules_named(name).map(|rule| rule.id).collect();
        if ids.is_empty() {
            return None;
        }
        self.names.push(ids);
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        Some(self.names.len() - 1)
    }

    /// Whether a comment suppresses a finding: at its place, or at one of its other places.
    pub(crate) fn cover(&self, finding: &Finding) -> bool {
        let places = finding.diagnostic.primary.iter().chain(&finding.diagnostic.related);
        let mut is_covered = false;
        for span in places.map(|label| &label.span) {
            let Some(lines) = self.ignored.get(&span.file) else { continue };
            for line in [0, span.start.line] {
                for ((_, name), held) in lines.range((line, 0)..=(line, usize::MAX)) {
                    if self.names[*name].contains(finding.diagnostic.rule.as_str()) {
                        held.used.set(true);
                        is_covered = true;
                    }
                }
            }
        }
        is_covered
    }

    /// The comments that have suppressed nothing, though all rules that they name have run.
    pub(crate) fn unused_suppressions(&self, rules: &[&Rule]) -> Vec<Diagnostic> {
        let ran: BTreeSet<&str> = rules.iter().map(|rule| rule.id).collect();
        let has_run: Vec<bool> = self.names.iter().map(|ids| ids.iter().all(|id| ran.contains(id))).collect();
        let held = self.ignored.values().flat_map(BTreeMap::values);
        let used: HashSet<usize> =
            held.filter(|held| held.used.get()).flat_map(|held| held.comments.iter().copied()).collect();
        let mut told = Vec::new();
        let mut rest: BTreeMap<&Arc<str>, Told> = BTreeMap::new();
        for (at, comment) in self.comments.iter().enumerate() {
            if used.contains(&at) || !has_run[comment.name] {
                continue;
            }
            if rest.entry(&comment.span.file).or_default().is_told(&comment.span) {
                told.push(unused(comment.span.clone(), "this comment suppresses no finding".to_owned()));
            }
        }
        told.extend(rest.values().filter_map(Told::rest).map(|(span, count)| {
            unused(span, format!("{count} more comments of this file, from this one on, suppress no finding"))
        }));
        told
    }
}

/// How many faults of one file have been told.
#[derive(Default)]
struct Told {
    count: usize,
    /// The first that is not told by itself.
    first_of_rest: Option<Span>,
}

impl Told {
    /// Counts a fault, and says whether it is told by itself.
    fn is_told(&mut self, span: &Span) -> bool {
        self.count += 1;
        if self.count > MOST_TOLD {
            self.first_of_rest.get_or_insert_with(|| span.clone());
        }
        self.count <= MOST_TOLD
    }

    /// The first of those that are told together, and how many these are.
    fn rest(&self) -> Option<(Span, usize)> {
        self.first_of_rest.clone().map(|span| (span, self.count - MOST_TOLD))
    }
}

fn unknown_rule(span: Span, message: String) -> Diagnostic {
    let fault = Diagnostic::error("unknown-rule", message)
        .at(span, "suppresses nothing")
        .help("write `# tiphys:ignore RULE reason` with the id that the finding shows");
    Diagnostic { severity: Severity::Error, ..fault }
}

fn unused(span: Span, message: String) -> Diagnostic {
    let fault = Diagnostic::error("unused-suppression", message)
        .at(span, "nothing is found here")
        .because("a comment that is left behind hides the next finding of its rule at this place")
        .help("take the comment away, or put it on the line that the finding points to, or alone above it");
    Diagnostic { severity: Severity::Warning, ..fault }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    fn finding(line: u32) -> Finding {
        let diagnostic = rules::by_id("B3-two-owners").unwrap().diagnostic("m");
        Finding::new("B3", diagnostic.at(Span::point("a.yaml", line, 1), ""))
    }

    #[test]
    fn a_comment_covers_its_line_or_the_next() {
        let text = "a: 1 # tiphys:ignore B3-two-owners known\n# tiphys:ignore B shared on purpose\n# more\nb: 2\nc: 3\n";
        let all = Suppressions::from_texts([("a.yaml".into(), text.into())]);
        let covered: Vec<bool> = (1..=5).map(|line| all.cover(&finding(line))).collect();
        assert_eq!(covered, [true, false, false, true, false]);
        assert!(all.faults.is_empty());
    }

    #[test]
    fn a_comment_may_cover_the_file_and_must_name_a_rule() {
        let text = "# tiphys:ignore-file B3 vendored\na: 1\nb: 2 # tiphys:ignore B9-none\n";
        let all = Suppressions::from_texts([("a.yaml".into(), text.into())]);
        assert!(all.cover(&finding(2)));
        assert!(all.unused_suppressions(rules::ALL).is_empty(), "the one that names a rule is used");
        assert_eq!(all.faults.len(), 1);
        assert_eq!(all.faults[0].primary.as_ref().unwrap().span.start.line, 3);
    }

    #[test]
    fn a_comment_that_suppresses_nothing_is_told_if_its_rules_have_run() {
        let text = "a: 1 # tiphys:ignore B3-two-owners known\nb: 2 # tiphys:ignore E1 gone\n";
        let all = Suppressions::from_texts([("a.yaml".into(), text.into())]);
        assert!(all.cover(&finding(1)));
        let lines = |rules: &[&Rule]| -> Vec<u32> {
            let unused = all.unused_suppressions(rules);
            unused.iter().map(|it| it.primary.as_ref().unwrap().span.start.line).collect()
        };
        assert_eq!(lines(rules::ALL), [2]);
        assert!(lines(&select("B3").unwrap()).is_empty(), "the others did not run");
    }

    #[test]
    fn many_comments_of_one_file_are_told_together() {
        let many = MOST_TOLD + 20_000;
        let text = "# tiphys:ignore X\n".repeat(many) + &"# tiphys:ignore A1 x\n".repeat(many) + "a: 1\n";
        let all = Suppressions::from_texts([("a.yaml".into(), text.into())]);
        assert_eq!(all.faults.len(), MOST_TOLD + 1);
        let rest = &all.faults[MOST_TOLD];
        assert_eq!(rest.message, "20000 more comments of this file, from this one on, name no rule");
        assert_eq!(rest.primary.as_ref().unwrap().span.start.line as usize, MOST_TOLD + 1);
        for _ in 0..20_000 {
            assert!(!all.cover(&finding(2 * many as u32 + 1)), "looks at one entry for each name");
        }
        assert_eq!(all.unused_suppressions(rules::ALL).len(), MOST_TOLD + 1);
    }
}
