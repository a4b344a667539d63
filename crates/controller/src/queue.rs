//! Which Application is looked at next: each by one worker at a time, at the time it is due.

use std::collections::{BTreeSet, HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};
use tiphys_model::{Application, names};
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tokio::{sync::Notify, time::Instant};

/// Namespace and name of an Application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl AppKey {
    /// The key of an Application.
    pub fn from_app(app: &Application) -> Self {
        Self { namespace: app.metadata.namespace.clone(), name: app.metadata.name.clone() }
    }

    /// The key of an object.
    pub(crate) fn of_object(object: &Value) -> Self {
        Self { namespace: object.namespace().to_owned(), name: object.name().to_owned() }
    }

    /// The key of the Application's object.
    pub(crate) fn of_application(&self) -> ResourceKey {
        ResourceKey::new(names::GROUP, "Application", &self.namespace, &self.name)
    }
}

/// How thoroughly an Application is looked at, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refresh {
    /// It is time to ask whether the sources have moved; nothing else is known to have changed.
    Poll,
    /// The live state changed: compare it with what was rendered last.
    #[default]
    LiveState,
    /// The sources may have changed: render if they did.
    Sources,
    /// Render whatever is known, ask remotes again.
    Hard,
}

impl Refresh {
    /// The level of one look for two reasons.
    fn and(self, other: Self) -> Self {
        let asks = self == Self::Poll || other == Self::Poll;
        let both = self.max(other);
        if asks && both == Self::LiveState { Self::Sources } else { both }
    }
}

#[derive(Default)]
struct State {
    /// Every waiting Application once, in one of the two, by the time it is due.
    order: BTreeSet<(Instant, AppKey)>,
    /// Those with an operation under way.
    begun_order: BTreeSet<(Instant, AppKey)>,
    waiting: HashMap<AppKey, (Instant, Refresh)>,
    running: HashSet<AppKey>,
    begun: HashSet<AppKey>,
    /// How many of those begun were taken one after the other.
    begun_in_turn: usize,
    closed: bool,
}

/// After so many Applications with an operation under way comes another one, if one is due: however many
/// there are that do not come to rest, all others are looked at.
const BEGUN_IN_TURN: usize = 3;

impl State {
    /// The order in which an Application waits.
    fn order_of(&mut self, key: &AppKey) -> &mut BTreeSet<(Instant, AppKey)> {
        if self.begun.contains(key) { &mut self.begun_order } else { &mut self.order }
    }

    /// The first of an order that nobody works on.
    fn first(&self, order: &BTreeSet<(Instant, AppKey)>) -> Option<(Instant, AppKey)> {
        order.iter().find(|(_, key)| !self.running.contains(key)).cloned()
    }

    /// Who comes next: what was begun is brought to an end before more is begun, which takes the least
    /// memory, and everybody but the last is done sooner.
    fn next(&self, now: Instant) -> Option<(Instant, AppKey)> {
        let (begun, other) = (self.first(&self.begun_order), self.first(&self.order));
        match (begun, other) {
            (Some(begun), Some(other)) => {
                let gives_way = self.begun_in_turn >= BEGUN_IN_TURN && other.0 <= now;
                Some(match begun.0 <= now {
                    true if gives_way => other,
                    true => begun,
                    false => begun.min(other),
                })
            }
            (begun, other) => begun.or(other),
        }
    }
}

/// Applications that wait to be looked at.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Notify,
}

impl Queue {
    /// Puts an Application in, or earlier and more thoroughly if it waits already.
    pub(crate) fn add(&self, key: AppKey, level: Refresh, due: Instant) {
        {
            let mut guard = self.lock();
            let state = &mut *guard;
            let (due, level) = match state.waiting.get(&key) {
                Some((known, wanted)) => (due.min(*known), level.and(*wanted)),
                None => (due, level),
            };
            let order = state.order_of(&key);
            order.insert((due, key.clone()));
            if let Some((known, _)) = state.waiting.insert(key.clone(), (due, level))
                && known != due
            {
                state.order_of(&key).remove(&(known, key));
            }
        }
        self.wake.notify_one();
    }

