//! # What the whole cluster stands on can be pruned
//!
//! An Application deploys the cluster's network or DNS and prunes without asking: a renamed path, an empty
//! rendering or a removed file deletes it. Then every node keeps the taint
//! `node.kubernetes.io/network-unavailable` or no name resolves, pods stay Pending, `kubectl logs` and `exec`
//! fail, and the engine that would have to put it back runs on that network itself.
//!
//! With `--diff` a change that does remove it is an error.
//!
//! ## Bad
//! ```yaml
//! # Application cilium
//! syncPolicy: {automated: {prune: true}}
//! ```
//! ## Good
//! ```yaml
//! syncPolicy: {automated: {prune: true}, syncOptions: [Prune=confirm]}
//! ```
//!
//! ## When to suppress
//! On clusters that are made anew rather than repaired.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{App, Declaration, Object, Survey, edges::pod_spec, tools::Component};
use tiphys_model::{Cascade, DeletionPolicy, options::deletion_policy};
use tiphys_value::{ObjectExt, Value};

use crate::{Context, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E1-platform-pruned",
    incident: "E1",
    severity: Severity::Error,
    title: "the cluster's network, DNS or storage can be pruned, or is removed by a change",
    page: page!("e1_platform_pruned.rs"),
    check,
};

/// Components that everything stands on.
const PLATFORM: [(&str, &str); 8] = [
    ("aws-vpc-cni", "network"),
    ("calico", "network"),
    ("cilium", "network"),
    ("coredns", "DNS"),
    ("flannel", "network"),
    ("aws-ebs-csi-driver", "storage"),
    ("longhorn", "storage"),
    ("rook", "storage"),
];
/// Images of others.
const IMAGES: [(&str, &str, &str); 5] = [
    ("coredns", "CoreDNS", "DNS"),
    ("antrea/antrea-agent-ubuntu", "Antrea", "network"),
    ("weaveworks/weave-kube", "Weave Net", "network"),
    ("cloudnativelabs/kube-router", "kube-router", "network"),
    ("kubeovn/kube-ovn", "Kube-OVN", "network"),
];

fn check(context: &Context<'_>, report: &mut Report) {
    for app in &context.survey.apps {
        let Some(part) = platform(context.survey, app) else { continue };
        let prunes =
            app.application.automated_policy().is_some_and(|automated| automated.prune == Some(true));
        if prunes && !part.is_protected(app) && part.role != "storage" {
            unprotected(context, report, app, &part);
        }
    }
    if let Some(base) = context.base {
        removed(context, report, base);
    }
}

/// What of the platform an Application deploys.
struct Part<'a> {
    /// The workload; `None` if its chart was not rendered.
    object: Option<&'a Object>,
    name: &'static str,
    role: &'static str,
}

impl Part<'_> {
    fn title(&self) -> String {
        self.object.map_or_else(|| self.name.to_owned(), Object::title)
    }

    /// Whether deleting it needs somebody's consent.
    fn is_protected(&self, app: &App) -> bool {
        let options = app.application.sync_options();
        let object = self.object.map_or(&app.declared.value, Object::value);
        deletion_policy("Prune", object, &options) != DeletionPolicy::Allowed
    }
}

fn platform<'a>(survey: &'a Survey, app: &App) -> Option<Part<'a>> {
    let rendered = survey.objects_of(app.id).find_map(|object| {
        let (name, role) = part_of(object)?;
        Some(Part { object: Some(object), name, role })
    });
    rendered.or_else(|| {
        let sources = app.application.spec.effective_sources();
        let component = sources.iter().find_map(|source| Component::of_chart(&source.chart))?;
        let (name, role) = PLATFORM.iter().find(|(name, _)| component.name == *name)?;
        Some(Part { object: None, name, role })
    })
}

