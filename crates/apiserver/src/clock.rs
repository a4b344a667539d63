//! Where the server takes time and randomness from. Both are injected, so that a run under a paused
//! tokio clock with a fixed seed is the same every time.

use std::{
    hash::{BuildHasher, Hasher},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// Wall time that advances with [`tokio::time::Instant`]: under a paused runtime it is virtual time.
#[derive(Clone, Debug)]
pub struct TokioClock {
    epoch: Timestamp,
    started: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that shows `epoch` at the moment of this call.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, started: tokio::time::Instant::now() }
    }

    /// A clock that starts at the machine's wall time.
    pub fn wall() -> Self {
        Self::starting_at(Timestamp::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

/// A seedable source of uids and name suffixes (SplitMix64). Not for secrets.
#[derive(Debug)]
pub struct Entropy {
    state: Mutex<u64>,
}

/// The letters that Kubernetes uses for generated names: no vowels, nothing that reads as another.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Entropy {
    /// A source whose whole output follows from `seed`.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: Mutex::new(seed) }
    }

    /// A seed that differs from process to process.
    pub(crate) fn random_seed() -> u64 {
        std::hash::RandomState::new().build_hasher().finish()
    }

    /// An independent source that continues from the same state: forks see the same numbers.
    pub fn fork(&self) -> Self {
        Self::from_seed(*self.lock())
    }

    /// The next 64 bits.
    pub fn next_u64(&self) -> u64 {
        let mut state = self.lock();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random (version 4) UUID in its usual spelling.
    pub fn uuid(&self) -> String {
        let high = self.next_u64();
        let low = self.next_u64();
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0x0fff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// `length` characters for a generated name.
    pub fn suffix(&self, length: usize) -> String {
        let size = SUFFIX_ALPHABET.len() as u64;
        (0..length).map(|_| char::from(SUFFIX_ALPHABET[(self.next_u64() % size) as usize])).collect()
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.state.lock()
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// `2026-11-21T03:53:29Z`: how Kubernetes writes `metav1.Time`.
pub fn rfc3339_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2026-11-21T03:53:29.000001Z`: how Kubernetes writes `metav1.MicroTime`.
pub fn rfc3339_micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_ids() {
        let (a, b) = (Entropy::from_seed(7), Entropy::from_seed(7));
        assert_eq!(a.uuid(), b.uuid());
        assert_eq!(a.fork().suffix(5), b.suffix(5));
        assert_ne!(a.uuid(), a.uuid());
    }

    #[test]
    fn uuid_is_version_4() {
        let uuid = Entropy::from_seed(1).uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
    }

    #[test]
    fn writes_times_as_kubernetes_does() {
        let at: Timestamp = "2026-11-21T03:53:29.1234567Z".parse().unwrap();
        assert_eq!(rfc3339_seconds(at), "2026-11-21T03:53:29Z");
        assert_eq!(rfc3339_micros(at), "2026-11-21T03:53:29.123456Z");
    }
}
