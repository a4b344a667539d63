//! Which Application is looked at next: each by one worker at a time, at the time it is due.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use tiphys_model::Application;
use tiphys_value::{ObjectExt, Value};
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
    pub fn of(app: &Application) -> Self {
        Self { namespace: app.metadata.namespace.clone(), name: app.metadata.name.clone() }
    }

    /// The key of an object.
    pub(crate) fn of_object(object: &Value) -> Self {
        Self { namespace: object.namespace().to_owned(), name: object.name().to_owned() }
    }
}

/// How thoroughly an Application is looked at, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The live state changed: compare it with what was rendered last.
    #[default]
    Live,
    /// The sources may have changed: render if they did.
    Sources,
    /// Render whatever is known, ask remotes again.
    Hard,
}

#[derive(Default)]
struct State {
    /// Every waiting Application once, by the time it is due.
    order: BTreeSet<(Instant, AppKey)>,
    waiting: HashMap<AppKey, (Instant, Level)>,
    running: HashSet<AppKey>,
    closed: bool,
}

/// Applications that wait to be looked at.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Notify,
}

impl Queue {
    /// Puts an Application in, or earlier and more thoroughly if it waits already.
    pub fn add(&self, key: AppKey, level: Level, due: Instant) {
        {
            let mut guard = self.lock();
            let state = &mut *guard;
            let (due, level) = match state.waiting.get(&key) {
                Some((known, wanted)) => (due.min(*known), level.max(*wanted)),
                None => (due, level),
            };
            if let Some((known, _)) = state.waiting.insert(key.clone(), (due, level)) {
                state.order.remove(&(known, key.clone()));
            }
            state.order.insert((due, key));
        }
        self.wake.notify_one();
    }

    /// The next Application that is due and that nobody works on; `None` once the queue is closed.
    /// Whoever gets one must give it back with [`Self::done`].
    pub async fn next(&self) -> Option<(AppKey, Level)> {
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

    /// Ends the work on an Application.
    pub fn done(&self, key: &AppKey) {
        self.lock().running.remove(key);
        self.wake.notify_one();
    }

    /// How many are due and not begun.
    pub fn depth(&self) -> usize {
        let now = Instant::now();
        let state = self.lock();
        state
            .order
            .iter()
            .take_while(|(due, _)| *due <= now)
            .filter(|(_, key)| !state.running.contains(key))
            .count()
    }

    /// Lets [`Self::next`] yield nothing more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    fn take(&self, now: Instant) -> Taken {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closed {
            return Taken::Closed;
        }
        let free = state.order.iter().find(|(_, key)| !state.running.contains(key)).cloned();
        match free {
            Some((due, key)) if due <= now => {
                state.order.remove(&(due, key.clone()));
                let level = state.waiting.remove(&key).map_or(Level::default(), |(_, level)| level);
                state.running.insert(key.clone());
                Taken::App(key, level)
            }
            Some((due, _)) => Taken::Nothing(Some(due)),
            None => Taken::Nothing(None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Taken {
    App(AppKey, Level),
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
        queue.add(key("late"), Level::Live, start + Duration::from_secs(60));
        queue.add(key("soon"), Level::Live, start + Duration::from_secs(1));
        queue.add(key("late"), Level::Hard, start + Duration::from_secs(30));
        assert_eq!(queue.next().await, Some((key("soon"), Level::Live)));
        assert_eq!(queue.next().await, Some((key("late"), Level::Hard)));
        assert_eq!(start.elapsed(), Duration::from_secs(30));
        queue.close();
        assert_eq!(queue.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_application_is_never_worked_on_twice_at_once() {
        let queue = Queue::default();
        queue.add(key("a"), Level::Live, Instant::now());
        assert!(queue.next().await.is_some());
        queue.add(key("a"), Level::Sources, Instant::now());
        let early = tokio::time::timeout(Duration::from_secs(5), queue.next()).await;
        assert!(early.is_err());
        queue.done(&key("a"));
        assert_eq!(queue.depth(), 1);
        assert_eq!(queue.next().await, Some((key("a"), Level::Sources)));
        queue.add(key("late"), Level::Live, Instant::now() + Duration::from_secs(60));
        assert_eq!(queue.depth(), 0);
    }
}
