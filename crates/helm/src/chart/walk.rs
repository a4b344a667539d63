//! The files of a chart folder, in Helm's order.

use tiphys_vfs::{EntryKind, FileTree};

use super::{ChartFile, archive, ignore::Rules};
use crate::{HelmError, engine::Ahead};

/// How deep a chart's folders may nest (a link may lead back up).
const MAX_DEPTH: usize = 64;

/// How many files a chart may have.
const MAX_FILES: usize = 50_000;

/// Reads every file of a chart folder that `.helmignore` does not leave out, and gives templates to `ahead` too.
///
/// # Errors
/// A file that cannot be read or is over Helm's limit, or a bad `.helmignore`.
pub(crate) fn chart_files(
    tree: &dyn FileTree,
    root: &str,
    ahead: Option<&mut Ahead>,
) -> Result<Vec<ChartFile>, HelmError> {
    let ignore_file = below(root, ".helmignore");
    let rules = if tree.is_file(&ignore_file) {
        let text = tree.read(&ignore_file)?;
        Rules::parse(&String::from_utf8_lossy(&text)).map_err(HelmError::Load)?
    } else {
        Rules::default()
    };
    let mut walk = Walk { tree, root, rules: rules.with_defaults(), files: Vec::new(), ahead };
    walk.folder("", 0)?;
    Ok(walk.files)
}

fn below(root: &str, path: &str) -> String {
    if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") }
}

struct Walk<'a> {
    tree: &'a dyn FileTree,
    root: &'a str,
    rules: Rules,
    files: Vec<ChartFile>,
    ahead: Option<&'a mut Ahead>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &str, depth: usize) -> Result<(), HelmError> {
        if depth > MAX_DEPTH {
            let text = format!("chart folder {folder:?} is nested deeper than the limit of {MAX_DEPTH}");
            return Err(HelmError::Limit(text));
        }
        let full = below(self.root, folder);
        for entry in self.tree.read_dir(full.trim_end_matches('/'))? {
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            let is_dir = entry.kind == EntryKind::Dir;
            if self.rules.ignores(&path, is_dir) {
                continue;
            }
            if is_dir { self.folder(&path, depth + 1)? } else { self.file(path)? }
        }
        Ok(())
    }

    fn file(&mut self, path: String) -> Result<(), HelmError> {
        if self.files.len() >= MAX_FILES {
            return Err(HelmError::Limit(format!("the chart has more files than the limit of {MAX_FILES}")));
        }
        let data = self.tree.read(&below(self.root, &path))?;
        if data.len() as u64 > archive::MAX_FILE_SIZE {
            let name = tiphys_vfs::base_name(&path);
            let limit = archive::MAX_FILE_SIZE;
            let text = format!("chart file {name:?} is larger than the maximum file size {limit}");
            return Err(HelmError::Load(text));
        }
        let data = archive::without_bom(data);
        if let Some(ahead) = &mut self.ahead
            && is_template(&path)
        {
            ahead.add(&data);
        }
        self.files.push(ChartFile { name: path.into(), data });
        Ok(())
    }
}

/// Whether a file is a template of the chart or of a subchart in a folder.
fn is_template(path: &str) -> bool {
    path.starts_with("templates/") || (path.starts_with("charts/") && path.contains("/templates/"))
}
