//! Claims of volumes.

use tiphys_value::{ObjectExt, Value};

/// A claim's source has two names, of which one is equivalent to the other within a namespace.
pub(super) fn name_source_twice(claim: &mut Value) {
    drop_sources(claim);
    for (from, to) in [("dataSourceRef", "dataSource"), ("dataSource", "dataSourceRef")] {
        let source = claim.at(&["spec", from]).filter(|source| source.get("namespace").is_none()).cloned();
        if let Some(source) = source.filter(|_| claim.at(&["spec", to]).is_none()) {
            claim["spec"][to] = source;
        }
    }
}

/// Sources that no claim can have: of another namespace, which is behind a feature gate that is off, and by
/// the old name anything but claims and snapshots.
fn drop_sources(claim: &mut Value) {
    let of = |claim: &Value, path: &[&str]| claim.str_at(path).unwrap_or_default().to_owned();
    let has_new = claim.at(&["spec", "dataSourceRef"]).is_some_and(Value::is_object);
    let known = matches!(
        (
            of(claim, &["spec", "dataSource", "apiGroup"]).as_str(),
            of(claim, &["spec", "dataSource", "kind"]).as_str()
        ),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    let crosses = !of(claim, &["spec", "dataSourceRef", "namespace"]).is_empty();
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if crosses {
        spec.remove("dataSourceRef");
    }
    if !known && (crosses || !has_new) {
        spec.remove("dataSource");
    }
}
