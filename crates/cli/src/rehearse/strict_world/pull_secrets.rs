//! Whose images need a pull secret, as the workloads of a repository tell.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::edges::Edges;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::behaviour::image_host;

use super::{images, pod_spec};
use crate::up::plan::Plan;

/// A workload whose images are all of one publisher: with images of several it cannot be told whose Secret it
/// pulls with.
pub(super) struct Puller {
    namespace: String,
    /// Host and publisher of its images.
    publisher: String,
    /// Those that it names, or its service account; none if it pulls without.
    secrets: Vec<ResourceKey>,
}

/// The workloads of a repository whose images are of one publisher.
pub(super) fn pullers(plan: &Plan) -> Vec<Puller> {
    let objects: Vec<&Value> = plan.rendered().map(|object| &object.value).collect();
    let of_accounts: BTreeMap<ResourceKey, Vec<ResourceKey>> = objects
        .iter()
        .filter(|object| object.kind() == "ServiceAccount")
        .map(|object| (object.resource_key(), named_secrets(object, object.namespace())))
        .collect();
    let pullers = objects.iter().filter_map(|object| {
        let spec = pod_spec(object)?;
        let publishers: BTreeSet<String> = images(spec).filter_map(publisher).collect();
        let [publisher] = <[String; 1]>::try_from(Vec::from_iter(publishers)).ok()?;
        let mut secrets = named_secrets(spec, object.namespace());
        if secrets.is_empty() {
            let account = spec.str_at(&["serviceAccountName"]).unwrap_or("default");
            let account = ResourceKey::new("", "ServiceAccount", object.namespace(), account);
            secrets = of_accounts.get(&account).cloned().unwrap_or_default();
        }
        Some(Puller { namespace: object.namespace().to_owned(), publisher, secrets })
    });
    pullers.collect()
}

/// Host and publisher of images that at least two workloads pull with a Secret, and of three at most one
/// without.
pub(super) fn private_publishers(pullers: &[Puller]) -> BTreeSet<String> {
    let (mut with, mut without): (BTreeMap<&str, usize>, BTreeMap<&str, usize>) = Default::default();
    for puller in pullers {
        let count = if puller.secrets.is_empty() { &mut without } else { &mut with };
        *count.entry(puller.publisher.as_str()).or_default() += 1;
    }
    let is_private = |(publisher, pods): &(&str, usize)| {
        *pods >= 2 && without.get(publisher).is_none_or(|forgotten| *forgotten <= (pods / 3).max(1))
    };
    with.into_iter().filter(is_private).map(|(publisher, _)| publisher.to_owned()).collect()
}

/// Host and publisher of images that some workloads pull with a Secret which is not there, though the
/// repository makes pull secrets: for others of the publisher, or in the same namespace one that nobody
/// names. Where it makes none, people do.
pub(super) fn lacking_publishers(plan: &Plan, pullers: &[Puller]) -> BTreeSet<String> {
    let pullers: Vec<&Puller> = pullers.iter().filter(|puller| !puller.secrets.is_empty()).collect();
    if pullers.is_empty() {
        return BTreeSet::new();
    }
    let made = MadeSecrets::from_plan(plan);
    let named: BTreeSet<&ResourceKey> = pullers.iter().flat_map(|puller| &puller.secrets).collect();
    let (holding, others): (Vec<&Puller>, Vec<&Puller>) =
        pullers.iter().partition(|puller| puller.secrets.iter().any(|secret| made.all.contains(secret)));
    let served: BTreeSet<&str> = holding.iter().map(|puller| puller.publisher.as_str()).collect();
    let is_mistaken = |namespace: &str| {
        made.for_pulls.iter().any(|secret| secret.namespace == namespace && !named.contains(secret))
    };
    let is_lacking =
        |puller: &&Puller| served.contains(puller.publisher.as_str()) || is_mistaken(&puller.namespace);
    others.into_iter().filter(is_lacking).map(|puller| puller.publisher.clone()).collect()
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
    fn from_plan(plan: &Plan) -> Self {
        let (mut all, mut for_pulls) = (BTreeSet::new(), BTreeSet::new());
        for secret in plan.rendered().filter(|object| object.value.kind() == "Secret") {
            let key = secret.value.resource_key();
            if is_for_pulls(&secret.value, &["type"]) {
                for_pulls.insert(key.clone());
            }
            all.insert(key);
        }
        let edges = Edges::from_survey(&plan.survey);
        for product in edges.all_products().filter(|product| product.key.kind == "Secret") {
            let from = plan.survey.object(product.from).value();
            let templates = [&["spec", "target", "template", "type"][..], &["spec", "template", "type"]];
            if templates.iter().any(|path| is_for_pulls(from, path)) {
                for_pulls.insert(product.key.clone());
            }
            all.insert(product.key.clone());
        }
        Self { all, for_pulls }
    }
}

/// Whether the type of a Secret, which stands at a path, is one for pulls.
pub(in crate::rehearse) fn is_for_pulls(owner: &Value, path: &[&str]) -> bool {
    matches!(owner.str_at(path), Some("kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg"))
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
