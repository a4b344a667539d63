//! How often Git hosts are asked, and how they answer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::{SourceError, error::without_credentials};

/// What was asked of one repository.
#[derive(Clone, Debug, Default)]
pub struct GitRequests {
    /// How long fetches took that ended.
    pub took: Histogram,
    /// How many of them failed.
    pub failed: u64,
}

/// How long something took that is done often, as Prometheus' histograms have it.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// How often it was done.
    pub count: u64,
    /// How long that took together, in seconds.
    pub seconds: f64,
    /// How often it took no longer than each of [`Self::BOUNDS`].
    pub within: [u64; 6],
}

impl Histogram {
    /// The times that are distinguished, in seconds: Argo CD's of its looks at Applications (Argo CD docs,
    /// "Metrics").
    pub const BOUNDS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

    /// Notes how long it took once more.
    pub fn record(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.count += 1;
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
    pub(crate) fn record_request(&self, url: &str, took: Duration, result: &Result<(), SourceError>) {
        let mut all = self.0.lock();
        let asked = all.entry(without_credentials(url)).or_default();
        asked.took.record(took);
        asked.failed += u64::from(result.is_err());
    }

    pub(crate) fn all(&self) -> BTreeMap<String, GitRequests> {
        self.0.lock().clone()
    }
}
