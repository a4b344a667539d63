//! Who looks at what next.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use crate::{
    Awaited, Behaviours, Change, Context, Controller, Event, Key, Settings, Start, View, Write, behaviour,
    controllers::{self, workload::is_ready},
    event::Reporter,
    labels::service_key,
    object::resources,
};

/// How long until an object is looked at again after a write for it failed; doubles up to a minute.
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// How long until who waits for a change looks: two that change what the other one changed would never let
/// time pass.
const WAKE: Duration = Duration::from_secs(1);

/// One controller's look at one object, and what it wants done.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The controller's name.
    pub controller: &'static str,
    /// The field manager for its writes.
    pub manager: &'static str,
    /// What to do, in order.
    pub writes: Vec<Write>,
    task: Task,
}

type Task = (usize, Key);

/// How often a task failed, and why the last time.
struct Failure {
    times: u32,
    why: String,
}

/// The controllers and what they have still to look at. The order depends on nothing but what was
/// observed: tasks are taken by controller and key, timers by time.
pub struct World {
    controllers: Vec<Box<dyn Controller>>,
    settings: Settings,
    /// Those of the ConfigMap, then those of the settings.
    behaviours: Behaviours,
    /// Those of the ConfigMap.
    rules: Behaviours,
    /// Uids of the objects of a found cluster that have changed since.
    touched: BTreeSet<String>,
    queue: BTreeSet<Task>,
    timers: BTreeSet<(Timestamp, usize, Key)>,
    failures: BTreeMap<Task, Failure>,
    /// Who looks again when something changes.
    awaited: BTreeMap<Awaited, BTreeSet<Task>>,
    /// Who is to look again after [`WAKE`].
    woken: BTreeSet<Task>,
    /// Who does not look again before a time.
    resting: BTreeMap<Task, Timestamp>,
    /// What is to be told by no controller.
    told: Vec<Write>,
}

