//! # A pod is given the address of a Service that is not there
//!
//! The environment, the arguments and the ConfigMaps of a pod name its peers: `http://backend:8080` for a
//! Service of its own namespace, `db.data.svc.cluster.local` for one of another. The cluster's DNS knows a
//! Service by its name and namespace, and by nothing else. This is told where nothing makes the Service, and
//! another one is called nearly so, or is called so and lives in another namespace.
//!
//! People see: `getaddrinfo ENOTFOUND backend-svc`, `dial tcp: lookup redis.cache.svc.cluster.local: no such
//! host`, `host not found in upstream "backend-api"`, `Temporary failure in name resolution`.
//!
//! ## Bad
//! ```yaml
//! env: [{name: API, value: "http://backend-svc:8080"}]      # the Service is called backend
//! ```
//! ## Good
//! ```yaml
//! env: [{name: API, value: "http://backend:8080"}]
//! ```
//! ## When to suppress
//! Where a program makes the Service, or the text is for people.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        nearest_name, pod_references,
        pods::{Pod, list, text},
    },
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "F4-unknown-host",
    incident: "F4",
    severity: Severity::Warning,
    title: "a pod is given the address of a Service that is not there",
    page: page!("f4_unknown_host.rs"),
    check,
};

/// A name alone with a port, after a scheme.
static SHORT: LazyLock<Regex> = LazyLock::new(|| {
    let schemes =
        "https?|grpcs?|amqps?|rediss?|mongodb|postgres(?:ql)?|mysql|nats|tcp|kafka|ws|memcached|jdbc:[a-z]+";
    Regex::new(&format!(
        r"(?:^|[^a-z])(?:{schemes})://(?:[^\s/@]*@)?([a-z][a-z0-9-]*):\d{{1,5}}(?:[^0-9A-Za-z.{{$]|$)"
    ))
    .expect("the pattern is well formed")
});
/// The name of a Service with its namespace.
static FULL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[/@,\s=\x22'])([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc(?:\.cluster\.local)?\.?(?:[:/\s,;?\x22']|$)")
        .expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for pod in &cluster.pods {
            for (path, text) in texts(pod) {
                check_text(context, cluster, pod.object, &path, text, &mut once);
            }
        }
        for object in cluster.objects.iter().filter(|it| it.key.kind == "ConfigMap" && is_taken(cluster, it))
        {
            let data = object.value().get("data").and_then(Value::as_object);
            for (name, value) in data.into_iter().flatten() {
                let lines = value.as_str().unwrap_or_default().lines();
                for line in lines.filter(|line| !line.trim_start().starts_with(['#', ';', '*'])) {
                    check_text(context, cluster, object, &keys(&["data", name]), line, &mut once);
                }
            }
        }
    }
    once.report(report);
}

/// Whether a pod of its namespace takes a ConfigMap into its environment or its files.
fn is_taken(cluster: &Cluster<'_>, map: &Object) -> bool {
    let mut pods = cluster.pods.iter().filter(|pod| pod.object.key.namespace == map.key.namespace);
    pods.any(|pod| {
        pod_references::of_pod(pod)
            .iter()
            .any(|reference| reference.kind == "ConfigMap" && reference.name == map.key.name)
    })
}

/// The texts in which a pod is told its peers, each with its place.
fn texts<'a>(pod: &Pod<'a>) -> Vec<(FieldPath, &'a str)> {
    let mut found = Vec::new();
    for container in pod.containers() {
        for (at, variable) in list(container.value, "env").iter().enumerate() {
            found.push((container.path.key("env").index(at).key("value"), text(variable, "value")));
        }
        for key in ["command", "args"] {
            for (at, word) in list(container.value, key).iter().enumerate() {
                found.push((container.path.key(key).index(at), word.as_str().unwrap_or_default()));
            }
        }
    }
    found.retain(|(_, text)| text.contains("://") || text.contains(".svc"));
    found
}

