//! Sync options and compare options: `Key=value` texts, of an Application or of one object.

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::names;

/// The sync options that there are, of Applications and of objects.
pub const SYNC_OPTIONS: [&str; 14] = [
    "ApplyOutOfSyncOnly",
    "ClientSideApplyMigration",
    "CreateNamespace",
    "Delete",
    "FailOnSharedResource",
    "Force",
    "Prune",
    "PruneLast",
    "PrunePropagationPolicy",
    "Replace",
    "RespectIgnoreDifferences",
    "ServerSideApply",
    "SkipDryRunOnMissingResource",
    "Validate",
];

/// What a sync option may be set to.
pub fn values_of(option: &str) -> &'static [&'static str] {
    match option {
        "Prune" | "Delete" => &["true", "false", "confirm"],
        "PrunePropagationPolicy" => &["foreground", "background", "orphan"],
        _ => &["true", "false"],
    }
}

/// A list of options, compared to the letter as Argo CD does: each `Key=value` is looked for on its own, so
/// that one that is given twice may have two values; where one is asked for its value, the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncOptions(Vec<(String, String)>);

/// Whether objects are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// Yes.
    #[default]
    Allowed,
    /// Never.
    Forbidden,
    /// After an approval.
    Confirm,
}

/// What an object that is gone takes with it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Propagation {
    /// Dependents go first.
    #[default]
    Foreground,
    /// Dependents go afterwards.
    Background,
    /// Dependents stay.
    Orphan,
}

impl SyncOptions {
    /// Reads the options of an Application or operation.
    pub fn from_list(list: &[String]) -> Self {
        Self::from_texts(list.iter().map(String::as_str))
    }

    /// Reads the options of one object from its annotation.
    pub fn of_object(object: &Value) -> Self {
        Self::from_texts(object.annotation(names::SYNC_OPTIONS).unwrap_or_default().split(','))
    }

    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let texts = texts.map(str::trim).filter(|text| !text.is_empty());
        let pairs = texts.map(|text| text.split_once('=').unwrap_or((text, "")));
        Self(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// The value of an option.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Whether an option has a value.
    pub fn has(&self, key: &str, value: &str) -> bool {
        self.0.iter().any(|(known, given)| known == key && given == value)
    }

    /// Whether an option is `true`.
    pub fn is_on(&self, key: &str) -> bool {
        self.has(key, "true")
    }

    /// `Prune` or `Delete`: whether objects may be deleted, if the option is given.
    pub fn deletion(&self, key: &str) -> Option<DeletionPolicy> {
        match self.get(key)? {
            "false" => Some(DeletionPolicy::Forbidden),
            "confirm" => Some(DeletionPolicy::Confirm),
            _ => Some(DeletionPolicy::Allowed),
        }
    }

    /// `PrunePropagationPolicy`; foreground unless given.
    pub fn propagation(&self) -> Propagation {
        match self.get("PrunePropagationPolicy") {
            Some("background") => Propagation::Background,
            Some("orphan") => Propagation::Orphan,
            _ => Propagation::Foreground,
        }
    }
}

/// Whether an object may be deleted: its own option decides before the Application's.
pub fn deletion_policy(key: &str, object: &Value, app: &SyncOptions) -> DeletionPolicy {
    SyncOptions::of_object(object).deletion(key).or_else(|| app.deletion(key)).unwrap_or_default()
}

/// Whether an annotation that holds a comma list has an entry, blanks ignored.
pub fn annotation_lists(object: &Value, annotation: &str, entry: &str) -> bool {
    object.annotation(annotation).is_some_and(|list| list.split(',').any(|item| item.trim() == entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_lists_with_blanks() {
        let object =
            json!({"metadata": {"annotations": {names::SYNC_OPTIONS: " Prune=false , Replace=true"}}});
        let options = SyncOptions::of_object(&object);
        assert!(options.is_on("Replace"));
        assert_eq!(options.deletion("Prune"), Some(DeletionPolicy::Forbidden));
        assert_eq!(options.deletion("Delete"), None);
    }

    #[test]
    fn options_are_compared_to_the_letter() {
        let options =
            SyncOptions::from_list(&["Replace = true".into(), "Force".into(), "Validate=False".into()]);
        assert!(!options.is_on("Replace") && !options.is_on("Force") && !options.has("Validate", "false"));
    }

    #[test]
    fn of_an_option_given_twice_the_first_value_counts_where_one_is_asked_for() {
        let options = SyncOptions::from_list(&["Prune=false".into(), "Prune=confirm".into()]);
        assert_eq!(options.deletion("Prune"), Some(DeletionPolicy::Forbidden));
        let options = SyncOptions::from_list(&["Replace=false".into(), "Replace=true".into()]);
        assert!(options.is_on("Replace") && options.has("Replace", "false"));
    }

    #[test]
    fn an_objects_own_option_beats_the_applications() {
        let app = SyncOptions::from_list(&["Prune=confirm".into()]);
        let own = json!({"metadata": {"annotations": {names::SYNC_OPTIONS: "Prune=true"}}});
        assert_eq!(deletion_policy("Prune", &own, &app), DeletionPolicy::Allowed);
        assert_eq!(deletion_policy("Prune", &json!({}), &app), DeletionPolicy::Confirm);
    }
}
