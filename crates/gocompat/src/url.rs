//! Go's `net/url`: parsing and printing.

use crate::strconv::quote;
use std::fmt;

/// A text that is no URL, with Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {url}: {message}", url = quote(.url))]
pub struct UrlError {
    url: String,
    message: String,
}

/// The parts of a URL, unescaped except for the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// Before the first colon, in lower case.
    pub scheme: String,
    /// What follows the scheme where no slash does.
    pub opaque: String,
    /// User name and perhaps password.
    pub userinfo: Option<(String, Option<String>)>,
    /// Host and port.
    pub host: String,
    /// The path.
    pub path: String,
    /// After the question mark, as written.
    pub query: String,
    /// After the hash sign.
    pub fragment: String,
}

/// Where a text stands, which decides what must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    Path,
    Host,
    User,
    Fragment,
}

fn must_escape(byte: u8, place: UrlPart) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        return false;
    }
    match place {
        UrlPart::Host => !matches!(
            byte,
            b'!' | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'['
                | b']'
                | b'<'
                | b'>'
                | b'"'
        ),
        UrlPart::Path => !matches!(byte, b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'@'),
        UrlPart::User => !matches!(byte, b'$' | b'&' | b'+' | b',' | b';' | b'='),
        UrlPart::Fragment => !matches!(
            byte,
            b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' | b'!' | b'(' | b')' | b'*'
        ),
    }
}

fn escape(text: &str, place: UrlPart) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in crate::rawstr::decode(text).iter() {
        if must_escape(byte, place) {
            out.push_str(&format!("%{byte:02X}"));
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

fn unescape(text: &str, place: UrlPart) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let digits =
                    text.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                    let end = (at..=(at + 3).min(text.len())).rev().find(|end| text.is_char_boundary(*end));
                    return Err(format!("invalid URL escape {}", quote(&text[at..end.unwrap_or(at)])));
                };
                if place == UrlPart::Host && byte < 0x80 && &text[at..at + 3] != "%25" {
                    return Err(format!("invalid URL escape {}", quote(&text[at..at + 3])));
                }
                out.push(byte);
                at += 3;
            }
            byte => {
                if place == UrlPart::Host && byte < 0x80 && must_escape(byte, place) {
                    return Err(format!(
                        "invalid character {} in host name",
                        quote(&char::from(byte).to_string())
                    ));
                }
                out.push(byte);
                at += 1;
            }
        }
    }
    Ok(crate::rawstr::encode_vec(out))
}

impl Url {
    /// `url.Parse`
    ///
    /// # Errors
    /// Go's texts.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let fail = |message: String| UrlError { url: text.to_owned(), message };
        let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::parse_body(body).map_err(|message| UrlError { url: body.to_owned(), message })?;
        url.fragment = unescape(fragment, UrlPart::Fragment).map_err(fail)?;
        Ok(url)
    }

    fn parse_body(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7F) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = "*".to_owned();
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.to_owned();
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        if let Some(authority) =
            rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///"))
        {
            let end = authority.find('/').unwrap_or(authority.len());
            url.set_authority(&authority[..end])?;
            path = &authority[end..];
        }
        url.path = unescape(path, UrlPart::Path)?;
        Ok(url)
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rfind('@') {
            Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
            None => (None, authority),
        };
        let port = match host.rfind(']') {
            Some(end) if host.starts_with('[') => &host[end + 1..],
            _ if host.starts_with('[') => return Err("missing ']' in host".to_owned()),
            _ => host.rfind(':').map_or("", |at| &host[at..]),
        };
        let digits = port.strip_prefix(':').unwrap_or(port);
        if (!port.is_empty() && !port.starts_with(':')) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("invalid port {} after host", quote(port)));
        }
        self.host = unescape(host, UrlPart::Host)?;
        if let Some(user) = user {
            let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(valid) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            self.userinfo = Some(match user.split_once(':') {
                Some((name, password)) => {
                    (unescape(name, UrlPart::User)?, Some(unescape(password, UrlPart::User)?))
                }
                None => (unescape(user, UrlPart::User)?, None),
            });
        }
        Ok(())
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        let host = self.host.as_str();
        if let Some(inner) = host.strip_prefix('[') {
            return inner.split(']').next().unwrap_or(inner);
        }
        host.rfind(':').map_or(host, |at| &host[..at])
    }

    /// `ResolveReference`: what a reference means that stands in a document of this address.
    #[must_use]
    pub fn resolve(&self, reference: &Self) -> Self {
        let mut url = reference.clone();
        if url.scheme.is_empty() {
            url.scheme.clone_from(&self.scheme);
        }
        if !reference.scheme.is_empty() || !reference.host.is_empty() || reference.userinfo.is_some() {
            url.path = resolve_path(&reference.path, "");
            return url;
        }
        if !reference.opaque.is_empty() {
            return url;
        }
        if reference.path.is_empty() && reference.query.is_empty() {
            url.query.clone_from(&self.query);
            if reference.fragment.is_empty() {
                url.fragment.clone_from(&self.fragment);
            }
        }
        if reference.path.is_empty() && !self.opaque.is_empty() {
            url.opaque.clone_from(&self.opaque);
            return url;
        }
        url.host.clone_from(&self.host);
        url.userinfo.clone_from(&self.userinfo);
        url.path = resolve_path(&self.path, &reference.path);
        url
    }

    /// User name and password, escaped.
    pub fn userinfo_text(&self) -> String {
        match &self.userinfo {
            None => String::new(),
            Some((name, None)) => escape(name, UrlPart::User),
            Some((name, Some(password))) => {
                format!("{}:{}", escape(name, UrlPart::User), escape(password, UrlPart::User))
            }
        }
    }
}

