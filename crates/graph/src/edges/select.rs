//! What finds pods by their labels, or names a workload to act upon.

use tiphys_schema::LabelSelector;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::{edge::EdgeKind, index::pod_template, out::Out, path::path};

pub(super) fn add(out: &mut Out<'_, '_>) {
    let object = out.object.value();
    let keys: &[&str] = match object.kind() {
        "Service" if object.api_version() == "v1" => {
            let labels =
                object.at(&["spec", "selector"]).filter(|it| it.as_object().is_some_and(|m| !m.is_empty()));
            let Some(labels) = labels else { return };
            return add_selected(out, &LabelSelector::from_labels(labels), &["spec", "selector"]);
        }
        "PodDisruptionBudget" => &["spec", "selector"],
        "NetworkPolicy" => &["spec", "podSelector"],
        "HorizontalPodAutoscaler" => return add_scaled(out),
        "RoleBinding" | "ClusterRoleBinding" => return add_bound(out),
        _ => return,
    };
    let selector = object.at(keys).and_then(|it| LabelSelector::from_object(it).ok().flatten());
    if let Some(selector) = selector {
        add_selected(out, &selector, keys);
    }
}

fn add_selected(out: &mut Out<'_, '_>, selector: &LabelSelector, keys: &[&str]) {
    let (index, object) = (out.index, out.object);
    let (survey, namespace) = (index.survey, &object.key.namespace);
    // Of what every match must have, the label that the fewest have.
    let one_of = selector.required_labels();
    let fewest = one_of.map(|label| index.labelled(object, namespace, label));
    let fewest = fewest.min_by_key(|found| found.len());
    let candidates = fewest.unwrap_or_else(|| index.workloads(object, namespace));
    for id in candidates.iter().copied() {
        let labels =
            pod_template(survey.object(id).value()).and_then(|(it, _)| it.at(&["metadata", "labels"]));
        if selector.matches(labels.unwrap_or(&Value::Null)) {
            out.add_to(EdgeKind::Selects, id, path(keys));
        }
    }
}

fn add_scaled(out: &mut Out<'_, '_>) {
    let Some(of) = out.object.value().at(&["spec", "scaleTargetRef"]) else { return };
    let key = ResourceKey::new(
        of.gvk().group,
        of.kind(),
        &out.object.key.namespace,
        of.str_at(&["name"]).unwrap_or_default(),
    );
    out.add(EdgeKind::Scales, key, path(&["spec", "scaleTargetRef"]), false);
}

fn add_bound(out: &mut Out<'_, '_>) {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let object = out.object.value();
    if let (Some(kind), Some(name)) =
        (object.str_at(&["roleRef", "kind"]), object.str_at(&["roleRef", "name"]))
    {
        let namespace = if kind == "Role" { out.object.key.namespace.as_str() } else { "" };
        let key = ResourceKey::new(RBAC, kind, namespace, name);
        out.add(EdgeKind::Binds, key, path(&["roleRef"]), false);
    }
    let subjects = object.get("subjects").and_then(Value::as_array).into_iter().flatten();
    for (at, subject) in subjects.enumerate().filter(|(_, it)| it.kind() == "ServiceAccount") {
        let (namespace, name) = (subject.str_at(&["namespace"]), subject.str_at(&["name"]));
        let namespace = namespace.unwrap_or(&out.object.key.namespace);
        let key = ResourceKey::new("", "ServiceAccount", namespace, name.unwrap_or_default());
        out.add(EdgeKind::Binds, key, path(&["subjects"]).index(at), true);
    }
}
