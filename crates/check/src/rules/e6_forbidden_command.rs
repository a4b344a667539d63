//! # A command in a pod may not do what it asks for
//!
//! A CronJob restarts a Deployment, a hook waits for a Secret: the script calls kubectl as the
//! ServiceAccount of the pod. What no role grants the account, the API server refuses. `scale` needs
//! `deployments/scale`, `logs` needs `pods/log`, `exec` needs `pods/exec`, and a rollout is restarted by a
//! patch.
//!
//! A Role grants what it says in its own namespace alone: `kubectl -n other` needs one there.
//!
//! The rule speaks where the account has roles, all of which are in the repository, and none of them has
//! the resource with a verb that the command needs. It reads commands of containers, and scripts that they
//! mount from a ConfigMap.
//!
//! People see: `Error from server (Forbidden): deployments.apps "web" is forbidden: User
//! "system:serviceaccount:shop:restart" cannot patch resource "deployments"`.
//!
//! ## Bad
//! ```yaml
//! rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, list]}]     # kubectl rollout restart
//! ```
//! ## Good
//! ```yaml
//! rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, list, patch]}]
//! ```
//! ## When to suppress
//! Where somebody grants the rest by hand, or the script takes the refusal as an answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        placeholders,
        pods::{Container, Pod, list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-forbidden-command",
    incident: "E6",
    severity: Severity::Warning,
    title: "a command in a pod may not do what it asks for",
    page: page!("e6_forbidden_command.rs"),
    check,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A command of kubectl with a verb, and what follows it.
static COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let flags = r"((?:\s+(?:-n|--namespace)[ =]\S+|\s+--?[a-z][a-z-]*=\S+)*)";
    let verbs = r"get|delete|patch|scale|annotate|label|logs|exec|create|rollout\s+restart";
    // Where a command stands, and not in a text that speaks of one.
    let begin = r"(?:^|[;|&(`]|\b(?:if|then|else|do|while|until)\s|!)\s*";
    Regex::new(&format!(r"{begin}kubectl\b{flags}\s+({verbs})\s+([^|;&><\n]+)")).ok()
});

/// Resources, and what kubectl takes for them besides. Of other kinds nobody knows the plural.
const RESOURCES: [(&str, &[&str]); 30] = [
    ("configmaps", &["configmap", "cm"]),
    ("cronjobs", &["cronjob", "cj"]),
    ("csidrivers", &["csidriver"]),
    ("customresourcedefinitions", &["customresourcedefinition", "crd", "crds"]),
    ("daemonsets", &["daemonset", "ds"]),
    ("deployments", &["deployment", "deploy"]),
    ("endpoints", &["ep"]),
    ("events", &["event", "ev"]),
    ("horizontalpodautoscalers", &["horizontalpodautoscaler", "hpa"]),
    ("ingresses", &["ingress", "ing"]),
    ("jobs", &["job"]),
    ("leases", &["lease"]),
    ("limitranges", &["limitrange", "limits"]),
    ("namespaces", &["namespace", "ns"]),
    ("networkpolicies", &["networkpolicy", "netpol"]),
    ("nodes", &["node", "no"]),
    ("persistentvolumeclaims", &["persistentvolumeclaim", "pvc"]),
    ("persistentvolumes", &["persistentvolume", "pv"]),
    ("poddisruptionbudgets", &["poddisruptionbudget", "pdb"]),
    ("pods", &["pod", "po"]),
    ("replicasets", &["replicaset", "rs"]),
    ("resourcequotas", &["resourcequota", "quota"]),
    ("rolebindings", &["rolebinding"]),
    ("roles", &["role"]),
    ("secrets", &["secret"]),
    ("serviceaccounts", &["serviceaccount", "sa"]),
    ("services", &["service", "svc"]),
    ("statefulsets", &["statefulset", "sts"]),
    ("storageclasses", &["storageclass", "sc"]),
    ("volumeattachments", &["volumeattachment"]),
];

/// The namespace that a command of kubectl names.
static NAMESPACE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:^|\s)(?:-n|--namespace)[ =]?["']?([^\s"'=;|&)]+)"#).ok());

/// A variable of a script that is given a plain text.
static ASSIGNED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=["']?([a-z0-9-]+)["']?\s*$"#).ok()
});

/// What a command needs: one of these verbs for a resource.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    resource: String,
    verbs: &'static [&'static str],
    /// Where; `None` where that is not known, or it is in all of them.
    namespace: Option<String>,
}

