//! Where traffic goes: Ingress and the routes of the Gateway API.

use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use super::{edge::EdgeKind, out::Out, path::path};

const GATEWAY: &str = "gateway.networking.k8s.io";

pub(super) fn add(out: &mut Out<'_, '_>) {
    let key = &out.object.key;
    match (key.group.as_str(), key.kind.as_str()) {
        ("networking.k8s.io", "Ingress") => add_ingress(out),
        (GATEWAY, kind) if kind.ends_with("Route") => add_route(out),
        _ => {}
    }
}

fn add_ingress(out: &mut Out<'_, '_>) {
    let object = out.object.value();
    if let Some(name) = object.str_at(&["spec", "defaultBackend", "service", "name"]) {
        let field = path(&["spec", "defaultBackend", "service"]);
        out.add(EdgeKind::Routes, out.near("", "Service", name), field, false);
    }
    let rules = object.at(&["spec", "rules"]).and_then(Value::as_array).into_iter().flatten();
    for (rule, content) in rules.enumerate() {
        let paths = content.at(&["http", "paths"]).and_then(Value::as_array).into_iter().flatten();
        for (at, content) in paths.enumerate() {
            let Some(name) = content.str_at(&["backend", "service", "name"]) else { continue };
            let field =
                path(&["spec", "rules"]).index(rule).key("http").key("paths").index(at).key("backend");
            out.add(EdgeKind::Routes, out.near("", "Service", name), field, false);
        }
    }
}

fn add_route(out: &mut Out<'_, '_>) {
    let object = out.object.value();
    add_references(
        out,
        object.at(&["spec", "parentRefs"]),
        &path(&["spec", "parentRefs"]),
        GATEWAY,
        "Gateway",
    );
    let rules = object.at(&["spec", "rules"]).and_then(Value::as_array).into_iter().flatten();
    for (at, rule) in rules.enumerate() {
        let field = path(&["spec", "rules"]).index(at).key("backendRefs");
        add_references(out, rule.get("backendRefs"), &field, "", "Service");
    }
}

fn add_references(out: &mut Out<'_, '_>, list: Option<&Value>, at: &FieldPath, group: &str, kind: &str) {
    for (index, to) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(name) = to.str_at(&["name"]) else { continue };
        let namespace = to.str_at(&["namespace"]).unwrap_or(&out.object.key.namespace);
        let group = to.str_at(&["group"]).unwrap_or(group);
        let kind = to.str_at(&["kind"]).unwrap_or(kind);
        out.add(EdgeKind::Routes, ResourceKey::new(group, kind, namespace, name), at.index(index), false);
    }
}
