//! What rendering one Application, chart, kustomization or ApplicationSet may take. Real repositories stay
//! far below; who has a larger one raises the limit by a flag that every message names.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Limits on what one rendering may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderLimits {
    /// Bytes of memory that values and objects may fill, counted where they are made.
    pub memory: u64,
    /// How long templates, generators and other programs of a repository may run.
    pub time: Duration,
    /// How many objects one Application may have.
    pub objects: usize,
}

/// Set once, where the process begins.
static CURRENT: OnceLock<RenderLimits> = OnceLock::new();

/// How often a program of a repository was stopped because its time was over.
static EXPIRED: AtomicUsize = AtomicUsize::new(0);

impl RenderLimits {
    /// What applies unless somebody says otherwise. The largest bundle of definitions in use takes half of
    /// the memory, the largest Applications take a fifth and have some 3,000 objects, and the largest charts
    /// render in a fraction of a second.
    pub const DEFAULT: Self = Self { memory: 256 << 20, time: Duration::from_secs(10), objects: 16_000 };

    /// The flags by which the command line sets memory, time and objects, for messages.
    pub const FLAGS: [&'static str; 3] = ["--limit-memory", "--limit-time", "--limit-objects"];

    /// The limits of this process.
    pub fn current() -> Self {
        *CURRENT.get_or_init(|| Self::DEFAULT)
    }

    /// Notes that a program of a repository was stopped because its time was over.
    pub fn note_expired() {
        EXPIRED.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was noted in this process. Each Application may take its time, and many take it
    /// together: who renders all of a repository looks at this, and stops.
    pub fn expired() -> usize {
        EXPIRED.load(Ordering::Relaxed)
    }

    /// Sets the limits of this process. Whoever comes after the first call, or after the first rendering,
    /// changes nothing.
    pub fn set(self) {
        let _ = CURRENT.set(self);
    }
}

impl Default for RenderLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
