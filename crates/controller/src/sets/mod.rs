//! ApplicationSets: generated, planned, carried out, and told of in their status.

mod generator_inputs;
mod set_state;
mod shadow;
mod status;

use std::{borrow::Cow, collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use generator_inputs::Dependencies;
pub use generator_inputs::SetInputs;
use set_state::Yield;
pub(crate) use set_state::{Sets, set_kind};
use status::{HELD, SetError, SetObservation};
use tiphys_appset::{
    Brake, GenerateError, Generated, Plan, Policy, generate, is_owned_by, is_rolling, plan, removal_order,
    roll,
};
use tiphys_cluster::{ClusterError, PatchType, Propagation, Resource};
use tiphys_model::{Application, Destination, names};
use tiphys_source::Footprint;
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey, Value, json};
use tokio::time::Instant;

use crate::{
    AppKey, Destinations, Refresh, Settings,
    blocking::blocking,
    destinations::Clusters,
    home::Home,
    project_objects::or_default,
    project_policy::Policies,
    reconcile::report::{Next, PANIC_PAUSE, earliest, panic_message},
    sources::{GATHER_EDITS, Sources},
    status_writer::{application_kind, application_resource, change},
};

/// Who owns the fields of generated Applications.
const FIELD_MANAGER: &str = "tiphys-applicationset-controller";
/// How many Applications are written at once.
const PARALLEL: usize = 10;
/// How long after something failed it is tried again, at first.
const RETRY: Duration = Duration::from_secs(30);
/// How long that grows for a set that yields nothing usable.
const LONGEST_RETRY: Duration = Duration::from_secs(180);
/// How often plugins are asked, unless the generator says.
const PLUGIN_REFRESH: Duration = Duration::from_secs(1800);

/// Looks at ApplicationSets.
pub(crate) struct SetReconciler {
    pub home: Arc<Home>,
    pub sources: Arc<Sources>,
    pub clusters: Arc<Clusters>,
    pub policies: Arc<Policies>,
    pub sets: Arc<Sets>,
}

impl SetReconciler {
    /// Looks at an ApplicationSet once.
    pub(crate) async fn reconcile(&self, key: &AppKey, level: Refresh) -> Next {
        let at = ResourceKey::new(names::GROUP, "ApplicationSet", &key.namespace, &key.name);
        let installation = self.home.installation();
        let served = installation.serves_sets(&key.namespace, &self.home.settings);
        let Some(set) = self.home.cache.get(&at).filter(|_| served) else {
            self.sets.forget(key);
            return Next::default();
        };
        let set = match installation.argo.sets.in_force(&set) {
            Cow::Borrowed(_) => set.clone(),
            Cow::Owned(set) => Arc::new(set),
        };
        if let Some(shadow) = &self.home.settings.shadow {
            let (decision, next) = self.decision_about(key, &set, level).await;
            shadow.record(key, decision);
            return next;
        }
        if set.is_terminating() {
            return self.finalize(&set).await;
        }
        if let Err(error) = self.hold_for_order(&set).await {
            tracing::warn!(set = %key.name, %error, "cannot add the finalizer; it is tried again");
            return Next::after(RETRY, self.home.now());
        }
        let asked = set.annotation(names::APPLICATION_SET_REFRESH) == Some("true");
        let made = self.yielded(key, &set, if asked { Refresh::Hard } else { level }).await;
        let mut seen = SetObservation::default();
        let mut next = self.follow(key, &set, &made);
        match &made.generated {
            Err(error) => {
                seen.fault = Some(SetError::new(reason_of(error), error.to_string()));
            }
            Ok(generated) => self.bring_about(&set, generated.clone(), &mut seen).await,
        }
        match seen.fault.as_ref().is_some_and(|fault| fault.reason != HELD) {
            true => {
                let pause = self.sets.pause_after_failure(key, RETRY, LONGEST_RETRY);
                next.at = earliest(next.at, Next::after(pause, self.home.now()).at);
            }
            false => self.sets.succeeded(key),
        }
        if seen.rollout.as_ref().is_some_and(|rollout| status::moves_on(&set, rollout)) {
            // A state that was entered now may be left at once.
            self.sets.queue.add(key.clone(), Refresh::LiveState, Instant::now());
        }
        if let Err(error) = self.show(&set, &seen, asked).await {
            tracing::warn!(set = %key.name, %error, "cannot write the status; it is tried again");
            next.at = earliest(next.at, Next::after(RETRY, self.home.now()).at);
        }
        next
    }

