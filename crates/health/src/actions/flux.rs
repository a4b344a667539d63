//! Actions of Flux's kinds: what `flux reconcile`, `suspend` and `resume` do.

use serde_json::Value;

use super::{
    builtin::{BuiltinAction, action},
    object_edit::{Edit, is_on},
    workloads::{SUSPEND, resume, suspend},
};

/// Kinds that look at something when they are asked to.
const RECONCILED: [&str; 10] = [
    "HelmRelease",
    "Kustomization",
    "GitRepository",
    "OCIRepository",
    "HelmRepository",
    "HelmChart",
    "Bucket",
    "ImageRepository",
    "ImageUpdateAutomation",
    "Receiver",
];

pub(super) fn actions_of(kind: &str, object: &Value) -> Vec<BuiltinAction> {
    let is_reconciled = RECONCILED.contains(&kind);
    if !is_reconciled && !["Alert", "Provider"].contains(&kind) {
        return Vec::new();
    }
    let is_suspended = is_on(object, SUSPEND);
    let mut all = vec![
        action("suspend", suspend).disabled_if(is_suspended),
        action("resume", resume).disabled_if(!is_suspended),
    ];
    if is_reconciled {
        all.push(action("reconcile", reconcile).disabled_if(is_suspended));
    }
    all
}

fn reconcile(edit: &mut Edit<'_>) -> Result<(), String> {
    let time = edit.time();
    edit.annotate("reconcile.fluxcd.io/requestedAt", time);
    Ok(())
}
