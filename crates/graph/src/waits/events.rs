//! Everything that has to happen when the repository is synced to an empty cluster, and what each of it
//! needs to have happened before. What is not in the least solution of these rules never happens; the rules
//! that are left then hold a circle.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque, hash_map::Entry};

use tiphys_value::ObjectExt as _;

use super::{
    HealthFacts, Need,
    needs::{Judge, is_moved},
    webhooks::each,
};
use crate::{
    App, AppId, Object, ObjectId, Owner, Survey,
    edges::{EdgeKind, Edges, Target},
    order::{Order, Step, step_of},
};

/// Something that happens in a sync, or never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// An object is stored.
    Applied(ObjectId),
    /// An operation does not wait for an object any longer.
    Ready(ObjectId),
    /// An operation comes to a step.
    Started(AppId, Step),
    /// An operation is through.
    Done(AppId),
}

/// One event that waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// What waits.
    pub event: Event,
    /// What it waits for.
    pub on: Event,
    /// The configuration of the webhook that makes it wait, if one does.
    pub webhook: Option<ObjectId>,
}

/// The events of a survey with what they wait for.
pub struct Events {
    /// Every event, with its conditions: of each, one alternative must have happened.
    rules: BTreeMap<Event, Vec<Vec<Event>>>,
    /// The events that never happen.
    never: HashMap<Event, ()>,
    /// The configurations of webhooks by the waits that they bring.
    asked: HashMap<(Event, Event), ObjectId>,
}

impl Events {
    /// Works out what happens.
    pub fn from_survey(survey: &Survey, edges: &Edges<'_>, order: &Order<'_>, facts: &HealthFacts) -> Self {
        let mut asked = HashSet::new();
        each(survey, edges, |_, _, webhook, _| {
            let matched = survey.objects.iter().filter(|it| webhook.asks_about(&edges.index, it));
            asked.extend(matched.map(|object| object.id));
        });
        let mut rules =
            Rules { judge: Judge::new(survey, edges, order, facts), asked, rules: BTreeMap::new() };
        for app in survey.apps.iter().filter(|app| app.is_rendered()) {
            rules.add_app(app);
        }
        let asked = rules.ask_webhooks();
        let never = unreachable(&rules.rules, None);
        Self { rules: rules.rules, never, asked }
    }

    /// Whether something never happens.
    pub fn never_happens(&self, event: Event) -> bool {
        self.never.contains_key(&event)
    }

    /// The Applications whose operation never ends, if it comes to its beginning.
    pub fn stalled(&self) -> impl Iterator<Item = AppId> {
        self.rules.keys().filter_map(|event| match event {
            Event::Done(app) if self.never_happens(*event) => Some(*app),
            _ => None,
        })
    }

    /// A shortest circle of events that wait for each other and so never happen, for each Application that
    /// is in one.
    pub fn circles(&self) -> Vec<Vec<Link>> {
        let mut found: Vec<Vec<Link>> = Vec::new();
        let starts = self.never_events().filter(|event| matches!(event, Event::Started(..) | Event::Done(_)));
        for start in starts {
            if found.iter().flatten().any(|link| link.event == start) {
                continue;
            }
            found.extend(self.circle(start));
        }
        found
    }

    fn never_events(&self) -> impl Iterator<Item = Event> {
        self.rules.keys().copied().filter(|event| self.never_happens(*event))
    }

    /// What an event that never happens waits for and never gets.
    fn waits_on(&self, event: Event) -> impl Iterator<Item = Event> {
        let conditions = self.rules.get(&event).into_iter().flatten();
        let unmet = conditions.filter(|any| any.iter().all(|event| self.never_happens(*event)));
        unmet.flatten().copied()
    }

    fn link(&self, event: Event, on: Event) -> Link {
        Link { event, on, webhook: self.asked.get(&(event, on)).copied() }
    }

