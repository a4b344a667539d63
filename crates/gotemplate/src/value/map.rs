//! Maps with string keys, shared and mutable.

use super::{OriginId, Signature, Value, changes};
use crate::parse::Name;
use crate::{CallResult, Clock};
use smol_str::SmolStr;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::Rc;

/// One entry of a [`Map`].
#[derive(Clone)]
pub struct Entry {
    /// The key.
    pub key: SmolStr,
    /// The value.
    pub value: Value,
    /// Where the value came from; `0` if unknown.
    pub origin: OriginId,
}

/// Methods of a named map type such as Helm's `common.Values`.
pub trait MapMethods: Sync {
    /// The Go name of the type.
    fn type_name(&self) -> &'static str;
    /// The signature of the method `name`, if there is one.
    fn method(&self, name: &str) -> Option<Signature>;
    /// Calls the method `name`; the arguments fit its signature. `clock` is the render's.
    ///
    /// # Errors
    /// Whatever the method reports.
    fn call(&self, map: &Map, clock: &dyn Clock, name: &str, args: &[Value]) -> CallResult;
}

/// The Go type of a [`Map`].
#[derive(Clone, Copy)]
pub enum MapType {
    /// `map[string]interface {}`
    Any,
    /// `map[string]string`
    String,
    /// A named type over `map[string]interface {}`, possibly with methods.
    Named(&'static dyn MapMethods),
}

impl MapType {
    /// Whether the element type is `interface {}`.
    pub fn holds_any(self) -> bool {
        !matches!(self, Self::String)
    }
}

impl PartialEq for MapType {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, Self::Any) | (Self::String, Self::String) => true,
            (Self::Named(a), Self::Named(b)) => a.type_name() == b.type_name(),
            _ => false,
        }
    }
}

pub(super) struct Inner {
    nil: bool,
    /// Whether others than the running template see it, see [`Map::share`].
    pub(super) shared: Cell<bool>,
    /// Whether somebody has looked at its entries since [`Map::take_read`].
    read: Cell<bool>,
    pub(super) entries: RefCell<Vec<Entry>>,
    origin: Cell<OriginId>,
}

impl Inner {
    /// The entries, for somebody who looks at them.
    fn entries_ref(&self) -> Ref<'_, Vec<Entry>> {
        self.read.set(true);
        self.entries.borrow()
    }

    /// The entries, for somebody who changes them.
    fn change(&self) -> RefMut<'_, Vec<Entry>> {
        if self.shared.get() {
            changes::count();
        }
        self.entries.borrow_mut()
    }
}

/// A map shared by reference: clones see each other's changes, as in Go. Keys are kept sorted.
#[derive(Clone)]
pub struct Map(pub(super) Rc<Inner>, MapType);

impl Default for Map {
    fn default() -> Self {
        Self::new()
    }
}

impl Map {
    /// An empty `map[string]interface {}`.
    pub fn new() -> Self {
        Self::with_type(MapType::Any)
    }

    /// An empty map of another type.
    pub fn with_type(kind: MapType) -> Self {
        Self::from_parts(kind, false, Vec::new())
    }

    /// The nil map of a type: empty, and inserting fails.
    pub fn nil(kind: MapType) -> Self {
        Self::from_parts(kind, true, Vec::new())
    }

    /// A `map[string]interface {}` of entries in any order; the last of equal keys wins.
    pub fn from_entries(kind: MapType, mut entries: Vec<Entry>) -> Self {
        if !entries.is_sorted_by(|a, b| a.key < b.key) {
            entries.sort_by(|a, b| a.key.cmp(&b.key));
            entries.reverse();
            entries.dedup_by(|later, kept| later.key == kept.key);
            entries.reverse();
        }
        Self::from_parts(kind, false, entries)
    }

    /// As [`Map::from_entries`], and shared as [`Map::share`] makes it; so has to be all that the entries
    /// hold.
    pub fn from_shared(kind: MapType, entries: Vec<Entry>) -> Self {
        let map = Self::from_entries(kind, entries);
        map.0.shared.set(true);
        map
    }

    fn from_parts(kind: MapType, nil: bool, entries: Vec<Entry>) -> Self {
        let entries = RefCell::new(entries);
        let (shared, read, origin) = (Cell::new(false), Cell::new(false), Cell::new(0));
        Self(Rc::new(Inner { nil, shared, read, entries, origin }), kind)
    }

    /// Says that others than the running template see the map and all that it holds: whoever changes it
    /// changes what they do. What is put into it later is shared, too.
    pub fn share(&self) {
        Value::Map(self.clone()).share();
    }

    /// Identifies the map, of whatever type it is taken for, as long as it lives.
    pub(crate) fn address(&self) -> usize {
        Rc::as_ptr(&self.0) as usize
    }