/// A rule of a role, with the namespace that it is granted in; `None` if it is in all of them.
type Granted<'a> = (Option<&'a str>, &'a Value);

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for pod in &cluster.pods {
            let object = pod.object;
            let account = pod.service_account();
            if account == "default"
                || placeholders::is_in(account)
                || unrendered_files::may_be_a_patch(context.survey, object)
            {
                continue;
            }
            let mut rules = None;
            for container in pod.containers() {
                let found = needs(cluster, pod, &container);
                let Some((field, needs)) = found.filter(|(_, needs)| !needs.is_empty()) else { continue };
                let rules = rules.get_or_insert_with(|| granted(cluster, &object.key.namespace, account));
                let Some(rules) = rules.as_ref().filter(|rules| !rules.is_empty()) else { break };
                let lacking: Vec<&Need> = needs.iter().filter(|need| !is_granted(rules, need)).collect();
                if !lacking.is_empty() {
                    add(context, (object, account), &field, &lacking, &mut once);
                }
            }
        }
    }
    once.report(report);
}

fn add(
    context: &Context<'_>,
    (object, account): (&Object, &str),
    field: &FieldPath,
    lacking: &[&Need],
    once: &mut Once,
) {
    let named: Vec<String> = lacking
        .iter()
        .map(|need| {
            let elsewhere = need.namespace.as_deref().filter(|it| **it != object.key.namespace);
            let place = elsewhere.map(|it| format!(" in {it}")).unwrap_or_default();
            format!("{} {}{place}", need.verbs[0], need.resource)
        })
        .collect();
    let (first, namespace) = (lacking[0], &object.key.namespace);
    let diagnostic = RULE
        .diagnostic(format!(
            "{} runs kubectl as ServiceAccount/{account}, which may not {}",
            object.title(),
            named.join(", nor ")
        ))
        .at(context.survey.span(object, field), "asked for here")
        .because(format!(
            "Error from server (Forbidden): User \"system:serviceaccount:{namespace}:{account}\" cannot {} resource \"{}\"",
            first.verbs[0], first.resource
        ))
        .help(format!(
            "add to a role of the account: {{resources: [{}], verbs: [{}]}}",
            first.resource, first.verbs[0]
        ));
    once.add(&named.join(" "), RULE.finding(context, object, diagnostic).likely());
}

/// What the commands of a container need, and where they stand.
fn needs(
    cluster: &Cluster<'_>,
    pod: &Pod<'_>,
    container: &Container<'_>,
) -> Option<(FieldPath, BTreeSet<Need>)> {
    let words = |field: &str| -> Vec<&str> {
        list(container.value, field).iter().filter_map(Value::as_str).collect()
    };
    let all = [words("command"), words("args")].concat();
    if all.is_empty() {
        // What the image runs is not told.
        return None;
    }
    // A shell is handed scripts, and kubectl its arguments.
    let is_direct = all.first().is_some_and(|program| program.ends_with("kubectl"));
    let own = all.join(if is_direct { " " } else { "\n" }).replace("/usr/local/bin/kubectl", "kubectl");
    let mut script = own.clone();
    for mount in list(container.value, "volumeMounts") {
        let volumes = list(pod.spec(), "volumes");
        let Some(volume) = volumes.iter().find(|it| text(it, "name") == text(mount, "name")) else {
            continue;
        };
        let name = volume.str_at(&["configMap", "name"]).unwrap_or_default();
        let map = cluster.core("ConfigMap", &pod.object.key.namespace, name);
        let data = map.and_then(|it| it.value().get("data")).and_then(Value::as_object);
        for (key, content) in data.into_iter().flatten() {
            // Only what the container runs.
            if own.contains(key.as_str()) {
                script += content.as_str().unwrap_or_default();
            }
        }
    }
    // Somebody else's credentials.
    const OTHERS: [&str; 6] = ["kubeconfig", "KUBECONFIG", "--token", "--context", "--as", "set-context"];
    if !script.contains("kubectl") || OTHERS.iter().any(|word| script.contains(word)) {
        return None;
    }
    let is_in = |field: &str| words(field).iter().any(|word| word.contains("kubectl"));
    let field = if is_in("args") && !is_in("command") { "args" } else { "command" };
    let joined = script.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut found = BTreeSet::new();
    let variables = variables(&joined, container);
    for line in lines {
        for command in COMMAND.as_ref()?.captures_iter(line) {
            let words = [&command[1], &command[3]].join(" ");
            let namespace = namespace_of(&words, &variables);
            let namespace = match namespace {
                Named::No => Some(pod.object.key.namespace.clone()).filter(|it| !it.is_empty()),
                Named::Plainly(name) => Some(name),
                Named::Openly => None,
            };
            let needs = needs_of(&command[2], &command[3]).into_iter();
            found.extend(needs.map(|need| {
                let is_of_cluster = OF_CLUSTER.contains(&need.resource.as_str());
                Need { namespace: namespace.clone().filter(|_| !is_of_cluster), ..need }
            }));
        }
    }
    Some((container.path.key(field), found))
}

