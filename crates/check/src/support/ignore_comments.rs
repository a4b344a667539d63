//! Comments that silence a finding, as they stand in texts.

/// What such a comment begins with.
pub(crate) const MARK: &str = "tiphys:ignore";
/// What one for all of its file begins with.
pub(crate) const WHOLE_FILE: &str = "tiphys:ignore-file";

/// Whether a comment on a line of a text, or alone above it, suppresses something there.
pub(crate) fn has_comment_at(text: &str, line: u32) -> bool {
    if !text.contains(MARK) {
        return false;
    }
    let lines: Vec<&str> = text.lines().take(line as usize).collect();
    let Some((own, above)) = lines.split_last() else { return false };
    let comments = above.iter().rev().take_while(|line| is_comment(line));
    std::iter::once(own).chain(comments).any(|line| line.contains(MARK) && !line.contains(WHOLE_FILE))
}

/// Whether a line is a comment alone, of any of the languages that are checked.
pub(crate) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["#", "//", "{{/*", "{{- /*"].iter().any(|start| line.starts_with(start))
}
