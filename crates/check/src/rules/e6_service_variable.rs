//! # A Service's name gives a pod a variable that its program reads otherwise
//!
//! Kubernetes sets variables for every Service of a pod's namespace: `KAFKA_PORT=tcp://10.0.0.5:9092` for one
//! that is called `kafka`. A program whose own settings are called so takes the text for its port, and does
//! not start. It is nearly always the program's own Service.
//!
//! People see: `port is deprecated. Please use KAFKA_ADVERTISED_LISTENERS instead.`, `Invalid number value
//! for N8N_PORT: tcp://…`, `'tcp://…' is not a valid port`, a pod in CrashLoopBackOff.
//!
//! ## Bad
//! ```yaml
//! # Service kafka, and beside it:
//! containers: [{name: kafka, image: confluentinc/cp-kafka:7.7.0}]
//! ```
//! ## Good
//! ```yaml
//! enableServiceLinks: false
//! containers: [{name: kafka, image: confluentinc/cp-kafka:7.7.0}]
//! ```
//! ## When to suppress
//! Where the image's start unsets the variable.

use std::collections::HashSet;

use tiphys_diag::Severity;
use tiphys_graph::{Object, ObjectScope};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        images::Image,
        pods::{self, Container, Pod, list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-service-variable",
    incident: "E6",
    severity: Severity::Warning,
    title: "a Service's name gives a pod a variable that its program reads otherwise",
    page: page!("e6_service_variable.rs"),
    check,
};

const TABLE: &str = include_str!("../../data/variables-of-images.txt");

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for (world, objects) in context.survey.worlds() {
        let services: HashSet<(&str, &str)> = objects
            .clone()
            .filter(|it| it.key.kind == "Service" && it.key.group.is_empty() && has_address(it))
            .map(|it| (it.key.namespace.as_str(), it.key.name.as_str()))
            .collect();
        let is_read = |it: &&Object| {
            matches!(world, ObjectScope::Cluster(..)) || !unrendered_files::may_be_a_patch(context.survey, it)
        };
        for pod in objects.filter(is_read).filter_map(pods::pod_of) {
            for container in pod.containers() {
                if let Some((variable, service)) = clash(&services, &pod, &container) {
                    add(context, &pod, &container, (variable, &service), &mut once);
                }
            }
        }
    }
    once.report(report);
}

/// Whether a Service has an address of its own; for no other one variables are set.
fn has_address(service: &Object) -> bool {
    let spec = &service.value()["spec"];
    text(spec, "clusterIP") != "None" && text(spec, "type") != "ExternalName"
}

/// A variable that the program of a container reads, and the Service that Kubernetes sets it for.
fn clash(
    services: &HashSet<(&str, &str)>,
    pod: &Pod<'_>,
    container: &Container<'_>,
) -> Option<(&'static str, String)> {
    let is_off = pod.spec().get("enableServiceLinks").and_then(|it| it.as_bool()) == Some(false);
    // What is taken from elsewhere may set it, and another command is another program.
    let is_other = ["envFrom", "command"].iter().any(|it| !list(container.value, it).is_empty());
    let image = Image::parse(container.image()).filter(|_| !is_off && !is_other)?;
    let ends = |known: &str| image.path == known || image.path.ends_with(&format!("/{known}"));
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let (_, variables) = lines.filter_map(|line| line.split_once(' ')).find(|(known, _)| ends(known))?;
    let is_set = |name: &str| list(container.value, "env").iter().any(|it| text(it, "name") == name);
    let namespace = pod.object.key.namespace.as_str();
    variables.split(' ').filter(|it| !is_set(it)).find_map(|variable| {
        let service = variable.strip_suffix("_PORT")?.to_lowercase().replace('_', "-");
        services.contains(&(namespace, service.as_str())).then_some((variable, service))
    })
}

fn add(
    context: &Context<'_>,
    pod: &Pod<'_>,
    container: &Container<'_>,
    (variable, service): (&str, &str),
    once: &mut Once,
) {
    let object = pod.object;
    let diagnostic = RULE
        .diagnostic(format!(
            "container {} of {} gets {variable} for Service/{service}, and reads it as its own setting",
            container.name(),
            object.title()
        ))
        .at(context.survey.span(object, &container.path.key("image")), "its program reads this variable")
        .because(format!(
            "Kubernetes sets {variable}=tcp://… in all pods beside Service/{service}, and the program does not start with that"
        ))
        .help(format!("set enableServiceLinks: false in the pod, set {variable} itself, or call the Service otherwise"));
    once.add(variable, RULE.finding(context, object, diagnostic));
}
