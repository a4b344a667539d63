//! # A configuration in a ConfigMap that is no YAML, JSON or TOML
//!
//! A ConfigMap may hold anything; the program that reads it may not. A value whose name ends in `.yaml` or
//! `.json` and that does not parse stops the program when it starts. A key that is set twice loses one of its
//! two values, or is refused, as the program likes. Both come from indenting, and from merging.
//!
//! The same holds for texts elsewhere: what External Secrets or Sealed Secrets make a Secret from, with each
//! `{{ … }}` taken for some value, and the configuration of a network for Multus, which is JSON. And nginx does
//! not start where a `location` passes on to an address without `http://`.
//!
//! People see: `CrashLoopBackOff`, `error loading config: yaml: line 12: mapping values are not allowed in
//! this context`, `key "receivers" already set in map`, `failed to unmarshal thin plugin delegate conf:
//! invalid character '{' after array element`, `[emerg] invalid URL prefix`.
//!
//! ## Bad
//! ```yaml
//! data:
//!   config.yaml: |
//!     endpoints:
//!       - name: web
//!     url: http://web
//!       interval: 10s
//! ```
//! ## Good
//! ```yaml
//! data:
//!   config.yaml: |
//!     endpoints:
//!       - name: web
//!         url: http://web
//!         interval: 10s
//! ```
//! ## When to suppress
//! Where the program reads the text in a way of its own, or something completes it first.

use std::{borrow::Cow, collections::HashSet};

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};
use tiphys_yaml::{Content, Node, Profile};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders, unrendered_files,
        value_steps::{each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-broken-text",
    incident: "D2",
    severity: Severity::Warning,
    title: "a configuration inside an object that is no YAML, JSON or TOML",
    page: page!("d2_broken_text.rs"),
    check,
};

/// What the texts of other template languages, and of tools that fill in, are known by.
const FILLED_IN: [&str; 7] = ["{{", "{%", "${", "<%", "$(", "%{", "(("];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        passes_without_scheme(context, object, &mut once);
        let Some(holder) = holder(object) else { continue };
        let file = object.rendered.location.file.as_ref();
        if placeholders::is_skeleton(file) || unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        for (place, key, text) in holder.texts(object) {
            if let Some(why) = holder.fault(key, text) {
                add(context, object, &place, key, &why, &mut once);
            }
        }
    }
    once.report(report);
}

/// Tells of configurations of nginx that pass on to an address without a scheme (nginx docs, `proxy_pass` of
/// `ngx_http_proxy_module`). Outside of a `location` it is that of streams, which have none.
fn passes_without_scheme(context: &Context<'_>, object: &Object, once: &mut Once) {
    each_text(object.value(), &mut Vec::new(), &|_| true, &mut |steps, text| {
        if !text.contains("proxy_pass") || !text.contains("location") {
            return;
        }
        let mut is_in_location = false;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            match line.split_whitespace().next() {
                Some("location") => is_in_location = true,
                Some("server" | "stream" | "upstream") if line.ends_with('{') => is_in_location = false,
                _ => {}
            }
            let Some(address) = line.strip_prefix("proxy_pass ").filter(|_| is_in_location) else { continue };
            let address = address.split(';').next().unwrap_or_default().trim();
            let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            let is_bare = address.split_once(':').is_some_and(|(host, rest)| {
                !host.is_empty() && host.chars().all(is_host) && !rest.starts_with("//")
            });
            if !is_bare {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("nginx does not start with proxy_pass {address}: invalid URL prefix"))
                .at(context.survey.span(object, &path_below(FieldPath::default(), steps)), "in this text")
                .because("the address of a location has a scheme")
                .help(format!("write proxy_pass http://{address}"));
            once.add(address, RULE.finding(context, object, diagnostic).likely());
        }
    });
}

/// Where an object holds texts.
enum Holder {
    /// In a mapping, by names that tell the format.
    Files(FieldPath),
    /// In such a mapping, as templates that a controller fills in.
    Templates(FieldPath),
    /// In one field, which is JSON.
    Json(FieldPath),
}

