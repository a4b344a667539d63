//! What Argo CD's documentation and users expect of a sync, case by case; the numbers are those of the
//! list of test vectors in the issue that introduced the crate.

use tiphys_model::{
    Backoff, HealthCode, OperationPhase, ResultCode, RetryStrategy, SyncOptions, SyncPhase, Time,
};
use tiphys_sync::{ApplyMethod, Claim, Failure, SyncSettings, Verb, WaitKind, retry_delay};
use tiphys_value::ObjectExt;

use crate::support::*;

fn config(name: &str, wave: &str) -> serde_json::Value {
    object("ConfigMap", name, &[(WAVE, wave)])
}

#[test]
fn v01_prune_waves_are_mirrored() {
    let mut sim = Sim::new(vec![]);
    for wave in ["0", "1", "2", "5"] {
        sim.existing(config(&format!("w{wave}"), wave), true);
    }
    sim.settle();
    assert_eq!(sim.order(), ["w5", "w2", "w1", "w0"]);
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
    assert_eq!(sim.result("w5").status, Some(ResultCode::Pruned));
}

#[test]
fn v02_prune_last_comes_after_all_waves() {
    let mut sim = Sim::new(vec![config("a", "3")]);
    sim.existing(config("old", "-7"), true);
    sim.options = SyncOptions::from_list(&["PruneLast=true".into()]);
    sim.settle();
    assert_eq!(sim.order(), ["a", "old"]);
}

#[test]
fn v03_namespaces_and_definitions_go_before_what_needs_them() {
    let mut namespace = object("Namespace", "shop", &[(WAVE, "5")]);
    namespace["metadata"]["labels"] = serde_json::json!({});
    let mut sim = Sim::new(vec![
        config("c", "0"),
        namespace,
        object("CustomResourceDefinition", "widgets.example.org", &[(WAVE, "3")]),
        object("Widget", "w", &[(WAVE, "1")]),
    ]);
    sim.settle();
    assert_eq!(sim.order(), ["shop", "c", "widgets.example.org", "w"]);
}

#[test]
fn a_namespace_that_the_sync_makes_gets_its_verdict() {
    let mut sim = Sim::new(vec![object("Deployment", "web", &[])]);
    sim.options = SyncOptions::from_list(&["CreateNamespace=true".into()]);
    sim.settle();
    assert_eq!(sim.order(), ["shop", "web"]);
    assert_eq!(sim.result("shop").hook_phase, Some(OperationPhase::Succeeded));
    assert_eq!(sim.message(), "successfully synced (all tasks run)");
}

#[test]
fn v04_a_single_wave_never_waits() {
    let mut sim = Sim::new(vec![object("Deployment", "web", &[])]);
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
    assert_eq!(sim.message(), "successfully synced (all tasks run)");
}

#[test]
fn v05_a_later_wave_waits_for_health() {
    let targets = vec![object("Deployment", "web", &[]), config("c", "1")];
    let mut sim = Sim::new(targets.clone());
    sim.settings = SyncSettings::compat();
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Running);
    assert_eq!(sim.message(), "waiting for healthy state of apps/Deployment/web");
    sim.now = tiphys_model::time::after(sim.now, std::time::Duration::from_secs(86_400));
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Running, "Argo CD waits without end");
    sim.health.insert("web".into(), HealthCode::Degraded);
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed);
    assert!(!sim.order().contains(&"c"));

    let mut ours = Sim::new(targets);
    ours.health.insert("web".into(), HealthCode::Progressing);
    assert!(ours.run(), "ours ends");
    assert_eq!(ours.state.shown.phase, OperationPhase::Failed);
    assert!(
        ours.message().contains("gave up waiting for healthy state of apps/Deployment/web"),
        "{}",
        ours.message()
    );
}

#[test]
fn v06_a_failed_pre_sync_hook_stops_the_sync() {
    for (policy, stays) in [("HookSucceeded", true), ("HookFailed", false)] {
        let mut sim = Sim::new(vec![
            object("Job", "migrate", &[(HOOK, "PreSync"), (POLICY, policy)]),
            object("ConfigMap", "c", &[]),
            object("Job", "alarm", &[(HOOK, "SyncFail")]),
        ]);
        sim.health.insert("migrate".into(), HealthCode::Degraded);
        sim.settle();
        assert_eq!(sim.state.shown.phase, OperationPhase::Failed);
        assert!(!sim.order().contains(&"c"));
        assert!(sim.order().contains(&"alarm"));
        let there = sim.live.values().any(|live| live.object.name() == "migrate");
        assert_eq!(there, stays, "{policy}");
    }
}

