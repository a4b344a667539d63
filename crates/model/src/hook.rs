//! Hooks, their delete policies and waves, from Argo CD's and Helm's annotations
//! (Argo CD docs, "Resource Hooks", "Sync Phases and Waves").

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::{SyncPhase, names};

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HookType {
    /// Before the objects.
    PreSync,
    /// With the objects.
    Sync,
    /// After the objects.
    PostSync,
    /// When a sync failed.
    SyncFail,
    /// Before the Application's objects are deleted.
    PreDelete,
    /// After the Application's objects are deleted.
    PostDelete,
    /// Never: the object is not applied.
    Skip,
}

impl HookType {
    const ALL: [Self; 7] = [
        Self::PreSync,
        Self::Sync,
        Self::PostSync,
        Self::SyncFail,
        Self::PreDelete,
        Self::PostDelete,
        Self::Skip,
    ];

    /// The spelling of the annotation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
            Self::PreDelete => "PreDelete",
            Self::PostDelete => "PostDelete",
            Self::Skip => "Skip",
        }
    }

    /// Reads the spelling of Argo CD's annotation.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == text)
    }

    /// The phase of a sync in which the hook runs, if it runs in one.
    pub fn phase(self) -> Option<SyncPhase> {
        match self {
            Self::PreSync => Some(SyncPhase::PreSync),
            Self::Sync => Some(SyncPhase::Sync),
            Self::PostSync => Some(SyncPhase::PostSync),
            Self::SyncFail => Some(SyncPhase::SyncFail),
            Self::PreDelete | Self::PostDelete | Self::Skip => None,
        }
    }

    /// Helm's hook names that have a counterpart.
    fn from_helm(text: &str) -> Option<Self> {
        match text {
            "pre-install" | "pre-upgrade" => Some(Self::PreSync),
            "post-install" | "post-upgrade" => Some(Self::PostSync),
            "pre-delete" => Some(Self::PreDelete),
            "post-delete" => Some(Self::PostDelete),
            _ => None,
        }
    }
}

/// When a hook object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookDeletePolicy {
    /// When the sync has succeeded.
    HookSucceeded,
    /// When the sync has failed.
    HookFailed,
    /// Before it is created again; the default.
    BeforeHookCreation,
}

fn entries<'a>(object: &'a Value, annotation: &str) -> impl Iterator<Item = &'a str> {
    object
        .annotation(annotation)
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

/// The hook types of an object. Helm's annotation counts only where Argo CD's is absent.
pub fn hook_types(object: &Value) -> BTreeSet<HookType> {
    let own: BTreeSet<_> = entries(object, names::HOOK).filter_map(HookType::parse).collect();
    if own.is_empty() {
        entries(object, names::HELM_HOOK).filter_map(HookType::from_helm).collect()
    } else {
        own
    }
}

/// Whether the object is a hook of any kind, `crd-install` excepted: that one is an ordinary object. One
/// whose type nobody knows is a hook, too, that never runs.
pub fn is_hook(object: &Value) -> bool {
    if object.annotation(names::HOOK).is_some() {
        return true;
    }
    entries(object, names::HELM_HOOK).next().is_some()
        && !entries(object, names::HELM_HOOK).any(|h| h == "crd-install")
}

/// Whether the object is never applied nor compared: a `Skip` hook that is nothing else, or one without a
/// type that is known (a misspelt one, Helm's tests and rollbacks).
pub fn is_ignored(object: &Value) -> bool {
    is_hook(object) && hook_types(object).iter().all(|kind| *kind == HookType::Skip)
}

/// Whether the object is a `Skip` hook and nothing else: shown, but never applied, compared or judged.
pub fn is_skipped(object: &Value) -> bool {
    hook_types(object).iter().eq([&HookType::Skip])
}

/// The delete policies of a hook object: those of both annotations, `BeforeHookCreation` if none.
pub fn hook_delete_policies(object: &Value) -> BTreeSet<HookDeletePolicy> {
    let own = entries(object, names::HOOK_DELETE_POLICY).filter_map(|text| match text {
        "HookSucceeded" => Some(HookDeletePolicy::HookSucceeded),
        "HookFailed" => Some(HookDeletePolicy::HookFailed),
        "BeforeHookCreation" => Some(HookDeletePolicy::BeforeHookCreation),
        _ => None,
    });
    let helm = entries(object, names::HELM_HOOK_DELETE_POLICY).filter_map(|text| match text {
        "hook-succeeded" => Some(HookDeletePolicy::HookSucceeded),
        "hook-failed" => Some(HookDeletePolicy::HookFailed),
        "before-hook-creation" => Some(HookDeletePolicy::BeforeHookCreation),
        _ => None,
    });
    let mut all: BTreeSet<_> = own.chain(helm).collect();
    if all.is_empty() {
        all.insert(HookDeletePolicy::BeforeHookCreation);
    }
    all
}

/// The wave of an object: its annotation, else Helm's hook weight, else 0. A text that is no whole
/// number counts as absent.
pub fn wave(object: &Value) -> i64 {
    [names::SYNC_WAVE, names::HELM_HOOK_WEIGHT]
        .iter()
        .find_map(|key| object.annotation(key)?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn annotated(pairs: &[(&str, &str)]) -> Value {
        let map: serde_json::Map<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
        json!({"metadata": {"annotations": map}})
    }

    #[test]
    fn argo_hooks_win_over_helm_hooks() {
        let both = annotated(&[(names::HOOK, "PostSync"), (names::HELM_HOOK, "pre-install")]);
        assert_eq!(hook_types(&both), BTreeSet::from([HookType::PostSync]));
        let helm = annotated(&[(names::HELM_HOOK, "pre-install,pre-upgrade")]);
        assert_eq!(hook_types(&helm), BTreeSet::from([HookType::PreSync]));
    }

    #[test]
    fn helm_tests_are_ignored_and_crd_install_is_ordinary() {
        let test = annotated(&[(names::HELM_HOOK, "test")]);
        assert!(is_hook(&test) && is_ignored(&test));
        let crd = annotated(&[(names::HELM_HOOK, "crd-install")]);
        assert!(!is_hook(&crd) && !is_ignored(&crd));
    }

    #[test]
    fn a_skip_hook_that_is_something_else_too_runs() {
        assert!(is_ignored(&annotated(&[(names::HOOK, "Skip")])));
        assert!(!is_ignored(&annotated(&[(names::HOOK, "Skip,PreSync")])));
        assert!(is_ignored(&annotated(&[(names::HOOK, "presync")])));
        assert!(is_skipped(&annotated(&[(names::HOOK, "Skip")])));
        assert!(!is_skipped(&annotated(&[(names::HOOK, "presync")])) && !is_skipped(&annotated(&[])));
    }

    #[test]
    fn unreadable_wave_falls_through_to_the_hook_weight() {
        let object = annotated(&[(names::SYNC_WAVE, "first"), (names::HELM_HOOK_WEIGHT, "-5")]);
        assert_eq!(wave(&object), -5);
        assert_eq!(wave(&json!({})), 0);
    }

    #[test]
    fn before_hook_creation_is_the_default_policy() {
        assert_eq!(hook_delete_policies(&json!({})), BTreeSet::from([HookDeletePolicy::BeforeHookCreation]));
        let union = annotated(&[
            (names::HOOK_DELETE_POLICY, "HookFailed"),
            (names::HELM_HOOK_DELETE_POLICY, "hook-succeeded"),
        ]);
        assert_eq!(hook_delete_policies(&union).len(), 2);
    }
}
