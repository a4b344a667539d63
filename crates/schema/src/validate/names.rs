//! What names, labels and annotation keys may look like, and the API server's words when they do
//! not (apimachinery, `util/validation`).

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// The length fault of DNS names.
fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// The length fault of qualified names and label values.
fn too_many_bytes(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn regex_fault(message: &str, pattern: &str, examples: &[&str]) -> String {
    let shown: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    match shown.is_empty() {
        true => format!("{message} (regex used for validation is '{pattern}')"),
        // Two spaces before "or": that is how the API server puts it together.
        false => format!("{message} (e.g. {}regex used for validation is '{pattern}')", shown.join(" or ")),
    }
}

fn lower_or_digit(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().copied().is_some_and(lower_or_digit)
        && bytes.last().copied().is_some_and(lower_or_digit);
    ends && bytes.iter().all(|b| lower_or_digit(*b) || *b == b'-')
}

/// Faults of an RFC 1123 label, such as a namespace's name.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LABEL_MAX {
        faults.push(too_long(LABEL_MAX));
    }
    if !is_label(text) {
        if text.split('.').all(is_label) {
            faults.push("must not contain dots".into());
        } else {
            faults.push(regex_fault(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
                &["my-name", "123-abc"],
            ));
        }
    }
    faults
}

/// Faults of an RFC 1123 subdomain, such as most objects' names.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        faults.push(too_long(SUBDOMAIN_MAX));
    }
    if !text.split('.').all(is_label) {
        faults.push(regex_fault(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    faults
}

/// Faults of what is put before the end of a generated name: a hyphen may be its last character.
pub fn dns1123_subdomain_prefix(text: &str) -> Vec<String> {
    match text.strip_suffix('-') {
        Some(start) if !start.is_empty() => dns1123_subdomain(&format!("{start}a")),
        _ => dns1123_subdomain(text),
    }
}

/// Faults of a subdomain whose labels may have underscores.
pub fn dns1123_subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        faults.push(too_long(SUBDOMAIN_MAX));
    }
    let is_label = |label: &str| {
        let bytes = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let ends = bytes.first().copied().is_some_and(lower_or_digit)
            && bytes.last().copied().is_some_and(lower_or_digit);
        ends && bytes.iter().all(|b| lower_or_digit(*b) || b"-_".contains(b))
    };
    if !text.split('.').all(is_label) {
        faults.push(regex_fault(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            r"[a-z0-9_]([-_a-z0-9]*[a-z0-9])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    faults
}

/// Faults of the name of an HTTP header.
pub fn http_header(text: &str) -> Vec<String> {
    match !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        true => Vec::new(),
        false => vec![regex_fault(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            "[-A-Za-z0-9]+",
            &["X-Header-Name"],
        )],
    }
}

/// Faults of an RFC 1035 label, such as a service's name.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LABEL_MAX {
        faults.push(too_long(LABEL_MAX));
    }
    if !is_label(text) || !text.as_bytes()[0].is_ascii_lowercase() {
        faults.push(regex_fault(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
    ends && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// Faults of a qualified name, such as a label's or an annotation's key.
pub fn qualified_name(text: &str) -> Vec<String> {
    const WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    const PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
    let examples = ["MyName", "my.name", "123-abc"];
    let mut faults = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name =
        match parts.as_slice() {
            [name] => *name,
            [prefix, name] => {
                if prefix.is_empty() {
                    faults.push("prefix part must be non-empty".into());
                } else {
                    faults.extend(dns1123_subdomain(prefix).into_iter().map(|fault| {
                        format!("prefix part {}", fault.replace("253 characters", "253 bytes"))
                    }));
                }
                name
            }
            _ => {
                let fault = regex_fault(&format!("a valid label key {WORDS}"), PATTERN, &examples);
                return vec![format!(
                    "{fault} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
                )];
            }
        };
    if name.is_empty() {
        faults.push("name part must be non-empty".into());
    } else if name.len() > LABEL_MAX {
        faults.push(format!("name part {}", too_many_bytes(LABEL_MAX)));
    }
    if !is_qualified(name) {
        faults.push(format!("name part {}", regex_fault(WORDS, PATTERN, &examples)));
    }
    faults
}

/// Faults of a label's value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LABEL_MAX {
        faults.push(too_many_bytes(LABEL_MAX));
    }
    if !text.is_empty() && !is_qualified(text) {
        faults.push(regex_fault(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// Faults of a port's name (an IANA service name).
pub fn port_name(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let bytes = text.as_bytes();
    if text.len() > 15 {
        faults.push("must be no more than 15 characters".into());
    }
    if bytes.is_empty() || !bytes.iter().all(|b| lower_or_digit(*b) || *b == b'-') {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !bytes.iter().any(u8::is_ascii_lowercase) {
        faults.push("must contain at least one letter (a-z)".into());
    }
    if text.contains("--") {
        faults.push("must not contain consecutive hyphens".into());
    }
    if !bytes.is_empty() && (bytes[0] == b'-' || bytes[bytes.len() - 1] == b'-') {
        faults.push("must not begin or end with a hyphen".into());
    }
    faults
}

/// Faults of a port number.
pub fn port_number(port: i64) -> Vec<String> {
    match (1..=65_535).contains(&port) {
        true => Vec::new(),
        false => vec!["must be between 1 and 65535, inclusive".into()],
    }
}

/// Faults of the key of a config map or secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        faults.push(too_long(SUBDOMAIN_MAX));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        faults.push(regex_fault(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    if text == "." || text == ".." {
        faults.push(format!("must not be '{text}'"));
    } else if text.starts_with("..") {
        faults.push("must not start with '..'".into());
    }
    faults
}

/// Faults of an environment variable's name.
pub fn env_name(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let printable = text.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=');
    if text.is_empty() || !printable {
        faults.push("a valid environment variable name must consist only of printable ASCII characters other than '='".into());
    }
    faults
}

/// Faults of a path segment: the names of roles and of some other kinds.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|c| text.contains(**c))
            .map(|c| format!("may not contain '{c}'"))
            .collect(),
    }
}

/// What a network is expected to look like.
pub(super) const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An address and the length of its network's prefix in bits, from `10.0.0.0/8`.
pub fn cidr(text: &str) -> Option<(std::net::IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits): (std::net::IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
    (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
}

/// Whether one network lies within another and is smaller.
pub fn is_strictly_within(inner: (std::net::IpAddr, u8), outer: (std::net::IpAddr, u8)) -> bool {
    let number = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        std::net::IpAddr::V6(v6) => u128::from(v6),
    };
    let mask = |bits: u8| if bits == 0 { 0 } else { u128::MAX << (128 - u32::from(bits)) };
    inner.0.is_ipv4() == outer.0.is_ipv4()
        && inner.1 > outer.1
        && number(inner.0) & mask(outer.1) == number(outer.0) & mask(outer.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_as_the_api_server_writes_them() {
        let expected = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        assert_eq!(dns1123_subdomain("A_b"), [expected]);
        let label = dns1123_label("A");
        assert!(label[0].contains("(e.g. 'my-name',  or '123-abc', regex"), "{label:?}");
        assert_eq!(port_name("http-"), ["must not begin or end with a hyphen"]);
        assert!(qualified_name("a.b/c").is_empty() && label_value("").is_empty());
    }
}
