//! Where facts decide what a world would otherwise take to be well: registries and networks.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_check::rules::withdrawn_images;
use tiphys_graph::tools::Component;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::{
    Behaviours,
    behaviour::{ImageRule, NodeRule, NodeState, Pods, Pull, Span, image_host},
};

use crate::up::plan::Plan;

/// Components that are the network of pods.
const NETWORKS: [&str; 4] = ["aws-vpc-cni", "calico", "cilium", "flannel"];

/// What registries answer: images that are known as withdrawn, and publishers from whom most workloads of the
/// repository pull with a Secret.
pub(super) fn registries(plan: &Plan, seed: u64) -> Behaviours {
    let known = withdrawn_images().into_iter().map(|supply| {
        let pull = if supply.is_served { Pull::Works } else { Pull::NotFound };
        ImageRule::new(&supply.pattern, pull)
    });
    let private = private_publishers(plan).into_iter();
    let private = private.map(|publisher| ImageRule::new(&format!("{publisher}/*"), Pull::NamesSecret));
    let mut images: Vec<ImageRule> = known.chain(private).collect();
    let pulled = all_images(plan).into_iter().filter(|image| !images.iter().any(|rule| rule.is_about(image)));
    let pulled: Vec<ImageRule> = pulled
        .map(|image| ImageRule {
            takes: Some(Span(pull_time(image, seed))),
            ..ImageRule::new(image, Pull::Works)
        })
        .collect();
    images.extend(pulled);
    Behaviours { images, ..Behaviours::default() }
}

/// The images of all workloads.
fn all_images(plan: &Plan) -> BTreeSet<&str> {
    let objects = plan.rendered().map(|object| &object.value);
    objects.filter_map(pod_spec).flat_map(images).collect()
}

/// How long it takes to pull an image: a few seconds, drawn from the seed.
fn pull_time(image: &str, seed: u64) -> Duration {
    // FNV-1a: the same on every machine.
    let bytes = seed.to_le_bytes().into_iter().chain(image.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Duration::from_millis(1000 + (hash >> 20) % 4000)
}

/// Host and publisher of images that at least two workloads pull with a Secret, and of three at most one
/// without.
fn private_publishers(plan: &Plan) -> BTreeSet<String> {
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

fn has_some(value: &Value, path: &[&str]) -> bool {
    value.at(path).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// The spec of the pods that an object has made.
fn pod_spec(object: &Value) -> Option<&Value> {
    match object.kind() {
        "Pod" => object.get("spec"),
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => {
            object.at(&["spec", "template", "spec"])
        }
        "CronJob" => object.at(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => None,
    }
}

fn images(spec: &Value) -> impl Iterator<Item = &str> {
    let containers = ["initContainers", "containers"].into_iter();
    let containers = containers.filter_map(|field| spec.at(&[field])?.as_array()).flatten();
    containers.filter_map(|container| container.str_at(&["image"]))
}

/// `ghcr.io/acme` of `ghcr.io/acme/web:1`; none of an image without a publisher.
fn publisher(image: &str) -> Option<String> {
    let host = image_host(image);
    let path = image.strip_prefix(host).map_or(image, |rest| rest.trim_start_matches('/'));
    let (publisher, _) = path.split_once('/')?;
    Some(format!("{host}/{publisher}"))
}

/// The network of pods, if a DaemonSet of the cluster is known to be it: without its pods nodes have none.
/// That holds for changes only: a cluster that is brought up has some network before the engine can run.
pub(super) fn networks(snapshot: &Snapshot) -> Behaviours {
    let sets = snapshot.list(&ResourceId::new("apps", "daemonsets"), None);
    let networks = sets.map(|set| set.value()).filter(|set| is_network(set));
    let rules = networks.map(|set| NodeRule {
        node: "*".into(),
        state: NodeState::NetworkBy(Pods {
            namespace: set.namespace().into(),
            name: format!("{}-*", set.name()).as_str().into(),
            labels: BTreeMap::new(),
        }),
    });
    Behaviours { nodes: rules.collect(), ..Behaviours::default() }
}

fn is_network(set: &Value) -> bool {
    let spec = set.at(&["spec", "template", "spec"]);
    let is_on_host = spec.is_some_and(|spec| spec.get("hostNetwork") == Some(&Value::Bool(true)));
    let mut images = spec.into_iter().flat_map(images);
    is_on_host && images.any(|image| Component::of_image(image).is_some_and(|it| NETWORKS.contains(&it.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn publishers_are_hosts_with_the_first_step() {
        let all = ["ghcr.io/acme/web:1", "acme/web", "nginx", "r.io:5000/team/a/b:1"].map(publisher);
        assert_eq!(
            all,
            [Some("ghcr.io/acme".into()), Some("docker.io/acme".into()), None, Some("r.io:5000/team".into())]
        );
    }

    #[test]
    fn seeds_draw_how_long_pulls_take() {
        let all: BTreeSet<Duration> = (0..20).map(|seed| pull_time("web:1", seed)).collect();
        assert!(all.len() > 10, "{all:?}");
        assert!(all.iter().all(|time| (1..5).contains(&time.as_secs())), "{all:?}");
        assert_eq!(pull_time("web:1", 3), pull_time("web:1", 3));
    }

    #[test]
    fn a_network_is_a_daemon_set_on_the_host() {
        let set = |host: bool, image: &str| json!({"spec": {"template": {"spec": {"hostNetwork": host, "containers": [{"image": image}]}}}});
        assert!(is_network(&set(true, "docker.io/calico/node:v3.29.1")));
        assert!(!is_network(&set(false, "docker.io/calico/node:v3.29.1")));
        assert!(!is_network(&set(true, "docker.io/prom/node-exporter:v1")));
    }
}
