//! What may lie below a resource that is not ready: what it owns, refers to, calls and speaks of.

use tiphys_value::{ObjectExt as _, Value};

use super::{
    condition_words::{QUOTES, kind_of_title},
    hidden_references::services_of_spec,
};
use crate::{
    Object,
    address_target::Target,
    cluster::{items, pods},
    dependencies,
    finding::Finding,
    search_context::Look,
};

/// Workloads of a namespace that may be why a resource is not ready: more of them tell nothing.
const MOST_BESIDE: usize = 16;

/// Adds to a finding about a resource everything that may lie below it. `words` is what the resource says, and
/// `called` the line of its operator's log about a call that failed.
pub(super) fn with_links(
    look: &Look<'_>,
    live: &Value,
    mut finding: Finding,
    operators: Vec<Object>,
    (words, called): (&str, &str),
) -> Finding {
    let object = Object::from_live(live);
    for child in look.cluster.owned(&object) {
        finding = finding.below(Object::from_live(child));
    }
    for pod in pods::of_workload(look.cluster, &object) {
        finding = finding.below(Object::from_live(pod));
    }
    for operator in operators {
        finding = finding.below(operator);
    }
    for reference in dependencies::upstream(look.cluster, &object) {
        finding = red_namesakes(look, &reference).into_iter().fold(finding.below(reference), Finding::below);
    }
    finding = mentioned(look, live, words).into_iter().fold(finding, Finding::below);
    // Where the words do not tell why, what fails beside it is the likeliest.
    if finding.is_shallow {
        let beside = look.ill.iter().map(|ill| &ill.workload).filter(|it| it.namespace == object.namespace);
        finding = beside.take(MOST_BESIDE).cloned().fold(finding, Finding::below);
    }
    // What its operator calls for it may be why.
    let told = look.cluster.events(&object).rfind(|event| event.is_warning());
    let told = told.map_or("", |event| event.message.as_str());
    finding = services_of_spec(look, live).into_iter().fold(finding, Finding::below);
    for address in [words, told, called].into_iter().flat_map(tiphys_cause::addresses) {
        if let Target::Service(service) = look.cluster.target(&address, live.namespace()) {
            finding = finding.below(Object::from_live(service));
        }
    }
    finding
}

/// Kinds as programs write them in sentences, in small letters and before a slash.
const WRITTEN: &[(&str, &str)] = &[
    ("node", "Node"),
    ("pod", "Pod"),
    ("deployment", "Deployment"),
    ("daemonset", "DaemonSet"),
    ("statefulset", "StatefulSet"),
    ("job", "Job"),
    ("service", "Service"),
    ("configmap", "ConfigMap"),
    ("persistentvolumeclaim", "PersistentVolumeClaim"),
    ("apiservice", "APIService"),
    ("route", "Route"),
    ("machineconfigpool", "MachineConfigPool"),
    ("clusteroperator", "ClusterOperator"),
];

/// The kind that a word means: `node`, `nodes`, `apiservices.apiregistration.k8s.io`.
fn written_kind(word: &str) -> Option<&'static str> {
    let word = word.split('.').next()?.to_ascii_lowercase();
    let word = word.strip_suffix('s').unwrap_or(&word);
    WRITTEN.iter().find(|(written, _)| *written == word).map(|(_, kind)| *kind)
}

/// A word without the signs around it.
fn plain(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// Kinds and names in words: `Configuration "web"`, `node "a" not ready`, `deployment/web`, `the pod web-1`.
fn named_in(words: &str) -> Vec<(String, &str)> {
    let parts: Vec<&str> = words.split(QUOTES).collect();
    let quoted = parts.windows(2).map(|pair| {
        let title = pair[0].split_whitespace().next_back().and_then(written_kind);
        (title.map_or_else(|| kind_of_title(pair[0]), str::to_owned), pair[1])
    });
    let mut found: Vec<(String, &str)> =
        quoted.filter(|(kind, name)| !kind.is_empty() && !name.contains(char::is_whitespace)).collect();
    let bare: Vec<&str> = words.split_whitespace().collect();
    for (at, word) in bare.iter().enumerate() {
        let joined =
            word.split_once('/').and_then(|(kind, name)| Some((written_kind(plain(kind))?, plain(name))));
        let apart = || Some((written_kind(word)?, plain(bare.get(at + 1)?)));
        found.extend(joined.or_else(apart).map(|(kind, name)| (kind.to_owned(), name)));
    }
    // What is quoted stands apart, too.
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|named| seen.insert(named.clone()));
    found
}

/// The namespaces that what a resource speaks of lies in: its own; for an operator of OpenShift those that
/// it tells are its own.
fn namespaces_of(live: &Value) -> Vec<&str> {
    let related = items(live, &["status", "relatedObjects"]).filter_map(|it| {
        let is_namespace = it.str_at(&["resource"]) == Some("namespaces");
        it.str_at(&[if is_namespace { "name" } else { "namespace" }])
    });
    let mut found = vec![live.namespace(), ""];
    found.extend(related.filter(|name| !name.is_empty()));
    found.dedup();
    found
}

/// The objects that words name by kind and name.
fn mentioned(look: &Look<'_>, live: &Value, words: &str) -> Vec<Object> {
    let own = Object::from_live(live);
    let namespaces = namespaces_of(live);
    let found = named_in(words).into_iter().flat_map(|(kind, name)| {
        // `NAMESPACE/NAME` tells both.
        let (told, name) = name.split_once('/').map_or((None, name), |(told, name)| (Some(told), name));
        let homes = told.into_iter().chain(namespaces.iter().copied());
        homes.filter_map(|namespace| look.cluster.get(&kind, namespace, name)).collect::<Vec<_>>()
    });
    found.map(Object::from_live).filter(|it| *it != own).collect()
}

/// The red resources that a reference means whose field tells more than the kind: `policyArnRef` is a Policy.
fn red_namesakes(look: &Look<'_>, reference: &Object) -> Vec<Object> {
    if look.cluster.live(reference).is_some() {
        return Vec::new();
    }
    let is_meant = |it: &&Object| it.name == reference.name && reference.kind.starts_with(&it.kind);
    look.red.keys().filter(is_meant).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn objects_that_sentences_name() {
        let read = |words| {
            named_in(words).into_iter().map(|(kind, name)| format!("{kind} {name}")).collect::<Vec<_>>()
        };
        assert_eq!(read("Configuration \"web\" is not ready"), ["Configuration web"]);
        assert_eq!(read("NodeDegraded: node \"a-1\" is not ready"), ["Node a-1"]);
        assert_eq!(read("waits for daemonset/dns and for pod/x: not ready"), ["DaemonSet dns", "Pod x"]);
        assert_eq!(read("apiservices.apiregistration.k8s.io/v1.x.io: not available"), ["APIService v1.x.io"]);
        assert!(read("two of three are ready").is_empty());
    }
}
