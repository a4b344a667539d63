//! `format`: why a text has not the format that a schema names.

use std::net::Ipv6Addr;

use tiphys_gocompat::{
    regex::Regex,
    strconv::{parse_int, quote_rune},
    time::{Time, Zone},
    url::{Url, path_unescape},
};

type Verdict = Result<(), String>;

/// Why a text has not a format; `None` if it has, or if the format is not known.
pub(super) fn fault(format: &str, text: &str) -> Option<String> {
    let verdict = match format {
        "regex" => Regex::check(text).map_err(|error| error.to_string()),
        "json-pointer" => json_pointer(text),
        "relative-json-pointer" => relative_json_pointer(text),
        "uuid" => uuid(text),
        "duration" => duration(text),
        "period" => period(text),
        "ipv4" => ipv4(text),
        "ipv6" => ipv6(text),
        "hostname" => hostname(text),
        "email" => email(text),
        "date" => date(text),
        "time" => time(text),
        "date-time" => date_time(text),
        "uri" | "iri" => uri(text),
        "uri-reference" | "iri-reference" => uri_reference(text),
        "uri-template" => uri_template(text),
        "semver" => semver(text),
        _ => return None,
    };
    verdict.err()
}

fn ensure(holds: bool, text: impl Into<String>) -> Verdict {
    if holds { Ok(()) } else { Err(text.into()) }
}

fn json_pointer(text: &str) -> Verdict {
    const ESCAPE: &str = "~ must be followed by 0 or 1";
    ensure(text.is_empty() || text.starts_with('/'), "not starting with /")?;
    let parts: Vec<_> = text.split('~').skip(1).collect();
    ensure(parts.iter().all(|part| part.starts_with(['0', '1'])), ESCAPE)
}

fn relative_json_pointer(text: &str) -> Verdict {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    ensure(!digits.is_empty(), "must start with non-negative integer")?;
    ensure(digits.len() == 1 || !digits.starts_with('0'), "starts with zero")?;
    if rest == "#" { Ok(()) } else { json_pointer(rest) }
}

fn uuid(text: &str) -> Verdict {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<_> = text.split('-').collect();
    ensure(groups.len() == LENGTHS.len(), "must have 5 elements")?;
    for (at, (group, length)) in groups.iter().zip(LENGTHS).enumerate() {
        ensure(group.len() == length, format!("element {} must be {length} characters long", at + 1))?;
        if let Some(c) = group.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(format!("non-hex character {}", quote_rune(c)));
        }
    }
    Ok(())
}

fn duration(text: &str) -> Verdict {
    let text = text.strip_prefix('P').ok_or("must start with P")?;
    ensure(!text.is_empty(), "nothing after P")?;
    if let Some(weeks) = text.strip_suffix('W') {
        ensure(!weeks.is_empty(), "no number in week")?;
        return ensure(weeks.bytes().all(|byte| byte.is_ascii_digit()), "invalid week");
    }
    let all = ["YMD", "HMS"];
    for (at, part) in text.split('T').enumerate() {
        ensure(at == 0 || !part.is_empty(), "no time elements")?;
        let known = *all.get(at).ok_or("more than one T")?;
        duration_part(part, known)?;
    }
    Ok(())
}

fn duration_part(part: &str, known: &str) -> Verdict {
    let (mut part, mut units) = (part, known);
    while !part.is_empty() {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        ensure(rest.len() < part.len(), "missing number")?;
        let unit = rest.chars().next().ok_or("missing unit")?;
        let Some(at) = units.find(unit) else {
            let what = if known.contains(unit) { "out of order" } else { "" };
            let unit = quote_rune(unit);
            return Err(if what.is_empty() {
                format!("invalid unit {unit}")
            } else {
                format!("unit {unit} {what}")
            });
        };
        units = &units[at + 1..];
        part = &rest[unit.len_utf8()..];
    }
    Ok(())
}

fn period(text: &str) -> Verdict {
    let (start, end) = text.split_once('/').ok_or("missing slash")?;
    let wrap = |what: &'static str| move |error| format!("invalid {what}: {error}");
    if start.starts_with('P') {
        duration(start).map_err(wrap("start duration"))?;
        return date_time(end).map_err(wrap("end date-time"));
    }
    date_time(start).map_err(wrap("start date-time"))?;
    if end.starts_with('P') {
        duration(end).map_err(wrap("end duration"))
    } else {
        date_time(end).map_err(wrap("end date-time"))
    }
}

