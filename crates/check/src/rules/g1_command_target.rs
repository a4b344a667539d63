//! # A command asks for an object that is elsewhere
//!
//! A script or pipeline waits for a rollout, reads a Secret or patches a Deployment by its name and
//! namespace. Where the repository has that object in another namespace alone, or releases what brings it
//! into another one, the command fails each time, and everything after it does not run. So it does where a
//! script asks for a `backup`, and two operators of the repository have a kind of this name: kubectl takes
//! the first by its group.
//!
//! People see: `Error from server (NotFound): deployments.apps "web" not found`, `error: no matching
//! resources found`, `error: timed out waiting for the condition`.
//!
//! ## Bad
//! ```sh
//! helm upgrade --install cert-manager jetstack/cert-manager --namespace cert-manager
//! kubectl -n cert-manager-system rollout status deployment/cert-manager-webhook
//! ```
//! ## Good
//! ```sh
//! kubectl -n cert-manager rollout status deployment/cert-manager-webhook
//! ```
//! ## When to suppress
//! Where something that is not in the repository makes the object there.

use std::collections::BTreeSet;

use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{
    Object,
    tools::{Action, What, Writer},
};
use tiphys_schema::Catalog;
use tiphys_value::ObjectExt;
use tiphys_vfs::base_name;

use super::ambiguous_kinds;
use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, placeholders, scripted_objects::is_scripted, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-command-target",
    incident: "G1",
    severity: Severity::Warning,
    title: "a command asks for an object that is elsewhere",
    page: page!("g1_command_target.rs"),
    check,
};

/// What kubectl takes for a kind, and the kind.
const KINDS: [(&[&str], &str); 12] = [
    (&["deployment", "deployments", "deploy"], "Deployment"),
    (&["statefulset", "statefulsets", "sts"], "StatefulSet"),
    (&["daemonset", "daemonsets", "ds"], "DaemonSet"),
    (&["cronjob", "cronjobs", "cj"], "CronJob"),
    (&["job", "jobs"], "Job"),
    (&["service", "services", "svc"], "Service"),
    (&["configmap", "configmaps", "cm"], "ConfigMap"),
    (&["ingress", "ingresses", "ing"], "Ingress"),
    (&["serviceaccount", "serviceaccounts", "sa"], "ServiceAccount"),
    (&["certificate", "certificates"], "Certificate"),
    (&["application", "applications", "app", "apps"], "Application"),
    (&["horizontalpodautoscaler", "hpa"], "HorizontalPodAutoscaler"),
];

/// Kinds of which a namespace's are all in the repository, if any of them are.
const WORKLOADS: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

/// What a command asks for.
struct Asked<'a> {
    kind: &'static str,
    name: &'a str,
    namespace: &'a str,
}

/// Why an object is not where it is asked for.
enum Absence<'a> {
    /// It is in another namespace.
    Elsewhere(&'a Object),
    /// What brings it is released into another namespace.
    Released { chart: String, namespace: String, span: Span },
    /// The namespace is seen, and has others of the kind only.
    Unmade(Vec<&'a str>),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let tools = context.survey.tools();
    let patches = tools.writers.iter().filter(|it| it.action == Action::Patch);
    let mut once = Once::default();
    for command in tools.asks.iter().chain(patches) {
        let file = &command.span.file;
        if placeholders::is_skeleton(file) || unused_files::is_in_unused_folder(file) {
            continue;
        }
        let Some(asked) = asked_object(command) else { continue };
        if let Some(absence) = absence(context, &asked) {
            once.add(asked.name, finding(context, command, &asked, absence));
        }
    }
    once.report(report);
    ambiguous_kinds::check(context, report);
}

/// What a command asks for, where its words are written out.
fn asked_object(command: &Writer) -> Option<Asked<'_>> {
    let What::Object(key) = &command.what else { return None };
    let is_plain = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'))
    };
    let word = key.kind.to_ascii_lowercase();
    let word = word.split('.').next().unwrap_or_default();
    let (_, kind) = KINDS.iter().find(|(words, _)| words.contains(&word))?;
    let namespace = command.namespace.as_deref()?;
    (is_plain(&key.name) && is_plain(namespace)).then(|| Asked { kind, name: &key.name, namespace })
}

fn absence<'a>(context: &'a Context<'_>, asked: &Asked<'_>) -> Option<Absence<'a>> {
    let survey = context.survey;
    let same: Vec<&Object> = survey
        .objects
        .iter()
        .chain(survey.flux.iter().flat_map(|flux| &flux.objects))
        .filter(|it| it.key.kind == asked.kind && it.key.name == asked.name)
        .collect();
    let may_be_here = |it: &&&Object| it.key.namespace == asked.namespace || it.key.namespace.is_empty();
    if same.iter().any(|it| may_be_here(&it)) || may_be_brought_unseen(context, asked) {
        return None;
    }
    if let Some(other) = same.first() {
        return Some(Absence::Elsewhere(other));
    }
    if let Some(released) = released_elsewhere(context, asked) {
        return Some(released);
    }
    let here = survey.objects.iter().filter(|it| it.key.namespace == asked.namespace);
    let has_operated = here
        .clone()
        .filter(|it| it.key.group != "argoproj.io")
        .any(|it| Catalog::latest().kind(&it.value().gvk()).is_none());
    let beside: BTreeSet<&str> =
        here.filter(|it| it.key.kind == asked.kind).map(|it| it.key.name.as_str()).collect();
    // Who installed Argo CD made its own.
    let is_of_argo_cd = asked.name.starts_with("argocd-");
    let is_seen = !is_of_argo_cd && WORKLOADS.contains(&asked.kind) && !beside.is_empty() && !has_operated;
    let is_asked = || !is_scripted(context, asked.name) || is_only_asked(context, asked.name);
    (is_seen && is_asked()).then(|| Absence::Unmade(beside.into_iter().collect()))
}

