//! The networks of a repository: what lives in each cluster of each environment, as far as its network is
//! concerned.

mod detect;
mod unseen;

use std::collections::BTreeMap;

use tiphys_network::{Flow, Network, Pod};
use tiphys_value::{ObjectExt, Value};

use crate::{Object, ObjectId, Owner, Survey};

pub use detect::{Detected, detect};

/// The networks of a survey: one for each cluster of each environment, and one for each unit.
pub fn networks(survey: &Survey) -> Vec<Network> {
    let mut groups: BTreeMap<(usize, &str, Option<Owner>), Vec<&Object>> = BTreeMap::new();
    for object in survey.objects.iter().filter(|object| !is_shelved(survey, object)) {
        let unit = object.environment.is_none().then_some(object.owner);
        let environment = object.environment.map_or(usize::MAX, |id| id.0);
        groups.entry((environment, object.cluster.as_ref(), unit)).or_default().push(object);
    }
    groups.retain(|_, objects| objects.iter().any(|object| object.key.kind.ends_with("NetworkPolicy")));
    if groups.is_empty() {
        return Vec::new();
    }
    let detected = detect(survey);
    // A chart or folder by itself does not show what binds the whole cluster that it comes into.
    let wide: Vec<ObjectId> = survey.objects.iter().filter(|it| is_wide(it)).map(|it| it.id).collect();
    let names_wide = wide.is_empty() && names_wide(survey);
    let makers: Vec<ObjectId> =
        survey.objects.iter().filter(|it| generates_policies(it.value())).map(|it| it.id).collect();
    let networks = groups.into_iter().map(|((environment, cluster, unit), objects)| {
        let mut network = Network::from_objects(objects.iter().map(|object| object.of_network()));
        if unit.is_some() {
            network.opaque.extend(wide.iter().filter(|id| !network.objects.contains(id)));
            network.opaque.extend(objects.first().filter(|_| names_wide).map(|it| it.id));
        }
        network.opaque.extend(makers.iter().filter(|id| !network.opaque.contains(id)).collect::<Vec<_>>());
        network.cnis.clone_from(&detected.cnis);
        network.is_managed = detected.is_managed;
        let apps =
            survey.apps.iter().filter(|app| app.environment.0 == environment && app.cluster() == cluster);
        network.pods.extend(apps.clone().filter_map(unseen::controller));
        network.pods.extend(apps.clone().filter_map(unseen::prometheus));
        network.pods.extend(apps.clone().filter_map(unseen::gateway));
        apps.flat_map(unseen::known_pods).for_each(|pod| add_known(&mut network.pods, pod));
        let seen: Vec<_> = objects.iter().map(|object| object.of_network()).collect();
        network.foresee_gateways(&seen);
        network
    });
    networks.filter(|network| !network.policies.is_empty()).collect()
}

/// Adds what is known of the pods of a chart, to those that are known of it already if they are the same.
fn add_known(pods: &mut Vec<Pod>, pod: Pod) {
    const NAME: &str = "app.kubernetes.io/name";
    let is_same = |it: &&mut Pod| {
        it.object.is_none() && it.title == pod.title && it.labels.get(NAME) == pod.labels.get(NAME)
    };
    match pods.iter_mut().find(is_same) {
        Some(known) => {
            known.labels.extend(pod.labels);
            known.webhooks = pod.webhooks;
        }
        None => pods.push(pod),
    }
}

/// Every connection that is known to be needed in a network of a survey, but for probes.
pub fn flows(survey: &Survey, network: &Network) -> Vec<Flow> {
    let objects: Vec<_> = network.objects.iter().map(|id| survey.object(*id).of_network()).collect();
    network.flows(&objects)
}

/// Whether a policy of Kyverno makes network policies, in namespaces that it chooses: what they let through
/// is not seen.
fn generates_policies(object: &Value) -> bool {
    let is_of_kyverno = object.api_version().starts_with("kyverno.io/");
    let rules = object.at(&["spec", "rules"]).and_then(Value::as_array);
    is_of_kyverno
        && rules.into_iter().flatten().any(|rule| {
            rule.str_at(&["generate", "kind"]).is_some_and(|kind| kind.ends_with("NetworkPolicy"))
        })
}

/// Kinds of policies that bind whole clusters.
const WIDE: [&str; 5] = [
    "GlobalNetworkPolicy",
    "CiliumClusterwideNetworkPolicy",
    "AdminNetworkPolicy",
    "BaselineAdminNetworkPolicy",
    "ClusterNetworkPolicy",
];

fn is_wide(object: &Object) -> bool {
    WIDE.contains(&object.key.kind.as_str())
}

/// Whether a template that renders nothing by default is for such a policy.
fn names_wide(survey: &Survey) -> bool {
    let mut templates = survey.files.ending(&[".yaml", ".yml", ".tpl"]);
    let is = |line: &str| line.strip_prefix("kind: ").is_some_and(|kind| WIDE.contains(&kind.trim()));
    templates.any(|path| {
        survey.files.text(path).is_some_and(|text| text.lines().any(|line| is(line.trim_start())))
    })
}

/// Whether an object belongs to an Application that lies in a folder for what is not deployed.
fn is_shelved(survey: &Survey, object: &Object) -> bool {
    const SHELVES: [&str; 6] = ["disabled", "archive", "archived", "unused", "deprecated", "_archive"];
    let app = survey.app_of(object);
    app.is_some_and(|app| app.declared.location.file.split('/').any(|step| SHELVES.contains(&step)))
}
