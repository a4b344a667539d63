//! Time that passes only when it is told to: hours in milliseconds, the same way every time.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use tiphys_apiserver::Clock;

use crate::Driver;

/// A clock that stands still until it is set. Give it to the API server that a [`Driver`] works on.
#[derive(Debug)]
pub struct VirtualClock(Mutex<Timestamp>);

impl VirtualClock {
    /// A clock that shows this time.
    pub fn starting_at(now: Timestamp) -> Arc<Self> {
        Arc::new(Self(Mutex::new(now)))
    }

    /// Sets the clock.
    pub fn set(&self, now: Timestamp) {
        *self.0.lock() = now;
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

impl Driver {
    /// Lets time pass on the clock of the driver's server, stopping wherever a controller wants to look at
    /// something.
    pub fn pass(&mut self, clock: &VirtualClock, duration: Duration) {
        let end = clock.now().checked_add(duration).unwrap_or(Timestamp::MAX);
        loop {
            let next = self.settle().filter(|at| *at < end);
            clock.set(next.unwrap_or(end));
            if next.is_none() {
                self.settle();
                return;
            }
        }
    }
}
