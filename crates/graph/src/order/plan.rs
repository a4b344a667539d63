//! The order as it is, what depends on what, and the order as it should be.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::Value;

use super::{Order, Step, step_of};
use crate::{
    App, AppId, Declaration, EnvironmentId, ObjectId, Owner, Survey,
    edges::{EdgeKind, Edges},
};

/// One Application in the order of its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The Application.
    pub app: AppId,
    /// How many Applications lie above it.
    pub depth: usize,
    /// The step in which its declaration is applied; `None` for a root, and for what an ApplicationSet
    /// yields.
    pub step: Option<Step>,
    /// The wave in which it should be applied, if another is better.
    pub proposed: Option<i64>,
}

/// One Application needs what another brings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The Application that needs it.
    pub from: AppId,
    /// The Application that brings it.
    pub to: AppId,
    /// Why: `Certificate/web in shop is defined by CustomResourceDefinition/certificates.cert-manager.io`.
    pub because: String,
    /// The object that needs it.
    pub object: ObjectId,
    /// What is needed.
    pub provider: ObjectId,
}

/// Applications of which each needs something of the next, and the last of the first: no order is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deferred {
    /// The dependencies, in a circle.
    pub circle: Vec<Dependency>,
}

/// The order of one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The environment.
    pub environment: EnvironmentId,
    /// Its Applications in the order in which they are applied, each below the one that renders it.
    pub rows: Vec<Row>,
    /// What they need of each other, each pair once.
    pub dependencies: Vec<Dependency>,
    /// Why there is no order, where there is none.
    pub circles: Vec<Deferred>,
}

/// How a committed expectation differs from the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// An Application is in another wave.
    Wave {
        /// Its name.
        app: String,
        /// The wave in the expectation.
        expected: i64,
        /// The wave as it is.
        found: i64,
    },
    /// An Application is expected that is not there.
    Missing {
        /// Its name.
        app: String,
    },
}

impl Plan {
    /// The order of an environment.
    pub fn for_environment(
        survey: &Survey,
        edges: &Edges<'_>,
        order: &Order<'_>,
        environment: EnvironmentId,
    ) -> Self {
        let dependencies = dependencies(survey, edges, order, environment);
        let (proposed, circles) = propose(survey, order, environment, &dependencies);
        let mut rows = Rows::new(survey, order, &proposed);
        for root in &survey.environments[environment.0].roots {
            rows.add(*root, 0);
        }
        let of_sets = survey.apps.iter().filter(|app| {
            app.environment == environment
                && !rows.rows.iter().any(|row| row.app == app.id)
                && order.parent(app.id).is_none()
                && app.above.is_none()
        });
        let tops: Vec<AppId> = of_sets.map(|app| app.id).collect();
        for top in tops {
            rows.add(top, 0);
        }
        let rows = rows.rows;
        Self { environment, rows, dependencies, circles }
    }

    /// How the order differs from what a file expects: a mapping from names to waves.
    pub fn drift(&self, survey: &Survey, expected: &BTreeMap<String, i64>) -> Vec<Drift> {
        let mut found = Vec::new();
        for (name, wave) in expected {
            let Some(row) = self.rows.iter().find(|row| survey.app(row.app).name() == name) else {
                if !survey.apps.iter().any(|app| app.name() == name) {
                    found.push(Drift::Missing { app: name.clone() });
                }
                continue;
            };
            let is = survey.app(row.app).wave();
            if is != *wave {
                found.push(Drift::Wave { app: name.clone(), expected: *wave, found: is });
            }
        }
        found
    }
}

