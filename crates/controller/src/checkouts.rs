//! The repositories that one rendering reads, and what it read of them.

use std::sync::{Arc, Mutex, PoisonError};

use tiphys_render::{RenderError, SourceTree, Sources};
use tiphys_source::{Checkout, Footprint, RecordingTree, Repositories};

/// Serves one rendering and notes what it reads of the working tree.
pub struct Checkouts<'a> {
    repositories: &'a Repositories,
    opened: Mutex<Vec<Opened>>,
}

struct Opened {
    checkout: Checkout,
    recording: Arc<RecordingTree>,
}

impl<'a> Checkouts<'a> {
    /// Nothing is open yet.
    pub fn new(repositories: &'a Repositories) -> Self {
        Self { repositories, opened: Mutex::default() }
    }

    /// What was read of the working tree.
    pub fn footprint(&self) -> Footprint {
        let mut all = Footprint::default();
        for opened in self.lock().iter().filter(|opened| opened.checkout.is_working_tree) {
            all.merge(opened.recording.footprint());
        }
        all
    }

    /// Whether something other than the working tree was read: it changes without notice.
    pub fn reads_remotes(&self) -> bool {
        self.lock().iter().any(|opened| !opened.checkout.is_working_tree)
    }

    /// The revision to show for what was read at `revision`.
    pub fn describe(&self, revision: &str, footprint: &Footprint) -> String {
        let opened = self.lock();
        match opened.iter().find(|opened| opened.checkout.revision == revision) {
            Some(opened) => self.repositories.describe(&opened.checkout, footprint),
            None => revision.to_owned(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sources for Checkouts<'_> {
    fn repository(&self, url: &str, revision: &str) -> Result<SourceTree, RenderError> {
        let checkout = self.repositories.checkout(url, revision).map_err(|error| {
            let transient = error.is_transient();
            RenderError::new(error.to_string()).transient(transient)
        })?;
        let recording = checkout.recording();
        let tree = SourceTree { tree: recording.clone(), revision: checkout.revision.clone() };
        self.lock().push(Opened { checkout, recording });
        Ok(tree)
    }

    fn chart(&self, repository: &str, chart: &str, version: &str) -> Result<SourceTree, RenderError> {
        let what = if chart.is_empty() {
            repository.to_owned()
        } else {
            format!("{chart} {version} of {repository}")
        };
        Err(RenderError::new(format!(
            "chart {what}: fetching charts from Helm repositories and OCI registries is not supported yet"
        )))
    }
}
