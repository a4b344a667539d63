//! What the cluster's ConfigMaps say of the installation, kept current.

use std::{sync::Arc, time::Duration};

use tiphys_cluster::{Change, Cluster, LiveCache};
use tiphys_diff::{DiffOptions, Difference, Fields, IgnoreError, IgnoreRules};
use tiphys_health::{RuleOrigin, Rules};
use tiphys_model::{
    Application, ArgoSettings, HealthStatus, IgnoreDifference, glob, names,
    settings::{CONFIG_MAP, IgnoreStatus, PARAMS_CONFIG_MAP},
};
use tiphys_schema::StructuralSchema;
use tiphys_sync::{AutoSettings, SyncSettings};
use tiphys_value::{GroupKind, GroupVersionKind, ObjectExt, ResourceKey, Value};

use crate::settings::{Destinations, Settings};

/// What the API server would make of a live object.
#[derive(Clone, Copy)]
pub(crate) struct Predicted<'a> {
    pub object: &'a Value,
    /// What mutating webhooks change counts too.
    pub mutations: bool,
}

/// The settings of the ConfigMaps, on top of those that the engine was started with.
pub(crate) struct Installation {
    /// As read.
    pub argo: ArgoSettings,
    /// Rules of the planner.
    pub sync: SyncSettings,
    /// Rules of automated sync.
    pub auto: AutoSettings,
    /// How often remote repositories are asked for news.
    pub refresh: Duration,
    rules: Rules,
    compat: bool,
    ignore: Vec<IgnoreDifference>,
    /// Those of them that cannot be used.
    unusable: Vec<IgnoreDifference>,
    /// Whether only some namespaces are served.
    serves_some: bool,
}

impl Installation {
    /// Lays what the ConfigMaps say over what the engine was started with.
    pub(crate) fn new(settings: &Settings, argo: ArgoSettings) -> Self {
        for fault in &argo.faults {
            tracing::warn!(key = %fault.key, "setting cannot be used: {}", fault.message);
        }
        for (pattern, entry) in argo.customizations.iter() {
            let unknown =
                entry.known_type_fields.iter().filter(|field| !tiphys_diff::is_known_type(&field.type_name));
            for field in unknown {
                tracing::warn!(%pattern, field = %field.field, "knownTypeFields: type {} is not known", field.type_name);
            }
        }
        let rules = Rules::new(settings.health.clone(), argo.customizations.clone());
        let rules = rules.with_clock(settings.clock.clone());
        for fault in rules.faults() {
            tracing::warn!(key = %fault.key, "Lua cannot be used: {}", fault.message);
        }
        let params = &argo.controller;
        if !argo.unused_params.is_empty() {
            let unused = argo.unused_params.join(", ");
            tracing::warn!("flags of {PARAMS_CONFIG_MAP} without effect here: {unused}");
        }
        let mut sync = settings.sync.clone();
        sync.wave_delay = params.wave_delay.unwrap_or(sync.wave_delay);
        sync.sync_timeout = params.sync_timeout.filter(|time| !time.is_zero()).or(sync.sync_timeout);
        let mut auto = settings.auto.clone();
        auto.heal_delay = params.self_heal_backoff.unwrap_or(auto.heal_delay);
        auto.heal_factor = params.self_heal_factor.unwrap_or(auto.heal_factor);
        auto.heal_cap = params.self_heal_cap.unwrap_or(auto.heal_cap);
        let (unusable, ignore): (Vec<_>, Vec<_>) =
            argo.customizations.ignore_differences().into_iter().partition(is_unusable);
        Self {
            sync,
            auto,
            refresh: argo.reconciliation.interval.unwrap_or(settings.refresh),
            rules,
            compat: settings.health.compat,
            ignore,
            unusable,
            // Where one cluster stands for all, Applications of several installations may be in it.
            serves_some: settings.destinations == Destinations::InCluster,
            argo,
        }
    }

