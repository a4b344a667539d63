//! The order in which a repository is applied: the steps of every operation, from the roots down, and
//! how two objects stand to each other in it (Argo CD docs, "Sync Phases and Waves").

mod output;
mod plan;

use std::{collections::HashMap, fmt};

pub use output::PlanView;
pub use plan::{Deferred, Dependency, Drift, Plan, Row, expectation};
use tiphys_model::{HookType, SyncPhase, hook, names};

use crate::{App, AppId, Declaration, EnvironmentId, Object, ObjectId, Owner, Survey};

/// A step of an operation: all its objects are applied before it is waited for any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// The phase.
    pub phase: SyncPhase,
    /// The wave in it.
    pub wave: i64,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phase {
            SyncPhase::Sync => write!(f, "wave {}", self.wave),
            phase => write!(f, "{phase:?}, wave {}", self.wave),
        }
    }
}

/// The step in which an object is applied, the first of several; `None` if it is not applied in a sync
/// that succeeds.
pub fn step_of(object: &Object) -> Option<Step> {
    if hook::is_ignored(object.value()) {
        return None;
    }
    if object.hooks.is_empty() {
        return Some(Step { phase: SyncPhase::Sync, wave: object.wave });
    }
    let phases = object.hooks.iter().filter_map(|hook: &HookType| hook.phase());
    let first = phases.filter(|phase| *phase != SyncPhase::SyncFail).min()?;
    Some(Step { phase: first, wave: object.wave })
}

/// How one object stands to another in the order of the operation that brings both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// No operation brings both: nothing is said of their order.
    None,
    /// One step brings both, or what renders them.
    Same(Meeting),
    /// The first comes in an earlier step than the second.
    Before(Meeting),
    /// The first comes in a later step than the second.
    After(Meeting),
}

/// Where the ways down to two objects part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The Application whose operation brings both.
    pub app: AppId,
    /// What of its objects the first is, or is rendered by.
    pub first: ObjectId,
    /// The step of that.
    pub first_step: Step,
    /// What of its objects the second is, or is rendered by.
    pub second: ObjectId,
    /// The step of that.
    pub second_step: Step,
}

/// The steps of every Application.
pub struct Order<'a> {
    survey: &'a Survey,
    /// The Application object in the rendered set of the one that declares it, by Application.
    declared_by: Vec<Option<(AppId, ObjectId)>>,
    /// The same the other way round.
    declares: HashMap<AppId, Vec<(AppId, ObjectId)>>,
    /// The last step of every Application, and whether a hook runs in it.
    last: Vec<Option<(Step, bool)>>,
    by_name: HashMap<(EnvironmentId, &'a str), AppId>,
}

impl<'a> Order<'a> {
    /// The order of a survey.
    pub fn from_survey(survey: &'a Survey) -> Self {
        let mut by_name = HashMap::new();
        for app in &survey.apps {
            by_name.entry((app.environment, app.name())).or_insert(app.id);
        }
        let declared_by: Vec<_> = survey.apps.iter().map(|app| declaring(survey, app)).collect();
        let mut declares: HashMap<AppId, Vec<(AppId, ObjectId)>> = HashMap::new();
        for (app, parent) in survey.apps.iter().zip(&declared_by) {
            if let Some((parent, object)) = *parent {
                declares.entry(parent).or_default().push((app.id, object));
            }
        }
        let last = survey.apps.iter().map(|app| last_step(survey, app)).collect();
        Self { survey, declared_by, declares, last, by_name }
    }

    /// The Application that an Application object stands for.
    pub fn app_at(&self, object: &Object) -> Option<AppId> {
        let is_app = object.key.group == names::GROUP && object.key.kind == "Application";
        let environment = object.environment.filter(|_| is_app && is_engines_cluster(&object.cluster))?;
        self.by_name.get(&(environment, object.key.name.as_str())).copied()
    }

    /// The Application that renders the declaration of another, and that declaration.
    pub fn parent(&self, app: AppId) -> Option<(AppId, ObjectId)> {
        self.declared_by[app.0]
    }

    /// The Applications that are known by the declarations that one renders, with these, whichever cluster's
    /// engine is to run them.
    pub fn declared_by(&self, app: AppId) -> impl Iterator<Item = (AppId, &'a Object)> {
        let known = self.declares.get(&app).into_iter().flatten();
        known.map(|(child, object)| (*child, self.survey.object(*object)))
    }

    /// The Applications that one renders for the engine of its own cluster, with their declarations, itself
    /// included if it does.
    pub fn children(&self, app: AppId) -> impl Iterator<Item = (AppId, &'a Object)> {
        self.survey.objects_of(app).filter_map(|object| Some((self.app_at(object)?, object)))
    }

    /// The last step of an Application's operation.
    pub fn last(&self, app: AppId) -> Option<Step> {
        self.last[app.0].map(|(step, _)| step)
    }

    /// Whether an Application's operation waits for the health of an object: anything but the last step
    /// is waited for, and the last one too if a hook runs in it.
    pub fn awaits(&self, object: &Object) -> bool {
        let Owner::App(app) = object.owner else { return false };
        let (Some(step), Some((last, hooks))) = (step_of(object), self.last[app.0]) else { return false };
        step < last || (hooks && self.survey.objects_of(app).filter_map(step_of).any(|other| other < last))
    }

    /// The way from a root down to an object: each Application, and what of its objects leads on.
    fn way(&self, object: &Object) -> Vec<(AppId, ObjectId)> {
        let Owner::App(owner) = object.owner else { return Vec::new() };
        let mut way = vec![(owner, object.id)];
        let mut at = owner;
        while let Some((parent, declaration)) = self.declared_by[at.0] {
            way.push((parent, declaration));
            at = parent;
        }
        way.reverse();
        way
    }

    /// How one object stands to another.
    pub fn relation(&self, first: &Object, second: &Object) -> Relation {
        let (one, other) = (self.way(first), self.way(second));
        let parting =
            one.iter().zip(&other).find(|((app, here), (with, there))| app == with && here != there);
        let Some((&(app, first), &(_, second))) = parting else { return Relation::None };
        if one.first().map(|(app, _)| app) != other.first().map(|(app, _)| app) {
            return Relation::None;
        }
        let steps = (step_of(self.survey.object(first)), step_of(self.survey.object(second)));
        let (Some(first_step), Some(second_step)) = steps else { return Relation::None };
        let meeting = Meeting { app, first, first_step, second, second_step };
        match first_step.cmp(&second_step) {
            std::cmp::Ordering::Less => Relation::Before(meeting),
            std::cmp::Ordering::Equal => Relation::Same(meeting),
            std::cmp::Ordering::Greater => Relation::After(meeting),
        }
    }
}

/// Applications live where the engine does.
fn is_engines_cluster(cluster: &str) -> bool {
    cluster.is_empty() || cluster == names::IN_CLUSTER_SERVER
}

fn declaring(survey: &Survey, app: &App) -> Option<(AppId, ObjectId)> {
    let Declaration::App(parent) = app.declaration else { return None };
    let is_it = |object: &&Object| {
        object.key.kind == "Application"
            && object.key.name == app.name()
            && object.rendered.location == app.declared.location
    };
    survey.objects_of(parent).find(is_it).map(|object| (parent, object.id))
}

fn last_step(survey: &Survey, app: &App) -> Option<(Step, bool)> {
    let last = survey.objects_of(app.id).filter_map(step_of).max()?;
    let hooks =
        survey.objects_of(app.id).any(|object| !object.hooks.is_empty() && step_of(object) == Some(last));
    Some((last, hooks))
}
