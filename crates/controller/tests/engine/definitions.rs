//! Where Argo CD's own definitions are served: an installation beside or under the engine brings them.

use std::time::Duration;

use tiphys_controller::crds;
use tiphys_model::{Application, names};
use tiphys_sync::{SyncState, Wait};
use tiphys_value::{ObjectExt, Value, json};

use crate::{
    incidents::definition,
    stage::{CONFIG_MAP, Stage, application, condition, config_map},
};

const HOUR: Duration = Duration::from_secs(3600);

/// The definition of Application without any field that Argo CD does not know.
fn theirs() -> Value {
    let is_application = |definition: &Value| definition["spec"]["names"]["kind"] == "Application";
    let mut ours = crds::definitions().into_iter().find(is_application).unwrap();
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    let status = ours
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status")
        .and_then(Value::as_object_mut)
        .unwrap();
    status.remove("x-kubernetes-preserve-unknown-fields");
    status["properties"].as_object_mut().unwrap().remove("tiphys");
    status["properties"]["operationState"] = json!({"type": "object", "properties": {
        "operation": any, "syncResult": any, "phase": {"type": "string"}, "message": {"type": "string"},
        "startedAt": {"type": "string"}, "finishedAt": {"type": "string"}, "retryCount": {"type": "integer"}}});
    ours
}

fn waits(app: &Value) -> Vec<Wait> {
    let state = Application::from_value(app).unwrap().status.operation_state;
    state.map(|state| SyncState::from_operation_state(state).waits().to_vec()).unwrap_or_default()
}

/// What the engine knows of an operation is not lost, so that it neither begins anew all the time nor forgets
/// how long it waits.
#[tokio::test(start_paused = true)]
async fn what_the_definition_of_another_engine_drops_is_kept() {
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let crd = tiphys_yaml::to_yaml(&definition("widgets", "Widget"));
    let files = [("app/w.yaml", widget), ("app/c.yaml", &*config_map("c", "1")), ("other/crd.yaml", &*crd)];
    let mut stage = Stage::idle(&files, |_| {}).await;
    stage.apply(theirs()).await;
    stage.start().await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| !waits(app).is_empty()).await;
    assert_eq!(app.at(&["status", "operationState", "tiphys"]), None, "it is dropped");
    stage.pass(HOUR).await;
    let app = stage.until_app("app", |app| condition(app, "BlockedBy").is_some()).await;
    let before = stage.faults.writes().len();
    stage.pass(HOUR).await;
    let written = stage.faults.writes().len() - before;
    assert!(written < 60, "{written} writes in an hour");
    let since = waits(&app)[0].since;
    stage.kill();
    stage.start().await;
    stage.pass(HOUR).await;
    let app = stage.until_app("app", |app| !waits(app).is_empty()).await;
    assert_eq!(waits(&app)[0].since, since);
    assert!(app.annotation(names::KEPT).is_some());
    stage.apply(application("other", "other")).await;
    stage.until_green("app").await;
    assert!(stage.get(CONFIG_MAP, "app", "c").await.is_some());
}
