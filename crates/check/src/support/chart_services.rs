//! The Services that known charts make where the charts themselves are out of reach.
//!
//! Only what is sure of a Service counts: the chart's version lies between two that were looked at, all
//! values are seen, and none of them decides on the Service in another way than the defaults do.

use std::collections::{BTreeSet, HashSet};

use tiphys_graph::{AppId, ObjectScope};
use tiphys_model::ApplicationSource;
use tiphys_value::Value;

use super::{
    chart_uses::{ChartUse, Release},
    cluster::Cluster,
    known_charts::{KnownChart, KnownPort, KnownService, Naming},
    known_values::KnownValues,
};
use crate::Context;

/// A Service that a known chart makes in a cluster.
pub(crate) struct ChartService<'a> {
    /// What takes the chart.
    pub used: &'a ChartUse,
    /// The chart.
    pub chart: &'static KnownChart,
    /// The Service's name.
    pub name: String,
    /// Names that it would have by another of the usual rules.
    pub others: BTreeSet<String>,
    /// Its ports, each with its name, which may be empty; nothing where they are not known.
    pub ports: Option<Vec<(&'static str, i64)>>,
}

/// What is known of a name that nothing seen has.
pub(crate) enum Answer<'a> {
    /// A chart makes the Service.
    Made(ChartService<'a>),
    /// A chart makes the Service that is meant, under another name.
    Renamed(ChartService<'a>),
}

/// What known charts say of a Service that nothing seen makes; nothing if another source may make it.
pub(crate) fn find<'a>(
    context: &'a Context<'_>,
    cluster: &Cluster<'_>,
    namespace: &str,
    name: &str,
) -> Option<Answer<'a>> {
    let mut made = services(context, cluster, namespace);
    if let Some(at) = made.iter().position(|it| it.name == name) {
        return Some(Answer::Made(made.swap_remove(at)));
    }
    // Of a release with values that are not seen nobody knows what it makes.
    let is_seen = |installed: &str| {
        in_scope(context, cluster, namespace)
            .any(|(_, release)| release.name == installed || release.name.ends_with(&format!("-{installed}")))
    };
    if cluster.has_open_names(namespace)
        || !cluster.begun_by_releases(namespace, name).all(is_seen)
        || cluster.is_begun_by(namespace, name)
        || has_unknown_charts(context, cluster, namespace, name)
        || in_scope(context, cluster, namespace).any(|(used, _)| may_make(&used.values, name, false))
    {
        return None;
    }
    let mut meant = made.into_iter().filter(|it| it.others.contains(name));
    let first = meant.next()?;
    meant.next().is_none().then_some(Answer::Renamed(first))
}

/// The charts that something releases into a namespace of a cluster.
fn in_scope<'a>(
    context: &'a Context<'_>,
    cluster: &Cluster<'_>,
    namespace: &str,
) -> impl Iterator<Item = (&'a ChartUse, &'a Release)> {
    let scope = cluster.scope().clone();
    let released = context.chart_uses().iter().filter_map(|used| Some((used, used.release.as_ref()?)));
    released.filter(move |(_, release)| release.scope == scope && release.namespace == namespace)
}

/// Whether something is not seen that may bring a Service of a name into a namespace, and is no known chart.
/// A release calls its Services after itself or its chart.
fn has_unknown_charts(context: &Context<'_>, cluster: &Cluster<'_>, namespace: &str, name: &str) -> bool {
    let known: HashSet<AppId> = in_scope(context, cluster, namespace)
        .filter(|(used, _)| KnownChart::of_use(used).is_some())
        .filter_map(|(used, _)| used.app)
        .collect();
    let may_be_called = |used: &ChartUse, release: &Release| {
        [&release.name, &release.chart_name, &used.chart]
            .iter()
            .any(|it| it.is_empty() || name.contains(&***it))
    };
    let unknown_release = in_scope(context, cluster, namespace)
        .any(|(used, release)| KnownChart::of_use(used).is_none() && may_be_called(used, release));
    let is_here = |namespaced: &str| namespaced.is_empty() || namespaced == namespace;
    unknown_release
        || context.survey.apps.iter().any(|app| {
            let sources = app.application.spec.effective_sources();
            let others = sources.iter().filter(|it| it.reference.is_empty());
            // Beside the chart often stands a folder of this repository.
            let is_one = others.filter(|it| !has_no_services(context, it)).count() == 1;
            !app.is_rendered()
                && !cluster.is_release(app)
                && is_here(&app.application.spec.destination.namespace)
                && matches!(cluster.scope(), ObjectScope::Cluster(environment, name)
                    if *environment == app.environment && **name == *app.cluster())
                && !(is_one && known.contains(&app.id))
        })
}

