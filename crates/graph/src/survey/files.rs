//! The files of the repository.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::Value;
use tiphys_diag::{Position, SourceMap, Span};
use tiphys_value::Location;
use tiphys_vfs::{EntryKind, FileTree};

/// Folders that hold nothing of the repository's own.
const SKIPPED: [&str; 5] = [".git", ".tiphys", "node_modules", ".terraform", "__pycache__"];
/// The folder that Maven and Cargo build into: it holds copies.
const BUILT: &str = "target";
/// The files beside which it lies.
const BUILT_FROM: [&str; 2] = ["pom.xml", "Cargo.toml"];
/// More files than any repository has that is written by people.
const MAX_FILES: usize = 1_000_000;

/// The texts of files by path; `None` for what is no text.
pub(super) type Texts = HashMap<Arc<str>, Option<Arc<str>>>;

/// The files of the repository, read when they are asked for.
pub struct Files {
    tree: Arc<dyn FileTree>,
    paths: BTreeSet<Arc<str>>,
    links: BTreeSet<Arc<str>>,
    texts: Mutex<Texts>,
    /// The values of files that were asked for; `None` for what is no YAML.
    values: Mutex<HashMap<Arc<str>, Option<Arc<Value>>>>,
    /// Where the lines of files start that places were asked for in.
    line_starts: Mutex<HashMap<Arc<str>, Arc<[usize]>>>,
}

/// Of a longer line, in bytes, only the beginning of a place is told.
const LONG_LINE: usize = 10_000;

impl Files {
    /// Lists the files of a folder of a tree, or a file alone; links are not followed into folders.
    pub fn list(tree: Arc<dyn FileTree>, folder: &str) -> Self {
        Self::list_knowing(tree, folder, Texts::new())
    }

    /// Lists the files of a folder of a tree, of which some texts are known.
    pub(super) fn list_knowing(tree: Arc<dyn FileTree>, folder: &str, known: Texts) -> Self {
        let (mut paths, mut links) = (BTreeSet::new(), BTreeSet::new());
        if tree.is_file(folder) {
            paths.insert(folder.into());
        }
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = tree.read_dir(&folder) else { continue };
            let is_built = entries.iter().any(|it| BUILT_FROM.contains(&it.name.as_str()));
            for entry in entries {
                let path =
                    if folder.is_empty() { entry.name.clone() } else { format!("{folder}/{}", entry.name) };
                if entry.is_symlink {
                    links.insert(path.as_str().into());
                }
                match entry.kind {
                    EntryKind::Dir if is_built && entry.name == BUILT => {}
                    EntryKind::Dir if entry.is_symlink || SKIPPED.contains(&entry.name.as_str()) => {}
                    EntryKind::Dir => folders.push(path),
                    EntryKind::File if paths.len() < MAX_FILES => {
                        paths.insert(path.into());
                    }
                    EntryKind::File => {}
                }
            }
        }
        Self {
            tree,
            paths,
            links,
            texts: Mutex::new(known),
            values: Mutex::default(),
            line_starts: Mutex::default(),
        }
    }

    /// The files and folders that are symbolic links.
    pub(super) fn links(&self) -> &BTreeSet<Arc<str>> {
        &self.links
    }

    /// What was read until now.
    pub(super) fn all_texts(&self) -> Texts {
        self.texts.lock().clone()
    }

    /// The tree that the files are in.
    pub fn tree(&self) -> &Arc<dyn FileTree> {
        &self.tree
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.paths.iter()
    }

    /// The paths of the files with one of these endings, such as `.yaml`.
    pub fn ending<'a>(&'a self, endings: &'a [&'a str]) -> impl Iterator<Item = &'a Arc<str>> {
        self.paths.iter().filter(move |path| endings.iter().any(|end| path.ends_with(end)))
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.paths.len()
    }

    /// Whether there is a file of that path.
    pub fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Whether there is a folder of that path with a file somewhere in it.
    pub fn has_folder(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        self.paths
            .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
            .next()
            .is_some_and(|next| next.starts_with(&prefix))
    }

    /// The text of a file; `None` if there is none, or it is too large or no text in UTF-8 or UTF-16. A byte
    /// order mark is left out.
    pub fn text(&self, path: &str) -> Option<Arc<str>> {
        let mut texts = self.texts.lock();
        if let Some(known) = texts.get(path) {
            return known.clone();
        }
        let bytes = self.tree.read(path).ok();
        let text = bytes.as_deref().and_then(|bytes| tiphys_yaml::decode_text(bytes).ok());
        let text = text.filter(|text| !text.contains('\0'));
        let text: Option<Arc<str>> = text.map(|text| text.strip_prefix('\u{feff}').unwrap_or(&text).into());
        texts.insert(path.into(), text.clone());
        text
    }

    /// The value of a YAML file, that of its first document; `None` if there is no such file or it is no
    /// YAML. Each file is parsed once, however many ask.
    pub fn value(&self, path: &str) -> Option<Arc<Value>> {
        if let Some(known) = self.values.lock().get(path) {
            return known.clone();
        }
        let value = self.text(path).and_then(|text| tiphys_yaml::from_yaml(&text).ok()).map(Arc::new);
        self.values.lock().insert(path.into(), value.clone());
        value
    }

    /// Whether the text of any file is as wanted.
    pub fn any_text(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.paths.iter().any(|path| self.text(path).is_some_and(|text| is_wanted(&text)))
    }

    /// The files that were read until now, with their texts, in order.
    pub fn texts(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let texts = self.texts.lock();
        let mut all: Vec<_> =
            texts.iter().filter_map(|(path, text)| Some((path.clone(), text.clone()?))).collect();
        all.sort();
        all
    }

    /// The texts that diagnostics may point into: those that were read.
    pub fn source_map(&self) -> SourceMap {
        let mut map = SourceMap::default();
        for (path, text) in self.texts() {
            map.insert(path, text);
        }
        map
    }

    /// A line of a file with a text, from 1.
    fn line<'t>(&self, file: &Arc<str>, text: &'t str, line: usize) -> Option<&'t str> {
        let mut known = self.line_starts.lock();
        let starts = known.entry(file.clone()).or_insert_with(|| {
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
        });
        text.get(*starts.get(line - 1)?..)?.lines().next()
    }

    /// A place as a stretch of its file: from the column to the end of what the line says, comments and
    /// blanks left out.
    pub fn span(&self, at: &Location) -> Span {
        let (line, column) = (at.line.max(1), at.column.max(1));
        let mut span = Span::point(at.file.clone(), line, column);
        let Some(text) = self.text(&at.file) else { return span };
        let Some(content) = self.line(&at.file, &text, line as usize) else { return span };
        if at.column == 0 {
            let blanks = content.chars().take_while(|c| c.is_whitespace()).count();
            span.start.column = u32::try_from(blanks).unwrap_or_default() + 1;
        }
        // To the end of a line that is a whole file is no place, and thousands of faults may stand in one.
        if content.len() > LONG_LINE {
            return span;
        }
        let said = content.split(" #").next().unwrap_or_default().trim_end();
        let end = u32::try_from(said.chars().count()).unwrap_or(u32::MAX - 1) + 1;
        span.end = Position { line, column: end.max(span.start.column) };
        span
    }
}
