//! Objects as messages show them that print a struct inside the server: with the names of Go fields, in their
//! order, and with what is not set (`data/internal.txt`, derived by `cargo xtask schema`).

use std::{collections::HashMap, sync::OnceLock};

use serde_json::Value;

use crate::{Catalog, TypeRef};

const TABLE: &str = include_str!("../../data/internal.txt");
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// A field: its Go name (empty if it is an embedded struct), its JSON name, its type.
type Field = (&'static str, &'static str, &'static str);

fn structs() -> &'static HashMap<&'static str, Vec<Field>> {
    static STRUCTS: OnceLock<HashMap<&str, Vec<Field>>> = OnceLock::new();
    STRUCTS.get_or_init(|| {
        let (mut structs, mut current) = (HashMap::<_, Vec<Field>>::new(), "");
        for line in TABLE.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["struct", name] => current = name,
                ["+", ty] => structs.entry(current).or_default().push(("", "", ty)),
                [go, json, ty] => structs.entry(current).or_default().push((go, json, ty)),
                _ => {}
            }
        }
        structs
    })
}

/// A value whose keys are in the order in which they are written.
enum GoJson {
    Scalar(Value),
    List(Vec<GoJson>),
    Object(Vec<(String, GoJson)>),
}

/// A value of a struct of the table as Go's JSON encoder writes it on one line.
pub(super) fn compact(name: &str, value: &Value) -> String {
    let mut out = String::new();
    write(&object(name, value, &Value::Null), None, &mut out);
    out
}

/// The same, indented by one space a level.
pub(super) fn indented(name: &str, value: &Value) -> String {
    let mut out = String::new();
    write(&object(name, value, &Value::Null), Some(0), &mut out);
    out.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn object(name: &str, value: &Value, around: &Value) -> GoJson {
    let mut entries = Vec::new();
    fields(name, value, around, &mut entries);
    GoJson::Object(entries)
}

/// The entries of a struct, those of embedded ones in their place.
fn fields(name: &str, value: &Value, around: &Value, entries: &mut Vec<(String, GoJson)>) {
    for &(go, json, ty) in structs().get(name).into_iter().flatten() {
        match (go, ty.strip_prefix('@')) {
            ("", Some(of)) => {
                if let GoJson::Object(inner) = outside(of, &value["metadata"]) {
                    entries.extend(inner);
                }
            }
            ("", None) => fields(ty, value, around, entries),
            _ => {
                let given = match json.strip_prefix('^') {
                    Some(json) => &around[json],
                    None => &value[json],
                };
                entries.push((go.to_owned(), typed(ty, given, value)));
            }
        }
    }
}

fn typed(ty: &str, value: &Value, around: &Value) -> GoJson {
    if let Some(inner) = ty.strip_prefix('*') {
        return match value {
            Value::Null => GoJson::Scalar(Value::Null),
            given => typed(inner, given, around),
        };
    }
    if let Some(inner) = ty.strip_prefix("[]") {
        return match value {
            Value::Array(items) => GoJson::List(items.iter().map(|item| typed(inner, item, value)).collect()),
            _ => GoJson::Scalar(Value::Null),
        };
    }
    if let Some(inner) = ty.strip_prefix("map:") {
        return match value {
            Value::Object(map) => GoJson::Object(
                map.iter().map(|(key, item)| (key.clone(), typed(inner, item, value))).collect(),
            ),
            _ => GoJson::Scalar(Value::Null),
        };
    }
    let or = |zero: Value| GoJson::Scalar(if value.is_null() { zero } else { value.clone() });
    match ty {
        "string" => or("".into()),
        "bool" => or(false.into()),
        "number" => or(0.into()),
        "quantity" => or("0".into()),
        "time" => or(Value::Null),
        _ => match ty.strip_prefix('@') {
            Some(of) => outside(of, value),
            None => object(ty, value, around),
        },
    }
}

/// A struct that clients know too: its keys are those of JSON, and what is not set is left out.
fn outside(name: &str, value: &Value) -> GoJson {
    let catalog = Catalog::latest();
    match catalog.reference(&format!("{META}{name}")) {
        Some(ty) => ordered(value, Some(TypeRef::new(catalog, &ty))),
        None => ordered(value, None),
    }
}

fn ordered(value: &Value, ty: Option<TypeRef<'_>>) -> GoJson {
    match value {
        Value::Object(map) => {
            let place = |key: &str| ty.and_then(|ty| ty.field_info(key)).map_or(usize::MAX, |f| f.position);
            let mut entries: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_by_key(|(key, _)| place(key));
            let inner = |key: &str| ty.and_then(|ty| ty.field(key));
            GoJson::Object(
                entries.into_iter().map(|(key, value)| (key.clone(), ordered(value, inner(key)))).collect(),
            )
        }
        Value::Array(items) => {
            let of = ty.and_then(TypeRef::items);
            GoJson::List(items.iter().map(|item| ordered(item, of)).collect())
        }
        scalar => GoJson::Scalar(scalar.clone()),
    }
}

/// `level` is how far it is indented, if it is.
fn write(shown: &GoJson, level: Option<usize>, out: &mut String) {
    let inner = level.map(|level| level + 1);
    let line = |level: Option<usize>, out: &mut String| {
        if let Some(level) = level {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', level));
        }
    };
    let separate = |at: usize, out: &mut String| {
        out.push_str(if at > 0 { "," } else { "" });
        line(inner, out);
    };
    match shown {
        GoJson::Scalar(value) => out.push_str(&value.to_string()),
        GoJson::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(at, out);
                write(item, inner, out);
            }
            line(level.filter(|_| !items.is_empty()), out);
            out.push(']');
        }
        GoJson::Object(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                separate(at, out);
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(if level.is_some() { ": " } else { ":" });
                write(value, inner, out);
            }
            line(level.filter(|_| !entries.is_empty()), out);
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prints_fields_by_their_go_names() {
        let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "selector": {"matchLabels": {"a": "b"}}, "volumeMode": "Filesystem"});
        let expected = r#"{"AccessModes":["ReadWriteOnce"],"Selector":{"matchLabels":{"a":"b"}},"Resources":{"Limits":null,"Requests":{"storage":"1Gi"}},"VolumeName":"","StorageClassName":null,"VolumeMode":"Filesystem","DataSource":null,"DataSourceRef":null,"VolumeAttributesClassName":null}"#;
        assert_eq!(compact("PersistentVolumeClaimSpec", &claim), expected);
        let template = json!({"metadata": {}, "spec": {"hostNetwork": true, "securityContext": {}}});
        let shown = compact("PodTemplateSpec", &template);
        assert!(shown.contains(r#""SecurityContext":{"HostNetwork":true,"HostPID":false"#), "{shown}");
        let volume = json!({"hostPath": {"path": "/a&b"}});
        let shown = indented("PersistentVolumeSource", &volume);
        assert!(
            shown.contains("\n \"HostPath\": {\n  \"Path\": \"/a\\u0026b\",\n  \"Type\": null\n },"),
            "{shown}"
        );
    }
}
