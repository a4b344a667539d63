//! Hearing of edits and of new commits.

use std::{path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tiphys_source::{Checkout, Repositories, WatchGuard, watch};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::{args::Args, report::Reporter};
use crate::repository::Repository;

/// Edits are gathered for so long: editors write in several steps.
const GATHER: Duration = Duration::from_millis(50);
/// When a new folder is looked at again: what was written into it before it was watched is heard of by
/// nobody.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// The edits of a working tree.
pub(super) struct Edits {
    paths: mpsc::UnboundedReceiver<Batch>,
    /// What was heard and not yet handed out, and when it will be.
    gathered: Vec<Batch>,
    due: Instant,
    root: Option<PathBuf>,
    _guard: Option<WatchGuard>,
    /// Kept so that the channel stays open where nothing is watched.
    sender: mpsc::UnboundedSender<Batch>,
}

/// Edited paths.
struct Batch {
    paths: Vec<String>,
    is_second_look: bool,
}

impl Edits {
    /// No edits, ever.
    pub(super) fn none() -> Self {
        let (sender, paths) = mpsc::unbounded_channel();
        Self { paths, gathered: Vec::new(), due: Instant::now(), root: None, _guard: None, sender }
    }

    /// The edits of a repository's folder, if it is one. That it cannot be watched is said, and no more.
    pub(super) fn watch(repository: &Repository, reporter: &mut Reporter) -> Self {
        let mut edits = Self::none();
        let Some(root) = &repository.root else { return edits };
        edits.root = Some(root.clone());
        let sender = edits.sender.clone();
        match watch(root, move |paths| {
            // Nobody listens any more once the command ends.
            let _ = sender.send(Batch { paths, is_second_look: false });
        }) {
            Ok(guard) => edits._guard = Some(guard),
            Err(error) => reporter.notice(&format!("edits are not followed: {error}")),
        }
        edits
    }

    /// The next batch of edited paths. Nothing is lost if the future is dropped before its end.
    pub(super) async fn next(&mut self) -> Vec<String> {
        if self.gathered.is_empty() {
            let Some(first) = self.paths.recv().await else { return std::future::pending().await };
            self.gathered.push(first);
            self.due = Instant::now() + GATHER;
        }
        sleep_until(self.due).await;
        while let Ok(more) = self.paths.try_recv() {
            self.gathered.push(more);
        }
        let (mut paths, mut folders) = (Vec::new(), Vec::new());
        for batch in std::mem::take(&mut self.gathered) {
            if !batch.is_second_look {
                folders.extend(batch.paths.iter().filter(|path| self.is_folder(path)).cloned());
            }
            paths.extend(batch.paths);
        }
        self.look_again(folders);
        paths.sort();
        paths.dedup();
        paths
    }

    fn is_folder(&self, path: &str) -> bool {
        !path.is_empty() && self.root.as_ref().is_some_and(|root| root.join(path).is_dir())
    }

    fn look_again(&self, folders: Vec<String>) {
        if folders.is_empty() {
            return;
        }
        let sender = self.sender.clone();
        tokio::spawn(async move {
            tokio::time::sleep(SECOND_LOOK).await;
            // Nobody listens any more once the command ends.
            let _ = sender.send(Batch { paths: folders, is_second_look: true });
        });
    }
}

/// The new commits of a repository that was given by its address.
pub(super) struct Commits {
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
    pub(super) fn poll(repository: &Repository, args: &Args) -> Self {
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
    pub(super) fn know(&self, commit: &str) {
        commit.clone_into(&mut self.known.lock());
    }

    /// The next commit, or why none can be had.
    pub(super) async fn next(&mut self) -> anyhow::Result<Checkout> {
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
                let known = one.known.lock().clone();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_new_folder_is_looked_at_twice_and_a_file_once() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("new")).expect("a folder in it");
        let mut edits = Edits { root: Some(folder.path().to_owned()), ..Edits::none() };
        let edit = |path: &str| Batch { paths: vec![path.into()], is_second_look: false };
        edits.sender.send(edit("new")).expect("it is listened to");
        edits.sender.send(edit("gone.yaml")).expect("it is listened to");
        assert_eq!(edits.next().await, ["gone.yaml", "new"]);
        assert_eq!(edits.next().await, ["new"]);
        assert!(tokio::time::timeout(SECOND_LOOK * 10, edits.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_outlives_a_wait_that_is_given_up() {
        let mut edits = Edits::none();
        let edit = Batch { paths: vec!["a.yaml".into()], is_second_look: false };
        edits.sender.send(edit).expect("it is listened to");
        assert!(tokio::time::timeout(GATHER / 2, edits.next()).await.is_err());
        assert_eq!(edits.next().await, ["a.yaml"]);
    }
}
