//! Laying one map of values over another.

use std::sync::Arc;

use super::{Table, Val};

/// `over` merged over `base`: tables are merged, everything else is replaced.
pub(crate) fn merge_maps(base: &mut Table, over: &Table) {
    for (key, value) in over {
        if let (Val::Table(over), Some(Val::Table(base))) = (value, base.get_mut(key)) {
            merge_maps(Arc::make_mut(base), over);
            continue;
        }
        base.insert(key.clone(), value.clone());
    }
}
