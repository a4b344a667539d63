//! What the rules about reachability share.

use tiphys_diag::{Diagnostic, Severity, Span};
use tiphys_graph::{ObjectId, Survey};
use tiphys_network::{Cni, Direction, Flow, Judgement, Network, Peer, Verdict, is_service_address};
use tiphys_value::FieldPath;

use crate::{Confidence, Context, Finding, Fix, Rule};

/// The policies that restrict a flow, and under which CNIs, in words.
pub(super) fn restricting_policies(network: &Network, judgement: &Judgement) -> String {
    let titles: Vec<&str> = judgement.by.iter().map(|at| network.policies[*at].title.as_str()).collect();
    let titles = match titles.as_slice() {
        [] => "a policy".to_owned(),
        [one] => (*one).to_owned(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    };
    match &judgement.verdict {
        Verdict::Depends(cnis) => {
            let names: Vec<&str> = cnis.iter().map(|cni| cni.name()).collect();
            format!("{titles} drops it under {}", names.join(", "))
        }
        _ => format!("{titles} drops it"),
    }
}

/// Says how bad it is. Where another environment of the repository lets the same packet pass, its policies
/// are about a cluster like that one, and who reads it wants to know which is meant.
pub(super) fn with_severity(
    context: &Context<'_>,
    network: &Network,
    flow: &Flow,
    judgement: &Judgement,
    diagnostic: Diagnostic,
) -> Diagnostic {
    let mut diagnostic = diagnostic;
    diagnostic.severity = severity(context.survey, network, flow, &judgement.verdict);
    let passes = |other: &Network, flows: &[Flow]| {
        let mut alike = flows.iter().filter(|it| is_alike((network, flow), (other, it)));
        alike.any(|it| other.judge(it).verdict == Verdict::Allow)
    };
    let environment = |network: &Network| {
        let id = context.survey.object(*network.objects.first()?).environment?;
        Some(context.survey.environments[id.0].name.as_str())
    };
    let Some(own) = environment(network) else { return diagnostic };
    let other = context
        .networks()
        .iter()
        .find(|(other, flows)| environment(other).is_some_and(|other| other != own) && passes(other, flows));
    if let Some(other) = other.and_then(|(other, _)| environment(other)) {
        diagnostic.severity = diagnostic.severity.min(Severity::Warning);
        diagnostic = diagnostic.help(format!(
            "this is of environment {own}; in {other} a policy that is not in {own} lets it pass"
        ));
    }
    diagnostic
}

/// Whether an Application of a Git repository out of reach may bring policies for a flow's pod: they add up,
/// and one that lets the packet pass is enough.
pub(super) fn may_be_let_pass_elsewhere(context: &Context<'_>, network: &Network, flow: &Flow) -> bool {
    let survey = context.survey;
    let pod = &network.pods[flow.pod];
    let Some(object) = network.objects.first().map(|id| survey.object(*id)) else { return false };
    survey.apps.iter().any(|app| {
        let spec = &app.application.spec;
        let namespace = &spec.destination.namespace;
        Some(app.environment) == object.environment
            && app.cluster() == object.cluster.as_ref()
            && !app.is_rendered()
            && (*namespace == pod.namespace || app.name().contains("polic"))
            && spec.effective_sources().iter().any(|source| source.chart.is_empty())
    })
}

/// What a finding about a flow comes down to: one policy that keeps one port of one workload closed, in
/// whatever namespaces its overlays put the two.
pub(super) fn cause(survey: &Survey, network: &Network, flow: &Flow, finding: &Finding) -> String {
    let pod = &network.pods[flow.pod];
    let workload = pod.object.map_or_else(
        || pod.title.clone(),
        |id| {
            let key = &survey.object(id).key;
            format!("{}/{}", key.kind, key.name)
        },
    );
    let place = finding.diagnostic.primary.as_ref().map(|label| label.span.to_string());
    let severity = finding.diagnostic.severity;
    format!("{workload} {:?} {severity:?} {}", flow.ports, place.unwrap_or_default())
}

/// Whether two flows are one connection of one workload, in two networks.
fn is_alike((network, flow): (&Network, &Flow), (other, it): (&Network, &Flow)) -> bool {
    it.direction == flow.direction
        && std::mem::discriminant(&it.need) == std::mem::discriminant(&flow.need)
        && it.ports == flow.ports
        && other.pods[it.pod].title == network.pods[flow.pod].title
}

/// How bad it is: certain only for what an Application deploys, under every CNI that the cluster may have.
/// What depends on a CNI that the repository does not name is worth knowing, no more.
fn severity(survey: &Survey, network: &Network, flow: &Flow, verdict: &Verdict) -> Severity {
    let pod = &network.pods[flow.pod];
    let is_deployed = pod.object.is_none_or(|id| survey.object(id).environment.is_some());
    match verdict {
        Verdict::Deny if is_deployed => Severity::Error,
        Verdict::Depends(_) if network.cnis.len() == Cni::ENFORCING.len() => Severity::Info,
        _ => Severity::Warning,
    }
}

/// Adds the places of the policies and of the workload.
pub(super) fn places(
    survey: &Survey,
    network: &Network,
    flow: &Flow,
    judgement: &Judgement,
    diagnostic: Diagnostic,
) -> Diagnostic {
    let mut diagnostic = diagnostic;
    for (index, at) in judgement.by.iter().take(3).enumerate() {
        let span = policy_span(survey, network.policies[*at].object, flow.direction);
        diagnostic = if index == 0 {
            let label = if judgement.is_by_rule {
                "a rule here drops it"
            } else {
                "none of the rules here is for it"
            };
            diagnostic.at(span, label)
        } else {
            diagnostic.see(span, "nor is one of these")
        };
    }
    match network.pods[flow.pod].object {
        Some(object) => {
            let object = survey.object(object);
            let path = if object.key.kind == "Pod" { "metadata" } else { "kind" };
            diagnostic
                .see(survey.span(object, &FieldPath::default().key(path)), "the policy selects these pods")
        }
        None => diagnostic,
    }
}

fn policy_span(survey: &Survey, policy: ObjectId, direction: Direction) -> Span {
    let object = survey.object(policy);
    let spec = FieldPath::default().key("spec");
    let rules = spec.key(if direction == Direction::Egress { "egress" } else { "ingress" });
    let path = if rules.get(object.value()).is_some() { rules } else { spec.key("podSelector") };
    survey.span(object, &path)
}

/// A finding with the rules to add, each of which was seen to help.
pub(super) fn with_remedy(
    rule: &Rule,
    survey: &Survey,
    network: &Network,
    flows: &[&Flow],
    diagnostic: Diagnostic,
) -> Finding {
    let mut diagnostic = diagnostic;
    let mut fix: Option<Fix> = None;
    let remedies: Vec<_> = flows.iter().filter_map(|flow| network.remedy(flow)).collect();
    if let (Some(first), true) = (remedies.first(), remedies.len() == flows.len()) {
        let side = if flows[0].direction == Direction::Egress { "egress" } else { "ingress" };
        let policy = &network.policies[first.policy];
        let yaml: Vec<&str> = remedies.iter().map(|remedy| remedy.yaml.trim_end()).collect();
        let text = format!("add to spec.{side} of {}:\n{}", policy.title, yaml.join("\n"));
        diagnostic = diagnostic.help(text.clone());
        fix = Some(Fix { description: text, patch: Vec::new(), confidence: Confidence::Certain });
    }
    let pod = &network.pods[flows[0].pod];
    let mut finding = Finding::new(rule.incident, diagnostic).object(pod.title.clone());
    let owner =
        pod.object.or_else(|| network.judge(flows[0]).by.first().map(|at| network.policies[*at].object));
    finding.app = owner.and_then(|id| survey.app_of(survey.object(id))).map(|app| app.name().to_owned());
    finding.fix = fix;
    finding
}

/// Whether one of the restricting policies tries the address of a Service.
pub(super) fn has_service_block(network: &Network, judgement: &Judgement) -> bool {
    let rules = judgement.by.iter().flat_map(|at| network.policies[*at].rules(Direction::Egress));
    let mut peers = rules.flat_map(|rule| rule.peers.iter().flatten());
    peers.any(|peer| matches!(peer, Peer::Addresses(address) if is_service_address(&address.block)))
}
