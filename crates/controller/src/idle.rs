//! An engine at rest: who has nothing to do is only asked whether its sources have moved, and what nobody
//! asks for takes less memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tiphys_value::ResourceKey;
use tokio::time::Instant;

use crate::{
    AppKey, Refresh, app_state::Memory, blocking::blocking, engine::Engine, reconcile::Next,
    rendering::Rendering, targets::Targets,
};

/// How long an Application at rest is not looked at as a whole. Every change that concerns it leads to such a
/// look; this is for what changes by time alone, such as the verdict of a health rule.
const WHOLE_LOOK: Duration = Duration::from_secs(3600);

/// How long it counts that a revision of a repository was seen to be where it was: thousands of Applications
/// read the same one, and to open a repository takes longer than all else that is done for an Application at
/// rest.
const SEEN: Duration = Duration::from_secs(2);

/// When revisions of repositories were last seen at a commit.
#[derive(Default)]
pub(crate) struct Sightings(Mutex<HashMap<Sighting, Instant>>);

/// Project, address, revision and commit.
type Sighting = (String, String, String, String);

impl Sightings {
    /// Whether something stands where it was: as it was seen a moment ago, or as is seen now.
    fn confirm(&self, sighting: Sighting, stands: impl FnOnce() -> bool) -> bool {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Whether an object may rest. All Secrets are looked through again and again, and most of one is a few long
/// texts, which take no more memory than what they are packed into.
fn may_rest(key: &ResourceKey) -> bool {
    !(key.group.is_empty() && key.kind == "Secret")
}

impl Engine {
    /// What follows for an Application at rest whose sources are where they were; `None` if it has to be
    /// looked at.
    pub(crate) async fn unmoved(self: &Arc<Self>, key: &AppKey) -> Option<Next> {
        if self.settings.sync.compat || self.hardened(key, Refresh::Sources) == Refresh::Hard {
            return None;
        }
        let known = self.memory().get(key)?.calm(WHOLE_LOOK)?.clone();
        let (engine, asked) = (self.clone(), known.clone());
        let stands = blocking(move || engine.stands(&asked)).await.unwrap_or_default();
        if !stands {
            return None;
        }
        self.metrics.unmoved();
        Some(self.follow_remotes(key, &known))
    }

    /// Whether all that a rendering read is at the commits that it was read at.
    fn stands(&self, known: &Rendering) -> bool {
        known.asked_for().is_some_and(|(project, reads)| {
            reads.iter().all(|read| {
                let texts = [project, &read.url, &read.revision, &read.commit];
                self.sightings.confirm(texts.map(str::to_owned).into(), || {
                    let checkout = self.repositories.checkout_for(project, &read.url, &read.revision);
                    checkout.is_ok_and(|checkout| checkout.revision == read.commit)
                })
            })
        })
    }

    /// Lets rest what nobody has asked for, if that was not done for a while.
    pub(crate) fn let_rest(self: &Arc<Self>) {
        let Some(after) = self.settings.rest_after else { return };
        {
            let mut last = self.rested.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() < after {
                return;
            }
            *last = Instant::now();
        }
        let engine = self.clone();
        tokio::spawn(async move {
            // What was not let rest now is the next time.
            let _ = blocking(move || engine.let_rest_now()).await;
        });
    }

    fn let_rest_now(&self) {
        let places = self.places.seen();
        places
            .iter()
            .filter_map(|seen| seen.place.as_ref())
            .for_each(|place| place.cache.pack_idle(may_rest));
        // Renderings share targets, which are told once.
        let targets: BTreeMap<*const Targets, Arc<Targets>> = {
            let memory = self.memory();
            let kept = memory.values().flat_map(Memory::renderings);
            kept.filter_map(|known| known.targets.as_ref().ok())
                .map(|targets| (Arc::as_ptr(targets), targets.clone()))
                .collect()
        };
        targets.values().for_each(|targets| targets.rest());
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