#[test]
fn v19_kinds_break_ties_and_names_after_them() {
    let kinds = ["Ingress", "Widget", "Job", "StatefulSet", "Deployment", "Service"];
    let mut targets: Vec<_> = kinds.iter().map(|kind| object(kind, &kind.to_lowercase(), &[])).collect();
    targets.push(object("Widget", "a", &[]));
    let mut sim = Sim::new(targets);
    sim.settle();
    assert_eq!(sim.order(), ["service", "deployment", "statefulset", "job", "ingress", "a", "widget"]);
}

#[test]
fn v24_replace_updates_namespaces_and_recreates_jobs() {
    let mut sim = Sim::new(vec![
        object("Namespace", "n", &[(OPTIONS, "Replace=true,Force=true")]),
        object("Job", "j", &[(OPTIONS, "Replace=true,Force=true")]),
    ]);
    sim.existing(object("Namespace", "n", &[]), false);
    sim.existing(object("Job", "j", &[]), false);
    let applied = sim.step();
    let methods: Vec<_> = applied
        .batch
        .iter()
        .flatten()
        .filter_map(|action| match &action.verb {
            Verb::Apply { method, .. } => Some((action.task.key.kind.as_str(), *method)),
            _ => None,
        })
        .collect();
    assert_eq!(methods, [("Namespace", ApplyMethod::Replace), ("Job", ApplyMethod::Recreate)]);
}

#[test]
fn v25_termination_deletes_a_running_hook_and_does_not_retry() {
    let mut sim = Sim::new(vec![object("Job", "migrate", &[(HOOK, "PreSync")])]);
    sim.operation().retry = RetryStrategy { limit: 5, ..RetryStrategy::default() };
    sim.health.insert("migrate".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.message(), "waiting for completion of hook batch/Job/migrate");
    sim.terminate = true;
    sim.settle();
    assert_eq!((sim.state.shown.phase, sim.message()), (OperationPhase::Failed, "Operation terminated"));
    assert_eq!(sim.state.extension.ending, Some(tiphys_sync::Ending::ByPerson));
    assert!(sim.live.is_empty(), "the hook is gone");
}

#[test]
fn hooks_run_in_their_phases_and_go_by_policy() {
    let mut sim = Sim::new(vec![
        object("Job", "post", &[(HOOK, "PostSync"), (POLICY, "HookSucceeded")]),
        object("ConfigMap", "c", &[]),
        object("Job", "pre", &[(HOOK, "PreSync")]),
        object("Job", "skip", &[(HOOK, "Skip")]),
    ]);
    sim.existing(object("Job", "pre", &[]), false);
    sim.settle();
    assert_eq!(
        sim.log,
        ["delete Job/pre", "apply Job/pre", "apply ConfigMap/c", "apply Job/post", "delete Job/post"]
    );
    assert_eq!(sim.message(), "successfully synced (no more tasks)");
    assert_eq!(sim.result("pre").sync_phase, Some(SyncPhase::PreSync));
}

#[test]
fn a_permanent_fault_is_found_before_anything_is_written() {
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[]), object("Deployment", "b", &[])]);
    sim.faults.insert("b".into(), invalid());
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed);
    assert!(sim.message().starts_with("one or more objects failed to apply (dry run)"), "{}", sim.message());
    assert!(sim.log.is_empty());
}

#[test]
fn a_blocked_object_holds_only_itself_and_resumes() {
    let mut sim =
        Sim::new(vec![object("ConfigMap", "a", &[]), object("Service", "b", &[]), config("later", "1")]);
    sim.faults.insert("b".into(), blocked_by_webhook());
    sim.settle();
    assert_eq!(sim.order(), ["a"]);
    assert_eq!(sim.state.waits()[0].kind, WaitKind::Blocked);
    assert!(sim.state.waits()[0].cause.contains("failed calling webhook"));
    assert_eq!(sim.state.shown.retry_count, 0);
    let since = sim.state.waits()[0].since;
    sim.now = tiphys_model::time::after(sim.now, std::time::Duration::from_secs(600));
    sim.settle();
    assert_eq!(sim.state.waits()[0].since, since, "of the first failure");
    sim.faults.clear();
    assert!(sim.run());
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
    assert_eq!(sim.order(), ["a", "b", "later"]);
}

