//! Layouts: example times whose parts say what stands where.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    /// An offset: `Z` for zero, colons, and how many of hours, minutes, seconds.
    Offset {
        iso: bool,
        colons: bool,
        fields: u8,
    },
    /// A fraction: digits, the separator, and whether zeros at the end are dropped.
    Fraction {
        digits: usize,
        separator: char,
        trim: bool,
    },
}

const OFFSETS: [(&str, bool, u8); 5] =
    [("070000", false, 3), ("07:00:00", true, 3), ("0700", false, 2), ("07:00", true, 2), ("07", false, 1)];

const PLAIN: [(&str, Part); 10] = [
    ("January", Part::LongMonth),
    ("Monday", Part::LongWeekday),
    ("MST", Part::ZoneName),
    ("002", Part::ZeroYearDay),
    ("15", Part::Hour),
    ("2006", Part::LongYear),
    ("__2", Part::UnderYearDay),
    ("PM", Part::UpperPm),
    ("pm", Part::LowerPm),
    ("01", Part::ZeroMonth),
];

const NUMBERS: [(&str, Part); 11] = [
    ("02", Part::ZeroDay),
    ("03", Part::ZeroHour12),
    ("04", Part::ZeroMinute),
    ("05", Part::ZeroSecond),
    ("06", Part::Year),
    ("_2", Part::UnderDay),
    ("1", Part::NumMonth),
    ("2", Part::Day),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
];

/// Splits a layout at its first part: literal text, the part, its text, and the rest.
pub(super) fn next(layout: &str) -> (&str, Option<(Part, &str)>, &str) {
    for (at, c) in layout.char_indices() {
        // An underscore before a year is literal.
        if layout[at..].starts_with("_2006") {
            let year = at + 1;
            return (&layout[..year], Some((Part::LongYear, &layout[year..year + 4])), &layout[year + 4..]);
        }
        if let Some((part, length)) = part_at(&layout[at..], c) {
            return (&layout[..at], Some((part, &layout[at..at + length])), &layout[at + length..]);
        }
    }
    (layout, None, "")
}

fn part_at(text: &str, first: char) -> Option<(Part, usize)> {
    let not_lower = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_lowercase());
    for (name, part) in PLAIN.iter().chain(&NUMBERS) {
        if text.starts_with(name) {
            return Some((*part, name.len()));
        }
    }
    match first {
        'J' if text.starts_with("Jan") && not_lower(&text[3..]) => Some((Part::Month, 3)),
        'M' if text.starts_with("Mon") && not_lower(&text[3..]) => Some((Part::Weekday, 3)),
        '-' | 'Z' => {
            let (name, colons, fields) = OFFSETS.iter().find(|(name, ..)| text[1..].starts_with(name))?;
            Some((Part::Offset { iso: first == 'Z', colons: *colons, fields: *fields }, 1 + name.len()))
        }
        '.' | ',' => {
            let digit = text[1..].chars().next().filter(|c| matches!(c, '0' | '9'))?;
            let digits = text[1..].chars().take_while(|c| *c == digit).count();
            if text[1 + digits..].starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            Some((Part::Fraction { digits, separator: first, trim: digit == '9' }, 1 + digits))
        }
        _ => None,
    }
}
