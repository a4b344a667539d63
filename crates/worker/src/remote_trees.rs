//! Trees of files that stand in another process.

use std::sync::Arc;

use tiphys_vfs::{BrokenLink, DirEntry, EntryKind, FileTree, VfsError, VfsErrorKind};

use crate::{
    protocol::{Answer, Broken, Entry, Question},
    worker_side::Line,
};

/// A tree that is read by asking for it.
pub(crate) struct RemoteTree {
    pub line: Arc<Line>,
    /// The number that the other process gave it.
    pub number: u64,
}

impl RemoteTree {
    fn ask(&self, path: &str, question: Question) -> Result<Answer, VfsError> {
        match self.line.ask(question) {
            Ok(Answer::FileFault(fault)) => Err(fault.into()),
            Ok(answer) => Ok(answer),
            Err(error) => Err(VfsError { path: path.to_owned(), kind: VfsErrorKind::Io(Arc::new(error)) }),
        }
    }

    /// Nothing sensible can be done with an answer to another question.
    fn unexpected_answer<T>(path: &str) -> Result<T, VfsError> {
        let error = std::io::Error::other("the answer is to another question");
        Err(VfsError { path: path.to_owned(), kind: VfsErrorKind::Io(Arc::new(error)) })
    }

    fn text(&self, path: &str, question: Question) -> Result<String, VfsError> {
        match self.ask(path, question)? {
            Answer::Text(text) => Ok(text),
            _ => Self::unexpected_answer(path),
        }
    }
}

impl FileTree for RemoteTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        match self.ask(path, Question::Kind { tree: self.number, path: path.to_owned() })? {
            Answer::IsDir(is_dir) => Ok(kind_of(is_dir)),
            _ => Self::unexpected_answer(path),
        }
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        match self.ask(path, Question::Read { tree: self.number, path: path.to_owned() })? {
            Answer::Bytes(bytes) => Ok(bytes.into_vec().into()),
            _ => Self::unexpected_answer(path),
        }
    }

    fn size(&self, path: &str) -> Result<u64, VfsError> {
        match self.ask(path, Question::Size { tree: self.number, path: path.to_owned() })? {
            Answer::Size(size) => Ok(size),
            _ => Self::unexpected_answer(path),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        match self.ask(path, Question::List { tree: self.number, path: path.to_owned() })? {
            Answer::Entries(entries) => Ok(entries.into_iter().map(DirEntry::from).collect()),
            _ => Self::unexpected_answer(path),
        }
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        self.text(path, Question::Canonical { tree: self.number, path: path.to_owned() })
    }

    fn target(&self, path: &str) -> Result<String, VfsError> {
        self.text(path, Question::Target { tree: self.number, path: path.to_owned() })
    }

    fn remote_handle(&self) -> Option<u64> {
        Some(self.number)
    }
}

fn kind_of(is_dir: bool) -> EntryKind {
    if is_dir { EntryKind::Dir } else { EntryKind::File }
}

impl From<Entry> for DirEntry {
    fn from(entry: Entry) -> Self {
        Self {
            name: entry.name,
            kind: kind_of(entry.is_dir),
            is_symlink: entry.is_symlink,
            broken: entry.broken.map(|broken| match broken {
                Broken::Missing(path) => BrokenLink::Missing(path),
                Broken::NotDir => BrokenLink::NotDir,
                Broken::Circle => BrokenLink::Circle,
                Broken::TooDeep => BrokenLink::TooDeep,
            }),
        }
    }
}

impl From<DirEntry> for Entry {
    fn from(entry: DirEntry) -> Self {
        Self {
            name: entry.name,
            is_dir: entry.kind == EntryKind::Dir,
            is_symlink: entry.is_symlink,
            broken: entry.broken.map(|broken| match broken {
                BrokenLink::Missing(path) => Broken::Missing(path),
                BrokenLink::NotDir => Broken::NotDir,
                BrokenLink::Circle => Broken::Circle,
                BrokenLink::TooDeep => Broken::TooDeep,
            }),
        }
    }
}
