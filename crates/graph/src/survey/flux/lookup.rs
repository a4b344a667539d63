//! Finding an object of Flux by its kind and name.

use std::sync::Arc;

use tiphys_value::{ObjectExt, RenderedObject, Value};

use crate::survey::{contents::Survey, types::Object};

/// An object by what it is called, as far as it is sure which one is meant.
pub(super) fn lookup(
    of: &Survey,
    known: &[Arc<RenderedObject>],
    kind: &str,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let is_it = |it: &Value| {
        it.kind() == kind
            && it.name() == name
            && (it.namespace() == namespace || it.namespace().is_empty() || namespace.is_empty())
    };
    let mut of_cluster = known.iter().map(|it| &it.value).filter(|it| is_it(it));
    if let Some(first) = of_cluster.next() {
        return of_cluster.all(|it| it == first).then(|| first.clone());
    }
    let mut others = of.objects.iter().map(Object::value).filter(|it| is_it(it));
    let first = others.next()?;
    let is_same = |it: &Value| ["spec", "data", "stringData"].iter().all(|field| it[*field] == first[*field]);
    others.all(is_same).then(|| first.clone())
}
