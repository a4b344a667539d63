//! Constraints: comparisons joined by spaces or commas (all must hold) and by `||` (one group must hold).

use super::plain;
use super::version::{Version, compare_prerelease};
use crate::strconv::quote;
use ::regex::Regex;
use std::cmp::Ordering;
use std::sync::LazyLock;

const MAX_LENGTH: usize = 512;
const MAX_GROUPS: usize = 32;

const VERSION: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
const SPACE: &str = r"[\t\n\f\r ]";

fn compile(pattern: &str) -> Regex {
    let pattern = pattern.replace("VER", VERSION).replace("OPS", OPERATORS).replace("SP", SPACE);
    Regex::new(&pattern).expect("a constant pattern")
}

static ONE: LazyLock<Regex> = LazyLock::new(|| compile("^SP*(OPS)SP*(VER)SP*$"));
static RANGE: LazyLock<Regex> = LazyLock::new(|| compile("SP*(VER)SP+-SP+(VER)SP*"));
static FIND: LazyLock<Regex> = LazyLock::new(|| compile("(OPS)SP*(VER)"));
static VALID: LazyLock<Regex> =
    LazyLock::new(|| compile("^(SP*(OPS)SP*(VER)SP*)((?:SP+|,SP*)(OPS)SP*(VER)SP*)*$"));

/// Why a text is no constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// It has not the form of a constraint.
    #[error("improper constraint: {}", quote(.0))]
    Improper(String),
    /// A version in it is malformed.
    #[error("constraint parser error")]
    Version,
    /// Longer than 512 bytes.
    #[error("constraint string is too long (max 512 bytes)")]
    TooLong,
    /// More than 32 groups.
    #[error("too many constraint groups (max 32)")]
    TooManyGroups,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    TildeOrEqual,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// One comparison.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    operator: Operator,
    version: Version,
    /// The version as written.
    original: String,
    /// A number is missing or a wildcard; so are the minor, or only the patch number.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

/// The texts that make up one comparison: the numbers behind the first with their dots, the pre-release with
/// its dash.
pub(super) struct Parts<'t> {
    pub(super) operator: &'t str,
    pub(super) version: &'t str,
    pub(super) major: &'t str,
    pub(super) minor: &'t str,
    pub(super) patch: &'t str,
    pub(super) prerelease: &'t str,
}

/// A parsed constraint.
#[derive(Clone, Debug)]
pub struct Constraints {
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    all: Vec<Constraint>,
    /// A comparison names a pre-release: then pre-releases may match.
    has_prerelease: bool,
}

impl Constraints {
    /// Reads a constraint.
    ///
    /// # Errors
    /// See [`ConstraintError`].
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if text.len() > MAX_LENGTH {
            return Err(ConstraintError::TooLong);
        }
        // No version of a plain group takes in a `||`, and none of them is the end of a range.
        if let Some(groups) =
            text.split("||").take(MAX_GROUPS + 1).map(plain::parse).collect::<Option<Vec<_>>>()
            && groups.len() <= MAX_GROUPS
        {
            return Ok(Self { groups: groups.into_iter().collect::<Result<_, _>>()? });
        }
        let text = rewrite_ranges(text);
        let parts: Vec<&str> = text.split("||").collect();
        if parts.len() > MAX_GROUPS {
            return Err(ConstraintError::TooManyGroups);
        }
        Ok(Self { groups: parts.into_iter().map(parse_group).collect::<Result<_, _>>()? })
    }

    /// Whether the version satisfies the constraint.
    pub fn check(&self, version: &Version) -> bool {
        self.groups
            .iter()
            .any(|group| group.all.iter().all(|one| one.check(version, group.has_prerelease).is_ok()))
    }

    /// Why the version does not satisfy the constraint; empty if it does.
    pub fn reasons(&self, version: &Version) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut told = false;
        for group in &self.groups {
            let before = reasons.len();
            if !version.prerelease.is_empty() && !group.has_prerelease {
                if !told {
                    reasons.push(prerelease_reason(version));
                    told = true;
                }
                continue;
            }
            reasons.extend(group.all.iter().filter_map(|one| one.check(version, group.has_prerelease).err()));
            if reasons.len() == before {
                return Vec::new();
            }
        }
        reasons
    }
}