/// Whether a source is a folder of this repository with plain manifests, none of which is a Service.
fn has_no_services(context: &Context<'_>, source: &ApplicationSource) -> bool {
    let folder = source.path.trim_start_matches("./").trim_end_matches('/');
    let files = &context.survey.files;
    if !source.chart.is_empty() || folder.is_empty() || !files.has_folder(folder) {
        return false;
    }
    let below = format!("{folder}/");
    let mut inside = files.paths().filter(|path| path.starts_with(&below));
    !inside.any(|path| {
        // A chart, a program that writes manifests, or a kustomization that takes some from elsewhere.
        let is_made = path.ends_with("Chart.yaml") || path.ends_with("sonnet");
        is_made
            || files.text(path).is_some_and(|text| {
                let takes_more =
                    text.contains("helmCharts:") || text.contains("- ../") || text.contains("- http");
                takes_more || text.lines().any(|line| line.trim_end() == "kind: Service")
            })
    })
}

/// Whether values may make a chart bring a Service of a name: it stands in what they say of Services, or of
/// objects beside those of the chart.
fn may_make(values: &[Value], name: &str, is_about_objects: bool) -> bool {
    const OBJECTS: [&str; 5] = ["service", "extra", "additional", "manifest", "object"];
    values.iter().any(|value| match value {
        Value::String(text) => is_about_objects && text.contains(name),
        Value::Array(items) => may_make(items, name, is_about_objects),
        Value::Object(map) => map.iter().any(|(key, below)| {
            let key = key.to_lowercase();
            let is_about_objects = is_about_objects || OBJECTS.iter().any(|it| key.contains(it));
            is_about_objects && key.contains(name)
                || may_make(std::slice::from_ref(below), name, is_about_objects)
        }),
        _ => false,
    })
}

fn services<'a>(context: &'a Context<'_>, cluster: &Cluster<'_>, namespace: &str) -> Vec<ChartService<'a>> {
    let mut found = Vec::new();
    for (used, release) in in_scope(context, cluster, namespace) {
        let Some(chart) = KnownChart::of_use(used) else { continue };
        found.extend(
            chart.services.iter().filter_map(|service| service_of_release(used, release, chart, service)),
        );
    }
    found
}

/// A Service of a release, if the values leave no doubt about it.
fn service_of_release<'a>(
    used: &'a ChartUse,
    release: &Release,
    chart: &'static KnownChart,
    service: &'static KnownService,
) -> Option<ChartService<'a>> {
    let is_default = |path: &str, default: &str| match found_at(used, path) {
        Found::Nothing => true,
        Found::Value(Value::String(text)) => **text == *default,
        Found::Value(value) => {
            let text = value.to_string();
            text == default
        }
        Found::Cut => false,
    };
    let own_path = match &service.naming {
        Naming::Full { path, .. } => *path,
        _ => "",
    };
    if !service.switches.iter().all(|(path, default)| is_default(path, default))
        || used
            .values
            .iter()
            .any(|values| renames(values, &mut Vec::new(), own_path, &chart.override_paths()))
    {
        return None;
    }
    let (name, others) = names(used, release, chart, &service.naming)?;
    let unread = unread_paths(used);
    let is_set_aside = used.values.iter().any(|values| {
        let leaves = port_leaves(values, &mut Vec::new());
        leaves.iter().any(|path| !unread.contains(path) && decides_on_ports(path, &service.ports))
    });
    let ports: Option<Vec<_>> = match is_set_aside || service.ports.is_empty() {
        true => None,
        false => {
            service.ports.iter().map(|port| number(used, port).map(|number| (port.name, number))).collect()
        }
    };
    Some(ChartService { used, chart, name, others, ports })
}

/// What values say at a path.
enum Found<'a> {
    Nothing,
    Value(&'a Value),
    /// Something stands above it that has no fields.
    Cut,
}

fn found_at<'a>(used: &'a ChartUse, path: &str) -> Found<'a> {
    for values in used.values.iter().rev() {
        let mut here = values;
        let mut steps = path.split('.').peekable();
        while let Some(step) = steps.next() {
            let Some(map) = here.as_object() else {
                if here.is_null() && std::ptr::eq(here, values) {
                    break;
                }
                return Found::Cut;
            };
            let Some(below) = map.get(step) else { break };
            if steps.peek().is_none() {
                return Found::Value(below);
            }
            here = below;
        }
    }
    Found::Nothing
}

/// Whether values override names in a way that the Service's rule does not know.
fn renames(values: &Value, path: &mut Vec<String>, own: &str, known: &BTreeSet<&str>) -> bool {
    let Some(map) = values.as_object() else { return false };
    map.iter().any(|(key, value)| {
        let lower = key.to_lowercase();
        if lower.contains("nameoverride") || lower == "servicename" || lower == "overridename" {
            let is_usual = matches!(key.as_str(), "fullnameOverride" | "nameOverride");
            let at = path.join(".");
            return !(is_usual && (at == own || known.contains(at.as_str())));
        }
        path.push(key.clone());
        let found = renames(value, path, own, known);
        path.pop();
        found
    })
}

/// The paths of the values that say something of ports.
fn port_leaves(values: &Value, path: &mut Vec<String>) -> Vec<String> {
    let Some(map) = values.as_object() else {
        let is_of_ports = path.iter().any(|step| {
            let step = step.to_lowercase();
            step.contains("port") && !step.contains("export") && !step.contains("support")
        });
        return if is_of_ports { vec![path.join(".")] } else { Vec::new() };
    };
    let mut found = Vec::new();
    for (key, value) in map {
        path.push(key.clone());
        found.extend(port_leaves(value, path));
        path.pop();
    }
    found
}