#[test]
fn what_lacks_a_blocked_object_of_its_wave_does_not_fail_before_it_is_there() {
    let mut sim =
        Sim::new(vec![object("Deployment", "web", &[]), object("Widget", "w", &[]), config("c", "1")]);
    sim.faults.insert("w".into(), blocked_by_webhook());
    sim.health.insert("web".into(), HealthCode::Degraded);
    sim.settle();
    assert_eq!(sim.order(), ["web"]);
    assert_eq!(sim.state.shown.phase, OperationPhase::Running, "{}", sim.message());
    assert!(sim.state.waits().iter().any(|wait| wait.kind == WaitKind::Blocked));
    sim.faults.clear();
    sim.now = tiphys_model::time::after(sim.now, std::time::Duration::from_secs(600));
    sim.settle();
    assert_eq!(sim.order(), ["web", "w"]);
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed, "now the wave is there, and has a verdict");
}

#[test]
fn a_missing_kind_blocks_only_its_objects_unless_compat() {
    let targets = vec![object("ConfigMap", "a", &[]), object("Gadget", "g", &[])];
    let mut sim = Sim::new(targets.clone());
    sim.settle();
    assert_eq!(sim.order(), ["a"]);
    assert_eq!(sim.state.waits()[0].kind, WaitKind::Blocked);
    let mut compat = Sim::new(targets);
    compat.settings = SyncSettings::compat();
    compat.settle();
    assert!(
        compat.message().starts_with("one or more synchronization tasks are not valid"),
        "{}",
        compat.message()
    );
    assert!(compat.log.is_empty());
}

#[test]
fn a_newer_revision_supersedes_an_operation_that_only_waits() {
    let mut sim = Sim::new(vec![object("Deployment", "web", &[]), config("c", "1")]);
    sim.operation().initiated_by.automated = true;
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    sim.newer = Some("fedcba".into());
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed);
    assert!(sim.message().starts_with("superseded by revision fedcba"), "{}", sim.message());
}

#[test]
fn an_application_never_waits_for_itself() {
    let own = object("Deployment", "root", &[]);
    let mut sim = Sim::new(vec![own.clone(), config("c", "1")]);
    sim.own_key = Some(own.resource_key());
    sim.health.insert("root".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
}

#[test]
fn a_deletion_that_is_held_names_its_finalizers() {
    let mut sim = Sim::new(vec![config("c", "3")]);
    sim.existing(config("old", "0"), true);
    sim.sticky.insert("old".into());
    sim.settle();
    assert_eq!(sim.message(), "waiting for deletion of /ConfigMap/old");
    assert_eq!(sim.state.waits()[0].cause, "held by finalizers example.org/keep");
    assert!(sim.run(), "and does not wait for ever");
}

#[test]
fn prune_options_protect() {
    let mut sim = Sim::new(vec![config("c", "0")]);
    sim.existing(object("ConfigMap", "kept", &[(OPTIONS, "Prune=false")]), true);
    sim.existing(object("Secret", "used", &[]), true);
    sim.protected.insert(object("Secret", "used", &[]).resource_key(), "mounted by Deployment web".into());
    sim.settle();
    assert_eq!(sim.order(), ["c"]);
    assert_eq!(sim.result("kept").message, "ignored (no prune)");
    assert_eq!(sim.result("used").message, "ignored (protected: mounted by Deployment web)");
}

#[test]
fn as_argo_cd_has_it_only_what_the_server_applies_is_tried_by_it() {
    let off = object("ConfigMap", "off", &[(OPTIONS, "ServerSideApply=false")]);
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[]), off]);
    sim.settings.compat = true;
    let tried = |sim: &mut Sim| {
        let batch = sim.step().batch;
        let all = batch.iter().flatten().filter(|action| action.is_dry_run());
        all.map(|action| action.task.key.name.clone()).collect::<Vec<_>>()
    };
    sim.options = SyncOptions::from_list(&["ServerSideApply=true".into()]);
    assert_eq!(tried(&mut sim), ["a"], "one of them opts out");
}

