//! What Argo CD's own programs ask an engine for beside the objects of the API: the managed objects as they
//! are and as they should be, the tree of what they made, and what a source renders to.

mod managed;
mod sources;
mod tree;

use std::sync::Arc;

use tiphys_model::{Application, ApplicationTree, ResourceDiff};

use crate::{AppKey, Controller, Refresh, engine::Engine, reconcile::Compared};
pub use sources::{RenderedSource, RepositoryKind, RepositoryRequest, SourceRequest};

impl Controller {
    /// The key of the Application with an instance name: its own, with its namespace before it where that is
    /// not the engine's.
    pub fn app_of(&self, instance: &str) -> AppKey {
        self.engine().app_of(instance)
    }

    /// The managed objects of an Application, sorted, with the values of Secrets masked. `None` if it is not
    /// there, or was not rendered yet.
    pub async fn managed_resources(&self, key: &AppKey) -> Option<Vec<ResourceDiff>> {
        let (app, compared) = self.engine().compared_now(key).await?;
        Some(managed::managed_resources(self.engine(), &app, &compared))
    }

    /// The tree of an Application's objects. `None` as for [`Self::managed_resources`].
    pub async fn resource_tree(&self, key: &AppKey) -> Option<ApplicationTree> {
        let (_, compared) = self.engine().compared_now(key).await?;
        Some(tree::application_tree(self.engine(), &compared))
    }
}

impl Engine {
    /// An Application beside the live state of this moment, by what it was last rendered to.
    async fn compared_now(self: &Arc<Self>, key: &AppKey) -> Option<(Application, Compared)> {
        let object = self.cache.peek(&key.of_application())?;
        let app = Application::from_value(&object).ok()?;
        let place = self.place_of(&app).ok()?;
        let known = match self.is_ours(&object) {
            true => self.known_rendering(key)?,
            // Another replica looks after it; whichever is asked answers.
            false => self.rendering(key, &app, Refresh::Sources, &place).await,
        };
        let good = if known.targets.is_ok() { Some(known) } else { self.last_good_rendering(key, &known) };
        let compared = self.compare(&app, good?, &place).await?;
        Some((app, compared))
    }
}
