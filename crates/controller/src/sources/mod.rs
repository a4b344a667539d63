//! Where Applications come from: the repositories, who may read them, whose signatures are believed in them,
//! and where their revisions were last seen.

mod sightings;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use sightings::Sightings;
use tiphys_cluster::LiveCache;
use tiphys_model::{AppProject, Application};
use tiphys_source::{DeclaredAccess, Repositories};
use tiphys_value::{ObjectExt, Value};

use crate::{
    checkouts::RepositoryRead,
    credentials,
    home::Home,
    project_objects::{engine_namespace, or_default, project_object},
    rendering::Rendering,
    source_integrity::{Integrity, Keys},
};

/// Edits of files are gathered for so long: editors write in several steps.
pub(crate) const GATHER_EDITS: Duration = Duration::from_millis(120);

/// The repositories, and what is known of them while the engine runs.
pub(crate) struct Sources {
    /// Those that can be read.
    pub repositories: Arc<Repositories>,
    /// The credentials that were declared when they were last read.
    credentials: Mutex<Vec<DeclaredAccess>>,
    /// The keys whose signatures are believed.
    keys: Mutex<Keys>,
    /// Where revisions were seen a moment ago.
    sightings: Sightings,
    /// The commit that each revision of a repository (by its address) was last seen to have left.
    left: Mutex<HashMap<(String, String), String>>,
    /// How often edits of the working tree were told of.
    edits: AtomicU64,
}

impl Sources {
    pub(crate) fn new(repositories: Arc<Repositories>) -> Self {
        Self {
            repositories,
            credentials: Mutex::default(),
            keys: Mutex::default(),
            sightings: Sightings::default(),
            left: Mutex::default(),
            edits: AtomicU64::default(),
        }
    }

    /// Reads all credentials again; whether they are others than before. What could not be fetched then is
    /// tried again.
    pub(crate) fn read_credentials(&self, cache: &LiveCache, namespace: &str) -> bool {
        let all = credentials::declared(cache, namespace);
        let mut known = self.credentials();
        if *known == all {
            return false;
        }
        known.clone_from(&all);
        drop(known);
        if let Some(fetcher) = self.repositories.fetcher() {
            fetcher.declare(all);
            fetcher.expire();
        }
        true
    }

    fn credentials(&self) -> MutexGuard<'_, Vec<DeclaredAccess>> {
        self.credentials.lock()
    }

    /// The addresses of the repositories whose Secrets say that they are for a project. A template of
    /// credentials is no repository. A registry is named with its scheme and, as Applications name it that
    /// have a chart of it, without.
    pub(crate) fn repositories_of(&self, project: &str) -> Vec<String> {
        let known = self.credentials();
        let own = known.iter().filter(|entry| entry.exact && entry.project == project);
        own.flat_map(|entry| {
            let bare = entry.url.strip_prefix("oci://").map(str::to_owned);
            bare.into_iter().chain([entry.url.clone()])
        })
        .collect()
    }

    /// Reads the keys that are believed; whether they are others than before.
    pub(crate) fn read_keys(&self, cache: &LiveCache, namespace: &str) -> bool {
        self.keys.lock().read(cache, namespace)
    }

    /// What the project of an Application demands.
    pub(crate) fn integrity_of(&self, home: &Home, app: &Application) -> Integrity {
        let namespaces = [home.settings.namespace.as_str(), engine_namespace(&home.settings, app)];
        self.integrity_of_project(&home.cache, app.project(), &namespaces)
    }

    /// What a project demands that lies in the first of some namespaces that has it. One that cannot be read
    /// demands nothing here: no Application of it is looked at.
    pub(crate) fn integrity_of_project(
        &self,
        cache: &LiveCache,
        name: &str,
        namespaces: &[&str],
    ) -> Integrity {
        // Of hardly any project anything is demanded, and this is asked at every look.
        let says = |object: &Arc<Value>| {
            ["sourceIntegrity", "signatureKeys"].iter().any(|field| object.at(&["spec", field]).is_some())
        };
        let project = project_object(cache, namespaces, or_default(name)).filter(says);
        let project = project.and_then(|object| AppProject::from_value(&object).ok());
        let keys = || self.keys.lock().clone();
        project.map(|project| Integrity::demanded_by(project.spec, keys())).unwrap_or_default()
    }

    /// Forgets how fresh the repositories of an Application's sources are.
    pub(crate) fn expire(&self, app: &Application) {
        for source in app.spec.effective_sources() {
            self.repositories.expire_address(&source.repo_url);
        }
    }

    /// Whether all that a rendering read is at the commits that it was read at.
    pub(crate) fn stand(&self, known: &Rendering) -> bool {
        known.asked_for().is_some_and(|(project, reads)| {
            reads.iter().all(|read| {
                let texts = [project, &read.url, &read.revision, &read.commit];
                self.sightings.confirm(texts.map(str::to_owned).into(), || {
                    let checkout = self.repositories.checkout_for(project, &read.url, &read.revision);
                    checkout.is_ok_and(|checkout| checkout.revision == read.commit)
                })
            })
        })
    }

    /// Notes that a revision of a repository was seen at another commit than one that was read. `false` if
    /// that was known already.
    pub(crate) fn note_left(&self, read: &RepositoryRead) -> bool {
        let cluster = (read.url.clone(), read.revision.clone());
        let mut left = self.left.lock();
        left.insert(cluster, read.commit.clone()).as_ref() != Some(&read.commit)
    }

    /// Whether an older revision of what an Application reads can be had at all: a working tree has only its
    /// present.
    pub(crate) fn have_revisions(&self, app: &Application) -> bool {
        app.spec.effective_sources().iter().all(|source| self.repositories.has_revisions(&source.repo_url))
    }

    /// Notes that the working tree was edited.
    pub(crate) fn edited(&self) {
        self.edits.fetch_add(1, Ordering::SeqCst);
    }

    /// How often edits were told of so far.
    pub(crate) fn edits(&self) -> u64 {
        self.edits.load(Ordering::SeqCst)
    }
}
