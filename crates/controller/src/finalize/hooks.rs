//! PreDelete and PostDelete hooks. Unlike Argo CD's they run wave by wave, one that was left by an earlier
//! Application of that name does not count, and one that its TTL would take away stays until its result was
//! seen.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tiphys_cluster::{ApplyOptions, Propagation};
use tiphys_model::{Application, ConditionType, HealthCode, HookDeletePolicy, HookType, Time, hook, names};
use tiphys_sync::{kind_rank, target_key};
use tiphys_value::{ObjectExt, ResourceKey, Value, json};

use super::stage::{HOOKS, PATIENCE, RETRY, Stage, delete};
use crate::{
    AppKey, Refresh,
    app_state::AppMemory,
    apply_fixups::applicable,
    destinations::ConnectedCluster,
    executor::remove_finalizer,
    home::Home,
    live_state::Kinds,
    project_policy::Policies,
    reconcile::{
        render::Renderer,
        report::{Next, Report},
    },
};

/// How long after a hook failed it is run again.
const AGAIN: Duration = Duration::from_secs(60);

/// The finalizers of an Application with those of the delete hooks that it renders, and without those of
/// hooks that it no longer has; `None` if it has these already.
pub(crate) fn hook_finalizers(app: &Application, targets: &[Arc<Value>]) -> Option<Vec<String>> {
    let held = &app.metadata.finalizers;
    let mut finalizers: Vec<&str> = held.iter().map(String::as_str).collect();
    for (stage, run, end) in HOOKS {
        let has_hooks = targets.iter().any(|target| hook::hook_types(target).contains(&stage));
        for finalizer in [run, end] {
            match (has_hooks, finalizers.contains(&finalizer)) {
                (true, false) => finalizers.push(finalizer),
                (false, true) => finalizers.retain(|held| *held != finalizer),
                _ => {}
            }
        }
    }
    (*held != finalizers).then(|| finalizers.into_iter().map(str::to_owned).collect())
}

/// The delete hooks of Applications.
pub(super) struct DeleteHooks {
    pub home: Arc<Home>,
    pub policies: Arc<Policies>,
    pub apps: Arc<AppMemory>,
    pub renderer: Arc<Renderer>,
}

impl DeleteHooks {
    /// Runs the hooks of a stage until all have ended well.
    pub(super) async fn run(
        &self,
        key: &AppKey,
        app: &Application,
        cluster: &Arc<ConnectedCluster>,
        stage: HookType,
        report: &mut Report,
    ) -> Stage {
        let now = self.home.now();
        let rendering = self.renderer.rendering(key, app, Refresh::Sources, cluster, report).await;
        let good = match &rendering.targets {
            Ok(_) => Some(rendering.clone()),
            Err(_) => self.apps.last_good_rendering(key, &rendering),
        };
        let Some(targets) = good.and_then(|good| good.targets.as_ref().ok().map(|targets| targets.get()))
        else {
            let fault = rendering.targets.as_ref().err().map(|error| format!("{error:#}"));
            let message = format!(
                "{} hooks are not known, because the sources do not render: {}. To delete without them, remove the finalizer {}",
                stage.as_str(),
                fault.unwrap_or_default(),
                finalizer_of(stage)
            );
            return Stage::fails(Next::after(AGAIN, now), message);
        };
        let mut waves: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
        for target in targets.iter().filter(|target| hook::hook_types(target).contains(&stage)) {
            let object = prepared(app, target, stage, rendering.revision());
            waves.entry(hook::wave(&object)).or_default().push(object);
        }
        for hooks in waves.values_mut() {
            hooks.sort_by(|a, b| (kind_rank(a.kind()), a.name()).cmp(&(kind_rank(b.kind()), b.name())));
            match self.run_wave(app, cluster, stage, hooks).await {
                Stage::Done => {}
                waits @ Stage::Waits { .. } => return waits,
            }
        }
        Stage::Done
    }

    async fn run_wave(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
        stage: HookType,
        hooks: &[Value],
    ) -> Stage {
        let kinds = Kinds(cluster.cache.cluster().discovery());
        let namespace = &app.spec.destination.namespace;
        let (mut running, mut failed) = (Vec::new(), Vec::new());
        for hook in hooks {
            let at = target_key(hook, namespace, &kinds);
            let done = match cluster.cache.get(&at) {
                Some(live) if is_stale(app, &live) => {
                    self.remove_hook(app, cluster, &live).await.map(|()| Some(false))
                }
                Some(live) => Ok(self.verdict(&live, &mut failed)),
                None => self.create_hook(app, cluster, hook, &at).await.map(|()| Some(false)),
            };
            match done {
                Ok(Some(true)) => {}
                Ok(_) => running.push(at),
                Err(message) => {
                    let message = format!("{} hook {at}: {message}", stage.as_str());
                    return Stage::fails(Next::after(RETRY, self.home.now()), message);
                }
            }
        }
        if !failed.is_empty() {
            return self.run_again(app, cluster, stage, failed).await;
        }
        let Some(first) = running.first() else { return Stage::Done };
        let message = format!(
            "waiting for completion of {} hook {first}; to delete without it, remove the finalizer {}",
            stage.as_str(),
            finalizer_of(stage)
        );
        Stage::waits_for(Next::default(), ConditionType::Deleting, message)
    }

