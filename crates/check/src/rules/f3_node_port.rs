//! # A load balancer sends to a port that no node has
//!
//! A load balancer in front of the nodes is told the port by number, in Terraform or in its own
//! configuration; the Service says the same number as `nodePort`, or the chart's values do. Where the two
//! differ in one digit, the health checks fail and nothing arrives.
//!
//! People see: targets that are `unhealthy`, `Server ingress/node-1 is DOWN, reason: Layer4 connection
//! problem`, `connection refused`.
//!
//! ## Bad
//! ```yaml
//! # haproxy.cfg: server node-1 10.0.0.21:32433
//! kind: Service
//! spec: {type: NodePort, ports: [{port: 443, nodePort: 32443}]}
//! ```
//! ## Good
//! ```yaml
//! # haproxy.cfg: server node-1 10.0.0.21:32443
//! ```
//! ## When to suppress
//! Where the port is of something that is not in the repository.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::tools::Lines;
use tiphys_value::Value;

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        cloud_facts::{is_comment, is_example},
        dedup::Once,
        field_paths::keys,
        pods::list,
        unused_files,
        value_steps::{Step, each_scalar},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F3-node-port",
    incident: "F3",
    severity: Severity::Warning,
    title: "a load balancer sends to a port that no node has",
    page: page!("f3_node_port.rs"),
    check,
};

/// The ports that Kubernetes takes for nodes, unless it is told otherwise.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Where Terraform and load balancers name a port of a target: `port = 32443`, `server a 10.0.0.1:32443`.
static TARGETS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^[ \t]*(?:(?:port|target_port|destination_port|node_port|backend_port)[ \t]*=[ \t]*"?|server[ \t].*:)(3[0-2][0-9]{3})\b"#)
        .expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    const ENDINGS: [&str; 9] =
        [".tf", ".tfvars", ".hcl", ".cfg", ".conf", ".j2", ".tpl", ".tftpl", ".cfg.tmpl"];
    let known = node_ports(context);
    if known.is_empty() {
        return;
    }
    let files = &context.survey.files;
    let mut once = Once::default();
    for path in files.ending(&ENDINGS) {
        let is_aside = is_example(&path.replace("templates/", "")) || unused_files::is_in_unused_folder(path);
        let Some(text) = files.text(path).filter(|_| !is_aside) else { continue };
        let lines = Lines::new(path, &text);
        for found in TARGETS.captures_iter(&text).filter_map(|it| it.get(1)) {
            let port = found.as_str();
            if known.contains_key(port) || is_comment(&text, found.start()) {
                continue;
            }
            let Some(meant) = similar_names::nearest_slip(port, known.keys().map(String::as_str)) else {
                continue;
            };
            let diagnostic = RULE
                .diagnostic(format!(
                    "a load balancer sends to port {port} of the nodes, which no Service has"
                ))
                .at(lines.span(found.range()), "nothing listens there")
                .see(known[meant].clone(), format!("this has node port {meant}"))
                .because(
                    "a node listens at the node ports of Services alone: connections to others are refused",
                )
                .help(format!("write {meant} in both places"));
            once.add(port, Finding::new(RULE.incident, diagnostic).likely().with_spelling(port, meant));
        }
    }
    once.report(report);
}

/// The node ports that Services and the values of charts say, each with a place.
fn node_ports(context: &Context<'_>) -> BTreeMap<String, Span> {
    let survey = context.survey;
    let mut found = BTreeMap::new();
    for service in survey.objects.iter().filter(|it| it.key.kind == "Service" && it.key.group.is_empty()) {
        for (at, port) in list(&service.value()["spec"], "ports").iter().enumerate() {
            if let Some(number) = port["nodePort"].as_i64().filter(|number| NODE_PORTS.contains(number)) {
                let place = keys(&["spec", "ports"]).index(at).key("nodePort");
                found.entry(number.to_string()).or_insert_with(|| survey.span(service, &place));
            }
        }
    }
    for used in context.chart_uses() {
        for (index, values) in used.values.iter().enumerate() {
            each_scalar(values, &mut Vec::new(), &|_| true, &mut |steps, value| {
                let Some(number) = node_port(steps, value) else { return };
                let span = place_of(context, used, index, steps).unwrap_or_else(|| used.span.clone());
                found.entry(number.to_string()).or_insert(span);
            });
        }
    }
    found
}

/// The node port that a value is: it stands under `nodePort`, or in `nodePorts`.
fn node_port(steps: &[Step<'_>], value: &Value) -> Option<i64> {
    let is_of_nodes = steps.iter().any(|it| matches!(it, Step::Key(key) if key.starts_with("nodePort")));
    value.as_i64().filter(|it| is_of_nodes && NODE_PORTS.contains(it))
}
