//! Expressions and programs that stand in objects: CEL, jq, Lua, policies.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tiphys_diff::{DiffOptions, IgnoreRules, compare};
use tiphys_expr::cel::{Environment, Expression, plain, to_json};
use tiphys_health::{HealthSettings, Rules};
use tiphys_model::{IgnoreDifference, settings::ArgoSettings};
use tiphys_policy::{Namespace, Policies};
use tiphys_yaml::{Profile, parse_documents, to_value};

use crate::input::{parts, text};

/// A CEL expression compiles or does not; its run ends within the limits. The input: expression, object in
/// JSON.
pub fn cel(bytes: &[u8]) {
    let Some([source, object]) = text(bytes).map(parts) else { return };
    let Ok(expression) = Expression::compile(source, &["object"]) else { return };
    let object = serde_json::from_str(object).unwrap_or_default();
    let environment = Environment::new([("object".to_owned(), plain(&object))]);
    if let Ok(value) = expression.evaluate(&environment) {
        let _ = to_json(&value);
    }
}

/// A jq path expression for what to ignore can be used or cannot; its run on any object ends. The input:
/// expression, object in JSON.
pub fn ignore(bytes: &[u8]) {
    let Some([expression, object]) = text(bytes).map(parts) else { return };
    let Ok(object) = serde_json::from_str::<Value>(object) else { return };
    let rule = IgnoreDifference {
        group: "*".into(),
        kind: "*".into(),
        jq_path_expressions: vec![expression.into()],
        ..IgnoreDifference::default()
    };
    if let Ok(rules) = IgnoreRules::for_object(&object, &[rule]) {
        compare(&object, &object, &DiffOptions { ignore: Some(&rules), ..DiffOptions::default() });
    }
}

/// Policies judge any object. The input: documents of YAML, the last of which is the object.
pub fn policy(bytes: &[u8]) {
    let Some(documents) = text(bytes).and_then(|it| parse_documents(it, Profile::Go2).ok()) else {
        return;
    };
    let read = documents.iter().filter_map(|it| to_value(&it.root, Profile::Go2).ok());
    let objects: Vec<Value> = read.collect();
    let Some((object, policies)) = objects.split_last() else { return };
    Policies::from_objects(policies).refusals(object, Namespace::Labels(None));
}

/// Argo CD's settings are read, whatever is in them, and a health check in Lua ends. The input: a key, its
/// value, the script.
pub fn settings(bytes: &[u8]) {
    let Some([key, value, script]) = text(bytes).map(parts) else { return };
    let config = BTreeMap::from([
        (key.to_owned(), value.to_owned()),
        ("resource.customizations.health.example.com_X".to_owned(), script.to_owned()),
    ]);
    let settings = ArgoSettings::read(&config, &BTreeMap::new());
    let condition = json!({"type": "Ready", "status": "True"});
    let object = json!({
        "apiVersion": "example.com/v1",
        "kind": "X",
        "metadata": {"name": "x"},
        "status": {"conditions": [condition]},
    });
    let _ = Rules::new(HealthSettings::default(), settings.customizations).judge(&object);
}