    /// What a cluster's ConfigMaps say, before anything of it is followed. One that cannot be read, in a
    /// cluster that does not let us, is equivalent to none.
    pub(crate) async fn first(cluster: &Cluster, settings: &Settings) -> ArgoSettings {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        let Ok(resource) = cluster.resource(&kind).await else { return ArgoSettings::default() };
        let get = async |name| cluster.get(&resource, &settings.namespace, name).await.ok().flatten();
        let (config, params) = (get(CONFIG_MAP).await, get(PARAMS_CONFIG_MAP).await);
        ArgoSettings::from_objects(config.as_ref(), params.as_ref())
    }

    /// What the followed ConfigMaps say now.
    pub(crate) fn present(cache: &LiveCache, settings: &Settings) -> ArgoSettings {
        let get = |name| cache.get(&ResourceKey::new("", "ConfigMap", &settings.namespace, name));
        ArgoSettings::from_objects(get(CONFIG_MAP).as_deref(), get(PARAMS_CONFIG_MAP).as_deref())
    }

    /// Whether a change is one of the settings.
    pub(crate) fn is_changed_by(change: &Change, settings: &Settings) -> bool {
        let key = &change.key;
        key.kind == "ConfigMap"
            && key.group.is_empty()
            && key.namespace == settings.namespace
            && [CONFIG_MAP, PARAMS_CONFIG_MAP].contains(&key.name.as_str())
    }

    /// Health of a live object. An Application is never better than what is known of it: a user's Lua
    /// that repeats its last health would let a parent go on before the child has looked at its new spec.
    pub(crate) fn health(&self, object: &Value) -> Option<HealthStatus> {
        let health = self.rules.assess(object);
        let is_application = object.kind() == "Application" && object.gvk().group == names::GROUP;
        if self.compat || !is_application || object.is_terminating() {
            return health;
        }
        let known = tiphys_health::assess(object, self.rules.settings());
        match (health, known) {
            (Some(given), Some(known)) if known.status > given.status => Some(known),
            (health, _) => health,
        }
    }

    /// Whether a live object waits for an operator that is not there.
    pub(crate) fn is_unattended(&self, object: &Value) -> bool {
        self.rules.judge(object).origin == RuleOrigin::Unattended
    }

    /// Whether a kind of a cluster is left alone.
    pub(crate) fn excludes(&self, kind: &GroupKind, server: &str) -> bool {
        self.argo.filters.excludes(&kind.group, &kind.kind, server)
    }

    /// Whether Applications of a namespace are this engine's.
    pub(crate) fn serves(&self, namespace: &str, settings: &Settings) -> bool {
        self.is_served(namespace, &self.argo.controller.application_namespaces, settings)
    }

    /// Whether ApplicationSets of a namespace are this engine's.
    pub(crate) fn serves_sets(&self, namespace: &str, settings: &Settings) -> bool {
        self.is_served(namespace, &self.argo.sets.namespaces, settings)
    }

    fn is_served(&self, namespace: &str, patterns: &[String], settings: &Settings) -> bool {
        !self.serves_some
            || namespace == settings.namespace
            || patterns.iter().any(|pattern| glob::matches_or_regex(pattern, namespace))
    }

    /// How a target differs from its live object, by the rules of the Application and of everywhere. `schema`
    /// is that of a custom resource. A prediction of the API server takes the place of our own.
    pub(crate) fn differ(
        &self,
        app: &Application,
        target: &Value,
        live: &Value,
        schema: Option<&StructuralSchema>,
        predicted: Option<Predicted<'_>>,
    ) -> Difference {
        self.with_options(app, target, |options| {
            let options = &DiffOptions { fields: Fields::for_kind(&target.gvk(), schema), ..*options };
            match predicted {
                Some(Predicted { object, mutations }) => {
                    tiphys_diff::compare_predicted(target, live, object, mutations, options)
                }
                None => tiphys_diff::compare(target, live, options),
            }
        })
    }

    /// A target of which ignored fields have the live object's values (`RespectIgnoreDifferences`).
    pub(crate) fn respect(&self, app: &Application, target: &Value, live: &Value) -> Value {
        self.with_options(app, target, |options| tiphys_diff::respect_ignored(target, live, options))
    }

