//! Which objects a rule is about: its `match` and `exclude` (Kyverno, `pkg/engine/utils/match.go`).

use tiphys_value::{
    ObjectExt, Value,
    label_selector::{UnknownOperator, selects},
};

use super::{list, texts};
use crate::{
    request::{Namespace, Request},
    wildcard,
};

/// Whether a rule is about an object; `None` if who asks decides, or labels of a namespace that are not known.
pub(super) fn is_meant(rule: &Value, request: &Request<'_>) -> Option<bool> {
    if !filters(rule.get("match").unwrap_or(&Value::Null), request)? {
        return Some(false);
    }
    filters(rule.get("exclude").unwrap_or(&Value::Null), request).map(|is_left_out| !is_left_out)
}

/// Whether the filters of a block say yes: any, all, or the only one. An empty one never does.
fn filters(block: &Value, request: &Request<'_>) -> Option<bool> {
    let fits = |filter: &Value| if is_empty(filter) { Some(false) } else { fits(filter, request) };
    match (list(block, "any"), list(block, "all")) {
        ([], []) => fits(block),
        ([], all) => conjunction(all.iter().map(fits)),
        (any, _) => conjunction(any.iter().map(|filter| fits(filter).map(|it| !it))).map(|none| !none),
    }
}

/// Whether all hold: one that does not decides, even where another is not known.
pub(super) fn conjunction(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for one in all {
        match one {
            Some(false) => return Some(false),
            Some(true) => {}
            None => result = None,
        }
    }
    result
}

fn is_empty(filter: &Value) -> bool {
    let has = |field: &str| match filter.get(field) {
        Some(Value::Object(map)) => !map.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        _ => false,
    };
    !["resources", "subjects", "roles", "clusterRoles"].iter().any(|field| has(field))
}

/// Whether one filter fits an object: all that it says has to.
fn fits(filter: &Value, request: &Request<'_>) -> Option<bool> {
    let none = Value::Null;
    let resources = filter.get("resources").unwrap_or(&none);
    // Who asks: an engine whose name and groups are not known.
    let by_user = ["subjects", "roles", "clusterRoles"].iter().any(|it| !list(filter, it).is_empty());
    conjunction(
        [
            Some(any_or_none(texts(resources, "operations"), |it| it == "CREATE")),
            Some(any_or_none(texts(resources, "kinds"), |it| is_kind(it, request))),
            Some(any_or_none(names(resources), |it| wildcard::matches(it, request.name()))),
            Some(any_or_none(texts(resources, "namespaces"), |it| wildcard::matches(it, namespace(request)))),
            Some(has_annotations(resources, request)),
            Some(resources.get("selector").is_none_or(|it| is_selected(it, request.metadata("labels")))),
            by_namespace(resources, request),
            if by_user { None } else { Some(true) },
        ]
        .into_iter(),
    )
}

fn any_or_none<'v>(wanted: impl Iterator<Item = &'v str>, fits: impl Fn(&str) -> bool) -> bool {
    let mut wanted = wanted.peekable();
    wanted.peek().is_none() || wanted.any(fits)
}

fn names(resources: &Value) -> impl Iterator<Item = &str> {
    texts(resources, "names").chain(resources.get("name").and_then(Value::as_str))
}

/// The namespace by which an object is judged: a Namespace is in itself.
fn namespace<'r>(request: &'r Request<'_>) -> &'r str {
    if request.kind() == "Namespace" { request.name() } else { request.object.namespace() }
}

/// Whether a kind is meant: `Pod`, `v1/Pod`, `apps/v1/Deployment`, `*`, each of which may name a subresource.
pub(super) fn is_kind(selector: &str, request: &Request<'_>) -> bool {
    let gvk = &request.gvk;
    let Some((group, version, kind)) = kind_of(selector) else { return false };
    let fits = wildcard::matches;
    fits(group, &gvk.group) && fits(version, &gvk.version) && fits(kind, &gvk.kind)
}

/// The group, version and kind of a selector; `None` if it is about a subresource alone.
fn kind_of(selector: &str) -> Option<(&str, &str, &str)> {
    let mut parts: Vec<&str> = selector.split('/').collect();
    // A subresource may stand behind a point, too.
    let last = parts.pop()?;
    parts.extend(last.split('.'));
    match *parts.as_slice() {
        [kind] => Some(("*", "*", kind)),
        ["*", "*"] => Some(("*", "*", "*")),
        [version, kind] if is_version(version) && !(version == "*" && kind.to_lowercase() == kind) => {
            Some(("*", version, kind))
        }
        [group, version, kind] if !is_version(group) => Some((group, version, kind)),
        _ => None,
    }
}

/// `v1`, `v1beta1`, or any.
fn is_version(text: &str) -> bool {
    text == "*" || text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
}

fn has_annotations(resources: &Value, request: &Request<'_>) -> bool {
    let wanted = resources.get("annotations").and_then(Value::as_object);
    let given = request.metadata("annotations").as_object();
    wanted.into_iter().flatten().all(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        given.into_iter().flatten().any(|(name, it)| {
            wildcard::matches(key, name) && wildcard::matches(value, it.as_str().unwrap_or_default())
        })
    })
}

fn by_namespace(resources: &Value, request: &Request<'_>) -> Option<bool> {
    let Some(selector) = resources.get("namespaceSelector") else { return Some(true) };
    if request.kind() == "Namespace" {
        return Some(false);
    }
    match request.namespace {
        Namespace::Labels(labels) => Some(is_selected(selector, labels.unwrap_or(&Value::Null))),
        Namespace::Unknown => None,
    }
}

/// Whether labels meet a selector, the names and values of which may be patterns.
pub(crate) fn is_selected(selector: &Value, labels: &Value) -> bool {
    let given = labels.as_object();
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let has = |(key, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        given.into_iter().flatten().any(|(name, it)| {
            wildcard::matches(key, name) && wildcard::matches(value, it.as_str().unwrap_or_default())
        })
    };
    let by_expressions = || -> Result<bool, UnknownOperator> {
        let expressions = selector.get("matchExpressions").cloned().unwrap_or_default();
        selects(&serde_json::json!({"matchExpressions": expressions}), |key| {
            labels.get(key).and_then(Value::as_str)
        })
    };
    wanted.into_iter().flatten().all(has) && by_expressions().unwrap_or(false)
}

/// Whether an exception of the cluster lets an object pass a rule; `None` if that is not known.
pub(super) fn is_excepted(
    exceptions: &[&Value],
    policy: &Value,
    rule: &str,
    request: &Request<'_>,
) -> Option<bool> {
    let names = |entry: &Value| {
        let name = entry.get("policyName").and_then(Value::as_str).unwrap_or_default();
        let is_policy = match name.split_once('/') {
            Some((namespace, name)) => namespace == policy.namespace() && name == policy.name(),
            None => policy.namespace().is_empty() && wildcard::matches(name, policy.name()),
        };
        is_policy && texts(entry, "ruleNames").any(|it| wildcard::matches(it, rule))
    };
    let about = exceptions.iter().filter(|it| list(&it["spec"], "exceptions").iter().any(names));
    let lets_pass = |exception: &&Value| {
        let spec = &exception["spec"];
        let has_conditions = spec.get("conditions").is_some();
        match is_meant(spec, request) {
            Some(true) if has_conditions => None,
            known => known,
        }
    };
    conjunction(about.map(|it| lets_pass(it).map(|passes| !passes))).map(|none| !none)
}
