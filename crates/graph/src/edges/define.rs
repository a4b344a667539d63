//! What has to be there before an object can be stored or served: the definition of its kind, its
//! namespace; and what its controller needs: a secret store, an issuer, a project.

use tiphys_model::names;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey};

use super::{EdgeKind, Out, Target, path};

pub fn add(out: &mut Out<'_, '_>) {
    let key = &out.object.key;
    for id in out.index.definitions(out.object, &key.group, &key.kind).to_vec() {
        out.add_to(EdgeKind::DefinedBy, id, path(&["kind"]));
    }
    if !key.namespace.is_empty() {
        let namespace = ResourceKey::new("", "Namespace", "", &key.namespace);
        for id in out.index.at(out.object, &namespace).to_vec() {
            out.add_to(EdgeKind::LivesIn, id, path(&["metadata", "namespace"]));
        }
    }
    match (key.group.as_str(), key.kind.as_str()) {
        ("external-secrets.io", "ExternalSecret") => {
            add_reference(out, &["spec", "secretStoreRef"], "SecretStore");
        }
        ("cert-manager.io", "Certificate") => add_reference(out, &["spec", "issuerRef"], "Issuer"),
        (names::GROUP, "Application") => add_project(out),
        _ => {}
    }
}

/// A reference `{kind, name}` to an object of the same namespace, or to one of a cluster-wide kind, whose
/// name begins with `Cluster`.
fn add_reference(out: &mut Out<'_, '_>, keys: &[&str], default: &str) {
    let Some(reference) = out.object.value().at(keys) else { return };
    let Some(name) = reference.str_at(&["name"]) else { return };
    let kind = reference.str_at(&["kind"]).unwrap_or(default);
    let field = path(keys);
    let found: Vec<_> = out
        .index
        .named(out.object, kind, name)
        .iter()
        .copied()
        .filter(|id| {
            kind.starts_with("Cluster")
                || out.index.survey.object(*id).key.namespace == out.object.key.namespace
        })
        .collect();
    if found.is_empty() {
        let namespace = if kind.starts_with("Cluster") { "" } else { &out.object.key.namespace };
        let key = ResourceKey::new(&out.object.key.group, kind, namespace, name);
        let edge = super::Edge {
            from: out.object.id,
            to: Target::Named(key),
            kind: EdgeKind::Needs,
            field,
            optional: false,
        };
        return out.edges.push(edge);
    }
    for id in found {
        out.add_to(EdgeKind::Needs, id, field.clone());
    }
}

fn add_project(out: &mut Out<'_, '_>) {
    let project = out.object.value().str_at(&["spec", "project"]).unwrap_or_default();
    if matches!(project, "" | "default") {
        return;
    }
    let key = out.near(names::GROUP, "AppProject", project);
    let field: FieldPath = path(&["spec", "project"]);
    out.add(EdgeKind::Needs, key, field, false);
}
