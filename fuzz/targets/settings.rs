//! Argo CD's settings are read, whatever is in them, health checks in Lua among them; nothing panics, and a
//! check ends.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tiphys_health::{HealthSettings, Rules};
use tiphys_model::settings::ArgoSettings;

fuzz_target!(|input: (&str, &str, &str)| {
    let (key, value, script) = input;
    let config = BTreeMap::from([
        (key.to_owned(), value.to_owned()),
        ("resource.customizations.health.example.com_X".to_owned(), script.to_owned()),
    ]);
    let settings = ArgoSettings::read(&config, &BTreeMap::new());
    let condition = json!({"type": "Ready", "status": "True"});
    let object = json!({"apiVersion": "example.com/v1", "kind": "X", "metadata": {"name": "x"}, "status": {"conditions": [condition]}});
    let _ = Rules::new(HealthSettings::default(), settings.customizations).judge(&object);
});
