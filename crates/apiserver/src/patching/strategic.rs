//! Strategic merge patch: lists of objects merge by key, as the kind's type says.

use tiphys_schema::{PatchStrategy, TypeRef};
use tiphys_value::{Map, Value};

use super::PatchFault;

/// Merges a patch into an object of a type. Without a type, lists are replaced.
pub(crate) fn strategic_merge(target: &mut Value, patch: &Value, ty: Option<TypeRef<'_>>) -> Result<(), PatchFault> {
    let Some(patch) = patch.as_object() else {
        return Err(PatchFault::Malformed("the patch is no JSON object".into()));
    };
    merge_object(target, patch, ty)
}

fn merge_object(target: &mut Value, patch: &Map<String, Value>, ty: Option<TypeRef<'_>>) -> Result<(), PatchFault> {
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            *target = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        _ => {}
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return Ok(()) };
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            delete_items(fields.get_mut(field), value);
        } else if let Some(field) = key.strip_prefix("$setElementOrder/") {
            // The order is put in place once all lists are merged.
            let _ = field;
        } else if key == "$retainKeys" {
            retain(fields, value);
        } else if key != "$patch" {
            merge_field(fields, key, value, ty)?;
        }
    }
    for (key, order) in patch {
        if let Some(field) = key.strip_prefix("$setElementOrder/") {
            let merge_key = ty.and_then(|t| t.field_info(field)).and_then(|f| f.merge_key.as_deref());
            set_order(fields.get_mut(field), order, merge_key);
        }
    }
    Ok(())
}

fn merge_field(fields: &mut Map<String, Value>, key: &str, value: &Value, ty: Option<TypeRef<'_>>) -> Result<(), PatchFault> {
    let field_type = ty.and_then(|t| t.field(key));
    let info = ty.and_then(|t| t.field_info(key));
    let strategy = info.map_or_else(PatchStrategy::default, |f| f.strategy);
    match value {
        Value::Null => drop(fields.remove(key)),
        Value::Object(patch) if !strategy.replace => {
            merge_object(fields.entry(key.to_owned()).or_insert(Value::Null), patch, field_type)?;
            if patch.get("$patch").is_some_and(|d| d == "delete") {
                fields.remove(key);
            }
        }
        Value::Array(patch) if strategy.merge => {
            let slot = fields.entry(key.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
            if !slot.is_array() {
                *slot = Value::Array(Vec::new());
            }
            let Some(list) = slot.as_array_mut() else { return Ok(()) };
            match info.and_then(|f| f.merge_key.as_deref()) {
                Some(merge_key) => merge_list(list, patch, merge_key, field_type.and_then(TypeRef::items))?,
                None => list.extend(patch.iter().filter(|v| !list.contains(v)).cloned().collect::<Vec<_>>()),
            }
        }
        other => drop(fields.insert(key.to_owned(), other.clone())),
    }
    Ok(())
}

fn merge_list(list: &mut Vec<Value>, patch: &[Value], key: &str, items: Option<TypeRef<'_>>) -> Result<(), PatchFault> {
    if patch.iter().any(|item| item.get("$patch").is_some_and(|d| d == "replace")) {
        let kept = patch.iter().filter(|item| item.get("$patch").is_none()).cloned();
        *list = kept.collect();
        return Ok(());
    }
    for item in patch {
        let Some(fields) = item.as_object() else {
            return Err(PatchFault::Malformed("map: list item of a merged list is no object".into()));
        };
        let Some(id) = fields.get(key) else {
            let text = format!("map: {} does not contain declared merge key: {key}", Value::Object(fields.clone()));
            return Err(PatchFault::Malformed(text));
        };
        if fields.get("$patch").is_some_and(|d| d == "delete") {
            list.retain(|old| old.get(key) != Some(id));
            continue;
        }
        match list.iter_mut().find(|old| old.get(key) == Some(id)) {
            Some(old) => merge_object(old, fields, items)?,
            None => {
                let mut new = Value::Object(Map::new());
                merge_object(&mut new, fields, items)?;
                list.push(new);
            }
        }
    }
    Ok(())
}

fn delete_items(list: Option<&mut Value>, items: &Value) {
    if let (Some(list), Some(items)) = (list.and_then(Value::as_array_mut), items.as_array()) {
        list.retain(|item| !items.contains(item));
    }
}

fn retain(fields: &mut Map<String, Value>, keys: &Value) {
    if let Some(keys) = keys.as_array() {
        fields.retain(|key, _| keys.iter().any(|k| k == key.as_str()));
    }
}

/// Items named by the order come in that order; others keep their place behind their predecessor.
fn set_order(list: Option<&mut Value>, order: &Value, merge_key: Option<&str>) {
    let (Some(list), Some(order)) = (list.and_then(Value::as_array_mut), order.as_array()) else { return };
    let rank = |item: &Value| {
        order.iter().position(|wanted| match merge_key {
            Some(key) => wanted.get(key) == item.get(key),
            None => wanted == item,
        })
    };
    let mut ranked: Vec<Value> = list.iter().filter(|item| rank(item).is_some()).cloned().collect();
    ranked.sort_by_key(|item| rank(item));
    let mut ranked = ranked.into_iter();
    for slot in list.iter_mut() {
        if rank(slot).is_some()
            && let Some(next) = ranked.next()
        {
            *slot = next;
        }
    }
}

fn without_directives(patch: &Map<String, Value>) -> Value {
    Value::Object(patch.iter().filter(|(key, _)| !key.starts_with('$')).map(|(k, v)| (k.clone(), v.clone())).collect())
}
