//! The option `kustomize.images` of Applications: a list of texts, which people write as the mappings of a
//! kustomization.

use tiphys_diag::{Edit, Position, Span};
use tiphys_graph::{Object, Survey};
use tiphys_value::{FieldPath, OriginKind, Segment, Value};

use super::pods::text;

/// Whether a field is an entry of `kustomize.images`.
pub(crate) fn is_entry(field: &FieldPath) -> bool {
    let [.., Segment::Key(kustomize), Segment::Key(images), Segment::Index(_)] = field.0.as_slice() else {
        return false;
    };
    kustomize == "kustomize" && images == "images"
}

/// What an entry has to be instead of a mapping: `name:tag`, `name=new:tag`, `name@digest`.
pub(crate) fn as_text(entry: &Value) -> Option<String> {
    let (name, new) = (text(entry, "name"), text(entry, "newName"));
    let (tag, digest) = (text(entry, "newTag"), text(entry, "digest"));
    if name.is_empty() || (new.is_empty() && tag.is_empty() && digest.is_empty()) {
        return None;
    }
    let image = if new.is_empty() { name.to_owned() } else { format!("{name}={new}") };
    let version = match (tag, digest) {
        (_, digest) if !digest.is_empty() => format!("@{digest}"),
        ("", _) => String::new(),
        (tag, _) => format!(":{tag}"),
    };
    Some(image + &version)
}

/// The edit that writes an entry as a text, if it stands in a file as a mapping over several lines.
pub(crate) fn rewrite(survey: &Survey, object: &Object, field: &FieldPath) -> Option<Edit> {
    let entry = as_text(field.get(object.value())?)?;
    let origin = object.rendered.origins.lookup(field).first()?;
    if origin.kind != OriginKind::Manifest || *origin.location.file != *object.rendered.location.file {
        return None;
    }
    let (line, column) = (origin.location.line as usize, origin.location.column as usize);
    let content = survey.files.text(&origin.location.file)?;
    let lines: Vec<&str> = content.lines().collect();
    let indent = column.checked_sub(1)?;
    let first = *lines.get(line.checked_sub(1)?)?;
    // The mapping begins behind the dash, and goes on at the same column.
    if !first.get(..indent)?.trim_end().ends_with('-') || first.get(indent..)?.starts_with('{') {
        return None;
    }
    let is_inside =
        |text: &&&str| text.len() > indent && text[..indent].trim().is_empty() && !text.trim().is_empty();
    let more = lines[line..]
        .iter()
        .take_while(|text| text.is_char_boundary(indent.min(text.len())))
        .take_while(is_inside)
        .count();
    let last = *lines.get(line - 1 + more)?;
    let quoted =
        if entry.starts_with(['{', '*', '&', '!', '%', '@']) { format!("\"{entry}\"") } else { entry };
    let span = Span {
        file: origin.location.file.clone(),
        start: Position { line: origin.location.line, column: origin.location.column },
        end: Position {
            line: u32::try_from(line + more).ok()?,
            column: u32::try_from(last.trim_end().chars().count()).ok()? + 1,
        },
    };
    Some(Edit { span, replacement: quoted })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::as_text;

    #[test]
    fn entries_are_written_as_kustomize_reads_them() {
        let of = |value| as_text(&value).unwrap_or_default();
        assert_eq!(of(json!({"name": "a/b", "newTag": "v2"})), "a/b:v2");
        assert_eq!(of(json!({"name": "a", "newName": "c", "newTag": "v2"})), "a=c:v2");
        assert_eq!(of(json!({"name": "a", "digest": "sha256:0"})), "a@sha256:0");
        assert_eq!(of(json!({"name": "a"})), "");
    }
}
