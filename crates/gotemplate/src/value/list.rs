//! Slices, shared by reference.

use super::{OriginId, Value, changes};
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

/// The Go type of a [`List`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListType {
    /// `[]interface {}`
    Any,
    /// `[]string`
    String,
    /// `[]int`
    Int,
    /// `[][]interface {}`
    Lists,
    /// `[]map[string]interface {}`
    Maps,
    /// A slice of another type, by its Go name (with the brackets).
    Named(&'static str),
}

pub(super) struct Inner {
    kind: ListType,
    nil: bool,
    /// Whether what it holds is shared, see [`Map::share`](super::Map::share).
    pub(super) shared: Cell<bool>,
    pub(super) items: RefCell<Vec<Value>>,
    origins: RefCell<Vec<OriginId>>,
    origin: Cell<OriginId>,
}

/// A slice. Clones share the items; only sorting in place changes them.
#[derive(Clone)]
pub struct List(pub(super) Rc<Inner>);

impl List {
    /// A `[]interface {}`.
    pub fn new(items: Vec<Value>) -> Self {
        Self::with_type(ListType::Any, items)
    }

    /// A `[]interface {}` that is shared as [`Value::share`] makes it; so have to be its items.
    pub fn from_shared(items: Vec<Value>) -> Self {
        let list = Self::new(items);
        list.0.shared.set(true);
        list
    }

    /// A slice of another type.
    pub fn with_type(kind: ListType, items: Vec<Value>) -> Self {
        Self::from_parts(kind, false, items)
    }

    /// The nil slice of a type.
    pub fn nil(kind: ListType) -> Self {
        Self::from_parts(kind, true, Vec::new())
    }

    fn from_parts(kind: ListType, nil: bool, mut items: Vec<Value>) -> Self {
        for item in &mut items {
            if matches!(item, Value::NoValue) {
                *item = Value::Nil;
            }
        }
        Self(Rc::new(Inner {
            kind,
            nil,
            shared: Cell::new(false),
            items: RefCell::new(items),
            origins: RefCell::new(Vec::new()),
            origin: Cell::new(0),
        }))
    }

    /// The slice's type.
    pub fn list_type(&self) -> ListType {
        self.0.kind
    }

    /// Whether this is a nil slice.
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.0.items.borrow().len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are the same slice, not only equal ones.
    pub fn same(&self, other: &List) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// The item at an index.
    pub fn get(&self, index: usize) -> Option<Value> {
        self.0.items.borrow().get(index).cloned()
    }

    /// Where the item at an index came from; falls back to that of the whole list.
    pub fn origin_of(&self, index: usize) -> OriginId {
        match self.0.origins.borrow().get(index) {
            Some(&origin) if origin != 0 => origin,
            _ => self.0.origin.get(),
        }
    }

    /// The items. Do not sort the list while holding the borrow.
    pub fn items(&self) -> Ref<'_, [Value]> {
        Ref::map(self.0.items.borrow(), Vec::as_slice)
    }

    /// A copy of the items.
    pub fn snapshot(&self) -> Vec<Value> {
        self.0.items.borrow().clone()
    }

    /// Sorts a list of strings in place, as Go's `sort.Strings` does to a shared slice.
    pub(crate) fn sort_strings(&self) {
        if self.0.shared.get() {
            changes::count();
        }
        self.0.items.borrow_mut().sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }

    /// Where the list came from; `0` if unknown.
    pub fn origin(&self) -> OriginId {
        self.0.origin.get()
    }

    /// Says where the list came from.
    pub fn set_origin(&self, origin: OriginId) {
        self.0.origin.set(origin);
    }

    /// Says where each item came from.
    pub fn set_origins(&self, origins: Vec<OriginId>) {
        *self.0.origins.borrow_mut() = origins;
    }
}
