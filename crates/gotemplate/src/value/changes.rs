//! Whether anything that templates share has been changed.

use std::cell::Cell;

thread_local! {
    /// Values belong to one thread, and so does what is counted of them.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
}

/// Counts a change of a shared value.
pub(super) fn count() {
    CHANGES.set(CHANGES.get() + 1);
}

/// How often shared values of this thread have been changed.
pub(crate) fn change_count() -> u64 {
    CHANGES.get()
}
