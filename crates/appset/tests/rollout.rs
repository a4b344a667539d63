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
    let odd = json!([{"matchExpressions": [{"key": "env", "operator": "Like", "values": ["dev"]}], "maxUpdate": "many"}]);
    let rollout =
        roll(&set(odd, &Rollout::default()), &mut generated(&[("a", "dev")]), &[], &|_| false, now(0));
    assert_eq!(
        rollout.faults,
        [
            "step 1 has the operator \"Like\"; In and NotIn are known",
            "step 1 selects no Application",
            "step 1 has the maxUpdate \"many\"; it is a number or a percentage",
        ]
    );
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
}
