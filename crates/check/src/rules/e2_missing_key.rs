//! # A pod names a key that its ConfigMap or Secret does not have
//!
//! The object is there, and the key is not: it was renamed in one of the two places, or the ExternalSecret
//! writes other keys. The container is not started.
//!
//! Custom resources that name a key of a Secret are looked at too.
//!
//! Keys are known where one ConfigMap or Secret is rendered, and where one ExternalSecret or SealedSecret
//! lists all that it writes. Where a controller fills the object, nothing is said.
//!
//! People see: `CreateContainerConfigError: couldn't find key DB_PASSWORD in Secret shop/web`, `references
//! non-existent config key: app.yaml`.
//!
//! ## Bad
//! ```yaml
//! env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: web, key: tokn}}}]
//! ```
//! ## Good
//! ```yaml
//! env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: web, key: token}}}]
//! ```
//! ## When to suppress
//! Where something else adds the key.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Object, edges::CreationPolicy};
use tiphys_schema::Catalog;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        placeholders,
        pods::{Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-missing-key",
    incident: "E2",
    severity: Severity::Error,
    title: "a pod names a key that its ConfigMap or Secret does not have",
    page: page!("e2_missing_key.rs"),
    check,
};

/// A key of an object that a container cannot start without.
struct Wanted<'a> {
    kind: &'static str,
    name: &'a str,
    key: &'a str,
    path: FieldPath,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for pod in &cluster.pods {
            for wanted in required_keys(pod) {
                let Some((source, keys)) = keys_of(context, pod.object, &wanted) else { continue };
                if !keys.contains(&wanted.key) {
                    let what = format!("{} {} {}", wanted.kind, wanted.name, wanted.key);
                    once.add_by(what, finding(context, pod.object, &wanted, source, &keys));
                }
            }
        }
    }
    of_resources(context, &mut once);
    once.report(report);
}

/// Custom resources that name a key of a Secret, as many operators have them: `{name, key}` in a field with
/// `secret` in its name.
fn of_resources(context: &Context<'_>, once: &mut Once) {
    for object in
        context.survey.objects.iter().filter(|it| it.environment.is_some() && !it.key.namespace.is_empty())
    {
        let is_custom =
            object.key.group.contains('.') && Catalog::latest().kind(&object.value().gvk()).is_none();
        if !is_custom || object.key.group == "external-secrets.io" {
            continue;
        }
        let mut found = Vec::new();
        gather(object.value(), "", &FieldPath::default(), &mut found, 0);
        for wanted in found {
            let Some((source, keys)) = keys_of(context, object, &wanted) else { continue };
            if !keys.contains(&wanted.key) {
                let what = format!("{} {} {}", wanted.kind, wanted.name, wanted.key);
                let mut finding = finding(context, object, &wanted, source, &keys).likely();
                finding.diagnostic.severity = Severity::Warning;
                finding.diagnostic.mechanism =
                    "its controller finds no value under the key, and does not go on".into();
                once.add_by(what, finding);
            }
        }
    }
}

fn gather<'a>(value: &'a Value, field: &str, path: &FieldPath, found: &mut Vec<Wanted<'a>>, depth: usize) {
    const MAX_DEPTH: usize = 64;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            let (name, key) = (text(value, "name"), text(value, "key"));
            let is_named = field.to_ascii_lowercase().contains("secret") && map.len() <= 3;
            // Where it may be in another namespace, nothing is known of it.
            if is_named
                && !name.is_empty()
                && !key.is_empty()
                && !map.contains_key("namespace")
                && value["optional"] != true
            {
                found.push(Wanted { kind: "Secret", name, key, path: path.key("key") });
            }
            map.iter()
                .for_each(|(field, inner)| gather(inner, field, &path.key(field.as_str()), found, depth + 1));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, inner)| gather(inner, field, &path.index(at), found, depth + 1));
        }
        _ => {}
    }
}

fn required_keys<'a>(pod: &Pod<'a>) -> Vec<Wanted<'a>> {
    let mut found = Vec::new();
    for container in pod.containers() {
        for (at, variable) in list(container.value, "env").iter().enumerate() {
            let Some(from) = variable.get("valueFrom") else { continue };
            let path = container.path.key("env").index(at).key("valueFrom");
            for (field, kind) in [("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")] {
                let Some(reference) = from.get(field).filter(|it| it["optional"] != true) else { continue };
                let (name, key) = (text(reference, "name"), text(reference, "key"));
                found.push(Wanted { kind, name, key, path: path.key(field).key("key") });
            }
        }
    }
    for (at, volume) in list(pod.spec(), "volumes").iter().enumerate() {
        for (field, kind, name) in [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")] {
            let Some(source) = volume.get(field).filter(|it| it["optional"] != true) else { continue };
            let path = pod.spec_path().key("volumes").index(at).key(field).key("items");
            for (index, item) in list(source, "items").iter().enumerate() {
                let (name, key) = (text(source, name), text(item, "key"));
                found.push(Wanted { kind, name, key, path: path.index(index).key("key") });
            }
        }
    }
    found.retain(|it| !it.name.is_empty() && !it.key.is_empty() && !placeholders::is_in(it.key));
    found
}