fn part_of(object: &Object) -> Option<(&'static str, &'static str)> {
    if !matches!(object.key.kind.as_str(), "DaemonSet" | "Deployment") {
        return None;
    }
    let (spec, _) = pod_spec(object.value())?;
    let containers = spec.get("containers").and_then(Value::as_array).into_iter().flatten();
    containers.filter_map(|it| it.str_at(&["image"])).find_map(|image| {
        let component = Component::of_image(image).map(|component| component.name);
        let known = PLATFORM.iter().find(|(name, _)| component == Some(*name));
        let name = repository(image);
        let other = IMAGES.iter().find(|(end, ..)| name == *end || name.ends_with(&format!("/{end}")));
        known.map(|(name, role)| (*name, *role)).or(other.map(|(_, name, role)| (*name, *role)))
    })
}

fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

fn unprotected(context: &Context<'_>, report: &mut Report, app: &App, part: &Part<'_>) {
    let (name, role) = (part.name, part.role);
    let message = format!(
        "Application {} deploys the cluster's {role} ({name}) and prunes it without asking",
        app.name()
    );
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(rule_helpers::source(context, app), format!("renders {}", part.title()))
        .because("if it ever renders to something else, the network or DNS of the cluster is deleted, and the engine runs on it")
        .help("add `Prune=confirm` to its `syncOptions`");
    diagnostic.severity = Severity::Info;
    report.add(crate::Finding::new(RULE.incident, diagnostic).app(app.name()).object(part.title()));
}

/// What of the platform a change removes.
fn removed(context: &Context<'_>, report: &mut Report, base: &Survey) {
    let left: BTreeMap<&str, &App> = context
        .survey
        .apps
        .iter()
        .filter_map(|app| Some((platform(context.survey, app)?.name, app)))
        .collect();
    let mut seen = BTreeSet::new();
    for app in &base.apps {
        let Some(part) = platform(base, app) else { continue };
        let (name, role) = (part.name, part.role);
        let deleted = app.application.cascade() != Cascade::Orphan
            || app.application.automated_policy().is_some_and(|automated| automated.prune == Some(true));
        if !deleted || part.is_protected(app) || !seen.insert(name) {
            continue;
        }
        if let Some(holder) = left.get(name) {
            if is_deleted_whole(context.survey, app) {
                report_moved(context, report, app, holder, &part);
            }
            continue;
        }
        let message = format!(
            "the change removes {} of Application {}: the cluster's {role} ({name}) is deleted, and nothing takes its place",
            part.title(),
            app.name()
        );
        let parent = context.survey.apps.iter().find(|other| other.name() == app.name());
        let mut diagnostic = RULE
            .diagnostic(message)
            .because("without it pods stay Pending or cannot reach each other, everything else goes OutOfSync, and the engine cannot work either")
            .help("leave it to another tool first, then remove the Application without its objects (no resources finalizer, `Prune=false`)");
        if let Some(app) = parent {
            diagnostic =
                diagnostic.at(rule_helpers::source(context, app), "rendered by this Application before");
        }
        report.add(crate::Finding::new(RULE.incident, diagnostic).app(app.name()).object(part.title()));
    }
}

/// Whether an Application is gone, and its objects with it: what an ApplicationSet makes has the finalizer
/// for that.
fn is_deleted_whole(now: &Survey, before: &App) -> bool {
    let cascades =
        matches!(before.declaration, Declaration::Set(_)) || before.application.cascade() != Cascade::Orphan;
    cascades && now.apps.iter().all(|app| app.name() != before.name())
}

/// Reports a part of the platform that an Application of another name holds after the change.
fn report_moved(context: &Context<'_>, report: &mut Report, before: &App, holder: &App, part: &Part<'_>) {
    let message = format!(
        "the change takes {} from Application {} to Application {}: the cluster's {} ({}) is deleted with the first, and made again by the second",
        part.title(),
        before.name(),
        holder.name(),
        part.role,
        part.name
    );
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(rule_helpers::source(context, holder), "another Application for the same")
        .because("an Application that leaves Git takes its objects with it; whether the other one has taken them over by then is a race")
        .help("keep the name, or take the finalizer off the old Application first (for an ApplicationSet: `preserveResourcesOnDeletion: true`)");
    diagnostic.severity = Severity::Warning;
    report.add(crate::Finding::new(RULE.incident, diagnostic).app(holder.name()).likely());
}
