//! The values that a user gives, put together in Helm's order of flags.

use std::{cell::RefCell, sync::Arc};

use tiphys_value::Value;

use super::{
    Table, Val, merge_maps, read_values,
    strvals::{Mode, parse_into},
};
use crate::{Compat, HelmError, ValuesSource};

/// The table of a JSON object, or `None` if the text is something else.
fn from_json_text(text: &str) -> Option<Table> {
    match serde_json::from_str::<Value>(text).ok()? {
        Value::Object(map) => {
            Some(map.into_iter().map(|(key, value)| (Arc::from(key), Val::from_json(value))).collect())
        }
        _ => None,
    }
}

/// Files first, then `--set-json`, `--set`, `--set-string`, `--set-file`, `--set-literal`; sources of
/// one kind in their order.
///
/// # Errors
/// What Helm prints for a source that cannot be read.
pub(crate) fn user_values(sources: &[ValuesSource], compat: Compat) -> Result<Table, HelmError> {
    let mut values = Table::new();
    let passes: [fn(&ValuesSource) -> bool; 6] = [
        |source| matches!(source, ValuesSource::File(..)),
        |source| matches!(source, ValuesSource::SetJson(_)),
        |source| matches!(source, ValuesSource::Set(_)),
        |source| matches!(source, ValuesSource::SetString(_)),
        |source| matches!(source, ValuesSource::SetFile(..)),
        |source| matches!(source, ValuesSource::SetLiteral(_)),
    ];
    for of_kind in passes {
        for source in sources.iter().filter(|source| of_kind(source)) {
            apply(&mut values, source, compat).map_err(HelmError::Values)?;
        }
    }
    Ok(values)
}

/// The paths that a `--set-file` reads, in its order. What follows a fault is not read.
#[must_use]
pub fn set_file_paths(text: &str) -> Vec<String> {
    let paths = RefCell::new(Vec::new());
    let note = |path: &str| {
        paths.borrow_mut().push(path.to_owned());
        Ok(String::new())
    };
    // A fault is told when the values are put together.
    let _ = parse_into(text, &mut Table::new(), Mode::File(&note), Compat::Helm4);
    paths.into_inner()
}

/// Lays one source over the values.
pub(crate) fn apply(values: &mut Table, source: &ValuesSource, compat: Compat) -> Result<(), String> {
    match source {
        ValuesSource::File(name, bytes) => {
            let table =
                read_values(bytes, compat).map_err(|error| format!("failed to parse {name}: {error}"))?;
            merge_maps(values, &table);
            Ok(())
        }
        // A whole object is Helm 4's; Helm 3 takes it for a key without a value.
        ValuesSource::SetJson(text) if compat == Compat::Helm4 && text.trim_start().starts_with('{') => {
            let table = from_json_text(text.trim())
                .ok_or_else(|| format!("failed parsing --set-json data JSON: {text}"))?;
            merge_maps(values, &table);
            Ok(())
        }
        ValuesSource::SetJson(text) => parse_into(text, values, Mode::Json, compat)
            .map_err(|_| format!("failed parsing --set-json data {text}")),
        ValuesSource::Set(text) => parse_into(text, values, Mode::Typed, compat)
            .map_err(|error| format!("failed parsing --set data: {error}")),
        ValuesSource::SetString(text) => parse_into(text, values, Mode::String, compat)
            .map_err(|error| format!("failed parsing --set-string data: {error}")),
        ValuesSource::SetFile(text, files) => {
            let read = |name: &str| {
                let file = files.iter().find(|(path, _)| path == name);
                let (_, bytes) = file.ok_or_else(|| format!("open {name}: no such file or directory"))?;
                Ok(String::from_utf8_lossy(bytes.as_ref().map_err(String::clone)?).into_owned())
            };
            parse_into(text, values, Mode::File(&read), compat)
                .map_err(|error| format!("failed parsing --set-file data: {error}"))
        }
        ValuesSource::SetLiteral(text) => parse_into(text, values, Mode::Literal, compat)
            .map_err(|error| format!("failed parsing --set-literal data: {error}")),
    }
}
