//! # A setting of Argo CD stands in another ConfigMap than the one that is read for it
//!
//! Argo CD reads `argocd-cm` for what it does, `argocd-cmd-params-cm` for the flags of its programs, and
//! `argocd-rbac-cm` for who may do what. A key that stands in another of the three is read by nobody:
//! nothing is refused, and the setting has no effect. The same holds of `configs.cm`, `configs.params` and
//! `configs.rbac` among the values of its chart.
//!
//! Of `argocd-rbac-cm` all keys are known: another one, such as `policy` for `policy.csv`, is read by nobody
//! either.
//!
//! People see: nothing – or what the setting was to prevent: `ERR_TOO_MANY_REDIRECTS` where
//! `server.insecure` is not read, `application in namespace "team" is not permitted to use project`.
//!
//! ## Bad
//! ```yaml
//! metadata: {name: argocd-cm}
//! data: {application.namespaces: team-a}
//! ```
//! ## Good
//! ```yaml
//! metadata: {name: argocd-cmd-params-cm}
//! data: {application.namespaces: team-a}
//! ```
//! ## When to suppress
//! Where a plugin or another program reads the key.

use tiphys_diag::{Diagnostic, Severity, Span, similar_names};
use tiphys_value::{Location, ObjectExt, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, value_steps::Step},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-misplaced-setting",
    incident: "C2",
    severity: Severity::Warning,
    title: "a setting of Argo CD in a ConfigMap that is not read for it",
    page: page!("c2_misplaced_setting.rs"),
    check,
};

/// A ConfigMap of Argo CD: its name, the section of the chart's values, and the keys that are read in it
/// alone (Argo CD, `docs/operator-manual/argocd-cm.yaml`, `argocd-cmd-params-cm.yaml`,
/// `argocd-rbac-cm.yaml`). A key that ends in a dot stands for all that begin so.
struct Settings {
    name: &'static str,
    section: &'static str,
    keys: &'static [&'static str],
}

static ALL: [Settings; 3] = [
    Settings {
        name: "argocd-cm",
        section: "cm",
        keys: &[
            "accounts.",
            "admin.enabled",
            "application.instanceLabelKey",
            "application.resourceTrackingMethod",
            "cluster.inClusterEnabled",
            "dex.config",
            "exec.enabled",
            "kustomize.buildOptions",
            "oidc.config",
            "resource.compareoptions",
            "resource.customizations",
            "resource.customizations.",
            "resource.exclusions",
            "resource.inclusions",
            "timeout.hard.reconciliation",
            "timeout.reconciliation",
            "users.anonymous.enabled",
        ],
    },
    Settings {
        name: "argocd-cmd-params-cm",
        section: "params",
        keys: &[
            "application.namespaces",
            "applicationsetcontroller.",
            "controller.diff.server.side",
            "controller.log.level",
            "controller.operation.processors",
            "controller.repo.server.timeout.seconds",
            "controller.self.heal.timeout.seconds",
            "controller.sharding.algorithm",
            "controller.status.processors",
            "otlp.address",
            "redis.server",
            "reposerver.",
            "server.basehref",
            "server.disable.auth",
            "server.enable.gzip",
            "server.insecure",
            "server.log.level",
            "server.repo.server.",
            "server.rootpath",
            "server.x.frame.options",
        ],
    },
    Settings {
        name: "argocd-rbac-cm",
        section: "rbac",
        keys: &["policy.csv", "policy.default", "policy.matchMode", "scopes"],
    },
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let is_map = object.key.kind == "ConfigMap" && object.key.group.is_empty();
        let Some(here) = ALL.iter().find(|it| is_map && it.name == object.key.name) else { continue };
        for key in unknown_of_access(object.value().get("data"), here) {
            let place = context.survey.span(object, &keys(&["data", key]));
            once.add(key, RULE.finding(context, object, unknown(&object.title(), key, place)));
        }
        for (key, right) in misplaced(object.value().get("data"), here) {
            if !is_set(context, right, key) {
                let what = format!("{} has {key}", object.title());
                let place = context.survey.span(object, &keys(&["data", key]));
                let diagnostic = unread(&what, key, (here, right), place);
                once.add(key, RULE.finding(context, object, diagnostic));
            }
        }
    }
    patches(context, &mut once);
    for used in context.chart_uses().iter().filter(|it| it.chart == "argo-cd") {
        for (index, values) in used.values.iter().enumerate() {
            for here in &ALL {
                let section = values.get("configs").and_then(|configs| configs.get(here.section));
                for key in unknown_of_access(section, here) {
                    let steps = ["configs", here.section, key].map(Step::Key);
                    let place = place_of(context, used, index, &steps).unwrap_or_else(|| used.span.clone());
                    let what = format!("configs.{} of {}", here.section, used.by);
                    once.add(key, Finding::new(RULE.incident, unknown(&what, key, place)));
                }
                for (key, right) in misplaced(section, here) {
                    // Where the right one has it, too, this one does no harm.
                    if used.value(&["configs", right.section, key]).is_some() {
                        continue;
                    }
                    let steps = ["configs", here.section, key].map(Step::Key);
                    let place = place_of(context, used, index, &steps).unwrap_or_else(|| used.span.clone());
                    let what = format!("configs.{} of {} has {key}", here.section, used.by);
                    let diagnostic = RULE
                        .diagnostic(format!("{what}, which {} is read for", right.name))
                        .at(place, "nobody reads this")
                        .because(format!("the chart writes this section to {}", here.name))
                        .help(format!("put it below configs.{}", right.section));
                    once.add(key, Finding::new(RULE.incident, diagnostic));
                }
            }
        }
    }
    once.report(report);
}

