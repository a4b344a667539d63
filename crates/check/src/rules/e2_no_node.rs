//! # Pods ask for a label that no node gets
//!
//! A node selector, or a required node affinity, names labels of nodes. Nodes get their labels from node
//! pools, Terraform, kubelet arguments, the configuration of the distribution or `kubectl label`. Where the
//! repository labels nodes with the key, and never with the value that is asked for, the pods stay Pending.
//! So they do where pods ask for two values of a label of which every node has but one, such as
//! `node-role.kubernetes.io/…` with an empty text and with `true`.
//!
//! People see: `0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector`.
//!
//! ## Bad
//! ```yaml
//! # Terraform: labels = { pool = "workers" }
//! nodeSelector: {pool: worker}
//! ```
//! ## Good
//! ```yaml
//! nodeSelector: {pool: workers}
//! ```
//! ## When to suppress
//! Where somebody labels a node by hand.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{App, tools::Lines};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        placeholders,
        pods::{Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-node",
    incident: "E2",
    severity: Severity::Warning,
    title: "pods ask for a label that no node gets",
    page: page!("e2_no_node.rs"),
    check,
};

/// A label that pods ask for.
struct Asked<'a> {
    key: &'a str,
    values: Vec<&'a str>,
    field: FieldPath,
}

/// The values that nodes get for a key, each with the first place that says so; `None` if one of them is not
/// plain.
type Given = Option<BTreeMap<String, Span>>;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let mut given: BTreeMap<String, Given> = BTreeMap::new();
    for cluster in context.clusters() {
        roles(context, &cluster.pods, &mut once);
        for pod in &cluster.pods {
            for asked in asked_for(pod).iter().filter(|it| is_of_pools(it.key)) {
                outside_of_pools(context, cluster, pod, asked, &mut once);
            }
            for asked in asked_for(pod).into_iter().filter(|it| !is_of_nodes(it.key)) {
                if asked.values.iter().any(|value| placeholders::is_in(value))
                    || placeholders::is_in(asked.key)
                {
                    continue;
                }
                let known =
                    given.entry(asked.key.to_owned()).or_insert_with(|| labels_of_nodes(context, asked.key));
                if known.as_ref().is_some_and(BTreeMap::is_empty) {
                    without_domain(context, pod, &asked, &mut once);
                }
                let Some(known) = known.as_ref().filter(|known| !known.is_empty()) else { continue };
                if !asked.values.iter().any(|value| known.contains_key(*value)) {
                    add(context, pod, &asked, known, &mut once);
                }
            }
        }
    }
    once.report(report);
}

/// What every node has, by the name without its domain, under which no node has it.
const WELL_KNOWN: [(&str, &str); 4] = [
    ("arch", "kubernetes.io/arch"),
    ("hostname", "kubernetes.io/hostname"),
    ("instance-type", "node.kubernetes.io/instance-type"),
    ("os", "kubernetes.io/os"),
];

/// Tells of a well-known label of nodes without its domain, where no file gives nodes a label of this name.
fn without_domain(context: &Context<'_>, pod: &Pod<'_>, asked: &Asked<'_>, once: &mut Once) {
    let Some((key, known)) = WELL_KNOWN.iter().find(|(key, _)| *key == asked.key) else { return };
    let diagnostic = RULE
        .diagnostic(format!(
            "{} asks for nodes with label {key}, which nodes have as {known}",
            pod.object.title()
        ))
        .at(context.survey.span(pod.object, &asked.field), "asked for here")
        .because("the scheduler finds no node with this label, and the pods stay Pending")
        .help(format!("write {known}"));
    once.add(key, RULE.finding(context, pod.object, diagnostic).likely());
}

/// Whether the kubelet, or a controller of the cloud, gives a label to nodes by itself.
fn is_of_nodes(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain == "kubernetes.io"
        || domain.ends_with(".kubernetes.io")
        || domain.ends_with("k8s.io")
        || domain.contains("karpenter")
        || domain.contains("nvidia")
        || domain.contains("amazonaws")
        || domain.contains("google")
        || domain.contains("azure")
}

/// Whether a label is one that the pools of Karpenter decide, and that every node has.
fn is_of_pools(key: &str) -> bool {
    const KEYS: [&str; 3] = ["kubernetes.io/arch", "kubernetes.io/os", "karpenter.sh/capacity-type"];
    KEYS.contains(&key)
}

