//! Comparisons and the decisions of automated sync.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tiphys_model::{
    Application, ConditionType, HealthCode, HealthStatus, SyncStatusCode, Timestamp, Tracking, TrackingMethod,
};
use tiphys_sync::{
    AutoSettings, AutoSync, CompareInput, Comparison, Inputs, LiveObject, auto_sync, compare, record_history,
};
use tiphys_value::ObjectExt;

use crate::support::{Kinds, object};

fn app(extra: Value) -> Application {
    let mut value = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
        "spec": {"source": {"repoURL": "r"}, "destination": {"namespace": "shop"}}});
    for (key, part) in extra.as_object().expect("object") {
        for (field, content) in part.as_object().expect("object") {
            value[key][field] = content.clone();
        }
    }
    Application::from_value(&value).expect("valid")
}

fn marked(mut value: Value, app: &str, tracking: &Tracking) -> Value {
    tracking.mark(&mut value, app, "shop");
    value
}

fn compared(
    app: &Application,
    targets: Vec<Value>,
    live: Vec<(Value, Option<HealthCode>)>,
    tracking: &Tracking,
) -> Comparison {
    compared_under(app, targets, live, tracking, &|_, _| Ok(()))
}

fn compared_under(
    app: &Application,
    targets: Vec<Value>,
    live: Vec<(Value, Option<HealthCode>)>,
    tracking: &Tracking,
    permit: &dyn Fn(&Value, bool) -> Result<(), String>,
) -> Comparison {
    let targets: Vec<_> = targets.into_iter().map(Arc::new).collect();
    let live: BTreeMap<_, _> = live
        .into_iter()
        .map(|(value, code)| {
            let health = code.map(|code| HealthStatus::new(code, ""));
            (value.resource_key(), LiveObject { object: Arc::new(value), health })
        })
        .collect();
    compare(&CompareInput {
        app,
        instance: "shop",
        tracking,
        own_key: None,
        targets: &targets,
        live: &live,
        kinds: &Kinds,
        differ: &|target, live| {
            let same = target.get("data") == live.get("data");
            if same { Vec::new() } else { vec!["data".parse().expect("path")] }
        },
        permit,
        excluded: &|_| false,
        has_generated: false,
    })
}

#[test]
fn v10_a_copied_mark_is_no_membership_unless_tracked_by_label() {
    let app = app(json!({}));
    for (method, prunable) in [(TrackingMethod::Annotation, 0), (TrackingMethod::Label, 1)] {
        let tracking = Tracking { method, ..Tracking::default() };
        let original = marked(object("Secret", "a", &[]), "shop", &tracking);
        let mut copy = original.clone();
        copy["metadata"]["name"] = "b".into();
        let result =
            compared(&app, vec![original.clone()], vec![(original, None), (copy.clone(), None)], &tracking);
        assert_eq!(result.prunable.len(), prunable, "{method:?}");
        copy["metadata"]["ownerReferences"] = json!([{"name": "x"}]);
        let owned = compared(&app, vec![], vec![(copy, None)], &tracking);
        assert!(owned.prunable.is_empty() && owned.resources.is_empty());
    }
}

fn hook(kind: &str, name: &str, extra: &[(&str, &str)]) -> Value {
    let annotations: Vec<_> =
        [("argocd.argoproj.io/hook", "PostSync")].iter().chain(extra).copied().collect();
    marked(object(kind, name, &annotations), "shop", &Tracking::default())
}