/// Patches of these ConfigMaps, where the installation that they are for is out of reach.
fn patches(context: &Context<'_>, once: &mut Once) {
    let (survey, files) = (context.survey, &context.survey.files);
    for path in files.ending(&[".yaml", ".yml"]) {
        let Some(text) = files.text(path).filter(|text| text.contains("name: argocd-")) else { continue };
        let is_object = || survey.objects.iter().any(|it| it.rendered.location.file == *path);
        let Some(value) = files.value(path).filter(|value| value.kind() == "ConfigMap" && !is_object())
        else {
            continue;
        };
        let Some(here) = ALL.iter().find(|it| it.name == value.name()) else { continue };
        for (key, right) in misplaced(value.get("data"), here) {
            let at = text.lines().position(|line| line.trim_start().starts_with(&format!("{key}:")));
            let Some(at) = at.filter(|_| !is_set(context, right, key)) else { continue };
            let location = Location::new(path.clone(), u32::try_from(at).unwrap_or_default() + 1, 0);
            let diagnostic = unread(
                &format!("this patch of {} sets {key}", here.name),
                key,
                (here, right),
                files.span(&location),
            );
            once.add(key, Finding::new(RULE.incident, diagnostic));
        }
    }
}

/// The keys of the access rules' map that nothing reads, and that none of the other maps is read for.
fn unknown_of_access<'a>(map: Option<&'a Value>, here: &Settings) -> Vec<&'a str> {
    /// What the chart has in this section besides.
    const OF_CHART: [&str; 3] = ["annotations", "create", "labels"];
    if here.section != "rbac" {
        return Vec::new();
    }
    // Argo CD joins `policy.csv` with every `policy.NAME.csv`.
    let is_policy = |key: &str| key.starts_with("policy.") && key.ends_with(".csv");
    let is_known = |key: &str| ALL.iter().any(|it| has(it, key)) || OF_CHART.contains(&key) || is_policy(key);
    let all = map.and_then(Value::as_object).into_iter().flatten();
    let is_open = |key: &str| key.starts_with('_') || placeholders::is_in(key);
    let given = all.filter(|(_, value)| !value.is_null()).map(|(key, _)| key.as_str());
    given.filter(|key| !is_known(key) && !is_open(key)).collect()
}

/// That nobody reads a key of the access rules' map.
fn unknown(what: &str, key: &str, place: Span) -> Diagnostic {
    let known = ["policy.csv", "policy.default", "policy.matchMode", "scopes"];
    let near = known.into_iter().find(|it| it.starts_with(&format!("{key}.")));
    let near = near.or_else(|| similar_names::nearest_slip(key, known.into_iter()));
    let diagnostic = RULE
        .diagnostic(format!("{what} has {key}, which Argo CD does not read"))
        .at(place, "nobody reads this")
        .because(format!("of argocd-rbac-cm it reads {}, and every policy.NAME.csv", known.join(", ")));
    match near {
        Some(near) => diagnostic.help(format!("write {near}")),
        None => diagnostic.help("take it out"),
    }
}

/// The keys of a map that another one is read for.
fn misplaced<'a>(map: Option<&'a Value>, here: &Settings) -> Vec<(&'a str, &'static Settings)> {
    let all = map.and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
    let found = all.filter(|key| !has(here, key)).filter_map(|key| {
        let right = ALL.iter().find(|it| it.name != here.name && has(it, key))?;
        Some((key.as_str(), right))
    });
    found.collect()
}

/// Whether the ConfigMap that is read for a key has it, too.
fn is_set(context: &Context<'_>, right: &Settings, key: &str) -> bool {
    let mut maps = context.survey.objects.iter().filter(|it| it.key.name == right.name);
    maps.any(|it| it.key.kind == "ConfigMap" && it.value().at(&["data", key]).is_some())
}

fn has(settings: &Settings, key: &str) -> bool {
    settings.keys.iter().any(|it| if it.ends_with('.') { key.starts_with(it) } else { *it == key })
}

/// That a key stands in one ConfigMap and is read in another.
fn unread(what: &str, key: &str, (here, right): (&Settings, &Settings), place: Span) -> Diagnostic {
    RULE.diagnostic(format!("{what}, which {} is read for", right.name))
        .at(place, "nobody reads this")
        .because(format!("Argo CD looks for {key} in {} alone, and not in {}", right.name, here.name))
        .help(format!("put it into ConfigMap {}", right.name))
}
