//! Where a field of a Flux object belongs that stands in its `spec`, which has no such field: a block that lost
//! its indentation.

use tiphys_graph::{Object, Survey};
use tiphys_value::{ObjectExt, Value};

/// Fields that stand below another one, by kind (Flux docs, API references of HelmReleases and
/// Kustomizations).
const BELOW: [(&str, &str, &str); 5] = [
    ("HelmRelease", "crds", "install"),
    ("HelmRelease", "remediation", "install or upgrade"),
    ("HelmRelease", "sourceRef", "chart.spec"),
    ("Kustomization", "substitute", "postBuild"),
    ("Kustomization", "substituteFrom", "postBuild"),
];

/// What to do about a field at this path that the kind does not have; `None` if nothing is known of it.
pub(crate) fn help(survey: &Survey, object: &Object, path: &str) -> Option<String> {
    let field = path.strip_prefix("spec.").filter(|field| !field.contains(['.', '[']))?;
    if !object.key.group.ends_with(".toolkit.fluxcd.io") {
        return None;
    }
    let kind = object.key.kind.as_str();
    if let Some((.., at)) = BELOW.iter().find(|(of, name, _)| *of == kind && *name == field) {
        return Some(format!("it stands below {at}"));
    }
    let is_value = kind == "HelmRelease" && is_among_values(survey, field);
    is_value.then(|| "it is meant to be one of the values".to_owned())
}

/// Whether a HelmRelease has a key of that name at the top of its values.
fn is_among_values(survey: &Survey, field: &str) -> bool {
    let mut releases = survey.objects.iter().filter(|it| it.key.kind == "HelmRelease");
    releases.any(|it| {
        let values = it.value().at(&["spec", "values"]).and_then(Value::as_object);
        values.is_some_and(|values| values.contains_key(field))
    })
}
