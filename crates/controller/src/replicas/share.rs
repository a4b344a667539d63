//! What one replica has of the work, and what it is doing with it: whoever works asks here first, and a slot
//! is given back only when nobody works on anything in it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tiphys_cluster::Fence;
use tiphys_value::Value;
use tokio::{sync::Notify, time::Instant};

use super::slots::{Slot, SlotSet};
use crate::{AppKey, metrics::family};

/// How long a slot that another replica has given back rests, so that the live state that is followed here
/// has caught up with what that one wrote last.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a slot that should go to another replica waits for operations to end. One that has not ended by
/// then goes on at the other replica: all of its state is in the Application.
const HANDOVER: Duration = Duration::from_secs(30);

/// How a slot is held.
struct Held {
    /// From when on it may be worked on.
    from: Instant,
    /// It was had since before the live state was read: what is followed here is of after it was taken.
    is_first: bool,
    /// Since when it should go to another replica.
    leaving: Option<Instant>,
    /// How many looks at something in it there are now.
    looks: usize,
    /// Applications in it with an operation under way.
    under_way: BTreeSet<AppKey>,
}

#[derive(Default)]
struct State {
    held: HashMap<Slot, Held>,
    /// Slots that came, or that stay after all, since somebody asked.
    news: SlotSet,
    /// Nothing more is begun.
    is_closing: bool,
    /// How many replicas there are.
    replicas: usize,
    /// The version of each Application that is being looked at: as it was read, or as this replica wrote it.
    versions: HashMap<AppKey, String>,
}

/// What a replica has of the work.
pub struct Share {
    fence: Fence,
    state: Mutex<State>,
    changed: Notify,
    ended: Notify,
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Share({} slots)", self.slots().len())
    }
}

/// Whether something may be looked at now.
pub(crate) enum Turn {
    /// It may.
    Now(Look),
    /// It may from then on.
    From(Instant),
    /// Another replica has it, or will have it.
    NotOurs,
}

/// A look at something, until it is dropped.
pub(crate) struct Look {
    shared: Option<(Arc<Share>, Slot)>,
    /// Whether what is known here of the object may be of before the last replica wrote it.
    pub may_be_old: bool,
}

impl Look {
    /// A look by an engine that shares nothing.
    pub(crate) fn unshared() -> Self {
        Self { shared: None, may_be_old: false }
    }

    /// Notes whether an Application has an operation under way.
    pub(crate) fn note(&self, key: &AppKey, is_under_way: bool) {
        let Some((share, slot)) = &self.shared else { return };
        let mut state = share.lock();
        state.versions.remove(key);
        if let Some(held) = state.held.get_mut(slot) {
            match is_under_way {
                true => held.under_way.insert(key.clone()),
                false => held.under_way.remove(key),
            };
        }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        let Some((share, slot)) = &self.shared else { return };
        if let Some(held) = share.lock().held.get_mut(slot) {
            held.looks = held.looks.saturating_sub(1);
        }
        share.ended.notify_one();
    }
}

