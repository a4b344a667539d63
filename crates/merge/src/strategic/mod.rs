//! Strategic merge patch: a merge patch that knows by which key list items are the same, with
//! directives (`$patch`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`, `$retainKeys`).
//!
//! What directives may say and what happens to those that say something else is that of the API server, which
//! uses up a patch while it works it in: what is left of it stands in the messages that follow.

mod lists;

use std::collections::HashSet;

use serde_json::{Map, Value};
use tiphys_schema::{Field, Type, TypeRef};

use lists::{List, merge_lists, ordered_as};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

/// Why a strategic merge patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StrategicError {
    /// Whose fault it is taken for.
    pub fault: RejectionKind,
    /// In the words of the API server.
    pub message: String,
}

/// As what a server answers that a patch cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionKind {
    /// A directive is not of the form that it should have: a bad request.
    Format,
    /// Lists of lists are not merged: cannot be processed.
    Unprocessable,
    /// Whatever the server did not foresee: an internal error.
    Unexpected,
}

impl StrategicError {
    fn unexpected(message: impl Into<String>) -> Self {
        Self { fault: RejectionKind::Unexpected, message: message.into() }
    }

    fn format(of: &str) -> Self {
        Self { fault: RejectionKind::Format, message: format!("invalid patch format of {of}") }
    }

    fn kind(expected: &str, found: &Value) -> Self {
        // Go has no type to print of nothing.
        let found = if found.is_null() { "%!s(<nil>)" } else { tiphys_value::go_type(found) };
        Self::unexpected(format!("expected a {expected}, but received a {found}"))
    }

    fn no_key(item: &Value, key: &str) -> Self {
        Self::unexpected(format!("map: {} does not contain declared merge key: {key}", go_print(item)))
    }

    fn directive(name: &Value, map: &Value) -> Self {
        let name = match name {
            Value::String(name) => name.clone(),
            Value::Number(number) if !number.is_f64() => format!("%!s(int64={number})"),
            Value::Number(number) => format!("%!s(float64={number})"),
            Value::Bool(flag) => format!("%!s(bool={flag})"),
            Value::Null => "%!s(<nil>)".to_owned(),
            other => go_print(other),
        };
        Self::unexpected(format!("unknown patch type: {name} in map: {}", go_print(map)))
    }
}

type Object = Map<String, Value>;
type Merged<T> = Result<T, StrategicError>;

/// The object with the patch applied; fields that the type does not know merge as in a merge patch.
/// Directives that have been carried out, and what they led to, are no longer in the patch then.
///
/// # Errors
/// Items without their merge key; directives that say something odd.
pub fn strategic_merge(object: &Value, patch: &mut Value, ty: Option<TypeRef<'_>>) -> Merged<Value> {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            let mut merged = object.clone();
            merge_maps(&mut merged, patch, ty)?;
            Ok(Value::Object(merged))
        }
        (_, patch) => Ok(patch.clone()),
    }
}

/// Works a patch into a map.
fn merge_maps(merged: &mut Object, patch: &mut Object, ty: Option<TypeRef<'_>>) -> Merged<()> {
    if let Some(directive) = patch.get(PATCH) {
        match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                merged.clone_from(patch);
            }
            Some("delete") => merged.clear(),
            _ => return Err(StrategicError::directive(directive, &Value::Object(patch.clone()))),
        }
        return Ok(());
    }
    retain_keys(merged, patch)?;
    order_lists(merged, patch, ty)?;
    let mut keys: Vec<String> = patch.keys().cloned().collect();
    keys.sort();
    for key in keys {
        let Some(change) = patch.get_mut(&key) else { continue };
        let deleted_from = deleted_from(&key)?;
        merge_field(merged, deleted_from.unwrap_or(&key), change, deleted_from.is_some(), ty)?;
    }
    Ok(())
}

/// The list that a key asks to delete items from, if it does.
fn deleted_from(key: &str) -> Merged<Option<&str>> {
    match key.strip_prefix(DELETE_FROM) {
        None => Ok(None),
        Some(rest) => {
            rest.strip_prefix('/').map(Some).ok_or_else(|| StrategicError::format("primitive list"))
        }
    }
}

