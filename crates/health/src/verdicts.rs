//! What users' scripts have said of objects that have not changed since: to run one takes longer than all
//! else that is asked about an object, and an owner of many objects asks about each of them whenever one
//! changes.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use rustc_hash::FxHasher;
use serde_json::Value;
use tiphys_model::{Clock, HealthStatus};
use tiphys_value::ObjectExt;

/// How many objects are remembered. A verdict takes some hundred bytes.
const MAX_OBJECTS: usize = 50_000;

/// The last verdict on each object, by its uid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts(Arc<Mutex<HashMap<String, Verdict>>>);

#[derive(Debug)]
struct Verdict {
    /// Stands for the whole object: its version alone does not tell whether it is read as `v1` or `v1beta1`.
    content: u64,
    health: Option<HealthStatus>,
}

impl Verdicts {
    /// The verdict on an object as it is now, or else what `judge` says with the clock that it is given.
    /// What asks for the time is not remembered, nor is a failure: whether a script takes too long is not the
    /// object's alone.
    ///
    /// # Errors
    /// Those of `judge`.
    pub(crate) fn get_or_judge<E>(
        &self,
        object: &Value,
        clock: &Clock,
        judge: impl FnOnce(&Clock) -> Result<Option<HealthStatus>, E>,
    ) -> Result<Option<HealthStatus>, E> {
        let uid = object.uid();
        if uid.is_empty() {
            return judge(clock);
        }
        let content = content_of(object);
        let known = self.0.lock();
        if let Some(verdict) = known.get(uid).filter(|verdict| verdict.content == content) {
            return Ok(verdict.health.clone());
        }
        drop(known);
        let is_timeless = Arc::new(AtomicBool::new(true));
        let health = judge(&noticing(clock, &is_timeless))?;
        if is_timeless.load(Ordering::Relaxed) {
            let mut known = self.0.lock();
            if known.len() >= MAX_OBJECTS {
                known.clear();
            }
            known.insert(uid.to_owned(), Verdict { content, health: health.clone() });
        }
        Ok(health)
    }
}

/// A clock that takes a note away when it is asked.
fn noticing(clock: &Clock, is_timeless: &Arc<AtomicBool>) -> Clock {
    let (clock, is_timeless) = (clock.clone(), is_timeless.clone());
    Clock::new(move || {
        is_timeless.store(false, Ordering::Relaxed);
        clock.now()
    })
}

fn content_of(object: &Value) -> u64 {
    let mut hasher = FxHasher::default();
    object.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;
    use tiphys_model::{HealthCode, Timestamp};

    use super::*;

    fn object(phase: &str) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": "1"}, "status": {"phase": phase}})
    }

    #[test]
    fn the_same_object_is_judged_once_and_a_changed_one_again() {
        let (verdicts, clock) = (Verdicts::default(), Clock::new(|| Timestamp::UNIX_EPOCH));
        let judged = Cell::new(0);
        let of = |phase: &str| {
            let judge = |_: &Clock| -> Result<_, ()> {
                judged.set(judged.get() + 1);
                Ok(Some(HealthStatus::new(HealthCode::Healthy, phase)))
            };
            let health = verdicts.get_or_judge(&object(phase), &clock, judge).unwrap();
            (health.unwrap().message, judged.get())
        };
        assert_eq!(of("a"), ("a".into(), 1));
        assert_eq!(of("a"), ("a".into(), 1));
        assert_eq!(of("b"), ("b".into(), 2));
        assert_eq!(of("a"), ("a".into(), 3));
    }

    #[test]
    fn what_asks_for_the_time_or_fails_is_judged_each_time() {
        let (verdicts, clock) = (Verdicts::default(), Clock::new(|| Timestamp::UNIX_EPOCH));
        let judged = Cell::new(0);
        let of = |fails: bool| {
            let judge = |clock: &Clock| {
                judged.set(judged.get() + 1);
                if fails {
                    Err("slow")
                } else {
                    Ok(Some(HealthStatus::new(HealthCode::Healthy, clock.now().to_string())))
                }
            };
            let _ = verdicts.get_or_judge(&object("a"), &clock, judge);
            judged.get()
        };
        assert_eq!([of(false), of(false), of(true), of(true)], [1, 2, 3, 4]);
    }
}
