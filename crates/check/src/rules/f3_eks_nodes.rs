//! # The nodes of EKS do not let through what pods send
//!
//! With the network of Amazon's own plugin, pods have the security groups of their nodes. The module
//! `terraform-aws-modules/eks` lets nodes reach each other at ports from 1025 upwards, and lets the control
//! plane reach the ports of the best known webhooks. A pod that listens below that, such as nginx at port 80,
//! is reached only from its own node, and Istio's webhook, at port 15017, not at all.
//!
//! People see: `upstream connect error … connection timeout` for every second request, `failed calling
//! webhook "namespace.sidecar-injector.istio.io": … context deadline exceeded`.
//!
//! ## Bad
//! ```hcl
//! module "eks" { source = "terraform-aws-modules/eks/aws" }
//! # and a Service with targetPort 80
//! ```
//! ## Good
//! ```hcl
//! node_security_group_additional_rules = {
//!   http = { type = "ingress", protocol = "tcp", from_port = 80, to_port = 80, self = true }
//! }
//! ```
//! ## When to suppress
//! Where pods have security groups of their own.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::{
    Object, Owner,
    tools::{
        Component,
        terraform::{Block, Expression, Value},
    },
};

use crate::{
    Context, Finding, Report, Rule,
    support::{known_charts, pods::list},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F3-eks-nodes",
    incident: "F3",
    severity: Severity::Warning,
    title: "EKS nodes that keep pods, or a webhook, from being reached",
    page: page!("f3_eks_nodes.rs"),
    check,
};

/// The first port that nodes reach each other at by the module's own rules, and the one below that they do.
const FIRST_OPEN: i64 = 1025;
const DNS: i64 = 53;
/// The port of Istio's webhooks.
const ISTIO: i64 = 15017;

fn check(context: &Context<'_>, report: &mut Report) {
    let modules = context.survey.tools().terraform.blocks().filter(|block| is_plain(block));
    for module in modules {
        let rules = module.get("node_security_group_additional_rules");
        let Some(rules) = rules.map_or(Some(Vec::new()), written_out) else { continue };
        if has_own_network(context) {
            return;
        }
        if let Some((service, port)) = low_port(context, &module.span.file)
            && !rules.iter().any(|rule| admits(rule, port, true))
        {
            report.add(between_nodes(context, module, service, port));
        }
        let installs_istio = context.survey.apps.iter().any(|app| {
            let sources = app.application.spec.effective_sources();
            sources.iter().any(|it| Component::of_chart(&it.chart).is_some_and(|found| found.name == "istio"))
        });
        if installs_istio && !rules.iter().any(|rule| admits(rule, ISTIO, false)) {
            report.add(from_control_plane(module));
        }
    }
}

/// Whether a block is the module, of a version that makes these rules, with its own group for nodes.
fn is_plain(block: &Block) -> bool {
    const FIRST_WITH_RULES: &str = "19.0.0";
    let is_off = |name: &str| block.get(name).is_some_and(|it| it.as_bool() != Some(true));
    block.kind == "module"
        && block.str("source") == Some("terraform-aws-modules/eks/aws")
        && block.str("version").is_some_and(|version| !known_charts::is_older(version, FIRST_WITH_RULES))
        && !is_off("create_node_security_group")
        && !is_off("node_security_group_enable_recommended_rules")
        && ["node_security_group_id", "cluster_compute_config", "compute_config", "fargate_profiles"]
            .iter()
            .all(|name| block.get(name).is_none())
}

/// The rules of an object, if all of it is written out.
fn written_out(rules: &Expression) -> Option<Vec<&Expression>> {
    match &rules.value {
        Value::Object(pairs) => Some(pairs.iter().map(|(_, rule)| rule).collect()),
        _ => None,
    }
}

