//! Ways between programs that a change closes by network policies. Programs are not run, so nothing turns red
//! by itself.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cause::Cause as Id;
use tiphys_graph::{
    Survey,
    network::{flows as all_flows, networks},
};
use tiphys_network::{Direction, Flow, Need, Network, Verdict};
use tiphys_stage::causes::Cause;
use tiphys_value::{ObjectExt, ResourceKey};

use super::{super::network_rules::cut_flow, hidden_cause::hidden_cause};
use crate::up::plan::Plan;

/// A way that programs need: who is judged, whether by its way out, and what it leads to.
type Way = (ResourceKey, bool, String);

/// The ways that are closed after a change under every CNI in question, and were not before. A workload that
/// was renamed has the ways of the one that is gone.
pub(super) fn flows(before: &Plan, after: &Plan) -> Vec<Cause> {
    let closed_after = closed(&after.survey);
    if closed_after.is_empty() {
        return Vec::new();
    }
    let known: BTreeSet<Way> = closed(&before.survey).into_keys().collect();
    let present: BTreeSet<ResourceKey> = after.rendered().map(|object| object.value.resource_key()).collect();
    let was_closed = |(pod, is_out, to): &Way| {
        known.iter().any(|(old, was_out, was_to)| {
            let is_renamed = old.namespace == pod.namespace && !present.contains(old);
            (was_out, was_to) == (is_out, to) && (old == pod || is_renamed)
        })
    };
    closed_after.into_iter().filter(|(way, _)| !was_closed(way)).map(|(_, cause)| cause).collect()
}

fn closed(survey: &Survey) -> BTreeMap<Way, Cause> {
    let mut all = BTreeMap::new();
    for network in networks(survey) {
        let flows = all_flows(survey, &network);
        let denied = flows
            .iter()
            .filter(|flow| network.pods[flow.pod].is_exact && network.judge(flow).verdict == Verdict::Deny);
        for flow in denied {
            if let Some((way, cause)) = closed_way(survey, &network, flow) {
                all.entry(way).or_insert(cause);
            }
        }
    }
    // Without DNS no name is called.
    let nameless: BTreeSet<ResourceKey> =
        all.keys().filter(|way| way.2.is_empty()).map(|way| way.0.clone()).collect();
    all.retain(|(pod, is_out, to), _| to.is_empty() || !is_out || !nameless.contains(pod));
    all
}

/// A flow that is denied, as a cause, if it is one between programs or to DNS.
fn closed_way(survey: &Survey, network: &Network, flow: &Flow) -> Option<(Way, Cause)> {
    let object = survey.object(network.pods[flow.pod].object?).key.clone();
    let is_out = flow.direction == Direction::Egress;
    let (id, to, text) = match &flow.need {
        Need::Dns => {
            (Id::NetPolicyDns, String::new(), "its packets to the cluster's DNS are dropped".to_owned())
        }
        Need::Upstream { service, .. } if is_out => {
            let text = format!("its packets to Service {service} are dropped");
            (Id::NetPolicyEgress, service.clone(), text)
        }
        Need::Upstream { service, from, .. } => {
            let caller = &network.pods[*from].title;
            let text = format!("packets of {caller} to Service {service} are dropped");
            (Id::NetPolicyIngress, format!("{service} from {caller}"), text)
        }
        _ => return None,
    };
    let cut = cut_flow(survey, network, flow, id);
    let cause = hidden_cause(object.clone(), cut.mechanism, text, "is cut off");
    Some(((object, is_out, to), Cause { repair: cut.repair, ..cause }))
}