/// What makes an object, and all keys that it has; nothing if they are not known for sure.
fn keys_of<'a>(
    context: &Context<'a>,
    near: &Object,
    wanted: &Wanted<'_>,
) -> Option<(&'a Object, Vec<&'a str>)> {
    let key = ResourceKey::new("", wanted.kind, &near.key.namespace, wanted.name);
    let edges = &context.analyses().edges;
    let survey = context.survey;
    match (edges.index.objects_at(near, &key), edges.products(near, &key)) {
        ([only], []) => {
            let object = survey.object(*only);
            let fields: &[&[&str]] = if wanted.kind == "Secret" {
                &[&["data"], &["stringData"]]
            } else {
                &[&["data"], &["binaryData"]]
            };
            let keys: Vec<&str> = fields.iter().flat_map(|field| names_at(object, field)).collect();
            Some((object, keys)).filter(|(object, keys)| is_whole(object, keys))
        }
        ([], [product]) if product.policy != CreationPolicy::Merged => {
            let object = survey.object(product.from);
            let keys = written(object)?;
            Some((object, keys)).filter(|(_, keys)| !keys.is_empty())
        }
        _ => None,
    }
}

fn names_at<'a>(object: &'a Object, keys: &[&str]) -> impl Iterator<Item = &'a str> + use<'a> {
    let map = object.value().at(keys).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, _)| key.as_str())
}

/// Whether an object's keys are its own: it has some, and no controller is asked to add others.
fn is_whole(object: &Object, keys: &[&str]) -> bool {
    const MARKS: [&str; 5] = ["inject", "reflect", "replicat", "merge", "avp.kubernetes.io"];
    let metadata = &object.value()["metadata"];
    let marks = ["labels", "annotations"].into_iter().filter_map(|field| metadata[field].as_object());
    let mut marks = marks.flat_map(|map| map.keys());
    !keys.is_empty()
        && object.value().get("sops").is_none()
        && !marks.any(|key| MARKS.iter().any(|mark| key.contains(mark)))
}

/// The keys that a controller writes; nothing if the object does not list them all.
fn written(maker: &Object) -> Option<Vec<&str>> {
    let value = maker.value();
    let keys: Vec<&str> = match maker.key.kind.as_str() {
        "SealedSecret" => {
            let template = names_at(maker, &["spec", "template", "data"]);
            names_at(maker, &["spec", "encryptedData"]).chain(template).collect()
        }
        "ExternalSecret" => {
            let template = value.at(&["spec", "target", "template"]);
            let data = || list(&value["spec"], "data").iter().map(|item| text(item, "secretKey"));
            if value["spec"]
                .get("dataFrom")
                .is_some_and(|from| from.as_array().is_none_or(|it| !it.is_empty()))
            {
                return None;
            }
            match template {
                Some(template) if template.get("templateFrom").is_some() => return None,
                Some(template) if template.get("data").is_some() => {
                    let merged = text(template, "mergePolicy") == "Merge";
                    names_at(maker, &["spec", "target", "template", "data"])
                        .chain(data().filter(|_| merged))
                        .collect()
                }
                _ => data().collect(),
            }
        }
        _ => return None,
    };
    (!keys.iter().any(|key| placeholders::is_in(key))).then_some(keys)
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    wanted: &Wanted<'_>,
    source: &Object,
    keys: &[&str],
) -> Finding {
    const SHOWN: usize = 8;
    let Wanted { kind, name, key, .. } = wanted;
    let mut listed = keys.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if keys.len() > SHOWN {
        listed.push_str(", …");
    }
    let diagnostic = RULE
        .diagnostic(format!(
            "{} needs key {key} of {kind}/{name}, which has none of this name",
            object.title()
        ))
        .at(context.survey.span(object, &wanted.path), "no such key")
        .see(context.survey.start(source), format!("its keys are {listed}"))
        .because(format!(
            "the kubelet does not start the container: `couldn't find key {key} in {kind} {}/{name}`",
            object.key.namespace
        ));
    RULE.finding(context, object, diagnostic)
        .perhaps(key, similar_names::nearest_slip(key, keys.iter().copied()))
}
