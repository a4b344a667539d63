//! Schedules as the cron library reads them that Kubernetes and Argo CD use: five fields (minute, hour, day
//! of month, month, day of week) with lists, ranges, steps and names, `@hourly` and its like, `@every
//! DURATION`, and a zone in front (`TZ=Europe/Paris 0 5 * * *`). Faults are in that library's words.

use jiff::{SignedDuration, Timestamp, ToSpan, civil, tz::TimeZone};

use crate::{
    strconv::quote,
    time::{Duration, zone},
};

/// A schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    rule: Rule,
    /// The zone that the text itself names.
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Fields(Fields),
    /// So many seconds after one another, at least one.
    Every(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Every day of month or every day of week was allowed: then both must match, else one of them.
    any_day: bool,
}

/// Why a text is no schedule, in the library's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScheduleError(String);

/// How far ahead a next time is looked for: leap days come every eight years at the latest.
const MAX_DAYS: usize = 366 * 9;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// What is wrong with the text, the first field that is at fault first.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        read(text, descriptor).map_err(ScheduleError)
    }

    /// Reads a schedule of five fields, as Argo CD's sync windows have them: `@hourly` and its like are
    /// refused.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_fields(text: &str) -> Result<Self, ScheduleError> {
        let refuse = |text: &str| Err(format!("parser does not accept descriptors: {text}"));
        read(text, refuse).map_err(ScheduleError)
    }

    /// The first time after an instant, in the zone that the schedule names or else the given one; `None` if
    /// there is none within years.
    pub fn next_after(&self, instant: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(seconds) => {
                let whole = instant.as_second().checked_add(*seconds)?;
                Timestamp::from_second(whole).ok()
            }
            Rule::Fields(fields) => fields.next_after(instant, self.zone.as_ref().unwrap_or(zone)),
        }
    }
}

fn read(text: &str, descriptor: fn(&str) -> Result<Rule, String>) -> Result<Schedule, String> {
    if text.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let named = ["TZ=", "CRON_TZ="].into_iter().find_map(|start| text.strip_prefix(start));
    let (zone, rest) = match named {
        None => (None, text),
        Some(named) => {
            let Some((name, rest)) = named.split_once(' ') else {
                // The library fails on this one, and its caller says so.
                return Err(
                    "invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned()
                );
            };
            let zone = load(name)
                .ok_or_else(|| format!("provided bad location {name}: unknown time zone {name}"))?;
            (Some(zone), rest.trim())
        }
    };
    let rule = match rest.starts_with('@') {
        true => descriptor(rest)?,
        false => Rule::Fields(fields(rest)?),
    };
    Ok(Schedule { rule, zone })
}

/// A zone by its name; the empty one and `Local` are those of a server in UTC.
fn load(name: &str) -> Option<TimeZone> {
    match name {
        "" | "Local" => Some(TimeZone::UTC),
        name => zone(name),
    }
}

fn descriptor(text: &str) -> Result<Rule, String> {
    let equal = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let Some(every) = text.strip_prefix("@every ") else {
                return Err(format!("unrecognized descriptor: {text}"));
            };
            let every = Duration::parse(every)
                .map_err(|error| format!("failed to parse duration {text}: {error}"))?;
            return Ok(Rule::Every((every.0 / Duration::SECOND.0).max(1)));
        }
    };
    fields(equal).map(Rule::Fields)
}

fn fields(text: &str) -> Result<Fields, String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = parts.as_slice() else {
        let count = parts.len();
        return Err(format!("expected exactly 5 fields, found {count}: [{}]", parts.join(" ")));
    };
    let (minutes, _) = field(minutes, (0, 59), &[])?;
    let (hours, _) = field(hours, (0, 23), &[])?;
    let (days, any_day) = field(days, (1, 31), &[])?;
    let (months, _) = field(months, (1, 12), &MONTHS)?;
    let (weekdays, any_weekday) = field(weekdays, (0, 6), &WEEKDAYS)?;
    Ok(Fields { minutes, hours, days, months, weekdays, any_day: any_day || any_weekday })
}