/// Tells of a label that all pools of a cluster rule out, where no other file speaks of nodes that have it.
fn outside_of_pools(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    pod: &Pod<'_>,
    asked: &Asked<'_>,
    once: &mut Once,
) {
    let pools =
        || cluster.objects.iter().filter(|it| it.key.kind == "NodePool" && it.key.group == "karpenter.sh");
    let allowed: Vec<Option<Vec<&str>>> = pools()
        .map(|pool| {
            let requirements = pool.value().at(&["spec", "template", "spec", "requirements"])?.as_array()?;
            let own = requirements.iter().find(|it| text(it, "key") == asked.key)?;
            let values = list(own, "values").iter().filter_map(Value::as_str).collect();
            (text(own, "operator") == "In").then_some(values)
        })
        .collect();
    let Some(first) = pools().next() else { return };
    let mut values = allowed.iter().flatten().flatten();
    if allowed.iter().any(Option::is_none) || values.any(|it| asked.values.contains(it)) {
        return;
    }
    let own = pod.object.rendered.location.file.as_ref();
    let files = &context.survey.files;
    let is_node_file = |path: &str| path != own && !path.ends_with(".md") && !path.starts_with(".github/");
    let says = |text: &str| asked.values.iter().any(|value| text.contains(value));
    let speaks = |path: &str| {
        let text = files.text(path).unwrap_or_default();
        let is_of_nodes = path.ends_with(".tf") || text.contains("NodePool") || text.contains("nodeGroup");
        is_of_nodes && says(&text)
    };
    if files.paths().filter(|path| is_node_file(path)).any(|path| speaks(path)) {
        return;
    }
    let known: BTreeSet<&str> = allowed.iter().flatten().flatten().copied().collect();
    let wanted = asked.values.join(" or ");
    let diagnostic = RULE
        .diagnostic(format!(
            "{} asks for nodes with {}={wanted}, which no NodePool allows",
            pod.object.title(),
            asked.key
        ))
        .at(context.survey.span(pod.object, &asked.field), "asked for here")
        .see(
            context.survey.start(first),
            format!("the pools allow {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        )
        .because("Karpenter makes no node that the pools do not allow, and the pods stay Pending");
    once.add(&wanted, RULE.finding(context, pod.object, diagnostic).likely());
}

/// The labels that a pod cannot do without.
fn asked_for<'a>(pod: &Pod<'a>) -> Vec<Asked<'a>> {
    let (spec, path) = (pod.spec(), pod.spec_path());
    let selector = spec.get("nodeSelector").and_then(Value::as_object);
    let mut found: Vec<Asked<'a>> = selector
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let field = path.key("nodeSelector").key(key);
            Some(Asked { key, values: vec![value.as_str()?], field })
        })
        .collect();
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let required = spec.at(&["affinity", "nodeAffinity", REQUIRED]);
    // Of several terms one is enough.
    if let Some([term]) = required.map(|it| list(it, "nodeSelectorTerms")) {
        let place = path.key("affinity").key("nodeAffinity").key(REQUIRED).key("nodeSelectorTerms").index(0);
        for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
            let values: Vec<&str> = list(expression, "values").iter().filter_map(Value::as_str).collect();
            if text(expression, "operator") == "In" && !values.is_empty() {
                let field = place.key("matchExpressions").index(at).key("values");
                found.push(Asked { key: text(expression, "key"), values, field });
            }
        }
    }
    found
}

/// What the files of the repository say of a label of nodes.
fn labels_of_nodes(context: &Context<'_>, key: &str) -> Given {
    let files = &context.survey.files;
    let mut given = BTreeMap::new();
    for path in files.paths().filter(|path| !path.contains("/templates/")) {
        let Some(content) = files.text(path).filter(|content| content.contains(key)) else { continue };
        let is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
        if [".md", ".adoc", ".txt"].iter().any(|end| path.ends_with(end)) {
            continue;
        }
        let lines: Vec<&str> = content.lines().collect();
        let mut start = 0;
        for (at, line) in content.split_inclusive('\n').enumerate() {
            let here = start;
            start += line.len();
            let Some(value) = value_after(line, key) else { continue };
            let is_label = match is_yaml {
                true => line.contains(&format!("{key}={value}")) || is_below_labels(&lines, at, &content),
                false => !asks(&lines, at),
            };
            if !is_label || line.trim_start().starts_with('#') {
                continue;
            }
            if value.is_empty()
                || placeholders::is_in(&value)
                || value.contains(['$', '{', '%'])
                || value.starts_with("var.")
            {
                return None;
            }
            let indent = line.len() - line.trim_start().len();
            let span = Lines::new(path, &content).span(here + indent..here + line.trim_end().len());
            given.entry(value).or_insert(span);
        }
    }
    Some(given)
}

