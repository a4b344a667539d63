//! # A field of a Flux object that stands at the wrong level
//!
//! A block that lost its indentation becomes a field of the `spec` of a HelmRelease or Kustomization. Neither has
//! such a field: the API server refuses the object, or drops the field, and the release has its old values.
//!
//! People see: `strict decoding error: unknown field "spec.controllers"`, `HelmRelease/shop/web dry-run failed`.
//!
//! ## Bad
//! ```yaml
//! kind: HelmRelease
//! spec:
//!   values: {image: {tag: v1}}
//!   ingress: {enabled: true}
//! ```
//! ## Good
//! ```yaml
//! kind: HelmRelease
//! spec:
//!   values: {image: {tag: v1}, ingress: {enabled: true}}
//! ```
//! ## When to suppress
//! Where a newer version of Flux has the field.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::Survey;
use tiphys_value::{Map, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, nearest_name, placeholders, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-flux-field",
    incident: "C2",
    severity: Severity::Warning,
    title: "a field of a Flux object that stands at the wrong level",
    page: page!("c2_flux_field.rs"),
    check,
};

/// The fields of all versions of HelmReleases (Flux docs, "HelmRelease API reference").
const OF_RELEASE: [&str; 27] = [
    "chart",
    "chartRef",
    "commonMetadata",
    "dependsOn",
    "driftDetection",
    "healthCheckExprs",
    "healthChecks",
    "install",
    "interval",
    "kubeConfig",
    "maxHistory",
    "persistentClient",
    "postRenderers",
    "releaseName",
    "rollback",
    "serviceAccountName",
    "storageNamespace",
    "suspend",
    "targetNamespace",
    "test",
    "timeout",
    "uninstall",
    "upgrade",
    "values",
    "valuesFrom",
    "wait",
    "waitStrategy",
];
/// Those of Kustomizations.
const OF_KUSTOMIZATION: [&str; 31] = [
    "buildMetadata",
    "commonMetadata",
    "components",
    "decryption",
    "deletionPolicy",
    "dependsOn",
    "force",
    "healthCheckExprs",
    "healthChecks",
    "ignoreMissingComponents",
    "images",
    "interval",
    "kubeConfig",
    "namePrefix",
    "nameSuffix",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "path",
    "postBuild",
    "prune",
    "retryInterval",
    "serviceAccountName",
    "sourceRef",
    "suspend",
    "targetNamespace",
    "timeout",
    "validation",
    "wait",
    "waitStrategy",
    "optional",
];
/// Fields that stand below another one, by kind.
const BELOW: [(&str, &str, &str); 5] = [
    ("HelmRelease", "crds", "install"),
    ("HelmRelease", "remediation", "install or upgrade"),
    ("HelmRelease", "sourceRef", "chart.spec"),
    ("Kustomization", "substitute", "postBuild"),
    ("Kustomization", "substituteFrom", "postBuild"),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let of_values = keys_of_values(survey);
    let mut once = Once::default();
    for object in &survey.objects {
        let known: &[&str] = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("helm.toolkit.fluxcd.io", "HelmRelease") => &OF_RELEASE,
            ("kustomize.toolkit.fluxcd.io", "Kustomization") => &OF_KUSTOMIZATION,
            _ => continue,
        };
        let file = object.rendered.location.file.as_ref();
        let spec = object.value().at(&["spec"]).and_then(Value::as_object);
        if placeholders::is_skeleton(file) || unrendered_files::may_be_a_patch(survey, object) {
            continue;
        }
        for field in spec.into_iter().flat_map(Map::keys).filter(|field| !known.contains(&field.as_str())) {
            let kind = object.key.kind.as_str();
            let below = BELOW.iter().find(|(of, name, _)| *of == kind && name == field).map(|(.., at)| *at);
            let is_value = kind == "HelmRelease" && of_values.contains(field.as_str());
            let help = match below {
                Some(below) => format!("it stands below {below}"),
                // A name that was written wrongly is what the API server tells: C2-invalid does so.
                None if nearest_name::nearest(field, known.iter().copied()).is_some() => continue,
                None if is_value => "it is meant to be one of the values".to_owned(),
                // What Flux may have learnt since is left alone.
                None => continue,
            };
            let diagnostic = RULE
                .diagnostic(format!(
                    "{} has a field {field} in its spec, which no {kind} has",
                    object.title()
                ))
                .at(survey.span(object, &keys(&["spec", field])), "there is no such field")
                .because("the API server refuses the object, or drops what its kind does not have")
                .help(help);
            once.add(field, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// The keys that HelmReleases have at the top of their values.
fn keys_of_values(survey: &Survey) -> BTreeSet<&str> {
    let releases = survey.objects.iter().filter(|it| it.key.kind == "HelmRelease");
    let values = releases.filter_map(|it| it.value().at(&["spec", "values"])?.as_object());
    values.flat_map(|map| map.keys()).map(String::as_str).collect()
}
