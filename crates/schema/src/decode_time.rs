//! Points in time as Go's decoder reads them, and what it says of others.

/// How many digits the fraction of a second has in `metav1.MicroTime`.
const MICRO_DIGITS: usize = 6;

/// Why a text is no time, in Go's words; `micro` asks for exactly six digits of a second's fraction.
pub(crate) fn fault(text: &str, micro: bool) -> Option<String> {
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let fault = |rest: &str, element: &str| {
        let (text, rest) = (crate::quote(text), crate::quote(rest));
        Some(format!("parsing time {text} as \"{layout}\": cannot parse {rest} as \"{element}\""))
    };
    let elements = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"].into_iter();
    let mut rest = text;
    for element in elements {
        let head = rest.get(..element.len());
        let fits = match head {
            Some(head) if element.bytes().all(|b| b.is_ascii_digit()) => {
                head.bytes().all(|b| b.is_ascii_digit())
            }
            Some(head) => head == element,
            None => false,
        };
        if !fits {
            return fault(rest, element);
        }
        rest = &rest[element.len()..];
    }
    let digits = rest.strip_prefix('.').map_or(0, |f| f.bytes().take_while(u8::is_ascii_digit).count());
    if micro && digits != MICRO_DIGITS {
        return fault(rest, ".000000");
    }
    if digits > 0 {
        rest = &rest[digits + 1..];
    }
    if is_zone(rest) { None } else { fault(rest, "Z07:00") }
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let bytes = text.as_bytes();
    bytes.len() == 6
        && matches!(bytes[0], b'+' | b'-')
        && bytes[3] == b':'
        && [1, 2, 4, 5].iter().all(|at| bytes[*at].is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_as_go_writes_them() {
        assert_eq!(fault("2026-01-01T00:00:00Z", false), None);
        assert_eq!(fault("2026-01-01T00:00:00.123456+02:00", true), None);
        assert_eq!(
            fault("2026-01-01T00:00:00Z", true).unwrap(),
            "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
        );
        assert!(fault("x", false).unwrap().ends_with("cannot parse \"x\" as \"2006\""));
    }
}