fn ipv4(text: &str) -> Verdict {
    let groups: Vec<_> = text.split('.').collect();
    ensure(groups.len() == 4, "expected four decimals")?;
    for group in groups {
        ensure(group.len() < 2 || !group.starts_with('0'), "leading zeros")?;
        let number = parse_int(group, 10).map_err(|error| {
            format!("strconv.Atoi: parsing {}: {error}", tiphys_gocompat::strconv::quote(group))
        })?;
        ensure((0..=255).contains(&number), "decimal must be between 0 and 255")?;
    }
    Ok(())
}

fn ipv6(text: &str) -> Verdict {
    ensure(text.contains(':'), "missing colon")?;
    let (address, zone) = text.split_once('%').unwrap_or((text, ""));
    let known = address.parse::<Ipv6Addr>().is_ok();
    let quoted = tiphys_gocompat::strconv::quote(text);
    ensure(known, format!("ParseAddr({quoted}): unable to parse IP"))?;
    ensure(zone.is_empty(), "zone id is not a part of ipv6 address")
}

fn hostname(text: &str) -> Verdict {
    let text = text.strip_suffix('.').unwrap_or(text);
    ensure(text.len() <= 253, "more than 253 characters long")?;
    for label in text.split('.') {
        ensure((1..=63).contains(&label.len()), "label must be 1 to 63 characters long")?;
        ensure(!label.starts_with('-'), "label starts with hyphen")?;
        ensure(!label.ends_with('-'), "label ends with hyphen")?;
        if let Some(bad) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
            return Err(format!("invalid character {}", quote_rune(bad)));
        }
    }
    Ok(())
}

fn email(text: &str) -> Verdict {
    ensure(text.len() <= 254, "more than 255 characters long")?;
    let (local, domain) = text.rsplit_once('@').ok_or("missing @")?;
    ensure(local.len() <= 64, "local part more than 64 characters long")?;
    if local.len() > 1 && local.starts_with('"') {
        let inner = local.get(1..local.len() - 1).unwrap_or_default();
        let text = "backslash and quote are not allowed within quoted local part";
        ensure(!inner.contains(['\\', '"']), text)?;
    } else {
        ensure(!local.starts_with('.'), "starts with dot")?;
        ensure(!local.ends_with('.'), "ends with dot")?;
        ensure(!local.contains(".."), "consecutive dots")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(c);
        if let Some(bad) = local.chars().find(|c| !plain(*c)) {
            return Err(format!("invalid character {}", quote_rune(bad)));
        }
    }
    if let Some(address) = domain.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return match address.strip_prefix("IPv6:") {
            Some(address) => ipv6(address).map_err(|error| format!("invalid ipv6 address: {error}")),
            None => ipv4(address).map_err(|error| format!("invalid ipv4 address: {error}")),
        };
    }
    hostname(domain).map_err(|error| format!("invalid domain: {error}"))
}

fn date(text: &str) -> Verdict {
    Time::parse("2006-01-02", text, &Zone::Utc).map(drop).map_err(|error| error.to_string())
}

fn date_time(text: &str) -> Verdict {
    ensure(text.len() >= 20, "less than 20 characters long")?;
    let bytes = text.as_bytes();
    ensure(bytes[10].eq_ignore_ascii_case(&b't'), "11th character must be t or T")?;
    let (day, rest) = (text.get(..10).unwrap_or_default(), text.get(11..).unwrap_or_default());
    date(day).map_err(|error| format!("invalid date element: {error}"))?;
    time(rest).map_err(|error| format!("invalid time element: {error}"))
}

/// Two or three numbers with colons between them.
fn clock(text: &str, invalid: &str) -> Result<Vec<i64>, String> {
    text.split(':').map(|part| part.parse().map_err(|_| invalid.to_owned())).collect()
}

