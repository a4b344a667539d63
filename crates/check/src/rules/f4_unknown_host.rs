//! # A pod is given the address of a Service that is not there
//!
//! The environment, the arguments and the ConfigMaps of a pod name its peers, as annotations of an Ingress
//! and custom resources do: `http://backend:8080` for a
//! Service of its own namespace, `db.data.svc.cluster.local` for one of another. The cluster's DNS knows a
//! Service by its name and namespace, and by nothing else. This is told where nothing makes the Service, and
//! another one is called nearly so, or is called so and lives in another namespace. Of much used charts that
//! are out of reach it is known what they call their Services, and which ports those have.
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
use tiphys_diag::{Diagnostic, Severity, Span, similar_names};
use tiphys_graph::Object;
use tiphys_schema::Catalog;
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_services::{self, Answer},
        chart_uses::ChartUse,
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        misspelled_names::is_one_word_apart,
        pod_references,
        pods::{Pod, list, text},
        value_steps::{each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
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

/// A name with a namespace alone and a port, after a scheme.
static WITH_NAMESPACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[a-z]://(?:[^\s/@]*@)?([a-z][a-z0-9-]*)\.([a-z][a-z0-9-]*):\d{1,5}(?:[^0-9A-Za-z.{$]|$)")
        .expect("the pattern is well formed")
});

/// The address of a Service with its port: with its namespace, or after a scheme.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    let full = r"([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc(?:\.cluster\.local)?\.?(?::(\d{1,5}))?(?:[^0-9a-zA-Z.:{$-]|$)";
    let short = r"https?://([a-z][a-z0-9-]*):(\d{1,5})(?:[^0-9A-Za-z.{$]|$)";
    Regex::new(&format!(r"(?:^|[^0-9a-zA-Z.$}}_-]){full}|(?:^|[^a-z]){short}"))
        .expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters().iter().chain(context.unreached_clusters()) {
        for pod in &cluster.pods {
            for (path, text) in texts(pod) {
                check_text(context, cluster, pod.object, &path, text, &mut once);
            }
            for (path, host) in bare_hosts(pod) {
                check_text(context, cluster, pod.object, &path, &host, &mut once);
            }
        }
        for object in cluster.objects.iter().filter(|it| it.key.kind == "ConfigMap" && is_taken(cluster, it))
        {
            let data = object.value().get("data").and_then(Value::as_object);
            for (name, value) in data.into_iter().flatten() {
                let value = value.as_str().unwrap_or_default();
                if let Some(host) = bare_host(name, value, &object.key.namespace) {
                    check_text(context, cluster, object, &keys(&["data", name]), &host, &mut once);
                }
                let lines = value.lines();
                for line in lines.filter(|line| !line.trim_start().starts_with(['#', ';', '*'])) {
                    check_text(context, cluster, object, &keys(&["data", name]), line, &mut once);
                }
            }
        }
        for object in cluster.objects.iter().filter(|it| is_read_by_controllers(it)) {
            each_text(object.value(), &mut Vec::new(), &|_| true, &mut |steps, text| {
                if steps.len() <= MAX_DEPTH && (text.contains(".svc") || text.contains("://")) {
                    let path = path_below(FieldPath::default(), steps);
                    check_text(context, cluster, object, &path, text, &mut once);
                }
            });
        }
    }
    for used in context.chart_uses() {
        check_chart_values(context, used, &mut once);
    }
    once.report(report);
}

/// Whether a controller reads addresses in an object: the annotations of an Ingress, or a custom resource.
/// What releases hand to their charts is looked at as values.
fn is_read_by_controllers(object: &Object) -> bool {
    const WITH_VALUES: [&str; 4] =
        ["argoproj.io", "helm.toolkit.fluxcd.io", "helm.cattle.io", "kustomize.toolkit.fluxcd.io"];
    // Policies and alerts quote addresses that are none of theirs.
    const QUOTING: [&str; 4] =
        ["apiextensions.k8s.io", "external-secrets.io", "kyverno.io", "monitoring.coreos.com"];
    let group = object.key.group.as_str();
    object.key.kind == "Ingress"
        || Catalog::latest().kind(&object.value().gvk()).is_none()
            && !WITH_VALUES.contains(&group)
            && !QUOTING.contains(&group)
}

/// How deep values are looked through.
const MAX_DEPTH: usize = 32;

