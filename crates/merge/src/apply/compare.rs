//! What changed between two versions of an object, as sets of field paths.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_schema::TypeRef;

use super::set::{FieldSet, is_atomic, item_step};

/// The paths in which two versions differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Only in the new version.
    pub added: FieldSet,
    /// In both, with different values.
    pub modified: FieldSet,
    /// Only in the old version.
    pub removed: FieldSet,
}

impl Comparison {
    /// Whether nothing changed.
    pub(super) fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

/// Compares two versions of an object.
pub(super) fn compare(old: &Value, new: &Value, ty: Option<TypeRef<'_>>) -> Comparison {
    let mut walker = Walker { path: Vec::new(), result: Comparison::default() };
    walker.walk(Some(old), Some(new), ty);
    walker.result
}

struct Walker {
    path: Vec<String>,
    result: Comparison,
}

/// Absent, null and empty objects have no parts to look into.
fn is_hollow(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value.as_object().is_some_and(|map| map.is_empty()))
}

impl Walker {
    fn walk(&mut self, old: Option<&Value>, new: Option<&Value>, ty: Option<TypeRef<'_>>) {
        if old == new {
            return;
        }
        let shape = new.filter(|value| !value.is_null()).or(old).unwrap_or(&Value::Null);
        let parts = match shape {
            Value::Object(_) => !(is_atomic(shape, ty) || is_hollow(old) && is_hollow(new)),
            Value::Array(_) => !is_atomic(shape, ty),
            _ => false,
        };
        if !parts {
            return self.leaf(old, new);
        }
        match shape {
            Value::Object(_) => self.fields(old, new, ty),
            _ => self.items(old, new, ty),
        }
        self.mark_whole(old, new);
    }

    fn mark_whole(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, Some(_)) => self.result.added.insert(&self.path),
            (Some(_), None) => self.result.removed.insert(&self.path),
            _ => {}
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, None) => {}
            (None, Some(_)) => self.result.added.insert(&self.path),
            (Some(_), None) => self.result.removed.insert(&self.path),
            (Some(_), Some(_)) => self.result.modified.insert(&self.path),
        }
    }

    fn fields(&mut self, old: Option<&Value>, new: Option<&Value>, ty: Option<TypeRef<'_>>) {
        let old = old.and_then(Value::as_object);
        let new = new.and_then(Value::as_object);
        let keys = old.into_iter().chain(new).flat_map(|map| map.keys());
        let keys: std::collections::BTreeSet<_> = keys.collect();
        for key in keys {
            self.path.push(format!("f:{key}"));
            let field = ty.and_then(|ty| ty.field(key));
            self.walk(old.and_then(|map| map.get(key)), new.and_then(|map| map.get(key)), field);
            self.path.pop();
        }
    }

    fn items(&mut self, old: Option<&Value>, new: Option<&Value>, ty: Option<TypeRef<'_>>) {
        let index = |list: Option<&Value>| {
            let items = list.and_then(Value::as_array).cloned().unwrap_or_default();
            let keyed = items.into_iter().filter_map(|item| Some((item_step(&item, ty).ok()?, item)));
            keyed.collect::<BTreeMap<_, _>>()
        };
        let (old, new) = (index(old), index(new));
        let steps: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
        for step in steps {
            self.path.push(step.clone());
            self.walk(old.get(step), new.get(step), ty.and_then(TypeRef::items));
            self.path.pop();
        }
    }
}
