//! Deliveries by Argo CD, Flux and Helm. What they only pass on belongs to the object that they pass it on
//! of.

mod argo;
mod delivery;
mod flux;
mod helm;

use std::collections::BTreeMap;

use argo::{errors, failed_operation, failed_set, fights, hooks, prune_fights, still_needed, waiting};
use flux::flux;
use helm::releases;
use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{Object, finding::Finding, search_context::Look};

/// Kinds of Flux whose condition Ready tells of themselves.
const FLUX_KINDS: &[&str] = &[
    "GitRepository",
    "OCIRepository",
    "HelmRepository",
    "HelmChart",
    "Bucket",
    "Kustomization",
    "HelmRelease",
    "ImageRepository",
    "ImagePolicy",
    "ImageUpdateAutomation",
    "Receiver",
    "Alert",
    "Provider",
];

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for app in look.cluster.all("Application") {
        found.extend(application(look, app));
    }
    found.extend(look.cluster.all("ApplicationSet").iter().filter_map(|set| failed_set(look, set)));
    for kind in FLUX_KINDS {
        for live in look
            .cluster
            .all(kind)
            .iter()
            .filter(|it| it.api_version().contains("fluxcd.io") && look.is_red(&Object::from_live(it)))
        {
            found.extend(flux(look, live));
        }
    }
    found.extend(releases(look));
    found.extend(prune_fights(look));
    shared(look, found)
}

/// One credential, project or broken file that many Applications suffer from is one fault.
fn shared(look: &Look<'_>, found: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    let mut places: BTreeMap<(Cause, String), usize> = BTreeMap::new();
    for finding in found {
        let Some(key) = likeness(&finding) else {
            kept.push(finding);
            continue;
        };
        match places.get(&(finding.cause, key.clone())) {
            Some(at) => kept[*at].absorb(finding, "suffers from the same"),
            None => {
                places.insert((finding.cause, key), kept.len());
                kept.push(finding);
            }
        }
    }
    kept.into_iter().map(|finding| of_project(look, finding)).collect()
}

/// What is the same in findings of one fault.
fn likeness(finding: &Finding) -> Option<String> {
    match finding.cause {
        // A cluster's address stands in this field, if it cannot be reached.
        Cause::GitopsSourceAuth | Cause::ExternalDown | Cause::ConfigCredentials => finding.field.clone(),
        // Argo CD names the Application in some of its messages.
        Cause::GitopsProject | Cause::GitopsRender => {
            let message = finding.evidence.first()?;
            Some(message.text.replace(&finding.object.name, "*"))
        }
        _ => None,
    }
}

/// From how many Applications on that a project refuses for one reason the fault is the project's.
const REFUSED: usize = 3;

/// A refusal that several Applications meet for one reason, as a fault of their project.
fn of_project(look: &Look<'_>, mut finding: Finding) -> Finding {
    if finding.cause != Cause::GitopsProject || finding.suffers.len() + 1 < REFUSED {
        return finding;
    }
    let name = look.cluster.live(&finding.object).and_then(|app| app.str_at(&["spec", "project"]));
    let mut projects = look.cluster.all("AppProject").iter();
    let Some(project) = projects.find(|it| Some(it.name()) == name) else { return finding };
    let first = std::mem::replace(&mut finding.object, Object::from_live(project));
    finding.suffers.insert(0, (first, "is refused by its project".to_owned()));
    let text = finding.evidence.first().map(|evidence| evidence.text.clone()).unwrap_or_default();
    finding.summary = format!(
        "{} does not permit {} Applications for one reason: {text}",
        finding.object,
        finding.suffers.len()
    );
    finding.field = None;
    finding.remedy.commands =
        vec![format!("kubectl -n {} edit appproject {}", finding.object.namespace, finding.object.name)];
    finding
}

fn application(look: &Look<'_>, app: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(waiting(look, app));
    found.extend(errors(look, app));
    found.extend(failed_operation(look, app));
    found.extend(hooks(look, app));
    found.extend(fights(look, app));
    found.extend(still_needed(look, app));
    found
}