/// Works the change of one field into a map; `deletes` if it lists what goes from a list.
fn merge_field(
    merged: &mut Object,
    key: &str,
    change: &mut Value,
    deletes: bool,
    ty: Option<TypeRef<'_>>,
) -> Merged<()> {
    if change.is_null() {
        merged.remove(key);
        return Ok(());
    }
    match (merged.get_mut(key), change) {
        (Some(Value::Object(before)), Value::Object(after)) => {
            let field = Described::map_field(ty, key)?;
            match field.replaces() {
                true => before.clone_from(after),
                false => merge_maps(before, after, field.ty)?,
            }
        }
        (Some(Value::Array(before)), Value::Array(after)) => {
            let field = Described::of_list(ty, key)?;
            match field.merges() || deletes {
                true => *before = merge_lists(std::mem::take(before), after, &field.list(), deletes)?,
                false => before.clone_from(after),
            }
        }
        (before, change) if !deletes => {
            let is_same_kind = before.is_some_and(|before| {
                std::mem::discriminant::<Value>(before) == std::mem::discriminant(&*change)
            });
            if !is_same_kind {
                forget_nulls(change);
            }
            match remove_directives(change) {
                true => drop(merged.insert(key.to_owned(), change.clone())),
                false => drop(merged.remove(key)),
            }
        }
        _ => {}
    }
    Ok(())
}

/// Carries out `$retainKeys`: what it does not list goes; what the patch itself changes has to be listed.
fn retain_keys(merged: &mut Object, patch: &mut Object) -> Merged<()> {
    let Some(keys) = patch.remove(RETAIN) else { return Ok(()) };
    let refuse = || StrategicError::format("retainKeys");
    let keys = keys.as_array().ok_or_else(refuse)?;
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_kept = |key: &str| keys.contains(key);
    let of_directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !of_directive(key) && !is_kept(key)) {
        return Err(refuse());
    }
    merged.retain(|key, _| is_kept(key));
    Ok(())
}

/// Carries out `$setElementOrder`, together with the changes of the lists that it is about.
fn order_lists(merged: &mut Object, patch: &mut Object, ty: Option<TypeRef<'_>>) -> Merged<()> {
    let mut directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    directives.sort();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let Value::Array(order) = &order else { return Err(StrategicError::kind(LIST, &order)) };
        let key = directive[ORDER.len()..].strip_prefix('/');
        let key = key.ok_or_else(|| StrategicError::format("setElementOrder list"))?;
        let before = merged.get(key).map(as_list).transpose()?.cloned();
        let change = patch.get(key).map(as_list).transpose()?.cloned();
        let field = Described::of_list(ty, key)?;
        let list = field.list();
        lists::check_order(change.as_deref().unwrap_or_default(), order, list.key)?;
        let sorted = match (&before, &change) {
            (None, None) => continue,
            (Some(before), None) => before.clone(),
            (None, Some(change)) => {
                let mut added = Value::from(change.clone());
                remove_directives(&mut added);
                added.as_array().cloned().unwrap_or_default()
            }
            (Some(before), Some(_)) => match patch.get_mut(key) {
                Some(Value::Array(change)) if field.merges() => {
                    merge_lists(before.clone(), change, &list, false)?
                }
                _ => change.clone().unwrap_or_default(),
            },
        };
        let before = before.unwrap_or_default();
        lists::check_kinds(&[before.as_slice(), change.as_deref().unwrap_or_default()])?;
        merged.insert(key.to_owned(), ordered_as(sorted, order, &before, list.key)?.into());
        patch.remove(key);
    }
    Ok(())
}

const LIST: &str = "[]interface {}";

fn as_list(value: &Value) -> Merged<&Vec<Value>> {
    value.as_array().ok_or_else(|| StrategicError::kind(LIST, value))
}

/// What the type says of a field whose map or list is to be merged.
struct Described<'a> {
    field: Option<&'a Field>,
    /// Its own type, or that of its items.
    ty: Option<TypeRef<'a>>,
}

