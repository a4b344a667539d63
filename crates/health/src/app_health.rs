//! From the health of its objects to the health of an Application.

use tiphys_model::{HealthCode, HealthStatus};
use tiphys_value::ResourceKey;

/// An object of an Application, as far as its health counts.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The object.
    pub key: &'a ResourceKey,
    /// Its health; `None` if its kind has none.
    pub health: Option<&'a HealthStatus>,
    /// It bears the annotation that its health does not count, or is the Application itself.
    pub ignored: bool,
    /// It is in the cluster.
    pub live: bool,
}

/// How many culprits the message names.
const NAMED: usize = 3;

/// The worst health of the members: hooks are not to be among them. An object that is not there does not
/// count, unless nothing is there at all: then the whole is missing. A child Application that is missing or
/// unknown does not count. The message names the culprits.
pub fn roll_up(members: &[Member<'_>]) -> HealthStatus {
    let counted: Vec<_> = members
        .iter()
        .filter(|member| !member.ignored && member.live)
        .filter_map(|member| Some((member.key, member.health?)))
        .filter(|(key, health)| {
            let is_child = key.group == "argoproj.io" && key.kind == "Application";
            !(is_child && matches!(health.status, HealthCode::Missing | HealthCode::Unknown))
        })
        .collect();
    if !members.is_empty() && members.iter().all(|member| !member.live) {
        return HealthStatus::new(HealthCode::Missing, "");
    }
    let worst = counted.iter().map(|(_, health)| health.status).max().unwrap_or(HealthCode::Healthy);
    if worst == HealthCode::Healthy {
        return HealthStatus::new(worst, "");
    }
    let culprits: Vec<_> = counted.iter().filter(|(_, health)| health.status == worst).collect();
    let mut texts: Vec<_> =
        culprits.iter().take(NAMED).map(|(key, health)| object_message(key, health)).collect();
    if culprits.len() > NAMED {
        texts.push(format!("and {} more", culprits.len() - NAMED));
    }
    HealthStatus::new(worst, texts.join("; "))
}

fn object_message(key: &ResourceKey, health: &HealthStatus) -> String {
    if health.message.is_empty() {
        format!("{}/{}", key.kind, key.name)
    } else {
        format!("{}/{}: {}", key.kind, key.name, health.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roll(list: &[(&str, Option<HealthCode>)]) -> HealthStatus {
        let owned: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(i, (kind, code))| {
                let group = if *kind == "Application" { "argoproj.io" } else { "" };
                (ResourceKey::new(group, *kind, "n", format!("o{i}")), code.map(|c| HealthStatus::new(c, "")))
            })
            .collect();
        let members: Vec<_> = owned
            .iter()
            .map(|(key, health)| {
                let live = health.as_ref().is_none_or(|health| health.status != HealthCode::Missing);
                Member { key, health: health.as_ref(), ignored: false, live }
            })
            .collect();
        roll_up(&members)
    }

    #[test]
    fn the_worst_counts_and_is_named() {
        let health =
            roll(&[("Pod", Some(HealthCode::Degraded)), ("Service", Some(HealthCode::Healthy)), ("X", None)]);
        assert_eq!(health, HealthStatus::new(HealthCode::Degraded, "Pod/o0"));
    }

    #[test]
    fn one_missing_object_does_not_count_all_do() {
        assert_eq!(
            roll(&[("Pod", Some(HealthCode::Missing)), ("Pod", Some(HealthCode::Healthy))]).status,
            HealthCode::Healthy
        );
        assert_eq!(roll(&[("Pod", Some(HealthCode::Missing))]).status, HealthCode::Missing);
        // A kind without a health is there all the same.
        assert_eq!(
            roll(&[("Pod", Some(HealthCode::Missing)), ("ConfigMap", None)]).status,
            HealthCode::Healthy
        );
        assert_eq!(roll(&[]).status, HealthCode::Healthy);
    }

    #[test]
    fn v20_child_applications_missing_or_unknown_are_ignored_degraded_is_not() {
        let healthy = ("Service", Some(HealthCode::Healthy));
        for ignored in [Some(HealthCode::Unknown), Some(HealthCode::Missing), None] {
            assert_eq!(roll(&[("Application", ignored), healthy]).status, HealthCode::Healthy);
        }
        assert_eq!(
            roll(&[("Application", Some(HealthCode::Degraded)), healthy]).status,
            HealthCode::Degraded
        );
    }
}
