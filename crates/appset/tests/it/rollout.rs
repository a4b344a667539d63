//! RollingSync, step by step.

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_appset::{Generated, Rollout, is_rolling, removal_order, roll};
use tiphys_value::ObjectExt;

fn set(steps: Value, status: &Rollout) -> Value {
    let apps: Vec<Value> = status.apps.iter().map(tiphys_appset::AppRollout::to_value).collect();
    json!({"metadata": {"name": "s", "namespace": "argocd"},
        "spec": {"strategy": {"type": "RollingSync", "deletionOrder": "Reverse", "rollingSync": {"steps": steps}}},
        "status": {"applicationStatus": apps}})
}

fn steps() -> Value {
    json!([{"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]},
        {"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}], "maxUpdate": "10%"}])
}

fn generated(names: &[(&str, &str)]) -> Vec<Generated> {
    let one = |(name, env): &(&str, &str)| Generated {
        application: json!({"metadata": {"name": name, "namespace": "argocd", "labels": {"env": env}},
            "spec": {"source": {"repoURL": "r"}, "syncPolicy": {"automated": {"prune": true}}}}),
        fault: None,
    };
    names.iter().map(one).collect()
}

fn live(name: &str, env: &str, sync: &str, health: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "argocd", "labels": {"env": env}}, "spec": {"source": {"repoURL": "r"}},
        "status": {"sync": {"status": sync, "revision": "1",
            "comparedTo": {"source": {"repoURL": "r"}, "destination": {}}}, "health": {"status": health}}})
}

fn now(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("valid")
}

fn states(rollout: &Rollout) -> Vec<&str> {
    rollout.apps.iter().map(|app| app.status).collect()
}

#[test]
fn a_step_opens_when_all_before_are_healthy() {
    let all = [("a", "dev"), ("b", "prod"), ("c", "prod"), ("loose", "none")];
    let out = |sync: &str| all.iter().map(|(n, e)| live(n, e, sync, "Healthy")).collect::<Vec<_>>();
    let mut wanted = generated(&all);
    let first = roll(&set(steps(), &Rollout::default()), &mut wanted, &out("OutOfSync"), &|_| false, now(0));
    assert_eq!(states(&first), ["Pending", "Waiting", "Waiting", "Waiting"]);
    assert_eq!(first.step, Some(1));
    assert_eq!(first.apps[3].step, "-1");
    let app = &wanted[0].application;
    assert_eq!(app["spec"]["syncPolicy"]["automated"]["enabled"], false);
    assert_eq!(app["operation"]["sync"]["prune"], true);
    assert!(wanted[1].application.get("operation").is_none(), "its turn has not come");

    let mut existing = out("OutOfSync");
    existing[0] = live("a", "dev", "Synced", "Progressing");
    existing[0]["status"]["operationState"] =
        json!({"phase": "Succeeded", "startedAt": now(1).to_string(), "operation": {}});
    let second = roll(&set(steps(), &first), &mut generated(&all), &existing, &|_| false, now(2));
    assert_eq!(states(&second), ["Progressing", "Waiting", "Waiting", "Waiting"]);

    existing[0] = live("a", "dev", "Synced", "Healthy");
    let mut wanted = generated(&all);
    let third = roll(&set(steps(), &second), &mut wanted, &existing, &|_| false, now(3));
    assert_eq!(states(&third), ["Healthy", "Pending", "Waiting", "Waiting"], "10% of 2 lets one in");
    assert_eq!(third.step, Some(2));
}

#[test]
fn v17_limits_of_a_step() {
    let names: Vec<String> = (0..5).map(|n| format!("p{n}")).collect();
    let all: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "prod")).collect();
    let existing: Vec<Value> = all.iter().map(|(n, e)| live(n, e, "OutOfSync", "Healthy")).collect();
    for (limit, expected) in [
        (json!("10%"), 1),
        (json!("0%"), 0),
        (json!(0), 0),
        (json!(3), 3),
        (json!("50%"), 2),
        (Value::Null, 5),
    ] {
        let steps = json!([{"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}], "maxUpdate": limit}]);
        let rollout =
            roll(&set(steps, &Rollout::default()), &mut generated(&all), &existing, &|_| false, now(0));
        assert_eq!(states(&rollout).iter().filter(|state| **state == "Pending").count(), expected, "{limit}");
    }
}

#[test]
fn a_new_revision_and_a_new_spec_begin_anew() {
    let all = [("a", "dev")];
    let existing = [live("a", "dev", "Synced", "Healthy")];
    let mut done =
        roll(&set(steps(), &Rollout::default()), &mut generated(&all), &existing, &|_| false, now(0));
    assert_eq!(states(&done), ["Healthy"]);
    done.apps[0].revisions = vec!["0".into()];
    let moved = [live("a", "dev", "OutOfSync", "Healthy")];
    let again = roll(&set(steps(), &done), &mut generated(&all), &moved, &|_| false, now(1));
    assert_eq!(states(&again), ["Pending"]);
    done.apps[0].revisions = vec!["1".into()];
    let revised = roll(&set(steps(), &done), &mut generated(&all), &existing, &|_| true, now(1));
    assert_eq!(states(&revised), ["Pending"], "the status shown is that of the old spec");
}

#[test]
fn faults_of_steps_are_told() {
    let odd = json!([
        {"matchExpressions": [{"key": "env", "operator": "Like", "values": ["dev"]}]},
        {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}], "maxUpdate": "many"},
        {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}], "maxUpdate": "2"}]);
    let all = [("a", "dev"), ("b", "dev")];
    let existing: Vec<Value> = all.iter().map(|(n, e)| live(n, e, "OutOfSync", "Healthy")).collect();
    let rollout = roll(&set(odd, &Rollout::default()), &mut generated(&all), &existing, &|_| false, now(0));
    assert_eq!(
        rollout.faults,
        [
            "Step 1 has invalid matchExpression operators: Like. Supported Operators are 'In' and 'NotIn'",
            "Applications 'a', 'b' are selected by multiple steps: [(2-3), (2-3)]",
            "Steps 2, 3 have invalid maxUpdate values: [many, 2]",
            "Steps [1] have no applications matching their criteria",
        ]
    );
    assert_eq!(states(&rollout), ["Pending", "Waiting"], "a limit that cannot be read lets one in");
}

