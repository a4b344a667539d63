//! Which kinds live in namespaces, where there is no cluster to ask.

use tiphys_schema::Catalog;
use tiphys_value::GroupVersionKind;

/// Whether a built-in kind lives in namespaces; `None` for custom resources.
pub fn is_namespaced(kind: &GroupVersionKind) -> Option<bool> {
    if kind.group == "argoproj.io" {
        return Some(true);
    }
    Catalog::latest().kind(kind).map(|known| known.namespaced)
}
