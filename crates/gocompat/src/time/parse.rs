//! Reading times.

use super::format::{DAYS, MONTHS};
use super::layout::{self, Part};
use super::{Time, Zone};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

/// A text that does not fit its layout, with Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

/// Why one part does not fit.
enum PartError {
    Bad,
    Range(&'static str),
}

struct Parser<'v> {
    value: &'v str,
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: i64,
    pm: Option<bool>,
    utc: bool,
    offset: Option<i64>,
    zone_name: String,
}

/// `time.ParseInLocation`
///
/// # Errors
/// Go's texts.
pub(super) fn parse_in(layout: &str, value: &str, zone: &Zone) -> Result<Time, ParseError> {
    let mut parser = Parser {
        value,
        year: 0,
        month: None,
        day: None,
        year_day: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
        pm: None,
        utc: false,
        offset: None,
        zone_name: String::new(),
    };
    let cannot = |element: &str, rest: &str| {
        let (value, layout) = (quote(value), quote(layout));
        let (rest, element) = (quote(rest), quote(element));
        ParseError(format!("parsing time {value} as {layout}: cannot parse {rest} as {element}"))
    };
    let message = |text: String| ParseError(format!("parsing time {}{text}", quote(value)));
    let mut rest = layout;
    loop {
        let (literal, part, tail) = layout::next(rest);
        if parser.skip(literal).is_none() {
            return Err(cannot(literal, parser.value));
        }
        let Some((part, element)) = part else {
            if !parser.value.is_empty() {
                return Err(message(format!(": extra text: {}", quote(parser.value))));
            }
            break;
        };
        rest = tail;
        let hold = parser.value;
        match parser.part(part, rest) {
            Ok(()) => {}
            Err(PartError::Bad) => return Err(cannot(element, hold)),
            Err(PartError::Range(what)) => return Err(message(format!(": {what} out of range"))),
        }
    }
    parser.finish(zone).map_err(|text| message(text.to_owned()))
}

impl Time {
    /// `time.ParseInLocation`
    ///
    /// # Errors
    /// Go's texts.
    pub fn parse(layout: &str, value: &str, zone: &Zone) -> Result<Self, ParseError> {
        parse_in(layout, value, zone)
    }
}

/// Quoted as Go's `time` does it, which writes all but ASCII as bytes.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for &byte in crate::rawstr::decode(text).iter() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7F => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

impl<'v> Parser<'v> {
    /// Skips literal text, where a run of spaces in the layout fits any run of spaces.
    fn skip(&mut self, literal: &str) -> Option<()> {
        let mut literal = literal;
        while let Some(c) = literal.chars().next() {
            if c == ' ' {
                if !self.value.is_empty() && !self.value.starts_with(' ') {
                    return None;
                }
                literal = literal.trim_start_matches(' ');
                self.value = self.value.trim_start_matches(' ');
                continue;
            }
            self.value = self.value.strip_prefix(c)?;
            literal = &literal[c.len_utf8()..];
        }
        Some(())
    }

    fn digit_at(&self, at: usize) -> bool {
        self.value.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
    }