/// The addresses in the values of a chart that is out of reach.
fn check_chart_values(context: &Context<'_>, used: &ChartUse, once: &mut Once) {
    let Some(release) = &used.release else { return };
    let mut clusters = context.clusters().iter().chain(context.unreached_clusters());
    let Some(cluster) = clusters.find(|it| *it.scope() == release.scope) else { return };
    let of = format!("the values of {}", used.by);
    for (index, values) in used.values.iter().enumerate() {
        each_text(values, &mut Vec::new(), &|_| true, &mut |steps, text| {
            if steps.len() > MAX_DEPTH || !text.contains(".svc") && !text.contains("://") {
                return;
            }
            let place = || place_of(context, used, index, steps).unwrap_or_else(|| used.span.clone());
            let of_charts = chart_addresses(context, cluster, &of, text, &release.namespace, &place);
            for (what, diagnostic) in of_charts {
                once.add(&what, Finding::new(RULE.incident, diagnostic).likely());
            }
            elsewhere(context, cluster, &of, text, &place, once);
        });
    }
}

/// Addresses in values that name a Service of the repository in a namespace where it does not live.
fn elsewhere(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    who: &str,
    text: &str,
    place: &dyn Fn() -> Span,
    once: &mut Once,
) {
    for address in FULL.captures_iter(text) {
        let (Some(name), Some(namespace)) = (address.get(1), address.get(2)) else { continue };
        let (name, namespace) = (name.as_str(), namespace.as_str());
        if let Some(meant) = nearly_called(context, cluster, name, namespace) {
            let what = format!("{who}: Service/{name} in {namespace} is not there");
            let diagnostic = RULE
                .diagnostic(what.clone())
                .at(place(), "in this text")
                .see(context.survey.start(meant), format!("there is {}", meant.title()))
                .because("the cluster's DNS answers for Services that are there, by name and namespace");
            once.add(
                &what,
                Finding::new(RULE.incident, diagnostic).likely().perhaps(name, Some(&meant.key.name)),
            );
            continue;
        }
        let Some((meant, false)) = intended_service(cluster, None, name, namespace) else { continue };
        let right = &meant.key.namespace;
        let what = format!("{who}: Service/{name} in {namespace} is not there");
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(place(), "in this text")
            .see(context.survey.start(meant), format!("there is {}", meant.title()))
            .because("the cluster's DNS answers for Services that are there, by name and namespace")
            .help(format!("it lives in {right}: {name}.{right}.svc.cluster.local"));
        once.add(&what, Finding::new(RULE.incident, diagnostic).likely());
    }
}

/// The one Service of a namespace whose name has a word more or less, where no release that is out of reach
/// is called so that it may bring one of the name.
fn nearly_called<'a>(
    context: &Context<'_>,
    cluster: &Cluster<'a>,
    name: &str,
    namespace: &str,
) -> Option<&'a Object> {
    let here = || {
        let services =
            cluster.objects.iter().copied().filter(|it| it.key.kind == "Service" && it.key.group.is_empty());
        services.filter(|it| it.key.namespace == namespace)
    };
    let releases = context.chart_uses().iter().filter_map(|used| used.release.as_ref());
    let mut releases = releases.filter(|release| release.namespace == namespace);
    let may_be_brought = releases.any(|it| name.contains(&it.name) || name.contains(&it.chart_name));
    let hidden = context.survey.apps.iter().filter(|app| !app.is_rendered());
    let mut hidden = hidden.filter(|app| app.application.spec.destination.namespace == namespace);
    if here().any(|it| it.key.name == name)
        || may_be_brought
        || hidden.any(|app| name.contains(app.name()))
        || cluster.has_operated_pods(namespace)
        || cluster.may_be_made(namespace, name)
    {
        return None;
    }
    let mut near = here().filter(|it| is_one_word_apart(&it.key.name, name));
    near.next().filter(|_| near.next().is_none())
}

/// What is wrong with the addresses in a text that lead to Services of known charts out of reach.
fn chart_addresses(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    who: &str,
    text: &str,
    own: &str,
    place: &dyn Fn() -> Span,
) -> Vec<(String, Diagnostic)> {
    let mut found = Vec::new();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';', '*']));
    for address in lines.flat_map(|line| ADDRESS.captures_iter(line)) {
        let part = |at: usize| address.get(at).map_or("", |it| it.as_str());
        let (name, namespace) = match part(1) {
            "" => (part(4), own),
            name => (name, part(2)),
        };
        let before = address.get(1).map_or("", |it| text.split(it.as_str()).next().unwrap_or_default());
        let port = match [part(3), part(5)].concat() {
            port if port.is_empty() => implied_port(before).to_owned(),
            port => port,
        };
        if cluster.core("Service", namespace, name).is_some() {
            continue;
        }
        let (what, label, service) = match chart_services::find(context, cluster, namespace, name) {
            Some(Answer::Renamed(service)) => {
                let what = format!(
                    "{who}: Service/{name} in {namespace} is not there, chart {} calls it {}",
                    service.chart.name, service.name
                );
                (what, format!("this chart makes Service/{}", service.name), service)
            }
            Some(Answer::Made(service)) if !port.is_empty() && !service.may_have_port(&port) => {
                let what = format!("{who}: Service/{name} in {namespace} has no port {port}");
                (what, format!("this chart gives it {}", service.ports_text()), service)
            }
            _ => continue,
        };
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(place(), "in this text")
            .see(service.used.span.clone(), label)
            .because(service.chart.evidence());
        found.push((what, diagnostic));
    }
    found
}

