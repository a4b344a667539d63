//! Admission and conversion webhooks whose backend is a Service of the cluster: reachable exactly if
//! something Ready stands behind it, answering as the rules say.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tiphys_apiserver::{ResourceId, Snapshot, WebhookBackend, WebhookCall};
use tiphys_policy::{Namespace, Policies};
use tiphys_value::ObjectExt;

use crate::{
    Behaviours,
    behaviour::{CONFIG_MAP, WebhookAnswer},
    labels::service_key,
};

/// Answers webhooks for the API server.
pub(crate) struct Webhooks {
    base: Behaviours,
    /// The rules of the ConfigMap at a revision, so that they are not read for every call.
    read: Mutex<Option<(String, Arc<Behaviours>)>>,
}

impl Webhooks {
    pub(crate) fn new(base: Behaviours) -> Self {
        Self { base, read: Mutex::new(None) }
    }

    fn rules(&self, snapshot: &Snapshot) -> Arc<Behaviours> {
        let found = snapshot.get(&ResourceId::new("", "configmaps"), CONFIG_MAP.0, CONFIG_MAP.1);
        let version = found.map(|object| object.resource_version().to_owned()).unwrap_or_default();
        let mut read = self.read.lock();
        if let Some((_, rules)) = read.as_ref().filter(|(known, _)| *known == version) {
            return Arc::clone(rules);
        }
        let mut rules = found.and_then(|object| Behaviours::from_config_map(object).ok()).unwrap_or_default();
        rules.extend(self.base.clone());
        let rules = Arc::new(rules);
        *read = Some((version, Arc::clone(&rules)));
        rules
    }
}

impl WebhookBackend for Webhooks {
    fn call(&self, call: &WebhookCall<'_>) -> Result<Value, String> {
        let quoted = format!("Post \"{}\"", call.url);
        let service = call.webhook.at(&["clientConfig", "service"]);
        let Some(service) = service.filter(|service| service.is_object()) else {
            return Err(format!("{quoted}: webhooks outside of the cluster cannot be reached from here"));
        };
        let (namespace, name) = (
            service.str_at(&["namespace"]).unwrap_or_default(),
            service.str_at(&["name"]).unwrap_or_default(),
        );
        let port = service.int_at(&["port"]).unwrap_or(HTTPS);
        reach(call.snapshot, (namespace, name), port).map_err(|why| format!("{quoted}: {why}"))?;
        let rules = self.rules(call.snapshot);
        let webhook = call.webhook.str_at(&["name"]).unwrap_or_default();
        let rule = rules.webhooks.iter().find(|rule| rule.webhook.matches(webhook));
        if call.review["kind"] == "ConversionReview" {
            return converted(call.review, rule.map(|rule| &rule.answer), &quoted);
        }
        let uid = &call.review["request"]["uid"];
        let response = match rule.map(|rule| &rule.answer) {
            None if webhook.starts_with(KYVERNO) => match kyverno_denial(call) {
                Some(message) => json!({"uid": uid, "allowed": false, "status": {"message": message}}),
                None => json!({"uid": uid, "allowed": true}),
            },
            None | Some(WebhookAnswer::Allow {}) => json!({"uid": uid, "allowed": true}),
            Some(WebhookAnswer::Deny { message }) => {
                json!({"uid": uid, "allowed": false, "status": {"message": message}})
            }
            Some(WebhookAnswer::Patch { operations }) => {
                let patch = STANDARD.encode(operations.to_string());
                json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": patch})
            }
            Some(WebhookAnswer::Timeout {}) => return Err(format!("{quoted}: context deadline exceeded")),
            Some(WebhookAnswer::Refuse {}) => return Err(format!("{quoted}: {REFUSED}")),
            Some(WebhookAnswer::UnknownAuthority {}) => {
                return Err(format!("{quoted}: {UNKNOWN_AUTHORITY}"));
            }
        };
        Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
    }
}

/// How the webhooks begin that Kyverno has for policies.
const KYVERNO: &str = "validate.kyverno.svc-";

/// What Kyverno says against an object, by the policies in the cluster. Updates are judged like new objects.
fn kyverno_denial(call: &WebhookCall<'_>) -> Option<String> {
    let object = call.review["request"].get("object").filter(|object| object.is_object())?;
    let of_kyverno = call.snapshot.resources().filter(|id| id.group() == "kyverno.io");
    let policies = of_kyverno.flat_map(|id| call.snapshot.list(id, None)).map(|policy| policy.value());
    let policies = Policies::from_objects(policies);
    let namespace = call.snapshot.get(&ResourceId::new("", "namespaces"), "", object.namespace());
    let labels = namespace.and_then(|namespace| namespace.value().at(&["metadata", "labels"]));
    policies.kyverno_denial(object, Namespace::Labels(labels))
}

/// What a conversion webhook answers: the objects in the other version, with the same fields.
fn converted(review: &Value, answer: Option<&WebhookAnswer>, quoted: &str) -> Result<Value, String> {
    let uid = &review["request"]["uid"];
    let response = match answer {
        None | Some(WebhookAnswer::Allow {} | WebhookAnswer::Patch { .. }) => {
            let mut objects = review["request"]["objects"].as_array().cloned().unwrap_or_default();
            for object in &mut objects {
                object["apiVersion"] = review["request"]["desiredAPIVersion"].clone();
            }
            json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects})
        }
        Some(WebhookAnswer::Deny { message }) => {
            json!({"uid": uid, "result": {"status": "Failure", "message": message}, "convertedObjects": []})
        }
        Some(WebhookAnswer::Timeout {}) => return Err(format!("{quoted}: context deadline exceeded")),
        Some(WebhookAnswer::Refuse {}) => return Err(format!("{quoted}: {REFUSED}")),
        Some(WebhookAnswer::UnknownAuthority {}) => return Err(format!("{quoted}: {UNKNOWN_AUTHORITY}")),
    };
    Ok(json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}))
}

/// What is said where nobody listens.
const REFUSED: &str = "dial tcp: connect: connection refused";

/// What TLS says of a certificate that nobody vouches for.
const UNKNOWN_AUTHORITY: &str =
    "tls: failed to verify certificate: x509: certificate signed by unknown authority";

/// The port of a webhook's Service that is called if the webhook names none.
const HTTPS: i64 = 443;

/// Why nothing answers behind a port of a Service: it does not exist, does not have the port, has no
/// endpoints, or none of them is Ready.
fn reach(snapshot: &Snapshot, (namespace, name): (&str, &str), port: i64) -> Result<(), String> {
    let Some(service) = snapshot.get(&ResourceId::new("", "services"), namespace, name) else {
        return Err(format!("service \"{name}\" not found"));
    };
    let mut ports = service.at(&["spec", "ports"]).and_then(Value::as_array).into_iter().flatten();
    if !ports.any(|it| it.int_at(&["port"]) == Some(port)) {
        return Err(format!("no service port {port} found for service \"{name}\""));
    }
    let id = ResourceId::new("discovery.k8s.io", "endpointslices");
    let slices = snapshot.list(&id, Some(namespace)).filter(|slice| service_key(slice) == Some(name));
    let is_ready = |endpoint: &Value| endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false));
    let mut endpoints =
        slices.flat_map(|slice| slice.get("endpoints").and_then(Value::as_array).into_iter().flatten());
    match endpoints.any(is_ready) {
        true => Ok(()),
        false => Err(format!("no endpoints available for service \"{name}\"")),
    }
}