/// Those of the resources that live in no namespace.
const OF_CLUSTER: [&str; 7] = [
    "csidrivers",
    "customresourcedefinitions",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "storageclasses",
    "volumeattachments",
];

/// The plain texts that a script gives its variables, and those of the container; nothing of one that is
/// given several.
fn variables(script: &str, container: &Container<'_>) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in script.lines() {
        let Some(pattern) = ASSIGNED.as_ref() else { break };
        if let Some(found) = pattern.captures(line) {
            all.entry(found[1].to_owned()).or_default().insert(found[2].to_owned());
        }
    }
    for variable in list(container.value, "env") {
        all.entry(text(variable, "name").to_owned()).or_default().insert(text(variable, "value").to_owned());
    }
    let plain = all.into_iter().filter(|(_, values)| values.len() == 1);
    plain.filter_map(|(name, values)| Some((name, values.into_iter().next()?))).collect()
}

/// Whether a command says in which namespace.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    No,
    Plainly(String),
    /// By what only the script knows, or in all of them.
    Openly,
}

fn namespace_of(words: &str, variables: &BTreeMap<String, String>) -> Named {
    let is_everywhere = |word: &str| matches!(word, "-A" | "--all-namespaces" | "--all-namespaces=true");
    if words.split_whitespace().any(is_everywhere) {
        return Named::Openly;
    }
    let found = NAMESPACE.as_ref().and_then(|pattern| pattern.captures(words));
    let Some(name) = found.as_ref().and_then(|it| it.get(1)) else { return Named::No };
    match name.as_str().strip_prefix('$') {
        None => Named::Plainly(name.as_str().to_owned()),
        Some(variable) => {
            let variable = variable.trim_start_matches('{').trim_end_matches('}');
            let value = variables.get(variable).filter(|value| !value.is_empty());
            value.cloned().map_or(Named::Openly, Named::Plainly)
        }
    }
}

/// What one command needs.
fn needs_of(verb: &str, rest: &str) -> Vec<Need> {
    const WITH_VALUE: [&str; 9] =
        ["-n", "--namespace", "-l", "--selector", "-o", "--output", "-c", "-p", "--type"];
    let is_from_file = rest.split_whitespace().any(|word| matches!(word, "-f" | "--filename" | "-k"));
    if is_from_file || rest.contains("--dry-run=client") || rest.contains("--raw") {
        return Vec::new();
    }
    let mut words = rest.split_whitespace();
    let mut first = None;
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            first = Some(word.trim_end_matches([')', '`', '"', '\'']));
            break;
        }
    }
    let Some(first) = first.filter(|word| !word.contains('$')) else { return Vec::new() };
    let (kinds, has_name) = match first.split_once('/') {
        Some((kind, _)) => (kind, true),
        None => (first, words.next().is_some_and(|word| !word.starts_with('-'))),
    };
    let is_plain = kinds.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '.' | ','));
    if kinds.is_empty() || !is_plain {
        return Vec::new();
    }
    let resources = || kinds.split(',').filter_map(resource);
    let with = |verbs: &'static [&'static str]| {
        resources().map(|resource| Need { resource, verbs, namespace: None }).collect()
    };
    let of = |resource: &str, verbs| vec![Need { resource: resource.to_owned(), verbs, namespace: None }];
    match verb.split_whitespace().next().unwrap_or_default() {
        "get" if has_name => with(&["get", "list"]),
        "get" => with(&["list", "get"]),
        "delete" => with(&["delete", "deletecollection"]),
        "patch" | "annotate" | "label" | "rollout" => with(&["patch", "update"]),
        "scale" => resources()
            .map(|resource| Need {
                resource: format!("{resource}/scale"),
                verbs: &["patch", "update"],
                namespace: None,
            })
            .collect(),
        "logs" => of("pods/log", &["get"]),
        "exec" => of("pods/exec", &["create", "get"]),
        "create" if kinds != "token" => with(&["create"]),
        _ => Vec::new(),
    }
}

/// The resource of a kind as kubectl takes it.
fn resource(kind: &str) -> Option<String> {
    let is_it = |(resource, names): &&(&str, &[&str])| *resource == kind || names.contains(&kind);
    RESOURCES.iter().find(is_it).map(|(resource, _)| (*resource).to_owned())
}

