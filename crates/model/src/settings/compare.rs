//! `resource.compareoptions`.

use serde::Deserialize;
use serde_json::Value;

use super::Reader;

const KEY: &str = "resource.compareoptions";

/// Whose `status` does not count when objects are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IgnoreStatus {
    /// That of every object.
    #[default]
    All,
    /// That of CustomResourceDefinitions.
    Definitions,
    /// Nobody's: every status counts.
    None,
}

/// How objects are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareSettings {
    /// `ignoreResourceStatusField`.
    pub ignore_status: IgnoreStatus,
    /// `ignoreAggregatedRoles`: the rules of aggregated ClusterRoles do not count.
    pub ignore_aggregated_roles: bool,
    /// `ignoreDifferencesOnResourceUpdates`: ignored differences cause no new look.
    pub ignore_differences_on_resource_updates: bool,
}

impl Default for CompareSettings {
    fn default() -> Self {
        Self {
            ignore_status: IgnoreStatus::All,
            ignore_aggregated_roles: false,
            ignore_differences_on_resource_updates: true,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    ignore_resource_status_field: Option<Value>,
    ignore_aggregated_roles: Option<bool>,
    ignore_differences_on_resource_updates: Option<bool>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> CompareSettings {
    let mut settings = CompareSettings::default();
    let Some(raw) = reader.yaml::<Raw>(KEY) else { return settings };
    // YAML 1.1 makes a boolean of a bare `off`.
    settings.ignore_status = match raw.ignore_resource_status_field {
        None | Some(Value::Null) => IgnoreStatus::All,
        Some(Value::Bool(false)) => IgnoreStatus::None,
        Some(Value::String(text)) => match text.as_str() {
            "" | "all" => IgnoreStatus::All,
            "crd" => IgnoreStatus::Definitions,
            "none" | "off" | "false" => IgnoreStatus::None,
            other => {
                reader.fault(KEY, format!("ignoreResourceStatusField: {other:?} is none of all, crd, none"));
                IgnoreStatus::All
            }
        },
        Some(other) => {
            reader.fault(KEY, format!("ignoreResourceStatusField: {other} is none of all, crd, none"));
            IgnoreStatus::All
        }
    };
    settings.ignore_aggregated_roles = raw.ignore_aggregated_roles.unwrap_or(false);
    settings.ignore_differences_on_resource_updates =
        raw.ignore_differences_on_resource_updates.unwrap_or(true);
    settings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::ArgoSettings;

    fn read(text: &str) -> ArgoSettings {
        ArgoSettings::read(&BTreeMap::from([(KEY.to_owned(), text.to_owned())]), &BTreeMap::new())
    }

    #[test]
    fn a_bare_off_means_none() {
        assert_eq!(read("ignoreResourceStatusField: off\n").compare.ignore_status, IgnoreStatus::None);
        assert_eq!(read("ignoreResourceStatusField: crd\n").compare.ignore_status, IgnoreStatus::Definitions);
        assert!(read("ignoreAggregatedRoles: true\n").compare.ignore_aggregated_roles);
    }

    #[test]
    fn an_unknown_word_is_named() {
        assert_eq!(read("ignoreResourceStatusField: some\n").faults.len(), 1);
    }
}
