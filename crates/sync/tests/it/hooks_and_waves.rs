//! Hooks, waves and the ends of operations where a differential run beside Argo CD's own planner found us
//! different.

use tiphys_model::{HealthCode, OperationPhase, Propagation, ResultCode, SyncOptions};
use tiphys_sync::{Failure, SyncSettings, Verb};
use tiphys_value::ObjectExt;

use crate::support::*;

fn hook(kind: &str, name: &str, phases: &str, policy: &str) -> serde_json::Value {
    object(kind, name, &[(HOOK, phases), (POLICY, policy)])
}

fn config(name: &str) -> serde_json::Value {
    object("ConfigMap", name, &[])
}

#[test]
fn a_hook_whose_type_nobody_knows_never_runs() {
    let mut sim = Sim::new(vec![hook("Job", "misspelt", "Presync", ""), config("c")]);
    sim.existing(hook("Job", "left", "Presync", ""), true);
    sim.settle();
    assert_eq!(sim.order(), ["c"]);
}

#[test]
fn nothing_comes_before_the_destination_namespace_and_nothing_after_its_failure() {
    let namespace = object("Namespace", "shop", &[(WAVE, "7")]);
    let mut sim = Sim::new(vec![namespace, hook("Job", "early", "PreSync", ""), config("c")]);
    sim.faults.insert("shop".into(), invalid());
    sim.settle();
    assert!(sim.log.is_empty(), "{:?}", sim.log);
    let why = "the namespace failed to apply, reason: spec.selector: field is immutable. What cannot be updated can be";
    assert!(sim.message().starts_with(why), "{}", sim.message());
}

#[test]
fn a_wave_waits_until_the_hooks_it_replaces_are_gone() {
    let mut sim = Sim::new(vec![hook("Job", "again", "Sync", ""), config("c")]);
    sim.existing(hook("Job", "again", "Sync", ""), false);
    sim.sticky.insert("again".into());
    sim.settle();
    assert_eq!(sim.log, ["delete Job/again"]);
    assert!(sim.message().starts_with("waiting for deletion of hook batch/Job/again"), "{}", sim.message());
}

#[test]
fn the_policy_of_the_sources_counts_not_that_of_the_live_hook() {
    let mut sim = Sim::new(vec![hook("Job", "again", "Sync", "HookFailed")]);
    sim.existing(hook("Job", "again", "Sync", "BeforeHookCreation"), false);
    sim.settle();
    assert_eq!(sim.log, ["apply Job/again"]);
}

#[test]
fn hooks_are_deleted_as_the_operation_propagates() {
    let mut sim = Sim::new(vec![hook("Job", "once", "Sync", "HookSucceeded")]);
    sim.options = SyncOptions::from_list(&["PrunePropagationPolicy=background".into()]);
    let mut found = Vec::new();
    for _ in 0..10 {
        let step = sim.step();
        found.extend(step.batch.into_iter().flatten().filter_map(|action| match action.verb {
            Verb::Delete { propagation, .. } => Some(propagation),
            _ => None,
        }));
    }
    assert_eq!(found, [Propagation::Background]);
}

#[test]
fn a_dry_run_tells_of_every_object_what_would_become_of_it() {
    let mut sim = Sim::new(vec![config("new"), config("there"), hook("Job", "late", "PostSync", "")]);
    sim.existing(config("there"), false);
    sim.existing(config("old"), true);
    sim.existing(object("ConfigMap", "kept", &[(OPTIONS, "Prune=false")]), true);
    sim.operation().sync.as_mut().expect("a sync").dry_run = true;
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
    assert!(sim.log.is_empty(), "{:?}", sim.log);
    for (name, code) in [
        ("new", "Synced"),
        ("there", "Synced"),
        ("late", "Synced"),
        ("old", "Pruned"),
        ("kept", "PruneSkipped"),
    ] {
        let result = sim.result(name);
        assert_eq!(result.status.map(|code| format!("{code:?}")).as_deref(), Some(code), "{name}");
        assert_eq!(result.hook_phase, Some(OperationPhase::Succeeded), "{name}");
    }
    assert_eq!(sim.result("kept").message, "ignored (no prune)");
}

