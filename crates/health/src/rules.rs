//! The rules in force: a user's Lua before the built-in ones.

use serde_json::Value;
use tiphys_model::{Clock, HealthCode, HealthStatus, Timestamp, names, settings::Customizations};
use tiphys_value::{GroupVersionKind, ObjectExt};

use crate::{HealthSettings, application, builtin, custom, lua, verdicts::Verdicts};

/// Where the health of an object comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The object is being deleted, whatever its kind.
    Deletion,
    /// Lua of the user; the key in `argocd-cm` that it stands at.
    User {
        /// The key.
        key: String,
    },
    /// A rule for the kind.
    BuiltIn,
    /// There is a rule, and nobody who would write the status that it judges.
    Unattended,
    /// Nothing is known of the kind.
    None,
}

/// A verdict with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// The health; `None` if the kind has none, so that it counts as done.
    pub health: Option<HealthStatus>,
    /// Which rule said so.
    pub origin: RuleOrigin,
    /// The rule could not be used: a fault of the user's Lua. The health is then Unknown.
    pub fault: Option<String>,
}

/// The rules in force. Pure: the same object has the same health, unless the user's Lua asks for the time.
#[derive(Clone, Debug)]
pub struct Rules {
    settings: HealthSettings,
    customizations: Customizations,
    clock: Clock,
    /// Those of the user's scripts.
    verdicts: Verdicts,
}

/// A user's script that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ScriptFault {
    /// `group/Kind` or pattern that it is for.
    pub pattern: String,
    /// Key in `argocd-cm`.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(HealthSettings::default(), Customizations::default())
    }
}

/// Whether somebody has written a status. One that the definition has as a default (those of the Gateway API
/// have "Waiting for controller") is nobody's, which the owners of the fields tell, if they are known.
fn has_written_status(object: &Value) -> bool {
    let status = object.get("status").and_then(Value::as_object);
    let owners = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let owns = |entry: &Value| entry.at(&["fieldsV1", "f:status"]).is_some();
    status.is_some_and(|status| !status.is_empty()) && owners.is_none_or(|all| all.iter().any(owns))
}

impl Rules {
    /// Rules with what `argocd-cm` says of health. A script that asks for the time sees the start of 1970;
    /// [`Rules::with_clock`] gives it a clock.
    pub fn new(settings: HealthSettings, customizations: Customizations) -> Self {
        let clock = Clock::new(|| Timestamp::UNIX_EPOCH);
        Self { settings, customizations, clock, verdicts: Verdicts::default() }
    }

    /// The same rules with a clock for scripts that ask for the time.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Health of a live object; `None` if nothing is known of its kind (then it counts as done).
    /// The order of lookup: pending deletion, the user's Lua, built-in kinds, tables of custom resources.
    pub fn assess(&self, object: &Value) -> Option<HealthStatus> {
        self.judge(object).health
    }

    /// As [`Rules::assess`], with the origin of the verdict.
    pub fn judge(&self, object: &Value) -> Assessment {
        if is_pending_deletion(object) {
            let health = HealthStatus::new(HealthCode::Progressing, "Pending deletion");
            return Assessment { health: Some(health), origin: RuleOrigin::Deletion, fault: None };
        }
        let judged = self.judge_by_kind(object);
        match self.is_unattended(object, judged.health.as_ref()) {
            true => Assessment { health: None, origin: RuleOrigin::Unattended, fault: judged.fault },
            false => judged,
        }
    }

    fn judge_by_kind(&self, object: &Value) -> Assessment {
        let gvk = object.gvk();
        if let Some(entry) = self.customizations.health_of(&gvk) {
            let origin = RuleOrigin::User { key: entry.health_key.clone() };
            let judge = |clock: &Clock| lua::run(&entry.health_lua, object, entry.use_open_libs, clock);
            return match self.verdicts.get_or_judge(object, &self.clock, judge) {
                Ok(health) => Assessment { health, origin, fault: None },
                Err(fault) => Assessment {
                    health: Some(HealthStatus::new(HealthCode::Unknown, fault.to_string())),
                    origin,
                    fault: Some(fault.to_string()),
                },
            };
        }
        let health = built_in(&gvk, object, &self.settings);
        let origin = if health.is_some() { RuleOrigin::BuiltIn } else { RuleOrigin::None };
        Assessment { health, origin, fault: None }
    }

    /// Whether a rule waits for a status that nobody will write.
    fn is_unattended(&self, object: &Value, health: Option<&HealthStatus>) -> bool {
        let Some(attended) = &self.settings.attended else { return false };
        let gvk = object.gvk();
        let waits = health.is_some_and(|health| {
            matches!(health.status, HealthCode::Progressing | HealthCode::Missing | HealthCode::Unknown)
        });
        // Kinds of Kubernetes' own are never without somebody; Workflows have a rule beside theirs.
        let is_custom = gvk.group == names::GROUP || builtin::assess(&gvk, object, &self.settings).is_none();
        waits && !has_written_status(object) && is_custom && !attended.contains(&gvk.group_kind())
    }

    /// Whether objects of a kind have a health that somebody could wait for, by any rule. A user's script
    /// is taken to tell one.
    pub fn has_rule(&self, object: &Value) -> bool {
        self.customizations.health_of(&object.gvk()).is_some()
            || built_in(&object.gvk(), object, &self.settings).is_some()
    }

