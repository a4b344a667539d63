use std::collections::BTreeMap;

use serde_json::{Value, json};
use tiphys_model::{ArgoSettings, Clock};

use super::{Action, Actions, Outcome};

fn actions(pairs: &[(&str, &str)]) -> Actions {
    let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let settings = ArgoSettings::read(&map, &BTreeMap::new());
    assert_eq!(settings.faults, []);
    Actions::new(settings.customizations, Clock::new(|| "2026-03-01T12:30:45Z".parse().unwrap()))
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// What an object becomes by an action.
fn after(object: &Value, name: &str, given: &[(&str, &str)]) -> Result<Value, String> {
    match actions(&[]).run(object, name, &params(given)).map_err(|error| error.to_string())?.as_slice() {
        [Outcome::Patch(object)] => Ok(object.clone()),
        other => panic!("{other:?}"),
    }
}

/// Names of what is offered, those that would do nothing in brackets.
fn offered(actions: &Actions, object: &Value) -> String {
    let name = |action: &Action| match action.disabled {
        true => format!("({})", action.name),
        false => action.name.clone(),
    };
    actions.list(object).unwrap().iter().map(name).collect::<Vec<_>>().join(" ")
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 2, "template": {"metadata": {}, "spec": {"volumes": [{"name": "tmp", "emptyDir": {}}]}}}})
}

#[test]
fn workloads_are_restarted_scaled_and_paused() {
    let mut web = deployment();
    assert_eq!(offered(&actions(&[]), &web), "pause restart (resume) scale");
    let restarted = after(&web, "restart", &[]).unwrap();
    let annotations = &restarted["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(*annotations, json!({"kubectl.kubernetes.io/restartedAt": "2026-03-01T12:30:45Z"}));
    assert_eq!(after(&web, "scale", &[("replicas", "5")]).unwrap()["spec"]["replicas"], 5);
    assert_eq!(after(&web, "scale", &[]), Err("scale: the parameter replicas is missing".into()));
    assert!(after(&web, "scale", &[("replicas", "many")]).unwrap_err().contains("no number of pods"));
    assert!(after(&web, "scale", &[("pods", "1")]).unwrap_err().contains("has no parameter \"pods\""));
    assert!(after(&web, "promote", &[]).unwrap_err().ends_with("there is pause, restart, resume, scale"));
    web["spec"]["paused"] = true.into();
    assert_eq!(offered(&actions(&[]), &web), "(pause) restart resume scale");
    assert_eq!(after(&web, "resume", &[]).unwrap(), deployment());
}

#[test]
fn jobs_are_made_of_their_template_and_ended() {
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "backup", "namespace": "shop", "uid": "u"}, "spec": {"suspend": true, "jobTemplate": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}}});
    assert_eq!(offered(&actions(&[]), &cron), "create-job resume");
    let made = actions(&[]).run(&cron, "create-job", &BTreeMap::new()).unwrap();
    let [Outcome::Create(job)] = made.as_slice() else { panic!("{made:?}") };
    assert_eq!(job["metadata"]["name"], "backup-2603011230");
    assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(job["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(job["spec"], cron["spec"]["jobTemplate"]["spec"], "an empty emptyDir is not lost");

    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {}, "status": {"active": 1}});
    assert_eq!(offered(&actions(&[]), &job), "suspend terminate");
    job = after(&job, "terminate", &[]).unwrap();
    assert_eq!(job["status"]["conditions"][0]["type"], "FailureTarget");
    assert_eq!(offered(&actions(&[]), &job), "");
    assert_eq!(after(&job, "terminate", &[]).unwrap(), job);
}