    /// `Some(true)` if a hook has ended well; notes one that has failed.
    fn verdict(&self, live: &Arc<Value>, failed: &mut Vec<(Arc<Value>, String)>) -> Option<bool> {
        let Some(health) = self.home.installation().health(live) else { return Some(true) };
        match health.status {
            HealthCode::Healthy => Some(true),
            HealthCode::Degraded => {
                failed.push((live.clone(), health.message));
                None
            }
            _ => Some(false),
        }
    }

    async fn create_hook(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
        hook: &Value,
        at: &ResourceKey,
    ) -> Result<(), String> {
        let policy = self.policies.policy_of(app)?;
        policy.permit(hook, !at.namespace.is_empty())?;
        let mut object = hook.clone();
        if !at.namespace.is_empty() {
            object["metadata"]["namespace"] = at.namespace.clone().into();
        }
        let options = ApplyOptions {
            field_manager: names::FIELD_MANAGER.into(),
            force: true,
            dry_run: false,
            validate: true,
        };
        let object = applicable(&cluster.cache, &object);
        let applied = self.policies.acting_to_delete(app, cluster)?.apply(&object, &options).await;
        let live = applied.map_err(|error| error.to_string())?;
        cluster.cache.observe(live);
        Ok(())
    }

    /// Deletes failed hooks, so that they run again.
    async fn run_again(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
        stage: HookType,
        failed: Vec<(Arc<Value>, String)>,
    ) -> Stage {
        let now = self.home.now();
        let names: Vec<String> = failed
            .iter()
            .map(|(live, why)| {
                let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
                format!("{}/{}{why}", live.namespace(), live.name())
            })
            .collect();
        let message = format!("{} hook(s) failed: {}", stage.as_str(), names.join(", "));
        let known = app.status.conditions.iter().find(|condition| condition.message == message);
        let since = known.and_then(|known| known.last_transition_time);
        let waited = since.map(|since| tiphys_model::time::elapsed(since.timestamp(), now));
        if let Some(waited) = waited.filter(|waited| *waited < AGAIN) {
            return Stage::waits(Next::after(AGAIN.saturating_sub(waited), now));
        }
        if waited.is_none() {
            return Stage::fails(Next::after(AGAIN, now), message);
        }
        for (live, _) in &failed {
            if let Err(error) = self.remove_hook(app, cluster, live).await {
                tracing::warn!(app = %app.metadata.name, %error, "cannot delete a failed hook");
            }
        }
        Stage::waits(Next::after(RETRY, now))
    }

    /// Takes our finalizer off a hook.
    async fn let_go(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
        live: &Value,
    ) -> Result<(), String> {
        let cluster = self.policies.acting_to_delete(app, cluster)?;
        let done = remove_finalizer(&cluster, &live.gvk(), &live.resource_key(), names::HOOK_FINALIZER).await;
        done.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Lets go of a hook and deletes it.
    async fn remove_hook(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
        live: &Value,
    ) -> Result<(), String> {
        self.let_go(app, cluster, live).await?;
        if live.is_terminating() {
            return Ok(());
        }
        let cluster = self.policies.acting_to_delete(app, cluster)?;
        delete(&cluster, live, Propagation::Background).await.map_err(|error| error.to_string())
    }

    /// Deletes the hooks of a stage that are not to stay, and lets go of the others.
    pub(super) async fn end(&self, app: &Application, cluster: &ConnectedCluster, stage: HookType) -> Stage {
        let instance = app.instance_name(&self.home.settings.namespace);
        let mut hooks = cluster.cache.tracked_by(&instance);
        hooks.retain(|object| hook::hook_types(object).contains(&stage));
        let healths = hooks.iter().filter_map(|hook| self.home.installation().health(hook));
        let worst = healths.map(|health| health.status).max().unwrap_or(HealthCode::Healthy);
        let mut left = false;
        for live in &hooks {
            let stays = !goes(live, worst);
            let done = if stays {
                self.let_go(app, cluster, live).await
            } else {
                left = true;
                self.remove_hook(app, cluster, live).await
            };
            if let Err(error) = done {
                let message = format!("cannot delete {}: {error}", live.resource_key());
                return Stage::fails(Next::after(RETRY, self.home.now()), message);
            }
        }
        if left { Stage::waits(Next::after(PATIENCE, self.home.now())) } else { Stage::Done }
    }
}

/// Whether a hook is deleted at the end: if it says nothing, or what it says has happened.
fn goes(live: &Value, worst: HealthCode) -> bool {
    let says = [names::HOOK_DELETE_POLICY, names::HELM_HOOK_DELETE_POLICY];
    if says.iter().all(|annotation| live.annotation(annotation).is_none_or(str::is_empty)) {
        return true;
    }
    hook::hook_delete_policies(live).into_iter().any(|policy| match policy {
        HookDeletePolicy::HookSucceeded => worst == HealthCode::Healthy,
        HookDeletePolicy::HookFailed => worst == HealthCode::Degraded,
        HookDeletePolicy::BeforeHookCreation => false,
    })
}

/// The finalizer that holds the Application for a stage.
fn finalizer_of(stage: HookType) -> &'static str {
    HOOKS.iter().find(|(known, ..)| *known == stage).map_or("", |(_, finalizer, _)| finalizer)
}