/// Reads an expectation: a YAML mapping from the names of Applications to their waves, at the top or
/// below `waves`.
///
/// # Errors
/// It is no such mapping.
pub fn expectation(text: &str) -> Result<BTreeMap<String, i64>, String> {
    let value = tiphys_yaml::from_yaml(text).map_err(|error| error.to_string())?;
    let map = value.get("waves").unwrap_or(&value);
    let Value::Object(map) = map else {
        return Err("is no mapping from the names of Applications to their waves".into());
    };
    map.iter()
        .map(|(name, wave)| {
            let wave = wave.as_i64().ok_or_else(|| format!("the wave of {name} is no whole number"))?;
            Ok((name.clone(), wave))
        })
        .collect()
}

/// The rows of a plan in the making.
struct Rows<'a> {
    survey: &'a Survey,
    order: &'a Order<'a>,
    proposed: &'a BTreeMap<AppId, i64>,
    /// What the ApplicationSets yield that each Application renders.
    yielded: BTreeMap<AppId, Vec<AppId>>,
    rows: Vec<Row>,
}

impl<'a> Rows<'a> {
    fn new(survey: &'a Survey, order: &'a Order<'a>, proposed: &'a BTreeMap<AppId, i64>) -> Self {
        let mut yielded: BTreeMap<AppId, Vec<AppId>> = BTreeMap::new();
        for app in survey.apps.iter().filter(|app| matches!(app.declaration, Declaration::Set(_))) {
            if let Some(above) = app.above {
                yielded.entry(above).or_default().push(app.id);
            }
        }
        Self { survey, order, proposed, yielded, rows: Vec::new() }
    }

    /// Adds an Application, and below it what it declares.
    fn add(&mut self, app: AppId, depth: usize) {
        let (survey, order) = (self.survey, self.order);
        let step = order.parent(app).and_then(|(_, object)| step_of(survey.object(object)));
        self.rows.push(Row { app, depth, step, proposed: self.proposed.get(&app).copied() });
        let children = order.declared_by(app).filter(|(child, _)| *child != app);
        let mut children: Vec<(Option<Step>, AppId)> =
            children.map(|(child, object)| (step_of(object), child)).collect();
        children.sort_by_key(|(step, child)| (*step, survey.app(*child).name().to_owned()));
        for (_, child) in children {
            self.add(child, depth + 1);
        }
        // No operation waits for these: the set is applied in its wave, and yields them when it is looked at.
        for child in self.yielded.remove(&app).unwrap_or_default() {
            self.add(child, depth + 1);
        }
    }
}

/// What Applications need of each other: the first reason of each pair. A need that the Application itself
/// meets too, or that more than one meets, binds nobody.
fn dependencies(
    survey: &Survey,
    edges: &Edges<'_>,
    order: &Order<'_>,
    environment: EnvironmentId,
) -> Vec<Dependency> {
    let mut found: BTreeMap<(AppId, AppId), Dependency> = BTreeMap::new();
    for edge in edges.all() {
        let binds = matches!(
            edge.kind,
            EdgeKind::DefinedBy
                | EdgeKind::LivesIn
                | EdgeKind::Mounts
                | EdgeKind::Env
                | EdgeKind::RunsAs
                | EdgeKind::Needs
        );
        let object = survey.object(edge.from);
        if !binds || edge.optional || object.environment != Some(environment) {
            continue;
        }
        let providers = edges.providers(edge);
        let owners: BTreeSet<Owner> = providers.iter().map(|id| survey.object(*id).owner).collect();
        let (Owner::App(from), Some(Owner::App(to)), 1) =
            (object.owner, owners.first().copied(), owners.len())
        else {
            continue;
        };
        if from == to || is_above(order, to, from) || is_above(order, from, to) {
            continue;
        }
        let provider = survey.object(providers[0]);
        if edge.kind == EdgeKind::LivesIn && makes_its_namespace(survey.app(from), &provider.key.name) {
            continue;
        }
        let because = format!("{} {} {}", object.title(), edge.kind.verb(), provider.title());
        let dependency = Dependency { from, to, because, object: object.id, provider: provider.id };
        found.entry((from, to)).or_insert(dependency);
    }
    found.into_values().collect()
}