/// The paths of values that no template of the chart reads, as far as its table says.
fn unread_paths(used: &ChartUse) -> HashSet<String> {
    let Some(known) = KnownValues::of_use(used) else { return HashSet::new() };
    let all = used.values.iter().flat_map(|values| known.find_unread(values));
    all.map(|unread| unread.to_string()).collect()
}

/// Whether a value may give a Service another port than those that are known. What a container listens on, or
/// a node, is no port of the Service.
fn decides_on_ports(path: &str, known: &[KnownPort]) -> bool {
    const OF_PODS_AND_NODES: [&str; 6] =
        ["targetPort", "containerPort", "containerPorts", "hostPort", "nodePort", "nodePorts"];
    /// What the chart of Traefik calls the port of its Service, beside that of the container.
    const EXPOSED: &str = ".exposedPort";
    /// What beside it decides on the Service.
    const OF_SERVICE: [&str; 3] = ["expose", "exposedPort", "protocol"];
    let of_entry_point = |port: &KnownPort| {
        let entry_point = port.path?.strip_suffix(EXPOSED)?;
        path.strip_prefix(entry_point)?.strip_prefix('.')
    };
    let is_beside = known.iter().any(|port| {
        of_entry_point(port)
            .is_some_and(|rest| !OF_SERVICE.contains(&rest.split('.').next().unwrap_or_default()))
    });
    let is_known = known.iter().any(|port| port.path == Some(path));
    !is_known && !is_beside && !path.split('.').any(|step| OF_PODS_AND_NODES.contains(&step))
}

fn number(used: &ChartUse, port: &KnownPort) -> Option<i64> {
    match port.path.map(|path| found_at(used, path)) {
        None | Some(Found::Nothing) => Some(port.number),
        Some(Found::Value(value)) => value.as_i64().or_else(|| value.as_str()?.parse().ok()),
        Some(Found::Cut) => None,
    }
}

/// The name of a Service, and those that it would have by other rules.
fn names(
    used: &ChartUse,
    release: &Release,
    chart: &KnownChart,
    naming: &Naming,
) -> Option<(String, BTreeSet<String>)> {
    let released = release.name.as_str();
    let (name, others) = match naming {
        Naming::Fixed(name) => ((*name).to_owned(), Vec::new()),
        Naming::Release(suffix) => {
            let bare = suffix.trim_start_matches('-');
            (format!("{released}{suffix}"), vec![bare.to_owned(), format!("{}{suffix}", chart.name)])
        }
        Naming::Full { chart: known, path, most, suffix } => {
            let said = |key: &str| {
                let steps = path.split('.').filter(|step| !step.is_empty()).chain([key]);
                match used.value(&steps.collect::<Vec<_>>()) {
                    None | Some(Value::Null) => Some(None),
                    Some(Value::String(text)) if text.contains("{{") || text.contains('$') => None,
                    Some(Value::String(text)) => Some(Some(text.clone()).filter(|text| !text.is_empty())),
                    Some(_) => None,
                }
            };
            // A chart under an alias is called so.
            let own =
                if path.is_empty() && *known == chart.name { release.chart_name.as_str() } else { known };
            let called = said("nameOverride")?.unwrap_or_else(|| own.to_owned());
            let usual = match released.contains(&called) {
                true => released.to_owned(),
                false => format!("{released}-{called}"),
            };
            let full = said("fullnameOverride")?.unwrap_or(usual);
            let cut: String = full.chars().take(*most).collect();
            let long = format!("{released}-{known}{suffix}");
            let short = [format!("{known}{suffix}"), format!("{released}{suffix}")];
            // What stands before the suffix is most often what a chart of one Service calls it.
            let bare = [cut.trim_end_matches('-').to_owned(), (*known).to_owned(), released.to_owned()];
            // What most people release is called as its chart is.
            let of_chart = match used.chart.contains(&called) {
                true => format!("{}{suffix}", used.chart),
                false => format!("{}-{called}{suffix}", used.chart),
            };
            let others = short.into_iter().chain(bare).chain([long, of_chart]).collect();
            (format!("{}{suffix}", cut.trim_end_matches('-')), others)
        }
    };
    const MAX_NAME: usize = 63;
    let others = others.into_iter().filter(|other| !other.is_empty() && *other != name).collect();
    let is_open = name.contains(['$', '{', '<']) || name.len() > MAX_NAME;
    (!is_open).then_some((name, others))
}

impl ChartService<'_> {
    /// Whether it has a port of a number or name, or nobody knows.
    pub(crate) fn may_have_port(&self, wanted: &str) -> bool {
        self.ports.as_ref().is_none_or(|ports| {
            ports.iter().any(|(name, number)| *name == wanted || number.to_string() == wanted)
        })
    }

    /// Its ports for messages.
    pub(crate) fn ports_text(&self) -> String {
        let number = |(_, number): &(&str, i64)| number.to_string();
        self.ports.iter().flatten().map(number).collect::<Vec<_>>().join(", ")
    }
}