    /// What follows a look that ended in a fault of the engine's own: the set says so, and is looked at again
    /// later.
    pub(crate) async fn after_panic(&self, key: &AppKey, panic: &str) -> Next {
        tracing::error!(set = %key.name, panic, "a fault of the engine ended the look at an ApplicationSet; it is tried again");
        let at = ResourceKey::new(names::GROUP, "ApplicationSet", &key.namespace, &key.name);
        // An engine that only watches writes nothing, not even this.
        if let Some(set) = self.home.cache.get(&at).filter(|_| self.home.settings.shadow.is_none()) {
            let seen = SetObservation::broken(&panic_message(panic));
            if let Err(error) = self.show(&set, &seen, false).await {
                tracing::warn!(set = %key.name, %error, "cannot write the status");
            }
        }
        Next::after(PANIC_PAUSE, self.home.now())
    }

    /// What a set yields: what it yielded last if nothing that counts changed.
    async fn yielded(&self, key: &AppKey, set: &Arc<Value>, level: Refresh) -> Arc<Yield> {
        let spec = set.get("spec").cloned().unwrap_or_default();
        if let Some(known) = self.sets.last(key)
            && level == Refresh::LiveState
            && known.spec == spec
            && known.generated.is_ok()
        {
            return known;
        }
        if level == Refresh::Hard {
            repositories_of(&spec, 0)
                .into_iter()
                .for_each(|url| self.sources.repositories.expire_address(url));
        }
        let edits = self.sources.edits();
        let (home, sources, object) = (self.home.clone(), self.sources.clone(), set.clone());
        let task = blocking(move || {
            let namespace = set_namespace(&home.settings, &object);
            let project = object.str_at(&["spec", "template", "spec", "project"]).unwrap_or_default();
            let inputs = SetInputs::live(&sources.repositories, &home.cache, namespace, object.name())
                .for_project(or_default(project))
                .demanding(sources.integrity_of_project(&home.cache, project, &[namespace]));
            (generate(&object, &inputs), inputs.dependencies())
        });
        let (generated, depends_on) = task.await.unwrap_or_else(|error| {
            (Err(GenerateError::Template(format!("generating broke off: {error}"))), Dependencies::default())
        });
        let made = Arc::new(Yield { spec, generated, depends_on, made_at: Instant::now() });
        let reads_files = made.depends_on.footprint != Footprint::default();
        self.sets.keep(key, made.clone());
        if self.sources.edits() != edits && reads_files {
            // It may be of before the edits, and nobody knew then what it read.
            self.sets.queue.add(key.clone(), Refresh::Sources, Instant::now() + GATHER_EDITS);
        }
        made
    }

    /// When what nobody tells of changes of is asked again.
    fn follow(&self, key: &AppKey, set: &Value, made: &Yield) -> Next {
        let text = made.spec.get("generators").map(Value::to_string).unwrap_or_default();
        let asks_plugin = text.contains("\"plugin\":{");
        if !made.depends_on.reads_remotes && !asks_plugin {
            return Next::default();
        }
        let installation = self.home.installation();
        let often = installation.argo.sets.requeue_after.unwrap_or(installation.refresh);
        let default = if asks_plugin { PLUGIN_REFRESH } else { often };
        let wait = requeue_seconds(set.get("spec").unwrap_or(set), 0).map_or(default, Duration::from_secs);
        self.sets.queue.add(key.clone(), Refresh::Sources, made.made_at + wait);
        Next::default()
    }