/// As Argo CD lists them: a hook that is there without a verdict or a health, as something that would be
/// pruned, in its manifest's wave; one that is to be skipped by name only; what left the sources without a
/// wave.
#[test]
fn hooks_and_what_is_skipped_are_listed_without_a_verdict() {
    let run = hook("Job", "run", &[("argocd.argoproj.io/sync-wave", "3")]);
    let left = hook(
        "Job",
        "left",
        &[("argocd.argoproj.io/sync-wave", "2"), ("argocd.argoproj.io/sync-options", "Prune=confirm")],
    );
    let skipped = marked(
        object("ConfigMap", "skipped", &[("argocd.argoproj.io/hook", "Skip")]),
        "shop",
        &Tracking::default(),
    );
    let extra = marked(
        object("ConfigMap", "x", &[("argocd.argoproj.io/sync-wave", "4")]),
        "shop",
        &Tracking::default(),
    );
    let degraded = Some(HealthCode::Degraded);
    let live = vec![(run.clone(), degraded), (left, degraded), (skipped.clone(), degraded), (extra, None)];
    for live in [live.clone(), live.into_iter().filter(|(object, _)| object.name() != "skipped").collect()] {
        let has_skipped = live.len() == 4;
        let result =
            compared(&app(json!({})), vec![run.clone(), skipped.clone()], live, &Tracking::default());
        let rows: Vec<_> = result
            .resources
            .iter()
            .map(|one| {
                let flags = (one.hook, one.requires_pruning, one.requires_deletion_confirmation);
                (one.name.as_str(), one.status, one.health.is_some(), flags, one.sync_wave)
            })
            .collect();
        let (yes, no) = (true, false);
        assert_eq!(
            rows,
            [
                ("skipped", None, no, (no, no, no), 0),
                ("x", Some(SyncStatusCode::OutOfSync), no, (no, yes, no), 0),
                ("left", None, no, (yes, yes, yes), 0),
                ("run", None, no, (yes, yes, no), 3),
            ],
            "{has_skipped}"
        );
        assert_eq!(result.health.unwrap().status, HealthCode::Healthy);
        assert_eq!(result.prunable.len(), 1);
    }
}

/// A project that no longer permits a kind: what is there counts as missing, since no sync can bring it
/// there.
#[test]
fn what_the_project_does_not_permit_is_out_of_sync() {
    let tracking = Tracking::default();
    let target = marked(object("ConfigMap", "c", &[]), "shop", &tracking);
    let extra = marked(object("ConfigMap", "extra", &[]), "shop", &tracking);
    let (targets, live) = (vec![target.clone()], vec![(target, None), (extra, None)]);
    let result =
        compared_under(&app(json!({})), targets, live, &tracking, &|_, _| Err("not permitted".into()));
    let shown: Vec<_> = result.resources.iter().map(|one| (one.name.as_str(), one.status)).collect();
    assert_eq!(shown, [("c", Some(SyncStatusCode::Unknown))]);
    assert_eq!(
        (result.sync, result.health.unwrap().status),
        (SyncStatusCode::OutOfSync, HealthCode::Missing)
    );
    assert!(result.prunable.is_empty());
}

#[test]
fn v15_shared_objects_are_reported() {
    let tracking = Tracking::default();
    let target = marked(object("ConfigMap", "c", &[]), "shop", &tracking);
    let theirs = marked(object("ConfigMap", "c", &[]), "other", &tracking);
    let result = compared(&app(json!({})), vec![target], vec![(theirs, None)], &tracking);
    let kinds: Vec<_> = result.conditions.iter().map(|condition| condition.kind).collect();
    assert_eq!(kinds, [ConditionType::SharedResourceWarning]);
    assert_eq!(result.conditions[0].message, "ConfigMap/c is part of applications shop and other");
    assert_eq!(result.shared.values().collect::<Vec<_>>(), ["other"]);
}

#[test]
fn v23_the_last_of_two_bodies_counts_and_one_warning_tells() {
    let tracking = Tracking::default();
    let body = |text: &str| {
        let mut object = marked(object("Service", "web", &[]), "shop", &tracking);
        object["data"] = text.into();
        object
    };
    let result =
        compared(&app(json!({})), vec![body("first"), body("last")], vec![(body("last"), None)], &tracking);
    let kinds: Vec<_> = result.conditions.iter().map(|condition| condition.kind).collect();
    assert_eq!(kinds, [ConditionType::RepeatedResourceWarning]);
    assert_eq!(result.targets.iter().map(|target| &target["data"]).collect::<Vec<_>>(), ["last"]);
    assert_eq!((result.sync, result.resources.len()), (SyncStatusCode::Synced, 1));
}