#[test]
fn prune_confirmation_waits_for_the_annotation() {
    let mut sim = Sim::new(vec![]);
    sim.existing(object("ConfigMap", "a", &[(OPTIONS, "Prune=confirm")]), true);
    sim.settle();
    assert_eq!(sim.state.waits()[0].kind, WaitKind::PruneConfirmation);
    assert!(sim.log.is_empty());
    sim.approved = Some(Time::from(sim.now));
    sim.settle();
    assert_eq!(sim.order(), ["a"]);
}

#[test]
fn retries_follow_their_back_off_and_end() {
    let transient =
        || Failure { code: Some(500), reason: String::new(), message: "busy".into(), ..Failure::default() };
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[])]);
    sim.operation().retry = RetryStrategy { limit: 2, ..RetryStrategy::default() };
    sim.faults.insert("a".into(), transient());
    assert!(sim.run());
    assert_eq!((sim.state.shown.phase, sim.state.shown.retry_count), (OperationPhase::Failed, 2));
    let delays: Vec<_> = (0..7).map(|n| retry_delay(&RetryStrategy::default(), n).as_secs()).collect();
    assert_eq!(delays, [5, 10, 20, 40, 80, 160, 180]);
}

#[test]
fn a_back_off_of_less_than_a_second_ends() {
    let busy =
        Failure { code: Some(500), reason: String::new(), message: "busy".into(), ..Failure::default() };
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[])]);
    let backoff = Backoff { duration: "100ms".into(), factor: Some(1), ..Backoff::default() };
    sim.operation().retry = RetryStrategy { limit: 2, backoff: Some(backoff), ..RetryStrategy::default() };
    sim.faults.insert("a".into(), busy);
    assert!(sim.run());
    assert_eq!((sim.state.shown.phase, sim.state.shown.retry_count), (OperationPhase::Failed, 2));
}

#[test]
fn a_back_off_that_cannot_be_read_is_told_of_and_ends_the_operation_if_compat() {
    for (compat, retries, phase) in [(false, 1, OperationPhase::Failed), (true, 0, OperationPhase::Error)] {
        let busy = Failure { code: Some(500), message: "busy".into(), ..Failure::default() };
        let mut sim = Sim::new(vec![object("ConfigMap", "a", &[])]);
        sim.settings.compat = compat;
        let backoff = Backoff { duration: "soon".into(), ..Backoff::default() };
        sim.operation().retry =
            RetryStrategy { limit: 1, backoff: Some(backoff), ..RetryStrategy::default() };
        sim.faults.insert("a".into(), busy);
        let mut is_told = false;
        while !sim.state.is_completed() {
            let result = sim.step();
            is_told |= sim.state.shown.message.contains("soon")
                || sim.state.waits().iter().any(|wait| wait.cause.contains("soon"));
            sim.now = result.requeue_at.filter(|_| result.batch.is_empty()).unwrap_or(sim.now);
        }
        assert!(is_told);
        assert_eq!((sim.state.shown.phase, sim.state.shown.retry_count), (phase, retries));
    }
}

#[test]
fn what_the_api_server_refuses_for_good_is_not_repeated_unless_compat() {
    for (compat, retries) in [(false, 0), (true, 2)] {
        let mut sim = Sim::new(vec![object("ConfigMap", "a", &[])]);
        sim.settings.compat = compat;
        sim.operation().retry = RetryStrategy { limit: 2, ..RetryStrategy::default() };
        sim.faults.insert("a".into(), invalid());
        assert!(sim.run());
        assert_eq!((sim.state.shown.phase, sim.state.shown.retry_count), (OperationPhase::Failed, retries));
    }
}

#[test]
fn what_the_authorizer_refuses_is_tried_again_and_counts_as_a_failed_attempt() {
    let text =
        "configmaps \"a\" is forbidden: User \"u\" cannot patch resource \"configmaps\" in API group \"\"";
    let refused =
        Failure { code: Some(403), reason: "Forbidden".into(), message: text.into(), ..Failure::default() };
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[]), object("ConfigMap", "b", &[])]);
    sim.operation().retry = RetryStrategy { limit: 2, ..RetryStrategy::default() };
    sim.faults.insert("a".into(), refused.clone());
    sim.settle();
    // The dry run says nothing of it: the rule may come with an earlier object of this very operation.
    assert_eq!(sim.order(), ["b"]);
    assert_eq!(sim.state.waits()[0].kind, WaitKind::Retry);
    assert_eq!(sim.state.waits()[0].cause, text);
    assert!(sim.run());
    assert_eq!((sim.state.shown.phase, sim.state.shown.retry_count), (OperationPhase::Failed, 2));
    assert_eq!(sim.state.extension.ending, None, "automated sync tries it again later");
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[])]);
    sim.faults.insert("a".into(), refused);
    sim.settle();
    sim.faults.clear();
    assert!(sim.run());
    assert_eq!((sim.state.shown.phase, sim.state.shown.retry_count), (OperationPhase::Succeeded, 0));
}

