//! Reading rendered files on a second thread while others are still being rendered.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    document_head::{Head, read_head},
    split::split_manifests,
};
use crate::{
    Compat, DocumentText,
    engine::{Output, Worker},
};

/// Bytes of rendered files that are worth a thread.
const WORTH_A_THREAD: usize = 64 << 10;
/// Bytes of rendered files that are worth waking it.
const WORTH_A_WAKE: usize = 32 << 10;

/// Takes rendered files, cuts them into documents and reads the heads of these.
pub(crate) struct Examiner {
    reading: Worker<Vec<Rendered>, Vec<(String, Examined)>>,
    /// What is not worth waking the thread yet.
    gathered: Vec<Rendered>,
    gathered_bytes: usize,
    bytes: usize,
    /// What came examined.
    examined: Vec<(String, Examined)>,
}

/// Path and text of a file.
type Rendered = (String, String);

/// A rendered file.
pub(crate) struct Examined {
    /// What was rendered.
    pub(crate) text: Arc<String>,
    /// Its documents up to one that is no YAML: Helm's words for that.
    pub(super) documents: Vec<Result<Document, String>>,
}

/// A document of a rendered file.
pub(super) struct Document {
    pub(super) content: DocumentText,
    pub(super) head: Head,
}

impl Examiner {
    pub(crate) fn new(compat: Compat) -> Self {
        let examine = move |(path, text): Rendered| (path, Examined::new(text, compat));
        let reading = Worker::new(move |files: Vec<Rendered>| files.into_iter().map(examine).collect());
        Self { reading, gathered: Vec::new(), gathered_bytes: 0, bytes: 0, examined: Vec::new() }
    }

    /// Takes the file that a template rendered to.
    pub(crate) fn add(&mut self, path: String, output: Output) {
        match output {
            Output::Text(text) => self.add_text(path, text),
            Output::Examined(examined) => self.examined.push((path, examined)),
        }
    }

    fn add_text(&mut self, path: String, text: String) {
        self.gathered_bytes += text.len();
        self.gathered.push((path, text));
        if self.gathered_bytes < WORTH_A_WAKE {
            return;
        }
        self.bytes += std::mem::take(&mut self.gathered_bytes);
        if self.bytes >= WORTH_A_THREAD {
            self.reading.start();
        }
        self.reading.add(std::mem::take(&mut self.gathered));
    }

    /// All files, by path.
    pub(crate) fn finish(self) -> BTreeMap<String, Examined> {
        self.reading.add(self.gathered);
        self.reading.finish(|_| true).into_iter().flatten().chain(self.examined).collect()
    }
}

impl Examined {
    pub(crate) fn new(text: String, compat: Compat) -> Self {
        let text = Arc::new(text);
        let mut documents = Vec::new();
        for document in split_manifests(&text, compat) {
            let from = document.as_ptr() as usize - text.as_ptr() as usize;
            let content = DocumentText::new(&text, from..from + document.len());
            let head = read_head(document, compat);
            let failed = head.is_err();
            documents.push(head.map(|head| Document { content, head }));
            if failed {
                break;
            }
        }
        Self { text, documents }
    }
}
