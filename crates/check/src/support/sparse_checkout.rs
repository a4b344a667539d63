//! Files that Git knows and that are not checked out.

use tiphys_graph::Files;

/// Whether only a part of the repository's files is checked out (git-sparse-checkout).
pub(crate) fn is_sparse(files: &Files) -> bool {
    [".git/config", ".git/config.worktree"].iter().any(|path| {
        let text = files.text(path).unwrap_or_default().to_ascii_lowercase();
        text.lines().any(|line| line.replace(' ', "").trim() == "sparsecheckout=true")
    })
}

/// The submodule in which a path lies, if none of its files is there.
pub(crate) fn empty_submodule(files: &Files, path: &str) -> Option<String> {
    let text = files.text(".gitmodules")?;
    let paths =
        text.lines().filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
    let mut of = paths.map(str::trim).filter(|of| path == *of || path.starts_with(&format!("{of}/")));
    of.find(|of| !of.is_empty() && !files.has_folder(of)).map(str::to_owned)
}
