//! What known operators need for a custom resource and what they make of it: a pod that waits for a Secret
//! shows the Certificate that is to make it, and that one the issuer that is not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause;
use tiphys_diag::similar_names::{nearest_slip_beside_numbers, similar};
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::{
    Behaviours,
    behaviour::{Operator, runs_image},
};

/// The operators that are known: the list is long to read.
static OPERATORS: LazyLock<Vec<Operator>> = LazyLock::new(|| Behaviours::builtin().operators);

/// What custom resources that are not well would have made, by what is made.
#[derive(Debug, Default)]
pub(crate) struct Products {
    makers: BTreeMap<ResourceKey, BTreeSet<ResourceKey>>,
}

impl Products {
    /// Takes up what is to be made of an object, if it is one of a known operator.
    pub(crate) fn add(&mut self, object: &Value) {
        for operator in operators_of(object) {
            for product in operator.product_keys(object) {
                self.makers.entry(product).or_default().insert(object.resource_key());
            }
        }
    }

    /// Who is to make any of these.
    pub(crate) fn makers(&self, of: &BTreeSet<ResourceKey>) -> Vec<ResourceKey> {
        of.iter().filter_map(|key| self.makers.get(key)).flatten().cloned().collect()
    }
}

/// What a custom resource names that is not there, in words and as a cause.
pub(crate) fn missing_reference(object: &Value, snapshot: &Snapshot) -> Option<(String, Cause, ResourceKey)> {
    let needed = operators_of(object).flat_map(|operator| operator.needed_keys(object)).collect::<Vec<_>>();
    needed.into_iter().find_map(|(key, may_be_elsewhere)| {
        let there = names_of_kind(snapshot, &key);
        let names = || there.iter().map(String::as_str);
        let is_slip = nearest_slip_beside_numbers(&key.name, names()).is_some();
        if there.contains(&key.name) || (may_be_elsewhere && !is_slip) {
            return None;
        }
        let near = similar(&key.name, names());
        let near = match near.is_empty() {
            true => String::new(),
            false => format!("; there is {}", near.join(", ")),
        };
        let text = format!("it names {} {:?}, which does not exist{near}", key.kind, key.name);
        let id = match key.kind.as_str() {
            "Issuer" | "ClusterIssuer" => Cause::OperatorIssuer,
            "SecretStore" | "ClusterSecretStore" => Cause::OperatorSecretStore,
            _ => Cause::OperatorReference,
        };
        Some((text, id, key))
    })
}

/// What a custom resource names that is not there and is taken to be elsewhere.
pub(crate) fn assumed_references(object: &Value, snapshot: &Snapshot) -> Vec<ResourceKey> {
    let needed = operators_of(object).flat_map(|operator| operator.needed_keys(object));
    let elsewhere = needed.filter(|(key, may_be_elsewhere)| {
        *may_be_elsewhere && !names_of_kind(snapshot, key).contains(&key.name)
    });
    elsewhere.map(|(key, _)| key).collect()
}

/// Who is to look at an object and has not.
pub(crate) struct AbsentOperator {
    /// The operator's pods, which are not well.
    pub pods: Vec<ResourceKey>,
    /// The workload that is to run it and has no replicas.
    pub idle: Option<ResourceKey>,
}

/// Whether an object waits for an operator that has not looked at it: it is away.
pub(crate) fn absent_operator(object: &Value, snapshot: &Snapshot) -> Option<AbsentOperator> {
    let is_untouched =
        object.at(&["status"]).and_then(Value::as_object).is_none_or(|status| status.is_empty());
    let mut operators = operators_of(object).peekable();
    operators.peek().filter(|_| is_untouched)?;
    let images: Vec<_> = operators.filter_map(|operator| operator.image.as_ref()).collect();
    let pods = snapshot.list(&ResourceId::new("", "pods"), None).map(|pod| pod.value());
    let own = pods.filter(|pod| images.iter().any(|image| runs_image(pod, image)));
    let pods: Vec<ResourceKey> = own.map(ObjectExt::resource_key).collect();
    let workloads = ["deployments", "statefulsets"].into_iter();
    let mut workloads = workloads.flat_map(|plural| snapshot.list(&ResourceId::new("apps", plural), None));
    let is_idle = |workload: &Value| {
        let template = workload.at(&["spec", "template"]);
        workload.int_at(&["spec", "replicas"]) == Some(0)
            && template.is_some_and(|pod| images.iter().any(|image| runs_image(pod, image)))
    };
    let idle = workloads.find(|workload| pods.is_empty() && is_idle(workload.value()));
    Some(AbsentOperator { idle: idle.map(|workload| workload.value().resource_key()), pods })
}

fn operators_of(object: &Value) -> impl Iterator<Item = &'static Operator> {
    let group = object.gvk().group;
    let kind = object.kind().to_owned();
    OPERATORS.iter().filter(move |operator| operator.group == group && operator.kind == kind)
}

/// The names of the objects of a kind, in a namespace or outside of namespaces.
fn names_of_kind(snapshot: &Snapshot, like: &ResourceKey) -> BTreeSet<String> {
    let all = snapshot.of_kind(&like.group, &like.kind);
    all.filter(|object| ["", &like.namespace].contains(&object.namespace()))
        .map(|object| object.name().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn a_secret_is_made_of_a_certificate() {
        let certificate = json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "shop"}, "spec": {"secretName": "web-tls"}});
        let mut products = Products::default();
        products.add(&certificate);
        products.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
        let made = ResourceKey::new("", "Secret", "shop", "web-tls");
        assert_eq!(products.makers.keys().collect::<Vec<_>>(), [&made]);
        assert_eq!(products.makers[&made], BTreeSet::from([certificate.resource_key()]));
    }
}
