//! Rendering each Application once, many at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tiphys_model::{Application, names::TRACKING_ID};
use tiphys_render::{Cause, object_bytes};
use tiphys_value::{RenderLimits, Value};

use crate::parallel;

use super::{
    attempt::{Attempt, attempt, may_be_elsewhere},
    chart_dependencies::is_of_chart,
    input::Input,
    local_sources::Here,
    names::THIS_REPOSITORY,
    partial_rendering,
    rendering::{Rendering, Renderings, Touched},
    types::Outcome,
};

/// How many Applications are rendered and shown. Large platforms have some hundreds.
pub const MAX_APPLICATIONS: usize = 5_000;

/// How many objects all Applications may have together before no further one is rendered: twice what one
/// of them may. They take some twenty kilobytes each; large platforms have some ten thousand.
pub(super) fn max_objects() -> usize {
    RenderLimits::current().objects.saturating_mul(2)
}

/// What the objects of all Applications may take in memory together, in bytes: twice what those of one may.
fn max_memory() -> u64 {
    RenderLimits::current().memory.saturating_mul(2)
}

/// How often programs of Applications may be stopped because their time was over. Each takes all of it.
const MAX_EXPIRED: usize = 4;

/// What all Applications of a repository take together when no further one is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitTogether {
    /// More objects than this.
    Objects(usize),
    /// More memory than this, in bytes.
    Memory(u64),
    /// The time of so many, each of which was stopped when it was over.
    Time(usize),
}

impl LimitTogether {
    /// The flag that raises it.
    pub fn flag(self) -> &'static str {
        let [memory, time, objects] = RenderLimits::FLAGS;
        match self {
            Self::Objects(_) => objects,
            Self::Memory(_) => memory,
            Self::Time(_) => time,
        }
    }
}

/// What the Applications do, as in "they have over 10 objects".
impl fmt::Display for LimitTogether {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects(most) => write!(f, "have over {most} objects"),
            Self::Memory(most) => write!(f, "take over {} MiB of memory", most >> 20),
            Self::Time(count) => write!(f, "took all their time {count} times"),
        }
    }
}

/// How many Applications are rendered at most before their objects are counted,
const BATCH: usize = 16;
/// and how many while nothing is known of how large they are.
const FIRST_BATCH: usize = 4;

/// The renderings by what the Application says.
pub(super) struct Memo<'a> {
    known: Renderings,
    /// The objects of all renderings.
    objects: usize,
    /// What they take in memory, in bytes, about.
    bytes: u64,
    /// How many objects the largest rendering has,
    largest: usize,
    /// and what the one that takes most takes.
    largest_bytes: u64,
    /// How often a program had been stopped before the first of them.
    expired_before: usize,
    /// Those of an earlier survey that hold for this one.
    kept: &'a Renderings,
}

impl<'a> Memo<'a> {
    /// Knows what was kept.
    pub(super) fn new(kept: &'a Renderings) -> Self {
        Self {
            known: Renderings::new(),
            objects: 0,
            bytes: 0,
            largest: 0,
            largest_bytes: 0,
            expired_before: RenderLimits::expired(),
            kept,
        }
    }

    /// All that was rendered.
    pub(super) fn into_known(mut self) -> Renderings {
        self.known.retain(|_, rendering| !rendering.is_over_limit);
        self.known
    }

    /// What an Application renders to, if it was asked for before.
    pub(super) fn get(&self, declared: &Value) -> Option<&Arc<Rendering>> {
        self.known.get(&key(declared))
    }

    /// Renders those Applications that are not known yet, as many as are looked at.
    pub(super) fn render(&mut self, applications: &[&Value], input: &Input<'_>) {
        let mut open: Vec<(String, &Value)> = Vec::new();
        let mut seen = BTreeSet::new();
        for declared in applications {
            let key = key(declared);
            if self.known.contains_key(&key) || !seen.insert(key.clone()) {
                continue;
            }
            if let Some(rendering) = self.kept.get(&key).cloned() {
                self.add(key, rendering);
                continue;
            }
            open.push((key, declared));
        }
        open.truncate(MAX_APPLICATIONS.saturating_sub(self.known.len()));
        let before = self.known.len();
        let (done, count) = (AtomicUsize::new(before), before + open.len());
        let mut rest = open.as_slice();
        while !rest.is_empty() {
            let (batch, further) = rest.split_at(self.batch().min(rest.len()));
            rest = further;
            let limit = self.limit();
            let this: &Self = self;
            // On every processor; the results are in the order of the Applications.
            let renderings = parallel::each(batch, |(_, declared)| {
                (input.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, count);
                // Read no earlier: as a type it takes some kilobytes.
                let application = Application::from_value(declared).ok()?;
                // Those of one batch may take their time together.
                Some(match limit.or_else(|| this.time_limit()) {
                    Some(limit) => {
                        let why =
                            format!("the Applications before it {limit}; {} raises the limit", limit.flag());
                        Rendering { is_over_limit: true, ..Rendering::unseen(why) }
                    }
                    None => render_application(&application, input),
                })
            });
            for ((key, _), rendering) in batch.iter().zip(renderings) {
                if let Some(rendering) = rendering {
                    self.add(key.clone(), Arc::new(rendering));
                }
            }
        }
    }

