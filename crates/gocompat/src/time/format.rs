//! Writing times.

use super::layout::{self, Part};
use super::{Time, Zone};
use crate::strconv::quote;
use jiff::civil::DateTime;
use std::fmt::Write;

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Time {
    /// `Time.Format`
    pub fn format(&self, layout: &str) -> String {
        let (name, offset) = self.zone.name_and_offset(self.instant);
        let civil = self.civil();
        let mut out = String::with_capacity(layout.len() + 10);
        let mut rest = layout;
        while !rest.is_empty() {
            let (literal, part, tail) = layout::next(rest);
            out.push_str(literal);
            rest = tail;
            match part {
                Some((part, _)) => write_part(&mut out, part, civil, &name, offset),
                None => break,
            }
        }
        out
    }

    /// `Time.String`
    pub fn display(&self) -> String {
        let mut text = self.format("2006-01-02 15:04:05.999999999 -0700 MST");
        if let Some(nanos) = self.monotonic {
            let (sign, nanos) = (if nanos < 0 { '-' } else { '+' }, nanos.unsigned_abs());
            // Writing to a string cannot fail.
            let _ = write!(text, " m={sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        }
        text
    }

    /// `Time.GoString`: the call that makes the time.
    pub fn go_string(&self) -> String {
        let civil = self.civil();
        let zone = match &self.zone {
            Zone::Utc => "time.UTC".to_owned(),
            Zone::Local(_) => "time.Local".to_owned(),
            Zone::Rules(zone) => format!("time.Location({})", quote(zone.iana_name().unwrap_or_default())),
            Zone::Fixed(name, _) => format!("time.Location({})", quote(name)),
        };
        format!(
            "time.Date({}, time.{}, {}, {}, {}, {}, {}, {zone})",
            civil.year(),
            self.month().1,
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second(),
            civil.subsec_nanosecond()
        )
    }

    /// The parts of Go's struct but its zone: nanoseconds, and seconds since the year 1 began.
    pub fn parts(&self) -> (u64, i64) {
        let nanos = self.instant.as_nanosecond();
        let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        // Both fit: a timestamp has years of four digits.
        (rest as u64, seconds as i64 + 62_135_596_800)
    }

    /// What `encoding/json` writes.
    pub fn rfc3339_nano(&self) -> String {
        self.format("2006-01-02T15:04:05.999999999Z07:00")
    }

    /// Number of the weekday from Sunday, and its English name.
    pub fn weekday(&self) -> (i64, &'static str) {
        let number = self.civil().weekday().to_sunday_zero_offset();
        (i64::from(number), DAYS[number as usize])
    }

    /// Number of the month from 1, and its English name.
    pub fn month(&self) -> (i64, &'static str) {
        let number = self.civil().month();
        (i64::from(number), MONTHS[number as usize - 1])
    }
}

fn write_part(out: &mut String, part: Part, civil: DateTime, name: &str, offset: i32) {
    let hour12 = if civil.hour() % 12 == 0 { 12 } else { civil.hour() % 12 };
    let month = MONTHS[civil.month() as usize - 1];
    let weekday = DAYS[civil.weekday().to_sunday_zero_offset() as usize];
    let pm = civil.hour() >= 12;
    // Writing to a string cannot fail.
    let _ = match part {
        Part::LongMonth => out.write_str(month),
        Part::Month => out.write_str(&month[..3]),
        Part::NumMonth => write!(out, "{}", civil.month()),
        Part::ZeroMonth => write!(out, "{:02}", civil.month()),
        Part::LongWeekday => out.write_str(weekday),
        Part::Weekday => out.write_str(&weekday[..3]),
        Part::Day => write!(out, "{}", civil.day()),
        Part::UnderDay => write!(out, "{:2}", civil.day()),
        Part::ZeroDay => write!(out, "{:02}", civil.day()),
        Part::UnderYearDay => write!(out, "{:3}", civil.day_of_year()),
        Part::ZeroYearDay => write!(out, "{:03}", civil.day_of_year()),
        Part::Hour => write!(out, "{:02}", civil.hour()),
        Part::Hour12 => write!(out, "{hour12}"),
        Part::ZeroHour12 => write!(out, "{hour12:02}"),
        Part::Minute => write!(out, "{}", civil.minute()),
        Part::ZeroMinute => write!(out, "{:02}", civil.minute()),
        Part::Second => write!(out, "{}", civil.second()),
        Part::ZeroSecond => write!(out, "{:02}", civil.second()),
        Part::LongYear if civil.year() < 0 => write!(out, "-{:04}", -i32::from(civil.year())),
        Part::LongYear => write!(out, "{:04}", civil.year()),
        Part::Year => write!(out, "{:02}", civil.year().unsigned_abs() % 100),
        Part::UpperPm => out.write_str(if pm { "PM" } else { "AM" }),
        Part::LowerPm => out.write_str(if pm { "pm" } else { "am" }),
        Part::ZoneName if name.is_empty() => {
            write_offset(out, offset, false, 2);
            Ok(())
        }
        Part::ZoneName => out.write_str(name),
        Part::Offset { iso: true, .. } if offset == 0 => out.write_str("Z"),
        Part::Offset { colons, fields, .. } => {
            write_offset(out, offset, colons, fields);
            Ok(())
        }
        Part::Fraction { digits, separator, trim } => {
            write_fraction(out, civil.subsec_nanosecond(), digits, separator, trim);
            Ok(())
        }
    };
}

fn write_offset(out: &mut String, offset: i32, colons: bool, fields: u8) {
    let seconds = offset.unsigned_abs();
    // Go decides the sign by the whole minutes.
    out.push(if offset / 60 < 0 { '-' } else { '+' });
    for (at, value) in
        [seconds / 3600, seconds / 60 % 60, seconds % 60].into_iter().take(fields.into()).enumerate()
    {
        if colons && at > 0 {
            out.push(':');
        }
        let _ = write!(out, "{value:02}");
    }
}

fn write_fraction(out: &mut String, nanos: i32, digits: usize, separator: char, trim: bool) {
    let text = format!("{nanos:09}");
    let text = &text[..digits.min(9)];
    let text = if trim { text.trim_end_matches('0') } else { text };
    if trim && text.is_empty() {
        return;
    }
    out.push(separator);
    out.push_str(text);
}