#[test]
fn metadata_of_a_managed_namespace_counts() {
    let tracking = Tracking::default();
    let managed = |options: &[&str]| {
        app(json!({"spec": {"syncPolicy": {"syncOptions": options, "automated": {},
            "managedNamespaceMetadata": {"labels": {"team": "a"}, "annotations": {"x": "y"}}}}}))
    };
    let namespace = |team: &str| {
        let mut object = object("Namespace", "shop", &[("x", "y")]);
        object["metadata"]["labels"] = json!({"team": team, "other": "stays"});
        vec![(object, None)]
    };
    let (on, off) = (managed(&["CreateNamespace=true"]), managed(&[]));
    assert_eq!(compared(&on, vec![], namespace("a"), &tracking).sync, SyncStatusCode::Synced);
    assert_eq!(compared(&off, vec![], namespace("b"), &tracking).sync, SyncStatusCode::Synced);
    let drifted = compared(&on, vec![], namespace("b"), &tracking);
    assert_eq!(drifted.sync, SyncStatusCode::OutOfSync);
    let paths: Vec<String> = drifted.namespace_differs.iter().map(ToString::to_string).collect();
    assert_eq!(paths, [".metadata.labels.team"]);
    assert_eq!(drifted.without(&Default::default()).sync, SyncStatusCode::OutOfSync);
    let decision = auto_sync(&on, &drifted, inputs(&["r".into()]), true, &AutoSettings::default(), now(0));
    assert!(matches!(decision, AutoSync::Start(_)), "{decision:?}");
}

#[test]
fn a_managed_namespace_that_bears_the_mark_is_no_extra() {
    let tracking = Tracking::default();
    let managed = app(json!({"spec": {"syncPolicy": {"syncOptions": ["CreateNamespace=true"],
        "managedNamespaceMetadata": {"labels": {"team": "a"}}}}}));
    let marked_by = |team: &str| {
        let mut namespace = marked(object("Namespace", "shop", &[]), "shop", &tracking);
        namespace["metadata"]["labels"] = json!({"team": team});
        vec![(namespace, None)]
    };
    for (team, status) in [("a", SyncStatusCode::Synced), ("b", SyncStatusCode::OutOfSync)] {
        let result = compared(&managed, vec![], marked_by(team), &tracking);
        let rows: Vec<_> = result
            .resources
            .iter()
            .map(|one| (one.name.as_str(), one.status, one.requires_pruning))
            .collect();
        assert_eq!(rows, [("shop", Some(status), false)]);
        assert_eq!(result.sync, status);
        assert!(result.prunable.is_empty());
    }
    let plain = compared(&app(json!({})), vec![], marked_by("a"), &tracking);
    assert_eq!(plain.prunable.len(), 1);
}

#[test]
fn what_lives_outside_of_namespaces_has_none() {
    let tracking = Tracking::default();
    let mut target = object("Namespace", "shop", &[]);
    target["metadata"]["namespace"] = "elsewhere".into();
    let result = compared(&app(json!({})), vec![target], vec![], &tracking);
    assert_eq!(result.targets[0].resource_key().namespace, "");
    assert_eq!(result.resources[0].namespace, "");
}

#[test]
fn images_are_those_of_the_cluster() {
    let tracking = Tracking::default();
    let web = |image: &str| {
        let mut object = marked(object("Deployment", "web", &[]), "shop", &tracking);
        object["spec"] = json!({"template": {"spec": {"containers": [{"image": image}]}}});
        object
    };
    let images = |live| compared(&app(json!({})), vec![web("web:2")], live, &tracking).summary.images;
    assert_eq!(images(vec![(web("web:1"), None)]), ["web:1"]);
    assert!(images(vec![]).is_empty());
}

#[test]
fn missing_objects_are_out_of_sync_and_missing() {
    let tracking = Tracking::default();
    let result = compared(&app(json!({})), vec![object("Deployment", "web", &[])], vec![], &tracking);
    assert_eq!(result.sync, SyncStatusCode::OutOfSync);
    assert_eq!(result.health.map(|health| health.status), Some(HealthCode::Missing));
}

#[test]
fn ignored_extras_do_not_count() {
    let tracking = Tracking::default();
    let extra = marked(
        object("ConfigMap", "x", &[("argocd.argoproj.io/compare-options", "IgnoreExtraneous")]),
        "shop",
        &tracking,
    );
    let result = compared(&app(json!({})), vec![], vec![(extra, None)], &tracking);
    assert_eq!(result.sync, SyncStatusCode::Synced);
    assert_eq!(result.prunable.len(), 1);
}

fn now(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("valid")
}

