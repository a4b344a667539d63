//! The form of the tables under `rules/`.
//!
//! ```text
//! # What the project says of its status, and where.
//! group example.org other.example.org
//!
//! Database Replica
//!   Suspended    .spec.paused=true
//!   Degraded     Ready=False(!Creating) "a text in place of the condition's"
//!   Healthy      Ready=True and .status.members>=.spec.members
//! ```
//!
//! A block names kinds (`*` is every other kind of the group) and, indented, its rules: the first whose tests
//! all hold decides; if none holds the object is Progressing. The verdict `None` means that the kind reports
//! nothing. See [`Test`] for the tests. `unobserved` before the rules of a block means that
//! `status.observedGeneration` is no generation there.

use tiphys_model::HealthCode;

use super::rule_condition::Test;

/// The rules of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    blocks: Vec<KindRules>,
}

/// The rules of some kinds.
#[derive(Clone, Debug)]
pub(super) struct KindRules {
    kinds: Vec<&'static str>,
    /// Whether `status.observedGeneration` counts generations.
    pub observes_generation: bool,
    /// In the order in which they are tried.
    pub rules: Vec<Rule>,
    /// The message when no rule holds.
    pub waits_for: String,
    /// Whether that is about what the object's users write, which nobody waits for if there is anything else.
    waits_for_spec: bool,
}

impl KindRules {
    /// Takes the tests of a rule for what is waited for: those of the first one that makes the object
    /// Healthy.
    fn await_tests_of(&mut self, rule: &Rule, tests: &str) {
        let is_better = self.waits_for.is_empty() || (self.waits_for_spec && !is_about_spec(tests));
        if rule.verdict == Some(HealthCode::Healthy) && is_better {
            self.waits_for = format!("waiting for {tests}");
            self.waits_for_spec = is_about_spec(tests);
        }
    }
}

/// Whether what the object's users write decides, and nothing of its status.
fn is_about_spec(tests: &str) -> bool {
    tests.split(" and ").all(|test| test.trim_start_matches('!').starts_with(".spec."))
}

/// One rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// `None`: the kind has no health.
    pub verdict: Option<HealthCode>,
    pub tests: Vec<Test>,
    pub text: Option<&'static str>,
}

impl Table {
    /// The rules of a kind.
    pub(super) fn rules_for(&self, kind: &str) -> Option<&KindRules> {
        let named = |name: &str| self.blocks.iter().find(|block| block.kinds.contains(&name));
        named(kind).or_else(|| named("*"))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

/// Reads a table with the groups that it is for.
///
/// # Errors
/// With the line that cannot be read.
pub(super) fn parse(text: &'static str) -> Result<(Vec<&'static str>, Table), String> {
    let (mut groups, mut table) = (Vec::new(), Table::default());
    for (number, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let indented = line.starts_with(' ');
        let fail = |why: &str| format!("line {}: {why}: {content}", number + 1);
        if let Some(names) = content.strip_prefix("group ").filter(|_| !indented) {
            groups.extend(names.split_whitespace());
        } else if !indented {
            table.blocks.push(KindRules {
                kinds: content.split_whitespace().collect(),
                observes_generation: true,
                rules: Vec::new(),
                waits_for: String::new(),
                waits_for_spec: false,
            });
        } else {
            let block = table.blocks.last_mut().ok_or_else(|| fail("no kind stands before this rule"))?;
            if content == "unobserved" {
                block.observes_generation = false;
                continue;
            }
            let (rule, tests) = rule(content).map_err(|why| fail(&why))?;
            block.await_tests_of(&rule, tests);
            block.rules.push(rule);
        }
    }
    Ok((groups, table))
}

/// A rule, and the text of its tests.
fn rule(line: &'static str) -> Result<(Rule, &'static str), String> {
    let (line, text) = match line.strip_suffix('"').and_then(|rest| rest.split_once('"')) {
        Some((line, text)) => (line.trim_end(), Some(text)),
        None => (line, None),
    };
    let (verdict, tests) = line.split_once(' ').unwrap_or((line, ""));
    let verdict = match verdict {
        "None" => None,
        name => Some(HealthCode::parse(name).ok_or_else(|| format!("{name} is no health"))?),
    };
    let tests = tests.trim();
    let parts = tests.split(" and ").map(str::trim).filter(|part| !part.is_empty());
    let read = parts.map(Test::parse).collect::<Result<_, _>>()?;
    Ok((Rule { verdict, tests: read, text }, tests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_rules() {
        let text = "# words\ngroup a.org b.org\n\nOne Two\n  Healthy Ready=True and .status.x=1 \"fine\"\n  Degraded\n*\n  None\n";
        let (groups, table) = parse(text).unwrap();
        assert_eq!(groups, ["a.org", "b.org"]);
        let one = table.rules_for("One").unwrap();
        assert_eq!((one.rules.len(), one.rules[0].tests.len(), one.rules[0].text), (2, 2, Some("fine")));
        assert_eq!(one.waits_for, "waiting for Ready=True and .status.x=1");
        let modes = "group a\nOne\n  Healthy .spec.mode=a\n  Healthy .status.ready\n  Healthy .status.fine\n";
        assert_eq!(parse(modes).unwrap().1.rules_for("One").unwrap().waits_for, "waiting for .status.ready");
        assert_eq!(table.rules_for("Other").unwrap().rules[0].verdict, None);
    }

    #[test]
    fn faults_name_their_line() {
        assert!(parse("group a\n  Healthy x=1\n").unwrap_err().contains("line 2"));
        assert!(parse("group a\nKind\n  Fine x=1\n").unwrap_err().contains("Fine is no health"));
    }
}