    /// What all of them take that is as much as they may, if it is.
    pub(super) fn limit(&self) -> Option<LimitTogether> {
        let objects = (self.objects > max_objects()).then(|| LimitTogether::Objects(max_objects()));
        let memory = || (self.bytes > max_memory()).then(|| LimitTogether::Memory(max_memory()));
        objects.or_else(memory).or_else(|| self.time_limit())
    }

    fn time_limit(&self) -> Option<LimitTogether> {
        let expired = RenderLimits::expired().saturating_sub(self.expired_before);
        (expired >= MAX_EXPIRED).then_some(LimitTogether::Time(MAX_EXPIRED))
    }

    /// How many Applications are rendered together: so many that those that are as large as the largest so
    /// far go over the limit by one of them, and not by all of the batch.
    fn batch(&self) -> usize {
        if self.largest == 0 {
            return FIRST_BATCH;
        }
        let objects = max_objects().saturating_sub(self.objects) / self.largest;
        let memory = max_memory().saturating_sub(self.bytes) / self.largest_bytes.max(1);
        objects.min(usize::try_from(memory).unwrap_or(usize::MAX)).clamp(1, BATCH)
    }

    fn add(&mut self, key: String, rendering: Arc<Rendering>) {
        let bytes = rendering.objects.iter().map(|it| object_bytes(it)).sum();
        self.objects += rendering.objects.len();
        self.bytes = self.bytes.saturating_add(bytes);
        self.largest = self.largest.max(rendering.objects.len());
        self.largest_bytes = self.largest_bytes.max(bytes);
        self.known.insert(key, rendering);
    }
}

/// What decides how an Application renders: everything but its status, and but the mark of the Application
/// that renders it, so that a file and what is rendered of it are one.
fn key(declared: &Value) -> String {
    let metadata = declared.get("metadata");
    let annotations = metadata.and_then(|m| m.get("annotations")).and_then(Value::as_object);
    let own: BTreeMap<&String, &Value> =
        annotations.into_iter().flatten().filter(|(key, _)| *key != TRACKING_ID).collect();
    let metadata = metadata.map(|m| (m.get("name"), m.get("namespace"), own));
    serde_json::to_string(&(metadata, declared.get("spec"))).unwrap_or_default()
}

/// Why what an Application of other repositories renders is not known, where that is not asked for.
const OF_OTHERS: &str = "it is of other repositories, which are not looked at";

/// Whether no source of an Application is this repository.
fn is_foreign(application: &Application, input: &Input<'_>) -> bool {
    let is_ours = |url: &str| url == THIS_REPOSITORY || (input.is_given)(url);
    !application.spec.effective_sources().iter().any(|source| is_ours(&source.repo_url))
}

/// Renders one Application.
pub(super) fn render_application(application: &Application, input: &Input<'_>) -> Rendering {
    if !input.options.foreign && is_foreign(application, input) {
        let addresses = application.spec.effective_sources().into_iter().map(|source| source.repo_url);
        let touched = Touched { addresses: addresses.collect(), ..Touched::default() };
        return Rendering { touched, ..Rendering::unseen(OF_OTHERS.to_owned()) };
    }
    let Attempt { result, read, missed, touched } = attempt(application, input, &Here::new(input));
    let read = Arc::new(read);
    match result {
        Ok(rendered) => Rendering {
            outcome: Outcome::Rendered,
            objects: rendered.objects.into_iter().map(Arc::new).collect(),
            tools: rendered.sources.into_iter().map(|source| source.source_type).collect(),
            seen: read.clone(),
            read,
            missed,
            touched,
            is_over_limit: false,
        },
        Err(error) => {
            let is_partly_here =
                error.cause() == Cause::Unsupported && partial_rendering::is_kustomized(application, input);
            let outcome = match missed.first() {
                Some((_, why)) => Outcome::Unseen(why.clone()),
                None if error.is_transient() || error.cause() == Cause::Unsupported => {
                    Outcome::Unseen(error.headline().to_owned())
                }
                None if may_be_elsewhere(&error, application) => {
                    let text = format!("{}; another revision may have it", error.headline());
                    Outcome::Unseen(text)
                }
                None => Outcome::Failed(error),
            };
            let nothing = Rendering {
                outcome,
                objects: Vec::new(),
                tools: Vec::new(),
                read,
                seen: Arc::default(),
                missed,
                touched,
                is_over_limit: false,
            };
            let has_parts = application.spec.effective_sources().len() > 1
                || nothing.missed.iter().any(|(what, _)| is_of_chart(what));
            if !is_partly_here && (nothing.missed.is_empty() || !has_parts) {
                return nothing;
            }
            with_part(nothing, application, input)
        }
    }
}

/// A rendering that something out of reach stopped, with what can be seen nevertheless.
fn with_part(stopped: Rendering, application: &Application, input: &Input<'_>) -> Rendering {
    let part = partial_rendering::render_in_part(application, input);
    let Rendering { mut touched, read, outcome, .. } = stopped;
    touched.paths.extend(part.touched.paths);
    touched.addresses.extend(part.touched.addresses);
    let mut all = BTreeSet::clone(&read);
    all.extend(part.read);
    Rendering {
        outcome: part.fault.map_or(outcome, Outcome::Failed),
        objects: part.objects,
        tools: Vec::new(),
        read: Arc::new(all),
        seen: Arc::new(part.seen),
        missed: stopped.missed,
        touched,
        is_over_limit: false,
    }
}
