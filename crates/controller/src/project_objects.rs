//! Which AppProject an Application is in, and where its object lies.

use std::sync::Arc;

use tiphys_cluster::LiveCache;
use tiphys_model::{Application, names};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value};

use crate::settings::{Destinations, Settings};

/// The project that an Application is in if it names none.
pub(crate) const DEFAULT_PROJECT: &str = "default";

/// The kind AppProject.
pub(crate) fn project_kind() -> GroupKind {
    GroupKind::new(names::GROUP, "AppProject")
}

/// The name of the project that an Application object is in.
pub(crate) fn project_name(app: &Value) -> &str {
    or_default(app.str_at(&["spec", "project"]).unwrap_or_default())
}

/// The name of a project, which may be left out.
pub(crate) fn or_default(name: &str) -> &str {
    if name.is_empty() { DEFAULT_PROJECT } else { name }
}

/// The object of a project, from the first of some namespaces that has it.
pub(crate) fn project_object(cache: &LiveCache, namespaces: &[&str], name: &str) -> Option<Arc<Value>> {
    let key = |namespace: &&str| ResourceKey::new(names::GROUP, "AppProject", *namespace, name);
    namespaces.iter().find_map(|namespace| cache.get(&key(namespace)))
}

/// The namespace of the engine that an Application was written for.
pub(crate) fn engine_namespace<'a>(settings: &'a Settings, app: &'a Application) -> &'a str {
    match settings.destinations {
        Destinations::AllHere | Destinations::Apart => &app.metadata.namespace,
        Destinations::InCluster => &settings.namespace,
    }
}
