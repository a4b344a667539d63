//! The functions of Sprig 3.

use crate::Functions;

/// Adds the functions to the table.
pub(crate) fn register(_functions: &mut Functions) {}
