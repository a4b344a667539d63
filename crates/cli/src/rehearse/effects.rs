//! What a change does: told of the objects that came from Git, by Application.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tiphys_stage::{
    mechanism::Mechanism,
    story::{Moment, Story, What},
};
use tiphys_value::ResourceKey;

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "what")]
pub(super) enum Effect {
    /// It is new.
    Created,
    /// It was deleted and created again.
    Replaced,
    /// It is gone.
    Deleted,
    /// It was deleted, and is not gone.
    Terminating,
    /// It left Git, and is still there: nobody prunes it.
    Left,
    /// Fields of it changed.
    Changed {
        /// Which.
        fields: Vec<String>,
        /// What they were and are.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        values: Vec<FieldChange>,
    },
}

impl Effect {
    /// Whether fields of it changed.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Changed { .. })
    }
}

/// A field before a change and after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FieldChange {
    /// Which.
    pub field: String,
    /// What it was, if it was there and is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is, if it is there and is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Where it is written: file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl FieldChange {
    /// The values for people: `3 → 5`. Empty if either is too long to be told, or secret.
    pub(super) fn values(&self) -> String {
        match (&self.from, &self.to) {
            (None, None) => String::new(),
            (Some(from), None) => format!("{from} → nothing"),
            (None, Some(to)) => format!("nothing → {to}"),
            (Some(from), Some(to)) => format!("{from} → {to}"),
        }
    }
}

/// What becomes of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AppEffects {
    /// Its objects.
    pub objects: Vec<ObjectEffect>,
    /// Workloads of it whose pods are others afterwards, and how many new ones were made.
    pub restarted: Vec<Restart>,
    /// What its operations waited for that they had not waited for before, in milliseconds.
    pub waits: Vec<Waited>,
    /// Settings that change, each with a workload that has read them at its start and is not restarted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<(ResourceKey, ResourceKey)>,
    /// Workloads whose template changes and whose pods stay as they are, each with why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<(ResourceKey, String)>,
}

impl AppEffects {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.restarted.is_empty() && self.waits.is_empty()
    }
}

/// An object, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectEffect {
    /// Which.
    pub object: ResourceKey,
    /// What.
    #[serde(flatten)]
    pub effect: Effect,
    /// When, in milliseconds since the beginning.
    pub at_ms: u64,
    /// Where it is written, or was: file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Of a claim that is deleted: whether its volume is, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loses_data: Option<bool>,
}

impl ObjectEffect {
    /// Of an object, at a time.
    pub(super) fn new(object: ResourceKey, effect: Effect, at_ms: u64) -> Self {
        Self { object, effect, at_ms, place: None, loses_data: None }
    }
}

/// A workload with new pods in place of old ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restart {
    /// The workload.
    pub workload: ResourceKey,
    /// How many pods were made.
    pub pods: usize,
}

/// Something that an operation waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Waited {
    /// For what, in the words of the engine.
    pub wait: String,
    /// The same as a cause of the common vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// How long.
    pub ms: u64,
    /// Whether it still does at the end.
    pub is_open: bool,
}

/// What a change does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Effects {
    /// By Application; those without effects are left out.
    pub applications: BTreeMap<String, AppEffects>,
    /// Applications that were green and are not any more.
    pub turned_red: Vec<String>,
    /// Applications that were not green and still are not.
    pub still_red: Vec<String>,
}