/// Whether a rule lets a port in, from nodes or from the control plane; what is not written out clearly does.
fn admits(rule: &Expression, port: i64, from_nodes: bool) -> bool {
    if rule.get("type").and_then(Expression::as_str) == Some("egress") {
        return false;
    }
    let origin = if from_nodes {
        ["self", "source_node_security_group"]
    } else {
        ["source_cluster_security_group"; 2]
    };
    let is_from = origin.iter().any(|name| rule.get(name).is_some())
        || ["cidr_blocks", "ipv6_cidr_blocks", "prefix_list_ids", "source_security_group_id"]
            .iter()
            .any(|name| rule.get(name).is_some());
    let is_all =
        rule.get("protocol").and_then(Expression::as_str).is_some_and(|it| matches!(it, "-1" | "all"));
    let number = |name: &str| rule.get(name).map(Expression::as_number);
    let covers = match (number("from_port"), number("to_port")) {
        (Some(Some(first)), Some(Some(last))) => (first..=last).contains(&(port as f64)),
        _ => true,
    };
    is_from && (is_all || covers)
}

/// Whether another network carries the packets of pods from node to node.
fn has_own_network(context: &Context<'_>) -> bool {
    let is_other = |chart: &str| {
        Component::of_chart(chart).is_some_and(|found| matches!(found.name, "cilium" | "calico" | "flannel"))
    };
    context
        .survey
        .apps
        .iter()
        .any(|app| app.application.spec.effective_sources().iter().any(|it| is_other(&it.chart)))
        || context.survey.tools().writers.iter().any(|writer| {
            writer.component().is_some_and(|found| matches!(found.name, "cilium" | "calico" | "flannel"))
        })
}

/// Whether an object is for the cluster that a module makes: there is but one, or both are called by one
/// stage.
fn is_of_cluster(context: &Context<'_>, object: &Object, module: &str) -> bool {
    const STAGES: [&str; 6] = ["dev", "prod", "production", "stage", "staging", "test"];
    let Owner::App(app) = object.owner else { return false };
    let app = context.survey.app(app);
    let clusters: BTreeSet<(usize, &str)> =
        context.survey.apps.iter().map(|app| (app.environment.0, app.cluster())).collect();
    let steps = |path: &str| -> BTreeSet<String> {
        let steps = path.split(['/', '-', '_', '.']).filter(|step| STAGES.contains(step));
        steps.map(str::to_owned).collect()
    };
    clusters.len() == 1
        || !steps(module).is_disjoint(&steps(&app.declared.location.file))
        || !steps(module).is_disjoint(&steps(app.name()))
}

/// A Service that sends to pods at a port that nodes do not let through.
fn low_port<'a>(context: &Context<'a>, module: &str) -> Option<(&'a Object, i64)> {
    let services = context.survey.objects.iter().filter(|object| {
        object.key.kind == "Service" && object.key.group.is_empty() && is_of_cluster(context, object, module)
    });
    services.into_iter().find_map(|service| {
        let spec = service.value().get("spec").filter(|spec| spec.get("selector").is_some())?;
        let ports = list(spec, "ports").iter();
        let mut targets =
            ports.filter_map(|port| port.get("targetPort").unwrap_or(port.get("port")?).as_i64());
        Some((service, targets.find(|port| *port < FIRST_OPEN && *port != DNS)?))
    })
}

fn between_nodes(context: &Context<'_>, module: &Block, service: &Object, port: i64) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!(
            "the nodes of module {} do not let each other in at port {port}, to which {} sends",
            module.labels.join("."),
            service.title()
        ))
        .at(module.span.clone(), format!("its own rules begin at port {FIRST_OPEN}"))
        .see(context.survey.start(service), format!("sends to port {port} of pods"))
        .because("pods have the security groups of their nodes: who is on another node than the pod gets no answer")
        .help(format!("add a rule to node_security_group_additional_rules with self = true for port {port}, or let the pods listen above {FIRST_OPEN}"));
    Finding::new(RULE.incident, diagnostic).likely()
}

fn from_control_plane(module: &Block) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!(
            "the nodes of module {} do not let the control plane in at port {ISTIO}, where Istio's webhooks are",
            module.labels.join(".")
        ))
        .at(module.span.clone(), "its own rules are for other webhooks")
        .because("the API server asks the webhook before it stores a pod: `context deadline exceeded`")
        .help(format!("add a rule to node_security_group_additional_rules with source_cluster_security_group = true for port {ISTIO}"));
    Finding::new(RULE.incident, diagnostic).likely()
}
