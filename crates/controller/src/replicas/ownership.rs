//! What is this replica's, by its share.

use tiphys_value::Value;

use super::slots::Slot;
use crate::{AppKey, Settings};

/// Whether an Application is this replica's.
pub(crate) fn is_ours(settings: &Settings, app: &Value) -> bool {
    settings.share.as_ref().is_none_or(|share| share.holds(Slot::of_application(app)))
}

/// Whether this replica does what only one may do and what belongs to no Application: letting AppProjects
/// go that are deleted.
pub(crate) fn does_exclusive_work(settings: &Settings) -> bool {
    settings.share.as_ref().is_none_or(|share| share.holds(Slot::EXCLUSIVE))
}

/// The version of an Application that alone a write may follow; `None` where nobody else writes.
pub(crate) fn version_to_follow(settings: &Settings, key: &AppKey) -> Option<String> {
    settings.share.as_ref()?.version(key)
}

/// Notes the version of an Application that this replica has written.
pub(crate) fn note_written(settings: &Settings, key: &AppKey, version: Option<String>) {
    if let (Some(share), Some(version)) = (&settings.share, version) {
        share.note_version(key, &version);
    }
}