/// The rules that an account has; nothing where some are not seen, or it has none.
fn granted<'a>(cluster: &Cluster<'a>, namespace: &str, account: &str) -> Option<Vec<Granted<'a>>> {
    let mut rules = Vec::new();
    let bindings =
        cluster.objects.iter().filter(|it| it.key.group == GROUP && it.key.kind.ends_with("RoleBinding"));
    for binding in bindings {
        let mut subjects = list(binding.value(), "subjects").iter();
        let is_bound = subjects.any(|subject| {
            let of = Some(text(subject, "namespace")).filter(|it| !it.is_empty());
            let is_it = text(subject, "kind") == "ServiceAccount"
                && text(subject, "name") == account
                && of.unwrap_or(&binding.key.namespace) == namespace;
            is_it || text(subject, "kind") == "Group" && text(subject, "name").starts_with("system:")
        });
        if !is_bound {
            continue;
        }
        let role = &binding.value()["roleRef"];
        let (kind, name) = (text(role, "kind"), text(role, "name"));
        let namespace = if kind == "ClusterRole" { "" } else { &binding.key.namespace };
        let role = cluster.find(&ResourceKey::new(GROUP, kind, namespace, name))?;
        if role.value().get("aggregationRule").is_some() || placeholders::has_placeholder(role.value()) {
            return None;
        }
        let place = (binding.key.kind == "RoleBinding").then_some(binding.key.namespace.as_str());
        rules.extend(list(role.value(), "rules").iter().map(|rule| (place, rule)));
    }
    Some(rules)
}

fn is_granted(rules: &[Granted<'_>], need: &Need) -> bool {
    let has = |rule: &Value, field: &str, is_it: &dyn Fn(&str) -> bool| {
        list(rule, field).iter().filter_map(Value::as_str).any(|it| it == "*" || is_it(it))
    };
    let (whole, part) = need.resource.split_once('/').unwrap_or((&need.resource, ""));
    let is_resource = |it: &str| {
        it == need.resource || !part.is_empty() && (it == format!("*/{part}") || it == format!("{whole}/*"))
    };
    rules.iter().any(|(place, rule)| {
        let is_there = match (place, &need.namespace) {
            (Some(place), Some(wanted)) => place == wanted,
            _ => true,
        };
        is_there
            && has(rule, "resources", &is_resource)
            && has(rule, "verbs", &|verb| need.verbs.contains(&verb))
    })
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, Named, namespace_of, needs_of};

    #[test]
    fn commands_say_in_which_namespace() {
        let variables = BTreeMap::from([("NS".to_owned(), "shop".to_owned())]);
        let named = |words: &str| namespace_of(words, &variables);
        let shop = || Named::Plainly("shop".to_owned());
        assert_eq!(named(" -n shop secret db"), shop());
        assert_eq!(named("secret db --namespace=shop"), shop());
        assert_eq!(named("secret db -n \"$NS\" -o name"), shop());
        assert_eq!(named("secret db -n ${NS}"), shop());
        assert_eq!(named("secret db -n $OTHER"), Named::Openly);
        assert_eq!(named("pods -A"), Named::Openly);
        assert_eq!(named("secret db -o name"), Named::No);
    }

    fn needs_as_text(verb: &str, rest: &str) -> Vec<String> {
        needs_of(verb, rest).iter().map(|need| format!("{} {}", need.verbs[0], need.resource)).collect()
    }

    #[test]
    fn commands_say_what_they_need() {
        assert_eq!(needs_as_text("get", "-n shop secret db -o jsonpath={.data.a}"), ["get secrets"]);
        assert_eq!(needs_as_text("get", "pods -l app=web"), ["list pods"]);
        assert_eq!(needs_as_text("rollout restart", "deployment/web"), ["patch deployments"]);
        assert_eq!(needs_as_text("scale", "--replicas=0 deploy/web"), ["patch deployments/scale"]);
        assert_eq!(needs_as_text("logs", "job/a"), ["get pods/log"]);
        assert_eq!(needs_as_text("get", "crd,ingress"), ["list customresourcedefinitions", "list ingresses"]);
        assert!(needs_as_text("get", "policies.kyverno.io").is_empty());
        for (verb, rest) in
            [("create", "-f a.yaml"), ("get", "$KIND a"), ("get", "--raw /api"), ("create", "token a")]
        {
            assert!(needs_of(verb, rest).is_empty(), "{verb} {rest}");
        }
    }
}