impl Share {
    pub(super) fn new(fence: Fence) -> Self {
        Self { fence, state: Mutex::default(), changed: Notify::new(), ended: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Who gives this replica leave to write.
    pub(crate) fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Begins a look at something in a slot: at an Application with its key.
    pub(super) fn begin(self: &Arc<Self>, slot: Slot, app: Option<&AppKey>) -> Turn {
        let mut state = self.lock();
        if state.is_closing {
            return Turn::NotOurs;
        }
        let Some(held) = state.held.get_mut(&slot) else { return Turn::NotOurs };
        if Instant::now() < held.from {
            return Turn::From(held.from);
        }
        // What goes to another replica is brought to an end, and nothing else is begun.
        let is_begun = app.is_some_and(|key| held.under_way.contains(key));
        if held.leaving.is_some() && !is_begun {
            return Turn::NotOurs;
        }
        held.looks += 1;
        Turn::Now(Look { shared: Some((self.clone(), slot)), may_be_old: !held.is_first })
    }

    /// Whether this replica has a slot.
    pub(super) fn holds(&self, slot: Slot) -> bool {
        self.lock().held.contains_key(&slot)
    }

    /// Whether this replica may write an Application now.
    pub fn may_write(&self, app: &Value) -> bool {
        self.fence.is_open() && self.holds(Slot::of_application(app))
    }

    /// The slots that this replica has.
    pub(super) fn slots(&self) -> SlotSet {
        self.lock().held.keys().copied().collect()
    }

    /// Takes slots up. `is_first` says that nothing of the live state was read yet.
    pub(super) fn take(&self, slots: &SlotSet, is_first: bool) {
        let now = Instant::now();
        let from = if is_first { now } else { now + SETTLE };
        let mut state = self.lock();
        for slot in slots {
            let new = Held { from, is_first, leaving: None, looks: 0, under_way: BTreeSet::new() };
            if !state.held.contains_key(slot) {
                state.held.insert(*slot, new);
                state.news.insert(*slot);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Lets slots go to another replica as soon as nobody works on anything in them; all others stay.
    pub(super) fn let_go(&self, slots: &SlotSet) {
        let now = Instant::now();
        let mut guard = self.lock();
        let state = &mut *guard;
        for (slot, held) in &mut state.held {
            match (slots.contains(slot), held.leaving) {
                (true, None) => held.leaving = Some(now),
                (false, Some(_)) => {
                    held.leaving = None;
                    state.news.insert(*slot);
                }
                _ => {}
            }
        }
        let has_news = !state.news.is_empty();
        drop(guard);
        if has_news {
            self.changed.notify_one();
        }
    }

    /// The slots that are to go and that nobody works on any more: they are not this replica's from now on.
    pub(super) fn given_back(&self) -> SlotSet {
        let mut state = self.lock();
        let is_free = |held: &Held| {
            let over = held.leaving.is_some_and(|since| since.elapsed() >= HANDOVER);
            held.leaving.is_some() && held.looks == 0 && (over || held.under_way.is_empty())
        };
        let free: SlotSet =
            state.held.iter().filter(|(_, held)| is_free(held)).map(|(slot, _)| *slot).collect();
        state.held.retain(|slot, _| !free.contains(slot));
        drop(state);
        if !free.is_empty() {
            self.changed.notify_one();
        }
        free
    }

    /// Notes the version of an Application that is being looked at.
    pub(super) fn note_version(&self, app: &AppKey, version: &str) {
        self.lock().versions.insert(app.clone(), version.to_owned());
    }

    /// The version of an Application that is being looked at: what is written is to stand on it alone.
    pub(super) fn version(&self, app: &AppKey) -> Option<String> {
        self.lock().versions.get(app).cloned()
    }

    /// Notes how many replicas there are.
    pub(super) fn note_replicas(&self, count: usize) {
        self.lock().replicas = count;
    }

    /// Returns when slots came or went since it was last asked; those that came.
    pub(super) async fn news(&self) -> SlotSet {
        self.changed.notified().await;
        std::mem::take(&mut self.lock().news)
    }

    /// Begins nothing more, and returns when nothing is being worked on, or when the time is over. Whether
    /// all came to an end.
    pub async fn finish(&self, limit: Duration) -> bool {
        self.lock().is_closing = true;
        let idle = async {
            while self.lock().held.values().any(|held| held.looks > 0) {
                self.ended.notified().await;
            }
        };
        tokio::time::timeout(limit, idle).await.is_ok()
    }

    /// Writes what is measured, in Prometheus' text form.
    pub(crate) fn write_metrics(&self, text: &mut String) {
        let (slots, replicas) = {
            let state = self.lock();
            (state.held.len() as f64, state.replicas as f64)
        };
        let mut gauge = |name: &str, help: &str, value: f64| {
            family(text, name, "gauge", help, &[(String::new(), value)]);
        };
        gauge("tiphys_replica_slots", "Slots of the work that this replica has.", slots);
        gauge("tiphys_replicas", "Replicas that share the work, as this one sees them.", replicas);
        let may_write = f64::from(u8::from(self.fence.is_open()));
        gauge("tiphys_replica_may_write", "Whether this replica has leave to write.", may_write);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn share(count: usize) -> (Arc<Share>, Vec<Slot>) {
        let share = Arc::new(Share::new(Fence::default()));
        let slots: Vec<Slot> = Slot::all().take(count).collect();
        share.take(&slots.iter().copied().collect(), true);
        (share, slots)
    }

    fn key(name: &str) -> AppKey {
        AppKey { namespace: "argocd".into(), name: name.into() }
    }

    fn look_at(share: &Arc<Share>, slot: Slot, name: &str) -> Option<Look> {
        match share.begin(slot, Some(&key(name))) {
            Turn::Now(look) => Some(look),
            Turn::From(_) | Turn::NotOurs => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_is_given_back_when_nobody_works_in_it() {
        let (share, slots) = share(2);
        let running = look_at(&share, slots[0], "a").expect("ours");
        share.let_go(&slots.iter().copied().collect());
        assert_eq!(share.given_back(), SlotSet::from([slots[1]]), "nothing is done in the second one");
        assert!(look_at(&share, slots[0], "b").is_none(), "nothing more is begun");
        drop(running);
        assert_eq!(share.given_back(), SlotSet::from([slots[0]]));
        assert!(look_at(&share, slots[0], "a").is_none() && share.slots().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_under_way_is_brought_to_its_end_before() {
        let (share, slots) = share(1);
        look_at(&share, slots[0], "a").expect("ours").note(&key("a"), true);
        share.let_go(&slots.iter().copied().collect());
        assert!(share.given_back().is_empty());
        look_at(&share, slots[0], "a").expect("it goes on here").note(&key("a"), false);
        assert_eq!(share.given_back().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_that_does_not_end_goes_on_elsewhere() {
        let (share, slots) = share(1);
        look_at(&share, slots[0], "a").expect("ours").note(&key("a"), true);
        share.let_go(&slots.iter().copied().collect());
        tokio::time::advance(HANDOVER).await;
        let running = look_at(&share, slots[0], "a").expect("it goes on here");
        assert!(share.given_back().is_empty(), "never while somebody works on it");
        drop(running);
        assert_eq!(share.given_back().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_stays_after_all_is_looked_at_again() {
        let (share, slots) = share(1);
        assert_eq!(share.news().await.len(), 1);
        share.let_go(&slots.iter().copied().collect());
        assert!(look_at(&share, slots[0], "a").is_none());
        share.let_go(&SlotSet::new());
        assert_eq!(share.news().await.len(), 1, "what was turned away meanwhile is looked at");
        assert!(look_at(&share, slots[0], "a").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_later_rests_and_is_read_anew() {
        let share = Arc::new(Share::new(Fence::default()));
        let slots: SlotSet = Slot::all().take(1).collect();
        share.take(&slots, false);
        let slot = slots.first().copied().expect("one");
        assert!(matches!(share.begin(slot, None), Turn::From(at) if at == Instant::now() + SETTLE));
        tokio::time::advance(SETTLE).await;
        assert!(look_at(&share, slot, "a").expect("ours").may_be_old);
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_waits_for_what_is_being_done() {
        let (share, slots) = share(1);
        let running = look_at(&share, slots[0], "a").expect("ours");
        assert!(!share.finish(Duration::from_secs(5)).await);
        assert!(look_at(&share, slots[0], "a").is_none());
        drop(running);
        assert_eq!(share.finish(Duration::from_secs(5)).now_or_never(), Some(true));
    }
}
