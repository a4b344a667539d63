//! What templates that are called again with the same data have written before.
//!
//! Charts call few templates very often: names and labels, with the values of the whole chart. What such a
//! call writes depends on what the data holds, which [`changes`] tells of, and on nothing else – but for
//! randomness and time, and for what says which template is running.

use crate::value::changes;
use crate::{Map, MapType};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::cell::{Cell, RefCell};

/// Longer outputs are not kept: they are rarely asked for twice.
const MAX_OUTPUT: usize = 16 << 10;

/// The memory of the executions in one [`Env`](crate::Env).
#[derive(Default)]
pub struct Memo {
    known: RefCell<FxHashMap<Key, CachedOutput>>,
    /// How much had been changed when `known` was begun.
    changes: Cell<u64>,
    /// How often something was asked for that another answer may be given to the next time.
    unsteady: Cell<u64>,
    /// What differs from one outermost template to the next.
    varying: RefCell<Map>,
    /// Which versions fit which constraints: charts ask for few of these, for each object.
    pub(crate) versions: RefCell<FxHashMap<(SmolStr, SmolStr), bool>>,
}

/// A template and the map that it was called with, by their addresses, and whether the map has methods.
type Key = (usize, usize, bool);

struct CachedOutput {
    output: SmolStr,
    /// Keeps the address taken.
    _data: Map,
}

/// A call whose output may be kept.
pub(crate) struct Attempt {
    key: Key,
    data: Map,
    changes: u64,
    unsteady: u64,
    /// Whether the calls around it have looked at what varies by now.
    varied: bool,
}

impl Memo {
    /// Names the map, to be found in what templates share, whose content is another one for each outermost
    /// template: what looks at it is not kept.
    pub fn vary(&self, map: Map) {
        *self.varying.borrow_mut() = map;
    }

    /// Says that what is being executed may come out differently the next time.
    pub(crate) fn unsteady(&self) {
        self.unsteady.set(self.unsteady.get() + 1);
    }

    /// What a template, known by its address, has written for the same data, or else what is needed to keep
    /// what it is going to write.
    pub(crate) fn recall(&self, template: usize, data: &Map) -> Result<SmolStr, Attempt> {
        let has_methods = matches!(data.map_type(), MapType::Named(_));
        let key = (template, data.address(), has_methods);
        let (mut known, changes) = (self.known.borrow_mut(), changes::change_count());
        if self.changes.replace(changes) != changes {
            known.clear();
        }
        if let Some(known) = known.get(&key) {
            return Ok(known.output.clone());
        }
        let (unsteady, varied) = (self.unsteady.get(), self.varying.borrow().take_read());
        Err(Attempt { key, data: data.clone(), changes, unsteady, varied })
    }

    /// Keeps what a call has written.
    pub(crate) fn keep(&self, attempt: Attempt, output: &str) {
        let Attempt { key, data, changes, unsteady, varied } = attempt;
        let varying = self.varying.borrow();
        let varies = varying.take_read();
        if varied || varies {
            varying.mark_read();
        }
        let is_steady = !varies && unsteady == self.unsteady.get() && changes == changes::change_count();
        if is_steady && output.len() <= MAX_OUTPUT {
            self.known.borrow_mut().insert(key, CachedOutput { output: SmolStr::new(output), _data: data });
        }
    }
}
