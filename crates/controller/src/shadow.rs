//! An engine beside another one: it decides and records, and writes nothing.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;
use tiphys_appset::{Brake, Policy, plan};
use tiphys_model::{Application, HealthCode, SyncStatusCode};
use tiphys_sync::AutoSync;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{AppKey, Refresh, destinations::Absent, engine::Engine, finalize::Members, reconcile::Next};

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
        self.told.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record(&self, key: &AppKey, decision: Decision) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let known = told.insert((decision.kind, key.clone()), decision.clone());
        drop(told);
        if known.as_ref() != Some(&decision) {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry((decision.kind, key.clone(), decision.action)).or_default() += 1;
            drop(counts);
            (self.tell)(&decision);
        }
    }
}

fn decision(kind: &'static str, key: &AppKey, action: &'static str, reason: impl Into<String>) -> Decision {
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

impl Engine {
    /// Looks at an Application and records what would be done.
    pub(crate) async fn shadow_app(
        self: &std::sync::Arc<Self>,
        key: &AppKey,
        mut app: Application,
        level: Refresh,
        shadow: &Shadow,
    ) -> Next {
        let there = app.clone();
        if app.is_terminating() {
            let mut made = decision("Application", key, "delete", "its deletion was asked for");
            let members = match self.place_of(&app) {
                Ok(place) => self.members(&app, &place),
                Err(_) => Ok(Members::default()),
            };
            let members = match members {
                Ok(members) => members.going,
                Err(why) => {
                    shadow.record(key, decision("Application", key, "wait", why));
                    return Next::default();
                }
            };
            made.delete = members.iter().map(|object| object.resource_key().to_string()).collect();
            shadow.record(key, made);
            return Next::default();
        }
        let faults = self.spec_faults(&app);
        if !faults.is_empty() {
            shadow.record(key, decision("Application", key, "refuse", faults.join("; ")));
            return Next::default();
        }
        let place = match self.place_of(&app) {
            Ok(place) => place,
            Err(Absent::Pending) => return Next::default(),
            Err(Absent::Unknown(why) | Absent::Unreachable(why)) => {
                shadow.record(key, decision("Application", key, "wait", why));
                return Next::default();
            }
        };
        let rendering = self.rendering(key, &app, level, &place).await;
        let next = self.follow_remotes(key, &rendering);
        let compared = self.compare(&app, rendering.clone(), &place).await;
        self.show(&mut app, compared.as_ref(), level);
        let Some(compared) = compared else {
            let fault = rendering.targets.as_ref().err().map(|error| format!("{error:#}"));
            let reason = fault.unwrap_or_else(|| "its project is not known".into());
            shadow.record(key, decision("Application", key, "refuse", reason));
            return next;
        };
        let open = compared.policy.may_begin(&app, self.now());
        let (action, reason) = match self.decide(&app, &compared, open == Ok(true)) {
            AutoSync::Start(operation) => {
                let heals = operation.sync.as_ref().is_some_and(|sync| sync.is_selective());
                ("sync", if heals { "self-heal" } else { "automated sync" }.to_owned())
            }
            AutoSync::Refused(condition) => ("refuse", condition.message),
            AutoSync::Later(at, why) => ("wait", format!("{why}; until {at}")),
            AutoSync::Held(_, condition) => ("wait", condition.message),
            AutoSync::Nothing(why) => ("none", why.to_owned()),
            AutoSync::Left(why) => ("none", why),
        };
        let mut made = decision("Application", key, action, reason);
        made.revision = compared.rendering.revision().to_owned();
        made.sync = Some(app.status.sync.status);
        made.health = app.status.health.status;
        made.differs = differences(&there, &app);
        if action == "sync" {
            made.apply = compared.comparison.out_of_sync.iter().map(ResourceKey::to_string).collect();
            made.delete = compared.comparison.prunable.iter().map(ResourceKey::to_string).collect();
        }
        shadow.record(key, made);
        next
    }

    /// Looks at an ApplicationSet and records what would be done.
    pub(crate) async fn shadow_set(
        self: &std::sync::Arc<Self>,
        key: &AppKey,
        set: &Arc<Value>,
        level: Refresh,
        shadow: &Shadow,
    ) -> Next {
        let made = self.yielded(key, set, level).await;
        let next = self.follow_set(key, set, &made);
        let recorded = match (&made.generated, Policy::from_set(set)) {
            (Err(error), _) => decision("ApplicationSet", key, "refuse", error.to_string()),
            (Ok(_), None) => decision("ApplicationSet", key, "refuse", "its applicationsSync is none"),
            (Ok(generated), Some(policy)) => {
                let existing = self.applications_for(set, generated);
                let changes = plan(set, generated, &existing, policy, Brake::On);
                let mut made = decision("ApplicationSet", key, "generate", changes.held.unwrap_or_default());
                let created = changes.create.iter().map(|app| format!("create {}", app.name()));
                let updated = changes.update.iter().map(|update| format!("update {}", update.after.name()));
                made.apply = created.chain(updated).collect();
                made.delete = changes.delete;
                made
            }
        };
        shadow.record(key, recorded);
        next
    }
}

/// Where the status that is there and the one that this engine would write disagree.
fn differences(there: &Application, ours: &Application) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut push = |what: &'static str, text: String| all.push(Difference { what, text });
    let (theirs, own) = (there.status.sync.status, ours.status.sync.status);
    if theirs != own {
        push("sync", format!("sync status: {} there, {} here", theirs.as_str(), own.as_str()));
    }
    let text = |app: &Application| app.status.health.status.map_or("none", HealthCode::as_str);
    if there.status.health.status != ours.status.health.status {
        push("health", format!("health: {} there, {} here", text(there), text(ours)));
    }
    for resource in &ours.status.resources {
        let same = there.status.resources.iter().find(|other| {
            (&other.group, &other.kind, &other.namespace, &other.name)
                == (&resource.group, &resource.kind, &resource.namespace, &resource.name)
        });
        let status = |status: Option<SyncStatusCode>| status.map_or("none", SyncStatusCode::as_str);
        let name = format!("{}/{}", resource.kind, resource.name);
        match same {
            None => push("object", format!("{name}: not listed there, {} here", status(resource.status))),
            Some(same) if same.status != resource.status => {
                push(
                    "object",
                    format!("{name}: {} there, {} here", status(same.status), status(resource.status)),
                );
            }
            Some(_) => {}
        }
    }
    all
}
