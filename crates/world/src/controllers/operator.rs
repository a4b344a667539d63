//! Operators: controllers of custom resources that are rules ([`Operator`]).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apiserver::{Object, why_account_may_not};
use tiphys_value::{GroupVersionResource, ObjectExt};

use super::{
    status_shape::fit,
    workload::{delete, is_ready},
};
use crate::{
    Awaited, Cause, Change, Controller, Key, Outcome, View, Write,
    behaviour::{Operator, Pattern, Policy, Product, Target, fill, runs_image},
    controller::Context,
    object::{
        MORE_KEYS, created_at, finalizers, is_controlled_by, owner_reference, remove_condition, resources,
        set_condition, status_of, with_status, without_finalizer,
    },
};

/// What is in a Secret of which only the keys are known: "simulated", encoded.
const SIMULATED: &str = "c2ltdWxhdGVk";
/// How long until what is missing is looked for again though nothing that it waits for has changed: a kind
/// may be served only now, and what is dropped on the way may get through.
const RETRY: Duration = Duration::from_secs(5 * 60);

/// Plays all operators. Its keys name a task: `GROUP/VERSION/RESOURCE/NAME`.
pub(super) struct OperatorController;

impl Controller for OperatorController {
    fn name(&self) -> &'static str {
        "operator"
    }

    fn manager(&self) -> &'static str {
        "operator"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        // A product that changed or went concerns the object it was made for.
        let owner = change.object.controller_reference().and_then(|owner| {
            let resource = view.resource_of(owner.api_version(), owner.kind())?;
            let name = owner.str_at(&["name"])?;
            let own = Key { namespace: change.object.namespace().to_owned(), name: name.to_owned() };
            let cluster = Key { namespace: String::new(), name: name.to_owned() };
            let key = [own, cluster].into_iter().find(|key| view.get(&resource, key).is_some())?;
            Some(task(&resource, &key)).filter(|_| is_custom(&resource.group))
        });
        let own = (is_custom(&change.resource.group) && !change.is_deleted)
            .then(|| task(&change.resource, &Key::from_object(&change.object)));
        own.into_iter().chain(owner).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some((resource, key)) = subject(key) else { return Outcome::done() };
        let Some(object) = context.view.get(&resource, &key) else { return Outcome::done() };
        let is_about = |rule: &&Operator| rule.group == resource.group && rule.kind == object.kind();
        let Some(operator) = context.behaviours.operators.iter().find(is_about) else {
            return Outcome::done();
        };
        if !is_working(operator, context) {
            // Nobody is there to look; whoever comes up looks at everything.
            let image = operator.image.as_ref().map(|image| Awaited::ReadyPod(image.text().to_owned()));
            return Outcome::after(RETRY).until(image);
        }
        let look = Look { operator, resource: &resource, object: &object, context };
        look.run().until(look.awaits())
    }
}

/// Groups of custom resources have a dot and do not belong to Kubernetes.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

fn task(resource: &GroupVersionResource, key: &Key) -> Key {
    let GroupVersionResource { group, version, resource } = resource;
    Key { namespace: key.namespace.clone(), name: format!("{group}/{version}/{resource}/{}", key.name) }
}

fn subject(key: &Key) -> Option<(GroupVersionResource, Key)> {
    let mut parts = key.name.splitn(4, '/');
    let resource = GroupVersionResource::new(parts.next()?, parts.next()?, parts.next()?);
    Some((resource, Key { namespace: key.namespace.clone(), name: parts.next()?.to_owned() }))
}

/// Whether one of the operator's pods is Ready and reaches the API server: one that runs for a while before
/// it gives up has done nothing.
fn is_working(operator: &Operator, context: &Context<'_>) -> bool {
    let pods = || context.view.list(&resources::pods(), None);
    operator.image.as_ref().is_none_or(|image| pods().iter().any(|pod| is_at_work(pod, image, context)))
}

