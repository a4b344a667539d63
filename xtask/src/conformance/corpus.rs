//! Sequences of requests, written by hand.
//!
//! A file is a list of requests: `METHOD PATH [CONTENT-TYPE]`, header lines `> NAME: VALUE`, the body on the
//! next line if there is one, an empty line. Lines that start with `#` say what the requests are about.

use std::{fs, path::Path};

use anyhow::Context;
use serde_json::Value;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Type of the body.
    pub content_type: String,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The body, or empty.
    pub body: String,
}

impl Exchange {
    /// A request with a JSON body; `null` for none.
    pub fn new(method: &str, path: impl Into<String>, body: &Value) -> Self {
        Self {
            method: method.to_owned(),
            path: path.into(),
            content_type: "application/json".to_owned(),
            headers: Vec::new(),
            body: if body.is_null() { String::new() } else { body.to_string() },
        }
    }

    /// The same with a body of another type.
    #[must_use]
    pub fn of_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    /// The same with a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Requests that belong together and are sent in order.
pub struct Sequence {
    /// What they are about.
    pub name: String,
    /// The requests.
    pub exchanges: Vec<Exchange>,
}

/// Every file of a folder, by name.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Sequence>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Sequence { name, exchanges: parse(&text) })
    };
    files.iter().map(read).collect()
}

fn parse(text: &str) -> Vec<Exchange> {
    text.split("\n\n").filter_map(parse_one).collect()
}

fn parse_one(block: &str) -> Option<Exchange> {
    let mut lines = block.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).peekable();
    let mut words = lines.next()?.split(' ');
    let mut exchange = Exchange::new(words.next()?, words.next()?, &Value::Null);
    if let Some(kind) = words.next() {
        exchange = exchange.of_type(kind);
    }
    while let Some(header) = lines.next_if(|line| line.starts_with("> ")) {
        let (name, value) = header[2..].split_once(": ").unwrap_or((&header[2..], ""));
        exchange = exchange.with(name, value);
    }
    exchange.body = lines.next().unwrap_or_default().to_owned();
    Some(exchange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_requests_with_headers_and_bodies() {
        let text = "# about\nGET /api\n> Accept: x/y\n\nPOST /a application/yaml\nkind: A\n\n";
        let found = parse(text);
        assert_eq!(found[0].headers, [("Accept".to_owned(), "x/y".to_owned())]);
        assert_eq!((found[1].content_type.as_str(), found[1].body.as_str()), ("application/yaml", "kind: A"));
    }
}
