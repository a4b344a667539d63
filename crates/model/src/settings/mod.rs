//! What an installation is set to: the ConfigMaps `argocd-cm` and `argocd-cmd-params-cm` (Argo CD docs,
//! "argocd-cm.yaml" and "argocd-cmd-params-cm.yaml"). A setting that cannot be read is reported beside the
//! others, which still count: one wrong line must not stop an engine.

mod compare;
mod customizations;
mod filter;
mod params;
mod reader;
mod rendering;
mod sets;

use std::{collections::BTreeMap, time::Duration};

pub use compare::{CompareSettings, IgnoreStatus};
pub use customizations::{ActionDefinition, Customization, Customizations, KindActions, KnownTypeField};
pub use filter::{ResourceFilter, ResourceFilters};
pub use params::ControllerParams;
pub use reader::SettingsFault;
use reader::{Reader, go_bool, parsed};
pub use rendering::{KustomizeSettings, RenderSettings};
use serde::Deserialize;
use serde_json::Value;
pub use sets::SetParams;

use crate::{Tracking, TrackingMethod, selector::LabelSelector};

/// Name of the ConfigMap with the settings of an installation.
pub const CONFIG_MAP: &str = "argocd-cm";
/// Name of the ConfigMap with the flags of its processes.
pub const PARAMS_CONFIG_MAP: &str = "argocd-cmd-params-cm";

/// `globalProjects`: a project whose rules hold in other projects too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalProject {
    /// Labels of the projects in which it holds.
    pub label_selector: LabelSelector,
    /// The project that holds.
    pub project_name: String,
}

/// How often sources are looked at again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// `timeout.reconciliation`; zero means never without being told, `None` that nothing is set.
    pub interval: Option<Duration>,
    /// `timeout.reconciliation.jitter`: at most so much is added; `None` that nothing is set.
    pub jitter: Option<Duration>,
    /// `timeout.hard.reconciliation`: how often nothing remembered counts; zero means never.
    pub hard: Duration,
}

/// `application.sync.impersonation.*`: whether syncs are made as the service accounts that projects name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impersonation {
    /// They are.
    pub enabled: bool,
    /// A project that names none for a destination syncs nothing to it.
    pub enforced: bool,
}

/// The settings of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgoSettings {
    /// How objects are marked: `application.resourceTrackingMethod`, `application.instanceLabelKey`,
    /// `installationID`.
    pub tracking: Tracking,
    /// Health, ignored differences and more by kind: `resource.customizations*`.
    pub customizations: Customizations,
    /// `resource.exclusions` and `resource.inclusions`.
    pub filters: ResourceFilters,
    /// `resource.compareoptions`.
    pub compare: CompareSettings,
    /// `kustomize.*`, `helm.*`, `jsonnet.*`.
    pub rendering: RenderSettings,
    /// `timeout.*`.
    pub reconciliation: Reconciliation,
    /// `application.sync.impersonation.*`.
    pub impersonation: Impersonation,
    /// `globalProjects`.
    pub global_projects: Vec<GlobalProject>,
    /// `resource.sensitive.mask.annotations`: their values are shown nowhere.
    pub masked_annotations: Vec<String>,
    /// `cluster.inClusterEnabled`: the engine's own cluster may be a destination.
    pub in_cluster_enabled: bool,
    /// Names of the local accounts; what they may do is no matter of the engine.
    pub accounts: Vec<String>,
    /// What `argocd-cmd-params-cm` says of the controller.
    pub controller: ControllerParams,
    /// What it says of ApplicationSets.
    pub sets: SetParams,
    /// Flags of both that are set and that this engine has no use for.
    pub unused_params: Vec<String>,
    /// Keys that are set and mean nothing to this engine: of the web server, of sign-on, of notifications.
    pub unused: Vec<String>,
    /// Settings that cannot be used.
    pub faults: Vec<SettingsFault>,
}

impl Default for ArgoSettings {
    fn default() -> Self {
        Self::read(&BTreeMap::new(), &BTreeMap::new())
    }
}

impl ArgoSettings {
    /// Reads `data` of `argocd-cm` and of `argocd-cmd-params-cm`; a ConfigMap that is not there is empty.
    pub fn read(config: &BTreeMap<String, String>, params: &BTreeMap<String, String>) -> Self {
        let mut reader = Reader::new(config);
        let mut settings = Self {
            tracking: reader.tracking(),
            customizations: customizations::read(&mut reader),
            filters: filter::read(&mut reader),
            compare: compare::read(&mut reader),
            rendering: rendering::read(&mut reader),
            reconciliation: reader.reconciliation(),
            impersonation: Impersonation {
                // As Argo CD compares them: no other spelling switches anything.
                enabled: reader.text("application.sync.impersonation.enabled").as_deref() == Some("true"),
                enforced: reader.text("application.sync.impersonation.enforced").as_deref() != Some("false"),
            },
            global_projects: reader.yaml("globalProjects").unwrap_or_default(),
            masked_annotations: reader.list("resource.sensitive.mask.annotations"),
            in_cluster_enabled: reader.flag("cluster.inClusterEnabled", true),
            accounts: reader.accounts(),
            controller: ControllerParams::default(),
            sets: SetParams::default(),
            unused_params: Vec::new(),
            unused: Vec::new(),
            faults: Vec::new(),
        };
        settings.unused = reader.unused();
        settings.faults = reader.faults;
        let mut reader = Reader::new(params);
        settings.controller = params::read(&mut reader);
        settings.sets = sets::read(&mut reader);
        settings.unused_params = reader.unused();
        let ours = ["controller.", "applicationsetcontroller."];
        settings.unused_params.retain(|key| ours.iter().any(|process| key.starts_with(process)));
        settings.faults.extend(reader.faults);
        settings
    }

