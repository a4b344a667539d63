//! Label and field selectors of list and watch requests.

use tiphys_schema::LabelSelector;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{ApiError, ApiResult, registry::Resource};

/// Which objects of a resource are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: Vec<FieldTerm>,
}

#[derive(Clone, Debug)]
struct FieldTerm {
    field: String,
    value: String,
    equal: bool,
}

impl Selection {
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> ApiResult<Self> {
        let labels = LabelSelector::parse(labels).map_err(|e| ApiError::bad_request(e.to_string()))?;
        let fields = parse_fields(fields)?;
        for term in &fields {
            if !is_selectable(resource, &term.field) {
                return Err(ApiError::bad_request(unknown_field(resource, &term.field)));
            }
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
        (self.labels.is_empty() || self.labels.matches(labels))
            && self.fields.iter().all(|t| (field_value(object, &t.field) == t.value) == t.equal)
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

fn unknown_field(resource: &Resource, field: &str) -> String {
    if resource.custom.is_none() && resource.gvk.kind == "Job" {
        return format!("field label {field:?} not supported for Job");
    }
    let typed = resource.custom.is_some() || !resource.kind.selectable.is_empty();
    if typed {
        format!("field label not supported: {field}")
    } else {
        format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    }
}

fn parse_fields(text: &str) -> ApiResult<Vec<FieldTerm>> {
    let mut terms = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (field, value, equal) = if let Some((field, value)) = part.split_once("!=") {
            (field, value, false)
        } else if let Some((field, value)) = part.split_once("==") {
            (field, value, true)
        } else if let Some((field, value)) = part.split_once('=') {
            (field, value, true)
        } else {
            let message = format!("invalid selector: '{text}'; can't understand '{part}'");
            return Err(ApiError::bad_request(message));
        };
        let value = value.replace("\\,", ",").replace("\\=", "=").replace("\\\\", "\\");
        terms.push(FieldTerm { field: field.trim().to_owned(), value, equal });
    }
    Ok(terms)
}

fn is_selectable(resource: &Resource, field: &str) -> bool {
    field == "metadata.name"
        || (field == "metadata.namespace" && (resource.namespaced || resource.custom.is_none()))
        || resource.kind.selectable.contains(&field)
        || resource.custom.as_ref().is_some_and(|c| c.selectable.iter().any(|s| s == field))
}

fn field_value(object: &Value, field: &str) -> String {
    // The newer form of an Event has no source.
    let has_source = object.str_at(&["source", "component"]).is_some_and(|it| !it.is_empty());
    let field = match field {
        "status.successful" => "status.succeeded",
        "reportingController" => "reportingComponent",
        "source" if has_source => "source.component",
        "source" => "reportingComponent",
        "status.podIPs" => "status.podIPs[0].ip",
        other => other,
    };
    let field = field.replace("regarding.", "involvedObject.");
    let found = field.parse::<FieldPath>().ok().and_then(|path| path.get(object).cloned());
    match found {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => absent_value(&field).to_owned(),
        Some(other) => other.to_string(),
    }
}

/// What an unset field of a number or truth value reads as.
fn absent_value(field: &str) -> &'static str {
    match field {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        "status.replicas" | "status.succeeded" => "0",
        _ => "",
    }
}