fn rewrite_ranges(text: &str) -> String {
    let mut out = text.to_owned();
    for found in RANGE.captures_iter(text) {
        let (from, to) = (&found[1], &found[11]);
        out = out.replacen(&found[0], &format!(">= {from}, <= {to} "), 1);
    }
    out
}

fn parse_group(text: &str) -> Result<Group, ConstraintError> {
    if !VALID.is_match(text) {
        return Err(ConstraintError::Improper(text.to_owned()));
    }
    FIND.find_iter(text).map(|found| Constraint::parse(found.as_str())).collect()
}

impl FromIterator<Constraint> for Group {
    fn from_iter<I: IntoIterator<Item = Constraint>>(items: I) -> Self {
        let all: Vec<Constraint> = items.into_iter().collect();
        let has_prerelease = all.iter().any(|one| !one.version.prerelease.is_empty());
        Self { all, has_prerelease }
    }
}

/// Reads a group whatever it looks like.
#[cfg(test)]
pub(super) fn general(text: &str) -> Result<Group, ConstraintError> {
    parse_group(&rewrite_ranges(text))
}

fn is_wildcard(text: &str) -> bool {
    matches!(text, "x" | "X" | "*")
}

fn prerelease_reason(version: &Version) -> String {
    let version = quote(&version.to_string());
    format!("{version} is a prerelease version and the constraint is only looking for release versions")
}

impl Constraint {
    fn parse(text: &str) -> Result<Self, ConstraintError> {
        let found = ONE.captures(text).ok_or_else(|| ConstraintError::Improper(text.to_owned()))?;
        let group = |at: usize| found.get(at).map_or("", |part| part.as_str());
        Self::from_parts(&Parts {
            operator: group(1),
            version: group(2),
            major: group(3),
            minor: group(4),
            patch: group(5),
            prerelease: group(6),
        })
    }

    pub(super) fn from_parts(parts: &Parts<'_>) -> Result<Self, ConstraintError> {
        let missing = |part: &str| part.is_empty() || is_wildcard(part.trim_start_matches('.'));
        let Parts { major, minor, prerelease, .. } = parts;
        let (major_dirty, minor_dirty, patch_dirty) = (missing(major), missing(minor), missing(parts.patch));
        let version = if major_dirty {
            format!("0.0.0{prerelease}")
        } else if minor_dirty {
            format!("{major}.0.0{prerelease}")
        } else if patch_dirty {
            format!("{major}{minor}.0{prerelease}")
        } else {
            parts.version.to_owned()
        };
        Ok(Self {
            operator: match parts.operator {
                "!=" => Operator::NotEqual,
                ">" => Operator::Greater,
                "<" => Operator::Less,
                ">=" | "=>" => Operator::GreaterEqual,
                "<=" | "=<" => Operator::LessEqual,
                "~" | "~>" => Operator::Tilde,
                "^" => Operator::Caret,
                _ => Operator::TildeOrEqual,
            },
            version: Version::parse(&version).map_err(|_| ConstraintError::Version)?,
            original: parts.version.to_owned(),
            dirty: major_dirty || minor_dirty || patch_dirty,
            minor_dirty: !major_dirty && minor_dirty,
            patch_dirty: !major_dirty && !minor_dirty && patch_dirty,
        })
    }