fn holder(object: &Object) -> Option<Holder> {
    let holder = match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("", "ConfigMap") => Holder::Files(keys(&["data"])),
        ("", "Secret") => Holder::Files(keys(&["stringData"])),
        ("external-secrets.io", "ExternalSecret") => {
            Holder::Templates(keys(&["spec", "target", "template", "data"]))
        }
        ("external-secrets.io", "ClusterExternalSecret") => {
            Holder::Templates(keys(&["spec", "externalSecretSpec", "target", "template", "data"]))
        }
        ("external-secrets.io", "PushSecret") | ("bitnami.com", "SealedSecret") => {
            Holder::Templates(keys(&["spec", "template", "data"]))
        }
        ("k8s.cni.cncf.io", "NetworkAttachmentDefinition") => Holder::Json(keys(&["spec", "config"])),
        _ => return None,
    };
    Some(holder)
}

impl Holder {
    /// The texts, each with its place and its name.
    fn texts<'o>(&'o self, object: &'o Object) -> Vec<(FieldPath, &'o str, &'o str)> {
        let (Self::Files(path) | Self::Templates(path) | Self::Json(path)) = self;
        match (self, path.get(object.value())) {
            (Self::Json(_), Some(Value::String(text))) => vec![(path.clone(), "config", text)],
            (Self::Files(_) | Self::Templates(_), Some(Value::Object(texts))) => {
                let texts =
                    texts.iter().filter_map(|(key, it)| Some((path.key(key), key.as_str(), it.as_str()?)));
                texts.collect()
            }
            _ => Vec::new(),
        }
    }

    fn fault(&self, key: &str, text: &str) -> Option<TextError> {
        match self {
            Self::Files(_) => fault(key, text),
            Self::Templates(_) => match fault(key, &filled_in(text)?)? {
                // Two keys may be two different ones once they are filled in.
                TextError::Twice(twice) => is_written_twice(text, &twice).then_some(TextError::Twice(twice)),
                error => Some(error),
            },
            Self::Json(_) if is_filled_in(text) => None,
            // The plugins of the container network read nothing but JSON.
            Self::Json(_) => {
                let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
                Some(TextError::Syntax(error.to_string()))
            }
        }
    }
}

/// A template with some value for each thing that is filled in; `None` where it does more than that.
fn filled_in(text: &str) -> Option<Cow<'_, str>> {
    const CONTROL: [&str; 9] = ["if", "else", "end", "range", "with", "define", "template", "block", "/*"];
    if !text.contains("{{") {
        return Some(Cow::Borrowed(text));
    }
    // What is fetched may be the whole text.
    let bare = text.trim().trim_matches(['"', '\'']);
    if bare.starts_with("{{") && bare.ends_with("}}") && bare.matches("{{").count() == 1 {
        return None;
    }
    let mut parts = text.split("{{");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (action, after) = part.split_once("}}")?;
        let does_more = action.starts_with('-') || action.ends_with('-') || action.contains('`');
        // What it makes may have several lines, or be a key and its value.
        let is_long = ["indent", "toYaml", "range"].iter().any(|word| action.contains(word));
        if does_more || is_long || CONTROL.iter().any(|word| action.trim_start().starts_with(word)) {
            return None;
        }
        whole.push('0');
        whole.push_str(after);
    }
    Some(Cow::Owned(whole))
}

fn add(
    context: &Context<'_>,
    object: &Object,
    place: &FieldPath,
    key: &str,
    why: &TextError,
    once: &mut Once,
) {
    let (text, because) = match why {
        TextError::Syntax(why) => (
            format!("{key} of {} does not parse: {why}", object.title()),
            "by its name a program reads it as this format, and stops where it cannot",
        ),
        TextError::Twice(twice) => (
            format!("{key} of {} sets the key {twice:?} twice in one mapping", object.title()),
            "readers take one of the two and say nothing, or refuse the text",
        ),
    };
    let diagnostic =
        RULE.diagnostic(text).at(context.survey.span(object, place), "this text").because(because);
    once.add(key, RULE.finding(context, object, diagnostic).likely());
}

