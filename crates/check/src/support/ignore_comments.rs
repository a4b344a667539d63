//! Comments that silence a finding, as they stand in texts.

use std::collections::BTreeSet;

/// What such a comment begins with.
pub(crate) const MARK: &str = "tiphys:ignore";
/// What one for all of its file begins with.
pub(crate) const WHOLE_FILE: &str = "tiphys:ignore-file";

/// The lines of a text on which a comment, or one alone above them, suppresses something.
pub(crate) fn lines_with_comment(text: &str) -> BTreeSet<u32> {
    let mut lines = BTreeSet::new();
    if !text.contains(MARK) {
        return lines;
    }
    let mut is_above = false;
    for (line, content) in (1..).zip(text.lines()) {
        let has_own = content.contains(MARK) && !content.contains(WHOLE_FILE);
        if has_own || is_above {
            lines.insert(line);
        }
        is_above = is_comment(content) && (has_own || is_above);
    }
    lines
}

/// Whether a line is a comment alone, of any of the languages that are checked.
pub(crate) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["#", "//", "{{/*", "{{- /*"].iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_about_its_line_or_the_next_that_is_none() {
        let text = "a: 1 # tiphys:ignore B3\nb: 2\n# tiphys:ignore B3\n# more\nc: 3\nd: 4\n# tiphys:ignore-file B3\ne: 5\n";
        assert_eq!(lines_with_comment(text).into_iter().collect::<Vec<_>>(), [1, 3, 4, 5]);
    }
}
