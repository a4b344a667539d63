//! Whose images need a pull secret, as the workloads of a repository tell.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::edges::Edges;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::behaviour::image_host;

use super::{images, pod_spec};
use crate::up::plan::Plan;

/// Host and publisher of images that at least two workloads pull with a Secret, and of three at most one
/// without.
pub(super) fn private_publishers(plan: &Plan) -> BTreeSet<String> {
    let (mut with, mut without): (BTreeMap<String, usize>, BTreeMap<String, usize>) = Default::default();
    let objects: Vec<&Value> = plan.rendered().map(|object| &object.value).collect();
    let accounts: BTreeSet<ResourceKey> = objects
        .iter()
        .filter(|object| object.kind() == "ServiceAccount" && has_some(object, &["imagePullSecrets"]))
        .map(|object| object.resource_key())
        .collect();
    for object in &objects {
        let Some(spec) = pod_spec(object) else { continue };
        let account = spec.str_at(&["serviceAccountName"]).unwrap_or("default");
        let account = ResourceKey::new("", "ServiceAccount", object.namespace(), account);
        let count = if has_some(spec, &["imagePullSecrets"]) || accounts.contains(&account) {
            &mut with
        } else {
            &mut without
        };
        let publishers: BTreeSet<String> = images(spec).filter_map(publisher).collect();
        // With images of several publishers it cannot be told whose Secret it is.
        if publishers.len() == 1 {
            publishers.into_iter().for_each(|publisher| *count.entry(publisher).or_default() += 1);
        }
    }
    let is_private = |(publisher, pods): &(String, usize)| {
        *pods >= 2 && without.get(publisher).is_none_or(|forgotten| *forgotten <= (pods / 3).max(1))
    };
    with.into_iter().filter(is_private).map(|(publisher, _)| publisher).collect()
}

/// A workload that pulls with Secrets.
struct Puller {
    namespace: String,
    publishers: BTreeSet<String>,
    secrets: Vec<ResourceKey>,
}

/// Host and publisher of images that some workloads pull with a Secret which is not there, though the
/// repository makes pull secrets: for others of the publisher, or in the same namespace one that nobody
/// names. Where it makes none, people do.
pub(super) fn lacking_publishers(plan: &Plan) -> BTreeSet<String> {
    let pullers = pullers(plan);
    if pullers.is_empty() {
        return BTreeSet::new();
    }
    let made = MadeSecrets::by(plan);
    let named: BTreeSet<&ResourceKey> = pullers.iter().flat_map(|puller| &puller.secrets).collect();
    let holds = |puller: &&Puller| puller.secrets.iter().any(|secret| made.all.contains(secret));
    let served: BTreeSet<&String> =
        pullers.iter().filter(holds).flat_map(|puller| &puller.publishers).collect();
    let is_mistaken = |namespace: &str| {
        made.for_pulls.iter().any(|secret| secret.namespace == namespace && !named.contains(secret))
    };
    let lacking = pullers.iter().filter(|puller| !holds(puller)).flat_map(|puller| {
        let is_lacking = |publisher: &&String| served.contains(publisher) || is_mistaken(&puller.namespace);
        puller.publishers.iter().filter(is_lacking).cloned().collect::<Vec<_>>()
    });
    lacking.collect()
}

fn pullers(plan: &Plan) -> Vec<Puller> {
    let objects: Vec<&Value> = plan.rendered().map(|object| &object.value).collect();
    let of_accounts: BTreeMap<ResourceKey, Vec<ResourceKey>> = objects
        .iter()
        .filter(|object| object.kind() == "ServiceAccount")
        .map(|object| (object.resource_key(), named_secrets(object, object.namespace())))
        .collect();
    let pullers = objects.iter().filter_map(|object| {
        let spec = pod_spec(object)?;
        let mut secrets = named_secrets(spec, object.namespace());
        if secrets.is_empty() {
            let account = spec.str_at(&["serviceAccountName"]).unwrap_or("default");
            let account = ResourceKey::new("", "ServiceAccount", object.namespace(), account);
            secrets = of_accounts.get(&account).cloned().unwrap_or_default();
        }
        let publishers = images(spec).filter_map(publisher).collect();
        Some(Puller { namespace: object.namespace().to_owned(), publishers, secrets })
    });
    // With images of several publishers it cannot be told whose Secret it is.
    pullers.filter(|puller| !puller.secrets.is_empty() && puller.publishers.len() == 1).collect()
}

/// The Secrets in the `imagePullSecrets` of a pod's spec or a service account.
fn named_secrets(owner: &Value, namespace: &str) -> Vec<ResourceKey> {
    let list = owner.get("imagePullSecrets").and_then(Value::as_array).into_iter().flatten();
    let names = list.filter_map(|secret| secret.str_at(&["name"]));
    names.map(|name| ResourceKey::new("", "Secret", namespace, name)).collect()
}

/// The Secrets that a repository makes.
struct MadeSecrets {
    all: BTreeSet<ResourceKey>,
    /// Those for pulls, by their type.
    for_pulls: BTreeSet<ResourceKey>,
}

impl MadeSecrets {
    fn by(plan: &Plan) -> Self {
        let is_for_pulls = |kind: Option<&str>| {
            matches!(kind, Some("kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg"))
        };
        let (mut all, mut for_pulls) = (BTreeSet::new(), BTreeSet::new());
        for secret in plan.rendered().filter(|object| object.value.kind() == "Secret") {
            let key = secret.value.resource_key();
            if is_for_pulls(secret.value.str_at(&["type"])) {
                for_pulls.insert(key.clone());
            }
            all.insert(key);
        }
        let edges = Edges::from_survey(&plan.survey);
        for product in edges.all_products().filter(|product| product.key.kind == "Secret") {
            let from = plan.survey.object(product.from).value();
            let templates = [&["spec", "target", "template", "type"][..], &["spec", "template", "type"]];
            if templates.iter().any(|path| is_for_pulls(from.str_at(path))) {
                for_pulls.insert(product.key.clone());
            }
            all.insert(product.key.clone());
        }
        Self { all, for_pulls }
    }
}

fn has_some(value: &Value, path: &[&str]) -> bool {
    value.at(path).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// `ghcr.io/acme` of `ghcr.io/acme/web:1`; none of an image without a publisher.
fn publisher(image: &str) -> Option<String> {
    let host = image_host(image);
    let path = image.strip_prefix(host).map_or(image, |rest| rest.trim_start_matches('/'));
    let (publisher, _) = path.split_once('/')?;
    Some(format!("{host}/{publisher}"))
}

#[cfg(test)]
mod tests {
    use super::publisher;

    #[test]
    fn publishers_are_hosts_with_the_first_step() {
        let all = ["ghcr.io/acme/web:1", "acme/web", "nginx", "r.io:5000/team/a/b:1"].map(publisher);
        assert_eq!(
            all,
            [Some("ghcr.io/acme".into()), Some("docker.io/acme".into()), None, Some("r.io:5000/team".into())]
        );
    }
}
