//! Writes the table; its format is described in `crates/schema/src/table.rs`.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, bail};
use serde_json::Value;

use super::{
    gotypes::{GoField, GoTypes},
    server::Documents,
};

/// The table as text.
pub(super) fn table(documents: &Documents, go: &GoTypes) -> anyhow::Result<String> {
    let mut out = format!("kubernetes {}\n", documents.version);
    let types = kinds_to_types(&documents.schemas);
    for list in &documents.discovery {
        for group in array(&list["items"]) {
            for version in array(&group["versions"]) {
                write_version(&mut out, text(&group["metadata"]["name"]), version, &types)?;
            }
        }
    }
    for (name, schema) in &documents.schemas {
        if scalar(name).is_none() {
            write_type(&mut out, name, schema, go)?;
        }
    }
    Ok(out)
}

/// Definitions by `apps/v1/Deployment`; those that stand for several kinds are left out.
fn kinds_to_types(schemas: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    schemas.iter().filter_map(|(name, schema)| Some((only_gvk(schema)?, name.clone()))).collect()
}

fn only_gvk(schema: &Value) -> Option<String> {
    match array(&schema["x-kubernetes-group-version-kind"]) {
        [one] => Some(gvk(text(&one["group"]), text(&one["version"]), text(&one["kind"]))),
        _ => None,
    }
}

fn gvk(group: &str, version: &str, kind: &str) -> String {
    match group {
        "" => format!("{version}/{kind}"),
        group => format!("{group}/{version}/{kind}"),
    }
}

fn write_version(
    out: &mut String,
    group: &str,
    version: &Value,
    types: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let api = text(&version["version"]);
    let or = |value: &Value, other: &str| match text(value) {
        "" => other.to_owned(),
        given => given.to_owned(),
    };
    for resource in array(&version["resources"]) {
        let kind = gvk(group, api, text(&resource["responseKind"]["kind"]));
        let (api_version, name) = kind.rsplit_once('/').context("kind without version")?;
        let scope = text(&resource["scope"]).to_lowercase();
        let (plural, singular) = (text(&resource["resource"]), text(&resource["singularResource"]));
        write!(out, "kind {api_version} {name} {plural} {singular} {scope}")?;
        for (attribute, key) in [("short", "shortNames"), ("categories", "categories"), ("verbs", "verbs")] {
            if !array(&resource[key]).is_empty() {
                write!(out, " {attribute}={}", joined(&resource[key]))?;
            }
        }
        match types.get(&kind) {
            Some(ty) => writeln!(out, " type={ty}")?,
            None => writeln!(out)?,
        }
        for sub in array(&resource["subresources"]) {
            let answer = &sub["responseKind"];
            let named = text(&answer["version"]).is_empty();
            let (sub_group, sub_version) = match named {
                true => (group.to_owned(), api.to_owned()),
                false => (or(&answer["group"], ""), or(&answer["version"], api)),
            };
            let answer = gvk(&sub_group, &sub_version, text(&answer["kind"]));
            writeln!(out, "sub {} verbs={} gvk={answer}", text(&sub["subresource"]), joined(&sub["verbs"]))?;
        }
    }
    Ok(())
}