    fn circle(&self, start: Event) -> Option<Vec<Link>> {
        let mut came: HashMap<Event, Event> = HashMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(at) = open.pop_front() {
            for on in self.waits_on(at) {
                if on == start {
                    let mut links = vec![self.link(at, on)];
                    let mut back = at;
                    while back != start {
                        let before = came[&back];
                        links.push(self.link(before, back));
                        back = before;
                    }
                    links.reverse();
                    return Some(links);
                }
                if let Entry::Vacant(place) = came.entry(on) {
                    place.insert(at);
                    open.push_back(on);
                }
            }
        }
        None
    }
}

/// The events that no order of happening reaches, if one of them is left out.
fn unreachable(rules: &BTreeMap<Event, Vec<Vec<Event>>>, without: Option<Event>) -> HashMap<Event, ()> {
    let mut never: HashMap<Event, ()> = rules.keys().map(|event| (*event, ())).collect();
    let mut waiting: HashMap<Event, Vec<Event>> = HashMap::new();
    for (event, conditions) in rules {
        for on in conditions.iter().flatten() {
            waiting.entry(*on).or_default().push(*event);
        }
    }
    let mut open: Vec<Event> = rules.keys().copied().collect();
    while let Some(event) = open.pop() {
        if !never.contains_key(&event) || Some(event) == without {
            continue;
        }
        // What has no rules is nobody's concern here, and is there.
        let holds = rules[&event].iter().all(|any| any.iter().any(|on| !never.contains_key(on)));
        if holds {
            never.remove(&event);
            open.extend(waiting.get(&event).into_iter().flatten().copied());
        }
    }
    never
}

struct Rules<'a> {
    judge: Judge<'a>,
    /// What fail-closed webhooks are asked about.
    asked: HashSet<ObjectId>,
    rules: BTreeMap<Event, Vec<Vec<Event>>>,
}

