//! Schedules of sync windows: five fields (minute, hour, day of month, month, day of week) with lists,
//! ranges, steps and names, and the descriptors `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.

use jiff::{Timestamp, ToSpan, civil, tz::TimeZone};

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Day of month or day of week was given as `*`: then both must match, else one of them.
    any_day: bool,
}

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read schedule {text:?}: {reason}")]
pub struct ScheduleError {
    text: String,
    reason: String,
}

/// How far ahead a next time is looked for: leap days come every eight years at the latest.
const MAX_DAYS: usize = 366 * 9;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// The text does not have five fields, or one of them is out of its range.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let fail = |reason: String| ScheduleError { text: text.to_owned(), reason };
        let expanded = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = expanded.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(fail(format!("expected 5 fields, found {}", fields.len())));
        };
        let starred = |field: &str| field.starts_with('*') || field.starts_with('?');
        Ok(Self {
            minutes: field(minutes, 0, 59, &[]).map_err(fail)?,
            hours: field(hours, 0, 23, &[]).map_err(fail)?,
            days: field(days, 1, 31, &[]).map_err(fail)?,
            months: field(months, 1, 12, &MONTHS).map_err(fail)?,
            weekdays: field(weekdays, 0, 6, &WEEKDAYS).map_err(fail)?,
            any_day: starred(days) || starred(weekdays),
        })
    }

    fn matches_day(&self, date: civil::Date) -> bool {
        let month = bit(self.months, date.month());
        let day = bit(self.days, date.day());
        let weekday = bit(self.weekdays, date.weekday().to_sunday_zero_offset());
        month && if self.any_day { day && weekday } else { day || weekday }
    }

    /// The first time after an instant, in a time zone; `None` if there is none within years.
    pub fn next_after(&self, instant: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = instant.to_zoned(zone.clone()).datetime().checked_add(1.minute()).ok()?;
        let mut date = start.date();
        let mut from = (start.hour(), start.minute());
        for _ in 0..MAX_DAYS {
            if self.matches_day(date) {
                for hour in (from.0..24).filter(|hour| bit(self.hours, *hour)) {
                    let first = if hour == from.0 { from.1 } else { 0 };
                    for minute in (first..60).filter(|minute| bit(self.minutes, *minute)) {
                        let at = date.at(hour, minute, 0, 0).to_zoned(zone.clone()).ok()?.timestamp();
                        if at > instant {
                            return Some(at);
                        }
                    }
                }
            }
            date = date.tomorrow().ok()?;
            from = (0, 0);
        }
        None
    }
}

fn bit(set: u64, at: i8) -> bool {
    u32::try_from(at).is_ok_and(|at| set.checked_shr(at).is_some_and(|set| set & 1 == 1))
}

/// Reads one field into a bit set.
fn field(text: &str, low: u64, high: u64, names: &[&str]) -> Result<u64, String> {
    let number = |part: &str| -> Result<u64, String> {
        let named = names.iter().position(|name| *name == part.to_lowercase());
        let value = named.map(|at| at as u64 + low).or_else(|| part.parse().ok());
        value.ok_or_else(|| format!("{part:?} is no number"))
    };
    let mut set = 0u64;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step_by = step.map_or(Ok(1), number)?;
        let (from, to) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (low, high),
            Some((from, to)) => (number(from)?, number(to)?),
            None if step.is_some() => (number(range)?, high),
            None => (number(range)?, number(range)?),
        };
        if from < low || to > high || from > to || step_by == 0 {
            return Err(format!("{part:?} is out of range {low}-{high}"));
        }
        let mut at = from;
        while at <= to {
            set |= 1 << at;
            at += step_by;
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let schedule = Schedule::parse(schedule).expect("valid");
        schedule.next_after(after.parse().expect("valid"), &TimeZone::UTC).expect("found").to_string()
    }

    #[test]
    fn finds_the_next_time() {
        assert_eq!(next("0 22 * * *", "2026-01-01T22:00:00Z"), "2026-01-02T22:00:00Z");
        assert_eq!(next("*/15 9-17 * * mon-fri", "2026-01-02T17:50:00Z"), "2026-01-05T09:00:00Z");
        assert_eq!(next("0 0 29 2 *", "2026-01-01T00:00:00Z"), "2028-02-29T00:00:00Z");
        assert_eq!(next("0 0 13 * 5", "2026-01-01T00:00:00Z"), "2026-01-02T00:00:00Z", "a Friday or a 13th");
        assert_eq!(next("@hourly", "2026-01-01T00:00:30Z"), "2026-01-01T01:00:00Z");
    }

    #[test]
    fn refuses_what_is_no_schedule() {
        for text in ["", "* * * *", "60 * * * *", "* * 0 * *", "a * * * *", "*/0 * * * *", "5-1 * * * *"] {
            assert!(Schedule::parse(text).is_err(), "{text}");
        }
    }
}
