//! What a render takes from outside: the clock, randomness, limits, the caller's own data.

use sha2::{Digest, Sha256};
use std::any::Any;
use std::cell::{Cell, RefCell};

use std::time::Instant;

use tiphys_value::RenderLimits;

use crate::{Clock, Memo, SystemClock};

/// Gives random bytes.
pub trait Entropy {
    /// Fills the buffer. `site` is equal for calls from the same place through the same chain of templates.
    fn fill(&self, site: u64, buffer: &mut [u8]);

    /// Whether equal seeds must give equal results; keys are then made from [`Entropy::fill`] alone.
    fn deterministic(&self) -> bool {
        false
    }

    /// Whether keys and hashes of passwords only have to be of the right form, because nobody is going to
    /// apply what is rendered.
    fn mocks_secrets(&self) -> bool {
        false
    }
}

/// Randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, _site: u64, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("the operating system gives random bytes");
    }
}

/// Bytes that depend only on a seed, the call site and how often that site was asked.
pub struct SeededEntropy {
    seed: [u8; 32],
    calls: RefCell<rustc_hash::FxHashMap<u64, u64>>,
    mocks_secrets: bool,
}

impl SeededEntropy {
    /// Entropy for a render that the parts identify (application, chart, …).
    pub fn new<S: AsRef<str>>(parts: impl IntoIterator<Item = S>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.as_ref().len() as u64).to_be_bytes());
            hash.update(part.as_ref());
        }
        Self::from_seed(hash.finalize().into())
    }

    /// Entropy that continues from bytes of another one.
    pub(crate) fn from_seed(seed: [u8; 32]) -> Self {
        Self { seed, calls: RefCell::default(), mocks_secrets: false }
    }

    /// The same, for a render that is only looked at: one key for all, and hashes that are made in no time.
    #[must_use]
    pub fn mocking_secrets(self, mocks_secrets: bool) -> Self {
        Self { mocks_secrets, ..self }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, site: u64, buffer: &mut [u8]) {
        let mut calls = self.calls.borrow_mut();
        let call = calls.entry(site).or_default();
        for (block, chunk) in buffer.chunks_mut(32).enumerate() {
            let mut hash = Sha256::new();
            hash.update(self.seed);
            for number in [site, *call, block as u64] {
                hash.update(number.to_be_bytes());
            }
            chunk.copy_from_slice(&hash.finalize()[..chunk.len()]);
        }
        *call += 1;
    }

    fn deterministic(&self) -> bool {
        true
    }

    fn mocks_secrets(&self) -> bool {
        self.mocks_secrets
    }
}

/// Bounds of a render.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How deep templates may call templates.
    pub depth: usize,
    /// Bytes of output, of all buffers together.
    pub output: usize,
    /// Nodes executed.
    pub steps: u64,
    /// When the render must have ended.
    pub deadline: Option<Instant>,
    /// Bytes of all that functions make and templates write, of all templates of the surroundings together,
    /// whether it is still used or not.
    pub memory: u64,
    /// Values that one call may go through.
    pub values: u64,
    /// Milliseconds, about, of all that functions do that is slow on purpose: finding keys, hashing
    /// passwords.
    pub work: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let RenderLimits { memory, time, .. } = RenderLimits::current();
        // Who allows twice the time or memory, allows twice of what takes it.
        let by_time = |count: u64| scaled(count, time.as_millis(), RenderLimits::DEFAULT.time.as_millis());
        let by_memory = |count: u64| scaled(count, memory.into(), RenderLimits::DEFAULT.memory.into());
        Self {
            depth: 10_000,
            output: usize::try_from(by_memory(64 << 20)).unwrap_or(usize::MAX),
            steps: by_time(200_000_000),
            deadline: None,
            // What templates make is mostly gone when their output is read.
            memory: memory / 2 * 5,
            values: by_memory(2_000_000),
            work: by_time(15_000),
        }
    }
}

/// A limit, changed as another one was.
fn scaled(limit: u64, now: u128, default: u128) -> u64 {
    u64::try_from(u128::from(limit).saturating_mul(now) / default).unwrap_or(u64::MAX)
}

/// Surroundings of a render.
pub struct Env<'e> {
    /// Time for `now` and certificates.
    pub clock: &'e dyn Clock,
    /// Randomness.
    pub entropy: &'e dyn Entropy,
    /// Bounds.
    pub limits: Limits,
    /// What was made so far, see [`Limits::memory`].
    pub made: Cell<u64>,
    /// What was worked so far, see [`Limits::work`].
    pub worked: Cell<u64>,
    /// What templates have written in these surroundings for data that lasts.
    pub memo: Memo,
    /// Whatever the caller's own functions need; see [`Context::user`](crate::Context::user).
    pub user: &'e dyn Any,
}

impl Env<'static> {
    /// The machine's clock and randomness, default limits, no data.
    pub fn system() -> Self {
        Self {
            clock: &SystemClock,
            entropy: &SystemEntropy,
            limits: Limits::default(),
            made: Cell::new(0),
            worked: Cell::new(0),
            memo: Memo::default(),
            user: &(),
        }
    }
}