    /// Plans the changes and carries them out.
    async fn bring_about(&self, set: &Value, mut generated: Vec<Generated>, seen: &mut SetObservation) {
        seen.generated = true;
        for one in &mut generated {
            if one.fault.is_none() {
                one.fault = self.invalid(&one.application);
            }
        }
        let existing = self.applications_for(set, &generated);
        if is_rolling(set) && !self.roll(set, &mut generated, &existing, seen) {
            return;
        }
        let Some(policy) = Policy::from_set(set) else {
            let text = set.at(&["spec", "syncPolicy", "applicationsSync"]).cloned().unwrap_or_default();
            seen.fault =
                Some(SetError::new("ApplicationValidationError", format!("applicationsSync {text} is none")));
            return;
        };
        let brake =
            if self.home.settings.auto.compat || status::is_approved(set) { Brake::Off } else { Brake::On };
        let plan = plan(set, &generated, &existing, policy, brake);
        let refused = self.carry_out(set, &plan).await;
        seen.fault = fault_of(&generated, &plan, refused).or(seen.fault.take());
        seen.apps =
            self.home.cache.each_of(&application_kind()).filter(|app| is_owned_by(app, set)).collect();
    }

    /// Moves the rollout on. Without steps there is none, and nothing is changed.
    fn roll(
        &self,
        set: &Value,
        generated: &mut [Generated],
        existing: &[Value],
        seen: &mut SetObservation,
    ) -> bool {
        let steps = set.at(&["spec", "strategy", "rollingSync", "steps"]).and_then(Value::as_array);
        if steps.is_none_or(Vec::is_empty) {
            seen.fault = Some(SetError::new("ApplicationSetRolloutError", "No steps defined for rollout"));
            return false;
        }
        // What the rollout itself changes does not count as a new spec.
        let mut bare: Vec<Generated> = generated.to_vec();
        let owned: Vec<Value> = existing.iter().filter(|app| is_owned_by(app, set)).cloned().collect();
        roll(set, &mut bare, &[], &|_| false, self.home.now());
        let policy = Policy::from_set(set).unwrap_or(Policy::CreateOnly);
        let changes = plan(set, &bare, existing, policy, Brake::Off).update;
        let revised = |name: &str| {
            changes.iter().any(|change| {
                change.before.name() == name && change.before.get("spec") != change.after.get("spec")
            })
        };
        seen.rollout = Some(roll(set, generated, &owned, &revised, self.home.now()));
        true
    }

    /// What makes an Application unusable: its project or destination.
    fn invalid(&self, app: &Value) -> Option<String> {
        let app = match Application::from_value(app) {
            Ok(app) => app,
            Err(error) => return Some(error.to_string()),
        };
        // The default counts where an Application is read. A set has to name the project, as in Argo CD.
        if app.spec.project.is_empty() || self.policies.policy_of(&app).is_err() {
            let project = &app.spec.project;
            return Some(format!("application references project {project} which does not exist"));
        }
        let destination: &Destination = &app.spec.destination;
        let fault = self.clusters.destination_fault(destination)?;
        Some(format!("application destination spec is invalid: {fault}"))
    }

    /// The Applications of a set, and those that have the name of one that it yields.
    fn applications_for(&self, set: &Value, generated: &[Generated]) -> Vec<Value> {
        let wanted: BTreeSet<&str> = generated.iter().map(|one| one.application.name()).collect();
        let concerns = |app: &Value| {
            app.namespace() == set.namespace() && (wanted.contains(app.name()) || is_owned_by(app, set))
        };
        let all = self.home.cache.each_of(&application_kind());
        all.filter(|app| concerns(app)).map(|app| Value::clone(&app)).collect()
    }

    /// Creates, updates and deletes; the first refusal by name.
    async fn carry_out(&self, set: &Value, plan: &Plan) -> Option<SetError> {
        let resource = match application_resource(self.home.cache.cluster()).await {
            Ok(resource) => resource,
            Err(error) => return Some(SetError::new("UpdateApplicationError", error.to_string())),
        };
        let creations: Vec<_> = plan.create.iter().map(|app| self.create_app(app)).collect();
        let updates: Vec<_> = plan
            .update
            .iter()
            .map(|update| self.update_app(&resource, &update.before, &update.after))
            .collect();
        let deletions: Vec<_> =
            plan.delete.iter().map(|name| self.delete_app(&resource, set.namespace(), name)).collect();
        let created: Vec<_> = stream::iter(creations).buffered(PARALLEL).collect().await;
        let updated: Vec<_> = stream::iter(updates).buffered(PARALLEL).collect().await;
        let deleted: Vec<_> = stream::iter(deletions).buffered(PARALLEL).collect().await;
        let reasons = [
            ("CreateApplicationError", created),
            ("UpdateApplicationError", updated),
            ("DeleteApplicationError", deleted),
        ];
        let mut failed = reasons.into_iter().flat_map(|(reason, results)| {
            results
                .into_iter()
                .filter_map(Result::err)
                .map(move |error| SetError::new(reason, error.to_string()))
        });
        failed.next()
    }

