//! What the engine remembers of each Application between two looks at it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use tiphys_cluster::ClusterError;
use tiphys_model::{Application, ConditionType, Operation, names};
use tiphys_render::{Cause, RenderError};
use tiphys_source::Footprint;
use tiphys_value::{ObjectExt, ResourceKey};
use tokio::time::Instant;

use crate::{
    AppKey, Refresh,
    checkouts::RepositoryRead,
    destinations::ConnectedCluster,
    engine::{Engine, GATHER_EDITS},
    reconcile::Next,
    rendering::Rendering,
    safeguards::competing_engines::Rival,
    server_side_diff::Answers,
    sets::SetObservation,
};

/// First and longest pause after something could not be written; it doubles from look to look.
const LOSS_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What is known of an Application beyond its object.
#[derive(Default)]
pub(crate) struct Memory {
    rendering: Option<Arc<Rendering>>,
    /// The last one that has objects.
    good: Option<Arc<Rendering>>,
    /// The rendering that the operation under way brings about.
    operation: Option<Arc<Rendering>>,
    /// The operation that somebody has taken away and that is not to begin again.
    pub(crate) taken_away: Option<Operation>,
    /// The keys of its targets.
    wants: BTreeSet<ResourceKey>,
    /// The cluster in which it wants them.
    place: Option<Arc<ConnectedCluster>>,
    /// What the API server said of its targets.
    answers: Answers,
    /// It was looked at by this engine.
    seen: bool,
    /// A repository that it reads has another commit now.
    moved: bool,
    /// Since when nothing is left to do for it, if that is so, and the version of its object that says so.
    calm: Option<(Instant, String)>,
    /// Another engine that works on it too.
    pub(crate) rival: Option<Rival>,
    /// How often one after the other its sources could not be had for a reason that may pass.
    failures: u32,
    /// When the last of them was counted.
    failed_at: Option<Instant>,
    /// Something was not written in this look.
    lost: bool,
    /// In how many looks one after the other that was so.
    losses: u32,
}

impl Memory {
    /// The renderings that are kept.
    pub(crate) fn renderings(&self) -> impl Iterator<Item = &Arc<Rendering>> {
        [&self.rendering, &self.good, &self.operation].into_iter().flatten()
    }

    /// The rendering of an Application for which nothing was left to do less than that ago, and nothing is
    /// known to have changed since.
    pub(crate) fn calm(&self, less_than: Duration) -> Option<&Arc<Rendering>> {
        let is_calm = self.calm.as_ref().is_some_and(|(since, _)| since.elapsed() < less_than);
        let served = self.place.as_ref()?.cache.cluster().discovery();
        let rendering = self.rendering.as_ref().filter(|known| known.is_answered_by(&served));
        rendering.filter(|_| is_calm && !self.moved && self.rival.is_none())
    }
}

/// How long after a fetch that failed it is tried again, at first; it doubles with each further failure.
const FIRST_FETCH_PAUSE: Duration = Duration::from_secs(5);
/// How long it grows where remotes are not followed.
const LONGEST_FETCH_PAUSE: Duration = Duration::from_secs(120);

/// How long after a fault of the engine's own an Application is looked at again.
const PANIC_PAUSE: Duration = Duration::from_secs(300);

