//! What an engine beside another one finds, as measurements.

use std::collections::BTreeMap;

use super::text::{family, labels_of};
use crate::shadow::{Decision, Shadow};

/// Writes how often something was decided, and where the engines differ now.
pub(super) fn shadow(text: &mut String, shadow: &Shadow) {
    let named = |kind: &str, namespace: &str, name: &str| {
        vec![("kind", kind.to_owned()), ("namespace", namespace.to_owned()), ("name", name.to_owned())]
    };
    let counts = shadow.counts();
    let rows: Vec<_> = counts
        .into_iter()
        .map(|((kind, key, action), count)| {
            let labels = named(kind, &key.namespace, &key.name);
            (labels_of(&[labels, vec![("action", action.to_owned())]].concat()), count as f64)
        })
        .collect();
    let help = "Decisions of the shadow, each counted once until it changes.";
    family(text, "tiphys_shadow_decisions_total", "counter", help, &rows);
    let mut rows = BTreeMap::new();
    for Decision { kind, namespace, name, differs, .. } in shadow.decisions() {
        let labels = named(kind, &namespace, &name);
        for what in ["sync", "health", "object"] {
            let count = differs.iter().filter(|difference| difference.what == what).count();
            let labels = [labels.clone(), vec![("difference", what.to_owned())]].concat();
            rows.insert(labels_of(&labels), count as f64);
        }
    }
    let rows: Vec<_> = rows.into_iter().collect();
    let help = "Where the engine in charge and the shadow see an Application otherwise, now.";
    family(text, "tiphys_shadow_differences", "gauge", help, &rows);
}
