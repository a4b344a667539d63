//! Reading values files.

use std::{borrow::Cow, sync::Arc};

use tiphys_value::{Value, json_kind};
use tiphys_yaml::{from_yaml, split_kubernetes_documents};

use super::{Table, Val, merge_maps};
use crate::Compat;

/// The values of a file. Helm 4 lays every document over those before it; Helm 3 reads the first.
///
/// # Errors
/// Helm's text for a file that is no YAML or holds no table.
pub(crate) fn read_values(text: &str, compat: Compat) -> Result<Table, String> {
    if compat == Compat::Helm3 {
        return read_document(text);
    }
    let mut values = Table::new();
    // Helm reads line by line and ends each with a newline: so does a block scalar on the last line.
    let ended = if text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) };
    for (_, document) in
        split_kubernetes_documents(&ended).map_err(|error| format!("error reading yaml document: {error}"))?
    {
        let table =
            read_document(document).map_err(|error| format!("cannot unmarshal yaml document: {error}"))?;
        if values.is_empty() {
            values = table;
        } else {
            merge_maps(&mut values, &table);
        }
    }
    Ok(values)
}

fn read_document(text: &str) -> Result<Table, String> {
    let value = from_yaml(text).map_err(|error| format!("error converting YAML to JSON: {error}"))?;
    match value {
        Value::Object(map) => {
            Ok(map.into_iter().map(|(key, value)| (Arc::from(key), Val::from_json(value))).collect())
        }
        Value::Null => Ok(Table::new()),
        other => Err(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_kind(&other)
        )),
    }
}
