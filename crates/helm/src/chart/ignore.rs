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
            glob: "templates/.?*".to_owned(),
            whole_path: true,
            negate: false,
            must_be_dir: false,
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
        self.patterns.push(Pattern { glob: glob.to_owned(), whole_path, negate, must_be_dir });
        Ok(())
    }

    /// Whether a path (relative to the chart) is left out. A negated rule leaves out what it does
    /// *not* match, as in Helm.
    pub(crate) fn ignores(&self, path: &str, is_dir: bool) -> bool {
        for pattern in &self.patterns {
            let subject = if pattern.whole_path { path } else { base_name(path) };
            let matches = path_match(&pattern.glob, subject).unwrap_or(false);
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
