//! What an operation must not wait for: Applications that wait for it, however long the chain, those that
//! something blocks or whose project is missing, which a later wave of the operation may be there to repair
//! (incidents A1, A4), and claims for storage that are bound only when a pod of a later wave uses them.

use std::collections::BTreeSet;

use tiphys_cluster::LiveCache;
use tiphys_model::{Application, names, tiphys_status};
use tiphys_sync::{SyncState, WaitKind};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value};

use crate::project_objects::project_name;

const STORAGE_GROUP: &str = "storage.k8s.io";
/// The annotation of the StorageClass of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// How many Applications are followed.
const MAX_VISITED: usize = 20_000;

/// The Applications among an Application's objects that its operation must not wait for; `passes`: those for
/// which nobody waits.
pub(crate) fn never_awaited(
    cache: &LiveCache,
    own: &ResourceKey,
    children: impl Iterator<Item = ResourceKey>,
    passes: impl Fn(&ResourceKey) -> bool,
) -> BTreeSet<ResourceKey> {
    children
        .filter(|child| child != own)
        .filter(|child| passes(child) || is_blocked(cache, child) || leads_to(cache, child, own))
        .collect()
}

/// The claims among an operation's targets that stay unbound until a pod uses them.
pub(crate) fn unbound_claims<'a>(
    cache: &LiveCache,
    claims: impl Iterator<Item = (ResourceKey, &'a Value)>,
) -> BTreeSet<ResourceKey> {
    claims.filter(|(_, claim)| waits_for_consumer(cache, claim)).map(|(key, _)| key).collect()
}

/// Whether the class of a claim provides storage only where a pod is that uses it.
fn waits_for_consumer(cache: &LiveCache, claim: &Value) -> bool {
    if claim.str_at(&["spec", "volumeName"]).is_some_and(|name| !name.is_empty()) {
        return false;
    }
    let class = match claim.str_at(&["spec", "storageClassName"]) {
        Some(name) => cache.get(&ResourceKey::new(STORAGE_GROUP, "StorageClass", "", name)),
        None => {
            let classes = cache.of_kind(&GroupKind::new(STORAGE_GROUP, "StorageClass"));
            classes.into_iter().find(|class| class.annotation(DEFAULT_CLASS) == Some("true"))
        }
    };
    class.is_some_and(|class| class.str_at(&["volumeBindingMode"]) == Some("WaitForFirstConsumer"))
}

/// Whether one Application's end depends on another's.
fn leads_to(cache: &LiveCache, from: &ResourceKey, to: &ResourceKey) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.clone()];
    while let Some(key) = open.pop() {
        if key == *to {
            return true;
        }
        if seen.len() >= MAX_VISITED || !seen.insert(key.clone()) {
            continue;
        }
        if let Some(object) = cache.get(&key) {
            open.extend(awaited(&object));
        }
    }
    false
}

/// The Applications that an Application's health or operation depends on.
fn awaited(object: &Value) -> Vec<ResourceKey> {
    let is_application = |entry: &&Value| {
        entry.str_at(&["group"]) == Some(names::GROUP) && entry.str_at(&["kind"]) == Some("Application")
    };
    let key = |entry: &Value| {
        let text = |field: &str| entry.str_at(&[field]).unwrap_or_default().to_owned();
        ResourceKey::new(names::GROUP, "Application", text("namespace"), text("name"))
    };
    let object = tiphys_status::put_back(object);
    let list = |path: &[&str]| object.at(path).and_then(Value::as_array).into_iter().flatten();
    let members = list(&["status", "resources"]);
    let waits = list(&["status", "operationState", "tiphys", "waits"]);
    let waited = waits.filter_map(|wait| wait.get("object"));
    members.chain(waited).filter(is_application).map(key).collect()
}

/// Whether an Application cannot begin because nobody has brought its project yet; there is always one that
/// is named `default`.
fn lacks_project(cache: &LiveCache, app: &Value) -> bool {
    let name = project_name(app);
    let projects = || cache.of_kind(&GroupKind::new(names::GROUP, "AppProject"));
    name != "default" && !projects().iter().any(|project| project.name() == name)
}

/// Whether an Application's operation is at work, as far as a look at its phase tells: to read all of it
/// takes long, and a parent asks this about each of its children whenever one changes.
fn is_under_way(app: &Value) -> bool {
    let phase = app.str_at(&["status", "operationState", "phase"]);
    phase.is_some_and(|phase| !matches!(phase, "Succeeded" | "Failed" | "Error"))
}

/// Whether all that an Application's operation waits for is the repair of something else.
fn is_blocked(cache: &LiveCache, key: &ResourceKey) -> bool {
    let Some(object) = cache.get(key) else { return false };
    let lacks_project = lacks_project(cache, &object);
    if !lacks_project && !is_under_way(&object) {
        return false;
    }
    let Ok(app) = Application::from_value(&object) else { return false };
    if lacks_project {
        return true;
    }
    let Some(state) = app.status.operation_state.filter(|state| !state.phase.is_completed()) else {
        return false;
    };
    let state = SyncState::from_operation_state(state);
    !state.waits().is_empty()
        && state.waits().iter().all(|wait| wait.kind == WaitKind::Blocked && wait.object.is_some())
}