#[test]
fn what_lacks_a_label_is_selected_by_all_but_in() {
    let by = |operator: &str| json!([{"matchExpressions": [{"key": "nope", "operator": operator, "values": ["x"]}]}]);
    let existing = [live("a", "dev", "OutOfSync", "Healthy")];
    for (operator, step) in [("In", "-1"), ("NotIn", "1"), ("DoesNotExist", "1")] {
        let set = set(by(operator), &Rollout::default());
        let rollout = roll(&set, &mut generated(&[("a", "dev")]), &existing, &|_| false, now(0));
        assert_eq!(rollout.apps[0].step, step, "{operator}");
    }
}

#[test]
fn what_waits_in_a_step_that_closed_again_is_not_synced() {
    let all = [("a", "dev"), ("b", "prod")];
    let mut existing = [live("a", "dev", "Synced", "Healthy"), live("b", "prod", "OutOfSync", "Healthy")];
    let mut wanted = generated(&all);
    let open = roll(&set(steps(), &Rollout::default()), &mut wanted, &existing, &|_| false, now(0));
    assert_eq!(states(&open), ["Healthy", "Pending"]);
    assert!(wanted[1].application.get("operation").is_some());
    existing[0]["status"]["sync"] = json!({"status": "OutOfSync", "revision": "2"});
    let mut wanted = generated(&all);
    let closed = roll(&set(steps(), &open), &mut wanted, &existing, &|_| false, now(1));
    assert_eq!(states(&closed), ["Pending", "Pending"]);
    assert!(wanted[0].application.get("operation").is_some());
    assert!(wanted[1].application.get("operation").is_none(), "the first step is under way again");
}

#[test]
fn what_argo_cd_wrote_is_understood() {
    let mut several = live("a", "dev", "Synced", "Healthy");
    let sources = json!([{"repoURL": "r"}, {"repoURL": "q"}]);
    several["spec"] = json!({"sources": sources});
    several["status"]["sync"] = json!({"status": "Synced", "revisions": ["1", "2"],
        "comparedTo": {"source": {"repoURL": ""}, "sources": sources, "destination": {}}});
    let fresh = json!({"metadata": {"name": "b", "namespace": "argocd"}, "spec": {}});
    let all = [("a", "dev"), ("b", "dev")];
    let rollout =
        roll(&set(steps(), &Rollout::default()), &mut generated(&all), &[several, fresh], &|_| false, now(0));
    assert_eq!(states(&rollout), ["Healthy", "Pending"]);
    assert_eq!(rollout.apps[1].to_value()["targetRevisions"], json!([]));
}

#[test]
fn an_application_that_is_at_fault_does_not_hold_its_turn() {
    let all = [("a", "dev")];
    let existing = [live("a", "dev", "OutOfSync", "Healthy")];
    let first =
        roll(&set(steps(), &Rollout::default()), &mut generated(&all), &existing, &|_| false, now(10));
    for (kind, looked, state) in [
        ("InvalidSpecError", 11, "Progressing"),
        ("InvalidSpecError", 9, "Pending"),
        ("ComparisonError", 11, "Pending"),
    ] {
        let mut app = existing[0].clone();
        app["status"]["conditions"] = json!([{"type": kind, "message": "m"}]);
        app["status"]["reconciledAt"] = now(looked).to_string().into();
        let next = roll(&set(steps(), &first), &mut generated(&all), &[app], &|_| false, now(12));
        assert_eq!(states(&next), [state], "{kind} at {looked}");
    }
}

#[test]
fn deletion_goes_from_the_last_step_to_the_first() {
    let set = set(steps(), &Rollout::default());
    assert!(is_rolling(&set));
    let mut existing = vec![live("a", "dev", "Synced", "Healthy"), live("b", "prod", "Synced", "Healthy")];
    let next = |existing: &[Value]| removal_order(&set, existing).expect("ordered")[0].name().to_owned();
    assert_eq!(next(&existing), "b");
    existing.pop();
    assert_eq!(next(&existing), "a");
    assert!(removal_order(&set, &[]).is_none());
    let loose = [live("c", "none", "Synced", "Healthy")];
    assert!(removal_order(&set, &loose).is_none(), "what no step selects goes with the set");
}
