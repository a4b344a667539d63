//! Releases of Helm that are stuck.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{Object, finding::Finding, search_context::Look};

/// A release that Helm cannot go on with.
pub(super) fn release(look: &Look<'_>, object: &Object, live: &Value, text: &str, source: &str) -> Finding {
    let name = live.str_at(&["spec", "releaseName"]).unwrap_or(&object.name);
    let namespace = live.str_at(&["spec", "targetNamespace"]).unwrap_or(&object.namespace);
    let finding = Finding::new(
        Cause::GitopsHelmRelease,
        object.clone(),
        0.88,
        format!("the Helm release of {object} is stuck: {text}"),
    )
    .evidence(source, text)
    .remedy(
        "Roll the release back, or delete the Secret of the revision that is pending, then reconcile.",
        &[format!("helm -n {namespace} history {name}"), format!("helm -n {namespace} rollback {name}")],
    );
    match last_release(look, namespace, name) {
        Some((secret, status, version)) => {
            finding.evidence(secret.to_string(), format!("revision {version}: {status}"))
        }
        None => finding,
    }
}

/// The last revision of a release: its Secret, its status, its number.
fn last_release(look: &Look<'_>, namespace: &str, name: &str) -> Option<(Object, String, u64)> {
    let of_release = look.cluster.all("Secret").iter().filter(|it| {
        it.namespace() == namespace && it.label("owner") == Some("helm") && it.label("name") == Some(name)
    });
    let last = of_release.max_by_key(|it| it.label("version").and_then(|it| it.parse::<u64>().ok()))?;
    Some((
        Object::from_live(last),
        last.label("status").unwrap_or_default().to_owned(),
        last.label("version").and_then(|it| it.parse().ok()).unwrap_or(0),
    ))
}

/// Releases that an interrupted Helm left pending.
pub(super) fn releases(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for secret in look.cluster.all("Secret").iter().filter(|it| it.label("owner") == Some("helm")) {
        let Some(name) = secret.label("name") else { continue };
        if !seen.insert((secret.namespace(), name)) {
            continue;
        }
        let Some((object, status, version)) = last_release(look, secret.namespace(), name) else { continue };
        let live = look.cluster.live(&object);
        let owner = look.cluster.all("HelmRelease").iter().find(|it| {
            it.str_at(&["spec", "releaseName"]).unwrap_or(it.name()) == name
                && it.str_at(&["spec", "targetNamespace"]).unwrap_or(it.namespace()) == secret.namespace()
        });
        let owner_is_red = owner.is_some_and(|it| look.is_red(&Object::from_live(it)));
        let is_pending = status.starts_with("pending-") && live.is_some_and(|it| look.cluster.age(it) > 600);
        if !is_pending {
            continue;
        }
        let at = owner.map_or_else(|| object.clone(), |it| Object::from_live(it));
        let confidence = if owner.is_none() || owner_is_red { 0.9 } else { 0.45 };
        found.push(
            Finding::new(
                Cause::GitopsHelmRelease,
                at.clone(),
                confidence,
                format!(
                    "revision {version} of the Helm release {name} is {status}: Helm refuses further upgrades"
                ),
            )
            .evidence(object.to_string(), format!("status {status}"))
            .suffers(object, "is pending")
            .remedy("Roll the release back.", &[format!("helm -n {} rollback {name}", secret.namespace())]),
        );
    }
    found
}