#[test]
fn a_hook_that_completed_before_the_termination_keeps_its_verdict() {
    let mut sim = Sim::new(vec![hook("Job", "done", "PreSync", "HookSucceeded"), config("c")]);
    sim.health.insert("done".into(), HealthCode::Progressing);
    sim.settle();
    sim.health.insert("done".into(), HealthCode::Healthy);
    sim.terminate = true;
    sim.settle();
    assert_eq!(sim.message(), "Operation terminated");
    assert_eq!(sim.result("done").hook_phase, Some(OperationPhase::Succeeded));
    assert_eq!(sim.log, ["apply Job/done"]);
}

#[test]
fn what_failed_and_what_its_hooks_made_of_it_are_told_apart() {
    let targets = vec![config("c"), hook("Job", "mend", "SyncFail", "")];
    let mut sim = Sim::new(targets);
    sim.faults.insert("c".into(), blocked_for_good("c is refused"));
    sim.faults.insert("mend".into(), blocked_for_good("mend is refused"));
    sim.settings = SyncSettings::compat();
    sim.settle();
    assert_eq!(
        sim.message(),
        "one or more synchronization tasks completed unsuccessfully, reason: c is refused\n\
         one or more SyncFail hooks failed, reason: mend is refused"
    );
}

fn blocked_for_good(message: &str) -> Failure {
    Failure { message: message.into(), ..invalid() }
}

#[test]
fn a_hook_that_something_holds_is_deleted_once_while_the_fail_hooks_run() {
    let held = hook("Job", "held", "PreSync", "HookFailed");
    let mut sim = Sim::new(vec![held, hook("Job", "mend", "SyncFail", ""), config("c")]);
    sim.sticky.insert("held".into());
    sim.health.insert("held".into(), HealthCode::Degraded);
    sim.health.insert("mend".into(), HealthCode::Progressing);
    sim.settle();
    sim.settle();
    assert_eq!(sim.log, ["apply Job/held", "delete Job/held", "apply Job/mend"]);
    assert_eq!(sim.state.shown.phase, OperationPhase::Running);
}

#[test]
fn a_prune_that_fails_leaves_the_rest_of_its_wave() {
    let mut sim = Sim::new(vec![config("c")]);
    sim.existing(config("old"), true);
    sim.faults.insert("old".into(), invalid());
    sim.settings = SyncSettings::compat();
    sim.settle();
    assert!(sim.log.is_empty(), "{:?}", sim.log);
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed);
}

#[test]
fn what_moves_to_a_namespace_that_is_not_there_stays_where_it_is() {
    let moved = |compat: bool| {
        let mut new = config("web");
        new["metadata"]["namespace"] = "new".into();
        let mut sim = Sim::new(vec![new]);
        sim.existing(config("web"), true);
        sim.existing(config("unused"), true);
        let absent = Failure {
            code: Some(404),
            reason: "NotFound".into(),
            message: "namespaces \"new\" not found".into(),
            outdated: false,
        };
        sim.faults_in.insert("new".into(), absent);
        if compat {
            sim.settings = SyncSettings::compat();
        }
        sim.settle();
        sim
    };
    let mut sim = moved(false);
    assert_eq!(sim.log, ["delete ConfigMap/unused"], "what has no successor goes");
    assert!(sim.message().starts_with("blocked: /ConfigMap/web"), "{}", sim.message());
    sim.faults_in.clear();
    assert!(sim.run());
    assert_eq!(sim.log[1..], ["apply ConfigMap/web", "delete ConfigMap/web"]);
    assert!(moved(true).log.contains(&"delete ConfigMap/web".to_owned()), "as Argo CD has it");
}