impl Engine {
    pub(crate) fn memory(&self) -> MutexGuard<'_, HashMap<AppKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known_rendering(&self, key: &AppKey) -> Option<Arc<Rendering>> {
        self.memory().get(key)?.rendering.clone()
    }

    pub(crate) fn remember(&self, key: &AppKey, rendering: Arc<Rendering>) {
        let mut memory = self.memory();
        let known = memory.entry(key.clone()).or_default();
        if rendering.targets.is_ok() {
            known.good = Some(rendering.clone());
        }
        if !rendering.may_pass() {
            (known.failures, known.failed_at) = (0, None);
        } else if known.failed_at.is_none_or(|at| at.elapsed() >= FIRST_FETCH_PAUSE) {
            // Looks for other reasons come as they like; they are no further attempts.
            (known.failures, known.failed_at) = (known.failures.saturating_add(1), Some(Instant::now()));
        }
        known.rendering = Some(rendering);
    }

    /// How long to wait for sources that could not be had before they are asked for again: seconds at first,
    /// for most hosts are back soon, and at last as long as one that answers is left alone.
    pub(crate) fn pause_after_failures(&self, key: &AppKey, longest: Duration) -> Duration {
        let failures = self.memory().get(key).map_or(0, |known| known.failures);
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
        let longest = if longest.is_zero() { LONGEST_FETCH_PAUSE } else { longest };
        FIRST_FETCH_PAUSE.saturating_mul(doubled).min(longest)
    }

    /// Whether an Application's sources could not be had, see [`crate::Controller::is_out_of_reach`].
    pub(crate) fn is_out_of_reach(&self, key: &AppKey) -> bool {
        let is_away = |error: &RenderError| {
            error.is_transient() || matches!(error.cause(), Cause::OutOfReach | Cause::Unsupported)
        };
        let known = self.known_rendering(key);
        known.is_some_and(|known| known.targets.as_ref().is_err_and(is_away))
    }

    /// What was rendered while edits came may be of before them, and nobody knew then what it read: it is
    /// made again.
    pub(crate) fn doubt(&self, key: &AppKey) {
        if let Some(known) = self.memory().get_mut(key) {
            known.rendering = None;
        }
        self.queue.add(key.clone(), Refresh::Sources, Instant::now() + GATHER_EDITS);
    }

    /// The last rendering that has objects, if it was made for the same spec as one that has none.
    pub(crate) fn last_good_rendering(&self, key: &AppKey, failed: &Rendering) -> Option<Arc<Rendering>> {
        let good = self.memory().get(key)?.good.clone()?;
        good.is_for_the_spec_of(failed).then_some(good)
    }

    /// Something of an Application could not be written: the look has to be taken again.
    pub(crate) fn lost_write(&self, key: &AppKey, error: &ClusterError) {
        if error.is_not_found() {
            return;
        }
        tracing::warn!(app = %key.name, %error, "cannot write what was found out; it is tried again");
        self.memory().entry(key.clone()).or_default().lost = true;
    }

    /// What a look leads to if something could not be written in it: another one after a pause, whatever else
    /// was to come.
    pub(crate) fn after_losses(&self, key: &AppKey, next: Next) -> Next {
        let mut memory = self.memory();
        let Some(known) = memory.get_mut(key) else { return next };
        if !std::mem::take(&mut known.lost) {
            known.losses = 0;
            return next;
        }
        let pause = (LOSS_PAUSE.0 * 2u32.pow(known.losses.min(6))).min(LOSS_PAUSE.1);
        known.losses = known.losses.saturating_add(1);
        self.again_in(pause)
    }

    /// What follows a look that ended in a fault of the engine's own: the Application says so, and is looked
    /// at again later.
    pub(crate) async fn after_panic(&self, key: &AppKey, panic: &str) -> Next {
        tracing::error!(app = %key.name, panic, "a fault of the engine ended the look at an Application; it is tried again");
        let at = key.of_application();
        // An engine that only watches writes nothing, not even this.
        if let Some(object) = self.cache.get(&at).filter(|_| self.settings.shadow.is_none()) {
            let fault = told_of_panic(panic);
            self.report_unknown(key, &object, ConditionType::UnknownError, &fault).await;
        }
        self.again_in(PANIC_PAUSE)
    }

    /// As [`Self::after_panic`], of an ApplicationSet.
    pub(crate) async fn after_panic_of_set(&self, key: &AppKey, panic: &str) -> Next {
        tracing::error!(set = %key.name, panic, "a fault of the engine ended the look at an ApplicationSet; it is tried again");
        let at = ResourceKey::new(names::GROUP, "ApplicationSet", &key.namespace, &key.name);
        if let Some(set) = self.cache.get(&at).filter(|_| self.settings.shadow.is_none()) {
            let seen = SetObservation::broken(&told_of_panic(panic));
            if let Err(error) = self.show_set(&set, &seen, false).await {
                tracing::warn!(set = %key.name, %error, "cannot write the status");
            }
        }
        self.again_in(PANIC_PAUSE)
    }

    /// Who asks for a look means now: edits of a working tree are told a moment later, and remotes are not
    /// asked every time. Only the repositories of the Application's own sources are asked again.
    pub(crate) fn ask_anew(&self, key: &AppKey, app: &Application) {
        let mut memory = self.memory();
        let Some(known) = memory.get_mut(key) else { return };
        let Some(rendering) = &known.rendering else { return };
        if rendering.reads_remotes {
            self.expire_sources(app);
        }
        match rendering.reads_remotes && rendering.footprint == Footprint::default() {
            true => known.moved = true,
            false => known.rendering = None,
        }
    }

    /// Forgets how fresh the repositories of an Application's sources are.
    pub(crate) fn expire_sources(&self, app: &Application) {
        for source in app.spec.effective_sources() {
            self.repositories.expire_address(&source.repo_url);
        }
    }

    /// A revision of a repository was seen at another commit: who read the old one is looked at too, not only
    /// when its own turn to ask comes.
    pub(crate) fn moved(&self, read: &RepositoryRead) {
        let place = (read.url.clone(), read.revision.clone());
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.insert(place, read.commit.clone()).as_ref() == Some(&read.commit) {
            return;
        }
        drop(left);
        let mut concerned = Vec::new();
        for (key, known) in self.memory().iter_mut() {
            let rendering = known.rendering.as_ref();
            if rendering.is_some_and(|known| known.read(&read.url, &read.revision, &read.commit)) {
                known.moved = true;
                concerned.push(key.clone());
            }
        }
        for key in concerned {
            self.queue.add(key, Refresh::Sources, Instant::now());
        }
    }

    /// Whether a repository that an Application reads was seen to have moved since this was last asked.
    /// Revisions of what an Application reads may be other commits by now.
    pub(crate) fn doubt_revisions(&self, key: &AppKey) {
        if let Some(known) = self.memory().get_mut(key) {
            known.moved = true;
        }
    }

    pub(crate) fn has_moved(&self, key: &AppKey) -> bool {
        self.memory().get_mut(key).is_some_and(|known| std::mem::take(&mut known.moved))
    }

    pub(crate) fn operation_rendering(&self, key: &AppKey) -> Option<Arc<Rendering>> {
        self.memory().get(key)?.operation.clone()
    }

    pub(crate) fn keep_operation_rendering(&self, key: &AppKey, rendering: Arc<Rendering>) {
        self.memory().entry(key.clone()).or_default().operation = Some(rendering);
    }

    pub(crate) fn drop_operation_rendering(&self, key: &AppKey) {
        if let Some(known) = self.memory().get_mut(key) {
            known.operation = None;
        }
    }

    pub(crate) fn answers(&self, key: &AppKey) -> Answers {
        self.memory().get(key).map(|known| known.answers.clone()).unwrap_or_default()
    }

    pub(crate) fn keep_answers(&self, key: &AppKey, answers: Answers) {
        self.memory().entry(key.clone()).or_default().answers = answers;
    }

    /// Whether an Application was looked at since the engine started.
    pub(crate) fn has_seen(&self, key: &AppKey) -> bool {
        self.memory().get(key).is_some_and(|known| known.seen)
    }

    /// The cluster that an Application was last compared with.
    pub(crate) fn last_place(&self, key: &AppKey) -> Option<Arc<ConnectedCluster>> {
        self.memory().get(key)?.place.clone()
    }

    /// The Applications whose rendering read one of these paths (an empty one means anything); the rendering
    /// is dropped.
    pub(crate) fn outdated_by(&self, paths: &[String]) -> Vec<AppKey> {
        let everything = paths.iter().any(String::is_empty);
        let mut concerned = Vec::new();
        for (key, known) in self.memory().iter_mut() {
            let Some(rendering) = &known.rendering else { continue };
            if everything || paths.iter().any(|path| rendering.footprint.concerns(path)) {
                known.rendering = None;
                concerned.push(key.clone());
            }
        }
        concerned
    }

    /// Every object that an Application wants, with its cluster.
    pub(crate) fn wanted(&self) -> Vec<(Arc<ConnectedCluster>, ResourceKey)> {
        let memory = self.memory();
        let wants = |known: &Memory| -> Vec<_> {
            let place = known.place.iter();
            place.flat_map(|place| known.wants.iter().map(|key| (place.clone(), key.clone()))).collect()
        };
        memory.values().flat_map(wants).collect()
    }

    /// Lets everything be rendered anew.
    pub(crate) fn drop_renderings(&self) {
        self.memory().values_mut().for_each(|known| known.rendering = None);
    }

    /// Notes that nothing is left to do for an Application, or that a look has to tell.
    pub(crate) fn note_calm(&self, key: &AppKey, calm: bool) {
        let at = key.of_application();
        let object = calm.then(|| self.cache.peek(&at)).flatten();
        if let Some(known) = self.memory().get_mut(key) {
            known.calm = object.map(|object| (Instant::now(), object.resource_version().to_owned()));
        }
    }

    /// Notes that an Application was written: unless that was the last thing that this engine did for it, it
    /// has to be looked at as a whole the next time.
    pub(crate) fn written(&self, key: &AppKey, version: &str) {
        if let Some(known) = self.memory().get_mut(key) {
            known.calm.take_if(|(_, calm)| calm != version);
        }
    }

    pub(crate) fn mark_seen(&self, key: &AppKey) {
        self.memory().entry(key.clone()).or_default().seen = true;
    }

    /// Notes which objects of a cluster an Application wants.
    pub(crate) fn index_targets(
        &self,
        app: &Application,
        wants: BTreeSet<ResourceKey>,
        place: &Arc<ConnectedCluster>,
    ) {
        let key = AppKey::from_app(app);
        let mut memory = self.memory();
        let known = memory.entry(key.clone()).or_default();
        let is_same = known.place.as_ref().is_some_and(|known| Arc::ptr_eq(known, place));
        if is_same && known.wants == wants {
            return;
        }
        let mut old = std::mem::replace(&mut known.wants, wants.clone());
        let before = known.place.replace(place.clone());
        drop(memory);
        if let Some(before) = before.filter(|_| !is_same) {
            before.index(&key, &old, &BTreeSet::new());
            before.watch(&key, None);
            old.clear();
        }
        place.index(&key, &old, &wants);
    }

    pub(crate) fn forget(&self, key: &AppKey) {
        let Some(known) = self.memory().remove(key) else { return };
        if let Some(place) = known.place {
            place.index(key, &known.wants, &BTreeSet::new());
            place.watch(key, None);
        }
    }
}

/// A panic, to whom it may concern.
fn told_of_panic(panic: &str) -> String {
    format!("a fault of the engine, please report it: {panic}; it is tried again")
}
