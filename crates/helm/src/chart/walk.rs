//! The files of a chart folder, in Helm's order.

use std::sync::Arc;

use tiphys_vfs::{EntryKind, FileTree};

use tiphys_gocompat::strconv::quote;

use super::{ChartFile, archive, file::check_size, ignore::Rules, links::Links};
use crate::{Compat, HelmError, engine::BackgroundParser};

/// How deep a chart's folders may nest (a link may lead back up).
const MAX_DEPTH: usize = 64;

/// How many files a chart may have.
const MAX_FILES: usize = 50_000;

/// How a chart is read whose files that only templates may ask for are left until one does.
pub(crate) struct Lazily {
    pub(super) tree: Arc<dyn FileTree>,
    /// The thread that reads and parses templates, if the chart is rendered once.
    pub(super) parser: Option<BackgroundParser>,
}

/// Reads the files of a chart folder that `.helmignore` does not leave out.
///
/// # Errors
/// A file that cannot be read or is over Helm's limit, a link that leads nowhere, or a bad `.helmignore`.
pub(crate) fn chart_files(
    tree: &dyn FileTree,
    root: &str,
    compat: Compat,
    lazily: Option<&mut Lazily>,
) -> Result<Walked, HelmError> {
    let ignore_file = path_below(root, ".helmignore");
    let rules = if tree.is_file(&ignore_file) {
        let text = tree.read(&ignore_file)?;
        Rules::parse(&String::from_utf8_lossy(&text)).map_err(HelmError::Load)?
    } else {
        Rules::default()
    };
    let links = Links { tree, compat };
    let mut walk = Walk { tree, root, rules: rules.with_defaults(), found: Walked::default(), links, lazily };
    let walked = walk.folder("", 0);
    // What cannot be read stands before whatever ended the walk.
    if let Some(parser) = walk.lazily.as_mut().and_then(|lazily| lazily.parser.as_mut()) {
        parser.read_all()?;
    }
    match walked {
        Ok(()) => Ok(walk.found),
        Err(HelmError::BrokenLink { text, .. }) => {
            Err(HelmError::BrokenLink { text, logged: walk.found.warnings })
        }
        Err(error) => Err(error),
    }
}

/// What stands in a chart folder.
#[derive(Default)]
pub(crate) struct Walked {
    pub(super) files: Vec<ChartFile>,
    /// What Helm logs of the links that it follows.
    pub(super) warnings: Vec<String>,
}

fn path_below(root: &str, path: &str) -> String {
    if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") }
}

struct Walk<'a> {
    tree: &'a dyn FileTree,
    root: &'a str,
    rules: Rules,
    found: Walked,
    links: Links<'a>,
    lazily: Option<&'a mut Lazily>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &str, depth: usize) -> Result<(), HelmError> {
        if depth > MAX_DEPTH {
            let text =
                format!("chart folder {} is nested deeper than the limit of {MAX_DEPTH}", quote(folder));
            return Err(HelmError::Limit(text));
        }
        let full = path_below(self.root, folder);
        for entry in self.tree.list(full.trim_end_matches('/'))? {
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            // Helm follows links before it asks whether it is to leave them out.
            if entry.is_symlink {
                let followed = self.links.follow(&path_below(self.root, &path), entry.broken.as_ref())?;
                self.found.warnings.extend(followed);
            }
            let is_dir = entry.kind == EntryKind::Dir;
            if self.rules.ignores(&path, is_dir) {
                continue;
            }
            if is_dir { self.folder(&path, depth + 1)? } else { self.file(path)? }
        }
        Ok(())
    }

    fn file(&mut self, path: String) -> Result<(), HelmError> {
        if self.found.files.len() >= MAX_FILES {
            return Err(HelmError::Limit(format!("the chart has more files than the limit of {MAX_FILES}")));
        }
        let full = path_below(self.root, &path);
        if let Some(lazily) = &self.lazily
            && !is_needed(&path)
        {
            check_size(&path, self.tree.size(&full)?)?;
            self.found.files.push(ChartFile::later(path, lazily.tree.clone(), full));
            return Ok(());
        }
        if let Some(Lazily { tree, parser: Some(parser) }) = self.lazily.as_deref_mut()
            && is_template(&path)
        {
            let file = parser.add(path, tree, full);
            self.found.files.push(file);
            return Ok(());
        }
        let data = self.tree.read(&full)?;
        check_size(&path, data.len() as u64)?;
        let data = archive::without_bom(data);
        self.found.files.push(ChartFile::new(path, data));
        Ok(())
    }
}

/// Whether loading the chart, or a subchart in a folder, takes the file's content. Of the others the content
/// only matters to a template that asks for it.
fn is_needed(path: &str) -> bool {
    let Some(below) = path.strip_prefix("charts/") else {
        return path.starts_with("templates/") || METADATA.contains(&path);
    };
    below.split_once('/').is_none_or(|(_, inside)| is_needed(inside))
}

/// The files that Helm reads itself.
const METADATA: [&str; 6] = [
    "Chart.yaml",
    "Chart.lock",
    "values.yaml",
    "values.schema.json",
    "requirements.yaml",
    "requirements.lock",
];

/// Whether a file is a template of the chart or of a subchart in a folder.
fn is_template(path: &str) -> bool {
    path.starts_with("templates/") || (path.starts_with("charts/") && path.contains("/templates/"))
}
