//! `format`, for the formats that charts use.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a text has not a format; `None` if it has, or if the format is not known.
pub(crate) fn fault(format: &str, text: &str) -> Option<String> {
    match format {
        "ipv4" if text.parse::<Ipv4Addr>().is_err() => Some("must be ipv4 address".to_owned()),
        "ipv6" if !text.contains(':') || text.parse::<Ipv6Addr>().is_err() => {
            Some("must be ipv6 address".to_owned())
        }
        "email" if !text.contains('@') => Some("missing @".to_owned()),
        "uri" if !text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) => {
            Some("relative url".to_owned())
        }
        "hostname" => hostname_fault(text),
        _ => None,
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn hostname_fault(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() > 253 {
        return Some("more than 253 characters long".to_owned());
    }
    for label in text.split('.') {
        if label.is_empty() || label.len() > 63 {
            return Some("label must be 1 to 63 characters long".to_owned());
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Some("label starts or ends with hyphen".to_owned());
        }
        if let Some(bad) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
            return Some(format!("invalid character '{bad}'"));
        }
    }
    None
}
