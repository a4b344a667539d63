//! Files of charts, read at once or when they are asked for.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

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
    read: OnceLock<Result<Arc<[u8]>, tiphys_vfs::VfsError>>,
}

impl ChartFile {
    /// A file whose bytes are known.
    pub fn new(name: impl Into<Arc<str>>, data: Arc<[u8]>) -> Self {
        Self { name: name.into(), content: Content::Known(data) }
    }

    /// The file at a path of a tree, which is read when it is first asked for.
    pub(super) fn later(name: impl Into<Arc<str>>, tree: Arc<dyn FileTree>, path: String) -> Self {
        let later = Later { tree, path, read: OnceLock::new() };
        Self { name: name.into(), content: Content::Later(Arc::new(later)) }
    }

    /// The same file under another name.
    pub(super) fn renamed(&self, name: &str) -> Self {
        Self { name: Arc::from(name), content: self.content.clone() }
    }

    /// The file's bytes, a byte order mark removed.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn data(&self) -> Result<&Arc<[u8]>, HelmError> {
        match &self.content {
            Content::Known(data) => Ok(data),
            Content::Later(later) => {
                let read = || later.tree.read(&later.path).map(archive::without_bom);
                later.read.get_or_init(read).as_ref().map_err(|error| error.clone().into())
            }
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(data) => write!(f, "{} bytes", data.len()),
            Self::Later(later) => write!(f, "the bytes of {}", later.path),
        }
    }
}
