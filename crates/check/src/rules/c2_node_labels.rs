//! # A kubelet is told to give its node a label that it may not give
//!
//! A kubelet starts with the labels of its node as an argument. Of labels in the domains of Kubernetes it
//! takes only a few: a node that could call itself a control plane could draw pods and Secrets to itself.
//! With any other it ends at once, and the node never joins.
//!
//! People see: `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels:
//! [node-role.kubernetes.io/worker]`, `--node-labels in the 'kubernetes.io' namespace must begin with an
//! allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set`,
//! machines that run and are no nodes.
//!
//! ## Bad
//! ```yaml
//! nodeRegistration:
//!   kubeletExtraArgs: {node-labels: node-role.kubernetes.io/worker=true}
//! ```
//! ## Good
//! ```yaml
//! nodeRegistration:
//!   kubeletExtraArgs: {node-labels: node.example.com/role=worker}
//! ```
//! Or a label that somebody else gives once the node is there: `kubectl label node worker-1
//! node-role.kubernetes.io/worker=`.
//!
//! ## When to suppress
//! Where the argument is read by another program, which takes the label away.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::tools::Lines;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        cloud_facts::{is_comment, is_example},
        dedup::Once,
        unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-node-labels",
    incident: "C2",
    severity: Severity::Error,
    title: "a kubelet is told to give its node a label that it may not give",
    page: page!("c2_node_labels.rs"),
    check,
};

/// Labels of Kubernetes that a kubelet may give (Kubernetes docs, "Using Node Authorization",
/// NodeRestriction).
const ALLOWED: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Domains below which it may give any label.
const ALLOWED_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// Programs that have an option of the same name, and set the labels by another way.
const OTHERS: [&str; 5] = ["gcloud ", "az ", "eksctl ", "doctl ", "ibmcloud "];

/// The argument on a command line or in a mapping, up to the end of its value.
static ARGUMENT: LazyLock<Regex> = LazyLock::new(|| {
    let option = r#"--node-labels?(?:=|[ \t]+)["']?([^\s"'\\]+)"#;
    let key = r#"(?m)^[ \t]*(?:- )?["']?node-labels["']?[ \t]*[:=][ \t]*["']?([^\s"'#\[\]]+)"#;
    Regex::new(&format!("(?:{option})|(?:{key})")).expect("the expression is right")
});

/// The labels as a list under their key, as in the configuration of K3s and RKE2.
static LIST: LazyLock<Regex> = LazyLock::new(|| {
    let expression = r#"(?m)^[ \t]*node-label:[ \t]*\n((?:[ \t]*- .*\n?)+)"#;
    Regex::new(expression).expect("the expression is right")
});
/// One item of such a list.
static ITEM: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"- +["']?([^\s"'#]+)"#).expect("the expression is right"));

/// Where labels are given: on command lines, in mappings, and in lists.
fn label_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    let arguments = ARGUMENT.captures_iter(text).filter_map(|it| it.get(1).or_else(|| it.get(2)));
    let mut found: Vec<_> = arguments.map(|it| it.range()).collect();
    for list in LIST.captures_iter(text).filter_map(|it| it.get(1)) {
        let items = ITEM.captures_iter(list.as_str()).filter_map(|it| it.get(1));
        found.extend(items.map(|it| list.start() + it.start()..list.start() + it.end()));
    }
    found
}

fn check(context: &Context<'_>, report: &mut Report) {
    const ENDINGS: [&str; 14] = [
        ".tf", ".tfvars", ".tpl", ".tftpl", ".hcl", ".yaml", ".yml", ".j2", ".sh", ".conf", ".env",
        ".service", ".cfg", ".toml",
    ];
    let files = &context.survey.files;
    let mut once = Once::default();
    // What fills in a folder of templates is user data and configuration, most often.
    let is_example = |path: &str| is_example(&path.replace("templates/", ""));
    for path in files.ending(&ENDINGS).filter(|path| !is_example(path)) {
        let Some(text) = files.text(path).filter(|text| text.contains("node-label")) else { continue };
        if unused_files::is_in_unused_folder(path) {
            continue;
        }
        let lines = Lines::new(path, &text);
        for labels in label_ranges(&text) {
            if is_comment(&text, labels.start) || is_of_another_program(&text, labels.start) {
                continue;
            }
            let mut keys = text[labels.clone()].split(',').filter_map(key);
            let Some(label) = keys.find(|key| is_refused(key)) else { continue };
            let diagnostic = RULE
                .diagnostic(format!(
                    "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{label}]"
                ))
                .at(lines.span(labels), "the kubelet does not start with this")
                .because("a node may not give itself labels that say what it may do; the kubelet ends, and the node does not join")
                .help("give it a label of a domain of your own, or set this one with kubectl once the node is there");
            once.add(label, Finding::new(RULE.incident, diagnostic).likely());
        }
    }
    once.report(report);
}

/// The key of a label, if it is written out.
fn key(label: &str) -> Option<&str> {
    let key = label.split('=').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    key.chars().all(is_plain).then_some(key)
}

fn is_refused(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let is_below = |of: &str| domain == of || domain.strip_suffix(of).is_some_and(|it| it.ends_with('.'));
    (is_below("kubernetes.io") || is_below("k8s.io"))
        && !ALLOWED_DOMAINS.iter().any(|of| is_below(of))
        && !ALLOWED.contains(&key)
}

/// Whether the command that a place belongs to, on the lines that it is continued over, is another program's.
fn is_of_another_program(text: &str, at: usize) -> bool {
    let mut lines = text[..at].rsplit('\n');
    let own = lines.next().unwrap_or_default();
    let before = lines.take_while(|line| line.trim_end().ends_with('\\'));
    std::iter::once(own).chain(before).any(|line| OTHERS.iter().any(|program| line.contains(program)))
}

#[cfg(test)]
mod tests {
    use super::is_refused;

    #[test]
    fn labels_are_judged_as_the_kubelet_does() {
        for label in ["node-role.kubernetes.io/worker", "kubernetes.io/role", "x.k8s.io/a"] {
            assert!(is_refused(label), "{label}");
        }
        for label in
            ["role", "node.kubernetes.io/role", "a.node.kubernetes.io/b", "kubernetes.io/os", "my.io/a"]
        {
            assert!(!is_refused(label), "{label}");
        }
    }
}