impl<'a> Described<'a> {
    /// A field that holds a map; without a type, nothing is known and nothing refused.
    fn map_field(ty: Option<TypeRef<'a>>, key: &str) -> Merged<Self> {
        let Some(ty) = ty.filter(|ty| !matches!(ty.ty, Type::Any | Type::Open)) else {
            return Ok(Self { field: None, ty: None });
        };
        let Some(definition) = ty.definition() else {
            let message = "merging an object in json but data type is not struct, instead is";
            return Err(StrategicError::unexpected(format!("{message}: {}", go_kind(ty))));
        };
        let field = definition.fields.get(key).ok_or_else(|| {
            let name = definition.name.rsplit('.').next().unwrap_or_default();
            let message = format!("unable to find api field in struct {name} for the json field {key:?}");
            StrategicError::unexpected(message)
        })?;
        Ok(Self { field: Some(field), ty: ty.field(key) })
    }

    /// A field that holds a list.
    fn of_list(ty: Option<TypeRef<'a>>, key: &str) -> Merged<Self> {
        let Self { field, ty: own } = Self::map_field(ty, key)?;
        let Some(own) = own else { return Ok(Self { field, ty: None }) };
        match own.ty {
            Type::List(..) => Ok(Self { field, ty: own.items() }),
            Type::Any | Type::Open => Ok(Self { field, ty: None }),
            _ => Err(StrategicError::unexpected("expected slice or array type, but got: struct")),
        }
    }

    fn merges(&self) -> bool {
        self.field.is_some_and(|field| field.strategy.merge)
    }

    fn replaces(&self) -> bool {
        self.field.is_some_and(|field| field.strategy.replace)
    }

    fn list(&self) -> List<'a> {
        List { key: self.field.and_then(|field| field.merge_key.as_deref()), items: self.ty }
    }
}

/// The kind of a type in Go's reflection.
fn go_kind(ty: TypeRef<'_>) -> &'static str {
    match ty.ty {
        Type::Map(..) => "map",
        Type::List(..) | Type::Bytes => "slice",
        Type::Str => "string",
        Type::Bool => "bool",
        Type::I32 => "int32",
        Type::I64 => "int64",
        Type::F64 => "float64",
        _ => "struct",
    }
}

/// Takes the nulls out of what a patch brings in as new.
fn forget_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(forget_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_nulls),
        _ => {}
    }
}

/// Takes maps with a `$patch` directive out of what a patch brings in as new; says whether anything is left.
fn remove_directives(value: &mut Value) -> bool {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => return false,
        Value::Object(map) => map.retain(|_, value| remove_directives(value)),
        Value::Array(items) => items.retain_mut(remove_directives),
        _ => {}
    }
    true
}

