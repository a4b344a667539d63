//! An engine beside another one: it decides and records, and writes nothing.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use serde::Serialize;
use tiphys_model::{HealthCode, SyncStatusCode};

use crate::AppKey;

/// What the engine would do, were it in charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// `Application` or `ApplicationSet`.
    pub kind: &'static str,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `sync`, `wait`, `refuse`, `delete`, `generate`, or `none`.
    pub action: &'static str,
    /// Why, for people.
    pub reason: String,
    /// The revision that it would be synced to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Whether desired and live state agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncStatusCode>,
    /// Health.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthCode>,
    /// The objects that would be applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<String>,
    /// The objects, or of a set the Applications, that would be deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<String>,
    /// Where the engine in charge sees it otherwise: what its status says and what this one says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<Difference>,
}

/// Where two engines see an Application otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In what: `sync`, `health` or `object`.
    pub what: &'static str,
    /// What the status there says and what this engine says.
    pub text: String,
}

impl Serialize for Difference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Takes decisions; each is told once until it changes.
#[derive(Clone)]
pub struct Shadow {
    tell: Arc<dyn Fn(&Decision) + Send + Sync>,
    told: Arc<Mutex<BTreeMap<(&'static str, AppKey), Decision>>>,
    counts: Arc<Mutex<Counts>>,
}

/// How often each action was decided about an Application or ApplicationSet.
pub(crate) type Counts = BTreeMap<(&'static str, AppKey, &'static str), u64>;

impl fmt::Debug for Shadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shadow")
    }
}

impl Shadow {
    /// Tells every new decision.
    pub fn new(tell: impl Fn(&Decision) + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell), told: Arc::default(), counts: Arc::default() }
    }

    /// The last decision about each Application and ApplicationSet.
    pub fn decisions(&self) -> Vec<Decision> {
        self.told.lock().values().cloned().collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().clone()
    }

    pub(crate) fn record(&self, key: &AppKey, decision: Decision) {
        let mut told = self.told.lock();
        let known = told.insert((decision.kind, key.clone()), decision.clone());
        drop(told);
        if known.as_ref() != Some(&decision) {
            let mut counts = self.counts.lock();
            *counts.entry((decision.kind, key.clone(), decision.action)).or_default() += 1;
            drop(counts);
            (self.tell)(&decision);
        }
    }
}

/// A decision of which only what it is and why is known.
pub(crate) fn decision(
    kind: &'static str,
    key: &AppKey,
    action: &'static str,
    reason: impl Into<String>,
) -> Decision {
    Decision {
        kind,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        action,
        reason: reason.into(),
        revision: String::new(),
        sync: None,
        health: None,
        apply: Vec::new(),
        delete: Vec::new(),
        differs: Vec::new(),
    }
}
