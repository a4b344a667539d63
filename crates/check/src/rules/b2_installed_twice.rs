//! # One component is installed twice in a cluster
//!
//! Two Applications install the same thing into two namespaces of one cluster, and there can be only one:
//! DaemonSets that want the same ports of every node, or operators that watch all namespaces with rights on
//! the whole cluster. The second DaemonSet's pods stay Pending; two operators undo each other's work; two
//! agents of one network write the same files and routes on every node.
//!
//! People see: `0/5 nodes are available: 5 node(s) didn't have free ports for the requested pod ports`,
//! `AlreadyExists`, `field is immutable`, two `calico-node` DaemonSets.
//!
//! ## Bad
//! ```yaml
//! # Application cni-bootstrap: DaemonSet calico-node in kube-system, hostPort 9099
//! # Application calico:        DaemonSet calico-node in calico-system, hostPort 9099
//! ```
//! ## Good
//! One Application installs it. Two ingress controllers on one cluster use different ports or nodes.
//!
//! ## When to suppress
//! When the two run on different nodes by means that the manifests do not show.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{
    App, Object, Owner,
    edges::{EdgeKind, Target, pod_spec},
    tools::Component,
};
use tiphys_value::{ObjectExt, Value};

use crate::{Context, Finding, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B2-installed-twice",
    incident: "B2",
    severity: Severity::Warning,
    title: "one component is installed into two namespaces of a cluster",
    page: page!("b2_installed_twice.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let index = &context.analyses().edges.index;
    let mut groups: BTreeMap<(usize, &str, &str, String), Vec<&Object>> = BTreeMap::new();
    for object in &context.survey.objects {
        if !matches!(object.key.kind.as_str(), "Deployment" | "DaemonSet") || object.environment.is_none() {
            continue;
        }
        let Some(image) = image(object) else { continue };
        let place = (index.scope(object.id), object.key.kind.as_str(), object.key.name.as_str(), image);
        groups.entry(place).or_default().push(object);
    }
    charts(context, report);
    networks(context, report);
    for objects in groups.values() {
        let first = objects[0];
        let clash = objects[1..].iter().find_map(|other| Some((*other, clash(context, first, other)?)));
        if let Some((other, why)) = clash {
            add(context, report, first, other, &why);
        }
    }
}

/// Components of which a cluster can have but one, whatever namespaces they are put into: each has the nodes,
/// the definitions or the webhooks of the whole cluster to itself.
const ONLY_ONCE: [&str; 11] = [
    "aws-ebs-csi-driver",
    "aws-load-balancer-controller",
    "calico",
    "cert-manager",
    "cilium",
    "keda",
    "kyverno",
    "longhorn",
    "metallb",
    "metrics-server",
    "sealed-secrets",
];

/// Components each of which is the network of the whole cluster.
const NETWORKS: [&str; 2] = ["calico", "cilium"];

/// Networks whose agent on a node has the node to itself.
const NODE_NETWORKS: [&str; 3] = ["calico", "cilium", "flannel"];

/// Charts of two networks for one cluster, where neither is told to go by the other.
fn networks(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut found: BTreeMap<(usize, &str), Vec<(&str, &App)>> = BTreeMap::new();
    for app in survey.apps.iter().filter(|app| !survey.is_symbolic(app)) {
        for source in app.application.spec.effective_sources() {
            let component = Component::of_chart(&source.chart).map(|component| component.name);
            if let Some(name) = component.filter(|name| NETWORKS.contains(name)) {
                found.entry((app.environment.0, app.cluster())).or_default().push((name, app));
            }
        }
    }
    // Cilium can stand behind another network, and Calico can leave the addresses to one.
    let is_chained = context.chart_uses().iter().any(|used| {
        let says = |path: &[&str], none: &str| used.text(path).is_some_and(|text| text != none);
        says(&["cni", "chainingMode"], "none")
            || used.text(&["cni", "install"]).is_some_and(|text| text == "false")
            || says(&["installation", "cni", "type"], "Calico")
    });
    for apps in found.into_values().filter(|_| !is_chained) {
        let (name, first) = apps[0];
        let Some((other_name, other)) =
            apps[1..].iter().find(|(other, app)| *other != name && survey.is_side_by_side(first, app))
        else {
            continue;
        };
        let message = format!(
            "two networks for one cluster: {name} by Application {} and {other_name} by Application {}",
            first.name(),
            other.name()
        );
        let diagnostic = RULE
            .diagnostic(message)
            .at(rule_helpers::source(context, other), format!("{other_name} is installed here"))
            .see(rule_helpers::source(context, first), format!("{name} is installed here"))
            .because("each writes the CNI configuration of the nodes, and the kubelet takes the first file by its name")
            .help("install one of them only, or set cni.chainingMode");
        report.add(Finding::new(RULE.incident, diagnostic).app(other.name()).likely());
    }
}

/// Charts that were not rendered, each in two namespaces of one cluster.
fn charts(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut found: BTreeMap<(usize, &str, &str), Vec<&App>> = BTreeMap::new();
    for app in survey.apps.iter().filter(|app| !app.is_rendered() && !survey.is_symbolic(app)) {
        for source in app.application.spec.effective_sources() {
            let component = Component::of_chart(&source.chart).map(|component| component.name);
            if let Some(name) = component.filter(|name| ONLY_ONCE.contains(name)) {
                found.entry((app.environment.0, app.cluster(), name)).or_default().push(app);
            }
        }
    }
    let namespace = |app: &App| app.application.spec.destination.namespace.clone();
    for ((_, _, component), apps) in found {
        let first = apps[0];
        let other = apps[1..].iter().find(|app| {
            app.name() != first.name()
                && namespace(app) != namespace(first)
                && survey.is_side_by_side(first, app)
        });
        let Some(other) = other else { continue };
        let message = format!(
            "{component} is installed twice: into {} by Application {} and into {} by Application {}",
            namespace(first),
            first.name(),
            namespace(other),
            other.name()
        );
        let diagnostic = RULE
            .diagnostic(message)
            .at(rule_helpers::source(context, other), format!("{} installs it here", other.name()))
            .see(rule_helpers::source(context, first), format!("{} installs it here", first.name()))
            .because("both take the same definitions, webhooks or nodes of the cluster for their own")
            .help("install it once");
        report.add(Finding::new(RULE.incident, diagnostic).app(other.name()).likely());
    }
}

/// The repository of the first image, without tag.
fn image(object: &Object) -> Option<String> {
    let (spec, _) = pod_spec(object.value())?;
    let image = spec.get("containers")?.get(0)?.str_at(&["image"])?;
    let image = image.split('@').next().unwrap_or(image);
    Some(match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name.to_owned(),
        _ => image.to_owned(),
    })
}