#[test]
fn a_rollout_offers_what_its_state_allows() {
    let mut rollout = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web", "generation": 3}, "spec": {"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}},
        "status": {"observedGeneration": "3", "currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1,
            "pauseConditions": [{"reason": "CanaryPauseStep"}]}});
    let all = "abort pause promote-full restart resume (retry) skip-current-step";
    assert_eq!(offered(&actions(&[]), &rollout), all);
    let skipped = after(&rollout, "skip-current-step", &[]).unwrap();
    assert_eq!(skipped["status"]["currentStepIndex"], 2);
    assert_eq!(skipped["status"].get("pauseConditions"), None);
    assert_eq!(after(&rollout, "promote-full", &[]).unwrap()["status"]["promoteFull"], true);
    rollout["status"]["observedGeneration"] = "7d9f8b".into();
    let old = after(&rollout, "promote-full", &[]).unwrap();
    assert_eq!(old["status"]["currentStepIndex"], 2, "a controller before 0.10 knows no promoteFull");
    rollout["status"]["stableRS"] = "b".into();
    rollout["status"]["currentStepIndex"] = 2.into();
    rollout["status"]["pauseConditions"] = json!([]);
    let none = "(abort) (pause) (promote-full) restart (resume) (retry) (skip-current-step)";
    assert_eq!(offered(&actions(&[]), &rollout), none);
}

#[test]
fn automated_sync_is_switched_off_and_on() {
    let app = |automated: Value| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"},
            "spec": {"syncPolicy": {"automated": automated}}})
    };
    let toggled = |automated| after(&app(automated), "toggle-auto-sync", &[]).unwrap();
    assert_eq!(toggled(json!({"prune": true})), app(json!({"prune": true, "enabled": false})));
    assert_eq!(toggled(json!({"enabled": false})), app(json!({"enabled": true})));
    assert_eq!(toggled(Value::Null), app(json!({"enabled": true})));
}

#[test]
fn a_switchover_goes_to_a_healthy_instance() {
    let cluster = json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "db"},
        "status": {"currentPrimary": "db-3", "instancesStatus": {"healthy": ["db-1", "db-3"]}}});
    let target = |given: &[(&str, &str)]| {
        after(&cluster, "promote", given).map(|object| object["status"]["targetPrimary"].clone())
    };
    assert_eq!(target(&[]), Ok(json!("db-1")));
    assert_eq!(target(&[("instance", "3")]), Ok(json!("db-3")));
    let error = target(&[("instance", "2")]).unwrap_err();
    assert!(error.contains("there is db-1, db-3"), "{error}");
}

#[test]
fn actions_of_argocd_cm_stand_in_place_of_the_built_in_ones_or_beside_them() {
    const KEY: &str = "resource.customizations.actions.apps_Deployment";
    const OWN: &str = "
discovery.lua: |
  return {grow = {displayName = 'Grow', params = {{name = 'by', default = '1'}}}, shrink = {disabled = obj.spec.replicas == 0}}
definitions:
- name: grow
  action.lua: |
    obj.spec.replicas = obj.spec.replicas + tonumber(actionParams['by'] or '1')
    return obj
- name: twin
  action.lua: |
    return {{operation = 'create', resource = {apiVersion = 'v1', kind = 'ConfigMap', metadata = {name = obj.metadata.name}}}}
- name: broken
  action.lua: return obj.spec.none.x
- name: odd
  action.lua: return {{operation = 'delete', resource = obj}}
";
    let own = actions(&[(KEY, OWN)]);
    assert_eq!(offered(&own, &deployment()), "grow shrink");
    let listed = own.list(&deployment()).unwrap();
    assert_eq!(
        (listed[0].display_name.as_str(), listed[0].params[0].default.as_deref()),
        ("Grow", Some("1"))
    );
    let run = |name: &str, given: &[(&str, &str)]| {
        own.run(&deployment(), name, &params(given)).map_err(|error| error.to_string())
    };
    let mut grown = deployment();
    grown["spec"]["replicas"] = 4.into();
    assert_eq!(run("grow", &[("by", "2")]), Ok(vec![Outcome::Patch(grown)]), "empty maps stay maps");
    let twin = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}});
    assert_eq!(run("twin", &[]), Ok(vec![Outcome::Create(twin)]));
    let broken = run("broken", &[]).unwrap_err();
    assert!(
        broken.starts_with("broken of the actions of Deployment in argocd-cm: action.lua:1:"),
        "{broken}"
    );
    assert!(run("odd", &[]).unwrap_err().ends_with("unsupported operation: delete"));
    // As in Argo CD a built-in one can be run by its name.
    assert!(run("restart", &[]).is_ok());
    let merged = actions(&[(KEY, &format!("mergeBuiltinActions: true\n{OWN}"))]);
    assert_eq!(offered(&merged, &deployment()), "grow pause restart (resume) scale shrink");
}
