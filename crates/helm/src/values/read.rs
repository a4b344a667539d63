//! Reading values files.

use std::{borrow::Cow, sync::Arc};

use tiphys_value::{Value, json_kind};
use tiphys_yaml::{decode_utf8, from_yaml, split_kubernetes_documents};

use super::{Table, Val, merge_maps};
use crate::Compat;

/// The values of a file. Helm 4 lays every document over those before it; Helm 3 reads the first.
///
/// # Errors
/// Helm's text for a file that is no YAML or holds no table.
pub(crate) fn read_values(bytes: &[u8], compat: Compat) -> Result<Table, String> {
    let text = decode_utf8(bytes).map_err(|_| not_utf8(bytes, compat))?;
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

/// Helm's text for bytes that are not UTF-8; Helm 4 reads them document by document.
fn not_utf8(bytes: &[u8], compat: Compat) -> String {
    let (wrapper, separator) = match compat {
        Compat::Helm4 => ("cannot unmarshal yaml document: ", "\n---"),
        Compat::Helm3 => ("", ""),
    };
    let bad = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let end = match separator {
        "" => bytes.len(),
        separator => {
            let next =
                bytes[bad..].windows(separator.len()).position(|window| window == separator.as_bytes());
            next.map_or(bytes.len(), |at| bad + at + 1)
        }
    };
    let error = decode_utf8(&bytes[..end]).err().map(|error| error.to_string()).unwrap_or_default();
    format!("{wrapper}error converting YAML to JSON: {error}")
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