#[test]
fn what_is_pruned_last_has_its_part_in_the_mirrored_waves() {
    let mut sim = Sim::new(vec![config("c")]);
    let at = |name: &str, wave: &str, options: &str| {
        object("ConfigMap", name, &[(WAVE, wave), (OPTIONS, options)])
    };
    sim.existing(at("low", "-2", ""), true);
    sim.existing(at("mid", "0", ""), true);
    sim.existing(at("last", "2", "PruneLast=true"), true);
    sim.settle();
    // Waves -2, 0, 2 in mirror: `low` goes in wave 2, after the ConfigMap of wave 0.
    assert_eq!(sim.order(), ["mid", "c", "low", "last"]);
}

#[test]
fn what_is_left_out_does_not_keep_the_last_wave_waiting() {
    let targets = vec![object("Deployment", "web", &[]), object("ConfigMap", "later", &[(WAVE, "3")])];
    let mut sim = Sim::new(targets.clone());
    sim.existing(targets[1].clone(), false);
    sim.options = SyncOptions::from_list(&["ApplyOutOfSyncOnly=true".into()]);
    sim.out_of_sync.insert(targets[0].resource_key());
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.message(), "successfully synced (all tasks run)");
    assert_eq!(sim.result("web").status, Some(ResultCode::Synced));
}

#[test]
fn a_namespace_that_does_not_differ_is_left_out_like_anything_else() {
    let mut sim = Sim::new(vec![object("Namespace", "other", &[]), config("c")]);
    sim.existing(object("Namespace", "other", &[]), false);
    sim.options = SyncOptions::from_list(&["ApplyOutOfSyncOnly=true".into()]);
    sim.out_of_sync.insert(config("c").resource_key());
    sim.settle();
    assert_eq!(sim.order(), ["c"]);
}

#[test]
fn a_running_object_keeps_what_was_done_with_it_until_there_is_a_verdict() {
    let mut sim = Sim::new(vec![object("Deployment", "web", &[]), object("ConfigMap", "c", &[(WAVE, "1")])]);
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.result("web").hook_phase, Some(OperationPhase::Running));
    assert_eq!(sim.result("web").message, "done");
}

#[test]
fn what_is_pruned_keeps_its_wave_when_other_prunes_are_done() {
    let web = object("Deployment", "web", &[]);
    let mut sim = Sim::new(vec![web]);
    sim.existing(object("ConfigMap", "first", &[(WAVE, "4")]), true);
    sim.existing(object("ConfigMap", "second", &[(WAVE, "0")]), true);
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    // Waves 0 and 4 in mirror: `second` goes in wave 4, once wave 0 is healthy.
    assert_eq!(sim.order(), ["first", "web"]);
    sim.health.clear();
    sim.settle();
    assert_eq!(sim.order(), ["first", "web", "second"]);
}

#[test]
fn a_hook_that_may_not_be_deleted_fails_and_says_so() {
    let mut sim = Sim::new(vec![hook("Job", "again", "Sync", "")]);
    sim.existing(hook("Job", "again", "Sync", ""), false);
    sim.faults
        .insert("again".into(), Failure { code: Some(403), message: "denied by policy".into(), ..invalid() });
    assert!(sim.run());
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed);
    assert_eq!(sim.result("again").message, "failed to delete resource: denied by policy");

    // What passes by itself is tried again, and told meanwhile.
    let mut sim = Sim::new(vec![hook("Job", "again", "Sync", "")]);
    sim.existing(hook("Job", "again", "Sync", ""), false);
    sim.faults.insert("again".into(), blocked_by_webhook());
    for _ in 0..4 {
        let _ = sim.step();
    }
    assert!(sim.state.waits().iter().any(|wait| wait.cause.contains("webhook")), "{:?}", sim.state.waits());
    sim.faults.clear();
    assert!(sim.run());
    assert_eq!(sim.log, ["delete Job/again", "apply Job/again"]);
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded);
}

#[test]
fn a_hook_without_any_name_gets_one() {
    let mut sim = Sim::new(vec![hook("Job", "", "PreSync,PostSync", "")]);
    sim.settle();
    assert_eq!(sim.order(), ["abcdef0-presync-1700000000", "abcdef0-postsync-1700000000"]);
}