/// Whether an Application makes a namespace itself where it is not there yet.
fn makes_its_namespace(app: &App, namespace: &str) -> bool {
    app.application.sync_options().is_on("CreateNamespace")
        && app.application.spec.destination.namespace == namespace
}

/// Whether one Application renders another, at any depth.
fn is_above(order: &Order<'_>, above: AppId, mut app: AppId) -> bool {
    while let Some((parent, _)) = order.parent(app) {
        if parent == above {
            return true;
        }
        app = parent;
    }
    false
}

/// Waves for the Applications of each parent that keep to the dependencies, and the circles where none
/// do. Only those are named whose wave changes: an Application keeps its wave if it can.
fn propose(
    survey: &Survey,
    order: &Order<'_>,
    environment: EnvironmentId,
    dependencies: &[Dependency],
) -> (BTreeMap<AppId, i64>, Vec<Deferred>) {
    /// For each Application below one parent, those beside it that it needs.
    type Needs<'a> = BTreeMap<AppId, Vec<(AppId, &'a Dependency)>>;
    let mut siblings: BTreeMap<AppId, Needs<'_>> = BTreeMap::new();
    for app in survey.apps.iter().filter(|app| app.environment == environment) {
        if let Some((parent, _)) = order.parent(app.id) {
            siblings.entry(parent).or_default().entry(app.id).or_default();
        }
    }
    for dependency in dependencies {
        let (one, other) = (lineage(order, dependency.from), lineage(order, dependency.to));
        let meeting = one.iter().find_map(|(parent, child)| {
            let (_, with) = other.iter().find(|(above, with)| above == parent && with != child)?;
            Some((*parent, *child, *with))
        });
        let Some((parent, child, with)) = meeting else { continue };
        siblings.entry(parent).or_default().entry(child).or_default().push((with, dependency));
    }
    let (mut proposed, mut circles) = (BTreeMap::new(), Vec::new());
    for needs in siblings.values() {
        let mut settle =
            Settle { survey, needs, waves: BTreeMap::new(), open: Vec::new(), circles: Vec::new() };
        for app in needs.keys() {
            settle.wave(*app);
        }
        proposed.extend(settle.waves.iter().filter(|(app, wave)| survey.app(**app).wave() != **wave));
        circles.extend(settle.circles);
    }
    (proposed, circles)
}

/// The Applications above one, nearest first, each with the child that leads down.
fn lineage(order: &Order<'_>, mut app: AppId) -> Vec<(AppId, AppId)> {
    let mut found = Vec::new();
    while let Some((parent, _)) = order.parent(app) {
        found.push((parent, app));
        app = parent;
    }
    found
}

/// Waves of the Applications of one parent.
struct Settle<'a> {
    survey: &'a Survey,
    needs: &'a BTreeMap<AppId, Vec<(AppId, &'a Dependency)>>,
    waves: BTreeMap<AppId, i64>,
    open: Vec<(AppId, Option<&'a Dependency>)>,
    circles: Vec<Deferred>,
}

impl Settle<'_> {
    /// The wave of an Application: its own, or the one after the last of what it needs.
    fn wave(&mut self, app: AppId) -> i64 {
        if let Some(known) = self.waves.get(&app) {
            return *known;
        }
        let own = self.survey.app(app).wave();
        if let Some(at) = self.open.iter().position(|(open, _)| *open == app) {
            let circle = self.open[at..].iter().filter_map(|(_, dependency)| *dependency).cloned().collect();
            self.circles.push(Deferred { circle });
            return own;
        }
        let needs = self.needs;
        let mut wave = own;
        self.open.push((app, None));
        for (on, dependency) in needs.get(&app).into_iter().flatten() {
            if let Some(last) = self.open.last_mut() {
                last.1 = Some(*dependency);
            }
            wave = wave.max(self.wave(*on).saturating_add(1));
        }
        self.open.pop();
        self.waves.insert(app, wave);
        wave
    }
}