    fn check(&self, version: &Version, prereleases: bool) -> Result<(), String> {
        if !version.prerelease.is_empty() && !prereleases {
            return Err(prerelease_reason(version));
        }
        let (ok, relation) = match self.operator {
            Operator::TildeOrEqual if self.dirty => return self.tilde(version),
            Operator::TildeOrEqual => (version == &self.version, "is not equal to"),
            Operator::NotEqual => (self.differs(version), "is equal to"),
            Operator::Greater => (self.is_below(version), "is less than or equal to"),
            Operator::Less => (version < &self.version, "is greater than or equal to"),
            Operator::GreaterEqual => (version >= &self.version, "is less than"),
            Operator::LessEqual => (self.is_at_least(version), "is greater than"),
            Operator::Tilde => return self.tilde(version),
            Operator::Caret => return self.caret(version),
        };
        if ok { Ok(()) } else { self.fail(version, relation) }
    }

    fn fail(&self, version: &Version, relation: &str) -> Result<(), String> {
        Err(format!("{} {relation} {}", quote(&version.to_string()), quote(&self.original)))
    }

    fn differs(&self, version: &Version) -> bool {
        let own = &self.version;
        if !self.dirty {
            return version != own;
        }
        if own.major != version.major {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if own.minor != version.minor {
            return true;
        }
        if self.patch_dirty {
            return compare_prerelease(&version.prerelease, &own.prerelease) != Ordering::Equal;
        }
        own.patch != version.patch || version != own
    }

    fn is_below(&self, version: &Version) -> bool {
        let own = &self.version;
        if !self.dirty {
            return version > own;
        }
        match version.major.cmp(&own.major) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if self.minor_dirty => false,
            Ordering::Equal if self.patch_dirty => version.minor > own.minor,
            Ordering::Equal => version > own,
        }
    }

    fn is_at_least(&self, version: &Version) -> bool {
        let own = &self.version;
        if !self.dirty {
            return version <= own;
        }
        version.major < own.major
            || (version.major == own.major && (version.minor <= own.minor || self.minor_dirty))
    }

    fn tilde(&self, version: &Version) -> Result<(), String> {
        let own = &self.version;
        if version < own {
            return self.fail(version, "is less than");
        }
        if (own.major, own.minor, own.patch) == (0, 0, 0) && !self.minor_dirty && !self.patch_dirty {
            return Ok(());
        }
        if version.major != own.major {
            return self.fail(version, "does not have same major version as");
        }
        if version.minor != own.minor && !self.minor_dirty {
            return self.fail(version, "does not have same major and minor version as");
        }
        Ok(())
    }

    fn caret(&self, version: &Version) -> Result<(), String> {
        let own = &self.version;
        if version < own {
            return self.fail(version, "is less than");
        }
        if version.major != own.major {
            return self.fail(version, "does not have same major version as");
        }
        if own.major > 0 || self.minor_dirty {
            return Ok(());
        }
        if version.minor != own.minor {
            let note = ". Expected minor versions to match when constraint major version is 0";
            let note = if own.minor > 0 || self.patch_dirty { note } else { "" };
            return self.fail(version, "does not have same minor version as").map_err(|text| text + note);
        }
        if own.minor > 0 || self.patch_dirty || own.patch == version.patch {
            return Ok(());
        }
        self.fail(version, "does not equal").map_err(|text| {
            text + ". Expect version and constraint to equal when major and minor versions are 0"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(constraint: &str, version: &str) -> bool {
        Constraints::parse(constraint).unwrap().check(&Version::parse(version).unwrap())
    }

    #[test]
    fn constraints_of_charts() {
        assert!(check(">=1.20-0", "1.29.3-eks-1"));
        assert!(!check(">=1.20", "1.29.3-eks-1"));
        assert!(check("1.2 - 1.4.5", "1.4.5"));
        assert!(check("^1.21", "v1.29.3"));
        assert!(check(">=1.0 <2.0", "1.5.0"));
        assert!(!check("~>1.2.3", "1.3.0"));
        assert!(check("1.x || >=3", "3.1"));
        assert!(check("*", "4.5.6"));
        assert_eq!(Constraints::parse("foo").unwrap_err().to_string(), "improper constraint: \"foo\"");
    }
}
