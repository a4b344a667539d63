//! Matching targets with live objects, and the verdicts that follow: sync status, health, conditions,
//! what may be pruned (Argo CD docs, "Resource Tracking", "Sync Options").

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use tiphys_health::{Member, roll_up};
use tiphys_model::{
    Application, Condition, ConditionType, HealthCode, HealthStatus, ObjectMeta, ResourceStatus, Summary,
    SyncStatusCode, Tracking, hook, names,
    options::{DeletionPolicy, annotation_lists, deletion_policy},
};
use tiphys_value::{FieldPath, GroupKind, ObjectExt, ResourceKey};

use crate::{
    Claim, KindCatalog, LiveObject,
    action::images,
    external_urls,
    generated_names::{self, generated_prefix},
};

/// What is compared.
pub struct CompareInput<'a> {
    /// The Application.
    pub app: &'a Application,
    /// Its name in tracking marks.
    pub instance: &'a str,
    /// How objects are marked.
    pub tracking: &'a Tracking,
    /// Key of the Application object, if it lives in the destination cluster.
    pub own_key: Option<ResourceKey>,
    /// The rendered objects.
    pub targets: &'a [Arc<Value>],
    /// Objects of the cluster: those this Application tracks, and those at the keys of targets.
    pub live: &'a BTreeMap<ResourceKey, LiveObject>,
    /// Kinds of the destination.
    pub kinds: &'a dyn KindCatalog,
    /// Where a target and its live object differ.
    pub differ: &'a dyn Fn(&Value, &Value) -> Vec<FieldPath>,
    /// Whether the project permits an object: its message if not.
    pub permit: &'a dyn Fn(&Value, bool) -> Result<(), String>,
    /// Whether the settings exclude a kind.
    pub excluded: &'a dyn Fn(&GroupKind) -> bool,
    /// Whether a sync of this desired state has made the objects whose names are generated.
    pub has_generated: bool,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The targets without repetitions and excluded kinds, namespaces set; hooks included.
    pub targets: Vec<Arc<Value>>,
    /// `status.resources`.
    pub resources: Vec<ResourceStatus>,
    /// `status.sync.status`.
    pub sync: SyncStatusCode,
    /// Health of the whole.
    pub health: Option<HealthStatus>,
    /// Warnings.
    pub conditions: Vec<Condition>,
    /// See [`crate::SyncInput::prunable`].
    pub prunable: BTreeSet<ResourceKey>,
    /// See [`crate::SyncInput::shared`].
    pub shared: BTreeMap<ResourceKey, String>,
    /// See [`crate::SyncInput::out_of_sync`].
    pub out_of_sync: BTreeSet<ResourceKey>,
    /// Where objects differ: every object that is out of sync has an entry, empty if it is missing or extra.
    pub differences: BTreeMap<ResourceKey, Vec<FieldPath>>,
    /// What of the metadata of the destination namespace is not as `managedNamespaceMetadata` has it.
    pub namespace_differs: Vec<FieldPath>,
    /// `status.summary`.
    pub summary: Summary,
    /// Objects whose names are generated, by the beginnings of their names: each sync of the whole makes new
    /// ones.
    pub generated: BTreeSet<ResourceKey>,
    /// Objects that somebody else looks after, see [`crate::SyncInput::claims`]; found by the caller.
    pub claims: BTreeMap<ResourceKey, Claim>,
    /// Objects that no sync writes, see [`crate::left_alone`]; found by the caller.
    pub left_alone: BTreeMap<ResourceKey, String>,
}

impl Comparison {
    /// The comparison as automated sync is to see it: without what is left alone.
    pub fn without(&self, left_alone: &BTreeSet<ResourceKey>) -> Self {
        let mut seen = self.clone();
        seen.resources.retain(|resource| !differs(resource) || !left_alone.contains(&key_of(resource)));
        let differs = seen.resources.iter().any(differs) || !seen.namespace_differs.is_empty();
        if seen.sync == SyncStatusCode::OutOfSync && !differs {
            seen.sync = SyncStatusCode::Synced;
        }
        seen
    }
}

/// The key of an entry of `status.resources`.
pub(crate) fn key_of(resource: &ResourceStatus) -> ResourceKey {
    ResourceKey::new(&resource.group, &resource.kind, &resource.namespace, &resource.name)
}

/// Whether an object is not as it should be; of one that the project does not permit nobody will say so.
pub(crate) fn differs(resource: &ResourceStatus) -> bool {
    !resource.hook && matches!(resource.status, Some(SyncStatusCode::OutOfSync | SyncStatusCode::Unknown))
}