    /// Reads the two ConfigMap objects; one that is `None` is empty.
    pub fn from_objects(config: Option<&Value>, params: Option<&Value>) -> Self {
        Self::read(&data_of(config), &data_of(params))
    }
}

/// `data` of a ConfigMap. A value that is no text stands as JSON, as where someone forgot the quotes.
fn data_of(object: Option<&Value>) -> BTreeMap<String, String> {
    let data = object.and_then(|object| object.get("data")).and_then(Value::as_object);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    data.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

impl Reader<'_> {
    fn tracking(&mut self) -> Tracking {
        let mut tracking = Tracking::default();
        if let Some(method) = self.text("application.resourceTrackingMethod") {
            match TrackingMethod::parse(&method) {
                Some(method) => tracking.method = method,
                None => self.fault(
                    "application.resourceTrackingMethod",
                    format!("{method:?} is none of annotation, label, annotation+label"),
                ),
            }
        }
        if let Some(key) = self.text("application.instanceLabelKey") {
            tracking.label_key = key;
        }
        tracking.installation_id = self.text("installationID").unwrap_or_default();
        tracking
    }

    fn reconciliation(&mut self) -> Reconciliation {
        Reconciliation {
            interval: self.optional_duration("timeout.reconciliation"),
            jitter: self.optional_duration("timeout.reconciliation.jitter"),
            hard: self.duration("timeout.hard.reconciliation", Duration::ZERO),
        }
    }

    fn accounts(&mut self) -> Vec<String> {
        let keys = self.keys("accounts.");
        let mut names: Vec<String> =
            keys.iter().filter_map(|key| Some(key.split('.').nth(1)?.to_owned())).collect();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> ArgoSettings {
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ArgoSettings::read(&map, &BTreeMap::new())
    }

    #[test]
    fn an_empty_config_map_means_the_defaults() {
        let settings = ArgoSettings::default();
        assert_eq!(settings.tracking, Tracking::default());
        assert_eq!(settings.reconciliation.interval, None);
        assert!(settings.in_cluster_enabled && settings.faults.is_empty());
    }

    #[test]
    fn a_setting_that_cannot_be_read_is_named_and_the_others_count() {
        let settings = read(&[
            ("application.resourceTrackingMethod", "labels"),
            ("timeout.reconciliation", "5 minutes"),
            ("installationID", "blue"),
            ("globalProjects", "- labelSelector: {matchLabels: {opt: prod}}\n  projectName: prod\n"),
        ]);
        let keys: Vec<&str> = settings.faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["application.resourceTrackingMethod", "timeout.reconciliation"]);
        assert_eq!(settings.tracking.installation_id, "blue");
        assert_eq!(settings.global_projects[0].project_name, "prod");
    }

    #[test]
    fn impersonation_is_enforced_where_it_is_on() {
        assert_eq!(read(&[]).impersonation, Impersonation { enabled: false, enforced: true });
        let on = read(&[("application.sync.impersonation.enabled", "true")]);
        assert_eq!(on.impersonation, Impersonation { enabled: true, enforced: true });
        let odd = read(&[
            ("application.sync.impersonation.enabled", "true"),
            ("application.sync.impersonation.enforced", "False"),
        ]);
        assert!(odd.impersonation.enforced, "only `false` switches it off");
    }

    #[test]
    fn accounts_are_known_by_name_and_foreign_keys_are_told() {
        let settings = read(&[
            ("accounts.ci", "apiKey"),
            ("accounts.ci.enabled", "false"),
            ("url", "https://cd.example.com"),
        ]);
        assert_eq!(settings.accounts, ["ci"]);
        assert_eq!(settings.unused, ["url"]);
    }

    #[test]
    fn values_that_are_no_text_are_read_as_they_stand() {
        let object =
            serde_json::json!({"data": {"timeout.reconciliation": 30, "cluster.inClusterEnabled": false}});
        let settings = ArgoSettings::from_objects(Some(&object), None);
        assert_eq!(settings.reconciliation.interval, Some(Duration::from_secs(30)));
        assert!(!settings.in_cluster_enabled);
    }
}
