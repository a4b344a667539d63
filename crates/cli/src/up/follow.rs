//! Hearing of edits and of new commits.

use std::time::Duration;

use tiphys_source::{WatchGuard, watch};
use tokio::sync::mpsc;

use super::report::Reporter;
use crate::repository::Repository;

/// Edits are gathered for so long: editors write in several steps.
const GATHER: Duration = Duration::from_millis(50);

/// The edits of a working tree.
pub struct Edits {
    paths: mpsc::UnboundedReceiver<Vec<String>>,
    _guard: Option<WatchGuard>,
    /// Kept so that the channel stays open where nothing is watched.
    _sender: mpsc::UnboundedSender<Vec<String>>,
}

impl Edits {
    /// No edits, ever.
    pub fn none() -> Self {
        let (sender, paths) = mpsc::unbounded_channel();
        Self { paths, _guard: None, _sender: sender }
    }

    /// The edits of a repository's folder, if it is one. That it cannot be watched is said, and no more.
    pub fn of(repository: &Repository, reporter: &mut Reporter) -> Self {
        let mut edits = Self::none();
        let Some(root) = &repository.root else { return edits };
        let sender = edits._sender.clone();
        match watch(root, move |paths| {
            // Nobody listens any more once the command ends.
            let _ = sender.send(paths);
        }) {
            Ok(guard) => edits._guard = Some(guard),
            Err(error) => reporter.notice(&format!("edits are not followed: {error}")),
        }
        edits
    }

    /// The next batch of edited paths.
    pub async fn next(&mut self) -> Vec<String> {
        let Some(mut paths) = self.paths.recv().await else { return std::future::pending().await };
        tokio::time::sleep(GATHER).await;
        while let Ok(more) = self.paths.try_recv() {
            paths.extend(more);
        }
        paths.sort();
        paths.dedup();
        paths
    }
}
