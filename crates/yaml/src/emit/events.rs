//! What the emitter is fed with.

use std::borrow::Cow;

use super::state::Emitter;
use crate::{
    Comments, Content, Node, Profile, Style,
    resolve::{Scalar, resolve},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Alias(&'a str),
    Scalar(&'a str, Style),
    SequenceStart { flow: bool, empty: bool },
    SequenceEnd,
    MappingStart { flow: bool, empty: bool },
    MappingEnd,
}

/// One step of a document being written.
#[derive(Clone, Debug)]
pub(super) struct Event<'a> {
    pub kind: Kind<'a>,
    pub anchor: &'a str,
    /// In long form; empty if it need not be written.
    pub tag: Cow<'a, str>,
    pub head: &'a str,
    pub line: &'a str,
    pub foot: &'a str,
    /// The foot comment of the key before this one.
    pub tail: &'a str,
}

impl<'a> Event<'a> {
    pub(super) fn new(kind: Kind<'a>) -> Self {
        Self { kind, anchor: "", tag: Cow::Borrowed(""), head: "", line: "", foot: "", tail: "" }
    }

    /// A key's foot comment is written behind the value, as the next key's tail.
    fn comments(mut self, comments: Option<&'a Comments>, is_key: bool) -> Self {
        if let Some(comments) = comments {
            self.head = &comments.head;
            self.line = &comments.line;
            self.foot = if is_key { "" } else { &comments.foot };
        }
        self
    }
}

impl<'a> Emitter<'a> {
    /// Writes a node as go-yaml v3's encoder does; `tail` is the foot comment of the key before it.
    pub(super) fn node(&mut self, node: &'a Node, tail: &'a str, is_key: bool) {
        let comments = node.comments.as_deref();
        let (tag, force_quotes) = written_tag(node);
        let anchor = node.anchor.as_deref().unwrap_or("");
        let flow = node.style == Style::Flow;
        match &node.content {
            Content::Scalar(text) => {
                let style = scalar_style(node, text, force_quotes);
                let mut event = Event::new(Kind::Scalar(text, style)).comments(comments, is_key);
                event.anchor = anchor;
                event.tag = tag;
                event.tail = tail;
                self.event(event);
            }
            Content::Alias(name) => {
                self.event(Event::new(Kind::Alias(name)).comments(comments, is_key));
            }
            Content::Sequence(items) => {
                let mut start = Event::new(Kind::SequenceStart { flow, empty: items.is_empty() });
                start.head = comments.map_or("", |c| &c.head);
                start.anchor = anchor;
                start.tag = tag;
                self.event(start);
                for item in items {
                    self.node(item, "", false);
                }
                let mut end = Event::new(Kind::SequenceEnd).comments(comments, is_key);
                end.head = "";
                self.event(end);
            }
            Content::Mapping(pairs) => {
                let mut start = Event::new(Kind::MappingStart { flow, empty: pairs.is_empty() });
                start.head = comments.map_or("", |c| &c.head);
                start.tail = tail;
                start.anchor = anchor;
                start.tag = tag;
                self.event(start);
                let mut tail = "";
                for (key, value) in pairs {
                    self.node(key, tail, true);
                    tail = key.foot();
                    self.node(value, "", false);
                }
                let mut end = Event::new(Kind::MappingEnd).comments(comments, is_key);
                end.head = "";
                end.tail = tail;
                self.event(end);
            }
        }
    }
}

fn scalar_style(node: &Node, text: &str, force_quotes: bool) -> Style {
    match node.style {
        Style::Plain | Style::Flow if text.contains('\n') => Style::Literal,
        Style::Plain | Style::Flow if force_quotes => Style::DoubleQuoted,
        Style::Plain | Style::Flow => Style::Plain,
        style => style,
    }
}

/// The tag that has to be written, in long form, and whether quotes are needed instead.
fn written_tag(node: &Node) -> (Cow<'_, str>, bool) {
    const NONE: Cow<'static, str> = Cow::Borrowed("");
    if node.tag.is_empty() {
        return (NONE, false);
    }
    let tag = node.tag.as_str();
    if !node.explicit_tag {
        match &node.content {
            Content::Scalar(text) => {
                let quoted = !matches!(node.style, Style::Plain | Style::Flow);
                if tag == "!!str" && quoted {
                    return (NONE, false);
                }
                let resolved = resolve(text, Profile::Go3);
                if resolved.tag() == tag {
                    return (NONE, false);
                }
                if tag == "!!str" {
                    return (NONE, !matches!(resolved, Scalar::Str(_)));
                }
            }
            Content::Mapping(_) if tag == "!!map" => return (NONE, false),
            Content::Sequence(_) if tag == "!!seq" => return (NONE, false),
            _ => {}
        }
    }
    match tag.strip_prefix("!!") {
        Some(short) => (Cow::Owned(format!("tag:yaml.org,2002:{short}")), false),
        None => (Cow::Borrowed(tag), false),
    }
}