    async fn create_app(&self, app: &Value) -> Result<(), ClusterError> {
        let created = self.home.cache.cluster().create(app, FIELD_MANAGER, false).await?;
        self.home.cache.observe(created);
        Ok(())
    }

    async fn update_app(
        &self,
        resource: &Resource,
        before: &Value,
        after: &Value,
    ) -> Result<(), ClusterError> {
        let Some((kind, patch)) = change(before, before, after) else { return Ok(()) };
        let name = (before.namespace(), before.name());
        let cluster = self.home.cache.cluster();
        match cluster.patch(resource, name, "", kind, &patch, FIELD_MANAGER).await {
            Ok(written) => {
                self.home.cache.observe(written);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn delete_app(&self, resource: &Resource, namespace: &str, name: &str) -> Result<(), ClusterError> {
        let key = ResourceKey::new(names::GROUP, "Application", namespace, name);
        let uid = self.home.cache.get(&key).map(|app| app.uid().to_owned()).unwrap_or_default();
        let deleted = self
            .home
            .cache
            .cluster()
            .delete(resource, (namespace, name), Propagation::Background, &uid, false)
            .await;
        match deleted {
            // Another Application of that name took its place.
            Err(error) if error.is_conflict() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Writes the status, and takes the request for a refresh away.
    async fn show(&self, set: &Value, seen: &SetObservation, asked: bool) -> Result<(), ClusterError> {
        let resource = self.set_resource().await?;
        let name = (set.namespace(), set.name());
        let cluster = self.home.cache.cluster();
        let before = json!({"status": set.get("status").cloned().unwrap_or_else(|| json!({}))});
        let after = json!({"status": status::after(set, seen, self.home.now())});
        if let Some((kind, patch)) = change(&before, &before, &after) {
            let written = cluster.patch(&resource, name, "status", kind, &patch, FIELD_MANAGER).await;
            match written {
                Ok(written) => self.home.cache.observe(written),
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if asked {
            let patch = json!({"metadata": {"annotations": {names::APPLICATION_SET_REFRESH: null}}});
            let written = cluster.patch(&resource, name, "", PatchType::Merge, &patch, FIELD_MANAGER).await?;
            self.home.cache.observe(written);
        }
        Ok(())
    }

    async fn set_resource(&self) -> Result<Resource, ClusterError> {
        let kind = GroupVersionKind::from_api_version(names::API_VERSION, "ApplicationSet");
        self.home.cache.cluster().resource(&kind).await
    }

    /// A set whose Applications are deleted in order has to wait for them.
    async fn hold_for_order(&self, set: &Value) -> Result<(), ClusterError> {
        let wants = is_rolling(set)
            && set
                .str_at(&["spec", "strategy", "deletionOrder"])
                .is_some_and(|o| o.eq_ignore_ascii_case("reverse"));
        let mut finalizers = finalizers_of(set);
        if !wants || finalizers.iter().any(|held| held == names::RESOURCES_FINALIZER) {
            return Ok(());
        }
        finalizers.push(names::RESOURCES_FINALIZER.into());
        self.write_finalizers(set, &finalizers).await
    }

    async fn write_finalizers(&self, set: &Value, finalizers: &[String]) -> Result<(), ClusterError> {
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": set.resource_version()}});
        let resource = self.set_resource().await?;
        let name = (set.namespace(), set.name());
        let written = self
            .home
            .cache
            .cluster()
            .patch(&resource, name, "", PatchType::Merge, &patch, FIELD_MANAGER)
            .await?;
        self.home.cache.observe(written);
        Ok(())
    }

    /// What has to happen before a deleted set goes: its Applications are let go, or deleted in order. What
    /// it owns at the end is the garbage collector's.
    async fn finalize(&self, set: &Value) -> Next {
        let kept: Vec<String> =
            finalizers_of(set).into_iter().filter(|held| held != names::RESOURCES_FINALIZER).collect();
        // Whoever else holds the set: what has to be let go must be free before it goes.
        match self.part_from(set).await {
            Ok(true) if kept.len() == finalizers_of(set).len() => return Next::default(),
            Ok(true) => {}
            Ok(false) => return Next::default(),
            Err(error) => {
                tracing::warn!(set = set.name(), %error, "cannot delete the set's Applications");
                return Next::after(RETRY, self.home.now());
            }
        }
        match self.write_finalizers(set, &kept).await {
            Ok(()) => Next::default(),
            Err(error) if error.is_not_found() => Next::default(),
            Err(error) => {
                tracing::warn!(set = set.name(), %error, "cannot remove the finalizer; it is tried again");
                Next::after(RETRY, self.home.now())
            }
        }
    }

    /// Whether nothing of the set has to be waited for any more.
    async fn part_from(&self, set: &Value) -> Result<bool, ClusterError> {
        let owned: Vec<Value> = self.applications_for(set, &[]);
        let resource = application_resource(self.home.cache.cluster()).await?;
        if !Policy::from_set(set).is_some_and(Policy::deletes) {
            for app in &owned {
                let mut after = app.clone();
                after["metadata"]["ownerReferences"] = json!([]);
                self.update_app(&resource, app, &after).await?;
            }
            return Ok(true);
        }
        let Some(next) = removal_order(set, &owned) else { return Ok(true) };
        for app in next.iter().filter(|app| !app.is_terminating()) {
            self.delete_app(&resource, set.namespace(), app.name()).await?;
        }
        Ok(false)
    }
}

/// The namespace of the engine that a set was written for.
fn set_namespace<'a>(settings: &'a Settings, set: &'a Value) -> &'a str {
    match settings.destinations {
        Destinations::AllHere | Destinations::Apart => set.namespace(),
        Destinations::InCluster => &settings.namespace,
    }
}

/// The finalizers of an object.
pub(crate) fn finalizers_of(set: &Value) -> Vec<String> {
    let list = set.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The addresses of repositories that a spec names, in generators and templates alike.
pub(crate) fn repositories_of(spec: &Value, depth: usize) -> BTreeSet<&str> {
    const MAX_DEPTH: usize = 64;
    let below = |value| repositories_of(value, depth + 1);
    match spec {
        _ if depth > MAX_DEPTH => BTreeSet::new(),
        Value::Object(map) => {
            let own = map.get("repoURL").and_then(Value::as_str);
            map.values().flat_map(below).chain(own).collect()
        }
        Value::Array(list) => list.iter().flat_map(below).collect(),
        _ => BTreeSet::new(),
    }
}

fn reason_of(error: &GenerateError) -> &'static str {
    match error {
        GenerateError::Generator { .. } => "ApplicationGenerationFromParamsError",
        GenerateError::Template(_) => "RenderTemplateParamsError",
    }
}

/// The one fault that the status tells, with how many more there are.
fn fault_of(generated: &[Generated], plan: &Plan, refused: Option<SetError>) -> Option<SetError> {
    if let Some(held) = &plan.held {
        let message = format!(
            "{held}; approve it by setting the annotation {} to the present time",
            names::DELETION_APPROVED
        );
        return Some(SetError::new(HELD, message));
    }
    if refused.is_some() {
        return refused;
    }
    let mut faults: Vec<&String> =
        generated.iter().filter_map(|one| one.fault.as_ref()).chain(plan.faults.values()).collect();
    faults.sort();
    faults.dedup();
    let last = faults.last()?;
    let more = faults.len() - 1;
    let tail = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(SetError::new("ApplicationValidationError", format!("{last}{tail}")))
}

/// The shortest `requeueAfterSeconds` of any generator.
fn requeue_seconds(value: &Value, depth: usize) -> Option<u64> {
    const MAX_DEPTH: usize = 16;
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Array(list) => list.iter().filter_map(|item| requeue_seconds(item, depth + 1)).min(),
        Value::Object(map) => {
            let own = map.get("requeueAfterSeconds").and_then(Value::as_u64).filter(|seconds| *seconds > 0);
            let below = map.values().filter_map(|child| requeue_seconds(child, depth + 1)).min();
            own.into_iter().chain(below).min()
        }
        _ => None,
    }
}
