//! What Argo CD's own programs ask an engine for beside the objects of the API: the managed objects as they
//! are and as they should be, the tree of what they made, and what a source renders to.

mod managed;
mod sources;
mod tree;

use tiphys_model::{Application, ApplicationTree, ResourceDiff};

use crate::{
    AppKey, Controller, Refresh,
    engine::Engine,
    reconcile::{compare::Compared, report::Report},
    replicas::is_ours,
};
pub use sources::{RenderedSource, RepositoryKind, RepositoryRequest, SourceRequest};

impl Controller {
    /// The key of the Application with an instance name: its own, with its namespace before it where that is
    /// not the engine's.
    pub fn app_of(&self, instance: &str) -> AppKey {
        self.engine().home.app_of(instance)
    }

    /// The managed objects of an Application, sorted, with the values of Secrets masked. `None` if it is not
    /// there, or was not rendered yet.
    pub async fn managed_resources(&self, key: &AppKey) -> Option<Vec<ResourceDiff>> {
        let (app, compared) = compared_now(self.engine(), key).await?;
        Some(managed::managed_resources(&self.engine().home, &self.engine().comparer, &app, &compared))
    }

    /// The tree of an Application's objects. `None` as for [`Self::managed_resources`].
    pub async fn resource_tree(&self, key: &AppKey) -> Option<ApplicationTree> {
        let (_, compared) = compared_now(self.engine(), key).await?;
        Some(tree::application_tree(&self.engine().home, &compared))
    }
}

/// An Application beside the live state of this moment, by what it was last rendered to.
async fn compared_now(engine: &Engine, key: &AppKey) -> Option<(Application, Compared)> {
    let Engine { home, clusters, apps, renderer, comparer, writer, .. } = engine;
    let object = home.cache.peek(&key.of_application())?;
    let app = Application::from_value(&object).ok()?;
    let cluster = clusters.cluster_of(&app).ok()?;
    let known = if is_ours(&home.settings, &object) {
        apps.known_rendering(key)?
    } else {
        // Another replica looks after it; whichever is asked answers.
        let mut report = Report::default();
        let rendering = renderer.rendering(key, &app, Refresh::Sources, &cluster, &mut report).await;
        writer.requeue(&mut report);
        rendering
    };
    let good = if known.targets.is_ok() { Some(known) } else { apps.last_good_rendering(key, &known) };
    let compared = comparer.compare(&app, good?, &cluster).await?;
    Some((app, compared))
}
