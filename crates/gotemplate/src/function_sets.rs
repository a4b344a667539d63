//! The functions that templates usually have. Apart from the table, which families of functions use.

use crate::{Functions, builtins, sprig};

impl Functions {
    /// Go's own functions.
    pub fn builtins() -> Self {
        let mut functions = Self::with_room();
        builtins::register(&mut functions);
        functions
    }

    /// Go's own functions and those of Sprig. `env` and `expandenv` see an empty environment and
    /// `getHostByName` no network.
    pub fn sprig() -> Self {
        let mut functions = Self::builtins();
        sprig::register(&mut functions);
        functions
    }
}