fn time(text: &str) -> Verdict {
    ensure(text.len() >= 9, "less than 9 characters long")?;
    let bytes = text.as_bytes();
    ensure(bytes[2] == b':' && bytes[5] == b':', "missing colon in correct place")?;
    let parts = clock(text.get(..8).unwrap_or_default(), "invalid hour/min/sec")?;
    let [mut hour, mut minute, second] = parts[..] else { return Err("missing hour/min/sec".to_owned()) };
    let inside = |hour, minute| (0..=23).contains(&hour) && (0..=59).contains(&minute);
    ensure(inside(hour, minute) && (0..=60).contains(&second), "hour/min/sec out of range")?;
    let mut rest = text.get(8..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        ensure(rest.len() < fraction.len(), "no digits in second fraction")?;
    }
    if !rest.eq_ignore_ascii_case("z") {
        ensure(rest.len() == 6, "offset must be 6 characters long")?;
        ensure(rest.starts_with(['+', '-']), "offset must begin with plus/minus")?;
        ensure(rest.as_bytes()[3] == b':', "missing colon in offset in correct place")?;
        let offset = clock(rest.get(1..).unwrap_or_default(), "invalid hour/min in offset")?;
        let [zone_hour, zone_minute] = offset[..] else {
            return Err("invalid hour/min in offset".to_owned());
        };
        ensure(inside(zone_hour, zone_minute), "hour/min in offset out of range")?;
        let sign = if rest.starts_with('+') { -1 } else { 1 };
        let mut minutes = hour * 60 + minute + sign * (zone_hour * 60 + zone_minute);
        if minutes < 0 {
            minutes += 24 * 60;
        }
        (hour, minute) = (minutes / 60, minutes % 60);
    }
    ensure(second < 60 || (hour == 23 && minute == 59), "invalid leap second")
}

fn url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let host = url.hostname();
    if host.contains(':') {
        ensure(url.host.contains('[') && url.host.contains(']'), "ipv6 address not enclosed in brackets")?;
        ipv6(host).map_err(|error| format!("invalid ipv6 address: {error}"))?;
    }
    Ok(url)
}

fn uri(text: &str) -> Verdict {
    ensure(!url(text)?.scheme.is_empty(), "relative url")
}

fn uri_reference(text: &str) -> Verdict {
    ensure(!text.contains('\\'), "contains \\")?;
    url(text).map(drop)
}

fn uri_template(text: &str) -> Verdict {
    url(text)?;
    for token in text.split('/') {
        let token = path_unescape(token).map_err(|error| format!("percent decode failed: {error}"))?;
        let mut open = false;
        for brace in token.chars().filter(|c| matches!(c, '{' | '}')) {
            ensure((brace == '{') != open, "nested curly braces")?;
            open = brace == '{';
        }
        ensure(!open, "no matching closing brace")?;
    }
    Ok(())
}

fn semver(text: &str) -> Verdict {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    if let Some(build) = build {
        ensure(!build.is_empty(), "build is empty")?;
        for part in build.split('.') {
            ensure(!part.is_empty(), "build identifier is empty")?;
            if let Some(bad) = part.chars().find(|c| !word(*c)) {
                return Err(format!("invalid character {} in build identifier", quote_rune(bad)));
            }
        }
    }
    let (core, release) = text.split_once('-').map_or((text, None), |(core, rest)| (core, Some(rest)));
    for part in release.into_iter().flat_map(|release| release.split('.')) {
        ensure(!part.is_empty(), "pre-release identifier is empty")?;
        if let Some(bad) = part.chars().find(|c| !word(*c)) {
            return Err(format!("invalid character {} in pre-release identifier", quote_rune(bad)));
        }
        let number = part.bytes().all(|byte| byte.is_ascii_digit());
        let zero = number && part.len() > 1 && part.starts_with('0');
        ensure(!zero, "pre-release numeric identifier starts with zero")?;
    }
    let parts: Vec<_> = core.split('.').collect();
    ensure(parts.len() == 3, "versionCore must have 3 numbers separated by dot")?;
    for (part, name) in parts.into_iter().zip(["major", "minor", "patch"]) {
        ensure(!part.is_empty(), format!("{name} is empty"))?;
        ensure(part.len() == 1 || !part.starts_with('0'), format!("{name} starts with zero"))?;
        ensure(part.bytes().all(|byte| byte.is_ascii_digit()), format!("{name} contains non-digit"))?;
    }
    Ok(())
}
