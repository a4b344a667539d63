//! The definitions are what an API server accepts, and they judge objects as Argo CD's do.

use serde_json::{Value, json};
use tiphys_schema::{crd_version_schema, validate_crd};

fn definition(kind: &str) -> Value {
    let all = tiphys_model::crd::definitions();
    all.into_iter().find(|definition| definition["spec"]["names"]["kind"] == kind).expect("defined")
}

#[test]
fn definitions_are_valid() {
    for definition in tiphys_model::crd::definitions() {
        let errors = validate_crd(&definition, None);
        assert!(errors.0.is_empty(), "{errors:?}");
    }
}

#[test]
fn an_object_where_an_image_text_belongs_is_refused() {
    let schema = crd_version_schema(&definition("ApplicationSet"), "v1alpha1").expect("schema");
    let set = |image: Value| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "api-services"},
            "spec": {"generators": [{"list": {"elements": [{"name": "a"}]}}], "template": {
                "metadata": {"name": "{{name}}"},
                "spec": {"project": "p", "destination": {"namespace": "n"},
                    "source": {"repoURL": "r", "path": "x", "kustomize": {"images": [image]}}}}}})
    };
    assert!(schema.validate(&set(json!("app=registry.example.org/app:1")), None).0.is_empty());
    let errors = schema.validate(&set(json!({"name": "app", "newTag": "1"})), None);
    let text = format!("{errors:?}");
    assert!(text.contains("images"), "{text}");
}

#[test]
fn a_source_without_an_address_is_refused() {
    let schema = crd_version_schema(&definition("Application"), "v1alpha1").expect("schema");
    let app = |source: Value| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"},
            "spec": {"project": "p", "destination": {"namespace": "n"}, "sources": [source]}})
    };
    assert!(schema.validate(&app(json!({"repoURL": "r", "path": "x"})), None).0.is_empty());
    let errors = schema.validate(&app(json!({"path": "x"})), None);
    assert!(format!("{errors:?}").contains("spec.sources[0].repoURL"), "{errors:?}");
}

#[test]
fn known_fields_survive_pruning_and_typos_do_not() {
    let schema = crd_version_schema(&definition("Application"), "v1alpha1").expect("schema");
    let mut app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"},
        "spec": {"project": "p", "destination": {"namespace": "n"}, "sources": [{"repoURL": "r", "ref": "values"}],
            "syncPolicy": {"automated": {"prune": true, "selfheal": true}}},
        "status": {"sync": {"status": "Synced"}, "tiphys": {"anything": [1]}}});
    assert_eq!(schema.prune(&mut app), ["spec.syncPolicy.automated.selfheal"]);
    assert_eq!(app["status"]["tiphys"]["anything"][0], 1);
}