    /// The next Application that is due and that nobody works on; `None` once the queue is closed.
    /// Whoever gets one must give it back with [`Self::done`].
    pub(crate) async fn next(&self) -> Option<(AppKey, Refresh)> {
        loop {
            let due = match self.take(Instant::now()) {
                Taken::App(key, level) => return Some((key, level)),
                Taken::Closed => return None,
                Taken::Nothing(due) => due,
            };
            let woken = self.wake.notified();
            match due {
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, woken).await;
                }
                None => woken.await,
            }
        }
    }

    /// Ends the work on an Application, and says whether it has an operation under way.
    pub(crate) fn done(&self, key: &AppKey, is_under_way: bool) {
        {
            let mut guard = self.lock();
            let state = &mut *guard;
            state.running.remove(key);
            if state.begun.contains(key) != is_under_way {
                let waits = state.waiting.get(key).map(|(due, _)| (*due, key.clone()));
                if let Some(entry) = &waits {
                    state.order_of(key).remove(entry);
                }
                match is_under_way {
                    true => state.begun.insert(key.clone()),
                    false => state.begun.remove(key),
                };
                state.order_of(key).extend(waits);
            }
        }
        self.wake.notify_one();
    }

    /// How many are due and not begun.
    pub(crate) fn depth(&self) -> usize {
        let now = Instant::now();
        let state = self.lock();
        let due = |order: &BTreeSet<(Instant, AppKey)>| {
            let due = order.iter().take_while(|(due, _)| *due <= now);
            due.filter(|(_, key)| !state.running.contains(key)).count()
        };
        due(&state.order) + due(&state.begun_order)
    }

    /// Lets [`Self::next`] yield nothing more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    fn take(&self, now: Instant) -> Taken {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closed {
            return Taken::Closed;
        }
        match state.next(now) {
            Some((due, key)) if due <= now => {
                state.order_of(&key).remove(&(due, key.clone()));
                state.begun_in_turn = if state.begun.contains(&key) { state.begun_in_turn + 1 } else { 0 };
                let level = state.waiting.remove(&key).map_or(Refresh::default(), |(_, level)| level);
                state.running.insert(key.clone());
                Taken::App(key, level)
            }
            Some((due, _)) => Taken::Nothing(Some(due)),
            None => Taken::Nothing(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

enum Taken {
    App(AppKey, Refresh),
    Nothing(Option<Instant>),
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn key(name: &str) -> AppKey {
        AppKey { namespace: "argocd".into(), name: name.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn yields_in_order_of_time_and_merges() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add(key("late"), Refresh::LiveState, start + Duration::from_secs(60));
        queue.add(key("soon"), Refresh::LiveState, start + Duration::from_secs(1));
        queue.add(key("late"), Refresh::Hard, start + Duration::from_secs(30));
        assert_eq!(queue.next().await, Some((key("soon"), Refresh::LiveState)));
        assert_eq!(queue.next().await, Some((key("late"), Refresh::Hard)));
        assert_eq!(start.elapsed(), Duration::from_secs(30));
        queue.close();
        assert_eq!(queue.next().await, None);
    }

    #[test]
    fn who_asks_for_news_and_heard_of_changes_looks_at_both() {
        use Refresh::{Hard, LiveState, Poll, Sources};
        let cases = [
            (Poll, Poll, Poll),
            (Poll, LiveState, Sources),
            (LiveState, LiveState, LiveState),
            (Poll, Hard, Hard),
            (LiveState, Sources, Sources),
        ];
        for (one, other, both) in cases {
            assert_eq!((one.and(other), other.and(one)), (both, both));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_application_is_never_worked_on_twice_at_once() {
        let queue = Queue::default();
        queue.add(key("a"), Refresh::LiveState, Instant::now());
        assert!(queue.next().await.is_some());
        queue.add(key("a"), Refresh::Sources, Instant::now());
        let early = tokio::time::timeout(Duration::from_secs(5), queue.next()).await;
        assert!(early.is_err());
        queue.done(&key("a"), false);
        assert_eq!(queue.depth(), 1);
        assert_eq!(queue.next().await, Some((key("a"), Refresh::Sources)));
        queue.add(key("late"), Refresh::LiveState, Instant::now() + Duration::from_secs(60));
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_begun_comes_first_and_everybody_comes() {
        let queue = Queue::default();
        let now = Instant::now();
        for name in ["b1", "b2", "b3", "b4", "b5"] {
            queue.add(key(name), Refresh::LiveState, now);
            assert!(queue.next().await.is_some());
            queue.add(key(name), Refresh::LiveState, now + Duration::from_secs(1));
            queue.done(&key(name), true);
        }
        for name in ["n1", "n2"] {
            queue.add(key(name), Refresh::LiveState, now);
        }
        let taken = async || queue.next().await.unwrap().0.name;
        assert_eq!([taken().await, taken().await], ["n1", "n2"], "nothing else is due");
        queue.add(key("n3"), Refresh::LiveState, now);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!([taken().await, taken().await, taken().await], ["b1", "b2", "b3"]);
        assert_eq!([taken().await, taken().await, taken().await], ["n3", "b4", "b5"]);
        queue.add(key("b1"), Refresh::LiveState, now);
        queue.add(key("a"), Refresh::LiveState, now + Duration::from_secs(1));
        assert_eq!(queue.depth(), 1, "somebody works on the other");
        queue.done(&key("b1"), false);
        assert_eq!([taken().await, taken().await], ["b1", "a"], "it has ended");
    }
}