#[test]
fn an_api_server_that_does_not_answer_uses_up_no_attempt() {
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[])]);
    sim.faults.insert(
        "a".into(),
        Failure { code: Some(503), reason: String::new(), message: "busy".into(), ..Failure::default() },
    );
    let start = sim.now;
    while tiphys_model::time::elapsed(start, sim.now) < std::time::Duration::from_secs(3600) {
        match sim.step() {
            result if result.batch.is_empty() => sim.now = result.requeue_at.expect("looked at again"),
            _ => {}
        }
        assert_eq!(sim.state.shown.phase, OperationPhase::Running);
    }
    sim.faults.clear();
    assert!(sim.run());
    assert_eq!((sim.state.shown.phase, sim.state.shown.retry_count), (OperationPhase::Succeeded, 0));
}

#[test]
fn what_another_tool_owns_is_left_alone_and_the_rest_is_synced() {
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[(WAVE, "1")]), object("Deployment", "b", &[])]);
    let key = object("Deployment", "b", &[]).resource_key();
    sim.existing(object("Deployment", "b", &[]), false);
    sim.health.insert("b".into(), HealthCode::Degraded);
    sim.claims.insert(key.clone(), Claim::Refused("Helm release n/r".into()));
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
    assert!(sim.message().ends_with("; left alone: Deployment/b of Helm release n/r"), "{}", sim.message());
    assert_eq!(sim.order(), ["a"]);
    let left = sim.result("b");
    assert_eq!(left.status, None, "nothing was done with it");
    assert!(left.message.contains("it belongs to Helm release n/r"), "{}", left.message);
    assert_eq!(sim.state.extension.left_alone, std::slice::from_ref(&key));
    let mut sim = Sim::new(vec![object("ConfigMap", "b", &[])]);
    sim.claims.insert(key, Claim::Shared);
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
}

#[test]
fn selective_sync_leaves_hooks_and_others_alone() {
    let mut sim = Sim::new(vec![
        object("ConfigMap", "a", &[]),
        object("ConfigMap", "b", &[]),
        object("Job", "pre", &[(HOOK, "PreSync")]),
    ]);
    sim.existing(object("ConfigMap", "old", &[]), true);
    let wanted = tiphys_model::SyncOperationResource {
        kind: "ConfigMap".into(),
        name: "b".into(),
        ..Default::default()
    };
    sim.operation().sync.get_or_insert_default().resources = vec![wanted];
    sim.settle();
    assert_eq!(sim.order(), ["b"]);
}

#[test]
fn shared_objects_are_left_alone_unless_an_option_says_otherwise() {
    let targets = vec![object("ConfigMap", "a", &[]), object("ConfigMap", "b", &[])];
    let mut sim = Sim::new(targets.clone());
    sim.shared.insert(object("ConfigMap", "a", &[]).resource_key(), "other".into());
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
    assert!(sim.message().ends_with("; left alone: ConfigMap/a of Application other"), "{}", sim.message());
    assert_eq!(sim.order(), ["b"]);
    let mut sim = Sim::new(targets);
    sim.shared.insert(object("ConfigMap", "a", &[]).resource_key(), "other".into());
    sim.options = SyncOptions::from_list(&["FailOnSharedResource=true".into()]);
    sim.settle();
    assert!(sim.message().starts_with("Shared resource found"), "{}", sim.message());
    assert!(sim.log.is_empty());
    let mut sim = Sim::new(vec![object("ConfigMap", "a", &[])]);
    sim.shared.insert(object("ConfigMap", "a", &[]).resource_key(), "other".into());
    sim.options = SyncOptions::from_list(&["FailOnSharedResource=false".into()]);
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
}
