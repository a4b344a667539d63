//! The table of functions that templates may call.

use crate::{CallResult, Context, Signature, Type, Value};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

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
#[derive(Clone)]
pub struct Function {
    pub(crate) name: SmolStr,
    pub(crate) signature: Signature,
    pub(crate) special: Special,
    pub(crate) body: Arc<Body>,
}

impl Function {
    /// A function with a fixed number of parameters. The executor checks number and types of arguments first.
    pub fn new(
        name: &str,
        params: &'static [Type],
        body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        Self::with_signature(name, Signature::fixed(params), body)
    }

    /// A function whose last parameter repeats.
    pub fn variadic(
        name: &str,
        params: &'static [Type],
        body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        Self::with_signature(name, Signature::variadic(params), body)
    }

    fn with_signature(
        name: &str,
        signature: Signature,
        body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        Self { name: SmolStr::new(name), signature, special: Special::None, body: Arc::new(body) }
    }

    pub(crate) fn special(mut self, special: Special) -> Self {
        self.special = special;
        self
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Functions by name.
#[derive(Clone, Default)]
pub struct Functions {
    by_name: FxHashMap<SmolStr, Arc<Function>>,
}

impl Functions {
    /// Go's own functions.
    pub fn builtins() -> Self {
        let mut functions = Self::default();
        crate::builtins::register(&mut functions);
        functions
    }

    /// Go's own functions and those of Sprig. `env` and `expandenv` see an empty environment and `getHostByName` no
    /// network.
    pub fn sprig() -> Self {
        let mut functions = Self::builtins();
        crate::sprig::register(&mut functions);
        functions
    }

    /// Adds or replaces a function.
    pub fn insert(&mut self, function: Function) {
        self.by_name.insert(function.name.clone(), Arc::new(function));
    }

    /// Removes a function.
    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// The function of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Function>> {
        self.by_name.get(name)
    }

    /// All names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(SmolStr::as_str)
    }
}