    /// Why it is not known whether an Application is as it should be: a rule for what to ignore cannot be
    /// used. As in Argo CD, any of its own counts; of those of everywhere only one that concerns its targets,
    /// for a slip in a ConfigMap is not to stop every Application.
    pub(crate) fn ignore_fault(&self, app: &Application, targets: &[Arc<Value>]) -> Option<IgnoreError> {
        let own = IgnoreRules::check(&app.spec.ignore_differences).err();
        own.or_else(|| {
            targets.iter().find_map(|target| IgnoreRules::for_object(target, &self.unusable).err())
        })
    }

    fn with_options<T>(
        &self,
        app: &Application,
        target: &Value,
        ask: impl FnOnce(&DiffOptions<'_>) -> T,
    ) -> T {
        let mut rules = self.ignore.clone();
        rules.extend(app.spec.ignore_differences.iter().cloned());
        // What is found without the rules is not acted on: see `ignore_fault`.
        let ignore = IgnoreRules::for_object(target, &rules).unwrap_or_default();
        let compares_status = match self.argo.compare.ignore_status {
            IgnoreStatus::All => false,
            IgnoreStatus::Definitions => target.kind() != "CustomResourceDefinition",
            IgnoreStatus::None => true,
        };
        let known = tiphys_diff::known_types(&target.gvk(), &self.argo.customizations);
        let options = DiffOptions {
            fields: None,
            ignore: (!ignore.is_empty()).then_some(&ignore),
            compare_status: compares_status,
            ignore_aggregated_roles: self.argo.compare.ignore_aggregated_roles,
            known: &known,
        };
        ask(&options)
    }
}

fn is_unusable(rule: &IgnoreDifference) -> bool {
    let fault = IgnoreRules::check(std::slice::from_ref(rule)).err();
    if let Some(error) = &fault {
        tracing::warn!(group = %rule.group, kind = %rule.kind, "{CONFIG_MAP}: {error}");
    }
    fault.is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use tiphys_model::HealthCode;
    use tiphys_value::json;

    fn installation(pairs: &[(&str, &str)], params: &[(&str, &str)]) -> Installation {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let settings = Settings { destinations: Destinations::InCluster, ..Settings::default() };
        Installation::new(&settings, ArgoSettings::read(&map(pairs), &map(params)))
    }

    #[test]
    fn settings_of_the_cluster_lie_over_those_of_the_start() {
        let installation = installation(
            &[("timeout.reconciliation", "30s")],
            &[("controller.sync.wave.delay.seconds", "5"), ("application.namespaces", "team-*")],
        );
        assert_eq!(installation.refresh, Duration::from_secs(30));
        assert_eq!(installation.sync.wave_delay, Duration::from_secs(5));
        let settings = Settings::default();
        assert!(installation.serves("argocd", &settings) && installation.serves("team-a", &settings));
        assert!(!installation.serves("other", &settings), "CVE-2023-22736");
    }

    #[test]
    fn lua_for_applications_cannot_hide_what_is_under_way() {
        let lua = "return {status = obj.status.health.status}";
        let installation =
            installation(&[("resource.customizations.health.argoproj.io_Application", lua)], &[]);
        let app = |phase: &str, health: &str| {
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "a"}, "spec": {}, "status": {"health": {"status": health},
            "sync": {"status": "Synced"}, "operationState": {"phase": phase}}})
        };
        let health = |phase, health| installation.health(&app(phase, health)).map(|health| health.status);
        assert_eq!(health("Running", "Healthy"), Some(HealthCode::Progressing));
        assert_eq!(health("Succeeded", "Healthy"), Some(HealthCode::Healthy));
        assert_eq!(health("Succeeded", "Degraded"), Some(HealthCode::Degraded));
    }

    #[test]
    fn ignored_differences_of_everywhere_count() {
        let installation = installation(
            &[(
                "resource.customizations.ignoreDifferences.apps_Deployment",
                "jsonPointers: [/spec/replicas]",
            )],
            &[],
        );
        let deployment = |replicas: i64| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a"}, "spec": {"replicas": replicas}})
        };
        let app = Application::default();
        assert!(installation.differ(&app, &deployment(1), &deployment(2), None, None).paths.is_empty());
    }
}