/// The key under which a target is found in the cluster.
pub fn target_key(target: &Value, destination_namespace: &str, kinds: &dyn KindCatalog) -> ResourceKey {
    let mut key = target.resource_key();
    let namespaced = kinds.lookup(&target.gvk()).is_none_or(|info| info.namespaced);
    if !namespaced {
        key.namespace.clear();
    } else if key.namespace.is_empty() {
        key.namespace = destination_namespace.to_owned();
    }
    key
}

/// Compares the desired with the live state.
pub fn compare(input: &CompareInput<'_>) -> Comparison {
    let mut out = Comparison { sync: SyncStatusCode::Synced, ..Comparison::default() };
    let targets = distinct_targets(input, &mut out);
    out.summary.is_app_of_apps = targets.keys().any(is_application);
    let mut health = Vec::new();
    for (key, target) in &targets {
        if hook::is_skipped(target) {
            let live = input.live.get(key);
            let mut status = status_of(key, target, hook::wave(target));
            status.requires_deletion_confirmation = needs_confirmation(input, target)
                || live.is_some_and(|live| needs_confirmation(input, &live.object));
            out.resources.push(status);
        } else {
            compare_target(input, key, target, &mut out, &mut health);
        }
    }
    compare_namespace(input, &mut out);
    for (key, live) in input.live.iter().filter(|(key, _)| !targets.contains_key(*key)) {
        compare_extra(input, key, live, &mut out, &mut health);
    }
    out.resources.sort_by(|a, b| {
        (&a.group, &a.kind, &a.namespace, &a.name).cmp(&(&b.group, &b.kind, &b.namespace, &b.name))
    });
    let members: Vec<_> = health
        .iter()
        .map(|one| Member {
            key: &one.key,
            health: one.health.as_ref(),
            ignored: one.ignored,
            live: one.live,
        })
        .collect();
    out.health = Some(roll_up(&members));
    out.summary.images = images_at_work(input, &out.resources);
    out.summary.external_urls = external_urls(input, &targets);
    out
}

/// What an object adds to the health of the whole.
struct Judged {
    key: ResourceKey,
    health: Option<HealthStatus>,
    ignored: bool,
    live: bool,
}

fn is_application(key: &ResourceKey) -> bool {
    key.group == names::GROUP && key.kind == "Application"
}

/// The last of several targets with one key counts; hooks that run or are of no known type go aside.
fn distinct_targets(input: &CompareInput<'_>, out: &mut Comparison) -> BTreeMap<ResourceKey, Arc<Value>> {
    let namespace = &input.app.spec.destination.namespace;
    let mut counts: BTreeMap<ResourceKey, usize> = BTreeMap::new();
    let mut targets = BTreeMap::new();
    for target in input.targets {
        let key = target_key(target, namespace, input.kinds);
        if (input.excluded)(&key.group_kind()) {
            let message =
                format!("Resource {}/{} {} is excluded in the settings", key.group, key.kind, key.name);
            out.conditions.push(Condition::new(ConditionType::ExcludedResourceWarning, message));
            continue;
        }
        if key.name.is_empty() {
            // With a generated name it never is the same object twice.
            if let Some(prefix) = generated_prefix(target) {
                list_generated(input, ResourceKey { name: prefix.to_owned(), ..key }, target, out);
            }
            out.targets.push(Arc::clone(target));
            continue;
        }
        *counts.entry(key.clone()).or_default() += 1;
        let target = in_its_scope(target, &key);
        targets.insert(key, target);
    }
    for (key, count) in counts.iter().filter(|(_, count)| **count > 1) {
        let message = format!(
            "Resource {}/{}/{}/{} appeared {count} times among application resources.",
            key.group, key.kind, key.namespace, key.name
        );
        out.conditions.push(Condition::new(ConditionType::RepeatedResourceWarning, message));
    }
    out.targets.extend(targets.values().cloned());
    targets.retain(|_, target| !hook::is_hook(target) || hook::is_skipped(target));
    targets
}

/// Lists an object whose name is generated: what was made before is none that could differ.
fn list_generated(input: &CompareInput<'_>, key: ResourceKey, target: &Value, out: &mut Comparison) {
    let mut status = status_of(&key, target, hook::wave(target));
    let is_synced = input.has_generated;
    status.status = Some(if is_synced { SyncStatusCode::Synced } else { SyncStatusCode::OutOfSync });
    out.resources.push(status);
    if !is_synced {
        out.out_of_sync.insert(key.clone());
        out.differences.insert(key.clone(), Vec::new());
        mark_out_of_sync(out);
    }
    out.generated.insert(key);
}

