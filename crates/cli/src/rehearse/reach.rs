//! What network policies drop under every CNI that the cluster may have, as rules of the world.

use std::{collections::BTreeMap, time::Duration};

use tiphys_check::rules::takes_nodes_for_strangers;
use tiphys_controller::Checkouts;
use tiphys_graph::{
    Survey,
    network::{Cni, Need as Reason, Network, Pod, Verdict},
    survey::Input,
};
use tiphys_value::ObjectExt;
use tiphys_world::{
    Behaviours,
    behaviour::{ContainerRule, Exit, Need, NetworkFault, Pods, Span, Target},
};

use crate::up::plan::Plan;

/// How long a program waits for an API server that does not answer before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);
/// What it says then.
const TIMEOUT: &str = "Get \"https://10.96.0.1:443/api?timeout=32s\": dial tcp 10.96.0.1:443: i/o timeout";

/// The pods whose probes are dropped; and those that cannot do without the API server, and whose way to it every CNI in
/// question cuts: they end again and again. Where a CNI lets them through, or the repository does not settle it, nothing is taken to be wrong.
pub fn cut_off(plan: &Plan) -> Behaviours {
    let mut rules = Behaviours::default();
    if !has_policies(plan) {
        return rules;
    }
    let repository = &plan.repository;
    let settings = repository.scan.render_settings();
    let checkouts = Checkouts::new(&repository.repositories).with_settings(settings);
    let survey = Survey::of(&Input {
        tree: repository.tree.clone(),
        folder: &repository.folder,
        sources: &checkouts,
        is_given: &|url| repository.repositories.is_given(url),
        clusters: repository.scan.more_clusters.clone(),
        kube_version: "",
        progress: &|_, _| {},
    });
    let probes_are_strange = takes_nodes_for_strangers(&survey.files);
    for network in Network::all(&survey) {
        if probes_are_strange {
            rules.network.extend(dropped_probes(&network));
        }
        let flows = network.flows(&survey).into_iter();
        for flow in flows.filter(|flow| flow.need == Reason::ApiServer) {
            let pod = &network.pods[flow.pod];
            if needs_api_server(pod) && network.judge(&flow).verdict == Verdict::Deny {
                let pods = pods_of(pod);
                rules.containers.push(ContainerRule {
                    pods: pods.clone(),
                    needs: vec![Need::Kubernetes {}],
                    exits: Some(Exit {
                        code: 1,
                        after: Span(PATIENCE),
                        reason: None,
                        message: Some(TIMEOUT.to_owned()),
                    }),
                    ..ContainerRule::default()
                });
                rules.network.push(NetworkFault { from: pods, to: Target::Kubernetes {}, text: None });
            }
        }
    }
    rules
}

/// The pods whose probes are dropped where Cilium takes the packets of nodes for those of strangers.
fn dropped_probes(network: &Network) -> Vec<NetworkFault> {
    let network = Network { cnis: vec![Cni::Cilium], ..network.clone() };
    let is_dropped = |at: &usize| {
        let mut probes = network.probes(*at).into_iter();
        probes.any(|probe| network.judge(&probe).verdict == Verdict::Deny)
    };
    let pods = (0..network.pods.len()).filter(|at| network.pods[*at].is_exact).filter(is_dropped);
    pods.map(|at| NetworkFault { from: pods_of(&network.pods[at]), to: Target::Probes {}, text: None })
        .collect()
}

fn has_policies(plan: &Plan) -> bool {
    let rendered = plan.catalogue.entries.values().flat_map(|entry| &entry.rendered);
    let mut objects = rendered.flat_map(|rendered| &rendered.objects);
    objects.any(|object| object.value.kind().ends_with("NetworkPolicy"))
}

/// Rights to read something are often given by a scaffold, to programs that never ask.
fn needs_api_server(pod: &Pod) -> bool {
    pod.object.is_some() && pod.is_exact && (pod.controller.is_some() || pod.has_active_rights)
}

fn pods_of(pod: &Pod) -> Pods {
    let labels: BTreeMap<String, String> = pod.labels.clone();
    Pods { namespace: pod.namespace.as_str().into(), labels, ..Pods::default() }
}
