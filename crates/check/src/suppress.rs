//! Suppression by comment: `# tiphys:ignore RULE reason` at the end of the line or alone above it, and
//! `# tiphys:ignore-file RULE reason` anywhere in a file. A rule, an incident or a family may be named.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_diag::{Diagnostic, Severity, Span};

use crate::{
    Finding, Rule,
    config::select,
    support::ignore_comments::{MARK, WHOLE_FILE, is_comment},
};

/// One comment that names rules.
#[derive(Clone, Debug)]
struct Comment {
    rules: Vec<&'static str>,
    /// Where it stands.
    span: Span,
}

/// What the comments of a repository suppress.
#[derive(Default)]
pub(crate) struct Suppressions {
    /// All that name rules, in the order of the files.
    comments: Vec<Comment>,
    /// By file and line (0 for the whole file) the comments that hold there.
    ignored: BTreeMap<(Arc<str>, u32), Vec<usize>>,
    /// Those that have suppressed something.
    used: RefCell<BTreeSet<usize>>,
    /// Comments that name no rule that exists.
    pub faults: Vec<Diagnostic>,
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
        // A comment alone on its line is about the next line that is none.
        let mut waiting: Vec<usize> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let comment = self.comment(file, line, content);
            if content.contains(WHOLE_FILE) {
                self.ignored.entry((file.clone(), 0)).or_default().extend(comment);
            } else if is_comment(content) {
                waiting.extend(comment);
            } else {
                let ignored = waiting.drain(..).chain(comment);
                self.ignored.entry((file.clone(), line)).or_default().extend(ignored);
            }
        }
    }

    /// The comment of a line, if it has one that names rules, by its number.
    fn comment(&mut self, file: &Arc<str>, line: u32, content: &str) -> Option<usize> {
        let at = content.find(MARK)?;
        let rest = content[at + MARK.len()..].trim_start_matches("-file");
        let name = rest.split_whitespace().next().unwrap_or_default();
        let column = u32::try_from(content[..at].chars().count()).unwrap_or_default() + 1;
        let span = Span::point(file.clone(), line, column);
        match select(name) {
            Ok(rules) => {
                self.comments.push(Comment { rules: rules.iter().map(|rule| rule.id).collect(), span });
                Some(self.comments.len() - 1)
            }
            Err(unknown) => {
                let fault = Diagnostic::error("unknown-rule", unknown.to_string())
                    .at(span, "suppresses nothing")
                    .help("write `# tiphys:ignore RULE reason` with the id that the finding shows");
                self.faults.push(Diagnostic { severity: Severity::Error, ..fault });
                None
            }
        }
    }

    /// Whether a comment suppresses a finding: at its place, or at one of its other places.
    pub(crate) fn cover(&self, finding: &Finding) -> bool {
        let places = finding.diagnostic.primary.iter().chain(&finding.diagnostic.related);
        let held = places.map(|label| &label.span).flat_map(|span| {
            [0, span.start.line].into_iter().filter_map(|line| self.ignored.get(&(span.file.clone(), line)))
        });
        let names =
            |comment: &&usize| self.comments[**comment].rules.contains(&finding.diagnostic.rule.as_str());
        let covering: Vec<usize> = held.flatten().filter(names).copied().collect();
        self.used.borrow_mut().extend(&covering);
        !covering.is_empty()
    }

    /// The comments that have suppressed nothing, though all rules that they name have run.
    pub(crate) fn unused_suppressions(&self, rules: &[&Rule]) -> Vec<Diagnostic> {
        let used = self.used.borrow();
        let ran = |id: &&str| rules.iter().any(|rule| rule.id == *id);
        let is_unused =
            |(at, comment): &(usize, &Comment)| !used.contains(at) && comment.rules.iter().all(&ran);
        let told = |(_, comment): (usize, &Comment)| {
            let fault = Diagnostic::error("unused-suppression", "this comment suppresses no finding")
                .at(comment.span.clone(), "nothing is found here")
                .because("a comment that is left behind hides the next finding of its rule at this place")
                .help("take the comment away, or put it on the line that the finding points to, or alone above it");
            Diagnostic { severity: Severity::Warning, ..fault }
        };
        self.comments.iter().enumerate().filter(is_unused).map(told).collect()
    }
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
}
