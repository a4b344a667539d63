//! Suppression by comment: `# tiphys:ignore RULE reason` at the end of the line or alone above it, and
//! `# tiphys:ignore-file RULE reason` anywhere in a file. A rule, an incident or a family may be named.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_diag::{Diagnostic, Severity, Span};

use crate::{Finding, config::select};

const MARK: &str = "tiphys:ignore";
const WHOLE_FILE: &str = "tiphys:ignore-file";

/// What the comments of a repository suppress.
#[derive(Default)]
pub struct Suppressions {
    /// By file and line (0 for the whole file) the ids of the rules.
    ignored: BTreeMap<(Arc<str>, u32), Vec<&'static str>>,
    /// Comments that name no rule that exists.
    pub faults: Vec<Diagnostic>,
}

impl Suppressions {
    /// Reads the comments of texts.
    pub fn of(texts: impl IntoIterator<Item = (Arc<str>, Arc<str>)>) -> Self {
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
        let mut waiting: Vec<&'static str> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let rules = self.comment(file, line, content);
            if content.contains(WHOLE_FILE) {
                self.ignored.entry((file.clone(), 0)).or_default().extend(rules);
            } else if is_comment(content) {
                waiting.extend(rules);
            } else {
                let ignored = waiting.drain(..).chain(rules);
                self.ignored.entry((file.clone(), line)).or_default().extend(ignored);
            }
        }
    }

    /// The rules that a line's comment names.
    fn comment(&mut self, file: &Arc<str>, line: u32, content: &str) -> Vec<&'static str> {
        let Some(at) = content.find(MARK) else { return Vec::new() };
        let rest = content[at + MARK.len()..].trim_start_matches("-file");
        let name = rest.split_whitespace().next().unwrap_or_default();
        match select(name) {
            Ok(rules) => rules.iter().map(|rule| rule.id).collect(),
            Err(unknown) => {
                let column = u32::try_from(content[..at].chars().count()).unwrap_or_default() + 1;
                let fault = Diagnostic::error("unknown-rule", unknown.to_string())
                    .at(Span::point(file.clone(), line, column), "suppresses nothing")
                    .help("write `# tiphys:ignore RULE reason` with the id that the finding shows");
                self.faults.push(Diagnostic { severity: Severity::Error, ..fault });
                Vec::new()
            }
        }
    }

    /// Whether a comment suppresses a finding: at its place, or at one of its other places.
    pub fn cover(&self, finding: &Finding) -> bool {
        let places = finding.diagnostic.primary.iter().chain(&finding.diagnostic.related);
        places.map(|label| &label.span).any(|span| {
            [0, span.start.line].into_iter().any(|line| {
                let rules = self.ignored.get(&(span.file.clone(), line));
                rules.is_some_and(|rules| rules.contains(&finding.diagnostic.rule.as_str()))
            })
        })
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["#", "//", "{{/*", "{{- /*"].iter().any(|start| line.starts_with(start))
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
        let all = Suppressions::of([("a.yaml".into(), text.into())]);
        let covered: Vec<bool> = (1..=5).map(|line| all.cover(&finding(line))).collect();
        assert_eq!(covered, [true, false, false, true, false]);
        assert!(all.faults.is_empty());
    }

    #[test]
    fn a_comment_may_cover_the_file_and_must_name_a_rule() {
        let text = "# tiphys:ignore-file B3 vendored\na: 1\nb: 2 # tiphys:ignore B9-none\n";
        let all = Suppressions::of([("a.yaml".into(), text.into())]);
        assert!(all.cover(&finding(2)));
        assert_eq!(all.faults.len(), 1);
        assert_eq!(all.faults[0].primary.as_ref().unwrap().span.start.line, 3);
    }
}
