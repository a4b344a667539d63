//! The order in which Helm installs kinds.

use std::cmp::Ordering;

use tiphys_value::INSTALL_ORDER;

use crate::Compat;

/// How many of [`INSTALL_ORDER`] Helm 3 knows.
const HELM3_KINDS: usize = 36;

/// Known kinds in install order, then unknown ones by name.
pub(crate) fn compare_kinds(a: &str, b: &str, compat: Compat) -> Ordering {
    let known = if compat == Compat::Helm3 { &INSTALL_ORDER[..HELM3_KINDS] } else { &INSTALL_ORDER[..] };
    let rank = |kind: &str| known.iter().position(|known| *known == kind);
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}