impl Effects {
    /// Of a story that follows another one.
    pub(super) fn between(before: &Story, story: &Story) -> Self {
        let mut effects = Self::default();
        let mut by_object: BTreeMap<(&str, &ResourceKey), Vec<&Moment>> = BTreeMap::new();
        let mut pods: BTreeMap<(&str, &ResourceKey), (usize, usize)> = BTreeMap::new();
        for moment in &story.moments {
            let generated = generated_application(moment);
            let Some(app) = moment.application.as_deref().or(generated) else { continue };
            let is_told = moment.what != What::State || moment.to == TERMINATING;
            if (moment.from_git || generated.is_some()) && is_told {
                by_object.entry((app, &moment.object)).or_default().push(moment);
            } else if let Some(workload) = moment.made_by.as_ref().filter(|_| moment.object.kind == "Pod") {
                let count = pods.entry((app, workload)).or_default();
                match moment.what {
                    What::Created => count.0 += 1,
                    What::Deleted => count.1 += 1,
                    _ => {}
                }
            }
        }
        for ((app, object), moments) in by_object {
            let effect = effect(&moments);
            let at_ms = moments[0].at_ms;
            let to = effects.applications.entry(app.to_owned()).or_default();
            to.objects.push(ObjectEffect::new(object.clone(), effect, at_ms));
        }
        for ((app, workload), (made, gone)) in pods {
            if made > 0 && gone > 0 && is_restarted(workload) {
                let to = effects.applications.entry(app.to_owned()).or_default();
                to.restarted.push(Restart { workload: workload.clone(), pods: made });
            }
        }
        for (app, waits) in new_waits(before, story) {
            effects.applications.entry(app).or_default().waits = waits;
        }
        let was_green: BTreeSet<(&str, &str)> = before
            .applications
            .iter()
            .filter(|app| app.is_green)
            .map(|app| (app.namespace.as_str(), app.name.as_str()))
            .collect();
        let red = story.applications.iter().filter(|app| !app.is_green);
        let (turned, still): (Vec<_>, Vec<_>) =
            red.partition(|app| was_green.contains(&(app.namespace.as_str(), app.name.as_str())));
        effects.turned_red = turned.into_iter().map(|app| app.name.clone()).collect();
        effects.still_red = still.into_iter().map(|app| app.name.clone()).collect();
        effects
    }

    /// Leaves out objects of these kinds that seem to be new: those from before are not known.
    pub(super) fn leave_out_created(&mut self, kinds: &[&str]) {
        for app in self.applications.values_mut() {
            app.objects
                .retain(|it| it.effect != Effect::Created || !kinds.contains(&it.object.kind.as_str()));
        }
        self.applications.retain(|_, app| !app.is_empty());
    }

    /// Whether nothing at all comes of the change.
    pub(super) fn is_nothing(&self) -> bool {
        self.touched() == 0 && self.turned_red.is_empty()
    }

    /// How many Applications have objects that change.
    pub(super) fn touched(&self) -> usize {
        self.applications.values().filter(|app| !app.objects.is_empty() || !app.restarted.is_empty()).count()
    }
}

/// The name of an Application that an ApplicationSet makes, or takes away.
fn generated_application(moment: &Moment) -> Option<&str> {
    let is_application =
        moment.object.kind == "Application" && moment.object.group == tiphys_model::names::GROUP;
    let of_set = moment.made_by.as_ref().is_some_and(|maker| maker.kind == "ApplicationSet");
    let comes_or_goes = matches!(moment.what, What::Created | What::Deleted);
    (is_application && of_set && comes_or_goes).then_some(moment.object.name.as_str())
}

