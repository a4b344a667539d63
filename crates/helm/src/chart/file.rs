//! Files of charts, read at once or when they are asked for.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
};

use tiphys_gocompat::{rawstr, strconv::quote};
use tiphys_vfs::FileTree;

use super::archive;
use crate::HelmError;

/// A file of a chart: its path in the chart and its bytes. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct ChartFile {
    /// Path in the chart, `/` between steps.
    pub name: Arc<str>,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Known(Arc<[u8]>),
    Later(Arc<Later>),
}

/// A file that is read when somebody asks for it, once.
struct Later {
    tree: Arc<dyn FileTree>,
    path: String,
    read: OnceLock<Result<LoadedData, HelmError>>,
}

struct LoadedData {
    data: Arc<[u8]>,
    /// The same bytes, in the same place, if they are text as templates take it.
    text: Option<Arc<str>>,
}

impl LoadedData {
    fn new(data: &[u8]) -> Self {
        let data = archive::after_bom(data);
        match rawstr::encode(data) {
            Cow::Borrowed(text) => {
                let text: Arc<str> = Arc::from(text);
                Self { data: Arc::from(text.clone()), text: Some(text) }
            }
            Cow::Owned(_) => Self { data: Arc::from(data), text: None },
        }
    }
}

impl ChartFile {
    /// A file whose bytes are known.
    pub fn new(name: impl Into<Arc<str>>, data: Arc<[u8]>) -> Self {
        Self { name: name.into(), content: Content::Known(data) }
    }

    /// The file at a path of a tree, which is read when it is first asked for.
    pub(crate) fn later(name: impl Into<Arc<str>>, tree: Arc<dyn FileTree>, path: String) -> Self {
        let later = Later { tree, path, read: OnceLock::new() };
        Self { name: name.into(), content: Content::Later(Arc::new(later)) }
    }

    /// The same file under another name.
    pub(super) fn with_name(&self, name: &str) -> Self {
        Self { name: Arc::from(name), content: self.content.clone() }
    }

    /// The file's bytes, a byte order mark removed.
    ///
    /// # Errors
    /// The file cannot be read, or is over Helm's limit.
    pub fn data(&self) -> Result<&Arc<[u8]>, HelmError> {
        match &self.content {
            Content::Known(data) => Ok(data),
            Content::Later(later) => Ok(&later.read()?.data),
        }
    }

    /// The file's bytes as the text that templates are parsed from, bytes that are no text encoded.
    ///
    /// # Errors
    /// As [`ChartFile::data`].
    pub(crate) fn text(&self) -> Result<Arc<str>, HelmError> {
        if let Content::Later(later) = &self.content
            && let Some(text) = &later.read()?.text
        {
            return Ok(text.clone());
        }
        Ok(Arc::from(&*rawstr::encode(self.data()?)))
    }
}

impl Later {
    fn read(&self) -> Result<&LoadedData, HelmError> {
        let read = || {
            let mut read = None;
            let mut take = |data: &[u8]| {
                read = Some(check_size(&self.path, data.len() as u64).map(|()| LoadedData::new(data)));
            };
            self.tree.read_with(&self.path, &mut take)?;
            read.unwrap_or_else(|| Ok(LoadedData::new(&[])))
        };
        self.read.get_or_init(read).as_ref().map_err(HelmError::clone)
    }
}

/// Refuses what is over Helm's limit.
///
/// # Errors
/// In Helm's words.
pub(super) fn check_size(path: &str, size: u64) -> Result<(), HelmError> {
    let limit = archive::MAX_FILE_SIZE;
    if size <= limit {
        return Ok(());
    }
    let name = tiphys_vfs::base_name(path);
    Err(HelmError::Load(format!("chart file {} is larger than the maximum file size {limit}", quote(name))))
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(data) => write!(f, "{} bytes", data.len()),
            Self::Later(later) => write!(f, "the bytes of {}", later.path),
        }
    }
}
