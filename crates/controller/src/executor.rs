//! Does what the planner asks for, and reports what became of it. Decides nothing.

use std::{borrow::Cow, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use tiphys_cluster::{ApplyOptions, Change, Cluster, ClusterError, LiveCache, PatchType, Propagation};
use tiphys_diff::encoded_secret;
use tiphys_model::{Propagation as Wanted, names};
use tiphys_sync::{Action, ApplyMethod, Batch, Done, Failure, Outcome, Verb};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey, Value, json};

use crate::{
    apply_fixups::{advice, applicable, is_declared, without_undeclared},
    client_side_apply, field_migration,
    status_writer::bounded,
};

/// How many actions of one group run at once.
const PARALLEL: usize = 16;
/// How long a deletion that precedes a creation may take.
const RECREATE_TIMEOUT: Duration = Duration::from_secs(120);

/// Carries out a batch, group after group, by the requests of `cluster`: that of the cache, perhaps as
/// somebody else.
pub(crate) async fn execute(cache: &LiveCache, cluster: &Cluster, batch: Batch) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let brought: Vec<Arc<Value>> = batch.iter().flatten().filter_map(definition).collect();
    let brought = brought.as_slice();
    for group in batch {
        let done: Vec<Outcome> = stream::iter(group)
            .map(|action| async move {
                let result = perform(cache, cluster, &action).await;
                let result = result.map_err(|error| failure(cache, &action, brought, error));
                if let Ok(Done { live: Some(live), .. }) = &result
                    && !action.is_dry_run()
                {
                    cache.observe(Value::clone(live));
                }
                Outcome { action, result }
            })
            .buffered(PARALLEL)
            .collect()
            .await;
        let stops = done.iter().any(Outcome::stops_batch);
        outcomes.extend(done);
        if stops {
            break;
        }
    }
    outcomes
}

async fn perform(cache: &LiveCache, cluster: &Cluster, action: &Action) -> Result<Done, ClusterError> {
    let key = &action.task.key;
    match &action.verb {
        Verb::Apply { object, method, keeps_record, validate, force, dry_run, share, migrate_managers } => {
            let write = Write {
                cache,
                cluster,
                object,
                keeps_record: *keeps_record,
                validate: *validate,
                dry_run: *dry_run,
                share: *share,
            };
            match method {
                ApplyMethod::ServerSide if !share && client_side_apply::is_needed(object) => {
                    write.client_side(*force).await
                }
                ApplyMethod::ServerSide => {
                    if !dry_run && !migrate_managers.is_empty() {
                        field_migration::take_over(cluster, &action.gvk, key, migrate_managers).await?;
                    }
                    write.server_side(*force).await
                }
                ApplyMethod::Create => write.create().await,
                ApplyMethod::Replace => write.replace().await,
                ApplyMethod::Recreate => write.recreate().await,
            }
        }
        Verb::Delete { uid, propagation, dry_run } => {
            let resource = cluster.resource(&action.gvk).await?;
            let name = (key.namespace.as_str(), key.name.as_str());
            let there = cluster.delete(&resource, name, propagated(*propagation), uid, *dry_run).await?;
            let verb = if there { "pruned" } else { "is already gone" };
            // What goes only later has to be seen as going at once, or nobody would wait for it.
            let live = match there && !dry_run {
                true => cluster.get(&resource, name.0, name.1).await?.map(Arc::new),
                false => None,
            };
            Ok(Done { message: format!("{} {verb}", display_name(&action.gvk, &key.name)), live })
        }
        Verb::RemoveFinalizer { finalizer } => remove_finalizer(cluster, &action.gvk, key, finalizer).await,
        Verb::Get => {
            let resource = cluster.resource(&action.gvk).await?;
            let live = cluster.get(&resource, &key.namespace, &key.name).await?;
            Ok(Done { message: String::new(), live: live.map(Arc::new) })
        }
    }
}

fn propagated(wanted: Wanted) -> Propagation {
    match wanted {
        Wanted::Foreground => Propagation::Foreground,
        Wanted::Background => Propagation::Background,
        Wanted::Orphan => Propagation::Orphan,
    }
}

