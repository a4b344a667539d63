//! Sequences of requests, written by hand.
//!
//! A file is a list of requests: `METHOD PATH [CONTENT-TYPE]`, header lines `> NAME: VALUE`, the body on the
//! next line if there is one, an empty line. Lines that start with `#` say what the requests are about.
//! Several lines of bodies are several requests; `{a|b}` in a path or header makes one with `a` and one with
//! `b`, for each body.

use std::{fs, path::Path};

use anyhow::Context;
use serde_json::Value;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exchange {
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
    pub(super) fn new(method: &str, path: impl Into<String>, body: &Value) -> Self {
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
    pub(super) fn of_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    /// The same with a header.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Requests that belong together and are sent in order.
pub(super) struct Sequence {
    /// What they are about.
    pub name: String,
    /// The requests.
    pub exchanges: Vec<Exchange>,
}

/// Every file of a folder, by name.
///
/// # Errors
/// The folder or a file cannot be read.
pub(super) fn read(folder: &Path) -> anyhow::Result<Vec<Sequence>> {
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
    text.split("\n\n").filter_map(parse_block).flatten().collect()
}

fn parse_block(block: &str) -> Option<Vec<Exchange>> {
    let mut lines = block.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).peekable();
    let mut words = lines.next()?.split(' ');
    let (method, paths) = (words.next()?, alternatives(words.next()?));
    let kind = words.next().unwrap_or("application/json");
    let mut headers = vec![Vec::new()];
    while let Some(header) = lines.next_if(|line| line.starts_with("> ")) {
        let (name, value) = header[2..].split_once(": ").unwrap_or((&header[2..], ""));
        let values = alternatives(value);
        let with = |value: &String| {
            let header = (name.to_owned(), value.clone());
            headers.iter().map(move |set: &Vec<_>| [set.as_slice(), std::slice::from_ref(&header)].concat())
        };
        headers = values.iter().flat_map(with).collect();
    }
    let bodies: Vec<&str> = if lines.peek().is_some() { lines.collect() } else { vec![""] };
    let mut exchanges = Vec::new();
    for body in bodies {
        for path in &paths {
            exchanges.extend(headers.iter().map(|headers| Exchange {
                method: method.to_owned(),
                path: path.clone(),
                content_type: kind.to_owned(),
                headers: headers.clone(),
                body: body.to_owned(),
            }));
        }
    }
    Some(exchanges)
}

/// The texts that one with `{a|b}` in it stands for.
fn alternatives(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (choice, after))) = parts else { return vec![text.to_owned()] };
    let ends = alternatives(after);
    choice.split('|').flat_map(|word| ends.iter().map(move |end| format!("{before}{word}{end}"))).collect()
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

    #[test]
    fn one_block_can_stand_for_many_requests() {
        let found = parse("POST /{a|b}?{|dryRun=All}\n> x: {1|2}\n{\"k\":1}\n{\"k\":2}\n");
        assert_eq!(found.len(), 16);
        let shown = |at: usize| {
            let exchange: &Exchange = &found[at];
            (exchange.path.as_str(), exchange.headers[0].1.as_str(), exchange.body.as_str())
        };
        assert_eq!(shown(0), ("/a?", "1", "{\"k\":1}"));
        assert_eq!(shown(15), ("/b?dryRun=All", "2", "{\"k\":2}"));
    }
}