/// Why two installations cannot be side by side, if they cannot.
fn clash(context: &Context<'_>, one: &Object, other: &Object) -> Option<String> {
    let apart = one.owner != other.owner && one.key.namespace != other.key.namespace;
    if !apart || !matches!((one.owner, other.owner), (Owner::App(_), Owner::App(_))) {
        return None;
    }
    if one.key.kind == "DaemonSet" && selector(one) == selector(other) {
        let shared: BTreeSet<i64> = &ports(one) & &ports(other);
        if let Some(port) = shared.first() {
            return Some(format!("both want port {port} of every node"));
        }
        // The agents of a network name no ports: they run in the node's own network.
        let network = component(one).filter(|name| NODE_NETWORKS.contains(name))?;
        return Some(format!("each writes {network}'s CNI configuration and routes on every node"));
    }
    let (rights, others) = (rights(context, one), rights(context, other));
    let group = rights.intersection(&others).next()?;
    let arguments =
        |object: &Object| pod_spec(object.value()).map(|(spec, _)| spec.get("containers").cloned());
    // Arguments or variables that differ may tell the two what to leave to the other.
    (arguments(one) == arguments(other))
        .then(|| format!("both may write the resources of {group} in all namespaces"))
}

/// The component that its first image belongs to.
fn component(object: &Object) -> Option<&'static str> {
    Component::of_image(&image(object)?).map(|component| component.name)
}

fn selector(object: &Object) -> Option<Value> {
    pod_spec(object.value())?.0.get("nodeSelector").cloned()
}

/// The ports of the node that its pods take.
fn ports(object: &Object) -> BTreeSet<i64> {
    let Some((spec, _)) = pod_spec(object.value()) else { return BTreeSet::new() };
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let containers = spec.get("containers").and_then(Value::as_array).into_iter().flatten();
    let ports = containers.filter_map(|it| it.get("ports")?.as_array()).flatten();
    ports
        .filter_map(|port| port.int_at(&["hostPort"]).or(port.int_at(&["containerPort"]).filter(|_| on_host)))
        .collect()
}

/// The API groups of custom resources that an object's service account may write in the whole cluster.
fn rights(context: &Context<'_>, object: &Object) -> BTreeSet<String> {
    let edges = &context.analyses().edges;
    let mut found = BTreeSet::new();
    let accounts = edges.from(object.id).iter().filter(|edge| edge.kind == EdgeKind::RunsAs);
    for account in accounts.filter_map(|edge| object_of(&edge.to)) {
        let bindings = edges.to(account).filter(|edge| edge.kind == EdgeKind::Binds).map(|edge| edge.from);
        for binding in bindings.filter(|id| context.survey.object(*id).key.kind == "ClusterRoleBinding") {
            let roles = edges.from(binding).iter().filter(|edge| edge.kind == EdgeKind::Binds);
            for role in roles.filter_map(|edge| object_of(&edge.to)) {
                found.extend(written_groups(context.survey.object(role)));
            }
        }
    }
    found
}

fn object_of(target: &Target) -> Option<tiphys_graph::ObjectId> {
    match target {
        Target::Object(id) => Some(*id),
        Target::Named(_) => None,
    }
}

fn written_groups(role: &Object) -> BTreeSet<String> {
    let texts = |rule: &Value, list: &str| -> Vec<String> {
        let entries = rule.get(list).and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rules = role.value().get("rules").and_then(Value::as_array).into_iter().flatten();
    let writing = rules.filter(|rule| {
        texts(rule, "verbs").iter().any(|verb| matches!(verb.as_str(), "*" | "update" | "patch"))
    });
    let groups = writing.flat_map(|rule| texts(rule, "apiGroups"));
    groups.filter(|group| group.contains('.') && !group.ends_with("k8s.io")).collect()
}

fn add(context: &Context<'_>, report: &mut Report, one: &Object, other: &Object, why: &str) {
    let (Some(first), Some(second)) = (context.survey.app_of(one), context.survey.app_of(other)) else {
        return;
    };
    let message = format!(
        "{} {} is installed twice: into {} by Application {} and into {} by Application {}",
        one.key.kind,
        one.key.name,
        one.key.namespace,
        first.name(),
        other.key.namespace,
        second.name()
    );
    let diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.start(other), format!("{} installs it here", second.name()))
        .see(context.survey.start(one), format!("{} installs it here", first.name()))
        .because(why)
        .help("install it once");
    report.add(RULE.finding(context, other, diagnostic));
}
