//! Health of an Application object, for Applications that render Applications. It is bound to what the
//! child has really done: a child that has not looked at its present spec, or that still synchronises,
//! is on its way, whatever its last health was.

use serde_json::Value;
use tiphys_model::{ApplicationSpec, ComparedTo, HealthCode, HealthStatus};
use tiphys_value::ObjectExt;

pub(crate) fn assess(app: &Value) -> HealthStatus {
    let message = app.str_at(&["status", "health", "message"]).unwrap_or_default();
    let Some(code) = app.str_at(&["status", "health", "status"]).and_then(HealthCode::parse) else {
        return HealthStatus::new(HealthCode::Progressing, "the Application has not been looked at yet");
    };
    if compared_to_another_spec(app) {
        return HealthStatus::new(
            HealthCode::Progressing,
            "the Application's new spec has not been compared yet",
        );
    }
    let phase = app.str_at(&["status", "operationState", "phase"]).unwrap_or_default();
    if app.at(&["operation"]).is_some_and(Value::is_object) || matches!(phase, "Running" | "Terminating") {
        let message = match app.str_at(&["status", "operationState", "message"]).unwrap_or_default() {
            "" => "the Application synchronises".to_owned(),
            doing => format!("the Application synchronises: {doing}"),
        };
        return HealthStatus::new(HealthCode::Progressing, message);
    }
    let syncs_itself = app.at(&["spec", "syncPolicy", "automated"]).is_some_and(|automated| {
        automated.is_object() && automated.get("enabled") != Some(&Value::Bool(false))
    });
    let out_of_sync = app.str_at(&["status", "sync", "status"]) == Some("OutOfSync");
    if code == HealthCode::Healthy
        && syncs_itself
        && out_of_sync
        && !matches!(phase, "Failed" | "Error" | "Succeeded")
    {
        return HealthStatus::new(HealthCode::Progressing, "the Application is about to synchronise");
    }
    HealthStatus::new(code, message)
}

/// Whether the last comparison was made with other sources or another destination than the spec has.
fn compared_to_another_spec(app: &Value) -> bool {
    let read = |path: &[&str]| app.at(path).filter(|value| !value.is_null());
    let Some(compared) = read(&["status", "sync", "comparedTo"]) else { return false };
    let Ok(compared) = serde_json::from_value::<ComparedTo>(compared.clone()) else { return false };
    // A spec that nobody can read is none that was compared.
    let spec = read(&["spec"]).cloned().unwrap_or_default();
    serde_json::from_value::<ApplicationSpec>(spec).map_or(true, |spec| !compared.is_about(&spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app(status: Value) -> Value {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"},
            "spec": {"source": {"repoURL": "r", "targetRevision": "v2"}, "syncPolicy": {"automated": {}}}, "status": status})
    }

    #[test]
    fn health_is_bound_to_the_present_spec() {
        let old = json!({"health": {"status": "Healthy"}, "sync": {"status": "Synced",
            "comparedTo": {"source": {"repoURL": "r", "targetRevision": "v1"}}}});
        assert_eq!(assess(&app(old)).status, HealthCode::Progressing);
        let new = json!({"health": {"status": "Healthy"}, "sync": {"status": "Synced",
            "comparedTo": {"source": {"repoURL": "r", "targetRevision": "v2"}, "destination": {}}}});
        assert_eq!(assess(&app(new)).status, HealthCode::Healthy);
    }

    /// `comparedTo` is written as the types have it, without what means nothing; the spec is as its author
    /// wrote it.
    #[test]
    fn a_spec_that_says_more_than_it_means_is_the_same() {
        let compared = json!({"health": {"status": "Healthy"}, "sync": {"status": "Synced", "comparedTo": {
            "source": {"repoURL": "r", "path": "p", "directory": {}}, "destination": {"namespace": "n"}}}});
        let mut app = app(compared);
        app["spec"] = json!({"destination": {"namespace": "n", "name": ""}, "source": {"repoURL": "r", "path": "p",
            "targetRevision": "", "directory": {"recurse": false, "jsonnet": {"tlas": []}}}});
        assert_eq!(assess(&app).status, HealthCode::Healthy);
        app["spec"]["source"]["directory"]["recurse"] = true.into();
        assert_eq!(assess(&app).status, HealthCode::Progressing);
    }

    #[test]
    fn of_a_source_beside_sources_only_these_count() {
        let compared = json!({"health": {"status": "Healthy"}, "sync": {"status": "Synced", "comparedTo": {
            "sources": [{"repoURL": "a", "helm": {"skipCrds": true}}], "destination": {}}}});
        let mut app = app(compared);
        app["spec"] = json!({"source": {"repoURL": "old"}, "sources": [
            {"repoURL": "a", "helm": {"skipCrds": true, "passCredentials": false, "releaseName": ""}}]});
        assert_eq!(assess(&app).status, HealthCode::Healthy);
        app["spec"]["sources"][0]["repoURL"] = "b".into();
        assert_eq!(assess(&app).status, HealthCode::Progressing);
    }

    #[test]
    fn a_running_operation_is_on_its_way() {
        let mut status = json!({"health": {"status": "Healthy"}, "operationState": {"phase": "Running"}});
        let said = |status: &Value| assess(&app(status.clone())).message;
        assert_eq!(assess(&app(status.clone())).status, HealthCode::Progressing);
        assert_eq!(said(&status), "the Application synchronises");
        status["operationState"]["message"] = "wave 1".into();
        assert_eq!(said(&status), "the Application synchronises: wave 1");
        assert_eq!(assess(&app(json!({}))).status, HealthCode::Progressing);
        let broken = json!({"health": {"status": "Degraded"}, "operationState": {"phase": "Failed"}});
        assert_eq!(assess(&app(broken)).status, HealthCode::Degraded);
    }
}
