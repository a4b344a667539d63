//! # Another tool installs what an Application installs
//!
//! A playbook, a Terraform module or a script of the same repository installs a component or object that an
//! Application installs too. Each puts its own settings in place of the other's; finalizers and annotations
//! of the first installation keep the second one's deletions from ending; two versions of one operator work
//! on the same resources.
//!
//! People see: `waiting for deletion of operator.tigera.io/Installation/default`,
//! `AlreadyExists`, `field is immutable`, `invalid ownership metadata; label validation error: missing key
//! "app.kubernetes.io/managed-by": must be set to "Helm"`.
//!
//! Argo CD itself is left out: something has to install it first. So are pipelines that install into clusters
//! of their own to try things out. Where a pipeline is not seen to be given the credentials of a cluster,
//! where a script or a helmfile installs, which may be run once and never again, and where Flux does, which
//! may be of another cluster, it is an information.
//!
//! ## Bad
//! ```yaml
//! # ansible/cni.yml
//! - ansible.builtin.command: kubectl apply -f https://raw.githubusercontent.com/projectcalico/calico/v3.27.0/manifests/tigera-operator.yaml
//! # apps/calico.yaml
//! spec: {source: {repoURL: https://docs.tigera.io/calico/charts, chart: tigera-operator}}
//! ```
//! ## Good
//! One tool installs it. If it must be there before Argo CD, the Application is left out, or the playbook
//! makes exactly the same objects and leaves them alone afterwards.
//!
//! ## When to suppress
//! For a first installation that is handed over on purpose, with the same version and settings.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::{
    App, Object, Owner,
    rival_installs::{Installed, Shared, is_same_file},
    tools::{Action, Component, Tool, What, Writer},
};
use tiphys_value::ObjectExt;

