//! Secret values never reach a diff: they are shown as runs of `+`, equal values by equal runs.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_value::ObjectExt;

/// Length of the shortest run.
const SHORTEST: usize = 8;

/// Masks the values of a Secret on both sides of a diff: equal values get equal runs, different values
/// runs of different length. Other objects are left alone. `annotations` names annotations to mask too.
pub fn mask_secret(sides: &mut [&mut Value], annotations: &[String]) {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for side in sides.iter_mut() {
        let is_secret = side.kind() == "Secret" && side.gvk().group.is_empty();
        for field in ["data", "stringData"] {
            if let Some(map) = side.get_mut(field).and_then(Value::as_object_mut).filter(|_| is_secret) {
                map.values_mut().for_each(|value| mask(value, &mut runs));
            }
        }
        let present = side.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
        if let Some(present) = present.and_then(Value::as_object_mut) {
            let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
            for (key, value) in present.iter_mut() {
                if annotations.contains(key) || (is_secret && key == last_applied) {
                    mask(value, &mut runs);
                }
            }
        }
    }
}

fn mask(value: &mut Value, runs: &mut BTreeMap<String, usize>) {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let next = SHORTEST + runs.len();
    let length = *runs.entry(text).or_insert(next);
    *value = "+".repeat(length).into();
}
