//! Workloads whose template a change rewrites and whose pods stay as they are, as their strategy has it.

use tiphys_apiserver::Snapshot;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::effects::{Effect, Effects};

/// Adds to a change the workloads that keep their old pods, and why.
pub(super) fn add(effects: &mut Effects, end: &Snapshot) {
    for app in effects.applications.values_mut() {
        let changed = app.objects.iter().filter(|one| match &one.effect {
            Effect::Changed { fields, .. } => fields.iter().any(|field| field.starts_with(".spec.template.")),
            _ => false,
        });
        app.held = changed.filter_map(|one| Some((one.object.clone(), reason(&one.object, end)?))).collect();
    }
}

fn reason(key: &ResourceKey, end: &Snapshot) -> Option<String> {
    let workload = end.with_key(key)?.value();
    let number = |path: &[&str]| workload.int_at(path).unwrap_or_default();
    let from = number(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
    if workload.at(&["spec", "paused"]) == Some(&Value::Bool(true)) {
        return Some("it is paused".to_owned());
    }
    if workload.str_at(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return Some(
            "its strategy is OnDelete, so its pods are replaced when somebody deletes them".to_owned(),
        );
    }
    (from > 0).then(|| format!("its partition is {from}, so pods below that number stay as they are"))
}