use crate::{Context, Finding, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B1-other-tool",
    incident: "B1",
    severity: Severity::Warning,
    title: "a playbook, Terraform, a pipeline or a script installs what an Application installs too",
    page: page!("b1_other_tool.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    flux(context, report);
    let writers = context.survey.tools().writers.iter();
    let writers: Vec<(&Writer, Severity)> =
        writers.filter_map(|writer| Some((writer, weight(context, writer)?))).collect();
    if writers.is_empty() {
        return;
    }
    let mut seen = BTreeSet::new();
    for app in &context.survey.apps {
        let installed = Installed::of_app(context.survey, app);
        for (writer, severity) in &writers {
            let Some(Shared { component, objects }) = installed.shared_with(writer) else { continue };
            let object = objects.first().copied();
            if seen.insert(writer.span.clone()) {
                let mut finding = writer_finding(context, app, writer, component, object);
                finding.diagnostic.severity = match object {
                    Some(object) if is_same_file(object, writer) => Severity::Info,
                    _ => *severity,
                };
                report.add(finding);
            }
        }
    }
}

/// Releases of Flux that install what an Application installs: under the same name, into the same namespace.
fn flux(context: &Context<'_>, report: &mut Report) {
    let is_release = |it: &&Object| it.key.group == "helm.toolkit.fluxcd.io" && it.key.kind == "HelmRelease";
    let of_flux = |it: &&Object| is_release(it) && matches!(it.owner, Owner::Unit(_));
    for release in context.survey.objects.iter().filter(of_flux) {
        let text = |path: &[&str]| release.value().str_at(path).unwrap_or_default();
        let Some(component) = Component::of_chart(text(&["spec", "chart", "spec", "chart"])) else {
            continue;
        };
        let named = release.value().str_at(&["spec", "targetNamespace"]);
        let namespace = named.unwrap_or(&release.key.namespace);
        let installs = |app: &&App| {
            let spec = &app.application.spec;
            let charts = spec.effective_sources();
            spec.destination.namespace == namespace
                && charts
                    .iter()
                    .any(|it| Component::of_chart(&it.chart).is_some_and(|of| of.name == component.name))
        };
        let Some(app) = context.survey.apps.iter().find(installs) else { continue };
        let mut diagnostic = RULE
            .diagnostic(format!(
                "{} is installed by Flux ({}) and by Application {}",
                component.name,
                release.title(),
                app.name()
            ))
            .at(context.survey.start(release), "Flux installs it here")
            .see(rule_helpers::source(context, app), format!("Application {} installs it too", app.name()))
            .because("in one cluster each overwrites what the other has set, again and again")
            .help("install it by one of the two only");
        diagnostic.severity = Severity::Info;
        report.add(Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
    }
}

/// How much it weighs that a writer installs something; nothing where it is not the clusters that the
/// Applications are for.
fn weight(context: &Context<'_>, writer: &Writer) -> Option<Severity> {
    let file = &writer.span.file;
    // A script that applies files of the repository is how people try them out.
    let applies_files = matches!(writer.what, What::Path { .. });
    let severity = match writer.tool {
        Tool::Ansible | Tool::Terraform => Severity::Warning,
        Tool::Script if applies_files => return None,
        Tool::Script | Tool::Helmfile => Severity::Info,
        Tool::GitHubActions | Tool::GitLabCi if is_trial(context, file) => return None,
        Tool::GitHubActions | Tool::GitLabCi if has_credentials(context, file) => Severity::Warning,
        Tool::GitHubActions | Tool::GitLabCi => Severity::Info,
    };
    // What a pipeline changes in an object of an Application, self-healing takes back.
    let changes =
        matches!(writer.tool, Tool::GitHubActions | Tool::GitLabCi) && writer.action == Action::Patch;
    let counts = writer.action == Action::Apply || changes;
    (counts && !writer.installs_argo_cd() && !writer.is_for_trials()).then_some(severity)
}

/// Whether a pipeline is given the credentials of a cluster.
fn has_credentials(context: &Context<'_>, file: &str) -> bool {
    const CREDENTIALS: [&str; 12] = [
        "update-kubeconfig",
        "get-credentials",
        "get-gke-credentials",
        "k8s-set-context",
        "aks-set-context",
        "kubeconfig save",
        "set-context@",
        "config use-context",
        "oc login",
        "openshift-login",
        "KUBE_CONFIG",
        "KUBECONFIG",
    ];
    context.survey.files.text(file).is_some_and(|text| CREDENTIALS.iter().any(|mark| text.contains(mark)))
}

/// Whether a pipeline makes a cluster of its own to try things out, or something that is not seen may.
fn is_trial(context: &Context<'_>, file: &str) -> bool {
    const TRIALS: [&str; 10] = [
        "kind create",
        "kind-action",
        "setup-kind",
        "create-cluster",
        "k3d",
        "k3s",
        "microk8s",
        "minikube",
        "vcluster",
        "uses: ./",
    ];
    context.survey.files.text(file).is_none_or(|text| TRIALS.iter().any(|mark| text.contains(mark)))
}

fn writer_finding(
    context: &Context<'_>,
    app: &App,
    writer: &Writer,
    component: Option<&'static Component>,
    object: Option<&Object>,
) -> Finding {
    let tool = writer.tool.name();
    let what = match (object, component) {
        (Some(object), _) => object.title(),
        (None, Some(component)) => component.name.to_owned(),
        (None, None) => writer.subject(),
    };
    let is_change = writer.action == Action::Patch;
    let (verb, renders) =
        if is_change { ("changes", "sets it back") } else { ("installs", "installs it too") };
    let message = match is_change {
        true => format!("{what} is changed by {tool}, and rendered by Application {}", app.name()),
        false => {
            format!("{what} is installed by {tool} ({}) and by Application {}", writer.subject(), app.name())
        }
    };
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(writer.span.clone(), format!("{tool} {verb} it here"))
        .see(rule_helpers::source(context, app), format!("Application {} {renders}", app.name()));
    if let Some(object) = object {
        diagnostic = diagnostic.see(context.survey.start(object), "rendered here");
    }
    let diagnostic = if is_change {
        diagnostic
            .because("the next sync sets it back to what Git says; until then the Application is OutOfSync")
            .help("let the pipeline change the file in Git")
    } else {
        diagnostic
            .because("each overwrites what the other has set, and what one deletes the other still counts on")
            .help("install it by one of the two only")
    };
    let mut finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
    finding.object = object.map(Object::title);
    finding
}