    /// The user's scripts that do not parse.
    pub fn faults(&self) -> Vec<ScriptFault> {
        let scripts = self.customizations.iter().filter(|(_, entry)| !entry.health_lua.is_empty());
        scripts
            .filter_map(|(pattern, entry)| {
                let fault = lua::check_script(&entry.health_lua).err()?;
                let (pattern, key) = (pattern.to_owned(), entry.health_key.clone());
                Some(ScriptFault { pattern, key, message: fault.to_string() })
            })
            .collect()
    }

    /// The settings of the built-in rules.
    pub fn settings(&self) -> &HealthSettings {
        &self.settings
    }
}

fn is_pending_deletion(object: &Value) -> bool {
    let is_held_hook = object
        .at(&["metadata", "finalizers"])
        .and_then(Value::as_array)
        .is_some_and(|list| list.iter().any(|f| f.as_str() == Some(names::HOOK_FINALIZER)));
    object.is_terminating() && !is_held_hook
}

fn built_in(gvk: &GroupVersionKind, object: &Value, settings: &HealthSettings) -> Option<HealthStatus> {
    if gvk.group == names::GROUP && gvk.kind == "Application" {
        return (!settings.compat).then(|| application::assess(object));
    }
    builtin::assess(gvk, object, settings).or_else(|| custom::assess(gvk, object))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use serde_json::json;
    use tiphys_model::ArgoSettings;
    use tiphys_value::GroupKind;

    fn rules(pairs: &[(&str, &str)]) -> Rules {
        let map: BTreeMap<String, String> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let settings = ArgoSettings::read(&map, &BTreeMap::new());
        Rules::new(HealthSettings::default(), settings.customizations)
    }

    #[test]
    fn the_users_lua_comes_before_the_built_in_rule() {
        let rules =
            rules(&[("resource.customizations.health.apps_Deployment", "return {status = 'Suspended'}")]);
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}});
        let judged = rules.judge(&object);
        assert_eq!(judged.health.unwrap().status, HealthCode::Suspended);
        let key = "resource.customizations.health.apps_Deployment".to_owned();
        assert_eq!(judged.origin, RuleOrigin::User { key });
        assert_eq!(Rules::default().judge(&object).origin, RuleOrigin::BuiltIn);
    }

    #[test]
    fn v20_a_degraded_child_counts_with_a_script_of_the_user_or_our_own_rule() {
        let child = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "child"},
            "status": {"health": {"status": "Degraded"}, "sync": {"status": "Synced"}}});
        let compat = || HealthSettings { compat: true, ..HealthSettings::default() };
        assert_eq!(Rules::new(compat(), Customizations::default()).assess(&child), None);
        let script = "return {status = obj.status.health.status}";
        let custom = rules(&[("resource.customizations.health.argoproj.io_Application", script)]);
        let custom = Rules::new(compat(), custom.customizations);
        assert_eq!(custom.assess(&child).unwrap().status, HealthCode::Degraded);
        assert_eq!(Rules::default().assess(&child).unwrap().status, HealthCode::Degraded);
    }

    #[test]
    fn nothing_returned_means_no_health_even_where_there_is_a_built_in_rule() {
        let rules = rules(&[("resource.customizations.health.apps_Deployment", "return nil")]);
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}});
        assert_eq!(rules.assess(&object), None);
    }

    #[test]
    fn what_no_operator_attends_to_has_no_health_until_somebody_writes_a_status() {
        let attended = Some([GroupKind::new("cert-manager.io", "Issuer")].into());
        let rules =
            Rules::new(HealthSettings { attended, ..HealthSettings::default() }, Customizations::default());
        let of = |api_version: &str, kind: &str, status: Value| {
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "generation": 1}, "status": status});
            rules.judge(&object)
        };
        let progressing = |judged: Assessment| judged.health.unwrap().status == HealthCode::Progressing;
        assert!(progressing(of("cert-manager.io/v1", "Issuer", json!({}))));
        assert!(progressing(of("apps/v1", "Deployment", json!({}))));
        let gateway = of("gateway.networking.k8s.io/v1", "Gateway", json!({}));
        assert_eq!((gateway.health, gateway.origin), (None, RuleOrigin::Unattended));
        // A status by default is nobody's.
        let owned = |fields: Value| {
            rules.judge(&json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                "metadata": {"name": "a", "managedFields": [{"manager": "m", "fieldsV1": fields}]},
                "status": {"conditions": [{"type": "Accepted", "status": "Unknown", "reason": "Pending"}]}}))
        };
        assert_eq!(owned(json!({"f:spec": {}})).origin, RuleOrigin::Unattended);
        assert!(progressing(owned(json!({"f:status": {"f:conditions": {}}}))));
        let refused = json!({"conditions": [{"type": "Programmed", "status": "False", "reason": "Invalid"}]});
        let judged = of("gateway.networking.k8s.io/v1", "Gateway", refused);
        assert_eq!(judged.health.unwrap().status, HealthCode::Degraded);
    }

    #[test]
    fn a_broken_script_makes_its_kind_unknown_and_is_found_before() {
        let rules = rules(&[
            ("resource.customizations.health.example.org_A", "return obj.x.y"),
            ("resource.customizations.health.example.org_B", "return {"),
        ]);
        let object = json!({"apiVersion": "example.org/v1", "kind": "A", "metadata": {"name": "a"}});
        let judged = rules.judge(&object);
        assert_eq!(judged.health.unwrap().status, HealthCode::Unknown);
        assert!(judged.fault.unwrap().starts_with("health.lua:1:"));
        let faults = rules.faults();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].pattern, "example.org/B");
    }
}