/// Whether a pod runs the image of an operator, is Ready and reaches the API server.
pub(super) fn is_at_work(pod: &Value, image: &Pattern, context: &Context<'_>) -> bool {
    is_ready(pod)
        && runs_image(pod, image)
        && context.behaviours.blocked(pod, &Target::Kubernetes {}, context.view).is_none()
}

struct Look<'a> {
    operator: &'a Operator,
    resource: &'a GroupVersionResource,
    object: &'a Value,
    context: &'a Context<'a>,
}

impl Look<'_> {
    fn run(&self) -> Outcome {
        if self.object.is_terminating() {
            return self.let_go();
        }
        if let Some(finalizer) = &self.operator.finalizer
            && !finalizers(self.object).any(|existing| existing == finalizer)
        {
            let mut object = self.object.clone();
            let mut all: Vec<Value> = finalizers(&object).map(Value::from).collect();
            all.push(finalizer.as_str().into());
            object["metadata"]["finalizers"] = all.into();
            return Write::Update { resource: self.resource.clone(), object }.into();
        }
        let created = created_at(self.object).unwrap_or(self.context.now);
        if let Some(left) = remaining(created, self.operator.takes.0, self.context.now) {
            return Outcome::after(left);
        }
        let needs = self.operator.needs.iter().filter_map(|need| need.need_for(self.object));
        let missing = needs
            .into_iter()
            .find_map(|need| need.unmet(self.object, self.context.behaviours, self.context.view));
        if let Some(cause) = missing {
            return self.waits(&cause);
        }
        let mut writes = Vec::new();
        let mut unready = None;
        for product in &self.operator.produces {
            match self.produce(product) {
                Ok(write) => writes.extend(write),
                Err(cause) => unready = unready.or(Some(cause)),
            }
        }
        if !writes.is_empty() {
            let mut pods = self.context.view.list(&resources::pods(), None);
            let image = self.operator.image.as_ref();
            pods.retain(|pod| image.is_some_and(|image| is_at_work(pod, image, self.context)));
            if let Some(cause) = writes.iter().find_map(|write| self.forbidden(&pods, write)) {
                return self.waits(&cause);
            }
            return Outcome::from(writes).requeue_after(Some(RETRY));
        }
        match unready {
            Some(cause) => self.waits(&cause),
            None => self.update(None).into_iter().collect::<Vec<_>>().into(),
        }
    }

    /// What the API server says of a write that no role allows any of these pods of the operator.
    fn forbidden(&self, pods: &[Arc<Object>], write: &Write) -> Option<Cause> {
        let (resource, object, verbs): (_, _, &[&str]) = match write {
            Write::Create { resource, object } => (resource, object, &["create"]),
            Write::Update { resource, object } => (resource, object, &["update", "patch"]),
            _ => return None,
        };
        let view = self.context.view;
        let mut why = None;
        for pod in pods {
            let account = pod.str_at(&["spec", "serviceAccountName"]).unwrap_or("default");
            let account = (pod.namespace(), account);
            let target = (resource, object.namespace());
            why = Some(why_account_may_not(&view.snapshot, account, &self.resource.group, verbs, target)?);
        }
        why.map(|text| Cause::MayNot { text })
    }

    /// What the object needs and what is made for it.
    fn awaits(&self) -> Vec<Awaited> {
        let needs = self.operator.needs.iter().filter_map(|need| need.need_for(self.object));
        let needs = needs.flat_map(|need| need.awaited(self.object.namespace()));
        let products = self.operator.produces.iter().filter_map(|product| self.product(product));
        let products = products.map(|(resource, object, _)| Awaited::Object {
            group: resource.group,
            kind: object.kind().to_owned(),
            key: Key::from_object(&object),
        });
        needs.chain(products).collect()
    }

    fn waits(&self, cause: &Cause) -> Outcome {
        let writes: Vec<_> = self.update(Some(cause)).into_iter().collect();
        Outcome::from(writes).requeue_after(Some(RETRY))
    }

    /// The status of an object that is done with, or of one that waits for a cause: the fields of its
    /// template, conditions merged by type. Conditions of the other template alone go away.
    fn update(&self, cause: Option<&Cause>) -> Option<Write> {
        let Operator { status: done, waiting, .. } = self.operator;
        let (template, other) = if cause.is_some() { (waiting, done) } else { (done, waiting) };
        let mut source = self.object.clone();
        source["cause"] = cause.map(ToString::to_string).unwrap_or_default().into();
        let mut status = status_of(self.object);
        for gone in
            condition_types(other).filter(|kind| condition_types(template).all(|stays| stays != *kind))
        {
            remove_condition(&mut status, gone);
        }
        for (field, value) in template {
            let value = fill(value, &source);
            if field != "conditions" {
                status.insert(field.clone(), value);
                continue;
            }
            for condition in value.as_array().into_iter().flatten() {
                let mut condition = condition.clone();
                if let Some(Cause::MayNot { text }) = cause {
                    condition["message"] = text.as_str().into();
                }
                set_condition(&mut status, condition, self.context.now);
            }
        }
        let mut status = status.into();
        if let Some(schema) = self.status_schema() {
            fit(&mut status, &schema, self.context.now);
        }
        let changed = with_status(self.object, status);
        changed.map(|object| Write::UpdateStatus { resource: self.resource.clone(), object })
    }

    /// What the definition of the kind demands of a status.
    fn status_schema(&self) -> Option<Value> {
        let GroupVersionResource { group, version, resource } = self.resource;
        let key = Key { namespace: String::new(), name: format!("{resource}.{group}") };
        let definition = self.context.view.get(&resources::definitions(), &key)?;
        let versions = definition.at(&["spec", "versions"])?.as_array()?;
        let served = versions.iter().find(|served| served.str_at(&["name"]) == Some(version))?;
        served.at(&["schema", "openAPIV3Schema", "properties", "status"]).cloned()
    }

    fn product(&self, product: &Product) -> Option<(GroupVersionResource, Value, Policy)> {
        let mut object = fill(&product.object, self.object);
        let resource = self.context.view.resource_of(object.api_version(), object.kind())?;
        let is_namespaced = self.context.view.is_namespaced(object.api_version(), object.kind());
        if is_namespaced && object.namespace().is_empty() {
            object["metadata"]["namespace"] = self.object.namespace().into();
        }
        if product.copy_labels {
            let labels = self.object.at(&["metadata", "labels"]).and_then(Value::as_object);
            for (key, value) in labels.into_iter().flatten() {
                object["metadata"]["labels"][key] = value.clone();
            }
        }
        let policy = fill(&product.policy.as_str().into(), self.object);
        let policy = Policy::parse(policy.as_str().unwrap_or_default());
        if policy == Policy::Owner {
            object["metadata"]["ownerReferences"] = json!([owner_reference(self.object)]);
        }
        if let Some(path) = &product.keys_from {
            let keys: BTreeSet<_> = self.keys(path);
            for key in keys {
                object["data"][key] = SIMULATED.into();
            }
        }
        if object.kind() == "Secret" {
            fill_type(&mut object);
        }
        if product.more_keys_if.iter().any(|path| !value_at(self.object, path).is_null()) {
            object["metadata"]["annotations"][MORE_KEYS] = "true".into();
        }
        Some((resource, object, policy))
    }

    fn keys(&self, path: &str) -> BTreeSet<String> {
        match value_at(self.object, path) {
            Value::Object(map) => map.keys().cloned().collect(),
            Value::Array(list) => {
                list.iter().filter_map(|item| item.str_at(&["secretKey"])).map(str::to_owned).collect()
            }
            _ => BTreeSet::new(),
        }
    }

    /// Makes a product that is not there, or says what keeps it from counting.
    fn produce(&self, product: &Product) -> Result<Option<Write>, Cause> {
        let missing = || Cause::Missing {
            kind: product.object.kind().to_lowercase(),
            name: fill(&product.object["metadata"]["name"], self.object)
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        let (resource, wanted, policy) = self.product(product).ok_or_else(missing)?;
        if policy == Policy::None {
            return Ok(None);
        }
        let Some(found) = self.context.view.get(&resource, &Key::from_object(&wanted)) else {
            return match policy {
                Policy::Merge => Err(missing()),
                _ => Ok(Some(Write::Create { resource, object: wanted })),
            };
        };
        let mut object = found.value().clone();
        for field in ["labels", "annotations"] {
            for (key, value) in
                wanted.at(&["metadata", field]).and_then(Value::as_object).into_iter().flatten()
            {
                object["metadata"][field][key] = value.clone();
            }
        }
        for (key, value) in wanted.get("data").and_then(Value::as_object).into_iter().flatten() {
            object["data"][key] = value.clone();
        }
        if object != *found.value() {
            return Ok(Some(Write::Update { resource, object }));
        }
        if product.must_be_ready && !is_workload_ready(&found) {
            return Err(Cause::NotReady { kind: found.kind().to_owned(), name: found.name().to_owned() });
        }
        Ok(None)
    }

    /// Takes the products away and then the finalizer.
    fn let_go(&self) -> Outcome {
        let Some(finalizer) = &self.operator.finalizer else { return Outcome::done() };
        if !finalizers(self.object).any(|existing| existing == finalizer) {
            return Outcome::done();
        }
        let products = self.operator.produces.iter().filter_map(|product| self.product(product));
        let left = products.filter_map(|(resource, product, _)| {
            let found = self.context.view.get(&resource, &Key::from_object(&product))?;
            is_controlled_by(&found, self.object).then_some((resource, found))
        });
        let left: Vec<_> = left.collect();
        if left.is_empty() {
            let object = without_finalizer(self.object, finalizer);
            return Write::Update { resource: self.resource.clone(), object }.into();
        }
        let going = left.into_iter().filter(|(_, product)| !product.is_terminating());
        let writes: Vec<_> = going.map(|(resource, product)| delete(resource, &product)).collect();
        Outcome::from(writes).requeue_after(Some(RETRY))
    }
}

