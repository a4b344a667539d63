//! Instants as the Kubernetes API writes them: RFC 3339, UTC, whole seconds.

use std::{fmt, sync::Arc, time::Duration};

pub use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Where time comes from. Waits are counted by tokio's clock; under a paused one both have to go together.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that asks a function.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

/// The machine's.
impl Default for Clock {
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// An instant on the wire (`metav1.Time`). Keeps whole seconds only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

impl Time {
    /// Reads RFC 3339 text; fractions of a second are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<Timestamp>().ok().map(Self::from)
    }

    /// The instant.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        Self(Timestamp::from_second(timestamp.as_second()).unwrap_or(timestamp))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no RFC 3339 time")))
    }
}

/// How long ago `then` was at `now`; zero if it lies in the future.
pub fn elapsed(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

/// `then` plus `duration`, or the last representable instant.
pub fn after(then: Timestamp, duration: Duration) -> Timestamp {
    then.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_whole_seconds_and_prints_utc() {
        let time = Time::parse("2026-02-03T04:05:06.789+01:00").expect("valid");
        assert_eq!(time.to_string(), "2026-02-03T03:05:06Z");
        assert!(Time::parse("yesterday").is_none());
    }

    #[test]
    fn elapsed_is_never_negative() {
        let (a, b) = (Timestamp::from_second(10).expect("valid"), Timestamp::from_second(25).expect("valid"));
        assert_eq!(elapsed(a, b), Duration::from_secs(15));
        assert_eq!(elapsed(b, a), Duration::ZERO);
        assert_eq!(after(Timestamp::MAX, Duration::from_secs(9)), Timestamp::MAX);
    }
}
