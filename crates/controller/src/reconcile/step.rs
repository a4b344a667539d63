//! From an operation and a comparison to the next step of the planner.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_model::{
    Application, ConditionType, Operation, OperationPhase, SyncOptions, SyncStatusCode, Time, names,
};
use tiphys_sync::{SyncInput, SyncState, SyncStep, step, target_key};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::compare::Compared;
use crate::{
    AppKey,
    home::Home,
    live_state::Kinds,
    rendering::Rendering,
    safeguards::wait_cycles,
    status_writer::{application_kind, own_key},
};

/// Plans what is to be done next. `newest` is what the sources want now; `is_out_of_reach` says of which
/// Applications the sources cannot be had.
pub(super) fn plan(
    home: &Home,
    app: &Application,
    state: &SyncState,
    compared: &Compared,
    newest: Option<&Rendering>,
    is_out_of_reach: &dyn Fn(&AppKey) -> bool,
) -> SyncStep {
    let settings = &home.settings;
    let operation = &state.shown.operation;
    let options = options(app, operation);
    let faults: Vec<&str> = app
        .status
        .conditions
        .iter()
        .filter(|c| {
            // An operation on the last good state is not about what does not render now.
            let concerns = compared.rendering.targets.is_err()
                || compared.comparison.sync == SyncStatusCode::Unknown
                || settings.sync.compat;
            c.kind == ConditionType::InvalidSpecError
                || (c.kind == ConditionType::ComparisonError && concerns)
        })
        .map(|c| c.message.as_str())
        .collect();
    let newer = newest
        .filter(|known| known.targets.is_ok() && known.revisions != compared.rendering.revisions)
        .filter(|known| !known.has_the_targets_of(&compared.rendering));
    let policy = app.spec.sync_policy.as_ref();
    let approved = app.annotation(names::DELETION_APPROVED).and_then(Time::parse);
    let kinds = Kinds(compared.cluster.cache.cluster().discovery());
    let installation = home.installation();
    let namespace = &app.spec.destination.namespace;
    let (mut targets, protected) = effective(operation, compared, namespace, &kinds);
    if options.is_on("RespectIgnoreDifferences") {
        for target in &mut targets {
            if let Some(live) = compared.live.get(&target_key(target, namespace, &kinds)) {
                *target = Arc::new(installation.respect(app, target, &live.object));
            }
        }
    }
    // Only what is synced to the engine's own cluster is an Application that it knows.
    let own = compared.cluster.is_home.then(|| own_key(app));
    let children = targets.iter().filter(|target| target.gvk().group_kind() == application_kind());
    let children = children.map(|child| target_key(child, namespace, &kinds));
    let passes = |child: &ResourceKey| {
        let key = AppKey { namespace: child.namespace.clone(), name: child.name.clone() };
        settings.pass_out_of_reach && is_out_of_reach(&key)
    };
    let never_await = own.as_ref().map(|own| wait_cycles::never_awaited(&home.cache, own, children, passes));
    let mut never_await = never_await.unwrap_or_default();
    let claims = targets.iter().filter(|target| target.kind() == "PersistentVolumeClaim");
    let claims = claims.map(|claim| (target_key(claim, namespace, &kinds), &**claim));
    never_await.extend(wait_cycles::unbound_claims(&compared.cluster.cache, claims));
    let now = home.now();
    let input = SyncInput {
        own_key: own,
        destination_namespace: namespace,
        targets: &targets,
        live: &compared.live,
        prunable: &compared.comparison.prunable,
        protected: &protected,
        shared: &compared.comparison.shared,
        out_of_sync: &compared.comparison.out_of_sync,
        never_await: &never_await,
        claims: &compared.comparison.claims,
        operation,
        options: &options,
        revision: compared.rendering.revision(),
        blocking_error: faults.first().copied(),
        window_open: compared.policy.may_go_on(app, operation, state.shown.started_at.timestamp(), now),
        deletion_approved: approved,
        migration_manager: app.annotation(names::CLIENT_SIDE_APPLY_MIGRATION_MANAGER),
        permit: &|object, namespaced| compared.policy.permit(object, namespaced),
        kinds: &kinds,
        settings: &installation.sync,
        managed_namespace: policy.and_then(|policy| policy.managed_namespace_metadata.as_ref()),
        terminate: state.shown.phase == OperationPhase::Terminating,
        newer_revision: newer.map(|newer| newer.revision()),
        now,
    };
    step(&input, state)
}

/// The targets and the protected objects as an operation is to see them: an automated one leaves what is on
/// hold alone.
fn effective(
    operation: &Operation,
    compared: &Compared,
    namespace: &str,
    kinds: &Kinds,
) -> (Vec<Arc<Value>>, BTreeMap<ResourceKey, String>) {
    let mut targets = compared.comparison.targets.clone();
    let mut protected = compared.protected.clone();
    if operation.initiated_by.automated && !compared.paused.is_empty() {
        targets.retain(|target| !compared.paused.contains_key(&target_key(target, namespace, kinds)));
        let held = compared.paused.iter().map(|(key, until)| (key.clone(), format!("on hold until {until}")));
        protected.extend(held);
    }
    (targets, protected)
}

/// The options in force: the operation's if it has any, else the spec's.
fn options(app: &Application, operation: &Operation) -> SyncOptions {
    let own = operation.sync.as_ref().map(|sync| sync.sync_options.as_slice()).unwrap_or_default();
    if own.is_empty() { app.sync_options() } else { SyncOptions::from_list(own) }
}
