//! What tells templates the time and the zone.

use std::sync::LazyLock;
use std::time::Instant;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Tells the time.
pub trait Clock {
    /// The time now.
    fn now(&self) -> Timestamp;
    /// The nanoseconds that a clock shows which is never set, since about when the program began; a clock
    /// that is no real one has none.
    fn monotonic(&self) -> Option<i64> {
        None
    }
    /// The zone that Go calls `Local`.
    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

/// A clock that stands still.
#[derive(Clone, Debug)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// The machine's clock and zone.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// When the machine's clock was first asked for.
#[allow(clippy::disallowed_methods, reason = "the clock of whoever passes none in")]
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

#[allow(clippy::disallowed_methods, reason = "the clock of whoever passes none in")]
impl Clock for SystemClock {
    fn monotonic(&self) -> Option<i64> {
        i64::try_from(BEGINNING.elapsed().as_nanos()).ok()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }
}
