//! What keeps a host that fails from being asked again by everybody who needs it.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use crate::SourceError;

/// The pause after the first failure in a row; it doubles with each further one.
const FIRST: Duration = Duration::from_secs(2);
/// The longest pause, where answers are not asked for more often than that anyway.
const LONGEST: Duration = Duration::from_secs(60);

/// The most failures that are kept. Addresses come from repositories, which can make up as many as they like.
const MOST: usize = 10_000;

/// Failures that may pass, by what was asked for. A thousand Applications that read one repository ask a host
/// that is down as seldom as one does.
#[derive(Default)]
pub(crate) struct Pauses {
    longest: Duration,
    failed: Mutex<HashMap<String, Failure>>,
}

struct Failure {
    error: SourceError,
    at: Instant,
    in_a_row: u32,
}

impl Pauses {
    /// Where an answer is good for a time, no failure counts for longer; by default none does.
    pub(crate) fn with_freshness(fresh_for: Duration) -> Self {
        Self { longest: fresh_for.min(LONGEST), failed: Mutex::default() }
    }

    /// The answer to a question, or what it failed with a moment ago.
    ///
    /// # Errors
    /// That of the question.
    pub(crate) fn ask<T>(
        &self,
        what: &str,
        ask: impl FnOnce() -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        if let Some(error) = self.running(what) {
            return Err(error);
        }
        let answer = ask();
        self.record(what, answer.as_ref().err());
        answer
    }

    /// What something failed with, while it is not to be asked again.
    pub(crate) fn running(&self, what: &str) -> Option<SourceError> {
        let failed = self.failed();
        let failure = failed.get(what)?;
        (failure.at.elapsed() < pause(failure.in_a_row).min(self.longest)).then(|| failure.error.clone())
    }

    /// Everything may be asked again: somebody means now.
    pub(crate) fn end(&self) {
        self.failed().clear();
    }

    fn record(&self, what: &str, error: Option<&SourceError>) {
        let mut failed = self.failed();
        let Some(error) = error.filter(|error| error.is_transient()) else {
            failed.remove(what);
            return;
        };
        if failed.len() >= MOST {
            // What was not asked again for that long was not failing all the time: its next failure is a
            // first one.
            failed.retain(|_, failure| failure.at.elapsed() < 2 * LONGEST);
        }
        if failed.len() >= MOST && !failed.contains_key(what) {
            return;
        }
        let in_a_row = failed.get(what).map_or(0, |failure| failure.in_a_row) + 1;
        failed.insert(what.to_owned(), Failure { error: error.clone(), at: Instant::now(), in_a_row });
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<String, Failure>> {
        self.failed.lock()
    }
}

fn pause(in_a_row: u32) -> Duration {
    FIRST.saturating_mul(2_u32.saturating_pow(in_a_row.saturating_sub(1).min(16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_a_moment_ago_is_not_asked_again() {
        let pauses = Pauses::with_freshness(Duration::from_secs(3600));
        let asked = std::cell::Cell::new(0);
        let down = || {
            asked.set(asked.get() + 1);
            Err::<(), _>(SourceError::Fetch { url: "a".into(), reason: "down".into() })
        };
        for _ in 0..100 {
            assert!(pauses.ask("a", down).is_err());
        }
        assert_eq!(asked.get(), 1);
        assert!(pauses.ask("b", || Ok(())).is_ok(), "another address is another matter");
        pauses.end();
        assert!(pauses.ask("a", || Ok(())).is_ok() && pauses.running("a").is_none());
    }

    #[test]
    fn addresses_without_end_are_not_kept() {
        let pauses = Pauses::with_freshness(Duration::from_secs(3600));
        let down = || Err::<(), _>(SourceError::Fetch { url: "a".into(), reason: "down".into() });
        for at in 0..MOST + 10 {
            assert!(pauses.ask(&at.to_string(), down).is_err());
        }
        assert_eq!(pauses.failed().len(), MOST);
        assert!(pauses.running("0").is_some(), "those that are kept still count");
    }

    #[test]
    fn what_will_fail_again_is_no_reason_to_wait() {
        let pauses = Pauses::with_freshness(Duration::from_secs(3600));
        let denied = || Err::<(), _>(SourceError::Denied { url: "a".into(), status: 403 });
        assert!(pauses.ask("a", denied).is_err());
        assert!(pauses.running("a").is_none());
    }

    #[test]
    fn pauses_grow_as_long_as_an_answer_is_good_for() {
        assert_eq!([1, 2, 3, 4, 17, u32::MAX].map(|n| pause(n).as_secs()), [2, 4, 8, 16, 131_072, 131_072]);
        assert_eq!(Pauses::with_freshness(Duration::from_secs(3600)).longest, LONGEST);
        let none = Pauses::default();
        let down = || Err::<(), _>(SourceError::Fetch { url: "a".into(), reason: "down".into() });
        assert!(none.ask("a", down).is_err() && none.ask("a", || Ok(())).is_ok());
    }
}
