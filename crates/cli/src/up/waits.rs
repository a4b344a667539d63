//! How the waits of an operation are told when time is up.

use std::collections::BTreeMap;

use tiphys_sync::{Wait, WaitKind};

/// How many objects of a kind that the cluster does not have are named.
const NAMED: usize = 3;

/// One line for each wait; one for all objects of a kind that the cluster does not have.
pub fn lines(waits: &[Wait]) -> Vec<String> {
    let mut of_missing: BTreeMap<(&str, &str), Vec<&Wait>> = BTreeMap::new();
    let mut lines = Vec::new();
    for wait in waits {
        match missing_kind(wait) {
            Some(kind) => of_missing.entry(kind).or_default().push(wait),
            None => lines.push(format!("{wait} since {}", wait.since)),
        }
    }
    for ((group, kind), waits) in of_missing {
        let names: Vec<&str> =
            waits.iter().filter_map(|wait| wait.object.as_ref()).map(|object| object.name.as_str()).collect();
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        // Groups without a dot are Kubernetes' own.
        let why = match group.contains('.') {
            true => format!(
                "the cluster has no kind {kind} of {group}: no CustomResourceDefinition brings it (--stand-ins always puts one in its place)"
            ),
            false => format!("Kubernetes no longer serves {kind} of {group} in the version of the manifest"),
        };
        lines.push(format!(
            "blocked: {why}; waiting are {}{more} since {}",
            names[..names.len().min(NAMED)].join(", "),
            waits[0].since
        ));
    }
    lines
}

/// The group and kind of an object that waits for its definition.
pub fn missing_kind(wait: &Wait) -> Option<(&str, &str)> {
    let object = wait.object.as_ref()?;
    let is_missing = wait.kind == WaitKind::Blocked
        && wait.cause.starts_with("The Kubernetes API could not find")
        && !object.group.is_empty();
    is_missing.then_some((object.group.as_str(), object.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use tiphys_model::time::Time;
    use tiphys_value::ResourceKey;

    use super::*;

    fn blocked(name: &str, cause: &str) -> Wait {
        Wait {
            kind: WaitKind::Blocked,
            object: Some(ResourceKey::new("bitnami.com", "SealedSecret", "shop", name)),
            cause: cause.to_owned(),
            since: Time::parse("2026-01-01T00:00:00Z").unwrap(),
            deadline: None,
        }
    }

    #[test]
    fn objects_of_one_missing_kind_are_told_of_together() {
        let missing = "The Kubernetes API could not find bitnami.com/SealedSecret for requested resource";
        let mut waits: Vec<Wait> = ["a", "b", "c", "d"].map(|name| blocked(name, missing)).into();
        waits.push(blocked("e", "failed calling webhook"));
        let lines = lines(&waits);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let old = Wait {
            object: Some(ResourceKey::new("batch", "CronJob", "shop", "night")),
            ..blocked("", missing)
        };
        assert!(super::lines(&[old])[0].contains("no longer serves CronJob of batch"));
        assert!(lines[0].contains("failed calling webhook"), "{lines:?}");
        assert!(lines[1].contains("no kind SealedSecret of bitnami.com"), "{lines:?}");
        assert!(lines[1].contains("waiting are a, b, c and 1 more"), "{lines:?}");
    }
}
