//! What network policies drop under every CNI that the cluster may have, as rules of the world.

use std::{collections::BTreeMap, time::Duration};

use tiphys_cause::Cause;
use tiphys_check::rules::takes_nodes_for_strangers;
use tiphys_graph::{
    Survey,
    network::{flows, networks},
};
use tiphys_network::{Cni, Direction, Flow, Need as Reason, Network, Pod, Verdict};
use tiphys_stage::{causes::Repair, mechanism::Mechanism};
use tiphys_value::{ObjectExt, ResourceKey};
use tiphys_world::{
    Behaviours,
    behaviour::{ContainerRule, Exit, Need, NetworkFault, Pods, PolicyName, Span, Target},
};

use super::repair::CutFlow;
use crate::up::plan::Plan;

/// How long a program waits for an API server that does not answer before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);
/// What it says then.
const TIMEOUT: &str = "Get \"https://10.96.0.1:443/api?timeout=32s\": dial tcp 10.96.0.1:443: i/o timeout";

/// What network policies cut off.
#[derive(Default)]
pub(super) struct CutOff {
    /// As rules of the world.
    pub rules: Behaviours,
    /// As causes with what would mend them.
    pub flows: Vec<CutFlow>,
}

/// The pods whose probes are dropped; and those that cannot do without the API server, and whose way to it
/// every CNI in question cuts: they end again and again. Where a CNI lets them through, or the repository
/// does not settle it, nothing is taken to be wrong.
pub(super) fn cut_off(plan: &Plan) -> CutOff {
    let mut cut = CutOff::default();
    if !has_policies(plan) {
        return cut;
    }
    let survey = &plan.survey;
    let probes_are_strange = takes_nodes_for_strangers(&survey.files);
    for network in networks(survey) {
        if probes_are_strange {
            dropped_probes(survey, &network, &mut cut);
        }
        let flows = flows(survey, &network).into_iter();
        for flow in flows.filter(|flow| flow.need == Reason::ApiServer) {
            let pod = &network.pods[flow.pod];
            if needs_api_server(pod) && network.judge(&flow).verdict == Verdict::Deny {
                let pods = pods_of(pod);
                cut.flows.push(cut_flow(survey, &network, &flow, Cause::NetPolicyApiServer));
                cut.rules.containers.push(ContainerRule {
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
                let by = policies(survey, &network, &flow);
                cut.rules.network.push(NetworkFault {
                    from: pods,
                    to: Target::Kubernetes {},
                    text: None,
                    by,
                });
            }
        }
    }
    cut
}

/// The policies that drop a flow: while none of them is there, it passes.
fn policies(survey: &Survey, network: &Network, flow: &Flow) -> Vec<PolicyName> {
    let name = |policy: usize| {
        let ResourceKey { group, kind, namespace, name } =
            survey.object(network.policies[policy].object).key.clone();
        PolicyName { group, kind, namespace, name }
    };
    network.judge(flow).by.into_iter().map(name).collect()
}

/// A flow that is cut, with the policies that cut it and the rule that lets it pass.
pub(super) fn cut_flow(survey: &Survey, network: &Network, flow: &Flow, cause: Cause) -> CutFlow {
    let key = |policy: usize| survey.object(network.policies[policy].object).key.clone();
    let objects = network.judge(flow).by.into_iter().map(key).collect();
    let repair = network.remedy(flow).map(|remedy| {
        let object = survey.object(network.policies[remedy.policy].object);
        let field = if flow.direction == Direction::Ingress { "ingress" } else { "egress" };
        let place = &object.rendered.location;
        Repair {
            text: format!("add to spec.{field} of {}", network.policies[remedy.policy].title),
            patch: Some(remedy.yaml.trim_end().to_owned()),
            command: None,
            place: (!place.file.is_empty()).then(|| format!("{}:{}", place.file, place.line)),
        }
    });
    let pods = pods_of(&network.pods[flow.pod]);
    CutFlow { pods, mechanism: Mechanism { id: cause, objects }, repair }
}

/// The pods whose probes are dropped where Cilium takes the packets of nodes for those of strangers.
fn dropped_probes(survey: &Survey, network: &Network, cut: &mut CutOff) {
    let network = Network { cnis: vec![Cni::Cilium], ..network.clone() };
    for at in (0..network.pods.len()).filter(|at| network.pods[*at].is_exact) {
        let mut probes = network.probes(at).into_iter();
        let Some(probe) = probes.find(|probe| network.judge(probe).verdict == Verdict::Deny) else {
            continue;
        };
        let from = pods_of(&network.pods[at]);
        let by = policies(survey, &network, &probe);
        cut.rules.network.push(NetworkFault { from, to: Target::Probes {}, text: None, by });
        cut.flows.push(cut_flow(survey, &network, &probe, Cause::NetPolicyProbe));
    }
}

fn has_policies(plan: &Plan) -> bool {
    plan.rendered().any(|object| object.value.kind().ends_with("NetworkPolicy"))
}

/// Rights to read something are often given by a scaffold, to programs that never ask.
fn needs_api_server(pod: &Pod) -> bool {
    pod.object.is_some() && pod.is_exact && (pod.controller.is_some() || pod.has_active_rights)
}

fn pods_of(pod: &Pod) -> Pods {
    let labels: BTreeMap<String, String> = pod.labels.clone();
    Pods { namespace: pod.namespace.as_str().into(), labels, ..Pods::default() }
}
