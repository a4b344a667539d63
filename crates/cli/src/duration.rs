//! Durations as people type them: `90s`, `10m`, `1h30m`, `500ms`, and `90` for seconds, as Argo CD's command
//! line has it.

use std::time::Duration;

/// Reads a duration.
///
/// # Errors
/// With what is expected.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let fail = || format!("{text:?} is no duration; write it as 90s, 10m or 1h30m");
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fail)?;
        let number: u64 = rest[..digits].parse().map_err(|_| fail())?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let one = match &rest[digits..unit_end] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return Err(fail()),
        };
        let part = u32::try_from(number).ok().and_then(|number| one.checked_mul(number)).ok_or_else(fail)?;
        total = total.checked_add(part).ok_or_else(fail)?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { Err(fail()) } else { Ok(total) }
}

/// A duration for people: `820ms`, `3.2s`, `4m10s`.
pub(crate) fn humanize(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("1h30m", 5400), ("0s", 0), ("45", 45)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "-10", "1m30", "m", "1x", "99999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(humanize(Duration::from_secs(250)), "4m10s");
        assert_eq!(humanize(Duration::from_millis(3210)), "3.2s");
    }
}
