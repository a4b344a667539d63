//! # A changed configuration that no pod reads
//!
//! Environment variables and `subPath` mounts are read once, when a container starts. If the ConfigMap or
//! Secret changes and the pod template does not, nothing restarts: the old settings stay until somebody
//! rolls the workload out. (A whole mounted ConfigMap is updated in the file system; whether the program
//! reads it again is its own affair, and is not judged here.)
//!
//! People see: nothing; the setting is in Git and in the cluster, and has no effect.
//!
//! ## Bad
//! ```yaml
//! envFrom: [{configMapRef: {name: settings}}]
//! ```
//! ## Good
//! A `configMapGenerator` of Kustomize, which puts a hash into the name, or in a chart the annotation
//! ```yaml
//! checksum/config: {{ include (print $.Template.BasePath "/settings.yaml") . | sha256sum }}
//! ```
//! ## When to suppress
//! Where the configuration never changes, or another tool rolls the workload out.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_value::{ObjectExt, OriginKind, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        pod_references::{Reference, of_pod},
        pods::{self, Pod},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E7-config-without-rollout",
    incident: "E7",
    severity: Severity::Info,
    title: "a configuration whose change no pod reads",
    page: page!("e7_config_without_rollout.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|object| matches!(object.owner, Owner::App(_))) {
        let Some(pod) = pods::pod_of(object).filter(|pod| is_long_running(pod) && !is_rolled_out(pod)) else {
            continue;
        };
        let mut seen = BTreeSet::new();
        for reference in of_pod(&pod).into_iter().filter(|it| it.is_read_once) {
            let Some(config) = plain_config(context, object, &reference) else { continue };
            if !seen.insert((reference.kind, reference.name)) {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("{} does not notice changes of {}", object.title(), config.title()))
                .at(context.survey.span(object, &reference.path), "read once, when the container starts")
                .see(context.survey.start(config), "a change here rolls nothing out")
                .because("the pod template stays the same when the content changes, so that no pod is replaced")
                .help("let Kustomize generate it, which puts a hash into its name, or annotate the pod template with a checksum of it");
            once.add(&config.title(), RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

fn is_long_running(pod: &Pod<'_>) -> bool {
    matches!(pod.object.key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet" | "Rollout")
}

/// Whether an annotation says that something rolls the workload out.
fn is_rolled_out(pod: &Pod<'_>) -> bool {
    const MARKS: [&str; 6] = ["checksum", "hash", "reloader", "config-version", "sha256", "wave.pusher.com"];
    let of = |value: &Value| -> bool {
        let annotations = value.at(&["metadata", "annotations"]).and_then(Value::as_object);
        let mut keys = annotations.into_iter().flat_map(|map| map.keys());
        keys.any(|key| MARKS.iter().any(|mark| key.contains(mark)))
    };
    of(pod.template) || of(pod.object.value())
}

/// The ConfigMap or Secret that the same Application renders under a name without a hash.
fn plain_config<'a>(
    context: &Context<'a>,
    object: &'a Object,
    reference: &Reference<'_>,
) -> Option<&'a Object> {
    if !matches!(reference.kind, "ConfigMap" | "Secret") {
        return None;
    }
    let key = reference.key(&object.key.namespace);
    let config = context.survey.with_key(&key).find(|config| config.owner == object.owner)?;
    let has_hash = config.rendered.origins.lookup(&crate::support::field_paths::keys(&["metadata", "name"]));
    let is_generated = has_hash.iter().any(|origin| origin.kind == OriginKind::Generator);
    (!is_generated && config.value()["immutable"] != true).then_some(config)
}
