//! Tokens that are still good.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use crate::{Identity, IdentityError, Token};

/// A token is replaced so long before it ends: clocks differ, and a request takes its time.
const BEFORE_THE_END: Duration = Duration::from_secs(60);
/// Who was refused is not asked for again at once, however many wait for the token.
const PAUSE: Duration = Duration::from_secs(10);

type Slot = Arc<Mutex<Option<Answer>>>;

/// Tokens by identity, each kept for as long as it is good. One at a time is asked for.
#[derive(Default)]
pub struct Tokens(Mutex<Vec<(Identity, Slot)>>);

enum Answer {
    Given(Token),
    Refused(IdentityError, Instant),
}

impl Tokens {
    /// The token of an identity, a new one if there is none that is good. Blocking.
    ///
    /// # Errors
    /// There is none, and the cloud gives none, now or a moment ago.
    pub fn of(
        &self,
        identity: &Identity,
        client: impl FnOnce() -> Result<reqwest::blocking::Client, IdentityError>,
    ) -> Result<String, IdentityError> {
        let slot = self.slot(identity);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some(Answer::Given(token)) if token.expires > SystemTime::now() + BEFORE_THE_END => {
                return Ok(token.text.clone());
            }
            Some(Answer::Refused(error, at)) if at.elapsed() < PAUSE => return Err(error.clone()),
            _ => {}
        }
        match client().and_then(|client| identity.token(&client)) {
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

    fn slot(&self, identity: &Identity) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, slot)) = slots.iter().find(|(of, _)| of == identity) {
            return slot.clone();
        }
        let slot = Slot::default();
        slots.push((identity.clone(), slot.clone()));
        slot
    }
}
