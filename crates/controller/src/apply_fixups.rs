//! What an API server takes or drops wherever it reads an object, but for server-side apply, which fails:
//! without validation fields that a kind does not have, nulls that the definition of a custom resource does
//! not allow, and items of a list that have one key.

use std::{borrow::Cow, sync::Arc};

use tiphys_cluster::{ClusterError, LiveCache};
use tiphys_diff::{Fields, applied_form, has_repeats};
use tiphys_model::has_null;
use tiphys_schema::crd_version_schema;
use tiphys_value::{ObjectExt, Value};

/// What the API server says of each.
const UNDECLARED: &str = ": field not declared in schema";
/// What stands before the first, if there is one only.
const OBJECT_END: &str = "): ";

/// The object without the fields of which the API server says that they are not declared; `None` if it says
/// so of none.
pub(crate) fn without_undeclared(object: &Value, error: &ClusterError) -> Option<Value> {
    let ClusterError::Api { message, .. } = error else { return None };
    let mut out = object.clone();
    let mut is_less = false;
    for line in message.lines() {
        let Some((before, _)) = line.split_once(UNDECLARED) else { continue };
        let path = before.rsplit_once(OBJECT_END).map_or(before, |(_, path)| path).trim();
        is_less |= remove(&mut out, path);
    }
    is_less.then_some(out)
}

/// What to do about a field that is not declared, where that is known: SOPS keeps its own beside the
/// object's.
pub(crate) fn advice(object: &Value, error: &ClusterError) -> Option<&'static str> {
    let ClusterError::Api { message, .. } = error else { return None };
    let is_sealed = object.at(&["sops", "mac"]).is_some_and(Value::is_string);
    (is_sealed && message.contains(".sops: field not declared")).then_some(
        "the manifest is encrypted with SOPS and nothing decrypted it; a plugin has to when it is rendered (KSOPS, helm-secrets), or a controller in the cluster",
    )
}

/// Whether the definition of a custom resource has all that the API server says is not declared: the live
/// one, which it is about to take up, or one that is to be applied.
pub(crate) fn is_declared(
    cache: &LiveCache,
    object: &Value,
    to_come: &[Arc<Value>],
    error: &ClusterError,
) -> bool {
    if !matches!(error, ClusterError::Api { message, .. } if message.contains(UNDECLARED)) {
        return false;
    }
    let kind = object.gvk();
    let live = cache.cluster().discovery().definition_key(&kind).and_then(|key| cache.get(&key));
    let defines = |definition: &Arc<Value>| {
        definition.str_at(&["spec", "group"]) == Some(kind.group.as_str())
            && definition.str_at(&["spec", "names", "kind"]) == Some(kind.kind.as_str())
    };
    let to_come = to_come.iter().filter(|definition| defines(definition));
    live.iter().chain(to_come).any(|definition| has_all_fields(definition, object, &kind.version))
}

/// Whether a definition describes every field of an object.
fn has_all_fields(definition: &Value, object: &Value, version: &str) -> bool {
    crd_version_schema(definition, version).is_some_and(|schema| schema.prune(&mut object.clone()).is_empty())
}

/// The object as server-side apply takes it, see [`tiphys_diff::applied_form`].
pub(crate) fn applicable<'a>(cache: &LiveCache, object: &'a Value) -> Cow<'a, Value> {
    let kind = object.gvk();
    match Fields::built_in(&kind) {
        Some(fields) => applied_form(object, Some(fields)),
        None if !has_null(object) && !has_repeats(object) => applied_form(object, None),
        None => {
            let definition =
                cache.cluster().discovery().definition_key(&kind).and_then(|key| cache.get(&key));
            let schema = definition.and_then(|definition| crd_version_schema(&definition, &kind.version));
            applied_form(object, schema.as_ref().map(Fields::Custom))
        }
    }
}

/// Removes the field at a path such as `.spec.ports[port=80,protocol="TCP"].color`; says whether it was
/// there.
fn remove(value: &mut Value, path: &str) -> bool {
    match value {
        Value::Object(map) => {
            let Some(rest) = path.strip_prefix('.') else { return false };
            // Keys may have dots and brackets in them.
            let mut known: Vec<&String> = map.keys().filter(|key| rest.starts_with(key.as_str())).collect();
            known.sort_by_key(|key| std::cmp::Reverse(key.len()));
            let ends = |key: &&&String| matches!(rest.as_bytes().get(key.len()), None | Some(b'.' | b'['));
            let Some(key) = known.iter().find(ends).map(|key| key.to_string()) else { return false };
            match &rest[key.len()..] {
                "" => map.remove(&key).is_some(),
                below => map.get_mut(&key).is_some_and(|child| remove(child, below)),
            }
        }
        Value::Array(items) => {
            let Some((element, below)) = path.strip_prefix('[').and_then(|rest| element(rest)) else {
                return false;
            };
            let mut is_less = false;
            let is_meant = |(at, item): &(usize, &mut Value)| match element.parse::<usize>() {
                Ok(index) => *at == index,
                Err(_) => has_keys(item, element),
            };
            for (_, item) in items.iter_mut().enumerate().filter(is_meant) {
                is_less |= remove(item, below);
            }
            is_less
        }
        _ => false,
    }
}

