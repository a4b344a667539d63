//! What the engine remembers of each Application between two looks at it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tiphys_cluster::ClusterError;
use tiphys_model::{Application, Operation};
use tiphys_render::{Cause, RenderError};
use tiphys_source::Footprint;
use tiphys_value::ResourceKey;
use tokio::time::Instant;

use crate::{
    AppKey, checkouts::RepositoryRead, destinations::ConnectedCluster, reconcile::report::Next,
    rendering::Rendering, safeguards::competing_engines::Rival, server_side_diff::Answers, targets::Targets,
};

/// First and longest pause after something could not be written; it doubles from look to look.
const LOSS_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What is known of an Application beyond its object.
#[derive(Default)]
struct Memory {
    rendering: Option<Arc<Rendering>>,
    /// The last one that has objects.
    good: Option<Arc<Rendering>>,
    /// The rendering that the operation under way brings about.
    operation: Option<Arc<Rendering>>,
    /// The operation that somebody has taken away and that is not to begin again.
    taken_away: Option<Operation>,
    /// The keys of its targets.
    wants: BTreeSet<ResourceKey>,
    /// The cluster in which it wants them.
    cluster: Option<Arc<ConnectedCluster>>,
    /// What the API server said of its targets.
    answers: Answers,
    /// It was looked at by this engine.
    seen: bool,
    /// A repository that it reads has another commit now.
    moved: bool,
    /// Since when nothing is left to do for it, if that is so, and the version of its object that says so.
    calm: Option<(Instant, String)>,
    /// Another engine that works on it too.
    rival: Option<Rival>,
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
    fn renderings(&self) -> impl Iterator<Item = &Arc<Rendering>> {
        [&self.rendering, &self.good, &self.operation].into_iter().flatten()
    }

    /// The rendering of an Application for which nothing was left to do less than that ago, and nothing is
    /// known to have changed since.
    fn calm(&self, less_than: Duration) -> Option<&Arc<Rendering>> {
        let is_calm = self.calm.as_ref().is_some_and(|(since, _)| since.elapsed() < less_than);
        let served = self.cluster.as_ref()?.cache.cluster().discovery();
        let rendering = self.rendering.as_ref().filter(|known| known.is_answered_by(&served));
        rendering.filter(|_| is_calm && !self.moved && self.rival.is_none())
    }
}

/// How long after a fetch that failed it is tried again, at first; it doubles with each further failure.
const FIRST_FETCH_PAUSE: Duration = Duration::from_secs(5);
/// How long it grows where remotes are not followed.
const LONGEST_FETCH_PAUSE: Duration = Duration::from_secs(120);

/// What is remembered of all Applications.
#[derive(Default)]
pub(crate) struct AppMemory(Mutex<HashMap<AppKey, Memory>>);