fn out_of_sync(extras: usize, kept: usize) -> Comparison {
    let tracking = Tracking::default();
    let names: Vec<_> = (0..extras + kept).map(|n| format!("c{n}")).collect();
    let live: Vec<_> =
        names.iter().map(|name| (marked(object("ConfigMap", name, &[]), "shop", &tracking), None)).collect();
    let targets = live[extras..].iter().map(|(value, _)| value.clone()).collect();
    compared(&app(json!({})), targets, live, &tracking)
}

fn inputs(revisions: &[String]) -> Inputs<'_> {
    Inputs { revisions, identity: "" }
}

fn decide(app: &Application, comparison: &Comparison, at: i64) -> AutoSync {
    auto_sync(app, comparison, inputs(&["v1".into()]), true, &AutoSettings::default(), now(at))
}

fn after_attempt(phase: &str, count: i64, heal: bool) -> Application {
    app(json!({
        "spec": {"syncPolicy": {"automated": {"selfHeal": heal}}},
        "status": {"operationState": {
            "phase": phase, "startedAt": now(0).to_string(), "finishedAt": now(0).to_string(), "message": "broken",
            "operation": {"sync": {"autoHealAttemptsCount": count}},
            "syncResult": {"revision": "v1", "source": {"repoURL": "r"}, "resources": []},
        }},
    }))
}

fn missing_one() -> Comparison {
    compared(&app(json!({})), vec![object("ConfigMap", "c", &[])], vec![], &Tracking::default())
}

