//! `tiphys.toml`: what a repository says about how it wants to be checked.
//!
//! ```toml
//! [check]
//! severity = "warning"        # the least severity that is shown and makes the check fail
//! exclude = ["vendor/**"]     # findings in these files are left out
//!
//! [[check.rule]]
//! id = "E7"                   # a rule, an incident or a family
//! paths = ["apps/legacy/**"]  # where; everywhere if left out
//! severity = "off"            # off, info, warning or error
//! reason = "replaced in March"
//! ```

use serde::Deserialize;
use tiphys_diag::{Severity, similar_names};
use tiphys_gocompat::glob::{BadPattern, doublestar};

use crate::{Finding, Rule, rules};

/// The file's name, at the root of the repository.
pub const FILE: &str = "tiphys.toml";

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no TOML, or has fields that are not known.
    #[error("{FILE}: {}", error_text(.0))]
    Syntax(toml::de::Error),
    /// It names a rule that does not exist.
    #[error("{FILE}: {0}")]
    Rule(UnknownRule),
    /// A pattern of files that cannot be read.
    #[error("{FILE}: {0:?}: {1}")]
    Pattern(String, BadPattern),
}

/// The error with its line of the file; without it if that is too long to be read.
fn error_text(error: &toml::de::Error) -> String {
    const LONGEST: usize = 4096;
    let text = error.to_string();
    if text.len() <= LONGEST { text } else { error.message().chars().take(LONGEST).collect() }
}

/// A rule was named that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule, incident or family {name:?}{}", .nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default())]
pub struct UnknownRule {
    /// What was named.
    pub name: String,
    /// The rule or incident whose id is most like it, if one is.
    pub nearest: Option<&'static str>,
}

/// How a repository wants to be checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The least severity that is shown and makes the check fail.
    pub severity: Option<Level>,
    /// Files whose findings are left out.
    pub exclude: Vec<String>,
    /// What holds for single rules; of several that apply, the last.
    pub rule: Vec<RuleConfig>,
}

/// What holds for one rule, incident or family.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// A rule, an incident or a family.
    pub id: String,
    /// Where; everywhere if empty.
    #[serde(default)]
    pub paths: Vec<String>,
    /// What becomes of its findings.
    pub severity: Level,
    /// Why; for those who read the file.
    #[serde(default)]
    pub reason: String,
}

/// A severity as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The findings are left out.
    Off,
    /// They are information.
    Info,
    /// They are warnings.
    Warning,
    /// They are errors.
    Error,
}

impl Level {
    /// The severity; `None` if it is off.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Info => Some(Severity::Info),
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(default)]
    check: Config,
}

impl Config {
    /// Reads the text of a `tiphys.toml`.
    ///
    /// # Errors
    /// It is no TOML, has fields that are not known, a pattern that is malformed, or names a rule that does
    /// not exist.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let whole: Whole = toml::from_str(text).map_err(ConfigError::Syntax)?;
        for rule in &whole.check.rule {
            select(&rule.id).map_err(ConfigError::Rule)?;
        }
        let patterns = whole.check.rule.iter().flat_map(|rule| &rule.paths).chain(&whole.check.exclude);
        for pattern in patterns {
            doublestar(pattern, "").map_err(|error| ConfigError::Pattern(pattern.clone(), error))?;
        }
        Ok(whole.check)
    }

    /// Applies it to a finding; `None` if that is left out.
    pub fn apply(&self, mut finding: Finding) -> Option<Finding> {
        let file =
            finding.diagnostic.primary.as_ref().map(|label| label.span.file.clone()).unwrap_or_default();
        let lies_in = |patterns: &[String]| patterns.iter().any(|it| doublestar(it, &file) == Ok(true));
        if lies_in(&self.exclude) {
            return None;
        }
        let applies = |rule: &&RuleConfig| {
            names(&rule.id, &finding.diagnostic.rule) && (rule.paths.is_empty() || lies_in(&rule.paths))
        };
        if let Some(rule) = self.rule.iter().rfind(applies) {
            finding.diagnostic.severity = rule.severity.severity()?;
        }
        Some(finding)
    }
}

/// Whether a rule, incident or family of that name covers a rule: `A1-self-wait`, `A1`, `A`.
fn names(name: &str, id: &str) -> bool {
    let incident = id.split('-').next().unwrap_or_default();
    name == id || name == incident || (name.len() == 1 && incident.starts_with(name))
}

/// The rules that a rule's, incident's or family's name covers, if there are any.
pub(crate) fn rules_named(name: &str) -> impl Iterator<Item = &'static Rule> {
    rules::ALL.iter().copied().filter(move |rule| names(name, rule.id))
}

/// The rules that a rule's, incident's or family's name covers.
///
/// # Errors
/// There is none.
pub fn select(name: &str) -> Result<Vec<&'static Rule>, UnknownRule> {
    let found: Vec<&'static Rule> = rules_named(name).collect();
    if found.is_empty() {
        let ids = rules::ALL.iter().flat_map(|rule| [rule.id, rule.incident]);
        let nearest = similar_names::nearest(name, ids);
        return Err(UnknownRule { name: name.to_owned(), nearest });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_and_rules_are_refused() {
        assert!(Config::parse("[check]\nseverty = \"error\"").is_err());
        let error = Config::parse("[chekc]\nseverity = \"error\"").unwrap_err();
        assert!(error.to_string().contains("unknown field `chekc`, expected `check`"), "{error}");
        let error = Config::parse("[[check.rule]]\nid = \"B3-two-owner\"\nseverity = \"off\"").unwrap_err();
        assert!(error.to_string().contains("did you mean B3-two-owners?"), "{error}");
        let error = Config::parse("[check]\nexclude = [\"a/[b\"]").unwrap_err();
        assert_eq!(error.to_string(), "tiphys.toml: \"a/[b\": syntax error in pattern");
        // A line that nobody reads is not repeated.
        let error = Config::parse(&format!("a = {}", "9".repeat(100_000))).unwrap_err().to_string();
        assert!(error.len() < 5000 && error.starts_with("tiphys.toml: "), "{error}");
    }

    #[test]
    fn the_last_rule_that_applies_decides() {
        let text = "[check]\nexclude = [\"vendor/**\"]\n[[check.rule]]\nid = \"B\"\nseverity = \"info\"\n\
                    [[check.rule]]\nid = \"B3\"\npaths = [\"apps/**\"]\nseverity = \"off\"";
        let config = Config::parse(text).unwrap();
        let finding = |file: &str| {
            let diagnostic = rules::by_id("B3-two-owners").unwrap().diagnostic("m");
            Finding::new("B3", diagnostic.at(tiphys_diag::Span::point(file, 1, 1), ""))
        };
        assert_eq!(config.apply(finding("x/a.yaml")).unwrap().diagnostic.severity, Severity::Info);
        assert_eq!(config.apply(finding("apps/deep/a.yaml")), None);
        assert_eq!(config.apply(finding("vendor/a/b.yaml")), None);
    }
}