/// A value as Go's `%v` prints it. Bodies are as deep as the JSON parser's limit at most.
pub fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_print).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            let entries = entries.iter().map(|(key, value)| format!("{key}:{}", go_print(value)));
            format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_schema::Catalog;
    use tiphys_value::GroupVersionKind;

    fn merged(object: Value, patch: Value) -> Value {
        let gvk = GroupVersionKind::new("", "v1", "Pod");
        let ty = Catalog::latest().type_of(&gvk);
        strategic_merge(&json!({"spec": object}), &mut json!({"spec": patch}), ty).expect("merges")["spec"]
            .clone()
    }

    #[test]
    fn prints_maps_as_go_does() {
        assert_eq!(go_print(&json!({"b": [1, "x"], "a": {"c": null}})), "map[a:map[c:<nil>] b:[1 x]]");
    }

    #[test]
    fn list_items_merge_by_key() {
        let object = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]});
        let patch = json!({"containers": [{"name": "a", "image": "2"}, {"name": "c"}]});
        // New items come first unless an order is given: that is the API server's way.
        let expected = json!({"containers": [{"name": "a", "image": "2"}, {"name": "c"}, {"name": "b"}]});
        assert_eq!(merged(object, patch), expected);
    }

    /// With one search of the list for each item these are ten thousand million comparisons.
    #[test]
    fn long_lists_merge_in_linear_time() {
        let item = |at: usize, image: &str| json!({"name": format!("c{at}"), "image": image});
        let object = json!({"containers": (0..100_000).map(|at| item(at, "1")).collect::<Vec<_>>()});
        let mut changes: Vec<Value> = (0..100_000).rev().map(|at| item(at, "2")).collect();
        let order: Vec<Value> = changes.iter().map(|item| json!({"name": item["name"]})).collect();
        changes[0] = json!({"name": "c99999", "$patch": "delete"});
        let patch = json!({"containers": changes, "$setElementOrder/containers": order});
        let merged = merged(object, patch);
        let containers = merged["containers"].as_array().unwrap();
        assert_eq!((&containers[0], containers.len()), (&item(99_998, "2"), 99_999));
        assert_eq!(containers[99_998], item(0, "2"));
    }

    #[test]
    fn items_whose_key_is_null_lose_it() {
        let object = json!({"containers": [{"name": null, "image": "1"}, {"name": "a"}]});
        let patch = json!({"containers": [{"name": null, "image": "2"}]});
        let fault = strategic_merge(
            &json!({"spec": object}),
            &mut json!({"spec": patch}),
            Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "Pod")),
        );
        assert_eq!(fault.unwrap_err().message, "map: map[image:2] does not contain declared merge key: name");
    }

    #[test]
    fn directives_are_obeyed() {
        let object = json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "y"},
            "volumes": [{"name": "v", "emptyDir": {}}]});
        let patch = json!({
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
            "containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}],
            "nodeSelector": {"$patch": "replace", "z": "1"},
            "volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}],
        });
        let expected = json!({"containers": [{"name": "c"}, {"name": "b"}], "nodeSelector": {"z": "1"},
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}]});
        assert_eq!(merged(object, patch), expected);
    }

    fn refused(patch: Value) -> StrategicError {
        let ty = Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "Pod"));
        let object = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a"}], "nodeSelector": {"x": "y"}}});
        strategic_merge(&object, &mut patch.clone(), ty).expect_err("refused")
    }

    #[test]
    fn what_directives_may_not_say_is_refused() {
        let internal =
            |message: &str| StrategicError { fault: RejectionKind::Unexpected, message: message.to_owned() };
        for (patch, expected) in [
            (
                json!({"spec": {"containers": [{"image": "x"}]}}),
                "map: map[image:x] does not contain declared merge key: name",
            ),
            (
                json!({"$patch": "merge", "spec": {}}),
                "unknown patch type: merge in map: map[$patch:merge spec:map[]]",
            ),
            (
                json!({"$setElementOrder/spec": []}),
                "expected a []interface {}, but received a map[string]interface {}",
            ),
            (
                json!({"spec": {"containers": [1]}}),
                "list element types are not identical: [[map[name:a]] [1]]",
            ),
            (
                json!({"spec": {"nodeSelector": {"$setElementOrder/z": []}}}),
                "merging an object in json but data type is not struct, instead is: map",
            ),
            (
                json!({"spec": {"$setElementOrder/nothing": []}}),
                "unable to find api field in struct PodSpec for the json field \"nothing\"",
            ),
        ] {
            assert_eq!(refused(patch), internal(expected));
        }
        let keys = refused(json!({"spec": {"$retainKeys": ["volumes"], "hostNetwork": true}}));
        assert_eq!(
            (keys.fault, keys.message.as_str()),
            (RejectionKind::Format, "invalid patch format of retainKeys")
        );
    }

    #[test]
    fn a_patch_is_left_without_what_has_been_done() {
        let ty = Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "Pod"));
        let mut patch = json!({"$patch": "replace", "metadata": {"labels": {}}});
        let replaced = strategic_merge(&json!({"spec": {}}), &mut patch, ty).expect("merges");
        assert_eq!(
            (replaced, patch),
            (json!({"metadata": {"labels": {}}}), json!({"metadata": {"labels": {}}}))
        );
    }
}
