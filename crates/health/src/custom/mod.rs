//! Health of custom resources, by one small table per API group under `rules/`. Each follows the status
//! conventions that the project publishes for its kinds: which condition or field says that the object does
//! its work, which that it has failed, and whether `False` is a fault or only "not yet".

mod path;
mod rule_condition;
mod table;
mod tables;

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::Value;
use table::{KindRules, Table};
use tiphys_model::{HealthCode, HealthStatus};
use tiphys_value::{GroupVersionKind, ObjectExt};

/// The tables by group; a group that starts with a dot stands for all groups that end with it.
type Tables = BTreeMap<&'static str, Table>;

fn all() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut all = Tables::new();
        for (name, text) in tables::FILES {
            let table = table::parse(text);
            // A test reads every table.
            let (groups, table) = table.unwrap_or_else(|error| unreachable!("rules/{name}: {error}"));
            all.extend(groups.into_iter().map(|group| (group, table.clone())));
        }
        all
    })
}

/// Health by the tables; `None` if the kind is in none, or reports nothing.
pub(crate) fn assess(gvk: &GroupVersionKind, object: &Value) -> Option<HealthStatus> {
    let rules = rules_of(gvk)?;
    if is_behind(object) && rules.observes_generation {
        let text = "the present spec has not been observed yet";
        return Some(HealthStatus::new(HealthCode::Progressing, text));
    }
    for rule in &rules.rules {
        if rule.tests.iter().all(|test| test.holds(object)) {
            return rule.verdict.map(|code| HealthStatus::new(code, message(rule, object)));
        }
    }
    Some(HealthStatus::new(HealthCode::Progressing, rules.waits_for.clone()))
}

fn rules_of(gvk: &GroupVersionKind) -> Option<&'static KindRules> {
    let all = all();
    let exact = all.get(gvk.group.as_str()).and_then(|table| table.rules_for(&gvk.kind));
    exact.or_else(|| {
        // The longest suffix first: `.aws.example.org` before `.example.org`.
        let dots = gvk.group.match_indices('.').map(|(at, _)| &gvk.group[at..]);
        dots.into_iter().find_map(|suffix| all.get(suffix)?.rules_for(&gvk.kind))
    })
}

/// Whether the status speaks of an older spec. Some projects write the number as a text, others a hash,
/// which says nothing; and −1 stands for none yet, whatever else the status may tell.
fn is_behind(object: &Value) -> bool {
    let seen = object.at(&["status", "observedGeneration"]);
    let seen = seen.and_then(|seen| seen.as_i64().or_else(|| seen.as_str()?.parse().ok()));
    seen.is_some_and(|seen| (0..object.generation()).contains(&seen))
}

