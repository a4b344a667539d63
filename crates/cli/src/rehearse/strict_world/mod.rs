//! Where facts decide what a world would otherwise take to be well: registries, command lines, webhooks and
//! networks.

mod init_waits;
pub(super) mod known_services;
pub(super) mod pull_secrets;
pub(super) mod webhook_authority;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_check::rules::{is_given_itself, withdrawn_images};
use tiphys_graph::tools::Component;
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::base_name;
use tiphys_world::{
    Behaviours,
    behaviour::{ContainerRule, Exit, ImageRule, NodeRule, NodeState, Pods, Pull, Span, command_line},
};

use super::stable_hash::stable_hash;
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
    let rules = |publishers: BTreeSet<String>, pull: Pull| {
        publishers.into_iter().map(move |publisher| ImageRule::new(&format!("{publisher}/*"), pull))
    };
    let pullers = pull_secrets::pullers(plan);
    let lacking = rules(pull_secrets::lacking_publishers(plan, &pullers), Pull::HoldsSecret);
    let private = rules(pull_secrets::private_publishers(&pullers), Pull::NamesSecret);
    let mut images: Vec<ImageRule> = known.chain(lacking).chain(private).collect();
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

/// What webhooks answer whose certificates nobody vouches for.
pub(super) fn webhooks(plan: &Plan) -> Behaviours {
    Behaviours { webhooks: webhook_authority::rules(plan), ..Behaviours::default() }
}

/// What command lines decide: that a program is given its own path as an argument, and ends with that, as
/// patches of a command make it that leave the arguments; and what init containers wait for.
pub(super) fn command_lines(plan: &Plan) -> Behaviours {
    let specs = plan.rendered().filter_map(|object| pod_spec(&object.value));
    let repeated = specs.flat_map(containers).filter_map(given_itself);
    Behaviours { containers: repeated.chain(init_waits::rules(plan)).collect(), ..Behaviours::default() }
}

fn given_itself(container: &Value) -> Option<ContainerRule> {
    let first_of = |field: &str| container.get(field)?.as_array()?.first()?.as_str();
    let (program, first) = (first_of("command")?, first_of("args")?);
    let name = base_name(program);
    is_given_itself(program, first).then(|| ContainerRule {
        image: container.str_at(&["image"]).unwrap_or_default().into(),
        line: command_line(container).join(" ").as_str().into(),
        exits: Some(Exit {
            code: 1,
            after: Span::default(),
            reason: None,
            message: Some(format!("Error: unknown command {first:?} for {name:?}")),
        }),
        ..ContainerRule::default()
    })
}

/// The images of all workloads.
fn all_images(plan: &Plan) -> BTreeSet<&str> {
    let objects = plan.rendered().map(|object| &object.value);
    objects.filter_map(pod_spec).flat_map(images).collect()
}

/// How long it takes to pull an image: a few seconds, drawn from the seed.
fn pull_time(image: &str, seed: u64) -> Duration {
    let hash = stable_hash(seed.to_le_bytes().into_iter().chain(image.bytes()));
    Duration::from_millis(1000 + (hash >> 20) % 4000)
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

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    let fields = ["initContainers", "containers"].into_iter();
    fields.filter_map(|field| spec.at(&[field])?.as_array()).flatten()
}

fn images(spec: &Value) -> impl Iterator<Item = &str> {
    containers(spec).filter_map(|container| container.str_at(&["image"]))
}

/// The network of pods, if a DaemonSet of the cluster is known to be it: without its pods nodes have none.
/// That holds for changes only: a cluster that is brought up has some network before the engine can run.
pub(super) fn networks(snapshot: &Snapshot) -> Behaviours {
    let rules = networks_in(snapshot).map(|set| NodeRule {
        node: "*".into(),
        state: NodeState::NetworkBy(Pods {
            namespace: set.namespace().into(),
            name: format!("{}-*", set.name()).as_str().into(),
            labels: BTreeMap::new(),
        }),
    });
    Behaviours { nodes: rules.collect(), ..Behaviours::default() }
}

/// The DaemonSets that are known to be the network of pods.
pub(super) fn networks_in(snapshot: &Snapshot) -> impl Iterator<Item = &Value> {
    let sets = snapshot.list(&ResourceId::new("apps", "daemonsets"), None);
    sets.map(|set| set.value()).filter(|set| is_network(set))
}

fn is_network(set: &Value) -> bool {
    network_name(set).is_some()
}

/// Which network a DaemonSet is.
pub(super) fn network_name(set: &Value) -> Option<&'static str> {
    let spec = set.at(&["spec", "template", "spec"])?;
    let is_on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let mut known = images(spec).filter_map(Component::of_image).map(|it| it.name);
    known.find(|name| is_on_host && NETWORKS.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

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
