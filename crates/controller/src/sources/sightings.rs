//! Where revisions of repositories were seen a moment ago.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long it counts that a revision of a repository was seen to be where it was: thousands of Applications
/// read the same one, and to open a repository takes longer than all else that is done for an Application at
/// rest.
const SEEN: Duration = Duration::from_secs(2);

/// When revisions of repositories were last seen at a commit.
#[derive(Default)]
pub(super) struct Sightings(Mutex<HashMap<Sighting, Instant>>);

/// Project, address, revision and commit.
type Sighting = (String, String, String, String);

impl Sightings {
    /// Whether something stands where it was: as it was seen a moment ago, or as is seen now.
    pub(super) fn confirm(&self, sighting: Sighting, stands: impl FnOnce() -> bool) -> bool {
        let lock = || self.0.lock();
        if lock().get(&sighting).is_some_and(|at| at.elapsed() < SEEN) {
            return true;
        }
        let stands = stands();
        let mut seen = lock();
        seen.retain(|_, at| at.elapsed() < SEEN);
        if stands {
            seen.insert(sighting, Instant::now());
        }
        stands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_a_moment_ago_is_not_asked_again() {
        let sightings = Sightings::default();
        let sighting = |commit: &str| ["p", "https://g/a", "main", commit].map(str::to_owned).into();
        assert!(!sightings.confirm(sighting("1"), || false));
        assert!(sightings.confirm(sighting("1"), || true), "what was not there is asked for again");
        assert!(sightings.confirm(sighting("1"), || false), "it was there a moment ago");
        assert!(!sightings.confirm(sighting("2"), || false));
        tokio::time::advance(SEEN).await;
        assert!(!sightings.confirm(sighting("1"), || false));
    }
}
