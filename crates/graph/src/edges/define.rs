//! What has to be there before an object can be stored or served: the definition of its kind, its
//! namespace; and what its controller needs: a secret store, an issuer, a project.

use tiphys_model::names;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use super::{
    edge::{EdgeKind, Target},
    out::Out,
    path::path,
};

pub(super) fn add(out: &mut Out<'_, '_>) {
    let key = &out.object.key;
    for id in out.index.definitions(out.object, &key.group, &key.kind).to_vec() {
        out.add_to(EdgeKind::DefinedBy, id, path(&["kind"]));
    }
    if !key.namespace.is_empty() {
        let namespace = ResourceKey::new("", "Namespace", "", &key.namespace);
        for id in out.index.objects_at(out.object, &namespace).to_vec() {
            out.add_to(EdgeKind::LivesIn, id, path(&["metadata", "namespace"]));
        }
    }
    match (key.group.as_str(), key.kind.as_str()) {
        ("external-secrets.io", "ExternalSecret") => {
            add_reference(out, &["spec", "secretStoreRef"], "SecretStore");
        }
        ("external-secrets.io", "PushSecret") => {
            let stores = out.object.value().at(&["spec", "secretStoreRefs"]).and_then(Value::as_array);
            for at in 0..stores.map_or(0, Vec::len) {
                add_reference_at(out, &path(&["spec", "secretStoreRefs"]).index(at), "SecretStore");
            }
        }
        ("cert-manager.io", "Certificate") => add_reference(out, &["spec", "issuerRef"], "Issuer"),
        (names::GROUP, "Application") => add_project(out),
        ("gateway.networking.k8s.io", "Gateway") => add_gateway(out),
        ("postgresql.cnpg.io", "Cluster") => add_database(out),
        _ => {}
    }
}

/// A reference `{kind, name}` to an object of the same namespace, or to one of a cluster-wide kind, whose
/// name begins with `Cluster`.
fn add_reference(out: &mut Out<'_, '_>, keys: &[&str], default: &str) {
    add_reference_at(out, &path(keys), default);
}

fn add_reference_at(out: &mut Out<'_, '_>, field: &FieldPath, default: &str) {
    let Some(reference) = field.get(out.object.value()) else { return };
    let Some(name) = reference.str_at(&["name"]) else { return };
    let kind = reference.str_at(&["kind"]).unwrap_or(default);
    let found: Vec<_> = out
        .index
        .objects_named(out.object, kind, name)
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
            field: field.clone(),
            optional: false,
        };
        return out.edges.push(edge);
    }
    for id in found {
        out.add_to(EdgeKind::Needs, id, field.clone());
    }
}

/// A Gateway is programmed once its class and the certificates of its listeners are there (Gateway API,
/// "Gateway").
fn add_gateway(out: &mut Out<'_, '_>) {
    let object = out.object.value();
    if let Some(class) = object.str_at(&["spec", "gatewayClassName"]) {
        let key = ResourceKey::new("gateway.networking.k8s.io", "GatewayClass", "", class);
        out.add(EdgeKind::Needs, key, path(&["spec", "gatewayClassName"]), false);
    }
    let listeners = object.at(&["spec", "listeners"]).and_then(Value::as_array).into_iter().flatten();
    for (at, listener) in listeners.enumerate() {
        let certificates = listener.at(&["tls", "certificateRefs"]).and_then(Value::as_array);
        for (index, certificate) in certificates.into_iter().flatten().enumerate() {
            let is_secret = certificate.str_at(&["kind"]).is_none_or(|kind| kind == "Secret");
            let (true, Some(name)) = (is_secret, certificate.str_at(&["name"])) else { continue };
            let namespace = certificate.str_at(&["namespace"]).unwrap_or(&out.object.key.namespace);
            let key = ResourceKey::new("", "Secret", namespace, name);
            let listener = path(&["spec", "listeners"]).index(at);
            let field = listener.key("tls").key("certificateRefs").index(index);
            out.add(EdgeKind::Needs, key, field, false);
        }
    }
}

/// A PostgreSQL cluster comes up once the Secrets with its credentials and its backup store are there
/// (CloudNativePG docs, "API Reference").
fn add_database(out: &mut Out<'_, '_>) {
    const SECRETS: [&[&str]; 4] = [
        &["spec", "superuserSecret", "name"],
        &["spec", "bootstrap", "initdb", "secret", "name"],
        &["spec", "bootstrap", "recovery", "secret", "name"],
        &["spec", "bootstrap", "pg_basebackup", "secret", "name"],
    ];
    let object = out.object.value();
    for keys in SECRETS {
        if let Some(name) = object.str_at(keys) {
            out.add(EdgeKind::Needs, out.near("", "Secret", name), path(keys), false);
        }
    }
    let plugins = object.at(&["spec", "plugins"]).and_then(Value::as_array).into_iter().flatten();
    for (at, plugin) in plugins.enumerate() {
        let Some(name) = plugin.str_at(&["parameters", "barmanObjectName"]) else { continue };
        let field = path(&["spec", "plugins"]).index(at).key("parameters").key("barmanObjectName");
        out.add(EdgeKind::Needs, out.near("barmancloud.cnpg.io", "ObjectStore", name), field, false);
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
