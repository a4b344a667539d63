//! How often Git hosts are asked, and how they answer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{SourceError, error::shown};

/// What was asked of one repository.
#[derive(Clone, Debug, Default)]
pub struct GitRequests {
    /// How many fetches ended.
    pub count: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How long they took together, in seconds.
    pub seconds: f64,
    /// How many took no longer than each of [`Self::BOUNDS`].
    pub within: [u64; 6],
}

impl GitRequests {
    /// Times by which fetches are told apart, in seconds.
    pub const BOUNDS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

    fn note(&mut self, took: Duration, is_failed: bool) {
        let seconds = took.as_secs_f64();
        self.count += 1;
        self.failed += u64::from(is_failed);
        self.seconds += seconds;
        for (bound, within) in Self::BOUNDS.iter().zip(&mut self.within) {
            *within += u64::from(seconds <= *bound);
        }
    }
}

/// Counts of all repositories, by their addresses without logins; what fetches for a project shares them.
#[derive(Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<String, GitRequests>>>);

impl Counts {
    pub fn note(&self, url: &str, took: Duration, result: &Result<(), SourceError>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(shown(url)).or_default().note(took, result.is_err());
    }

    pub fn all(&self) -> BTreeMap<String, GitRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
