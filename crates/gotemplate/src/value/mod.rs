//! Values as templates see them: Go kinds, shared mutable maps and lists, struct-like objects.

pub(crate) mod changes;
mod drop;
pub(crate) mod json;
mod list;
mod map;
mod object;
mod types;

pub use list::{List, ListType};
pub use map::{Entry, Map, MapMethods, MapType};
pub use object::{CallResult, Kind, Object, Signature};
pub use types::Type;

use smol_str::SmolStr;
use std::rc::Rc;

/// Identifies where a value came from; `0` means unknown. Given out by a [`Tracer`](crate::Tracer).
pub type OriginId = u32;

/// A value during a render. Cloning is cheap; maps and lists are shared by reference as in Go.
///
/// Strings may hold bytes that are not UTF-8 in the reversible form of [`tiphys_gocompat::rawstr`].
#[derive(Clone, Default)]
pub enum Value {
    /// No value at all: the result of a pipeline that yielded nil, or of a missing key. Prints `<no value>`.
    #[default]
    NoValue,
    /// A nil stored in an `interface {}`: a null in a map or list, the `nil` literal as an argument.
    Nil,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `int64`
    Int64(i64),
    /// `float64`
    Float64(f64),
    /// `uint8`, as made by indexing a string
    Uint8(u8),
    /// `uint64`, as made by the parts of a semantic version
    Uint64(u64),
    /// `string`
    String(SmolStr),
    /// `[]uint8`
    Bytes(Rc<[u8]>),
    /// Slices of every other type
    List(List),
    /// Maps with string keys
    Map(Map),
    /// Structs, pointers to structs and named types
    Object(Rc<dyn Object>),
}

impl Value {
    /// A string value.
    pub fn string(text: impl AsRef<str>) -> Self {
        Self::String(SmolStr::new(text.as_ref()))
    }

    /// A `[]interface {}`.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(List::new(items))
    }

    /// A `[]string`.
    pub fn strings<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Self {
        Self::List(List::with_type(ListType::String, items.into_iter().map(Value::string).collect()))
    }

    /// A struct-like value.
    pub fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// As [`Map::share`], of what is or holds maps.
    pub fn share(&self) {
        let mut queue = vec![self.clone()];
        while let Some(value) = queue.pop() {
            match value {
                Self::Map(map) if !map.0.shared.replace(true) => {
                    let entries = map.0.entries.borrow();
                    let values = entries.iter().map(|entry| &entry.value);
                    queue.extend(values.filter(|value| value.is_container()).cloned());
                }
                Self::List(list) if !list.0.shared.replace(true) => {
                    let items = list.0.items.borrow();
                    queue.extend(items.iter().filter(|item| item.is_container()).cloned());
                }
                _ => {}
            }
        }
    }

    /// Whether it holds other values that are shared.
    fn is_container(&self) -> bool {
        matches!(self, Self::Map(_) | Self::List(_))
    }

    /// How often what was shared on this thread has been changed: as long as that stays the same, no
    /// execution on it has left anything for the next one to find.
    pub fn changes_of_shared() -> u64 {
        changes::change_count()
    }

    /// True for nil and for no value.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::NoValue | Self::Nil)
    }

    /// The text of a string value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The map of a map value.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The list of a list value.
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Truth as `if` sees it: not the zero value of its type; structs are always true.
    pub fn truth(&self) -> bool {
        match self {
            Self::NoValue | Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) | Self::Int64(value) => *value != 0,
            Self::Float64(value) => *value != 0.0,
            Self::Uint8(value) => *value != 0,
            Self::Uint64(value) => *value != 0,
            Self::String(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.content().is_none_or(|content| content.truth()),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(SmolStr::from(text))
    }
}

impl From<SmolStr> for Value {
    fn from(text: SmolStr) -> Self {
        Self::String(text)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}
