//! # An Application names what the settings of Argo CD do not have
//!
//! A version of Kustomize, a plugin and a cluster are names that the settings of Argo CD give a meaning to.
//! Where the settings stand in Git and have no such name, nothing is rendered or applied.
//!
//! People see: `kustomize version v4.5.7 is not registered`, `could not find plugin supporting the given
//! repository`, `there are no clusters with this name: prod-eu`.
//!
//! ## Bad
//! ```yaml
//! # argocd-cm: {kustomize.path.v5.4.1: /custom/kustomize-5.4.1}
//! source: {path: web, kustomize: {version: v5.4.0}}
//! ```
//! ## Good
//! ```yaml
//! source: {path: web, kustomize: {version: v5.4.1}}
//! ```
//! ## When to suppress
//! Where the settings in the cluster have more than those in Git.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{App, Survey};
use tiphys_model::names;
use tiphys_value::{FieldPath, ObjectExt, RenderedObject, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-unregistered",
    incident: "D2",
    severity: Severity::Warning,
    title: "an Application names what the settings of Argo CD do not have",
    page: page!("d2_unregistered.rs"),
    check,
};

/// How a place of the settings gives names.
struct Registry {
    /// What has such names, for messages.
    what: &'static str,
    names: BTreeSet<String>,
    /// Whether these are names of nothing else.
    is_exact: bool,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let registries =
        Registries { versions: versions(survey), plugins: plugins(survey), clusters: clusters(survey) };
    let mut once = Once::default();
    for app in &survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            let place = field_paths::source(spec, at);
            let version = source.kustomize.as_ref().map(|it| it.version.as_str()).unwrap_or_default();
            let place_of = |field: &str, key: &str| place.key(field).key(key);
            registries.versions.check(context, app, version, &place_of("kustomize", "version"), &mut once);
            let plugin = source.plugin.as_ref().map(|it| it.name.as_str()).unwrap_or_default();
            registries.plugins.check(context, app, plugin, &place_of("plugin", "name"), &mut once);
        }
        if !survey.is_symbolic(app) && spec.destination.name != names::IN_CLUSTER_NAME {
            let place = field_paths::keys(&["spec", "destination", "name"]);
            registries.clusters.check(context, app, &spec.destination.name, &place, &mut once);
        }
    }
    once.report(report);
}

/// The names that the settings of a repository give, by what they are for; nothing where the settings are not
/// in Git.
struct Registries {
    versions: Option<Registry>,
    plugins: Option<Registry>,
    clusters: Option<Registry>,
}

/// Looks names up.
trait Lookup {
    fn check(&self, context: &Context<'_>, app: &App, name: &str, place: &FieldPath, once: &mut Once);
}

impl Lookup for Option<Registry> {
    fn check(&self, context: &Context<'_>, app: &App, name: &str, place: &FieldPath, once: &mut Once) {
        let Some(Registry { what, names, is_exact }) = self else { return };
        // A plugin of Argo CD is called by name and version.
        let is_versioned =
            |it: &str| !is_exact && it.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        let is_known = names.iter().any(|it| it == name || is_versioned(it));
        if name.is_empty() || placeholders::is_in(name) || name.contains('$') || is_known {
            return;
        }
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let span: Span = context.survey.app_span(app, place);
        let mut diagnostic = RULE
            .diagnostic(format!(
                "Application {} names {what} {name}, which the settings of Argo CD do not have",
                app.name()
            ))
            .at(span, "not registered")
            .because(
                "Argo CD looks the name up in its settings, and does nothing for the Application without it",
            );
        if *is_exact {
            diagnostic = diagnostic.help(format!("the settings in Git have {}", all.join(", ")));
        }
        let near = similar_names::nearest_slip(name, all.iter().copied());
        let finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
        once.add_by(format!("{what} {name}"), finding.perhaps(name, near));
    }
}

/// The versions of Kustomize that are registered, if any is.
fn versions(survey: &Survey) -> Option<Registry> {
    const KEYS: [&str; 2] = ["kustomize.version.", "kustomize.path."];
    let mut names = BTreeSet::new();
    for path in survey.files.ending(&[".yaml", ".yml", ".tf"]) {
        let Some(text) = survey.files.text(path).filter(|it| it.contains("kustomize.")) else { continue };
        // The operator's resource lists its versions in another form.
        if text.contains("kustomizeVersions") {
            return None;
        }
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            let key = KEYS.iter().find_map(|key| line.split_once(key)).map(|(_, rest)| rest);
            let name =
                key.map(|rest| rest.split([':', '"', '\'', ' ', '=', '\\']).next().unwrap_or_default());
            names.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    (!names.is_empty()).then_some(Registry { what: "version of Kustomize", names, is_exact: true })
}

/// The plugins that are registered, if any is: what a text with a ConfigManagementPlugin calls so, and the
/// keys of the chart's `plugins`.
fn plugins(survey: &Survey) -> Option<Registry> {
    let mut names = BTreeSet::new();
    for path in survey.files.ending(&[".yaml", ".yml", ".tf", ".json", ".tpl"]) {
        let Some(text) = survey.files.text(path) else { continue };
        let is_registry = text.contains("ConfigManagementPlugin") || text.contains("configManagementPlugins");
        let is_of_chart = text.contains("cmp:") && text.contains("plugins:");
        if !is_registry && !is_of_chart {
            continue;
        }
        // Somebody else's manifest may bring more.
        if text.contains("/raw/") || text.contains("raw.githubusercontent") {
            return None;
        }
        for line in text.lines() {
            let said = line.trim().trim_start_matches("- ");
            let name = said.strip_prefix("name:").or_else(|| said.strip_suffix(':')).map(str::trim);
            names.extend(name.map(|name| name.trim_matches(['"', '\'']).to_owned()));
        }
        for step in path.split(['/', '.']) {
            names.insert(step.to_owned());
        }
    }
    if names.is_empty() {
        return None;
    }
    Some(Registry { what: "plugin", names, is_exact: false })
}

/// The clusters that Secrets in Git tell of, if all of their names can be read and Applications name but one
/// that is not among them.
fn clusters(survey: &Survey) -> Option<Registry> {
    const TYPE: &str = "argocd.argoproj.io/secret-type";
    let rendered = survey.objects.iter().map(|it| &it.rendered);
    let all: Vec<&Arc<RenderedObject>> = survey.others.iter().chain(rendered).collect();
    let mut registered = BTreeSet::new();
    for object in all.into_iter().map(|it| &it.value) {
        let text = if object.kind().ends_with("Secret") { object.to_string() } else { continue };
        if !text.contains(&format!("\"{TYPE}\":\"cluster\"")) {
            continue;
        }
        let own = object.str_at(&["stringData", "name"]);
        let made = object.at(&["spec", "target", "template", "data", "name"]).and_then(Value::as_str);
        let name = own.or(made).filter(|name| !placeholders::is_in(name))?;
        registered.insert(name.to_owned());
    }
    let named: BTreeSet<&str> = survey
        .apps
        .iter()
        .filter(|app| !survey.is_symbolic(app))
        .map(|app| app.application.spec.destination.name.as_str())
        .filter(|name| !name.is_empty() && *name != names::IN_CLUSTER_NAME)
        .collect();
    let (known, unknown): (Vec<&str>, Vec<&str>) =
        named.into_iter().partition(|name| registered.contains(*name));
    // Where several are unknown, somebody registers clusters by hand.
    let is_outlier = !known.is_empty() && unknown.len() == 1;
    is_outlier.then_some(Registry { what: "cluster", names: registered, is_exact: true })
}
