//! Operations that wait for each other: of Applications whose health depends on their own operation.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::HealthFacts;
use crate::{
    AppId, Object, ObjectId, Survey,
    order::{Order, Step, step_of},
};

/// An operation that waits for the health of an Application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Whose operation waits.
    pub app: AppId,
    /// The Application object that it waits for.
    pub awaited: ObjectId,
    /// The step in which that is applied.
    pub step: Step,
    /// An object of the operation that comes later, and so is held up; `None` if the wait is for a hook
    /// of the last step.
    pub later: Option<ObjectId>,
}

/// Operations of which each waits for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The waits; one if an operation waits for itself.
    pub hops: Vec<Hop>,
}

/// Every cycle of operations that is closed by facts of the repository: for each Application that is in
/// one, a shortest, each once.
pub fn cycles(survey: &Survey, order: &Order<'_>, facts: &HealthFacts) -> Vec<Cycle> {
    let mut waits: BTreeMap<AppId, Vec<(AppId, Hop)>> = BTreeMap::new();
    for app in &survey.apps {
        let Some(health) = facts.of_applications(app.environment) else { continue };
        // Only what differs is applied, and an Application seldom differs from its own declaration.
        if app.application.sync_options().is_on("ApplyOutOfSyncOnly") {
            continue;
        }
        for (child, object) in order.children(app.id) {
            if !order.awaits(object) {
                continue;
            }
            let is_last = step_of(object) == order.last(app.id);
            let waits_on = if is_last { health.waits_for_end } else { health.waits_for_operation };
            let synced = child == app.id || survey.app(child).application.automated_policy().is_some();
            if !(waits_on && synced) {
                continue;
            }
            let Some(hop) = hop(survey, app.id, object) else { continue };
            waits.entry(app.id).or_default().push((child, hop));
        }
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for start in waits.keys() {
        let Some(hops) = shortest(&waits, *start) else { continue };
        let members: BTreeSet<AppId> = hops.iter().map(|hop| hop.app).collect();
        if seen.insert(members) {
            found.push(Cycle { hops });
        }
    }
    found
}

fn hop(survey: &Survey, app: AppId, object: &Object) -> Option<Hop> {
    let step = step_of(object)?;
    let later = survey.objects_of(app).filter_map(|other| Some((step_of(other)?, other)));
    let later = later.filter(|(other, _)| *other > step).min_by_key(|(other, object)| (*other, object.id));
    Some(Hop { app, awaited: object.id, step, later: later.map(|(_, object)| object.id) })
}

/// A shortest way from an operation back to itself.
fn shortest(waits: &BTreeMap<AppId, Vec<(AppId, Hop)>>, start: AppId) -> Option<Vec<Hop>> {
    let mut ways: VecDeque<(AppId, Vec<Hop>)> = VecDeque::from([(start, Vec::new())]);
    let mut seen = BTreeSet::new();
    while let Some((at, way)) = ways.pop_front() {
        for (next, hop) in waits.get(&at).into_iter().flatten() {
            let mut way = way.clone();
            way.push(*hop);
            if *next == start {
                return Some(way);
            }
            if seen.insert(*next) {
                ways.push_back((*next, way));
            }
        }
    }
    None
}
