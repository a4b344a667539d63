//! What a build makes, counted. One operation of a patch may copy a part of an object into itself, and sixty
//! of them are more than any memory holds; a few kilobytes of names, values or patches may be meant for every
//! object there is.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tiphys_value::RenderLimits;

use crate::{
    error::{Error, ErrorKind},
    node::{Content, MAX_DEPTH, Node},
};

/// What a node takes beside its text, in bytes, about.
const NODE: usize = 64;

/// So many steps are made between two looks at the clock.
const STEPS: u32 = 256;

/// Counts the bytes that a build makes, whether they are still used or not, and its time.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: u64,
    made: Cell<u64>,
    time: Duration,
    begun: Instant,
    steps: Cell<u32>,
    waited: Waited,
}

/// The time for which a build waited for what has limits of its own: networks, charts and functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waited(Arc<AtomicU64>);

impl Waited {
    /// Does something whose time is not the build's.
    #[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no output")]
    pub(crate) fn during<T>(&self, wait: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let found = wait();
        self.0.fetch_add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
        found
    }
}

impl Meter {
    /// A meter that refuses more than `limit` bytes and more than `time`, from now on.
    #[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no output")]
    pub(crate) fn new(limit: u64, time: Duration) -> Self {
        Self {
            limit,
            made: Cell::new(0),
            time,
            begun: Instant::now(),
            steps: Cell::new(0),
            waited: Waited::default(),
        }
    }

    /// What takes the time that is not the build's.
    pub(crate) fn waited(&self) -> &Waited {
        &self.waited
    }

    /// Counts a step of a loop that somebody's input makes long.
    ///
    /// # Errors
    /// The time is over.
    pub(crate) fn step(&self) -> Result<(), String> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps % STEPS);
        if steps == STEPS { self.check_time() } else { Ok(()) }
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// The time is over.
    #[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no output")]
    pub(crate) fn check_time(&self) -> Result<(), String> {
        let waited = Duration::from_nanos(self.waited.0.load(Relaxed));
        if self.begun.elapsed().saturating_sub(waited) < self.time {
            return Ok(());
        }
        RenderLimits::note_expired();
        let [_, flag, _] = RenderLimits::FLAGS;
        Err(format!("the build takes longer than {} s; {flag} raises the limit", self.time.as_secs()))
    }

    /// Counts bytes.
    ///
    /// # Errors
    /// They are too many.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), String> {
        let made = self.made.get().saturating_add(bytes as u64);
        self.made.set(made);
        if made > self.limit {
            let [flag, ..] = RenderLimits::FLAGS;
            return Err(format!(
                "the build makes more than {} MiB; {flag} raises the limit",
                self.limit >> 20
            ));
        }
        self.step()
    }

    /// Counts a node that is put below others, so many steps from the root.
    ///
    /// # Errors
    /// It is too large, or its end is too deep.
    pub(crate) fn take_node(&self, node: &Node, steps: usize) -> Result<(), String> {
        self.take(weigh(node, steps)?)
    }

    /// The limit as the error of a build.
    ///
    /// # Errors
    /// Always that of [`Self::take`], if it is one.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), Error> {
        self.take(bytes).map_err(|message| Error::new(ErrorKind::Limit, message))
    }
}

/// The bytes that a node takes, about; its texts count as if they were not shared, as in what is printed.
///
/// # Errors
/// It is nested too deeply.
fn weigh(node: &Node, depth: usize) -> Result<usize, String> {
    if depth > MAX_DEPTH {
        return Err(format!("exceeded max depth of {MAX_DEPTH}"));
    }
    let below = match &node.content {
        Content::Scalar(text) => text.len(),
        Content::Map(pairs) => {
            let pair = |(key, value): &(Node, Node)| Ok(weigh(key, depth + 1)? + weigh(value, depth + 1)?);
            pairs.iter().map(pair).sum::<Result<usize, String>>()?
        }
        Content::Seq(items) => {
            items.iter().map(|item| weigh(item, depth + 1)).sum::<Result<usize, String>>()?
        }
    };
    Ok(NODE + below)
}

/// Refuses paths with more steps than an object may have levels.
///
/// # Errors
/// The limit, named.
pub(crate) fn check_steps(steps: usize) -> Result<(), String> {
    match steps > MAX_DEPTH {
        true => Err(format!("a path of {steps} steps exceeds the max depth of {MAX_DEPTH}")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_build_ends_and_waiting_is_none_of_it() {
        let meter = Meter::new(u64::MAX, Duration::ZERO);
        let fault = (0..STEPS).find_map(|_| meter.step().err()).expect("the time is over");
        assert_eq!(fault, "the build takes longer than 0 s; --limit-time raises the limit");
        let meter = Meter::new(u64::MAX, Duration::from_secs(3_000));
        assert!(meter.check_time().is_ok());
        let before = meter.waited.0.load(Relaxed);
        meter.waited().during(|| std::thread::sleep(Duration::from_millis(1)));
        assert!(meter.waited.0.load(Relaxed) >= before + 1_000_000);
    }
}
