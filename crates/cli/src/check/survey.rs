//! Reading a repository for the rules.

use std::{collections::HashMap, path::Path, sync::Arc};

use parking_lot::Mutex;
use tiphys_appset::ClusterInfo;
use tiphys_check::Survey;
use tiphys_graph::{Kept, Options, Revision};
use tiphys_source::SourceError;
use tiphys_vfs::FileTree;

use super::{args::Args, progress::Progress};
use crate::repository::{Asked, Given, Repository};

/// Reads one repository, as it is or with other texts in it.
pub(super) struct Reader {
    repository: Repository,
    clusters: Vec<ClusterInfo>,
    /// The version that is asked for, or nothing.
    kube_version: String,
    environment: Option<String>,
    /// What is known of revisions that Applications read.
    revisions: Mutex<HashMap<String, Option<Revision>>>,
}

impl Reader {
    /// Opens what was given.
    pub(super) fn open(
        args: &Args,
        revision: Option<&str>,
        clusters: Vec<ClusterInfo>,
    ) -> anyhow::Result<Self> {
        let given = Given {
            place: &args.place,
            revision,
            path: None,
            respect_revisions: false,
            offline: args.offline,
        };
        let (repository, environment) = (Repository::open(&given)?, args.environment.clone());
        let kube_version = args.kubernetes_version.map(|version| version.to_string()).unwrap_or_default();
        Ok(Self { repository, clusters, kube_version, environment, revisions: Mutex::default() })
    }

    /// The files.
    pub(super) fn tree(&self) -> &Arc<dyn FileTree> {
        &self.repository.tree
    }

    /// The folder on disk, if it is one.
    pub(super) fn root(&self) -> Option<&Path> {
        self.repository.root.as_deref()
    }

    /// What the repository says in a tree, its own or one made from it, and what to keep for the next time;
    /// something may be kept from the last time.
    pub(super) fn survey(&self, tree: Arc<dyn FileTree>, kept: &Kept) -> (Survey, Kept) {
        let progress = Progress::new();
        let asked = Asked {
            environment: self.environment.as_deref(),
            clusters: &self.clusters,
            options: Options::default(),
            kube_version: &self.kube_version,
            progress: &|done, known| progress.tell(done, known),
        };
        let (mut survey, kept) = self.repository.survey_of(tree, &asked, kept);
        self.look_up_revisions(&mut survey);
        (survey, kept)
    }

    /// Tells a survey of the states of the repository that Applications read in place of the one at hand.
    pub(super) fn look_up_revisions(&self, survey: &mut Survey) {
        // A commit in place of the files is not what is checked out.
        let working_tree =
            self.repository.repositories.working_tree().filter(|_| self.repository.commit.is_empty());
        survey.branch = working_tree.and_then(|tree| tree.branch());
        let ours =
            |url: &str| survey.adopted.contains(url) || self.repository.repositories.is_own_address(url);
        let sources = survey.apps.iter().flat_map(|app| app.application.spec.effective_sources());
        let named: Vec<(String, String)> = sources
            .filter(|source| source.chart.is_empty() && ours(&source.repo_url))
            .map(|source| (source.repo_url, source.target_revision))
            .collect();
        for (url, name) in named {
            if let Some(revision) = self.revision(&name) {
                survey.revisions.insert((url, name), revision);
            }
        }
    }

    fn revision(&self, name: &str) -> Option<Revision> {
        let mut known = self.revisions.lock();
        let look = || match self.repository.repositories.working_tree()?.checkout_revision(name)? {
            Ok(found) => Some(Revision::Other(found.tree)),
            Err(SourceError::UnknownRevision { hint, .. }) => Some(Revision::None(hint)),
            // Histories that cannot be read are told of where they are asked for.
            Err(_) => None,
        };
        known.entry(name.to_owned()).or_insert_with(look).clone()
    }
}
