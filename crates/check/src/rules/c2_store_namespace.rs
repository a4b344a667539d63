//! # A SecretStore reaches into another namespace
//!
//! A SecretStore of External Secrets serves one namespace, and may read credentials and service accounts of
//! that one alone: a reference in it may not say another namespace. The webhook of External Secrets refuses
//! it, and where that does not run the store is never ready. Only a ClusterSecretStore names namespaces; and
//! where it takes the certificates of an authority from a Secret or a ConfigMap, it has to.
//!
//! People see: `namespace should either be empty or match the namespace of the SecretStore for a namespaced
//! SecretStore`, `SecretStore "aws" is not ready`, and ExternalSecrets with `SecretSyncedError`; `missing
//! namespace on caProvider secret` at a ClusterSecretStore.
//!
//! ## Bad
//! ```yaml
//! kind: SecretStore
//! metadata: {name: aws, namespace: shop}
//! spec: {provider: {aws: {auth: {jwt: {serviceAccountRef: {name: external-secrets, namespace: external-secrets}}}}}}
//! ```
//! ## Good
//! ```yaml
//! kind: ClusterSecretStore
//! metadata: {name: aws}
//! spec: {provider: {aws: {auth: {jwt: {serviceAccountRef: {name: external-secrets, namespace: external-secrets}}}}}}
//! ```
//! ## When to suppress
//! Never: use a ClusterSecretStore, or bring the credentials into the store's own namespace.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, pods::text, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-store-namespace",
    incident: "C2",
    severity: Severity::Warning,
    title: "a SecretStore that reaches into another namespace, or one for a cluster into none",
    page: page!("c2_store_namespace.rs"),
    check,
};

/// How deep the fields of a provider are looked through.
const MAX_DEPTH: usize = 16;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        homeless(context, object, &mut once);
        let is_store = object.key.kind == "SecretStore" && object.key.group == "external-secrets.io";
        let own = object.key.namespace.as_str();
        if !is_store
            || own.is_empty()
            || placeholders::is_in(own)
            || unrendered_files::is_from_unused_chart(context.survey, object)
            || unrendered_files::may_be_a_patch(context.survey, object)
        {
            continue;
        }
        let mut found = Vec::new();
        references(&object.value()["spec"]["provider"], keys(&["spec", "provider"]), 0, &mut found);
        let mut others = found.into_iter().filter(|(_, named)| *named != own && !placeholders::is_in(named));
        let Some((path, named)) = others.next() else { continue };
        let what = format!("{} refers to namespace {named}, and may only refer to its own", object.title());
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(context.survey.span(object, &path), "another namespace")
            .because("External Secrets refuses it: namespace should either be empty or match the namespace of the SecretStore for a namespaced SecretStore")
            .help(format!("make it a ClusterSecretStore, or bring what it names into {own} and leave the namespace out"));
        once.add(&what, RULE.finding(context, object, diagnostic));
    }
    once.report(report);
}

/// Judges the authority of a ClusterSecretStore, which lives in no namespace that could be meant.
fn homeless(context: &Context<'_>, object: &Object, once: &mut Once) {
    let is_store = object.key.kind == "ClusterSecretStore" && object.key.group == "external-secrets.io";
    if !is_store
        || unrendered_files::is_from_unused_chart(context.survey, object)
        || unrendered_files::may_be_a_patch(context.survey, object)
    {
        return;
    }
    let mut found = Vec::new();
    authorities(&object.value()["spec"]["provider"], keys(&["spec", "provider"]), 0, &mut found);
    for (path, authority) in found {
        if !authority["namespace"].is_null() {
            continue;
        }
        let (kind, name) = (text(authority, "type"), text(authority, "name"));
        let what = format!("{} cannot read its authority: missing namespace on caProvider", object.title());
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(context.survey.span(object, &path.key("name")), format!("{kind} {name} of which namespace?"))
            .because("a ClusterSecretStore has no namespace of its own; the store is not ready without it")
            .help(format!("add namespace: that of {kind} {name}"));
        once.add(&what, RULE.finding(context, object, diagnostic));
    }
}

/// Where a provider takes the certificates of an authority from, each with its place.
fn authorities<'a>(value: &'a Value, path: FieldPath, depth: usize, found: &mut Vec<(FieldPath, &'a Value)>) {
    let Some(map) = value.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    for (key, below) in map {
        if key == "caProvider" && !text(below, "name").is_empty() {
            found.push((path.key(key), below));
        } else {
            authorities(below, path.key(key), depth + 1, found);
        }
    }
}

/// The namespaces of references (`serviceAccountRef`, `…SecretRef`, `caProvider`), each with its place.
fn references<'a>(value: &'a Value, path: FieldPath, depth: usize, found: &mut Vec<(FieldPath, &'a str)>) {
    let Some(map) = value.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    // A provider may have namespaces of its own: Vault's, of a path. Those have neither a name nor a key
    // beside them.
    if map.contains_key("name")
        && let Some(namespace) = map.get("namespace").and_then(Value::as_str)
    {
        found.push((path.key("namespace"), namespace));
    }
    for (key, below) in map {
        references(below, path.key(key), depth + 1, found);
    }
}
