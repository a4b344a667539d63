//! Durations as Argo CD reads them: Go's `1h2m3.5s`, or a bare number of seconds.

use std::time::Duration;

/// Reads a Go duration without sign; `None` if the text is none.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = 0f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        total += number * seconds(&rest[..unit])?;
        rest = &rest[unit..];
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(total).ok() }
}

/// As [`parse`]; a bare number counts seconds.
pub fn parse_lenient(text: &str) -> Option<Duration> {
    text.parse::<u64>().ok().map(Duration::from_secs).or_else(|| parse(text))
}

fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_durations_and_bare_seconds() {
        assert_eq!(parse("1h2m3.5s"), Some(Duration::from_millis(3_723_500)));
        assert_eq!(parse_lenient("15"), Some(Duration::from_secs(15)));
        assert_eq!(parse("0"), Some(Duration::ZERO));
        for text in ["", "5", "s", "1x", "1..5s", "99999999999999999999999h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
