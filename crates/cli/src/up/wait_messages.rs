//! How the waits of an operation are told when time is up.

use tiphys_schema::Catalog;
use tiphys_sync::{Blocker, Wait, WaitKind};

/// How many objects that wait for the same are named.
const NAMED: usize = 3;

/// One line for each wait; one for all objects that the same thing blocks.
pub(super) fn lines(waits: &[Wait]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&Wait>)> = Vec::new();
    let mut lines = Vec::new();
    for wait in waits {
        let Some(why) = blocking(wait) else {
            lines.push(format!("{} since {}", describe(wait), wait.since));
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, group)) => group.push(wait),
            None => groups.push((why, vec![wait])),
        }
    }
    for (why, waits) in groups {
        let since = waits.iter().map(|wait| wait.since).min().unwrap_or(waits[0].since);
        lines.push(format!("blocked: {why}; waiting are {} since {since}", object_names(&waits)));
    }
    lines
}

/// A wait for people: objects of the core group have no group.
pub(super) fn describe(wait: &Wait) -> String {
    let text = wait.to_string();
    match &wait.object {
        Some(object) if object.group.is_empty() => {
            text.replacen(&format!(" /{}/", object.kind), &format!(" {}/", object.kind), 1)
        }
        _ => text,
    }
}

/// What blocks an object, for all objects that it blocks.
fn blocking(wait: &Wait) -> Option<String> {
    let object = wait.object.as_ref().filter(|_| wait.kind == WaitKind::Blocked)?;
    let (group, kind) = (&object.group, &object.kind);
    Some(match missing_kind(wait) {
        None => wait.cause.clone(),
        // Groups without a dot are Kubernetes' own.
        Some(_) if is_of_kubernetes(group) => {
            format!("Kubernetes no longer serves {kind} of {group} in the version of the manifest")
        }
        Some(_) => format!(
            "the cluster has no kind {kind} of {group}: no CustomResourceDefinition brings it (--stand-ins always puts one in its place)"
        ),
    })
}

/// Whether a group is Kubernetes' own, or was: those have no dot, or are served.
fn is_of_kubernetes(group: &str) -> bool {
    !group.contains('.') || Catalog::latest().kinds().iter().any(|kind| kind.gvk.group == group)
}

/// The objects of waits, the first of many: their names alone if they are of one kind that the line names.
fn object_names(waits: &[&Wait]) -> String {
    let is_told = waits.iter().all(|wait| missing_kind(wait).is_some());
    let objects = waits.iter().filter_map(|wait| wait.object.as_ref());
    let names: Vec<String> = objects
        .map(|object| match is_told {
            true => object.name.clone(),
            false => format!("{}/{}", object.kind, object.name),
        })
        .collect();
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

/// The group and kind of an object that waits for its definition.
pub(super) fn missing_kind(wait: &Wait) -> Option<(&str, &str)> {
    let object = wait.object.as_ref()?;
    let is_missing = wait.blocker == Some(Blocker::MissingKind) && !object.group.is_empty();
    is_missing.then_some((object.group.as_str(), object.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use tiphys_model::time::Time;
    use tiphys_value::ResourceKey;

    use super::*;

    fn blocked(name: &str, blocker: Blocker, cause: &str) -> Wait {
        Wait {
            kind: WaitKind::Blocked,
            object: Some(ResourceKey::new("bitnami.com", "SealedSecret", "shop", name)),
            cause: cause.to_owned(),
            blocker: Some(blocker),
            since: Time::parse("2026-01-01T00:00:00Z").unwrap(),
            deadline: None,
        }
    }

    fn webhook() -> Blocker {
        Blocker::Webhook { name: "check.example.com".to_owned() }
    }

    #[test]
    fn objects_of_the_core_group_have_none() {
        let service = Wait {
            object: Some(ResourceKey::new("", "Service", "shop", "web")),
            ..blocked("", webhook(), "no endpoints")
        };
        assert_eq!(describe(&service), "blocked: Service/web (no endpoints)");
        assert_eq!(describe(&blocked("a", webhook(), "")), "blocked: bitnami.com/SealedSecret/a");
    }

    #[test]
    fn objects_of_one_missing_kind_are_told_of_together() {
        let missing = |name| blocked(name, Blocker::MissingKind, "no such kind");
        let mut waits: Vec<Wait> = ["a", "b", "c", "d"].map(missing).into();
        waits.push(blocked("e", webhook(), "failed calling webhook"));
        waits.push(Wait {
            object: Some(ResourceKey::new("", "Service", "shop", "web")),
            ..blocked("", webhook(), "failed calling webhook")
        });
        let lines = lines(&waits);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let old = Wait { object: Some(ResourceKey::new("batch", "CronJob", "shop", "night")), ..missing("") };
        let with_dot = Wait {
            object: Some(ResourceKey::new("rbac.authorization.k8s.io", "Role", "shop", "reader")),
            ..missing("")
        };
        assert!(super::lines(&[old])[0].contains("no longer serves CronJob of batch"));
        assert!(super::lines(&[with_dot])[0].contains("no longer serves Role of rbac.authorization.k8s.io"));
        assert!(lines[0].contains("no kind SealedSecret of bitnami.com"), "{lines:?}");
        assert!(lines[0].contains("waiting are a, b, c and 1 more"), "{lines:?}");
        let webhook = "failed calling webhook; waiting are SealedSecret/e, Service/web since";
        assert!(lines[1].contains(webhook), "{lines:?}");
    }
}