    fn take(&mut self, length: usize) -> Result<&'v str, PartError> {
        let (taken, rest) = self.value.split_at_checked(length).ok_or(PartError::Bad)?;
        self.value = rest;
        Ok(taken)
    }

    /// One or two digits, or exactly two.
    fn number(&mut self, fixed: bool) -> Result<i64, PartError> {
        if !self.digit_at(0) || (fixed && !self.digit_at(1)) {
            return Err(PartError::Bad);
        }
        let length = if self.digit_at(1) { 2 } else { 1 };
        self.take(length)?.parse().map_err(|_| PartError::Bad)
    }

    fn in_range(
        value: i64,
        range: std::ops::RangeInclusive<i64>,
        what: &'static str,
    ) -> Result<i64, PartError> {
        if range.contains(&value) { Ok(value) } else { Err(PartError::Range(what)) }
    }

    fn name(&mut self, names: &[&str], length: usize) -> Result<i64, PartError> {
        for (at, name) in names.iter().enumerate() {
            let name = &name[..length.min(name.len())];
            if self.value.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
                self.take(name.len())?;
                return Ok(at as i64);
            }
        }
        Err(PartError::Bad)
    }

    fn part(&mut self, part: Part, rest: &str) -> Result<(), PartError> {
        match part {
            Part::Year => {
                let year: i64 = self.take(2)?.parse().map_err(|_| PartError::Bad)?;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
            }
            Part::LongYear => {
                if !self.digit_at(0) {
                    return Err(PartError::Bad);
                }
                self.year = self.take(4)?.parse().map_err(|_| PartError::Bad)?;
            }
            Part::Month => self.month = Some(self.name(&MONTHS, 3)? + 1),
            Part::LongMonth => self.month = Some(self.name(&MONTHS, usize::MAX)? + 1),
            Part::NumMonth | Part::ZeroMonth => {
                let month = self.number(part == Part::ZeroMonth)?;
                self.month = Some(Self::in_range(month, 1..=12, "month")?);
            }
            Part::Weekday => {
                self.name(&DAYS, 3)?;
            }
            Part::LongWeekday => {
                self.name(&DAYS, usize::MAX)?;
            }
            Part::Day | Part::UnderDay | Part::ZeroDay => {
                if part == Part::UnderDay {
                    self.value = self.value.strip_prefix(' ').unwrap_or(self.value);
                }
                self.day = Some(self.number(part == Part::ZeroDay)?);
            }
            Part::UnderYearDay | Part::ZeroYearDay => self.read_year_day(part == Part::ZeroYearDay)?,
            Part::Hour => self.hour = Self::in_range(self.number(false)?, 0..=23, "hour")?,
            Part::Hour12 | Part::ZeroHour12 => {
                self.hour = Self::in_range(self.number(part == Part::ZeroHour12)?, 0..=12, "hour")?;
            }
            Part::Minute | Part::ZeroMinute => {
                self.minute = Self::in_range(self.number(part == Part::ZeroMinute)?, 0..=59, "minute")?;
            }
            Part::Second | Part::ZeroSecond => self.read_second(part == Part::ZeroSecond, rest)?,
            Part::UpperPm => self.pm = Some(self.half("AM", "PM")?),
            Part::LowerPm => self.pm = Some(self.half("am", "pm")?),
            Part::Offset { iso, colons, fields } => self.read_offset(iso, colons, fields)?,
            Part::ZoneName => self.read_zone_name()?,
            Part::Fraction { digits, trim: false, .. } => self.fraction(1 + digits)?,
            Part::Fraction { trim: true, .. } => {
                if self.value.starts_with(['.', ',']) && self.digit_at(1) {
                    self.fraction(1 + self.value[1..].bytes().take_while(u8::is_ascii_digit).count())?;
                }
            }
        }
        Ok(())
    }

    fn half(&mut self, am: &str, pm: &str) -> Result<bool, PartError> {
        let text = self.take(2)?;
        if text == pm {
            Ok(true)
        } else if text == am {
            Ok(false)
        } else {
            Err(PartError::Bad)
        }
    }

    fn read_year_day(&mut self, fixed: bool) -> Result<(), PartError> {
        if !fixed {
            self.value = self.value.strip_prefix(' ').unwrap_or(self.value);
            self.value = self.value.strip_prefix(' ').unwrap_or(self.value);
        }
        let digits = self.value.bytes().take(3).take_while(u8::is_ascii_digit).count();
        if digits == 0 || (fixed && digits != 3) {
            return Err(PartError::Bad);
        }
        self.year_day = Some(self.take(digits)?.parse().map_err(|_| PartError::Bad)?);
        Ok(())
    }

    fn read_second(&mut self, fixed: bool, rest: &str) -> Result<(), PartError> {
        self.second = Self::in_range(self.number(fixed)?, 0..=59, "second")?;
        // A fraction may follow even where the layout has none.
        let fraction_follows = matches!(layout::next(rest), (_, Some((Part::Fraction { .. }, _)), _));
        if self.value.starts_with(['.', ',']) && self.digit_at(1) && !fraction_follows {
            self.fraction(1 + self.value[1..].bytes().take_while(u8::is_ascii_digit).count())?;
        }
        Ok(())
    }

    /// A separator and digits, of which nine count.
    fn fraction(&mut self, length: usize) -> Result<(), PartError> {
        let text = self.take(length)?;
        let digits = text.strip_prefix(['.', ',']).ok_or(PartError::Bad)?;
        let digits = &digits[..digits.len().min(9)];
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(PartError::Bad);
        }
        let number: i64 = digits.parse().map_err(|_| PartError::Bad)?;
        self.nanos = number * 10i64.pow(9 - digits.len() as u32);
        Ok(())
    }

    fn read_offset(&mut self, iso: bool, colons: bool, fields: u8) -> Result<(), PartError> {
        if iso && self.value.starts_with('Z') {
            self.take(1)?;
            self.utc = true;
            return Ok(());
        }
        let negative = match self.take(1)? {
            "+" => false,
            "-" => true,
            _ => return Err(PartError::Bad),
        };
        let mut numbers = [0; 3];
        for (at, number) in numbers.iter_mut().take(fields.into()).enumerate() {
            if colons && at > 0 && self.take(1)? != ":" {
                return Err(PartError::Bad);
            }
            *number = self.number(true)?;
        }
        let [hours, minutes, seconds] = numbers;
        Self::in_range(hours, 0..=24, "time zone offset hour")?;
        Self::in_range(minutes, 0..=60, "time zone offset minute")?;
        Self::in_range(seconds, 0..=60, "time zone offset second")?;
        let offset = (hours * 60 + minutes) * 60 + seconds;
        self.offset = Some(if negative { -offset } else { offset });
        Ok(())
    }

    fn read_zone_name(&mut self) -> Result<(), PartError> {
        if self.value.starts_with("UTC") {
            self.take(3)?;
            self.utc = true;
            return Ok(());
        }
        let length = zone_name_length(self.value).ok_or(PartError::Bad)?;
        self.zone_name = self.take(length)?.to_owned();
        Ok(())
    }

    /// Month and day of the year's nth day, if that was given.
    fn resolve_day(&mut self) -> Result<(), &'static str> {
        let Some(year_day) = self.year_day else {
            return Ok(());
        };
        let first = i16::try_from(self.year).ok().and_then(|year| Date::new(year, 1, 1).ok());
        let date = first
            .filter(|first| year_day >= 1 && year_day <= i64::from(first.days_in_year()))
            .and_then(|first| first.checked_add(jiff::Span::new().days(year_day - 1)).ok())
            .ok_or(": day-of-year out of range")?;
        let (month, day) = (i64::from(date.month()), i64::from(date.day()));
        if self.month.is_some_and(|given| given != month) {
            return Err(": day-of-year does not match month");
        }
        if self.day.is_some_and(|given| given != day) {
            return Err(": day-of-year does not match day");
        }
        (self.month, self.day) = (Some(month), Some(day));
        Ok(())
    }

    fn finish(mut self, zone: &Zone) -> Result<Time, &'static str> {
        const DAY: &str = ": day out of range";
        match self.pm {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        self.resolve_day()?;
        let narrow = |value: i64| i8::try_from(value).map_err(|_| DAY);
        let civil = DateTime::new(
            i16::try_from(self.year).map_err(|_| DAY)?,
            narrow(self.month.unwrap_or(1))?,
            narrow(self.day.unwrap_or(1))?,
            narrow(self.hour)?,
            narrow(self.minute)?,
            narrow(self.second)?,
            i32::try_from(self.nanos).map_err(|_| DAY)?,
        )
        .map_err(|_| DAY)?;
        let utc = Zone::Utc.instant(civil).ok_or(DAY)?;
        if self.utc {
            return Ok(Time::new(utc, Zone::Utc));
        }
        let moved = |offset: i64| {
            Timestamp::from_nanosecond(utc.as_nanosecond() - i128::from(offset) * 1_000_000_000)
        };
        if let Some(offset) = self.offset {
            let instant = moved(offset).map_err(|_| DAY)?;
            let (name, local) = zone.name_and_offset(instant);
            if i64::from(local) == offset && (self.zone_name.is_empty() || self.zone_name == name) {
                return Ok(Time::new(instant, zone.clone()));
            }
            return Ok(Time::new(instant, Zone::Fixed(self.zone_name, offset as i32)));
        }
        if !self.zone_name.is_empty() {
            return Ok(self.in_named_zone(zone, civil, utc));
        }
        Ok(Time::new(zone.instant(civil).ok_or(DAY)?, zone.clone()))
    }

    /// An abbreviation says something only if the local zone uses it, or as `GMT+n`.
    fn in_named_zone(self, zone: &Zone, civil: DateTime, utc: Timestamp) -> Time {
        if let Some(instant) = zone.instant(civil)
            && zone.name_and_offset(instant).0 == self.zone_name
        {
            return Time::new(instant, zone.clone());
        }
        let hours: i32 = self.zone_name.strip_prefix("GMT").and_then(|hours| hours.parse().ok()).unwrap_or(0);
        Time::new(utc, Zone::Fixed(self.zone_name, hours * 3600))
    }
}

/// How many bytes of a zone abbreviation the text starts with.
fn zone_name_length(text: &str) -> Option<usize> {
    if text.starts_with("ChST") || text.starts_with("MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix("GMT") {
        return Some(3 + signed_offset_length(rest).unwrap_or(0));
    }
    if text.starts_with(['+', '-']) {
        return signed_offset_length(text);
    }
    let upper = text.bytes().take(6).take_while(u8::is_ascii_uppercase).count();
    match upper {
        3 => Some(3),
        4 if text[..4].ends_with('T') || text.starts_with("WITA") => Some(4),
        5 if text[..5].ends_with('T') => Some(5),
        _ => None,
    }
}

fn signed_offset_length(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(['+', '-'])?.bytes().take_while(u8::is_ascii_digit).count();
    let hours: u32 = text[1..=digits].parse().ok()?;
    (hours <= 23).then_some(1 + digits)
}