/// Whether a key is there twice before anything is filled in, outside of blocks that may be left out.
fn is_written_twice(text: &str, key: &str) -> bool {
    let is_it = |line: &&str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    !text.contains("{{-") && text.lines().filter(is_it).count() > 1
}

/// What is wrong with a text.
enum TextError {
    Syntax(String),
    Twice(String),
}

/// Whether a text is empty, or another tool writes parts of it.
fn is_filled_in(text: &str) -> bool {
    text.trim().is_empty() || FILLED_IN.iter().any(|mark| text.contains(mark))
}

fn fault(key: &str, text: &str) -> Option<TextError> {
    if is_filled_in(text) {
        return None;
    }
    if key.ends_with(".json") {
        return json(text);
    }
    // oauth2-proxy reads its configuration as TOML, whatever it is called.
    let is_of_proxy = key.ends_with(".cfg") && key.starts_with("oauth2");
    if key.ends_with(".toml") || is_of_proxy {
        return toml(text);
    }
    if !key.ends_with(".yaml") && !key.ends_with(".yml") {
        return None;
    }
    match tiphys_yaml::parse_documents(text, Profile::Go3) {
        Err(error) => Some(TextError::Syntax(error.to_string().trim_start_matches("yaml: ").to_owned())),
        Ok(documents) => {
            let twice = documents.iter().find_map(|document| twice(&document.root, 0));
            twice.map(|key| TextError::Twice(key.to_owned()))
        }
    }
}

/// Why a text is no TOML 1.0, which is what most programs read.
fn toml(text: &str) -> Option<TextError> {
    if let Err(error) = toml::from_str::<toml::Table>(text) {
        return Some(TextError::Syntax(error.message().to_owned()));
    }
    split_table(text).then(|| TextError::Syntax("an inline table goes on in the next line".to_owned()))
}

/// Whether a text, which is TOML 1.1, has an inline table of several lines, which TOML 1.0 does not allow.
fn split_table(text: &str) -> bool {
    let mut open: Vec<char> = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| rest.starts_with(quotes));
        let length = match (quotes, next) {
            (Some(quotes), _) => quoted(rest, quotes),
            (None, '#') => rest.find('\n').unwrap_or(rest.len()),
            (None, _) => next.len_utf8(),
        };
        match next {
            '{' | '[' => open.push(next),
            '}' | ']' => drop(open.pop()),
            '\n' if open.last() == Some(&'{') => return true,
            _ => {}
        }
        rest = &rest[length..];
    }
    false
}

/// How long a text between quotes is that a text begins with.
fn quoted(text: &str, quotes: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(quotes.len()) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quotes.starts_with('"') => escaped = true,
            _ if text[at..].starts_with(quotes) => return at + quotes.len(),
            _ => {}
        }
    }
    text.len()
}

/// Why a text is no JSON, nor what lenient readers take for it: YAML in braces, JSON with comments.
fn json(text: &str) -> Option<TextError> {
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let has_comments = text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("/*") || line.contains(" //")
    });
    let is_lenient = has_comments || tiphys_yaml::parse_documents(text, Profile::Go3).is_ok();
    // Several values one after the other are a format of their own.
    let is_lines = error.to_string().starts_with("trailing characters");
    (!is_lenient && !is_lines).then(|| TextError::Syntax(error.to_string()))
}

/// A key that a mapping below a node has twice, with values that differ.
fn twice(node: &Node, depth: usize) -> Option<&str> {
    const MAX_DEPTH: usize = 100;
    if depth > MAX_DEPTH {
        return None;
    }
    match &node.content {
        Content::Mapping(pairs) => {
            let mut seen: HashSet<&str> = HashSet::new();
            pairs.iter().find_map(|(key, value)| match &key.content {
                Content::Scalar(name) if name != "<<" && !seen.insert(name) => Some(&**name),
                _ => twice(value, depth + 1),
            })
        }
        Content::Sequence(items) => items.iter().find_map(|item| twice(item, depth + 1)),
        Content::Scalar(_) | Content::Alias(_) => None,
    }
}