/// `kind.group/name`, as kubectl prints it.
fn display_name(gvk: &GroupVersionKind, name: &str) -> String {
    let kind = gvk.kind.to_lowercase();
    if gvk.group.is_empty() { format!("{kind}/{name}") } else { format!("{kind}.{}/{name}", gvk.group) }
}

/// One object that is to be written.
struct Write<'a> {
    cache: &'a LiveCache,
    cluster: &'a Cluster,
    object: &'a Value,
    keeps_record: bool,
    validate: bool,
    dry_run: bool,
    share: bool,
}

impl Write<'_> {
    fn done(&self, live: Value, verb: &str) -> Done {
        let dry = if self.dry_run { " (dry run)" } else { "" };
        let message = format!("{} {verb}{dry}", display_name(&self.object.gvk(), self.object.name()));
        Done { message, live: Some(Arc::new(live)) }
    }

    async fn server_side(&self, recreate: bool) -> Result<Done, ClusterError> {
        let options = ApplyOptions {
            field_manager: names::FIELD_MANAGER.into(),
            force: !self.share,
            dry_run: self.dry_run,
            validate: self.validate,
        };
        let encoded = encoded_secret(self.object);
        let mut object = applicable(self.cache, encoded.as_ref().unwrap_or(self.object));
        if self.keeps_record
            && let Some(record) = client_side_apply::record_that_is_too_long(&object)
        {
            object.to_mut()["metadata"]["annotations"][names::LAST_APPLIED] = record.into();
        }
        let mut applied = self.cluster.apply(&object, &options).await;
        // Of several in one map the API server names only the first that it comes across.
        while let Err(error) = &applied
            && !self.validate
            && let Some(less) = without_undeclared(&object, error)
        {
            object = Cow::Owned(less);
            applied = self.cluster.apply(&object, &options).await;
        }
        match applied {
            Ok(live) => Ok(self.done(live, "serverside-applied")),
            Err(ClusterError::Api { code: 409 | 422, .. }) if recreate => self.recreate().await,
            Err(error) => Err(error),
        }
    }

    async fn client_side(&self, recreate: bool) -> Result<Done, ClusterError> {
        let object = &*applicable(self.cache, self.object);
        if self.validate {
            client_side_apply::validate(self.cluster, object).await?;
        }
        match client_side_apply::apply(self.cluster, object, self.dry_run).await {
            Ok((live, verb)) => Ok(self.done(live, verb)),
            Err(ClusterError::Api { code: 422, .. }) if recreate => self.recreate().await,
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> Result<Done, ClusterError> {
        let object = applicable(self.cache, self.object);
        let live = self.cluster.create(&object, names::FIELD_MANAGER, self.dry_run).await?;
        Ok(self.done(live, "created"))
    }

    async fn replace(&self) -> Result<Done, ClusterError> {
        let resource = self.cluster.resource(&self.object.gvk()).await?;
        let live = self.cluster.get(&resource, self.object.namespace(), self.object.name()).await?;
        let Some(live) = live else { return self.create().await };
        let mut object = applicable(self.cache, self.object).into_owned();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.insert("resourceVersion".into(), live.resource_version().into());
        }
        let live = self.cluster.replace(&object, names::FIELD_MANAGER, self.dry_run).await?;
        Ok(self.done(live, "replaced"))
    }

    async fn recreate(&self) -> Result<Done, ClusterError> {
        let resource = self.cluster.resource(&self.object.gvk()).await?;
        let name = (self.object.namespace(), self.object.name());
        let key = resource.key(name.0, name.1);
        let mut changes = self.cache.subscribe();
        self.cluster.delete(&resource, name, Propagation::Foreground, "", self.dry_run).await?;
        if self.dry_run {
            return Ok(self.done(self.object.clone(), "recreated"));
        }
        let gone = tokio::time::timeout(RECREATE_TIMEOUT, async {
            while self.cluster.get(&resource, name.0, name.1).await?.is_some() {
                wait_for(&mut changes, &key).await;
            }
            Ok::<(), ClusterError>(())
        });
        match gone.await {
            Ok(gone) => gone?,
            Err(_) => {
                return Err(ClusterError::Api {
                    code: 504,
                    reason: "Timeout".into(),
                    message: format!(
                        "{key} was to be deleted and created again, but is not gone after {RECREATE_TIMEOUT:?}"
                    ),
                });
            }
        }
        let object = applicable(self.cache, self.object);
        let live = self.cluster.create(&object, names::FIELD_MANAGER, false).await?;
        Ok(self.done(live, "recreated"))
    }
}

