//! A node as Go prints the map that it is decoded into (`%#v`), which kustomize shows where that map has no
//! form in YAML.

use std::borrow::Cow;

use tiphys_gocompat::fmt::{Arg, Shape, Visitor, sprintf};

use super::{
    Content, Node, Resolved,
    json::{Meaning, meaning, reads_back_as_text},
};

/// The node as a Go value in Go's syntax; moments are shown as texts.
pub(crate) fn go_syntax(node: &Node) -> String {
    sprintf("%#v", &[&GoValue(node) as &dyn Arg])
}

struct GoValue<'n>(&'n Node);

impl GoValue<'_> {
    fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0.value())
    }
}

impl Arg for GoValue<'_> {
    fn shape(&self) -> Shape<'_> {
        match &self.0.content {
            Content::Seq(_) => return Shape::List(false),
            Content::Map(_) => return Shape::Map(false),
            Content::Scalar(_) => {}
        }
        match meaning(self.0) {
            Ok(Meaning::Decoded(text)) => Shape::Str(Cow::Owned(text)),
            Ok(Meaning::Other(Resolved::Null)) => Shape::Nil,
            Ok(Meaning::Other(Resolved::Bool(value))) => Shape::Bool(value),
            Ok(Meaning::Other(Resolved::Int(value))) => Shape::Int(value),
            Ok(Meaning::Other(Resolved::UInt(value))) => Shape::Uint(value),
            Ok(Meaning::Other(Resolved::Float(value))) => Shape::Float(value),
            Ok(Meaning::Other(Resolved::Timestamp(text))) => Shape::Str(Cow::Owned(text)),
            Ok(Meaning::Text | Meaning::Other(Resolved::Str | Resolved::Merge)) | Err(_) => {
                Shape::Str(self.text())
            }
        }
    }

    fn type_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match &self.0.content {
            Content::Seq(_) => "[]interface {}",
            Content::Map(pairs) if pairs.iter().all(|(key, _)| reads_back_as_text(key)) => {
                "map[string]interface {}"
            }
            Content::Map(_) => "map[interface {}]interface {}",
            Content::Scalar(_) => "string",
        })
    }

    fn each(&self, visit: &mut Visitor<'_>) {
        match &self.0.content {
            Content::Scalar(_) => {}
            Content::Seq(items) => items.iter().for_each(|item| visit(None, &GoValue(item))),
            Content::Map(pairs) => {
                let mut sorted: Vec<_> = pairs.iter().map(|(key, value)| (key.value(), value)).collect();
                sorted.sort_by_key(|(key, _)| *key);
                sorted.into_iter().for_each(|(key, value)| visit(Some(key), &GoValue(value)));
            }
        }
    }
}
