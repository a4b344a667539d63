//! Instants as the Kubernetes API writes them: RFC 3339, UTC, whole seconds.

use std::{fmt, sync::Arc, time::Duration};

pub use jiff::Timestamp;
use jiff::{SignedDuration, civil::DateTime, tz::Offset};
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
#[allow(clippy::disallowed_methods, reason = "the clock of whoever passes none in")]
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
///
/// Kept as UTC shows it, for that holds all that the wire does: the last day of the year 9999 is beyond the
/// last [`Timestamp`], and stands in objects for "never".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(DateTime);

impl Time {
    /// Reads RFC 3339 text; fractions of a second are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<Timestamp>().ok().map(Self::from).or_else(|| Self::beyond(text))
    }

    /// Reads what is beyond the last timestamp.
    fn beyond(text: &str) -> Option<Self> {
        let (clock, offset) = match text.strip_suffix(['Z', 'z']) {
            Some(clock) => (clock, SignedDuration::ZERO),
            None => {
                let (clock, offset) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
                (clock, offset_of(offset)?)
            }
        };
        // A date alone is no instant.
        let shown: DateTime = clock.parse().ok().filter(|_| clock.len() >= "9999-12-31T23:59:59".len())?;
        shown.checked_sub(offset).ok().and_then(whole).map(Self)
    }

    /// The instant, or the last one that there is.
    pub fn timestamp(self) -> Timestamp {
        Offset::UTC.to_timestamp(self.0).unwrap_or(Timestamp::MAX)
    }
}

/// A clock without its fraction of a second.
fn whole(shown: DateTime) -> Option<DateTime> {
    shown.with().subsec_nanosecond(0).build().ok()
}

/// How far a zone's clocks are ahead.
fn offset_of(text: &str) -> Option<SignedDuration> {
    let (sign, ahead) = text.split_at_checked(1)?;
    let (hours, minutes) = ahead.split_once(':')?;
    let number =
        |text: &str| text.parse::<i64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let ahead = SignedDuration::from_secs(number(hours)? * 3600 + number(minutes)? * 60);
    match sign {
        "+" => Some(ahead),
        "-" => Some(-ahead),
        _ => None,
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        let shown = Offset::UTC.to_datetime(timestamp);
        Self(whole(shown).unwrap_or(shown))
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
    fn the_last_day_of_all_is_a_time() {
        for (text, shown) in [
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59Z"),
            ("9999-12-31T23:59:59+01:30", "9999-12-31T22:29:59Z"),
            ("9999-12-30T23:00:00-01:00", "9999-12-31T00:00:00Z"),
        ] {
            let time = Time::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(time.to_string(), shown);
            assert!(time.timestamp() > Time::parse("9999-12-29T00:00:00Z").expect("valid").timestamp());
        }
        let (last, before) = (Time::parse("9999-12-31T23:59:59Z"), Time::parse("9999-12-31T23:59:58Z"));
        assert!(last > before);
        for text in
            ["9999-12-31", "9999-12-31Z", "9999-12-31T23:59:60+1:00", "9999-12-32T00:00:00Z", "Z", "é"]
        {
            assert!(Time::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn elapsed_is_never_negative() {
        let (a, b) = (Timestamp::from_second(10).expect("valid"), Timestamp::from_second(25).expect("valid"));
        assert_eq!(elapsed(a, b), Duration::from_secs(15));
        assert_eq!(elapsed(b, a), Duration::ZERO);
        assert_eq!(after(Timestamp::MAX, Duration::from_secs(9)), Timestamp::MAX);
    }
}