fn write_type(out: &mut String, name: &str, schema: &Value, go: &GoTypes) -> anyhow::Result<()> {
    write!(out, "type {name}")?;
    if schema["x-kubernetes-map-type"] == "atomic" {
        out.push_str(" atomic");
    }
    if let Some(gvk) = only_gvk(schema) {
        write!(out, " gvk={gvk}")?;
    }
    out.push('\n');
    let required: Vec<_> = array(&schema["required"]).iter().map(text).collect();
    let properties = schema["properties"].as_object();
    let order = go.order(name);
    let rank = |field: &str| order.iter().position(|known| known == field).unwrap_or(order.len());
    let mut properties: Vec<_> = properties.into_iter().flatten().collect();
    properties.sort_by_key(|(field, _)| rank(field));
    for (field, property) in properties {
        let ty = type_text(property).with_context(|| format!("{name}.{field}"))?;
        write!(out, "field {field} {ty}")?;
        let known = go.field(name, field).unwrap_or(GoField { omitempty: true, ..GoField::default() });
        // Quantities and times are structs in Go: `omitempty` does not leave them out.
        let is_struct = property["default"].as_object().is_some_and(|map| map.is_empty())
            || matches!(ty.as_str(), "quantity" | "time" | "microtime");
        let is_struct = is_struct && !known.pointer && go.field(name, field).is_some();
        for (set, word) in [
            (required.contains(&field.as_str()), " required"),
            (known.pointer, " pointer"),
            (property.get("allOf").is_some() && property["x-kubernetes-map-type"] == "granular", " granular"),
            (!known.omitzero && (is_struct || !known.omitempty), " kept"),
        ] {
            out.push_str(if set { word } else { "" });
        }
        if let Some(named) = go.scalar(name, field) {
            write!(out, " go={named}")?;
        }
        if let Some(path) = go.through(name, field).filter(|path| !path.is_empty()) {
            write!(out, " via={}", path.join("."))?;
        }
        write_attributes(out, property)?;
        out.push('\n');
    }
    Ok(())
}

fn write_attributes(out: &mut String, property: &Value) -> anyhow::Result<()> {
    if !array(&property["enum"]).is_empty() {
        write!(out, " allowed={}", joined(&property["enum"]))?;
    }
    if let Some(key) = property["x-kubernetes-patch-merge-key"].as_str() {
        write!(out, " mergekey={key}")?;
    }
    if let Some(strategy) = property["x-kubernetes-patch-strategy"].as_str() {
        write!(out, " strategy={strategy}")?;
    }
    match &property["default"] {
        Value::Null | Value::Bool(false) => {}
        Value::String(text) if text.is_empty() => {}
        Value::Number(number) if number.as_f64() == Some(0.0) => {}
        Value::Object(map) if map.is_empty() => {}
        other => write!(out, " default={other}")?,
    }
    Ok(())
}

fn type_text(property: &Value) -> anyhow::Result<String> {
    let reference = property["$ref"].as_str().or_else(|| property["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return Ok(scalar(name).map_or_else(|| format!("@{name}"), str::to_owned));
    }
    let format = text(&property["format"]);
    Ok(match text(&property["type"]) {
        "string" if format == "byte" => "bytes".into(),
        "string" => "str".into(),
        "boolean" => "bool".into(),
        "integer" if format == "int32" => "i32".into(),
        "integer" => "i64".into(),
        "number" => "f64".into(),
        "array" => list(property)?,
        "object" if property["additionalProperties"].is_object() => {
            let atomic = property["x-kubernetes-map-type"] == "atomic";
            let value = type_text(&property["additionalProperties"])?;
            format!("{{{}{value}}}", if atomic { "!" } else { "" })
        }
        "object" | "" => "any".into(),
        other => bail!("unknown type {other:?}"),
    })
}

fn list(property: &Value) -> anyhow::Result<String> {
    let item = type_text(&property["items"])?;
    Ok(match text(&property["x-kubernetes-list-type"]) {
        "set" => format!("[set~{item}]"),
        "map" => format!("[map~{}~{item}]", joined(&property["x-kubernetes-list-map-keys"])),
        _ => format!("[{item}]"),
    })
}

/// Definitions that are scalars or free-form in JSON.
fn scalar(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "Quantity" => "quantity",
        "IntOrString" => "intstr",
        "Time" if name.contains("meta.v1") => "time",
        "MicroTime" => "microtime",
        "FieldsV1" | "RawExtension" | "Patch" => "any",
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => "any",
        _ => return None,
    })
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn joined(value: &Value) -> String {
    array(value).iter().map(text).collect::<Vec<_>>().join(",")
}
