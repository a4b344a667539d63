//! What an operation waits for: always typed, with cause, since when and until when.

use std::fmt;

use serde::{Deserialize, Serialize};
use tiphys_model::Time;
use tiphys_value::ResourceKey;

use crate::Blocker;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WaitKind {
    /// An object becomes healthy.
    Health,
    /// A hook completes.
    Hook,
    /// An object is gone.
    Deletion,
    /// Somebody confirms a deletion.
    PruneConfirmation,
    /// What blocks an object is repaired.
    Blocked,
    /// The pause between waves.
    WaveDelay,
    /// The pause before a failed operation or request is repeated.
    Retry,
}

/// One wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// What is waited for.
    pub kind: WaitKind,
    /// The object, if one is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ResourceKey>,
    /// The evidence, for people: health message, finalizers that hold a deletion, error of the API server.
    pub cause: String,
    /// What stands in the way of something that is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocker: Option<Blocker>,
    /// Since when.
    pub since: Time,
    /// Until when; the operation fails afterwards. `None` is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            WaitKind::Health => "waiting for healthy state of",
            WaitKind::Hook => "waiting for completion of hook",
            WaitKind::Deletion => "waiting for deletion of",
            WaitKind::PruneConfirmation => "waiting for pruning confirmation of",
            WaitKind::Blocked => "blocked:",
            WaitKind::WaveDelay => "waiting before the next wave",
            WaitKind::Retry => "waiting before the next attempt",
        };
        f.write_str(what)?;
        if let Some(object) = &self.object {
            write!(f, " {}/{}/{}", object.group, object.kind, object.name)?;
        }
        if !self.cause.is_empty() {
            write!(f, " ({})", self.cause)?;
        }
        Ok(())
    }
}
