//! Tokens that are still good.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;

use crate::{IdentityError, Token};

/// A token is replaced so long before it ends: clocks differ, and a request takes its time.
const BEFORE_THE_END: Duration = Duration::from_secs(60);
/// Who was refused is not asked for again at once, however many wait for the token.
const PAUSE: Duration = Duration::from_secs(10);

type Slot = Arc<Mutex<Option<Answer>>>;

/// Tokens by who asks, each kept for as long as it is good. One at a time is asked for.
pub struct Tokens<K>(Mutex<Vec<(K, Slot)>>);

enum Answer {
    Given(Token),
    Refused(IdentityError, Instant),
}

impl<K> Default for Tokens<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + PartialEq> Tokens<K> {
    /// The token of who asks, the one that `ask` gets if there is none that is good. Blocking.
    ///
    /// # Errors
    /// There is none, and `ask` gets none, now or a moment ago.
    pub fn get_or_request(
        &self,
        who: &K,
        ask: impl FnOnce() -> Result<Token, IdentityError>,
    ) -> Result<String, IdentityError> {
        let slot = self.slot(who);
        let mut slot = slot.lock();
        match &*slot {
            Some(Answer::Given(token)) if token.expires > SystemTime::now() + BEFORE_THE_END => {
                return Ok(token.text.clone());
            }
            Some(Answer::Refused(error, at)) if at.elapsed() < PAUSE => return Err(error.clone()),
            _ => {}
        }
        match ask() {
            Ok(token) => {
                let text = token.text.clone();
                *slot = Some(Answer::Given(token));
                Ok(text)
            }
            Err(error) => {
                *slot = Some(Answer::Refused(error.clone(), Instant::now()));
                Err(error)
            }
        }
    }

    fn slot(&self, who: &K) -> Slot {
        let mut slots = self.0.lock();
        if let Some((_, slot)) = slots.iter().find(|(of, _)| of == who) {
            return slot.clone();
        }
        let slot = Slot::default();
        slots.push((who.clone(), slot.clone()));
        slot
    }
}