/// What stands between brackets, and what follows; brackets in quotes are none.
fn element(rest: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let end = rest.char_indices().find(|(_, c)| {
        is_quoted ^= *c == '"';
        *c == ']' && !is_quoted
    })?;
    Some((&rest[..end.0], &rest[end.0 + 1..]))
}

/// Whether an item has the keys of `name="a",port=80`; a key that it leaves to its default counts as had.
fn has_keys(item: &Value, keys: &str) -> bool {
    keys.split(',').all(|pair| {
        let Some((key, wanted)) = pair.split_once('=') else { return false };
        item.get(key).is_none_or(|value| is_shown_as(value, wanted))
    })
}

/// Whether a value is what a path shows: texts in quotes, all else as it is.
fn is_shown_as(value: &Value, shown: &str) -> bool {
    let bare = shown.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match (value, bare) {
        (Value::String(text), Some(bare)) => text == bare,
        (Value::Number(number), None) => {
            shown.parse().is_ok_and(|shown: serde_json::Number| shown == *number)
        }
        (Value::Bool(flag), None) => shown == if *flag { "true" } else { "false" },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn less(object: &Value, message: &str) -> Option<Value> {
        let error = ClusterError::Api { code: 500, reason: String::new(), message: message.to_owned() };
        without_undeclared(object, &error)
    }

    #[test]
    fn a_manifest_that_sops_encrypted_is_told_to_be_that() {
        let error = |message: &str| ClusterError::Api {
            code: 500,
            reason: "Unknown".into(),
            message: format!("failed to create typed patch object (n/a; /v1, Kind=Secret): {message}"),
        };
        let undeclared = error(".sops: field not declared in schema");
        let sealed = json!({"kind": "Secret", "sops": {"mac": "ENC[]", "version": "3.9.0"}});
        assert!(advice(&sealed, &undeclared).is_some_and(|advice| advice.contains("encrypted with SOPS")));
        assert_eq!(advice(&json!({"kind": "Secret", "sops": {}}), &undeclared), None);
        assert_eq!(advice(&sealed, &error(".dat: field not declared in schema")), None);
    }

    #[test]
    fn what_the_api_server_names_is_dropped() {
        let one = json!({"kind": "ConfigMap", "dat": {}, "data": {"a": "b"}});
        let message = "failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .dat: field not declared in schema";
        assert_eq!(less(&one, message), Some(json!({"kind": "ConfigMap", "data": {"a": "b"}})));
        let many = json!({"spec": {"size": 1, "template": {"spec": {"containers": [
            {"name": "c", "color": "red", "ports": [{"containerPort": 80, "x": 1}]}, {"name": "d", "color": "red"}],
            "list": [{"y": 1}, {"y": 2}]}}}});
        let message = "failed to create typed patch object (n/a; apps/v1, Kind=Deployment): errors:\n  .spec.size: field not declared in schema\n  .spec.template.spec.containers[name=\"c\"].color: field not declared in schema\n  .spec.template.spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"].x: field not declared in schema\n  .spec.template.spec.list[1].y: field not declared in schema";
        let expected = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "c", "ports": [{"containerPort": 80}]}, {"name": "d", "color": "red"}],
            "list": [{"y": 1}, {}]}}}});
        assert_eq!(less(&many, message), Some(expected));
        assert_eq!(less(&one, "Deployment.apps \"a\" is invalid"), None);
        assert_eq!(less(&one, "x (n/a): .other: field not declared in schema"), None);
    }

    #[test]
    fn keys_may_have_dots_in_them() {
        let object = json!({"data": {"a.b": {"c": 1}, "a": {"b": 1}}});
        let message = "x (n/a): .data.a.b.c: field not declared in schema";
        assert_eq!(less(&object, message), Some(json!({"data": {"a.b": {}, "a": {"b": 1}}})));
    }
}
