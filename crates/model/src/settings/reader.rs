//! Reading ConfigMaps of settings: each in its own way, and what cannot be read beside the others.

use std::{collections::BTreeMap, time::Duration};

use serde::de::DeserializeOwned;

use crate::duration;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingsFault {
    /// Key in the ConfigMap.
    pub key: String,
    /// What is wrong with its value.
    pub message: String,
}

/// Takes settings out of a ConfigMap and notes what cannot be read.
pub(crate) struct Reader<'a> {
    pub data: &'a BTreeMap<String, String>,
    pub faults: Vec<SettingsFault>,
    used: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(data: &'a BTreeMap<String, String>) -> Self {
        Self { data, faults: Vec::new(), used: Vec::new() }
    }

    /// A text that is set and not blank.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.used.push(key.to_owned());
        self.data.get(key).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A text of YAML.
    pub(super) fn yaml<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let text = self.text(key)?;
        parsed(&text).map_err(|message| self.fault(key, message)).ok()
    }

    /// `true` or `false`, in the spellings that Go takes.
    pub(super) fn flag(&mut self, key: &str, default: bool) -> bool {
        let Some(text) = self.text(key) else { return default };
        go_bool(&text).unwrap_or_else(|| {
            self.fault(key, format!("{text:?} is neither \"true\" nor \"false\""));
            default
        })
    }

    /// A duration; a bare number counts seconds.
    pub(super) fn duration(&mut self, key: &str, default: Duration) -> Duration {
        self.optional_duration(key).unwrap_or(default)
    }

    /// A duration that may be left to the engine.
    pub(super) fn optional_duration(&mut self, key: &str) -> Option<Duration> {
        let text = self.text(key)?;
        let read = duration::parse_lenient(&text);
        if read.is_none() {
            self.fault(key, format!("{text:?} is no duration such as 180s or 3m"));
        }
        read
    }

    /// A whole number.
    pub(super) fn number(&mut self, key: &str) -> Option<i64> {
        let text = self.text(key)?;
        text.parse().map_err(|_| self.fault(key, format!("{text:?} is no whole number"))).ok()
    }

    /// A list with commas.
    pub(super) fn list(&mut self, key: &str) -> Vec<String> {
        let text = self.text(key).unwrap_or_default();
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    pub(super) fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(SettingsFault { key: key.to_owned(), message: message.into() });
    }

    /// The keys that begin with a prefix.
    pub(super) fn keys(&mut self, prefix: &str) -> Vec<String> {
        let keys: Vec<String> = self.data.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        self.used.extend(keys.iter().cloned());
        keys
    }

    /// The keys that nobody has asked for.
    pub(super) fn unused(&self) -> Vec<String> {
        self.data.keys().filter(|key| !self.used.contains(key)).cloned().collect()
    }
}

/// Reads a YAML text into a type.
pub(crate) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = tiphys_yaml::from_yaml(text).map_err(|error| format!("is not valid YAML: {error}"))?;
    serde_path_to_error::deserialize(value).map_err(|error| error.to_string())
}

/// What Go's `strconv.ParseBool` takes.
pub(crate) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
