//! Reading a repository for the rules.

use std::{path::Path, sync::Arc};

use tiphys_appset::ClusterInfo;
use tiphys_check::Survey;
use tiphys_controller::Checkouts;
use tiphys_graph::{Input, Kept};
use tiphys_vfs::FileTree;

use super::{args::Args, progress::Progress};
use crate::repository::{Given, Repository};

/// Reads one repository, as it is or with other texts in it.
pub struct Reader {
    repository: Repository,
    clusters: Vec<ClusterInfo>,
}

impl Reader {
    /// Opens what was given.
    pub fn open(args: &Args, revision: Option<&str>, clusters: Vec<ClusterInfo>) -> anyhow::Result<Self> {
        let given = Given {
            place: &args.place,
            revision,
            path: None,
            respect_revisions: false,
            offline: args.offline,
        };
        Ok(Self { repository: Repository::open(&given)?, clusters })
    }

    /// The files.
    pub fn tree(&self) -> &Arc<dyn FileTree> {
        &self.repository.tree
    }

    /// The folder on disk, if it is one.
    pub fn root(&self) -> Option<&Path> {
        self.repository.root.as_deref()
    }

    /// What the repository says in a tree, its own or one made from it, and what to keep for the next time; something may
    /// be kept from the last time.
    pub fn survey(&self, tree: Arc<dyn FileTree>, kept: &Kept) -> (Survey, Kept) {
        let settings = self.repository.scan.render_settings();
        let checkouts = Checkouts::new(&self.repository.repositories).with_settings(settings);
        let progress = Progress::new();
        let input = Input {
            tree,
            folder: &self.repository.folder,
            sources: &checkouts,
            is_given: &|url| self.repository.repositories.is_given(url),
            clusters: self.clusters.clone(),
            kube_version: "",
            progress: &|done, known| progress.tell(done, known),
        };
        Survey::keeping(&input, kept)
    }
}
