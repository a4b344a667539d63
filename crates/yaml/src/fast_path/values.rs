//! What is made of a simple text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{
    Profile, Style,
    decode::{Floats, json_scalar},
    resolve::resolve,
};

/// Makes nodes of one kind of what [`crate::read_simple`] finds, from the innermost outwards.
pub trait Make {
    /// A finished node.
    type Node;
    /// A mapping in the making.
    type Map: Default;
    /// Which go-yaml types the scalars.
    const PROFILE: Profile;

    /// An unquoted scalar (nothing at all: empty); `None` if the whole of YAML shall read the text.
    fn plain(&mut self, text: Cow<'_, str>) -> Option<Self::Node>;

    /// A quoted scalar, or a literal or folded text.
    fn text(&mut self, text: Cow<'_, str>, style: Style) -> Self::Node;

    /// A sequence, in flow style or as a block.
    fn sequence(&mut self, items: Vec<Self::Node>, flow: bool) -> Self::Node;

    /// Adds an entry to a mapping; the key is text. `None` if the whole of YAML shall read the text.
    fn pair(&mut self, map: &mut Self::Map, key: Cow<'_, str>, style: Style, value: Self::Node)
    -> Option<()>;

    /// A mapping, in flow style or as a block.
    fn mapping(&mut self, map: Self::Map, flow: bool) -> Self::Node;

    /// What stands for a value that nobody asked for.
    fn unwanted_node() -> Self::Node;
}

/// Makes JSON values as sigs.k8s.io/yaml.
pub(super) struct Values {
    /// Whether a key must not occur twice.
    pub strict: bool,
    pub floats: Floats,
}

impl Make for Values {
    type Node = Value;
    type Map = Map<String, Value>;
    const PROFILE: Profile = Profile::Go2;

    fn plain(&mut self, text: Cow<'_, str>) -> Option<Value> {
        json_scalar(resolve(&text, Profile::Go2), self.floats)
    }

    fn text(&mut self, text: Cow<'_, str>, _: Style) -> Value {
        Value::String(text.into_owned())
    }

    fn sequence(&mut self, items: Vec<Value>, _: bool) -> Value {
        Value::Array(items)
    }

    fn pair(&mut self, map: &mut Self::Map, key: Cow<'_, str>, _: Style, value: Value) -> Option<()> {
        let is_new = map.insert(key.into_owned(), value).is_none();
        (is_new || !self.strict).then_some(())
    }

    fn mapping(&mut self, map: Self::Map, _: bool) -> Value {
        Value::Object(map)
    }

    fn unwanted_node() -> Value {
        Value::Null
    }
}
