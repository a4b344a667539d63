//! Numbers with their nouns, for people.

/// A number with its noun.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{} {}", grouped(count), plural(noun)),
    }
}

/// The plural of a noun or of a kind.
fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'A']) => format!("{stem}ies"),
        _ if noun.ends_with("ss") => format!("{noun}es"),
        _ if noun.ends_with('s') => noun.to_owned(),
        _ => format!("{noun}s"),
    }
}

/// A number with commas between thousands.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{counted, plural};

    #[test]
    fn numbers_are_read_at_a_glance() {
        let plurals = ["NetworkPolicy", "Ingress", "Endpoints", "Gateway"].map(plural);
        assert_eq!(plurals, ["NetworkPolicies", "Ingresses", "Endpoints", "Gateways"]);
        assert_eq!(
            (counted(1, "pod"), counted(0, "pod"), counted(12_345, "pod")),
            ("1 pod".into(), "0 pods".into(), "12,345 pods".into())
        );
    }
}