/// Whether something that is not seen may bring objects into the namespace: a release, a manifest from
/// elsewhere, an Application that is not rendered.
fn may_be_brought_unseen(context: &Context<'_>, asked: &Asked<'_>) -> bool {
    let survey = context.survey;
    let by_app = survey.apps.iter().chain(survey.flux.iter().flat_map(|flux| &flux.apps)).any(|app| {
        let namespace = &app.application.spec.destination.namespace;
        !app.is_rendered() && (namespace == asked.namespace || namespace.is_empty())
    });
    let by_tool = survey.tools().writers.iter().any(|it| match &it.what {
        What::Release { name, chart, .. } => {
            let is_meant = [name.as_str(), base_name(chart)]
                .iter()
                .any(|word| !word.is_empty() && asked.name.contains(word));
            it.namespace.as_deref().map_or(is_meant, |namespace| {
                namespace == asked.namespace || placeholders::is_in(namespace) || namespace.contains('$')
            })
        }
        // Published manifests have namespaces of their own.
        What::Address(_) => true,
        What::Object(key) => key.name == asked.name,
        What::Path { .. } | What::Absent { .. } => false,
    });
    by_app || by_tool
}

/// A release of which the object has the name, in another namespace, where nothing at all of the repository
/// goes into the one that is asked.
fn released_elsewhere<'a>(context: &Context<'_>, asked: &Asked<'_>) -> Option<Absence<'a>> {
    let survey = context.survey;
    let is_known = survey.objects.iter().any(|it| {
        it.key.namespace == asked.namespace || it.key.kind == "Namespace" && it.key.name == asked.namespace
    });
    let is_of = |name: &str| {
        !name.is_empty()
            && asked.name.strip_prefix(name).is_some_and(|it| it.is_empty() || it.starts_with('-'))
    };
    if is_known || is_scripted(context, asked.namespace) && !is_only_asked(context, asked.namespace) {
        return None;
    }
    let by_tools = survey.tools().writers.iter().filter(|it| it.action == Action::Apply).find_map(|it| {
        let What::Release { name, chart, .. } = &it.what else { return None };
        let namespace = it.namespace.clone().filter(|it| !it.is_empty())?;
        is_of(name).then(|| Absence::Released { chart: chart.clone(), namespace, span: it.span.clone() })
    });
    by_tools.or_else(|| {
        let used = context.chart_uses().iter().find(|it| {
            it.release.as_ref().is_some_and(|release| is_of(&release.name) && !release.namespace.is_empty())
        })?;
        let namespace = used.release.as_ref()?.namespace.clone();
        Some(Absence::Released { chart: used.chart.clone(), namespace, span: used.span.clone() })
    })
}

/// Whether files speak of a name only where they ask for something.
fn is_only_asked(context: &Context<'_>, name: &str) -> bool {
    const VERBS: [&str; 7] = ["wait", "get ", "rollout", "describe", "logs", "patch", "port-forward"];
    let makes = |line: &str| line.contains(name) && !VERBS.iter().any(|verb| line.contains(verb));
    let says = |text: &str| text.contains(name) && text.replace("\\\n", " ").lines().any(makes);
    !context.survey.files.any_text(says)
}

fn finding(context: &Context<'_>, command: &Writer, asked: &Asked<'_>, absence: Absence<'_>) -> Finding {
    let Asked { kind, name, namespace } = asked;
    let diagnostic = RULE
        .diagnostic(format!(
            "{} asks for {kind}/{name} in {namespace}, where nothing makes it",
            command.tool.name()
        ))
        .at(command.span.clone(), "no such object")
        .because(
            "kubectl ends with an error, or waits until its time is up, and what comes after does not run",
        );
    match absence {
        Absence::Elsewhere(other) => {
            let own = &other.key.namespace;
            let diagnostic = diagnostic.see(context.survey.start(other), format!("this is in {own}"));
            Finding::new(RULE.incident, diagnostic).likely().with_spelling(*namespace, own.clone())
        }
        Absence::Released { chart, namespace: own, span } => {
            let diagnostic = diagnostic.see(span, format!("chart {chart} is released into {own}"));
            Finding::new(RULE.incident, diagnostic).likely().with_spelling(*namespace, own)
        }
        Absence::Unmade(beside) => {
            let near = similar_names::nearest_slip(name, beside.iter().copied());
            let diagnostic = diagnostic.help(format!("in {namespace} there is {}", beside.join(", ")));
            Finding::new(RULE.incident, diagnostic).likely().perhaps(name, near)
        }
    }
}
