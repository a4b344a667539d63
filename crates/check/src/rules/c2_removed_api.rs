//! # An API version that is no longer served
//!
//! Kubernetes removes beta versions of its APIs. An object that still asks for one cannot be applied: its
//! kind does not exist for the API server, and the sync of the Application fails as a whole.
//!
//! People see: `no matches for kind "Ingress" in version "networking.k8s.io/v1beta1"`, `the server could
//! not find the requested resource`, `Make sure the "Ingress" CRD is installed on the destination cluster`.
//!
//! ## Bad
//! ```yaml
//! apiVersion: batch/v1beta1
//! kind: CronJob
//! ```
//! ## Good
//! ```yaml
//! apiVersion: batch/v1
//! kind: CronJob
//! ```
//! ## When to suppress
//! Where the cluster is older than the release that removed it; better is to say so with `--kube-version`.

use std::{collections::HashMap, sync::LazyLock};

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::{keys, rewrite},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-removed-api",
    incident: "C2",
    severity: Severity::Error,
    title: "an API version that Kubernetes no longer serves",
    page: page!("c2_removed_api.rs"),
    check,
};

struct Removal {
    minor: u32,
    instead: &'static str,
}

/// The kinds whose objects mean the same in the version that is served now; whether one has a field that is
/// gone there, or lacks one that is asked for, the proof of the patch tells (Kubernetes docs, "Deprecated API
/// Migration Guide").
const SAME: [&str; 21] = [
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "ClusterRole",
    "ClusterRoleBinding",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "FlowSchema",
    "HorizontalPodAutoscaler",
    "IngressClass",
    "Lease",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PriorityClass",
    "ReplicaSet",
    "Role",
    "RoleBinding",
    "RuntimeClass",
    "StatefulSet",
    "StorageClass",
];

static REMOVED: LazyLock<HashMap<(&str, &str), Removal>> = LazyLock::new(|| {
    let lines = include_str!("../../data/removed-apis.txt").lines().filter(|line| !line.starts_with('#'));
    let mut removed = HashMap::new();
    for line in lines {
        let mut parts = line.splitn(4, ' ');
        let (Some(version), Some(kinds), Some(minor), Some(instead)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let minor = minor.trim_start_matches("1.").parse().unwrap_or_default();
        for kind in kinds.split(',') {
            removed.insert((version, kind), Removal { minor, instead });
        }
    }
    removed
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let (version, kind) = (object.value().api_version(), object.value().kind());
        let Some(removal) = REMOVED.get(&(version, kind)) else { continue };
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        let told = minor(&context.survey.kube_version);
        if told.is_some_and(|minor| minor < removal.minor) {
            continue;
        }
        once.add(&object.title(), finding(context, object, removal, told.is_some()));
    }
    once.report(report);
}

fn finding(context: &Context<'_>, object: &Object, removal: &Removal, is_told: bool) -> crate::Finding {
    let (version, kind) = (object.value().api_version(), object.value().kind());
    let field = keys(&["apiVersion"]);
    let span = context.survey.span(object, &field);
    let mut diagnostic = RULE
        .diagnostic(format!("no matches for kind \"{kind}\" in version \"{version}\""))
        .at(span.clone(), format!("not served since Kubernetes 1.{}", removal.minor))
        .because("the API server has no such resource, so that the sync of the whole Application fails")
        .help(format!("served is {}", removal.instead));
    if !is_told || context.survey.app_of(object).is_none() {
        diagnostic.severity = Severity::Warning;
    }
    let mut finding = RULE.finding(context, object, diagnostic);
    if !is_told {
        finding = finding.likely();
    }
    if let Some(edit) = rewrite(object, &field, span, removal.instead).filter(|_| SAME.contains(&kind)) {
        finding = finding.fix(format!("ask for {}", removal.instead), vec![edit]);
    }
    finding
}

/// The minor version of a text such as `v1.30.2`.
fn minor(version: &str) -> Option<u32> {
    version.trim_start_matches('v').strip_prefix("1.")?.split('.').next()?.parse().ok()
}