/// The port of an address without one, by the scheme that ends what stands before it.
fn implied_port(before: &str) -> &'static str {
    match before {
        _ if before.ends_with("http://") => "80",
        _ if before.ends_with("https://") => "443",
        _ => "",
    }
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

/// The Services that a pod is told by their names alone, as addresses, each with its place.
fn bare_hosts(pod: &Pod<'_>) -> Vec<(FieldPath, String)> {
    let mut found = Vec::new();
    for container in pod.containers() {
        for (at, variable) in list(container.value, "env").iter().enumerate() {
            let namespace = &pod.object.key.namespace;
            if let Some(host) = bare_host(text(variable, "name"), text(variable, "value"), namespace) {
                found.push((container.path.key("env").index(at).key("value"), host));
            }
        }
    }
    found
}

/// The address of a Service that a variable such as `DB_HOST` names alone, or with its port.
fn bare_host(variable: &str, value: &str, namespace: &str) -> Option<String> {
    const ENDINGS: [&str; 4] = ["HOST", "HOSTNAME", "ADDR", "ADDRESS"];
    const SHORTEST: usize = 4;
    let (name, port) = value.split_once(':').unwrap_or((value, ""));
    let is_host = variable.rsplit(['_', '.']).next().is_some_and(|it| ENDINGS.contains(&it));
    let is_name = name.len() >= SHORTEST
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_port = port.chars().all(|c| c.is_ascii_digit());
    if !is_host
        || !variable.contains(['_', '.'])
        || !is_name
        || !is_port
        || namespace.is_empty()
        || name == "localhost"
    {
        return None;
    }
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    Some(format!("{name}.{namespace}.svc.cluster.local{port}"))
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
    let place = || context.survey.span(object, path);
    let of_charts = chart_addresses(context, cluster, &object.title(), said, own, &place);
    for (what, diagnostic) in of_charts {
        once.add(&what, RULE.finding(context, object, diagnostic).likely());
    }
    let short = SHORT.captures_iter(said).filter_map(|it| it.get(1)).map(|name| (name.as_str(), own));
    let full = FULL.captures_iter(said).filter_map(|it| Some((it.get(1)?.as_str(), it.get(2)?.as_str())));
    let other =
        WITH_NAMESPACE.captures_iter(said).filter_map(|it| Some((it.get(1)?.as_str(), it.get(2)?.as_str())));
    // What stands behind the dot is a namespace only if something lives there.
    let other =
        other.filter(|(_, namespace)| cluster.objects.iter().any(|it| it.key.namespace == *namespace));
    for (name, namespace) in short.chain(full).chain(other) {
        let Some((meant, is_beside)) = intended_service(cluster, Some(object), name, namespace) else {
            continue;
        };
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
/// if there may be one, or none is like it. What is hidden of a namespace hardly brings a Service that is
/// called like another one of the very Application of `asker`.
fn intended_service<'a>(
    cluster: &Cluster<'a>,
    asker: Option<&Object>,
    name: &str,
    namespace: &str,
) -> Option<(&'a Object, bool)> {
    let services =
        || cluster.objects.iter().copied().filter(|it| it.key.kind == "Service" && it.key.group.is_empty());
    let here = || services().filter(|it| it.key.namespace == namespace);
    let like = || here().find(|it| stem(&it.key.name) == stem(name));
    let is_own = || like().is_some_and(|it| asker.is_some_and(|asker| asker.owner == it.owner));
    if here().any(|it| it.key.name == name)
        || cluster.is_partly_hidden(namespace) && !is_own()
        || cluster.belongs_to_argocd(namespace, name)
        || cluster.has_operated_pods(namespace)
        || cluster.may_be_made(namespace, name)
        || answers_to(cluster, namespace, name)
    {
        return None;
    }
    let nearest = || {
        let nearest = similar_names::nearest_slip(name, here().map(|it| it.key.name.as_str()))?;
        here().find(|it| {
            it.key.name == nearest
                && !similar_names::differ_in_digits_only(name, nearest)
                && !is_part(name, nearest)
        })
    };
    if let Some(found) = like().or_else(nearest) {
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