/// Gives a Secret what its type demands, without which the API server refuses it.
fn fill_type(secret: &mut Value) {
    // Some of these are read as JSON: no logins.
    let (keys, value): (&[&str], &str) = match secret.str_at(&["type"]).unwrap_or_default() {
        "kubernetes.io/dockerconfigjson" => (&[".dockerconfigjson"], "eyJhdXRocyI6e319"),
        "kubernetes.io/dockercfg" => (&[".dockercfg"], "e30="),
        "kubernetes.io/tls" => (&["tls.crt", "tls.key"], SIMULATED),
        "kubernetes.io/ssh-auth" => (&["ssh-privatekey"], SIMULATED),
        "kubernetes.io/basic-auth" => (&["username", "password"], SIMULATED),
        _ => return,
    };
    for key in keys {
        secret["data"][*key] = value.into();
    }
}

/// What stands at a path such as `spec.data`.
fn value_at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(object, |value, key| value.get(key)).unwrap_or(&Value::Null)
}

fn is_workload_ready(object: &Value) -> bool {
    let status = |field: &str| object.int_at(&["status", field]).unwrap_or(0);
    if status("observedGeneration") < object.generation() {
        return false;
    }
    match object.kind() {
        "DaemonSet" => status("numberReady") == status("desiredNumberScheduled"),
        _ => status("readyReplicas") >= object.int_at(&["spec", "replicas"]).unwrap_or(1),
    }
}

fn remaining(began: Timestamp, takes: Duration, now: Timestamp) -> Option<Duration> {
    let due = began.checked_add(takes).ok()?;
    Duration::try_from(due.duration_since(now)).ok().filter(|left| !left.is_zero())
}

fn condition_types(template: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let conditions = template.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().filter_map(|condition| condition.str_at(&["type"]))
}
