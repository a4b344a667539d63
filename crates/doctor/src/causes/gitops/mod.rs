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
    shared(found)
}

/// One credential or one broken file that many Applications suffer from is one fault.
fn shared(found: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    let mut places: BTreeMap<(Cause, String), usize> = BTreeMap::new();
    for finding in found {
        let key = match finding.cause {
            Cause::GitopsSourceAuth => finding.field.clone(),
            // A cluster's address stands in this field, if it cannot be reached.
            Cause::ExternalDown | Cause::ConfigCredentials => finding.field.clone(),
            _ => None,
        };
        let Some(key) = key else {
            kept.push(finding);
            continue;
        };
        match places.get(&(finding.cause, key.clone())) {
            Some(at) => {
                let object = finding.object.clone();
                kept[*at].merge(finding);
                kept[*at] = kept[*at].clone().suffers(object, "suffers from the same");
            }
            None => {
                places.insert((finding.cause, key), kept.len());
                kept.push(finding);
            }
        }
    }
    kept
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