impl Rules<'_> {
    fn add_app(&mut self, app: &App) {
        let survey = self.judge.survey;
        let moved = self.moved(app);
        let mut steps: BTreeMap<Step, Vec<&Object>> = BTreeMap::new();
        for object in survey.objects_of(app.id) {
            if let Some(step) = moved.get(&object.id).copied().or_else(|| step_of(object)) {
                steps.entry(step).or_default().push(object);
            }
        }
        let declared = self.judge.order.parent(app.id).map(|(_, object)| vec![Event::Applied(object)]);
        let mut before: Vec<Vec<Event>> = declared.into_iter().collect();
        // An operation with an object of a kind that is not served fails before it applies anything.
        for object in steps.values().flatten().filter(|object| !skips_dry_run(app, object)) {
            let defined = self.needs(object).into_iter().filter(|(need, _)| *need == Need::Definition);
            before.extend(defined.map(|(_, providers)| self.any_of(&providers)));
        }
        let waits_in_last = steps.len() > 1;
        let last = steps.keys().next_back().copied();
        for (step, objects) in &steps {
            let started = Event::Started(app.id, *step);
            self.rules.insert(started, std::mem::take(&mut before));
            let hooks = objects.iter().any(|object| !object.hooks.is_empty());
            before.push(vec![started]);
            for object in objects {
                self.add_object(object, started);
                // Of the last step only the hooks are waited for, and with them everything else.
                let waits = Some(*step) != last || (hooks && (waits_in_last || !object.hooks.is_empty()));
                let event = if waits { Event::Ready(object.id) } else { Event::Applied(object.id) };
                before.push(vec![event]);
            }
        }
        self.rules.insert(Event::Done(app.id), before);
    }

    /// The definitions and namespaces that an operation moves to the first step in which it needs them.
    fn moved(&self, app: &App) -> HashMap<ObjectId, Step> {
        let judge = &self.judge;
        let mut moved: HashMap<ObjectId, Step> = HashMap::new();
        for object in judge.survey.objects_of(app.id) {
            let Some(step) = step_of(object) else { continue };
            let needed = judge
                .edges
                .from(object.id)
                .iter()
                .filter(|edge| judge.need(edge, object).is_some_and(Need::refuses));
            for id in needed.flat_map(|edge| judge.edges.providers(edge)) {
                let thing = judge.survey.object(id);
                let own = moved.get(&id).copied().or_else(|| step_of(thing));
                if thing.owner == object.owner && is_moved(thing) && own.is_some_and(|own| step < own) {
                    moved.insert(id, step);
                }
            }
        }
        moved
    }

    fn add_object(&mut self, object: &Object, started: Event) {
        let mut applied = vec![vec![started]];
        let mut ready = vec![vec![Event::Applied(object.id)]];
        for (need, providers) in self.needs(object) {
            let events = self.any_of(&providers);
            if need.refuses() { applied.push(events) } else { ready.push(events) }
        }
        ready.extend(self.child(object));
        self.rules.insert(Event::Applied(object.id), applied);
        self.rules.insert(Event::Ready(object.id), ready);
    }

    /// Adds what fail-closed webhooks make wait: an object that cannot come before the configuration is
    /// stored only once the backend answers, and so are the pods of a workload. Of what may come before it,
    /// nobody knows.
    fn ask_webhooks(&mut self) -> HashMap<(Event, Event), ObjectId> {
        let (survey, edges) = (self.judge.survey, self.judge.edges);
        let happens = unreachable(&self.rules, None);
        let mut waits: Vec<(Event, Event, ObjectId)> = Vec::new();
        let mut later: HashMap<ObjectId, HashMap<Event, ()>> = HashMap::new();
        each(survey, edges, |configuration, _, webhook, backend| {
            let (stored, answers) = (Event::Applied(configuration.id), Event::Ready(backend.id));
            if !self.rules.contains_key(&stored) || !self.rules.contains_key(&answers) {
                return;
            }
            let later =
                later.entry(configuration.id).or_insert_with(|| unreachable(&self.rules, Some(stored)));
            let scope = edges.index.scope(configuration.id);
            for event in later.keys().filter(|event| !happens.contains_key(event)) {
                let Event::Applied(id) = *event else { continue };
                let object = survey.object(id);
                if edges.index.scope(id) != scope {
                    continue;
                }
                if webhook.asks_about(&edges.index, object) {
                    waits.push((*event, answers, configuration.id));
                }
                if webhook.asks_about_pods(&edges.index, object) && self.judge.has_health(object) {
                    waits.push((Event::Ready(id), answers, configuration.id));
                }
            }
        });
        let mut asked = HashMap::new();
        for (event, answers, configuration) in waits {
            self.rules.entry(event).or_default().push(vec![answers]);
            asked.insert((event, answers), configuration);
        }
        asked
    }

    /// When what an object brings is there: when it is stored, or, if a controller makes it from the object,
    /// when that is done.
    fn provided(&self, provider: ObjectId) -> Event {
        let object = self.judge.survey.object(provider);
        match object.key.kind.as_str() {
            "ExternalSecret" | "Certificate" => Event::Ready(provider),
            _ => Event::Applied(provider),
        }
    }

    fn any_of(&self, providers: &[ObjectId]) -> Vec<Event> {
        providers.iter().map(|id| self.provided(*id)).collect()
    }

    /// What an object needs, and what brings it.
    fn needs(&self, object: &Object) -> Vec<(Need, Vec<ObjectId>)> {
        let judge = &self.judge;
        let mut found = Vec::new();
        for edge in judge.edges.from(object.id) {
            let Some(need) = judge.need(edge, object) else { continue };
            if need == Need::Namespace && !matches!(edge.to, Target::Object(_)) {
                continue;
            }
            let providers = judge.edges.providers(edge);
            // An operation moves its own definitions and namespaces before what needs them.
            let own = providers
                .iter()
                .map(|id| judge.survey.object(*id))
                .any(|provider| provider.owner == object.owner && is_moved(provider));
            let known = providers.iter().all(|id| self.is_synced(*id));
            let counts = need.refuses() || (need != Need::Project && judge.has_health(object));
            if counts && known && !providers.is_empty() && !(need.refuses() && own) {
                found.push((need, providers));
            }
        }
        if object.key.kind == "PersistentVolumeClaim"
            && judge.has_health(object)
            && judge.waits_for_consumer(object)
        {
            let mounting = judge.edges.to(object.id).filter(|edge| edge.kind == EdgeKind::Mounts);
            let consumers: Vec<ObjectId> = mounting.map(|edge| edge.from).collect();
            if !consumers.is_empty() && consumers.iter().all(|id| self.is_synced(*id)) {
                found.push((Need::Consumer, consumers));
            }
        }
        found
    }

    fn is_synced(&self, id: ObjectId) -> bool {
        let object = self.judge.survey.object(id);
        let Owner::App(app) = object.owner else { return false };
        self.judge.survey.app(app).is_rendered() && step_of(object).is_some()
    }

    /// What the health of an Application object waits for.
    fn child(&self, object: &Object) -> Vec<Vec<Event>> {
        let judge = &self.judge;
        let Some(child) = judge.order.app_at(object) else { return Vec::new() };
        let app = judge.survey.app(child);
        let Some(health) = judge.facts.of_applications(app.environment).filter(|_| app.is_rendered()) else {
            return Vec::new();
        };
        if object.owner == Owner::App(child) {
            let is_last = step_of(object) == judge.order.last(child);
            let waits = if is_last { health.waits_for_end } else { health.waits_for_operation };
            return if waits { vec![vec![Event::Done(child)]] } else { Vec::new() };
        }
        if app.application.automated_policy().is_none() {
            return Vec::new();
        }
        let can_fail = || {
            survey_objects(judge.survey, child).any(|it| {
                self.asked.contains(&it.id) || self.needs(it).iter().any(|(need, _)| need.refuses())
            })
        };
        if health.waits_for_operation && !health.waits_after_failure && can_fail() {
            return Vec::new();
        }
        let mut waits = Vec::new();
        if health.waits_for_end {
            waits.push(vec![Event::Done(child)]);
        }
        let all = health.waits_for_end || health.waits_for_operation;
        if !(all || health.waits_for_content) {
            return waits;
        }
        // Between two of its steps an Application is Healthy for a moment: when what is there works, though
        // not when nothing is there yet.
        let plain = || survey_objects(judge.survey, child).filter(|it| it.hooks.is_empty());
        let first = plain().filter_map(step_of).min();
        let counted: Vec<&Object> = plain().filter(|it| all || step_of(it) == first).collect();
        // Of a step in which some objects are refused the others are there, and what is missing is not
        // unhealthy.
        let (refusable, sure): (Vec<&Object>, Vec<&Object>) =
            counted.into_iter().partition(|it| !all && self.is_refusable(it));
        if sure.is_empty() && !refusable.is_empty() {
            waits.push(refusable.iter().map(|it| Event::Applied(it.id)).collect());
        }
        for inner in sure {
            let counts = health.waits_for_content
                && match judge.order.app_at(inner) {
                    Some(app) => app != child && !health.ignored_while_missing,
                    None => judge.has_health(inner),
                };
            waits.push(vec![if counts { Event::Ready(inner.id) } else { Event::Applied(inner.id) }]);
        }
        waits
    }

    /// Whether the API server may refuse an object after it took others of the same step.
    fn is_refusable(&self, object: &Object) -> bool {
        self.asked.contains(&object.id) || self.needs(object).iter().any(|(need, _)| *need == Need::Namespace)
    }
}

fn survey_objects(survey: &Survey, app: AppId) -> impl Iterator<Item = &Object> {
    survey.objects_of(app).filter(|object| step_of(object).is_some())
}

/// Whether the engine does not mind before the sync that an object's kind is not served.
fn skips_dry_run(app: &App, object: &Object) -> bool {
    const OPTION: &str = "SkipDryRunOnMissingResource";
    let own = object.value().annotation(tiphys_model::names::SYNC_OPTIONS).unwrap_or_default();
    app.application.sync_options().is_on(OPTION) || own.contains("SkipDryRunOnMissingResource=true")
}
