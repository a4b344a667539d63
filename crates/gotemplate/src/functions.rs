//! The table of functions that templates may call.

use crate::parse::CallableNames;
use crate::{CallResult, Context, Signature, Type, Value};
use rustc_hash::FxHashMap;

type Body = dyn Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync;

/// Functions that the executor treats specially.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    None,
    And,
    Or,
    Call,
}

/// One function.
pub struct Function {
    pub(crate) name: &'static str,
    pub(crate) signature: Signature,
    pub(crate) special: Special,
    /// Whether it goes through all that its arguments hold, at any depth.
    pub(crate) walks: bool,
    /// Whether it makes a copy of that.
    pub(crate) copies: bool,
    /// Of a closure that captures nothing, which most are, this takes no memory.
    pub(crate) body: Box<Body>,
}

impl Function {
    /// A function with a fixed number of parameters. The executor checks number and types of arguments first.
    pub fn new(
        name: &'static str,
        params: &'static [Type],
        body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        Self::with_signature(name, Signature::fixed(params), body)
    }

    /// A function whose last parameter repeats.
    pub fn variadic(
        name: &'static str,
        params: &'static [Type],
        body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        Self::with_signature(name, Signature::variadic(params), body)
    }

    fn with_signature(
        name: &'static str,
        signature: Signature,
        body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        Self { name, signature, special: Special::None, walks: false, copies: false, body: Box::new(body) }
    }

    pub(crate) fn special(mut self, special: Special) -> Self {
        self.special = special;
        self
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Functions by name.
#[derive(Default)]
pub struct Functions {
    /// Functions by their ids; those that were replaced or removed stay.
    all: Vec<Function>,
    by_name: FxHashMap<&'static str, u32>,
}

/// How many functions Go, Sprig and Helm have, about.
const EXPECTED: usize = 288;

impl Functions {
    /// An empty table with room for the functions that there usually are.
    pub(crate) fn with_room() -> Self {
        Self {
            all: Vec::with_capacity(EXPECTED),
            by_name: FxHashMap::with_capacity_and_hasher(EXPECTED, Default::default()),
        }
    }

    /// Adds or replaces a function.
    pub fn insert(&mut self, function: Function) {
        self.by_name.insert(function.name, self.all.len() as u32);
        self.all.push(function);
    }

    /// Says of functions that they go through all that their arguments hold, at any depth. Values may be
    /// shared, so that little memory holds much to go through: such calls are refused past
    /// [`Limits::values`](crate::Limits::values).
    pub fn walking(&mut self, names: &[&str]) {
        for name in names {
            let id = self.by_name.get(name).copied();
            debug_assert!(id.is_some(), "{name} is not a function");
            if let Some(id) = id {
                self.all[id as usize].walks = true;
            }
        }
    }

    /// Says of functions that go through all that their arguments hold that they make a copy of it.
    pub(crate) fn copying(&mut self, names: &[&str]) {
        self.walking(names);
        for name in names {
            if let Some(id) = self.id(name) {
                self.all[id as usize].copies = true;
            }
        }
    }

    /// Removes a function.
    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// The function of that name.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.id(name).map(|id| self.by_id(id))
    }

    pub(crate) fn by_id(&self, id: u32) -> &Function {
        &self.all[id as usize]
    }

    /// All names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }
}

impl CallableNames for Functions {
    fn id(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }
}