    /// Whether [`Map::share`] was said of it.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.shared.get()
    }

    /// Whether somebody has looked at the entries since this was last asked.
    pub(crate) fn take_read(&self) -> bool {
        self.0.read.take()
    }

    /// Says that somebody has looked at the entries.
    pub(crate) fn mark_read(&self) {
        self.0.read.set(true);
    }

    /// The map's type.
    pub fn map_type(&self) -> MapType {
        self.1
    }

    /// The same map, shared, as a `map[string]interface {}`.
    pub fn as_unnamed(&self) -> Self {
        Self(self.0.clone(), MapType::Any)
    }

    /// The same map, shared, as a named type.
    pub fn as_named(&self, methods: &'static dyn MapMethods) -> Self {
        Self(self.0.clone(), MapType::Named(methods))
    }

    /// Whether this is a nil map.
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.entries_ref().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are the same map, not only equal ones.
    pub fn same(&self, other: &Map) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        let entries = self.0.entries_ref();
        find(&entries, key).ok().map(|at| entries[at].value.clone())
    }

    /// The value of a key with its origin, which falls back to that of the whole map.
    pub fn get_with_origin(&self, key: &str) -> Option<(Value, OriginId)> {
        let entries = self.0.entries_ref();
        let entry = &entries[find(&entries, key).ok()?];
        Some((entry.value.clone(), if entry.origin == 0 { self.0.origin.get() } else { entry.origin }))
    }

    /// As [`Map::get_with_origin`], looking first where a key was found the last time, which it changes.
    pub(crate) fn get_where_found(&self, name: Name<'_>) -> Option<(Value, OriginId)> {
        let entries = self.0.entries_ref();
        let entry = find_again(&entries, name)?;
        Some((entry.value.clone(), if entry.origin == 0 { self.0.origin.get() } else { entry.origin }))
    }

    /// What stands below a chain of few keys, and whether the last map holds values of any type. Nothing
    /// unless all of them are keys of maps: methods, missing keys and their errors are for whoever asks.
    pub(crate) fn descend<'n>(&self, mut names: impl Iterator<Item = Name<'n>>) -> Option<(Value, bool)> {
        self.step(names.next()?, &mut names)
    }

    fn step<'n>(&self, name: Name<'n>, rest: &mut dyn Iterator<Item = Name<'n>>) -> Option<(Value, bool)> {
        if let MapType::Named(methods) = self.1
            && methods.method(name.text).is_some()
        {
            return None;
        }
        let entries = self.0.entries_ref();
        let value = &find_again(&entries, name)?.value;
        match (rest.next(), value) {
            (None, value) => Some((value.clone(), self.1.holds_any())),
            (Some(next), Value::Map(below)) => below.step(next, rest),
            _ => None,
        }
    }

    /// Whether there is such a key.
    pub fn contains(&self, key: &str) -> bool {
        find(&self.0.entries_ref(), key).is_ok()
    }

    /// Sets a key.
    pub fn insert(&self, key: impl Into<SmolStr>, value: impl Into<Value>) {
        self.insert_with_origin(key, value, 0);
    }

    /// Sets a key and says where its value came from.
    pub fn insert_with_origin(&self, key: impl Into<SmolStr>, value: impl Into<Value>, origin: OriginId) {
        let (key, mut value) = (key.into(), value.into());
        if matches!(value, Value::NoValue) {
            value = Value::Nil;
        }
        if self.is_shared() {
            value.share();
        }
        let replaced = {
            let mut entries = self.0.change();
            let at = match entries.last() {
                Some(last) if *last.key < *key => Err(entries.len()),
                _ => find(&entries, &key),
            };
            match at {
                Ok(at) => {
                    entries[at].origin = origin;
                    Some(std::mem::replace(&mut entries[at].value, value))
                }
                Err(at) => {
                    entries.insert(at, Entry { key, value, origin });
                    None
                }
            }
        };
        drop(replaced);
    }

    /// Sets a key of a shared map to a map which is another one for each outermost template, see
    /// [`Memo::vary`](crate::Memo::vary). This counts as no change.
    pub fn vary(&self, key: &str, map: Map) {
        let shared = self.0.shared.replace(false);
        self.insert(key, map);
        self.0.shared.set(shared);
    }

    /// Removes what [`Map::vary`] has set. This counts as no change.
    pub fn unvary(&self, key: &str) {
        let shared = self.0.shared.replace(false);
        self.remove(key);
        self.0.shared.set(shared);
    }

    /// Removes a key and returns its value.
    pub fn remove(&self, key: &str) -> Option<Value> {
        let mut entries = self.0.change();
        find(&entries, key).ok().map(|at| entries.remove(at).value)
    }

    /// The entries in key order. Do not change the map while holding the borrow.
    pub fn entries(&self) -> Ref<'_, [Entry]> {
        Ref::map(self.0.entries_ref(), Vec::as_slice)
    }

    /// A copy of the entries in key order.
    pub fn snapshot(&self) -> Vec<Entry> {
        self.0.entries_ref().clone()
    }

    /// Where the map came from; `0` if unknown.
    pub fn origin(&self) -> OriginId {
        self.0.origin.get()
    }

    /// Says where the map came from.
    pub fn set_origin(&self, origin: OriginId) {
        self.0.origin.set(origin);
    }
}

/// The entry of a name, sought first where the name was found the last time.
fn find_again<'e>(entries: &'e [Entry], name: Name<'_>) -> Option<&'e Entry> {
    match entries.get(name.last_entry()) {
        Some(entry) if entry.key == *name.text => Some(entry),
        _ => {
            let at = find(entries, name.text).ok()?;
            name.find_at(at);
            Some(&entries[at])
        }
    }
}

/// Up to so many entries are searched one by one: most keys differ in length already.
const FEW: usize = 12;

fn find(entries: &[Entry], key: &str) -> Result<usize, usize> {
    if entries.len() <= FEW
        && let Some(at) = entries.iter().position(|entry| entry.key == key)
    {
        return Ok(at);
    }
    entries.binary_search_by(|entry| entry.key.as_bytes().cmp(key.as_bytes()))
}

impl<K: Into<SmolStr>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(items: I) -> Self {
        let map = Map::new();
        for (key, value) in items {
            map.insert(key, value);
        }
        map
    }
}
