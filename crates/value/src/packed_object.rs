//! Objects that are kept for long and rarely looked at.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// An object that is kept as JSON text while nobody asks for it: a tree of maps takes some ten times as much
/// memory.
///
/// Only objects that read back as the very same are kept so; which are not (numbers that lose a digit, trees
/// too deep for the parser) stay as they are.
#[derive(Debug)]
pub struct Resting(Mutex<State>);

#[derive(Debug)]
enum State {
    Open {
        object: Arc<Value>,
        /// Whether somebody asked for it since it was last to rest.
        asked: bool,
    },
    /// What does not read back as the same.
    Whole(Arc<Value>),
    Packed(Box<[u8]>),
}

impl State {
    fn object(&self) -> Arc<Value> {
        match self {
            Self::Open { object, .. } | Self::Whole(object) => object.clone(),
            Self::Packed(text) => {
                Arc::new(serde_json::from_slice(text).expect("it was read back before it was kept"))
            }
        }
    }
}

impl Resting {
    /// Keeps an object, which may rest.
    pub fn new(object: Arc<Value>) -> Self {
        Self(Mutex::new(State::Open { object, asked: false }))
    }

    /// The object, which does not rest while it is asked for; and whether it rested until now.
    pub fn get(&self) -> (Arc<Value>, bool) {
        let mut state = self.lock();
        let object = state.object();
        let rested = match &mut *state {
            State::Open { asked, .. } => {
                *asked = true;
                false
            }
            State::Whole(_) => false,
            State::Packed(_) => {
                *state = State::Open { object: object.clone(), asked: true };
                true
            }
        };
        (object, rested)
    }

    /// The object for somebody who looks through all of them: it rests on.
    pub fn peek(&self) -> Arc<Value> {
        self.lock().object()
    }

    /// The object, for good.
    pub fn into_object(self) -> Arc<Value> {
        self.0.into_inner().object()
    }

    /// Lets the object rest unless it was asked for since this was last called, or is still in use. Whether
    /// nothing is left to do until it is asked for again.
    pub fn pack_if_idle(&self) -> bool {
        let mut state = self.lock();
        let State::Open { object, asked } = &mut *state else { return true };
        if std::mem::take(asked) || Arc::strong_count(object) > 1 {
            return false;
        }
        *state = packed(object).map_or_else(|| State::Whole(object.clone()), State::Packed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// An object as text, if that reads back as the same.
fn packed(object: &Value) -> Option<Box<[u8]>> {
    let text = serde_json::to_vec(object).ok()?;
    let same = serde_json::from_slice::<Value>(&text).is_ok_and(|read| read == *object);
    same.then(|| text.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_packed(resting: &Resting) -> bool {
        matches!(*resting.lock(), State::Packed(_))
    }

    #[test]
    fn who_is_not_asked_for_rests_and_reads_back_the_same() {
        let object =
            json!({"metadata": {"name": "a", "labels": {}}, "n": [1, -2, 1.5, u64::MAX, null, "\u{1}"]});
        let resting = Resting::new(Arc::new(object.clone()));
        assert!(resting.pack_if_idle() && is_packed(&resting));
        assert_eq!(*resting.peek(), object);
        assert!(is_packed(&resting), "a look does not wake it");
        let (read, rested) = resting.get();
        assert!(rested && *read == object);
        drop(read);
        assert!(!resting.get().1);
        assert!(!resting.pack_if_idle() && !is_packed(&resting), "it was asked for");
        assert!(resting.pack_if_idle() && is_packed(&resting));
        assert_eq!(*resting.into_object(), object);
    }

    #[test]
    fn what_is_in_use_or_does_not_read_back_stays() {
        let used = Resting::new(Arc::new(json!({})));
        let user = used.get().0;
        assert!((0..3).all(|_| !used.pack_if_idle()));
        drop(user);
        assert!(used.pack_if_idle() && is_packed(&used));
        let deep = (0..200).fold(json!(0), |inner, _| json!([inner]));
        let resting = Resting::new(Arc::new(deep.clone()));
        assert!(resting.pack_if_idle() && !is_packed(&resting));
        assert!(*resting.get().0 == deep && resting.pack_if_idle());
    }
}
