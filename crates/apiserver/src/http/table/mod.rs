//! `Table` answers: the columns that kubectl shows.

mod cells;
mod kinds;

use std::sync::Arc;

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value, json};

use super::{context::Context, response::partial};
use crate::{ApiError, ApiResult, Object, ops, registry::Resource};
use cells::{Column, age, custom_cell};

/// A table of objects, with what the request wants of each object in its row.
pub(super) fn of_objects(
    context: &Context<'_>,
    resource: &Resource,
    objects: &[Arc<Object>],
    metadata: Value,
    columns: bool,
) -> ApiResult<Value> {
    let include = included(context)?;
    Ok(table_as_of(resource, objects, metadata, columns, include, context.server.now()))
}

/// What the request wants of each object in its row.
fn included<'a>(context: &'a Context<'_>) -> ApiResult<&'a str> {
    let include = context.query.get("includeObject");
    if !matches!(include, "" | "None" | "Metadata" | "Object") {
        return Err(ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
            tiphys_schema::quote(include)
        )));
    }
    Ok(include)
}

/// The table of a scale.
pub(super) fn of_scale(context: &Context<'_>, scale: &Value) -> ApiResult<Value> {
    let object = match included(context)? {
        "None" => Value::Null,
        "Object" => scale.clone(),
        _ => partial(scale),
    };
    let columns = [
        Column::new("Name", "string", 0),
        Column::new("Desired", "integer", 0),
        Column::new("Available", "integer", 0),
        Column::new("Age", "string", 0),
    ];
    let replicas = |part: &str| scale.int_at(&[part, "replicas"]).unwrap_or(0);
    let cells = json!([scale.name(), replicas("spec"), replicas("status"), age(scale, context.server.now())]);
    Ok(json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": scale.resource_version()},
        "columnDefinitions": columns.iter().map(Column::definition).collect::<Vec<_>>(),
        "rows": [{"cells": cells, "object": object}],
    }))
}

/// A table of objects as of a moment, which ages are counted to.
pub(super) fn table_as_of(
    resource: &Resource,
    objects: &[Arc<Object>],
    metadata: Value,
    columns: bool,
    include: &str,
    now: Timestamp,
) -> Value {
    let printer = Printer::for_resource(resource);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let shown = ops::present(resource, object);
            let mut row = json!({"cells": printer.cells(&shown, now)});
            match include {
                "None" => row["object"] = Value::Null,
                "Object" => row["object"] = shown,
                _ => row["object"] = partial(&shown),
            }
            row
        })
        .collect();
    let definitions =
        if columns { printer.columns().iter().map(Column::definition).collect() } else { Value::Null };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions, "rows": rows})
}

/// How the objects of a resource become rows.
enum Printer<'a> {
    BuiltIn(Vec<Column>, kinds::Cells),
    Custom(Vec<Column>, &'a [Value]),
    Plain(Vec<Column>),
}

impl<'a> Printer<'a> {
    fn for_resource(resource: &'a Resource) -> Self {
        if let Some(custom) = &resource.custom {
            let mut columns = vec![Column::name()];
            columns.extend(custom.columns.iter().map(Column::custom));
            if custom.columns.is_empty() {
                columns.push(Column::new("Age", "date", 0));
            }
            return Self::Custom(columns, &custom.columns);
        }
        match kinds::printer(&resource.gvk.kind) {
            Some((columns, cells)) => Self::BuiltIn(columns, cells),
            None => Self::Plain(vec![Column::name(), Column::new("Created At", "date", 0)]),
        }
    }

    fn columns(&self) -> &[Column] {
        match self {
            Self::BuiltIn(columns, _) | Self::Custom(columns, _) | Self::Plain(columns) => columns,
        }
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = Value::from(object.name());
        match self {
            Self::BuiltIn(_, cells) => cells(object, now),
            Self::Custom(_, []) => vec![name, age(object, now)],
            Self::Custom(_, columns) => {
                let mut row = vec![name];
                row.extend(columns.iter().map(|column| custom_cell(column, object, now)));
                row
            }
            Self::Plain(_) => {
                vec![name, object.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default()]
            }
        }
    }
}
