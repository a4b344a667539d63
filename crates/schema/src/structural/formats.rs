//! The string formats that the API server checks in custom resources.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Whether text has a format; formats that are not listed here are accepted, as the API server does
/// with formats that it does not know.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => is_date(text),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "uuid" => is_uuid(text),
        "email" => text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    match (address.parse::<std::net::IpAddr>(), bits.parse::<u8>()) {
        (Ok(address), Ok(bits)) => bits <= if address.is_ipv4() { 32 } else { 128 },
        _ => false,
    }
}

fn is_uuid(text: &str) -> bool {
    let compact: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    compact.len() == 32 && compact.iter().all(u8::is_ascii_hexdigit)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |part: &str, length| (part.len() == length).then(|| part.parse::<u32>().ok()).flatten();
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let zone = time.find(['Z', 'z', '+', '-']);
    let Some((clock, zone)) = zone.map(|at| time.split_at(at)) else { return false };
    let clock = clock.split_once('.').map_or(clock, |(clock, _)| clock);
    let two = |part: &str, below: u32| part.len() == 2 && part.parse::<u32>().is_ok_and(|n| n < below);
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return false };
    let offset = zone.trim_start_matches(['+', '-']).split_once(':');
    let zone = matches!(zone, "Z" | "z") || offset.is_some_and(|(h, m)| two(h, 24) && two(m, 60));
    is_date(date) && two(hours, 24) && two(minutes, 60) && two(seconds, 61) && zone
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn formats_are_told_apart() {
        for (format, text, expected) in [
            ("date-time", "2026-02-28T10:00:00Z", true),
            ("date-time", "2026-02-28T10:00:00.5+02:00", true),
            ("date-time", "2026-02-30T10:00:00Z", false),
            ("date-time", "2026-02-28", false),
            ("date", "2024-02-29", true),
            ("ipv4", "10.0.0.256", false),
            ("cidr", "10.0.0.0/33", false),
            ("cidr", "10.0.0.0/8", true),
            ("uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", true),
            ("unheard-of", "x", true),
        ] {
            assert_eq!(fits(format, text), expected, "{format} {text}");
        }
    }
}
