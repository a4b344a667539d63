//! Inputs of several parts as one text.

const MAX_FILES: usize = 24;
/// The line between two parts of an input.
pub(crate) const NEXT_PART: &str = "\n====\n";

/// A text of several parts with a line `====` between them; what is missing is empty.
pub(crate) fn parts<const N: usize>(text: &str) -> [&str; N] {
    let mut parts = text.splitn(N, NEXT_PART);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// The text of bytes; `None` if they are none.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The files that a text holds: a line `-- path --` begins one, what follows is its content. Those whose paths
/// cannot stand in a tree are left out.
pub(crate) fn files(text: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let path = line.trim_end().strip_prefix("-- ").and_then(|line| line.strip_suffix(" --"));
        if let Some(path) = path.filter(|_| files.len() < MAX_FILES) {
            files.push((path, String::new()));
        } else if let Some((_, content)) = files.last_mut() {
            content.push_str(line);
        }
    }
    files.retain(|(path, _)| is_plain(path));
    files
}

/// Whether a path can stand in a repository, so that the tree of files takes it.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|step| !matches!(step, "" | "." | "..")) && !path.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_files_stand_in_one_text() {
        assert_eq!(parts("a\n====\nb\n====\nc"), ["a", "b\n====\nc"]);
        assert_eq!(parts("a"), ["a", "", ""]);
        let text = "before\n-- w/a.yaml --\na: 1\n-- ../b --\nb: 1\n-- c --\n";
        assert_eq!(files(text), [("w/a.yaml", "a: 1\n".to_owned()), ("c", String::new())]);
    }
}
