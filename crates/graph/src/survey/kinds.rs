//! Which kinds live in namespaces.

use tiphys_schema::Catalog;
use tiphys_value::GroupVersionKind;

/// Whether a kind lives in namespaces: the built-in ones and those of the Argo projects; `None` for others.
pub fn is_namespaced(kind: &GroupVersionKind) -> Option<bool> {
    if kind.group == tiphys_model::names::GROUP {
        return Some(!kind.kind.starts_with("Cluster"));
    }
    Catalog::latest().kind(kind).map(|known| known.namespaced)
}
