//! Hearing of edits and of new commits.

use std::time::Duration;

use std::sync::{Arc, Mutex, PoisonError};

use tiphys_source::{Checkout, Repositories, WatchGuard, watch};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{args::Args, report::Reporter};
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

/// The new commits of a repository that was given by its address.
pub struct Commits {
    found: mpsc::UnboundedReceiver<anyhow::Result<Checkout>>,
    /// The commit that is served.
    known: Arc<Mutex<String>>,
    asking: Option<JoinHandle<()>>,
    /// Kept so that the channel stays open where nothing is asked.
    _sender: mpsc::UnboundedSender<anyhow::Result<Checkout>>,
}

impl Drop for Commits {
    fn drop(&mut self) {
        self.asking.iter().for_each(JoinHandle::abort);
    }
}

impl Commits {
    /// Asks for new commits every now and then, if the repository is a remote one.
    pub fn of(repository: &Repository, args: &Args) -> Self {
        let (sender, found) = mpsc::unbounded_channel();
        let known = Arc::new(Mutex::new(repository.commit.clone()));
        let mut commits = Self { found, known, asking: None, _sender: sender };
        let follows = repository.is_remote() && !args.offline && !args.once;
        if let Some(address) = repository.address.clone().filter(|_| follows) {
            let ask = Ask {
                repositories: repository.repositories.clone(),
                address,
                revision: args.revision.clone().unwrap_or_default(),
                known: commits.known.clone(),
            };
            commits.asking = Some(tokio::spawn(ask.go_on(args.poll, commits._sender.clone())));
        }
        commits
    }

    /// Notes the commit that is served.
    pub fn know(&self, commit: &str) {
        commit.clone_into(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The next commit, or why none can be had.
    pub async fn next(&mut self) -> anyhow::Result<Checkout> {
        match self.found.recv().await {
            Some(found) => found,
            None => std::future::pending().await,
        }
    }
}

/// What is asked of a remote.
struct Ask {
    repositories: Arc<Repositories>,
    address: String,
    revision: String,
    known: Arc<Mutex<String>>,
}

impl Ask {
    /// Asks at intervals. A fault is told when it begins, not each time.
    async fn go_on(self, every: Duration, tell: mpsc::UnboundedSender<anyhow::Result<Checkout>>) {
        let ask = Arc::new(self);
        let mut told = false;
        loop {
            tokio::time::sleep(every).await;
            let one = ask.clone();
            let answer = tokio::task::spawn_blocking(move || {
                let known = one.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Repository::newer(&one.repositories, &one.address, &one.revision, &known)
            });
            let sent = match answer.await {
                Ok(Ok(None)) => {
                    told = false;
                    Ok(())
                }
                Ok(Ok(Some(checkout))) => {
                    told = false;
                    tell.send(Ok(checkout))
                }
                Ok(Err(_)) if told => Ok(()),
                Ok(Err(error)) => {
                    told = true;
                    tell.send(Err(error))
                }
                Err(_) => return,
            };
            if sent.is_err() {
                return;
            }
        }
    }
}