/// An object that lives outside of namespaces without one: its author gave it one, or nobody knew its kind
/// when it was rendered.
fn in_its_scope(target: &Arc<Value>, key: &ResourceKey) -> Arc<Value> {
    if !key.namespace.is_empty() || target.namespace().is_empty() {
        return Arc::clone(target);
    }
    let mut target = Value::clone(target);
    if let Some(metadata) = target.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
    }
    Arc::new(target)
}

/// An entry without a verdict. The wave is one of the sources: what left them is in none.
fn status_of(key: &ResourceKey, object: &Value, wave: i64) -> ResourceStatus {
    ResourceStatus {
        group: key.group.clone(),
        version: object.gvk().version,
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        sync_wave: wave,
        ..ResourceStatus::default()
    }
}

fn needs_confirmation(input: &CompareInput<'_>, object: &Value) -> bool {
    let options = input.app.sync_options();
    ["Prune", "Delete"].iter().any(|key| deletion_policy(key, object, &options) == DeletionPolicy::Confirm)
}

fn compare_target(
    input: &CompareInput<'_>,
    key: &ResourceKey,
    target: &Arc<Value>,
    out: &mut Comparison,
    health: &mut Vec<Judged>,
) {
    let mut status = status_of(key, target, hook::wave(target));
    // What the project does not permit is as if it were not there, whoever made it: the Application is not in
    // the state that its sources ask for, and no sync can bring it there. What a sync says of it tells why.
    let permitted = (input.permit)(target, !key.namespace.is_empty()).is_ok();
    let live = input.live.get(key).filter(|_| permitted);
    status.requires_deletion_confirmation =
        needs_confirmation(input, target) || live.is_some_and(|live| needs_confirmation(input, &live.object));
    if let Some(live) = live
        && let Some(owner) = input.tracking.owner(&live.object).filter(|owner| owner != input.instance)
    {
        let ObjectMeta { namespace, name, .. } = &input.app.metadata;
        let own = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        let theirs = owner.replace('_', "/");
        let message = format!("{}/{} is part of applications {own} and {theirs}", key.kind, key.name);
        out.conditions.push(Condition::new(ConditionType::SharedResourceWarning, message));
        out.shared.insert(key.clone(), owner);
    }
    let differences = live.map(|live| (input.differ)(target, &live.object));
    let synced = differences.as_ref().is_some_and(Vec::is_empty);
    status.status = Some(if synced { SyncStatusCode::Synced } else { SyncStatusCode::OutOfSync });
    if !synced {
        out.out_of_sync.insert(key.clone());
        out.differences.insert(key.clone(), differences.unwrap_or_default());
        mark_out_of_sync(out);
    }
    let is_self = input.own_key.as_ref() == Some(key);
    status.health = match live {
        Some(live) => live.health.clone(),
        None => Some(HealthStatus::new(HealthCode::Missing, "")),
    };
    let ignored = target.annotation(names::IGNORE_HEALTHCHECK) == Some("true")
        || live.is_some_and(|live| live.object.annotation(names::IGNORE_HEALTHCHECK) == Some("true"));
    health.push(Judged {
        key: key.clone(),
        health: status.health.clone(),
        ignored: ignored || is_self,
        live: live.is_some(),
    });
    if is_self {
        let message = format!("{} is among its own objects; it is applied, but not awaited", input.instance);
        out.conditions.push(Condition::new(ConditionType::SelfManaged, message));
    }
    if !permitted {
        status.status = Some(SyncStatusCode::Unknown);
    }
    out.resources.push(status);
}

/// The addresses at which the Application's objects can be reached, and those that it names itself.
fn external_urls(input: &CompareInput<'_>, targets: &BTreeMap<ResourceKey, Arc<Value>>) -> Vec<String> {
    let own = input.app.metadata.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut urls: Vec<String> = external_urls::annotated_urls(own);
    let live = targets.keys().filter_map(|key| input.live.get(key));
    urls.extend(live.flat_map(|live| external_urls::external_urls(&live.object)));
    urls.sort();
    urls.dedup();
    urls
}

/// The container images of the Application's live objects.
fn images_at_work(input: &CompareInput<'_>, resources: &[ResourceStatus]) -> Vec<String> {
    let keys = resources.iter().map(|r| ResourceKey::new(&r.group, &r.kind, &r.namespace, &r.name));
    let live = keys.filter_map(|key| input.live.get(&key));
    let distinct: BTreeSet<String> = live.flat_map(|live| images(&live.object)).collect();
    distinct.into_iter().collect()
}