impl World {
    /// A world with every controller and nothing to do.
    pub fn new(settings: Settings) -> Self {
        Self {
            controllers: controllers::all(),
            behaviours: settings.behaviours.clone(),
            rules: Behaviours::default(),
            touched: BTreeSet::new(),
            settings,
            queue: BTreeSet::new(),
            timers: BTreeSet::new(),
            failures: BTreeMap::new(),
            awaited: BTreeMap::new(),
            woken: BTreeSet::new(),
            resting: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    /// The field managers of all controllers.
    pub fn managers(&self) -> impl Iterator<Item = &'static str> {
        self.controllers.iter().map(|controller| controller.manager())
    }

    /// Takes note of a change.
    pub fn observe(&mut self, change: &Change, view: &View<'_>) {
        if self.settings.start == Start::Found {
            self.touched.insert(change.object.uid().to_owned());
        }
        self.queue_for(change, view);
        self.wake_who_waits_for(change);
        if !self.failures.is_empty() && !change.is_deleted && change.object.namespace().is_empty() {
            self.queue_what_failed_for(change.object.name());
        }
        let is_rules = change.resource == resources::config_maps()
            && (change.object.namespace(), change.object.name()) == behaviour::CONFIG_MAP;
        if is_rules {
            let before = std::mem::take(&mut self.rules);
            self.read_rules(change, &before);
            for (resource, object) in view.everything() {
                if !self.is_concerned(&object, &before) {
                    continue;
                }
                self.queue_for(&Change { resource, object, is_deleted: false }, view);
            }
        }
    }

    /// Whether an object is to be looked at because rules changed: in a cluster that was found, only what
    /// they are about, and what moves already.
    fn is_concerned(&self, object: &Value, before: &Behaviours) -> bool {
        self.settings.start == Start::Fresh
            || before.are_about(object)
            || self.rules.are_about(object)
            || self.touched.contains(object.uid())
    }

    fn wake_who_waits_for(&mut self, change: &Change) {
        let object = &change.object;
        let key = Key::from_object(object);
        let gvk = object.gvk();
        let wakes = Awaited::Object { group: gvk.group, kind: object.kind().to_owned(), key };
        self.woken.extend(self.awaited.remove(&wakes).into_iter().flatten());
        if change.resource == resources::endpoint_slices()
            && let Some(service) = service_key(object)
        {
            let key = Key { namespace: object.namespace().to_owned(), name: service.to_owned() };
            self.woken.extend(self.awaited.remove(&Awaited::Endpoints(key)).into_iter().flatten());
        }
        if change.resource == resources::pods() && !change.is_deleted && is_ready(object) {
            let first = Awaited::ReadyPod(String::new());
            let runs =
                |awaited: &Awaited| matches!(awaited, Awaited::ReadyPod(image) if runs_image(object, image));
            let present: Vec<Awaited> = self
                .awaited
                .range(first..)
                .map(|(awaited, _)| awaited)
                .filter(|it| runs(it))
                .cloned()
                .collect();
            for awaited in present {
                self.woken.extend(self.awaited.remove(&awaited).into_iter().flatten());
            }
        }
    }

    /// What failed because of an object outside of namespaces (a class, a namespace) is done again when that
    /// changes, not when its pause is over.
    fn queue_what_failed_for(&mut self, name: &str) {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
        let names_it = |failure: &Failure| failure.why.split(|c| !is_part(c)).any(|word| word == name);
        let concerned = self.failures.iter().filter(|(_, failure)| names_it(failure));
        self.queue.extend(concerned.map(|(task, _)| task.clone()));
    }

    fn queue_for(&mut self, change: &Change, view: &View<'_>) {
        for (index, controller) in self.controllers.iter().enumerate() {
            self.queue.extend(controller.keys(change, view).into_iter().map(|key| (index, key)));
        }
    }

    /// Rules that cannot be read are told and leave those in force that were.
    fn read_rules(&mut self, change: &Change, before: &Behaviours) {
        let read = match change.is_deleted {
            true => Ok(Behaviours::default()),
            false => Behaviours::from_config_map(&change.object),
        };
        match read {
            Ok(rules) => {
                self.rules = rules.clone();
                self.behaviours = rules;
                self.behaviours.extend(self.settings.behaviours.clone());
            }
            Err(error) => {
                self.rules = before.clone();
                let reporter = Reporter::Controller("tiphys-world");
                let event = Event::warning(&change.object, reporter, "InvalidBehaviours", error.to_string());
                self.told.push(event.into());
            }
        }
    }

    /// The next turn, or `None` if nothing is to be done before [`World::next_timer`].
    pub fn next_turn(&mut self, view: &View<'_>, now: Timestamp) -> Option<Turn> {
        self.wake(now);
        if !self.told.is_empty() {
            let (writes, task) = (std::mem::take(&mut self.told), (0, Key::default()));
            let manager = self.controllers.first()?.manager();
            return Some(Turn { controller: "world", manager, writes, task });
        }
        loop {
            let task = self.queue.pop_first()?;
            if let Some(until) = self.resting.get(&task).copied() {
                if until > now {
                    self.timers.insert((until, task.0, task.1));
                    continue;
                }
                self.resting.remove(&task);
            }
            let controller = &self.controllers[task.0];
            let context = Context {
                view,
                now,
                settings: &self.settings,
                behaviours: &self.behaviours,
                failure: self.failures.get(&task).map(|failure| failure.why.as_str()),
            };
            let outcome = controller.reconcile(&task.1, &context);
            if let Some(delay) = outcome.requeue_after {
                self.timers.insert((later(now, delay), task.0, task.1.clone()));
            }
            if let Some(pause) = outcome.rest {
                self.resting.insert(task.clone(), later(now, pause));
            }
            for awaited in outcome.awaits {
                self.awaited.entry(awaited).or_default().insert(task.clone());
            }
            if outcome.writes.is_empty() {
                self.failures.remove(&task);
                continue;
            }
            let (controller, manager) = (controller.name(), controller.manager());
            return Some(Turn { controller, manager, writes: outcome.writes, task });
        }
    }

    /// Tells that every write of a turn was carried out.
    pub fn succeeded(&mut self, turn: &Turn) {
        self.failures.remove(&turn.task);
    }

    /// Tells that a write of a turn failed, and why; its object is looked at again after a while.
    pub fn failed(&mut self, turn: Turn, why: &str, now: Timestamp) {
        let failure = self
            .failures
            .entry(turn.task.clone())
            .or_insert_with(|| Failure { times: 0, why: String::new() });
        let delay = FIRST_RETRY.saturating_mul(1 << failure.times.min(11)).min(Duration::from_secs(60));
        failure.times = failure.times.saturating_add(1);
        why.clone_into(&mut failure.why);
        self.timers.insert((later(now, delay), turn.task.0, turn.task.1));
    }

    /// When something is to be looked at again even if nothing changes.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, ..)| *at)
    }

    fn wake(&mut self, now: Timestamp) {
        for (index, key) in std::mem::take(&mut self.woken) {
            self.timers.insert((later(now, WAKE), index, key));
        }
        while self.timers.first().is_some_and(|(at, ..)| *at <= now) {
            if let Some((_, index, key)) = self.timers.pop_first() {
                self.queue.insert((index, key));
            }
        }
    }
}

/// Whether a pod has a container with an image of a pattern.
fn runs_image(pod: &Value, image: &str) -> bool {
    let image = behaviour::Pattern::from(image);
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array);
    let mut images = containers.into_iter().flatten().filter_map(|container| container.str_at(&["image"]));
    images.any(|own| image.matches_image(own))
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}