/// A hook that was there before the deletion began says nothing about it; nor does one that goes, unless our
/// finalizer still shows its result.
fn is_stale(app: &Application, live: &Value) -> bool {
    let created = live.str_at(&["metadata", "creationTimestamp"]).and_then(Time::parse);
    let held = live.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    let is_held = held.into_iter().flatten().any(|held| held.as_str() == Some(names::HOOK_FINALIZER));
    created < app.metadata.deletion_timestamp || (live.is_terminating() && !is_held)
}

/// The hook object as it is applied: with a name, and with the finalizer that keeps it until its result was
/// seen.
fn prepared(app: &Application, target: &Value, stage: HookType, revision: &str) -> Value {
    let mut object = target.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !metadata.contains_key("name") && !prefix.is_empty() {
        let revision: String = revision.chars().take(7).collect();
        let began = app.metadata.deletion_timestamp.map_or(0, |time| time.timestamp().as_second());
        metadata.remove("generateName");
        let name = format!("{prefix}{revision}-{}-{began}", stage.as_str()).to_lowercase();
        metadata.insert("name".into(), name.into());
    }
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|held| held.as_str() == Some(names::HOOK_FINALIZER))
    {
        list.push(names::HOOK_FINALIZER.into());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_goes_unless_it_says_otherwise() {
        let hook = |policy: &str| json!({"metadata": {"annotations": {names::HOOK_DELETE_POLICY: policy}}});
        assert!(goes(&json!({}), HealthCode::Healthy));
        assert!(goes(&hook("HookSucceeded"), HealthCode::Healthy));
        assert!(!goes(&hook("HookSucceeded"), HealthCode::Degraded));
        assert!(goes(&hook("HookFailed"), HealthCode::Degraded));
        assert!(!goes(&hook("BeforeHookCreation"), HealthCode::Healthy));
    }

    #[test]
    fn an_application_has_the_finalizers_of_the_hooks_that_it_renders() {
        let app = |finalizers: &[&str]| {
            let metadata = json!({"name": "a", "finalizers": finalizers});
            Application::from_value(&json!({"metadata": metadata})).expect("valid")
        };
        let hook = |stage: &str| Arc::new(json!({"metadata": {"annotations": {names::HOOK: stage}}}));
        let (run, end) = (names::PRE_DELETE_FINALIZER, names::PRE_DELETE_CLEANUP_FINALIZER);
        let given = hook_finalizers(&app(&["other"]), &[hook("PreDelete")]);
        assert_eq!(given, Some(["other", run, end].map(str::to_owned).to_vec()));
        assert_eq!(hook_finalizers(&app(&["other", run, end]), &[hook("PreDelete")]), None);
        let taken = hook_finalizers(&app(&[run, "other", end]), &[hook("Sync")]);
        assert_eq!(taken, Some(vec!["other".to_owned()]));
    }

    #[test]
    fn a_generated_name_stays_the_same_for_one_deletion() {
        let app = Application::from_value(
            &json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        );
        let target = json!({"metadata": {"generateName": "backup-"}});
        let made = prepared(&app.expect("valid"), &target, HookType::PreDelete, "0123456789");
        assert_eq!(made.name(), "backup-0123456-predelete-1767225600");
        assert_eq!(made["metadata"]["finalizers"][0], names::HOOK_FINALIZER);
    }
}