/// The text that a line gives to a key: `key=value`, `key: value`, `"key" = "value"`.
fn value_after(line: &str, key: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let (at, _) = line
        .match_indices(key)
        .find(|(at, _)| !line[..*at].ends_with(is_part) && !line[at + key.len()..].starts_with(is_part))?;
    let rest = line[at + key.len()..].trim_start_matches(['"', '\'', ' ']);
    let rest = rest.strip_prefix(['=', ':'])?.trim_start_matches(['"', '\'', ' ']);
    let end = rest.find(['"', '\'', ',', ' ', '}', ']', '\n', ';', '#']).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

/// Whether the lines around ask for nodes, and give them no labels.
fn asks(lines: &[&str], at: usize) -> bool {
    const NEAR: usize = 4;
    let words = ["selector", "Selector", "affinity", "Affinity", "toleration", "taint"];
    lines[at.saturating_sub(NEAR)..=at].iter().any(|line| words.iter().any(|word| line.contains(word)))
}

/// Whether a line of a YAML file stands below the labels of nodes.
fn is_below_labels(lines: &[&str], at: usize, content: &str) -> bool {
    const OF_NODES: [&str; 5] = ["nodeLabels", "node_labels", "node-labels", "node-label", "nodeLabel"];
    const WORDS: [&str; 14] = [
        "kind: NodePool",
        "kind: Provisioner",
        "kind: MachineDeployment",
        "kind: MachineSet",
        "kind: Node\n",
        "kind: ClusterConfig",
        "machine:",
        "nodeGroups",
        "managedNodeGroups",
        "node_pools",
        "kind: MachinePool",
        "kind: RKE",
        "kubelet",
        "kind: InstanceGroup",
    ];
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines[at]);
    let parent = lines[..at].iter().rev().find(|line| !line.trim().is_empty() && indent(line) < own);
    let parent = parent.map_or("", |line| line.trim().trim_end_matches(':').trim_start_matches("- "));
    OF_NODES.contains(&parent) || parent == "labels" && WORDS.iter().any(|word| content.contains(word))
}

fn add(
    context: &Context<'_>,
    pod: &Pod<'_>,
    asked: &Asked<'_>,
    known: &BTreeMap<String, Span>,
    once: &mut Once,
) {
    let Asked { key, values, field } = asked;
    let wanted = values.join(" or ");
    let mut diagnostic = RULE
        .diagnostic(format!(
            "{} asks for nodes with {key}={wanted}, and no node gets that label",
            pod.object.title()
        ))
        .at(context.survey.span(pod.object, field), "asked for here")
        .because("the scheduler finds no node, and the pods stay Pending");
    let all: Vec<&str> = known.keys().map(String::as_str).collect();
    if let Some((value, span)) = known.iter().next() {
        diagnostic = diagnostic.see(span.clone(), format!("nodes get {key}={value} here"));
    }
    diagnostic = diagnostic.help(format!("nodes get {key} with {}", all.join(", ")));
    let near = similar_names::nearest_slip(values[0], all.iter().copied());
    once.add(&wanted, RULE.finding(context, pod.object, diagnostic).likely().perhaps(values[0], near));
}

/// Pods, and where they ask for a label, by the value that they ask for.
type ByValue<'p> = BTreeMap<&'p str, Vec<(&'p Pod<'p>, FieldPath)>>;

/// Pods that ask for the role of nodes with one text, and pods that ask for it with another: a distribution
/// gives all nodes of a role the same.
fn roles(context: &Context<'_>, pods: &[Pod<'_>], once: &mut Once) {
    const ROLE: &str = "node-role.kubernetes.io/";
    let mut by_key: BTreeMap<&str, ByValue<'_>> = BTreeMap::new();
    for pod in pods {
        for asked in asked_for(pod).into_iter().filter(|it| it.key.starts_with(ROLE)) {
            let [value] = asked.values[..] else { continue };
            by_key.entry(asked.key).or_default().entry(value).or_default().push((pod, asked.field));
        }
    }
    for (key, by_value) in by_key.iter().filter(|(_, by_value)| by_value.len() == 2) {
        let mut all: Vec<_> = by_value.iter().collect();
        all.sort_by_key(|(_, pods)| pods.len());
        let [(value, few), (usual, many)] = all[..] else { continue };
        let files: BTreeSet<&str> =
            few.iter().map(|(pod, _)| pod.object.rendered.location.file.as_ref()).collect();
        if few.len() == many.len() || files.len() > 1 {
            continue;
        }
        let (pod, field) = &few[0];
        let app = context.survey.app_of(pod.object).map(App::name).unwrap_or_default();
        let diagnostic = RULE
            .diagnostic(format!("{} asks for nodes with {key}={value:?}, and others with {key}={usual:?}", pod.object.title()))
            .at(context.survey.span(pod.object, field), "asked for here")
            .see(context.survey.span(many[0].0.object, &many[0].1), format!("{} of {} ask for this", many.len(), many.len() + few.len()))
            .because("all nodes of a role have the same text: one of the two selects no node, and its pods stay Pending");
        once.add(&format!("{app} {key}"), RULE.finding(context, pod.object, diagnostic).likely());
    }
}
