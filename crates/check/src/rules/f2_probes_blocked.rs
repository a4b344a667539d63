//! # Cilium takes the kubelet for a stranger, and a policy drops its probes
//!
//! Cilium knows a packet of the node itself by a mark that its iptables rules set. With
//! `install-iptables-rules=false` the mark is missing, and the kubelet's probes come from the identity
//! `world`. A policy for ingress that admits only pods then drops them: exactly the workloads that such a
//! policy selects fail their probes, and all others stay healthy.
//!
//! People see: `Readiness probe failed: Get "http://10.0.1.185:8082/healthz": context deadline exceeded`, and
//! in `cilium monitor`: `xx drop (Policy denied) ... identity world->15435`.
//!
//! ## Bad
//! `installIptablesRules: false` in Cilium's values, and `ingress: [{from: [{namespaceSelector: {}}]}]`.
//! ## Good
//! Leave the rules installed, or admit the nodes' addresses with an `ipBlock`.
//!
//! ## When to suppress
//! Where something else marks the node's packets.

use std::{sync::Arc, sync::LazyLock};

use regex::Regex;
use tiphys_diag::{Severity, Span};
use tiphys_graph::Files;
use tiphys_network::{Cni, Network, Tri};
use tiphys_value::Location;

use super::reach;
use crate::{Context, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F2-probes-blocked",
    incident: "F2",
    severity: Severity::Error,
    title: "Cilium takes the kubelet for a stranger, and a policy drops its probes",
    page: page!("f2_probes_blocked.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    if context.networks().is_empty() {
        return;
    }
    let Some(switch) = switched_off(&context.survey.files) else { return };
    for (network, _) in context.networks() {
        let network = Network { cnis: vec![Cni::Cilium], ..network.clone() };
        for at in 0..network.pods.len() {
            let flows = network.probes(at);
            let dropped: Vec<_> =
                flows.iter().filter(|flow| network.passes(flow, Cni::Cilium) == Tri::No).collect();
            let Some(flow) = dropped.first() else { continue };
            let judgement = network.judge(flow);
            if !judgement.is_denied() {
                continue;
            }
            let title = &network.pods[at].title;
            let message = format!(
                "the probes of {title} are dropped: {}",
                reach::restricting_policies(&network, &judgement)
            );
            let diagnostic = reach::places(context.survey, &network, flow, &judgement, RULE.diagnostic(message))
                .see(switch.clone(), "here Cilium is told not to mark the node's own packets")
                .because("without the mark the kubelet's packets have the identity `world`, which selectors of pods and namespaces never admit")
                .help("remove the setting, so that Cilium installs its iptables rules");
            report.add(reach::with_remedy(&RULE, context.survey, &network, &dropped, diagnostic));
        }
    }
}

/// Whether Cilium is told not to mark the node's own packets, for whoever plays probes.
pub fn takes_nodes_for_strangers(files: &Files) -> bool {
    switched_off(files).is_some()
}

/// The place where Cilium is told not to install its iptables rules.
fn switched_off(files: &Files) -> Option<Span> {
    static SWITCH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)^[^#]*install-?iptables-?rules["']?\s*[:=,]?\s*(?:value\s*[:=]\s*)?["']?false"#)
            .expect("the expression is right")
    });
    for path in files.ending(&[".yaml", ".yml", ".tf", ".sh", ".tfvars"]) {
        let Some(text) = files.text(path) else { continue };
        if !text.contains("ptables") {
            continue;
        }
        if let Some(line) = text.lines().position(|line| SWITCH.is_match(line)) {
            let line = u32::try_from(line).unwrap_or_default() + 1;
            return Some(files.span(&Location::new(Arc::clone(path), line, 0)));
        }
    }
    None
}
