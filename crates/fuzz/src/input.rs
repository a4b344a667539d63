//! What several targets need: files in one text.

const MAX_FILES: usize = 24;

/// The files that a text holds: a line `-- path --` begins one, what follows is its content. Those whose paths
/// cannot stand in a tree are left out.
pub fn files(text: &str) -> Vec<(&str, String)> {
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
