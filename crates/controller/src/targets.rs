//! The objects of a rendering, which is kept until its sources change.

use std::sync::Arc;

use tiphys_value::{Resting, Value};

/// What an Application renders to.
#[derive(Default)]
pub(crate) struct Targets(Vec<Resting>);

impl Targets {
    pub(crate) fn new(objects: impl Iterator<Item = Value>) -> Self {
        Self(objects.map(|object| Resting::new(Arc::new(object))).collect())
    }

    /// The objects, in the order of the sources.
    pub(crate) fn get(&self) -> Vec<Arc<Value>> {
        self.0.iter().map(Resting::peek).collect()
    }

    /// Lets those rest that nobody uses.
    pub(crate) fn rest(&self) {
        self.0.iter().for_each(|object| {
            object.pack_if_idle();
        });
    }
}
