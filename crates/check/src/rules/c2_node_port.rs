//! # A node port that the API server does not give
//!
//! A Service of type NodePort or LoadBalancer may name the port that its nodes listen on. The API server
//! takes those of its range alone, 30000 to 32767 where nobody set another, and each of them once for the
//! whole cluster.
//!
//! People see: `Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 9080: provided port is not
//! in the valid range. The range of valid ports is 30000-32767`, or `provided port is already allocated`.
//!
//! ## Bad
//! ```yaml
//! spec: {type: NodePort, ports: [{port: 80, nodePort: 9080}]}
//! ```
//! ## Good
//! ```yaml
//! spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}
//! ```
//! ## When to suppress
//! Where the API server is started with another `--service-node-port-range`. What says so in the repository
//! is seen.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{list, text},
        sync_options, unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-node-port",
    incident: "C2",
    severity: Severity::Warning,
    title: "a node port that the API server does not give",
    page: page!("c2_node_port.rs"),
    check,
};

/// The range of an API server that was given no other (kube-apiserver, `--service-node-port-range`).
const RANGE: std::ops::RangeInclusive<i64> = 30000..=32767;
/// How the option for another range is called, by the API server and by what installs clusters.
const OPTIONS: [&str; 3] = ["service-node-port-range", "serviceNodePortRange", "service_node_port_range"];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    if !OPTIONS.iter().any(|option| sync_options::mentions(survey, option)) {
        for object in &survey.objects {
            if unrendered_files::is_from_unused_chart(survey, object)
                || unrendered_files::may_be_a_patch(survey, object)
            {
                continue;
            }
            for (path, port) in ports(object).into_iter().filter(|(_, port)| !RANGE.contains(port)) {
                let what = format!(
                    "Service {:?} is invalid: spec.ports[].nodePort: Invalid value: {port}: provided port is not in the valid range. The range of valid ports is 30000-32767",
                    object.key.name
                );
                let diagnostic = RULE
                    .diagnostic(what.clone())
                    .at(survey.span(object, &path), "not one of the range")
                    .because("the API server refuses the Service, and the sync of its Application fails")
                    .help("take a port of the range, or leave it out: the API server gives a free one");
                once.add(&what, RULE.finding(context, object, diagnostic).likely());
            }
        }
    }
    for cluster in context.clusters() {
        let mut taken: BTreeMap<(i64, String), &Object> = BTreeMap::new();
        for object in &cluster.objects {
            for (path, port) in ports(object) {
                let at = path.parent().unwrap_or_default();
                let protocol = at.key("protocol").get(object.value()).and_then(Value::as_str);
                let place = (port, protocol.unwrap_or("TCP").to_owned());
                let other = *taken.entry(place).or_insert(object);
                if other.key == object.key {
                    continue;
                }
                let what = format!("{} and {} both want node port {port}", other.title(), object.title());
                let diagnostic = RULE
                    .diagnostic(what.clone())
                    .at(survey.span(object, &path), "taken already")
                    .see(survey.start(other), "this one takes it")
                    .because("the API server refuses the second: provided port is already allocated")
                    .help("take another port, or leave it out: the API server gives a free one");
                once.add(&what, RULE.finding(context, object, diagnostic));
            }
        }
    }
    once.report(report);
}

/// The node ports that a Service names, each with its place.
fn ports(object: &Object) -> Vec<(FieldPath, i64)> {
    let spec = &object.value()["spec"];
    let is_service = object.key.kind == "Service" && object.key.group.is_empty();
    if !is_service || !matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        return Vec::new();
    }
    let ports = list(spec, "ports").iter().enumerate();
    let at = |index: usize| keys(&["spec", "ports"]).index(index).key("nodePort");
    ports
        .filter_map(|(index, port)| Some((at(index), port.get("nodePort")?.as_i64()?)))
        .filter(|(_, port)| *port > 0)
        .collect()
}