/// Waits for the next change of an object, or of the cache's mind about everything.
async fn wait_for(changes: &mut tokio::sync::broadcast::Receiver<Arc<Change>>, key: &ResourceKey) {
    while let Ok(change) = changes.recv().await {
        if change.key == *key {
            return;
        }
    }
}

/// Takes a finalizer off an object, if it is there.
pub(crate) async fn remove_finalizer(
    cluster: &Cluster,
    gvk: &GroupVersionKind,
    key: &ResourceKey,
    finalizer: &str,
) -> Result<Done, ClusterError> {
    let resource = cluster.resource(gvk).await?;
    let Some(live) = cluster.get(&resource, &key.namespace, &key.name).await? else {
        return Ok(Done::default());
    };
    let held: Vec<&Value> =
        live.at(&["metadata", "finalizers"]).and_then(Value::as_array).into_iter().flatten().collect();
    let kept: Vec<&Value> = held.iter().copied().filter(|held| held.as_str() != Some(finalizer)).collect();
    if kept.len() == held.len() {
        return Ok(Done { message: String::new(), live: Some(Arc::new(live)) });
    }
    let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": live.resource_version()}});
    let name = (key.namespace.as_str(), key.name.as_str());
    let patched = cluster.patch(&resource, name, "", PatchType::Merge, &patch, names::FIELD_MANAGER).await;
    match patched {
        Ok(live) => Ok(Done { message: String::new(), live: Some(Arc::new(live)) }),
        Err(error) if error.is_not_found() => Ok(Done::default()),
        Err(error) => Err(error),
    }
}

/// The definition that an action applies, if it is one.
fn definition(action: &Action) -> Option<Arc<Value>> {
    match &action.verb {
        Verb::Apply { object, .. } if object.kind() == "CustomResourceDefinition" => Some(object.clone()),
        _ => None,
    }
}

/// What an error means to the planner; with the definitions that the batch brings.
fn failure(cache: &LiveCache, action: &Action, brought: &[Arc<Value>], error: ClusterError) -> Failure {
    let Verb::Apply { object, .. } = &action.verb else { return answer(error) };
    let outdated = is_declared(cache, object, brought, &error);
    let advice = advice(object, &error);
    let mut failure = Failure { outdated, ..answer(error) };
    if let Some(advice) = advice {
        failure.message = format!("{}; {advice}", failure.message);
    }
    failure
}

/// An error in the API server's terms.
fn answer(error: ClusterError) -> Failure {
    let failure = Failure { message: bounded(error.to_string()), ..Failure::default() };
    match error {
        ClusterError::Api { code, reason, .. } => Failure { code: Some(code), reason, ..failure },
        ClusterError::UnknownKind(_) => Failure { code: Some(404), reason: "NotFound".into(), ..failure },
        ClusterError::Answer(_) => Failure { code: Some(200), ..failure },
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        assert_eq!(
            display_name(&GroupVersionKind::new("apps", "v1", "Deployment"), "a"),
            "deployment.apps/a"
        );
        assert_eq!(display_name(&GroupVersionKind::new("", "v1", "ConfigMap"), "a"), "configmap/a");
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_an_answer() {
        let failure = answer(ClusterError::Answer("it is nested too deep".to_owned()));
        assert_eq!(tiphys_sync::classify(&failure), tiphys_sync::ErrorClass::Permanent);
    }

    #[test]
    fn an_unknown_kind_is_reported_as_not_found() {
        let error = ClusterError::UnknownKind(GroupVersionKind::new("g", "v1", "X"));
        let failure = answer(error);
        assert_eq!(failure.code, Some(404));
        assert!(failure.message.contains("kind X in g/v1"), "{}", failure.message);
    }
}
