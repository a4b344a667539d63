//! Times, layouts and durations as Go's `time` knows them.

mod duration;
mod format;
mod layout;
mod parse;

pub use duration::{Duration, DurationError};
pub use parse::ParseError;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use std::sync::LazyLock;

/// A zone by its name, which counts with its case. The database is part of the program, so every machine
/// knows the same zones.
pub fn zone(name: &str) -> Option<TimeZone> {
    static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    BUNDLED.get(name).ok().filter(|zone| zone.iana_name() == Some(name))
}

/// A time zone.
#[derive(Clone, Debug)]
pub enum Zone {
    /// UTC
    Utc,
    /// The machine's zone, which may be UTC by another name.
    Local(TimeZone),
    /// A zone of the tz database.
    Rules(TimeZone),
    /// A fixed offset in seconds east of UTC, with the name it had in the text, perhaps empty.
    Fixed(String, i32),
}

impl Zone {
    /// `time.LoadLocation`; `local` is what `Local` means. Nothing if there is no such zone.
    pub fn load(name: &str, local: &TimeZone) -> Option<Self> {
        match name {
            "" | "UTC" => Some(Self::Utc),
            "Local" => Some(Self::Local(local.clone())),
            name => zone(name).map(Self::Rules),
        }
    }

    /// Name and offset in seconds at an instant.
    fn name_and_offset(&self, instant: Timestamp) -> (String, i32) {
        match self {
            Self::Utc => ("UTC".to_owned(), 0),
            Self::Local(zone) | Self::Rules(zone) => {
                let info = zone.to_offset_info(instant);
                (info.abbreviation().to_owned(), info.offset().seconds())
            }
            Self::Fixed(name, offset) => (name.clone(), *offset),
        }
    }

    /// The instant at which clocks in the zone show a time; the earlier one where clocks are set back.
    fn instant(&self, civil: DateTime) -> Option<Timestamp> {
        match self {
            Self::Local(zone) | Self::Rules(zone) => zone.to_ambiguous_timestamp(civil).compatible().ok(),
            Self::Utc => Offset::UTC.to_timestamp(civil).ok(),
            Self::Fixed(_, offset) => Offset::from_seconds(*offset).ok()?.to_timestamp(civil).ok(),
        }
    }
}

/// An instant and the zone it is shown in.
#[derive(Clone, Debug)]
pub struct Time {
    /// The instant.
    pub instant: Timestamp,
    /// The zone.
    pub zone: Zone,
    /// What the monotonic clock showed, in nanoseconds since the program began; only a reading of the clock
    /// has it.
    monotonic: Option<i64>,
}

impl Time {
    /// A time in a zone.
    pub fn new(instant: Timestamp, zone: Zone) -> Self {
        Self { instant, zone, monotonic: None }
    }

    /// A reading of the clock in a zone, with that of the monotonic clock.
    pub fn read(instant: Timestamp, zone: Zone, monotonic: Option<i64>) -> Self {
        Self { instant, zone, monotonic }
    }

    /// Seconds since 1970 in a zone; clamped to the years −9999 to 9999.
    pub fn from_unix(seconds: i64, zone: Zone) -> Self {
        let clamped = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Self::new(Timestamp::from_second(seconds).unwrap_or(clamped), zone)
    }

    /// Go's zero time: the first instant of the year 1 in UTC.
    pub fn zero() -> Self {
        Self::from_unix(-62_135_596_800, Zone::Utc)
    }

    /// Whether this is the zero time.
    pub fn is_zero(&self) -> bool {
        self.instant == Self::zero().instant
    }

    /// The same instant in another zone.
    pub fn in_zone(&self, zone: Zone) -> Self {
        Self::new(self.instant, zone)
    }

    /// Date and clock in the time's zone.
    pub fn civil(&self) -> DateTime {
        let (_, offset) = self.zone.name_and_offset(self.instant);
        Offset::from_seconds(offset).unwrap_or(Offset::UTC).to_datetime(self.instant)
    }

    /// The time a duration later; clamped to the years −9999 to 9999.
    pub fn plus(&self, duration: Duration) -> Self {
        let clamped = if duration.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let instant = self.instant.checked_add(SignedDuration::from_nanos(duration.0)).unwrap_or(clamped);
        let monotonic = self.monotonic.and_then(|nanos| nanos.checked_add(duration.0));
        Self { instant, zone: self.zone.clone(), monotonic }
    }

    /// The duration since another time, clamped to 64 bits of nanoseconds.
    pub fn since(&self, earlier: &Self) -> Duration {
        let nanos = self.instant.as_nanosecond() - earlier.instant.as_nanosecond();
        Duration(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX }))
    }

    /// `AddDate`: years, months and days later, where days beyond the month's end run into the next.
    pub fn add_date(&self, years: i64, months: i64, days: i64) -> Option<Self> {
        let civil = self.civil();
        let month = i64::from(civil.month()) - 1 + months;
        let year = i64::from(civil.year()).checked_add(years)?.checked_add(month.div_euclid(12))?;
        let first = DateTime::new(
            i16::try_from(year).ok()?,
            i8::try_from(month.rem_euclid(12) + 1).ok()?,
            1,
            civil.hour(),
            civil.minute(),
            civil.second(),
            civil.subsec_nanosecond(),
        );
        let offset = days.checked_add(i64::from(civil.day()) - 1)?;
        let moved = first.ok()?.checked_add(jiff::Span::new().try_days(offset).ok()?).ok()?;
        Some(Self::new(self.zone.instant(moved)?, self.zone.clone()))
    }
}
