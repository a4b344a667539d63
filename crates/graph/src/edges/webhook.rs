//! What the API server calls: admission webhooks, conversion webhooks, aggregated APIs; and which objects
//! an admission webhook is asked about.

use tiphys_schema::{Catalog, LabelSelector};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value, json};

use super::{edge::EdgeKind, index::Index, out::Out, path::path};
use crate::Object;

pub(super) fn add(out: &mut Out<'_, '_>) {
    let object = out.object.value();
    match object.kind() {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for webhook in webhooks(object) {
                let Some((namespace, name)) = webhook.service() else { continue };
                let field = webhook.field.key("clientConfig");
                out.add(EdgeKind::Calls, service(namespace, name), field, !webhook.fails_closed());
            }
        }
        "CustomResourceDefinition" => {
            add_service(out, &["spec", "conversion", "webhook", "clientConfig", "service"]);
        }
        "APIService" => add_service(out, &["spec", "service"]),
        _ => {}
    }
}

fn service(namespace: &str, name: &str) -> ResourceKey {
    ResourceKey::new("", "Service", namespace, name)
}

fn add_service(out: &mut Out<'_, '_>, keys: &[&str]) {
    let Some(of) = out.object.value().at(keys) else { return };
    let (Some(namespace), Some(name)) = (of.str_at(&["namespace"]), of.str_at(&["name"])) else { return };
    out.add(EdgeKind::Calls, service(namespace, name), path(keys), false);
}

/// One entry of a webhook configuration.
pub struct Webhook<'a> {
    /// The entry.
    pub value: &'a Value,
    /// Its path in the configuration.
    pub field: FieldPath,
}

/// The entries of a webhook configuration.
pub fn webhooks(configuration: &Value) -> Vec<Webhook<'_>> {
    let entries = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    entries.enumerate().map(|(at, value)| Webhook { value, field: path(&["webhooks"]).index(at) }).collect()
}

impl Webhook<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        self.value.str_at(&["name"]).unwrap_or_default()
    }

    /// Whether a call that fails refuses the object.
    pub fn fails_closed(&self) -> bool {
        self.value.str_at(&["failurePolicy"]) != Some("Ignore")
    }

    /// Namespace and name of the Service that is called; `None` for one outside the cluster.
    pub fn service(&self) -> Option<(&str, &str)> {
        let of = self.value.at(&["clientConfig", "service"])?;
        Some((of.str_at(&["namespace"])?, of.str_at(&["name"])?))
    }

    /// Whether the API server asks it when an object is created. An expression (`matchConditions`) is
    /// not evaluated: it is taken to leave the object out.
    pub fn asks_about(&self, index: &Index<'_>, object: &Object) -> bool {
        let labels = object.value().at(&["metadata", "labels"]).unwrap_or(&Value::Null);
        self.asks(index, object, &resource_of(index, object), labels)
    }

    /// Whether the API server asks it when a workload's pods are created.
    pub fn asks_about_pods(&self, index: &Index<'_>, workload: &Object) -> bool {
        let Some((template, _)) = super::pod_template(workload.value()) else { return false };
        let pods = Resource { group: String::new(), version: "v1".into(), plural: "pods".into() };
        let labels = template.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
        self.asks(index, workload, &pods, labels)
    }

    fn asks(&self, index: &Index<'_>, object: &Object, resource: &Resource, labels: &Value) -> bool {
        let conditions = self.value.get("matchConditions").and_then(Value::as_array);
        if conditions.is_some_and(|list| !list.is_empty()) {
            return false;
        }
        // The API server never asks about the configurations themselves.
        if object.key.group == "admissionregistration.k8s.io" {
            return false;
        }
        let rules = self.value.get("rules").and_then(Value::as_array).into_iter().flatten();
        rules.into_iter().any(|rule| rule_matches(rule, resource, !object.key.namespace.is_empty()))
            && selects(self.value.get("objectSelector"), labels)
            && selects_namespace(self.value.get("namespaceSelector"), index, object)
    }
}

/// Where objects of a kind are served.
struct Resource {
    group: String,
    version: String,
    plural: String,
}

fn resource_of(index: &Index<'_>, object: &Object) -> Resource {
    let gvk = object.value().gvk();
    Resource { plural: plural_of(index, object), group: gvk.group, version: gvk.version }
}

/// The plural name of an object's kind: from the API server's tables, its definition, or else by rule.
pub fn plural_of(index: &Index<'_>, object: &Object) -> String {
    let gvk = object.value().gvk();
    if let Some(kind) = Catalog::latest().kind(&gvk) {
        return kind.plural.clone();
    }
    let definitions = index.definitions(object, &gvk.group, &gvk.kind);
    let named = definitions
        .first()
        .and_then(|id| index.survey.object(*id).value().str_at(&["spec", "names", "plural"]));
    named.map_or_else(|| guessed_plural(&gvk.kind), str::to_owned)
}

fn guessed_plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match lower.as_bytes().last() {
        Some(b's' | b'x') => format!("{lower}es"),
        Some(b'y') if !lower.ends_with("ay") && !lower.ends_with("ey") => {
            format!("{}ies", &lower[..lower.len() - 1])
        }
        _ => format!("{lower}s"),
    }
}

fn rule_matches(rule: &Value, resource: &Resource, namespaced: bool) -> bool {
    let has = |list: &str, wanted: &str| {
        let entries = rule.get(list).and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(Value::as_str).any(|entry| entry == "*" || entry == wanted)
    };
    let everything = |list: &str| {
        let entries = rule.get(list).and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(Value::as_str).any(|entry| entry == "*/*")
    };
    let scope = match rule.str_at(&["scope"]) {
        Some("Namespaced") => namespaced,
        Some("Cluster") => !namespaced,
        _ => true,
    };
    scope
        && has("operations", "CREATE")
        && has("apiGroups", &resource.group)
        // The API server converts to a version that the webhook asks for (`matchPolicy: Equivalent`).
        && (has("apiVersions", &resource.version) || rule.get("apiVersions").is_some())
        && (has("resources", &resource.plural) || everything("resources"))
}

/// Whether a selector that may be absent selects labels.
fn selects(selector: Option<&Value>, labels: &Value) -> bool {
    let Some(selector) = selector else { return true };
    LabelSelector::from_object(selector).ok().flatten().is_none_or(|selector| selector.matches(labels))
}

/// Whether a namespace selector selects an object's namespace. Labels of a namespace that is not rendered
/// are those that every namespace has. It does not restrict objects without a namespace.
fn selects_namespace(selector: Option<&Value>, index: &Index<'_>, object: &Object) -> bool {
    let own = if object.value().kind() == "Namespace" { &object.key.name } else { &object.key.namespace };
    if own.is_empty() {
        return true;
    }
    let key = ResourceKey::new("", "Namespace", "", own);
    let rendered = index.objects_at(object, &key).first().map(|id| index.survey.object(*id));
    let labels = rendered.and_then(|it| it.value().at(&["metadata", "labels"]));
    let mut labels = labels.cloned().unwrap_or_else(|| json!({}));
    if let Some(map) = labels.as_object_mut() {
        map.insert("kubernetes.io/metadata.name".into(), own.as_str().into());
    }
    selects(selector, &labels)
}