fn check_text(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    path: &FieldPath,
    said: &str,
    once: &mut Once,
) {
    let own = object.key.namespace.as_str();
    let short = SHORT.captures_iter(said).filter_map(|it| it.get(1)).map(|name| (name.as_str(), own));
    let full = FULL.captures_iter(said).filter_map(|it| Some((it.get(1)?.as_str(), it.get(2)?.as_str())));
    for (name, namespace) in short.chain(full) {
        let Some((meant, is_beside)) = intended_service(cluster, name, namespace) else { continue };
        let right = &meant.key.namespace;
        let what = format!("{} names Service/{name} in {namespace}, which nothing makes", object.title());
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(context.survey.span(object, path), "in this text")
            .see(context.survey.start(meant), format!("there is {}", meant.title()))
            .because("the cluster's DNS answers for Services that are there, by name and namespace");
        let finding = match is_beside {
            true => RULE.finding(context, object, diagnostic).perhaps(name, Some(&meant.key.name)),
            false => {
                let help = format!("it lives in {right}: {name}.{right}.svc.cluster.local");
                RULE.finding(context, object, diagnostic.help(help))
            }
        };
        once.add(&what, finding.likely());
    }
}

/// The Service that is meant by a name that none has, and whether it lives where that is looked for; `None`
/// if there may be one, or none is like it.
fn intended_service<'a>(cluster: &Cluster<'a>, name: &str, namespace: &str) -> Option<(&'a Object, bool)> {
    let services =
        || cluster.objects.iter().copied().filter(|it| it.key.kind == "Service" && it.key.group.is_empty());
    let here = || services().filter(|it| it.key.namespace == namespace);
    if here().any(|it| it.key.name == name)
        || cluster.is_partly_hidden(namespace)
        || cluster.belongs_to_argocd(namespace, name)
        || cluster.has_operated_pods(namespace)
        || cluster.may_be_made(namespace, name)
        || answers_to(cluster, namespace, name)
    {
        return None;
    }
    let like = here().find(|it| stem(&it.key.name) == stem(name));
    let nearest = || {
        let nearest = nearest_name::nearest(name, here().map(|it| it.key.name.as_str()))?;
        here()
            .find(|it| it.key.name == nearest && !differs_by_number(name, nearest) && !is_part(name, nearest))
    };
    if let Some(found) = like.or_else(nearest) {
        return Some((found, true));
    }
    // The same name elsewhere: in one namespace only, and none of the cluster's objects lives where it is
    // looked for.
    let mut elsewhere = services().filter(|it| it.key.name == name);
    let other = elsewhere.next().filter(|_| elsewhere.next().is_none())?;
    let is_empty = cluster.objects.iter().all(|it| it.key.namespace != namespace);
    let has_address =
        is_empty && cluster.pods.iter().any(|pod| pod.object.key.namespace == other.key.namespace);
    has_address.then_some((other, false))
}

/// Whether pods answer to a name by themselves: their `hostname`, an alias, or another container of the same
/// pod.
fn answers_to(cluster: &Cluster<'_>, namespace: &str, name: &str) -> bool {
    let mut pods = cluster.pods.iter().filter(|pod| pod.object.key.namespace == namespace);
    pods.any(|pod| {
        let spec = pod.spec();
        let mut aliases = list(spec, "hostAliases").iter().flat_map(|alias| list(alias, "hostnames"));
        text(spec, "hostname") == name || aliases.any(|alias| alias.as_str() == Some(name))
    })
}

/// A name without the word that says that it is a Service.
fn stem(name: &str) -> &str {
    let endings = ["-service", "-svc", "-srv"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Whether one name says more than the other: `orders-db` is no slip for `orders`.
fn is_part(one: &str, other: &str) -> bool {
    let says_more =
        |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('-'));
    says_more(one, other) || says_more(other, one)
}

/// Whether two names differ in digits: `db-1` and `db-2` are two of several.
fn differs_by_number(one: &str, other: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit()).collect() };
    letters(one) == letters(other)
}