/// The path that a relative path means beside another, without `.` and `..`.
fn resolve_path(base: &str, reference: &str) -> String {
    let full = match reference.as_bytes().first() {
        None => base.to_owned(),
        Some(b'/') => reference.to_owned(),
        Some(_) => format!("{}{reference}", &base[..base.rfind('/').map_or(0, |at| at + 1)]),
    };
    if full.is_empty() {
        return full;
    }
    let mut kept: Vec<&str> = Vec::new();
    for part in full.split('/') {
        match part {
            "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    let mut path = kept.join("/");
    if full.ends_with("/.") || full.ends_with("/..") || full == "." || full == ".." {
        path.push('/');
    }
    format!("/{}", path.trim_start_matches('/'))
}

/// Undoes percent encoding as `url.PathUnescape` does.
///
/// # Errors
/// Go's text.
pub fn path_unescape(text: &str) -> Result<String, String> {
    unescape(text, UrlPart::Path)
}

/// Scheme and rest; no scheme if the text does not begin with one.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.userinfo.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || self.userinfo.is_some() {
                    f.write_str("//")?;
                }
                if self.userinfo.is_some() {
                    write!(f, "{}@", self.userinfo_text())?;
                }
                f.write_str(&escape(&self.host, UrlPart::Host))?;
            }
            let path = if self.path == "*" { "*".to_owned() } else { escape(&self.path, UrlPart::Path) };
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            } else if self.scheme.is_empty() && self.host.is_empty() {
                // A colon in the first segment would read as a scheme.
                if path.split('/').next().is_some_and(|first| first.contains(':')) {
                    f.write_str("./")?;
                }
            }
            f.write_str(&path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", escape(&self.fragment, UrlPart::Fragment))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved() {
        let base = Url::parse("http://a/b/c/d?q").unwrap();
        for (reference, whole) in [
            ("g", "http://a/b/c/g"),
            ("./g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d?y"),
            ("", "http://a/b/c/d?q"),
            ("..", "http://a/b/"),
            ("../../../g", "http://a/g"),
            ("x:y", "x:y"),
        ] {
            assert_eq!(base.resolve(&Url::parse(reference).unwrap()).to_string(), whole, "{reference}");
        }
    }

    #[test]
    fn parts_and_back() {
        let text = "http://admin:secret@server.com:8080/api?list=false#anchor";
        let url = Url::parse(text).unwrap();
        assert_eq!((url.hostname(), url.userinfo_text().as_str()), ("server.com", "admin:secret"));
        assert_eq!(url.to_string(), text);
        assert_eq!(Url::parse("mailto:a@b").unwrap().opaque, "a@b");
        assert_eq!(Url::parse(":a").unwrap_err().to_string(), r#"parse ":a": missing protocol scheme"#);
        assert_eq!(
            Url::parse("http://a%zz").unwrap_err().to_string(),
            r#"parse "http://a%zz": invalid URL escape "%zz""#
        );
    }
}
