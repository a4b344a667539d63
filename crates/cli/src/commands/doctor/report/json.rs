//! The form for programs. docs/doctor.md describes it.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tiphys_doctor::Diagnosis;

use super::{DiagnosedCluster, Level, Report, sanitize::is_obeyed};
use crate::commands::doctor::mask::{mask_object, mask_text};

/// The version of the form: raised when a field goes or changes its meaning.
const VERSION: u32 = 1;

/// The diagnosis as one object, without credentials.
///
/// # Errors
/// The diagnosis holds something that JSON has no form for.
pub(crate) fn json(
    diagnosis: &Diagnosis,
    report: &Report,
    place: &DiagnosedCluster,
) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(diagnosis)?;
    mask_object(&mut value);
    if let Some(root) = value.as_object_mut() {
        root.insert("version".to_owned(), VERSION.into());
        root.insert("tool".to_owned(), json!({"name": "tiphys", "version": env!("CARGO_PKG_VERSION")}));
        root.insert(
            "cluster".to_owned(),
            json!({"name": mask_text(&place.name), "context": place.context, "version": place.version}),
        );
        let verdict = match report.level {
            Level::Well => "well",
            Level::Unsure => "unsure",
            Level::Wrong => "wrong",
        };
        root.insert("verdict".to_owned(), verdict.into());
    }
    Ok(value)
}

/// JSON in which characters that a terminal would obey are written as escapes; for programs it is the same.
pub(crate) fn visible_json(value: &Value) -> String {
    let text = format!("{value:#}\n");
    if !text.chars().any(|c| c != '\n' && is_obeyed(c)) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_obeyed(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_the_same_to_programs() {
        let value = json!({"a\u{9b}": "b\u{202e}\u{e0001}\u{1b}c"});
        let text = visible_json(&value);
        assert!(text.is_ascii(), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