/// The destination namespace is kept as `managedNamespaceMetadata` has it, unless it is a target itself. One
/// that is missing is no difference: whatever is in it is missing, too.
fn compare_namespace(input: &CompareInput<'_>, out: &mut Comparison) {
    let policy = input.app.spec.sync_policy.as_ref();
    let Some(managed) = policy.and_then(|policy| policy.managed_namespace_metadata.as_ref()) else { return };
    let key = ResourceKey::new("", "Namespace", "", &input.app.spec.destination.namespace);
    let is_target = out.targets.iter().any(|target| target.resource_key() == key);
    let live = input.live.get(&key).filter(|_| !is_target);
    let Some(live) = live.filter(|_| input.app.sync_options().is_on("CreateNamespace")) else { return };
    for (field, wanted) in [("labels", &managed.labels), ("annotations", &managed.annotations)] {
        let there = |name: &str| live.object.at(&["metadata", field])?.get(name)?.as_str();
        let missed = wanted.iter().filter(|(name, value)| there(name) != Some(value.as_str()));
        out.namespace_differs
            .extend(missed.map(|(name, _)| FieldPath::default().key("metadata").key(field).key(name)));
    }
    if !out.namespace_differs.is_empty() {
        out.differences.insert(key, out.namespace_differs.clone());
        mark_out_of_sync(out);
    }
}

/// Whether an object is the destination namespace with metadata that the Application gives it. Such a
/// namespace may bear the Application's mark (Argo CD docs, "Namespace Metadata"), and is no object that left
/// its sources.
fn manages_namespace(input: &CompareInput<'_>, key: &ResourceKey) -> bool {
    let policy = input.app.spec.sync_policy.as_ref();
    policy.is_some_and(|policy| policy.managed_namespace_metadata.is_some())
        && *key == ResourceKey::new("", "Namespace", "", &input.app.spec.destination.namespace)
}

fn compare_managed_namespace(
    key: &ResourceKey,
    live: &LiveObject,
    out: &mut Comparison,
    health: &mut Vec<Judged>,
) {
    let mut status = status_of(key, &live.object, 0);
    let is_synced = out.namespace_differs.is_empty();
    status.status = Some(if is_synced { SyncStatusCode::Synced } else { SyncStatusCode::OutOfSync });
    status.health.clone_from(&live.health);
    health.push(Judged { key: key.clone(), health: live.health.clone(), ignored: false, live: true });
    out.resources.push(status);
}

fn mark_out_of_sync(out: &mut Comparison) {
    if out.sync == SyncStatusCode::Synced {
        out.sync = SyncStatusCode::OutOfSync;
    }
}

/// A live object without a target: a hook, an extra, or none of ours.
fn compare_extra(
    input: &CompareInput<'_>,
    key: &ResourceKey,
    live: &LiveObject,
    out: &mut Comparison,
    health: &mut Vec<Judged>,
) {
    let object = &*live.object;
    let owned = !object.owner_references().is_empty();
    let is_ours = input.tracking.owner(object).as_deref() == Some(input.instance);
    if !is_ours || owned || input.own_key.as_ref() == Some(key) {
        return;
    }
    if (input.excluded)(&key.group_kind()) || (input.permit)(object, !key.namespace.is_empty()).is_err() {
        return;
    }
    if manages_namespace(input, key) {
        return compare_managed_namespace(key, live, out, health);
    }
    let is_hook = hook::is_hook(object) || hook::is_ignored(object);
    let namespace = &input.app.spec.destination.namespace;
    let is_target = |target: &&Arc<Value>| target_key(target, namespace, input.kinds) == *key;
    let target = out.targets.iter().find(|target| is_hook && is_target(target));
    let mut status = status_of(key, object, target.map_or(0, |target| hook::wave(target)));
    status.hook = is_hook;
    let is_generated = generated_names::is_made_for(object, key, out.generated.iter().cloned());
    status.requires_pruning = input.tracking.is_self_referencing(object) && !is_generated;
    status.requires_deletion_confirmation = needs_confirmation(input, object);
    if !is_hook {
        status.health.clone_from(&live.health);
    }
    if !is_hook && status.requires_pruning {
        status.status = Some(SyncStatusCode::OutOfSync);
        out.prunable.insert(key.clone());
        out.out_of_sync.insert(key.clone());
        out.differences.insert(key.clone(), Vec::new());
        if !annotation_lists(object, names::COMPARE_OPTIONS, "IgnoreExtraneous") {
            mark_out_of_sync(out);
        }
        let ignored = object.annotation(names::IGNORE_HEALTHCHECK) == Some("true");
        health.push(Judged { key: key.clone(), health: live.health.clone(), ignored, live: true });
    }
    out.resources.push(status);
}