impl AppMemory {
    fn lock(&self) -> MutexGuard<'_, HashMap<AppKey, Memory>> {
        self.0.lock()
    }

    pub(crate) fn known_rendering(&self, key: &AppKey) -> Option<Arc<Rendering>> {
        self.lock().get(key)?.rendering.clone()
    }

    pub(crate) fn remember(&self, key: &AppKey, rendering: Arc<Rendering>) {
        let mut memory = self.lock();
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
        let failures = self.lock().get(key).map_or(0, |known| known.failures);
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

    /// What was rendered while edits came may be of before them, and nobody knew then what it read: it has to
    /// be made again.
    pub(crate) fn drop_rendering(&self, key: &AppKey) {
        if let Some(known) = self.lock().get_mut(key) {
            known.rendering = None;
        }
    }

    /// The last rendering that has objects, if it was made for the same spec as one that has none.
    pub(crate) fn last_good_rendering(&self, key: &AppKey, failed: &Rendering) -> Option<Arc<Rendering>> {
        let good = self.lock().get(key)?.good.clone()?;
        good.is_for_the_spec_of(failed).then_some(good)
    }

    /// Something of an Application could not be written: the look has to be taken again.
    pub(crate) fn lost_write(&self, key: &AppKey, error: &ClusterError) {
        if error.is_not_found() {
            return;
        }
        tracing::warn!(app = %key.name, %error, "cannot write what was found out; it is tried again");
        self.lock().entry(key.clone()).or_default().lost = true;
    }

    /// What a look leads to if something could not be written in it: another one after a pause, whatever else
    /// was to come.
    pub(crate) fn after_losses(&self, key: &AppKey, next: Next, now: Timestamp) -> Next {
        let mut memory = self.lock();
        let Some(known) = memory.get_mut(key) else { return next };
        if !std::mem::take(&mut known.lost) {
            known.losses = 0;
            return next;
        }
        let pause = (LOSS_PAUSE.0 * 2u32.pow(known.losses.min(6))).min(LOSS_PAUSE.1);
        known.losses = known.losses.saturating_add(1);
        Next::after(pause, now)
    }

    /// Who asks for a look means now: edits of a working tree are told a moment later, and remotes are not
    /// asked every time. Returns whether the repositories of the Application's own sources have to be asked
    /// again.
    pub(crate) fn ask_anew(&self, key: &AppKey) -> bool {
        let mut memory = self.lock();
        let Some(known) = memory.get_mut(key) else { return false };
        let Some(rendering) = &known.rendering else { return false };
        let reads_remotes = rendering.reads_remotes;
        match reads_remotes && rendering.footprint == Footprint::default() {
            true => known.moved = true,
            false => known.rendering = None,
        }
        reads_remotes
    }

    /// A revision of a repository was seen at another commit: the Applications that read the old one, which
    /// are looked at too, not only when their own turn to ask comes.
    pub(crate) fn readers_of(&self, read: &RepositoryRead) -> Vec<AppKey> {
        let mut concerned = Vec::new();
        for (key, known) in self.lock().iter_mut() {
            let rendering = known.rendering.as_ref();
            if rendering.is_some_and(|known| known.read(&read.url, &read.revision, &read.commit)) {
                known.moved = true;
                concerned.push(key.clone());
            }
        }
        concerned
    }

    /// Revisions of what an Application reads may be other commits by now.
    pub(crate) fn doubt_revisions(&self, key: &AppKey) {
        if let Some(known) = self.lock().get_mut(key) {
            known.moved = true;
        }
    }

    /// Whether a repository that an Application reads was seen to have moved since this was last asked.
    pub(crate) fn has_moved(&self, key: &AppKey) -> bool {
        self.lock().get_mut(key).is_some_and(|known| std::mem::take(&mut known.moved))
    }

    pub(crate) fn operation_rendering(&self, key: &AppKey) -> Option<Arc<Rendering>> {
        self.lock().get(key)?.operation.clone()
    }

    pub(crate) fn keep_operation_rendering(&self, key: &AppKey, rendering: Arc<Rendering>) {
        self.lock().entry(key.clone()).or_default().operation = Some(rendering);
    }

    pub(crate) fn drop_operation_rendering(&self, key: &AppKey) {
        if let Some(known) = self.lock().get_mut(key) {
            known.operation = None;
        }
    }

    pub(crate) fn answers(&self, key: &AppKey) -> Answers {
        self.lock().get(key).map(|known| known.answers.clone()).unwrap_or_default()
    }

    pub(crate) fn keep_answers(&self, key: &AppKey, answers: Answers) {
        self.lock().entry(key.clone()).or_default().answers = answers;
    }

    /// Whether an Application was looked at since the engine started.
    pub(crate) fn has_seen(&self, key: &AppKey) -> bool {
        self.lock().get(key).is_some_and(|known| known.seen)
    }

    /// The cluster that an Application was last compared with.
    pub(crate) fn last_cluster(&self, key: &AppKey) -> Option<Arc<ConnectedCluster>> {
        self.lock().get(key)?.cluster.clone()
    }

    /// The Applications whose rendering read one of these paths (an empty one means anything); the rendering
    /// is dropped.
    pub(crate) fn outdated_by(&self, paths: &[String]) -> Vec<AppKey> {
        let everything = paths.iter().any(String::is_empty);
        let mut concerned = Vec::new();
        for (key, known) in self.lock().iter_mut() {
            let Some(rendering) = &known.rendering else { continue };
            if everything || paths.iter().any(|path| rendering.footprint.concerns(path)) {
                known.rendering = None;
                concerned.push(key.clone());
            }
        }
        concerned
    }

    /// Every object that an Application wants, with its cluster.
    pub(crate) fn wanted_objects(&self) -> Vec<(Arc<ConnectedCluster>, ResourceKey)> {
        let memory = self.lock();
        let wants = |known: &Memory| -> Vec<_> {
            let cluster = known.cluster.iter();
            cluster.flat_map(|cluster| known.wants.iter().map(|key| (cluster.clone(), key.clone()))).collect()
        };
        memory.values().flat_map(wants).collect()
    }

    /// Lets everything be rendered anew.
    pub(crate) fn drop_renderings(&self) {
        self.lock().values_mut().for_each(|known| known.rendering = None);
    }

    /// Notes that nothing is left to do for an Application whose object has this version, or that a look has
    /// to tell.
    pub(crate) fn mark_idle(&self, key: &AppKey, version: Option<&str>) {
        if let Some(known) = self.lock().get_mut(key) {
            known.calm = version.map(|version| (Instant::now(), version.to_owned()));
        }
    }

    /// The rendering of an Application at rest, see [`Memory::calm`].
    pub(crate) fn calm(&self, key: &AppKey, less_than: Duration) -> Option<Arc<Rendering>> {
        self.lock().get(key)?.calm(less_than).cloned()
    }

    /// The targets that are kept, each once: renderings share them.
    pub(crate) fn targets(&self) -> Vec<Arc<Targets>> {
        let memory = self.lock();
        let kept = memory.values().flat_map(Memory::renderings);
        let targets = kept.filter_map(|known| known.targets.as_ref().ok());
        let all: BTreeMap<_, _> =
            targets.map(|targets| (Arc::as_ptr(targets).addr(), targets.clone())).collect();
        all.into_values().collect()
    }

    /// Another engine that works on an Application too.
    pub(crate) fn rival(&self, key: &AppKey) -> Option<Rival> {
        self.lock().get(key)?.rival
    }

    /// Notes that another engine has written an Application.
    pub(crate) fn note_rival(&self, key: &AppKey, manager: &'static str) {
        let mut memory = self.lock();
        let known = memory.entry(key.clone()).or_default();
        known.rival = Some(Rival::seen_now(manager, known.rival));
    }

    /// Notes what became of another engine.
    pub(crate) fn set_rival(&self, key: &AppKey, rival: Option<Rival>) {
        if let Some(known) = self.lock().get_mut(key) {
            known.rival = rival;
        }
    }

    /// The operation of an Application that somebody has taken away, if it is not yet respected.
    pub(crate) fn taken_away(&self, key: &AppKey) -> Option<Operation> {
        self.lock().get(key)?.taken_away.clone()
    }

    /// Remembers which operation of an Application somebody has taken away.
    pub(crate) fn note_taken_away(&self, key: &AppKey, operation: Option<Operation>) {
        self.lock().entry(key.clone()).or_default().taken_away = operation;
    }

    /// Notes that an Application was written: unless that was the last thing that this engine did for it, it
    /// has to be looked at as a whole the next time.
    pub(crate) fn written(&self, key: &AppKey, version: &str) {
        if let Some(known) = self.lock().get_mut(key) {
            known.calm.take_if(|(_, calm)| calm != version);
        }
    }

    pub(crate) fn mark_seen(&self, key: &AppKey) {
        self.lock().entry(key.clone()).or_default().seen = true;
    }

    /// Notes which objects of a cluster an Application wants.
    pub(crate) fn index_targets(
        &self,
        app: &Application,
        wants: BTreeSet<ResourceKey>,
        cluster: &Arc<ConnectedCluster>,
    ) {
        let key = AppKey::from_app(app);
        let mut memory = self.lock();
        let known = memory.entry(key.clone()).or_default();
        let is_same = known.cluster.as_ref().is_some_and(|known| Arc::ptr_eq(known, cluster));
        if is_same && known.wants == wants {
            return;
        }
        let mut old = std::mem::replace(&mut known.wants, wants.clone());
        let before = known.cluster.replace(cluster.clone());
        drop(memory);
        if let Some(before) = before.filter(|_| !is_same) {
            before.index(&key, &old, &BTreeSet::new());
            before.watch(&key, None);
            old.clear();
        }
        cluster.index(&key, &old, &wants);
    }

    pub(crate) fn forget(&self, key: &AppKey) {
        let Some(known) = self.lock().remove(key) else { return };
        if let Some(cluster) = known.cluster {
            cluster.index(key, &known.wants, &BTreeSet::new());
            cluster.watch(key, None);
        }
    }
}