#[test]
fn v07_self_heal_waits_longer_each_time() {
    let mut delays = Vec::new();
    for count in 1..8 {
        match decide(&after_attempt("Succeeded", count, true), &missing_one(), 0) {
            AutoSync::Later(at, _) => delays.push(at.as_second() - now(0).as_second()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(delays, [2, 6, 18, 54, 162, 300, 300]);
    let AutoSync::Start(operation) = decide(&after_attempt("Succeeded", 0, true), &missing_one(), 0) else {
        panic!("the first one is due at once")
    };
    let sync = operation.sync.expect("sync");
    assert_eq!((sync.resources[0].name.as_str(), sync.auto_heal_attempts_count), ("c", 1));
    let off = decide(&after_attempt("Succeeded", 0, false), &missing_one(), 99);
    assert!(matches!(&off, AutoSync::Left(why) if why.contains("does not heal itself")), "{off:?}");
}

#[test]
fn a_pause_holds_until_its_time_and_until_it_has_one() {
    let paused = |until: &str| {
        app(json!({"metadata": {"name": "shop", "annotations": {"tiphys.dev/paused-until": until}},
            "spec": {"syncPolicy": {"automated": {}}}}))
    };
    let held = decide(&paused("2023-11-14T22:13:30Z"), &missing_one(), 9);
    assert!(matches!(&held, AutoSync::Held(until, _) if *until == now(10)), "{held:?}");
    assert!(matches!(decide(&paused("2023-11-14T22:13:30Z"), &missing_one(), 10), AutoSync::Start(_)));
    let refused = decide(&paused("next week"), &missing_one(), 0);
    assert!(
        matches!(&refused, AutoSync::Refused(c) if c.message.contains(r#""next week" is none"#)),
        "{refused:?}"
    );
}

#[test]
fn v08_deleting_everything_needs_allow_empty() {
    let automated = |extra: Value| app(json!({"spec": {"syncPolicy": {"automated": extra}}}));
    let refused = decide(&automated(json!({"prune": true})), &out_of_sync(2, 0), 0);
    assert!(
        matches!(&refused, AutoSync::Refused(c) if c.message.contains("wipe out all resources")),
        "{refused:?}"
    );
    let allowed = decide(&automated(json!({"prune": true, "allowEmpty": true})), &out_of_sync(2, 0), 0);
    assert!(matches!(allowed, AutoSync::Start(_)));
    let no_prune = decide(&automated(json!({})), &out_of_sync(2, 0), 0);
    assert!(matches!(&no_prune, AutoSync::Left(why) if why.contains("does not prune")), "{no_prune:?}");
    let many = decide(&automated(json!({"prune": true})), &out_of_sync(30, 5), 0);
    assert!(matches!(&many, AutoSync::Refused(c) if c.message.contains("30 of 35")), "{many:?}");
}

/// The rest of a commit that deletes much is synced; its prunes wait for their approval, also without
/// self-heal.
#[test]
fn many_prunes_are_held_and_the_rest_is_synced() {
    let mut comparison = out_of_sync(30, 5);
    let at = comparison.resources.iter().position(|one| !one.requires_pruning).expect("five are kept");
    comparison.resources[at].status = Some(SyncStatusCode::OutOfSync);
    let changed = comparison.resources[at].name.clone();
    for heals in [false, true] {
        let policy = json!({"prune": true, "selfHeal": heals});
        let mut app = app(json!({"spec": {"syncPolicy": {"automated": policy}}}));
        let AutoSync::Start(operation) = decide(&app, &comparison, 0) else { panic!("{heals}") };
        let sync = operation.sync.clone().expect("sync");
        assert!(!sync.prune && sync.resources.is_empty(), "the whole, without prunes");
        let mut done = after_attempt("Succeeded", 0, heals).status.operation_state.expect("there");
        done.operation = *operation;
        app.status.operation_state = Some(done);
        let mut rest = comparison.clone();
        rest.resources[at].status = Some(SyncStatusCode::Synced);
        let held = decide(&app, &rest, 600);
        assert!(matches!(&held, AutoSync::Refused(c) if c.message.contains("30 of 35")), "{held:?}");
        let approved = tiphys_model::Time::from(now(700)).to_string();
        app.metadata.annotations.insert("argocd.argoproj.io/deletion-approved".into(), approved);
        let AutoSync::Start(operation) = decide(&app, &rest, 800) else { panic!("{heals}") };
        let sync = operation.sync.expect("sync");
        assert!(sync.prune && sync.resources.len() == 30, "{} of them", sync.resources.len());
        assert!(sync.resources.iter().all(|one| one.name != changed));
    }
}

#[test]
fn v09_a_failed_revision_is_tried_again_later_and_never_with_compat() {
    let failed = after_attempt("Failed", 0, true);
    let compat = AutoSettings { compat: true, ..AutoSettings::default() };
    let refused = auto_sync(&failed, &missing_one(), inputs(&["v1".into()]), true, &compat, now(99_999));
    assert!(
        matches!(&refused, AutoSync::Refused(c) if c.message.starts_with("Failed last sync attempt to [v1]: "))
    );
    assert!(matches!(decide(&failed, &missing_one(), 10), AutoSync::Later(..)));
    assert!(matches!(decide(&failed, &missing_one(), 60), AutoSync::Start(_)));
    let newer = auto_sync(&failed, &missing_one(), inputs(&["v2".into()]), true, &compat, now(0));
    assert!(matches!(newer, AutoSync::Start(_)), "a new commit starts at once");
}

/// What a person ended stays ended; what a sync timeout ended is tried again. Argo CD has only words for it.
#[test]
fn a_termination_is_told_from_a_timeout() {
    let ended = |message: &str, ours: Value| {
        let mut app = after_attempt("Failed", 0, true);
        let state = app.status.operation_state.as_mut().expect("there");
        state.message = message.into();
        if !ours.is_null() {
            state.other.insert("tiphys".into(), ours);
        }
        decide(&app, &missing_one(), 3600)
    };
    let stays = |decision: &AutoSync| matches!(decision, AutoSync::Refused(_));
    let is_repeated = |decision: &AutoSync| matches!(decision, AutoSync::Start(_));
    let terminated = "Operation terminated";
    let timeout = "Operation terminated, triggered by controller sync timeout";
    assert!(stays(&ended(terminated, json!({"ending": "ByPerson"}))));
    assert!(is_repeated(&ended(timeout, json!({"ending": "Timeout"}))));
    assert!(stays(&ended(terminated, Value::Null)), "as Argo CD left it");
    assert!(is_repeated(&ended(timeout, Value::Null)), "as Argo CD left it");
    assert!(is_repeated(&ended(terminated, json!({"dryRunDone": true}))), "our own words decide nothing");
}

/// A commit that leaves alone what was read is no other attempt: what was changed in the cluster since is not
/// healed.
#[test]
fn another_revision_of_the_same_inputs_is_the_same_attempt() {
    let mut synced = after_attempt("Succeeded", 0, false);
    let state = synced.status.operation_state.as_mut().expect("there");
    state.other.insert("tiphys".into(), json!({"inputs": "abc"}));
    let at = |identity: &str| {
        let inputs = Inputs { revisions: &["v2".into()], identity };
        auto_sync(&synced, &missing_one(), inputs, true, &AutoSettings::default(), now(60))
    };
    assert!(matches!(&at("abc"), AutoSync::Left(why) if why.contains("does not heal itself")));
    assert!(matches!(at("abd"), AutoSync::Start(_)));
    assert!(matches!(at(""), AutoSync::Start(_)), "not known");
}

/// Somebody asked for a sync of sources that do not render: what was deployed before is not healed because of
/// that.
#[test]
fn an_operation_that_never_began_is_no_attempt() {
    let mut app = after_attempt("Succeeded", 0, false);
    record_history(&mut app);
    let state = app.status.operation_state.as_mut().expect("there");
    state.phase = tiphys_model::OperationPhase::Error;
    state.sync_result.as_mut().expect("there").revision.clear();
    let left = decide(&app, &missing_one(), 60);
    assert!(matches!(&left, AutoSync::Left(why) if why.contains("does not heal itself")), "{left:?}");
    // One that named a revision.
    let state = app.status.operation_state.as_mut().expect("there");
    state.sync_result.as_mut().expect("there").revision = "HEAD".into();
    state.other.insert("tiphys".into(), json!({"ending": "Unbegun"}));
    assert!(matches!(decide(&app, &missing_one(), 60), AutoSync::Left(_)));
    // An automated one is not begun again at once.
    let mut automated = app.clone();
    let state = automated.status.operation_state.as_mut().expect("there");
    state.operation.initiated_by.automated = true;
    state.sync_result.as_mut().expect("there").revision = "v1".into();
    assert!(matches!(decide(&automated, &missing_one(), 10), AutoSync::Later(..)));
    let newer =
        auto_sync(&app, &missing_one(), inputs(&["v2".into()]), true, &AutoSettings::default(), now(60));
    assert!(matches!(newer, AutoSync::Start(_)));
}

#[test]
fn an_attempt_that_ended_before_it_had_a_result_counts() {
    let ended = |phase: &str| {
        let mut app = after_attempt(phase, 0, false);
        app.status.operation_state.as_mut().expect("there").sync_result = None;
        app
    };
    let compat = AutoSettings { compat: true, ..AutoSettings::default() };
    let refused =
        auto_sync(&ended("Error"), &missing_one(), inputs(&["v2".into()]), true, &compat, now(99_999));
    assert!(
        matches!(&refused, AutoSync::Refused(c) if c.message == "Failed last sync attempt to []: broken"),
        "{refused:?}"
    );
    assert!(matches!(decide(&ended("Error"), &missing_one(), 10), AutoSync::Later(..)), "not again at once");
    assert!(matches!(decide(&ended("Error"), &missing_one(), 60), AutoSync::Start(_)));
    let done = decide(&ended("Succeeded"), &missing_one(), 60);
    assert!(matches!(&done, AutoSync::Left(why) if why.contains("does not heal itself")), "{done:?}");
}

#[test]
fn what_was_attempted_counts_before_what_it_would_delete() {
    let mut synced = after_attempt("Succeeded", 0, false);
    let policy = synced.spec.sync_policy.as_mut().expect("there");
    policy.automated.as_mut().expect("there").prune = Some(true);
    let left = decide(&synced, &out_of_sync(2, 0), 60);
    assert!(matches!(&left, AutoSync::Left(why) if why.contains("does not heal itself")), "{left:?}");
}

#[test]
fn a_deletion_is_confirmed_if_the_target_or_the_live_object_asks_for_it() {
    let asking = |value: &str| object("ConfigMap", "c", &[("argocd.argoproj.io/sync-options", value)]);
    for (target, live, asked) in [("", "Delete=confirm", true), ("Prune=confirm", "", true), ("", "", false)]
    {
        let seen =
            compared(&app(json!({})), vec![asking(target)], vec![(asking(live), None)], &Tracking::default());
        assert_eq!(seen.resources[0].requires_deletion_confirmation, asked, "{target:?} {live:?}");
    }
}

#[test]
fn history_keeps_whole_successful_syncs_up_to_the_limit() {
    let mut app = after_attempt("Succeeded", 0, true);
    app.spec.revision_history_limit = Some(2);
    for _ in 0..4 {
        record_history(&mut app);
    }
    let ids: Vec<_> = app.status.history.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [2, 3]);
    let mut failed = after_attempt("Failed", 0, true);
    record_history(&mut failed);
    assert!(failed.status.history.is_empty());
}
