//! The failures that the engine exists to prevent: first as Argo CD's rules produce them, then their absence.
//! Names are those of the list of incidents. Every scenario runs on the embedded cluster in virtual time;
//! those that an API server alone suffices for run on a real one too (`real.rs`).

pub(crate) mod admission;
pub(crate) mod endless_operations;
pub(crate) mod owners;
pub(crate) mod rendering;

use std::time::Duration;

use tiphys_controller::Settings;
use tiphys_sync::{AutoSettings, SyncSettings};
use tiphys_value::{Value, json};

use crate::stage::{ENGINE, application};

/// Makes tests on the embedded cluster out of scenarios.
macro_rules! on_embedded {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::$name().await;
                }
            )*
        }
    };
}
pub(crate) use on_embedded;

pub(super) const SECRET: (&str, &str) = ("v1", "Secret");
pub(super) const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// Argo CD's rules, with the health of Applications that its users add.
pub(super) fn compat(settings: &mut Settings) {
    settings.sync = SyncSettings::compat();
    settings.auto = AutoSettings { compat: true, ..AutoSettings::default() };
}

pub(super) fn yaml(object: &Value) -> String {
    tiphys_yaml::to_yaml(object)
}

pub(super) fn in_wave(mut app: Value, wave: &str) -> Value {
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": wave});
    app
}

/// Repeats a failed sync as often as by default, and without waiting long in between.
pub(super) fn quick(mut app: Value) -> Value {
    app["spec"]["syncPolicy"]["retry"] =
        json!({"limit": 5, "backoff": {"duration": "100ms", "factor": 1, "maxDuration": "1s"}});
    app
}

/// An Application whose objects live in the engine's namespace: an App-of-Apps.
pub(super) fn parent(name: &str, path: &str) -> Value {
    let mut app = application(name, path);
    app["spec"]["destination"]["namespace"] = ENGINE.into();
    app
}

pub(super) fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "registry.example.com/c:1"}]}}}})
}

/// A definition with one kind of objects that have a finalizer nobody serves.
pub(crate) fn definition(plural: &str, kind: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}})
}