/// Pods of Jobs come and go by themselves.
fn is_restarted(workload: &ResourceKey) -> bool {
    matches!(workload.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet")
}

/// The state of an object that is being deleted.
const TERMINATING: &str = "Terminating";

fn effect(moments: &[&Moment]) -> Effect {
    let created = moments.iter().any(|moment| moment.what == What::Created);
    let deleted = moments.iter().any(|moment| moment.what == What::Deleted);
    let ends_deleted = moments
        .iter()
        .rev()
        .find(|moment| moment.what != What::Changed)
        .is_some_and(|moment| moment.what == What::Deleted);
    match (created, deleted) {
        (_, true) if ends_deleted => Effect::Deleted,
        (true, true) => Effect::Replaced,
        (true, false) => Effect::Created,
        (false, false) if moments.iter().any(|moment| moment.to == TERMINATING) => Effect::Terminating,
        _ => {
            let fields: BTreeSet<&String> = moments.iter().flat_map(|moment| &moment.fields).collect();
            Effect::Changed { fields: fields.into_iter().cloned().collect(), values: Vec::new() }
        }
    }
}

/// How long a wait has to last to be told.
const WORTH_TELLING: u64 = 5_000;

/// What each Application waited for, the longest first.
pub(super) fn waits(story: &Story) -> BTreeMap<String, Vec<Waited>> {
    let mut open: BTreeMap<&ResourceKey, (&str, u64)> = BTreeMap::new();
    let mut all: BTreeMap<String, BTreeMap<&str, (u64, bool)>> = BTreeMap::new();
    let mut mechanisms: BTreeMap<&str, &Mechanism> = BTreeMap::new();
    let is_application =
        |key: &ResourceKey| key.kind == "Application" && key.group == tiphys_model::names::GROUP;
    let end = story.moments.last().map_or(0, |moment| moment.at_ms).max(story.took_ms);
    let told = story.moments.iter();
    let told = told.filter(|moment| is_application(&moment.object) && moment.what != What::Changed);
    for moment in told {
        if let Some((wait, since)) = open.remove(&moment.object) {
            let waits = all.entry(moment.object.name.clone()).or_default();
            waits.entry(wait).or_default().0 += moment.at_ms - since;
        }
        if let Some(mechanism) = &moment.mechanism {
            mechanisms.insert(&moment.because, mechanism);
        }
        if !moment.because.is_empty() && moment.what != What::Deleted {
            open.insert(&moment.object, (&moment.because, moment.at_ms));
        }
    }
    for (key, (wait, since)) in open {
        let known = all.entry(key.name.clone()).or_default().entry(wait).or_default();
        *known = (known.0 + end.saturating_sub(since), !story.is_green());
    }
    let worth = |waits: BTreeMap<&str, (u64, bool)>| {
        let waits = waits.into_iter().filter(|(_, (ms, is_open))| *is_open || *ms >= WORTH_TELLING);
        let waits = waits.map(|(wait, (ms, is_open))| {
            let mechanism = mechanisms.get(wait).map(|mechanism| (*mechanism).clone());
            Waited { wait: wait.to_owned(), mechanism, ms, is_open }
        });
        let mut waits: Vec<Waited> = waits.collect();
        waits.sort_by(|a, b| (b.is_open, b.ms, &a.wait).cmp(&(a.is_open, a.ms, &b.wait)));
        waits
    };
    all.into_iter().map(|(app, waits)| (app, worth(waits))).filter(|(_, waits)| !waits.is_empty()).collect()
}

fn new_waits(before: &Story, story: &Story) -> BTreeMap<String, Vec<Waited>> {
    let known = waits(before);
    let mut all = waits(story);
    for (app, waits) in &mut all {
        let old = known.get(app).map(Vec::as_slice).unwrap_or_default();
        waits.retain(|new| !old.iter().any(|old| old.wait == new.wait));
    }
    all.retain(|_, waits| !waits.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(what: What, fields: &[&str]) -> Moment {
        Moment {
            at_ms: 0,
            cluster: 0,
            object: ResourceKey::new("apps", "Deployment", "shop", "web"),
            application: Some("shop".into()),
            made_by: None,
            what,
            from: String::new(),
            to: String::new(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            level: Default::default(),
            because: String::new(),
            mechanism: None,
            from_git: true,
        }
    }

    #[test]
    fn applications_that_a_set_takes_away_are_told() {
        let set = ResourceKey::new(tiphys_model::names::GROUP, "ApplicationSet", "argocd", "shops");
        let gone = Moment {
            object: ResourceKey::new(tiphys_model::names::GROUP, "Application", "argocd", "shop-us"),
            made_by: Some(set),
            from_git: false,
            ..moment(What::Deleted, &[])
        };
        assert_eq!(generated_application(&gone), Some("shop-us"));
        assert_eq!(generated_application(&Moment { what: What::State, ..gone }), None);
        assert_eq!(generated_application(&moment(What::Deleted, &[])), None);
    }

    #[test]
    fn what_is_made_anew_is_replaced() {
        let of = |all: &[Moment]| effect(&all.iter().collect::<Vec<_>>());
        let (created, deleted) = (moment(What::Created, &[]), moment(What::Deleted, &[]));
        assert_eq!(of(&[deleted.clone(), created.clone()]), Effect::Replaced);
        assert_eq!(of(&[created.clone(), deleted.clone()]), Effect::Deleted);
        assert_eq!(of(std::slice::from_ref(&created)), Effect::Created);
        let changed = of(&[moment(What::Changed, &["b"]), moment(What::Changed, &["a", "b"])]);
        let fields = vec!["a".into(), "b".into()];
        assert_eq!(changed, Effect::Changed { fields, values: Vec::new() });
    }
}
