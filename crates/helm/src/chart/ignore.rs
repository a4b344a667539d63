//! `.helmignore`: which files of a folder do not belong to the chart.

use tiphys_gocompat::glob::path_match;
use tiphys_vfs::base_name;

/// The rules of a `.helmignore` file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    glob: String,
    /// How many bytes at its start and at its end stand for themselves.
    plain: (usize, usize),
    /// Whether the glob is compared with the whole path, not with the file's name.
    whole_path: bool,
    negate: bool,
    must_be_dir: bool,
}

impl Rules {
    /// Reads a file of rules.
    ///
    /// # Errors
    /// Helm's text: `**` or a glob that is malformed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for line in text.trim_start_matches('\u{feff}').lines() {
            rules.add(line.trim())?;
        }
        Ok(rules)
    }

    /// The rules with Helm's own: hidden files in `templates/`.
    pub(crate) fn with_defaults(mut self) -> Self {
        self.patterns.push(Pattern {
            whole_path: true,
            negate: false,
            must_be_dir: false,
            ..Pattern::new("templates/.?*")
        });
        self
    }

    fn add(&mut self, rule: &str) -> Result<(), String> {
        if rule.is_empty() || rule.starts_with('#') {
            return Ok(());
        }
        if rule.contains("**") {
            return Err("double-star (**) syntax is not supported".to_owned());
        }
        path_match(rule, "abc").map_err(|_| "syntax error in pattern".to_owned())?;
        let (negate, rule) = rule.strip_prefix('!').map_or((false, rule), |rest| (true, rest));
        let (must_be_dir, rule) = rule.strip_suffix('/').map_or((false, rule), |rest| (true, rest));
        let (glob, whole_path) = match rule.strip_prefix('/') {
            Some(rest) => (rest, true),
            None => (rule, rule.contains('/')),
        };
        self.patterns.push(Pattern { whole_path, negate, must_be_dir, ..Pattern::new(glob) });
        Ok(())
    }

    /// Whether a path (relative to the chart) is left out. A negated rule leaves out what it does
    /// *not* match, as in Helm.
    pub(crate) fn ignores(&self, path: &str, is_dir: bool) -> bool {
        let name = base_name(path);
        for pattern in &self.patterns {
            let matches = pattern.matches(if pattern.whole_path { path } else { name });
            if pattern.negate {
                if (pattern.must_be_dir && !is_dir) || !matches {
                    return true;
                }
            } else if matches && (is_dir || !pattern.must_be_dir) {
                return true;
            }
        }
        false
    }
}

impl Pattern {
    fn new(glob: &str) -> Self {
        let is_special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\');
        let start = glob.find(is_special).unwrap_or(glob.len());
        let end = glob.rfind(is_special).map_or(glob.len(), |at| glob.len() - at - 1);
        Self {
            glob: glob.to_owned(),
            plain: (start, end),
            whole_path: false,
            negate: false,
            must_be_dir: false,
        }
    }

    /// Whether a path or name matches. Most are distinguished by how they begin or end.
    fn matches(&self, subject: &str) -> bool {
        let (glob, (start, end)) = (self.glob.as_bytes(), self.plain);
        subject.as_bytes().starts_with(&glob[..start])
            && subject.as_bytes().ends_with(&glob[glob.len() - end..])
            && path_match(&self.glob, subject).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_match_names_paths_and_folders() {
        let rules = Rules::parse("# comment\n*.txt\n/root.md\nsub/*.yaml\nbuild/\n").unwrap().with_defaults();
        for (path, is_dir, expected) in [
            ("a.txt", false, true),
            ("deep/er/a.txt", false, true),
            ("root.md", false, true),
            ("sub/root.md", false, false),
            ("sub/a.yaml", false, true),
            ("sub/deep/a.yaml", false, false),
            ("build", true, true),
            ("build", false, false),
            ("templates/.hidden", false, true),
            ("templates/a.yaml", false, false),
        ] {
            assert_eq!(rules.ignores(path, is_dir), expected, "{path}");
        }
    }

    #[test]
    fn escapes_and_classes_match_as_ever() {
        let rules = Rules::parse("a\\*b\nx[yz]w\n*[0-9]\nq\\r").unwrap();
        for (path, expected) in [
            ("a*b", true),
            ("axb", false),
            ("xyw", true),
            ("xaw", false),
            ("n7", true),
            ("n7]", false),
            ("qr", true),
            ("q\\r", false),
        ] {
            assert_eq!(rules.ignores(path, false), expected, "{path}");
        }
    }

    #[test]
    fn a_negated_rule_leaves_out_what_it_does_not_match() {
        let rules = Rules::parse("!keep.yaml").unwrap();
        assert!(!rules.ignores("keep.yaml", false));
        assert!(rules.ignores("other.yaml", false));
    }

    #[test]
    fn refuses_double_stars_and_bad_globs() {
        assert_eq!(Rules::parse("a/**").unwrap_err(), "double-star (**) syntax is not supported");
        assert_eq!(Rules::parse("a[").unwrap_err(), "syntax error in pattern");
    }
}