#[test]
fn a_failure_without_a_message_is_told_by_its_health() {
    let mut sim = Sim::new(vec![object("Deployment", "web", &[]), object("ConfigMap", "c", &[(WAVE, "1")])]);
    sim.health.insert("web".into(), HealthCode::Degraded);
    sim.settle();
    let expected = "one or more synchronization tasks completed unsuccessfully, reason: Degraded";
    assert_eq!(sim.message(), expected);
}

#[test]
fn the_wave_of_the_destination_namespace_is_awaited_by_nothing() {
    let mut sim = Sim::new(vec![object("Namespace", "shop", &[(WAVE, "1")]), web_elsewhere()]);
    sim.health.insert("web".into(), HealthCode::Degraded);
    sim.settle();
    assert_eq!(sim.message(), "successfully synced (all tasks run)");
}

#[test]
fn a_namespace_that_the_sync_makes_is_no_wave_before_the_others() {
    let mut sim =
        Sim::new(vec![hook("Job", "once", "Sync", "HookSucceeded"), object("Deployment", "web", &[])]);
    sim.options = SyncOptions::from_list(&["CreateNamespace=true".into()]);
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.order(), ["shop", "web", "once", "once"], "{}", sim.message());
    assert_eq!(sim.state.shown.phase, OperationPhase::Succeeded, "as with a namespace that is there");
}

#[test]
fn hooks_for_a_failure_are_a_step_for_whose_sake_a_wave_is_awaited() {
    let targets = vec![
        hook("Job", "once", "Sync", ""),
        object("Deployment", "web", &[]),
        hook("Job", "alarm", "SyncFail", ""),
    ];
    let mut sim = Sim::new(targets);
    sim.health.insert("web".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.message(), "waiting for healthy state of apps/Deployment/web");
    sim.health.insert("web".into(), HealthCode::Degraded);
    sim.settle();
    assert_eq!(sim.order(), ["web", "once", "alarm"]);
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed);
}

fn web_elsewhere() -> serde_json::Value {
    let mut web = object("Deployment", "web", &[]);
    web["metadata"]["namespace"] = "other".into();
    web
}

#[test]
fn a_namespace_that_the_sources_declare_is_not_made_up_when_it_is_left_out() {
    let mut sim = Sim::new(vec![object("Namespace", "shop", &[]), config("c")]);
    sim.options = SyncOptions::from_list(&["CreateNamespace=true".into()]);
    let only = serde_json::json!([{"kind": "ConfigMap", "name": "c"}]);
    let sync = sim.operation().sync.as_mut().expect("a sync");
    sync.resources = serde_json::from_value(only).expect("well-formed");
    sim.settle();
    assert_eq!(sim.order(), ["c"]);
}

#[test]
fn as_argo_cd_has_it_a_failed_wave_is_awaited_and_so_is_the_approval_of_prunes_that_are_off() {
    let targets = ["bad", "slow"].map(|name| object("Deployment", name, &[]));
    let mut sim = Sim::new(targets.into_iter().chain([object("ConfigMap", "c", &[(WAVE, "1")])]).collect());
    sim.settings = SyncSettings::compat();
    sim.health.insert("bad".into(), HealthCode::Degraded);
    sim.health.insert("slow".into(), HealthCode::Progressing);
    sim.settle();
    assert_eq!(sim.message(), "waiting for healthy state of apps/Deployment/slow");
    sim.health.remove("slow");
    sim.settle();
    assert_eq!(sim.state.shown.phase, OperationPhase::Failed);

    let mut sim = Sim::new(vec![]);
    sim.settings = SyncSettings::compat();
    sim.operation().sync.as_mut().expect("a sync").prune = false;
    sim.existing(object("ConfigMap", "a", &[(OPTIONS, "Prune=confirm")]), true);
    sim.settle();
    assert_eq!(sim.message(), "waiting for pruning confirmation of /ConfigMap/a");
}