/// Reads one field into a bit set; says whether it allows everything.
fn field(text: &str, bounds: (u64, u64), names: &[&str]) -> Result<(u64, bool), String> {
    let (mut set, mut any) = (0, false);
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (bits, is_any) = range(part, bounds, names)?;
        set |= bits;
        any |= is_any;
    }
    Ok((set, any))
}

fn range(text: &str, (least, most): (u64, u64), names: &[&str]) -> Result<(u64, bool), String> {
    let slashes: Vec<&str> = text.split('/').collect();
    let hyphens: Vec<&str> = slashes[0].split('-').collect();
    let is_any = matches!(hyphens[0], "*" | "?");
    let number = |part: &str| match names.iter().position(|name| *name == part.to_lowercase()) {
        Some(at) => Ok(at as u64 + least),
        None => whole(part),
    };
    let (start, mut end) = match hyphens.as_slice() {
        _ if is_any => (least, most),
        [only] => number(only).map(|only| (only, only))?,
        [start, end] => (number(start)?, number(end)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match slashes.as_slice() {
        [_] => 1,
        [_, step] => {
            if hyphens.len() == 1 {
                end = most;
            }
            whole(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    match () {
        () if start < least => Err(format!("beginning of range ({start}) below minimum ({least}): {text}")),
        () if end > most => Err(format!("end of range ({end}) above maximum ({most}): {text}")),
        () if start > end => Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}")),
        () if step == 0 => Err(format!("step of range should be a positive number: {text}")),
        () => {
            let step_by = usize::try_from(step).unwrap_or(usize::MAX);
            let bits = (start..=end).step_by(step_by).fold(0, |bits, at| bits | 1 << at);
            Ok((bits, is_any && step == 1))
        }
    }
}

fn whole(text: &str) -> Result<u64, String> {
    let fail = |why: &str| {
        Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", quote(text)))
    };
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(error) => match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                fail("value out of range")
            }
            _ => fail("invalid syntax"),
        },
    }
}

impl Fields {
    fn matches_day(&self, date: civil::Date) -> bool {
        let month = bit(self.months, date.month());
        let day = bit(self.days, date.day());
        let weekday = bit(self.weekdays, date.weekday().to_sunday_zero_offset());
        month && if self.any_day { day && weekday } else { day || weekday }
    }

    fn next_after(&self, instant: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let instant =
            instant.checked_sub(SignedDuration::from_nanos(i64::from(instant.subsec_nanosecond()))).ok()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let schedule = Schedule::parse(schedule).expect("valid");
        schedule.next_after(after.parse().expect("valid"), &TimeZone::UTC).expect("found").to_string()
    }

    #[test]
    fn finds_the_next_time() {
        for (schedule, after, expected) in [
            ("0 22 * * *", "2026-01-01T22:00:00Z", "2026-01-02T22:00:00Z"),
            ("*/15 9-17 * * mon-fri", "2026-01-02T17:50:00Z", "2026-01-05T09:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            // A Friday or a 13th.
            ("0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            // With a step, `*` does not mean every day.
            ("0 0 */40 * 5", "2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z"),
            ("@hourly", "2026-01-01T00:00:30Z", "2026-01-01T01:00:00Z"),
            ("@every 90m", "2026-01-01T00:00:30.5Z", "2026-01-01T01:30:30Z"),
            ("TZ=America/New_York 0 5 * * *", "2026-07-01T00:00:00Z", "2026-07-01T09:00:00Z"),
        ] {
            assert_eq!(next(schedule, after), expected, "{schedule}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, expected) in [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("*/2/3 * * * *", "too many slashes: */2/3"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("TZ=Mars/One * * * * *", "provided bad location Mars/One: unknown time zone Mars/One"),
        ] {
            assert_eq!(Schedule::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