fn message(rule: &table::Rule, object: &Value) -> String {
    match rule.text {
        Some(text) => text.to_owned(),
        None => {
            let told = rule.tests.iter().find_map(|test| test.message(object));
            // What is well needs no words; of all else one has to know why.
            let is_well = rule.verdict == Some(HealthCode::Healthy);
            let fact = || rule.tests.iter().filter(|_| !is_well).find_map(|test| test.fact(object));
            told.or_else(fact).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn health_code(api_version: &str, kind: &str, status: Value) -> Option<HealthCode> {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "status": status});
        assess(&object.gvk(), &object).map(|health| health.status)
    }

    #[test]
    fn every_table_can_be_read_and_no_group_stands_in_two() {
        let mut seen = std::collections::BTreeSet::new();
        for (name, text) in tables::FILES {
            let (groups, table) = table::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!table.is_empty(), "{name}");
            for group in groups {
                assert!(seen.insert(group), "{group} stands in two tables");
            }
        }
        assert!(seen.len() >= 60, "{}", seen.len());
    }

    #[test]
    fn conditions_tell_a_fault_from_not_yet() {
        use HealthCode::*;
        let ready = |status: &str, reason: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": reason}]});
        let certificate = |status| health_code("cert-manager.io/v1", "Certificate", status);
        assert_eq!(certificate(ready("True", "Ready")), Some(Healthy));
        assert_eq!(certificate(ready("False", "DoesNotExist")), Some(Progressing));
        assert_eq!(certificate(ready("False", "Denied")), Some(Degraded));
        assert_eq!(certificate(json!({})), Some(Progressing));
    }

    #[test]
    fn an_old_generation_is_on_its_way() {
        let status = json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(
            health_code("helm.toolkit.fluxcd.io/v2", "HelmRelease", status),
            Some(HealthCode::Progressing)
        );
        let old = json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]});
        assert_eq!(health_code("cert-manager.io/v1", "Certificate", old), Some(HealthCode::Progressing));
    }

    #[test]
    fn groups_match_by_suffix_and_unknown_groups_have_no_health() {
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(health_code("s3.aws.upbound.io/v1", "Bucket", ready.clone()), Some(HealthCode::Healthy));
        assert_eq!(health_code("example.org/v1", "Thing", ready), None);
    }

    #[test]
    fn phases_and_stalled() {
        let phase = |text: &str| health_code("argoproj.io/v1alpha1", "Rollout", json!({"phase": text}));
        assert_eq!(phase("Paused"), Some(HealthCode::Suspended));
        assert_eq!(phase("Degraded"), Some(HealthCode::Degraded));
        let stalled = json!({"conditions": [{"type": "Stalled", "status": "True"}, {"type": "Ready", "status": "Unknown"}]});
        assert_eq!(
            health_code("source.toolkit.fluxcd.io/v1", "GitRepository", stalled),
            Some(HealthCode::Degraded)
        );
    }

    /// Like a CronJob: an early wave would wait for it until somebody starts it.
    #[test]
    fn a_schedule_that_is_suspended_as_its_spec_asks_is_healthy() {
        for (version, kind, field) in [
            ("argoproj.io/v1alpha1", "CronWorkflow", "suspend"),
            ("velero.io/v1", "Schedule", "paused"),
            ("sparkoperator.k8s.io/v1beta2", "ScheduledSparkApplication", "suspend"),
        ] {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {field: true}});
            let health = assess(&object.gvk(), &object).unwrap();
            assert_eq!(health.status, HealthCode::Healthy, "{kind}");
            assert!(health.message.contains("as its spec asks"), "{}", health.message);
        }
    }

    #[test]
    fn what_is_proposed_to_several_environments_has_to_be_one_commit() {
        let environment = |note: Option<&str>, proposed: &str, active: &str| {
            let mut it = json!({"active": {"dry": {"sha": active}}, "proposed": {"dry": {"sha": proposed}}});
            if let Some(note) = note {
                it["proposed"]["note"] = json!({"drySha": note});
            }
            it
        };
        let of = |environments: [Value; 2]| {
            let ready = json!([{"type": "Ready", "status": "True"}]);
            health_code(
                "promoter.argoproj.io/v1alpha1",
                "PromotionStrategy",
                json!({"conditions": ready, "environments": environments}),
            )
        };
        let same = of([environment(None, "a", "a"), environment(None, "a", "a")]);
        assert_eq!(same, Some(HealthCode::Healthy));
        let other = of([environment(None, "a", "a"), environment(None, "b", "b")]);
        assert_eq!(other, Some(HealthCode::Progressing));
        let unchanged = of([environment(Some("b"), "a", "a"), environment(Some("b"), "b", "b")]);
        assert_eq!(unchanged, Some(HealthCode::Healthy), "nothing of the first changed");
        let behind = of([environment(Some("a"), "a", "a"), environment(Some("b"), "a", "a")]);
        assert_eq!(behind, Some(HealthCode::Progressing));
    }

    #[test]
    fn messages_come_from_what_decided() {
        let object = json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "x"},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Denied", "message": "by policy"}]}});
        assert_eq!(assess(&object.gvk(), &object).unwrap().message, "Denied: by policy");
        let empty =
            json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "x"}});
        assert_eq!(assess(&empty.gvk(), &empty).unwrap().message, "waiting for Ready=True");
    }
}
