//! Patches of values that are of the wrong type: `8080` where a text is wanted, `"3"` where a number is.

use tiphys_diag::{Edit, Position, Span};
use tiphys_graph::{Object, Survey};
use tiphys_schema::{FieldRule, JsonType, TypeMismatch};
use tiphys_value::{FieldPath, OriginKind, Value};

use super::{field_paths, refusal::RefusalCause};

/// What a value is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl Wanted {
    /// What is wanted instead of what is refused, if it is only to be written otherwise.
    pub(crate) fn from_refusal(cause: &RefusalCause) -> Option<Self> {
        if let Some(TypeMismatch { found, expected, .. }) = cause.type_mismatch() {
            return match (found.as_str(), expected.as_str()) {
                ("number" | "bool", "string") => Some(Self::Text),
                ("string", "int32" | "int64") => Some(Self::Number),
                ("string", "bool") => Some(Self::Boolean),
                _ => None,
            };
        }
        let Some(FieldRule::JsonType { found, wanted }) = cause.rule() else { return None };
        match (found, wanted) {
            (JsonType::Integer | JsonType::Number | JsonType::Boolean, JsonType::String) => Some(Self::Text),
            (JsonType::String, JsonType::Integer) => Some(Self::Number),
            (JsonType::String, JsonType::Boolean) => Some(Self::Boolean),
            _ => None,
        }
    }

    /// Whether a value, or one that a map has, is only written otherwise than it is to be.
    pub(crate) fn is_wrong(self, value: &Value) -> bool {
        match value {
            Value::Object(map) => map.values().any(|value| self.is_wrong_alone(value)),
            value => self.is_wrong_alone(value),
        }
    }

    fn is_wrong_alone(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text, Value::Number(_) | Value::Bool(_)) => true,
            (Self::Number, Value::String(text)) => text.parse::<i64>().is_ok(),
            (Self::Boolean, Value::String(text)) => matches!(text.as_str(), "true" | "false"),
            _ => false,
        }
    }
}

/// The edits that write a field, or all that a map of texts holds, as what it is to be; none where something
/// is left, or a template writes it.
pub(crate) fn rewrite(survey: &Survey, object: &Object, field: &FieldPath, wanted: Wanted) -> Vec<Edit> {
    let Some(value) = field.get(object.value()) else { return Vec::new() };
    let wrong: Vec<FieldPath> = match value {
        Value::Object(map) => {
            let wrong = map.iter().filter(|(_, value)| wanted.is_wrong_alone(value));
            wrong.map(|(key, _)| field.key(key)).collect()
        }
        value if wanted.is_wrong_alone(value) => vec![field.clone()],
        _ => Vec::new(),
    };
    let edits: Option<Vec<Edit>> =
        wrong.iter().map(|field| edit_scalar(survey, object, field, wanted)).collect();
    edits.unwrap_or_default()
}

fn edit_scalar(survey: &Survey, object: &Object, field: &FieldPath, wanted: Wanted) -> Option<Edit> {
    let origin = object.rendered.origins.lookup(field).first()?;
    if origin.kind != OriginKind::Manifest {
        return None;
    }
    let span = survey.span(object, field);
    let text = survey.files.text(&span.file)?;
    let line = text.lines().nth(span.start.line.max(1) as usize - 1)?;
    let at = line.char_indices().nth(span.start.column.max(1) as usize - 1)?.0;
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']');
    let written = &line[at..][..line[at..].find(is_end).unwrap_or(line.len() - at)];
    let value = field.get(object.value())?;
    let instead = match wanted {
        Wanted::Text => is_spelling(written, value).then(|| format!("\"{written}\"")),
        Wanted::Number | Wanted::Boolean => {
            let inner = written.strip_prefix(['"', '\'']).and_then(|it| it.strip_suffix(['"', '\'']));
            inner.filter(|inner| value.as_str() == Some(inner)).map(str::to_owned)
        }
    }?;
    let end = u32::try_from(written.chars().count()).ok()? + span.start.column;
    let place = Span { end: Position { line: span.start.line, column: end }, ..span.clone() };
    field_paths::rewrite(object, field, place, &instead)
}

/// Whether a plain scalar is another spelling of a value: `True`, `yes`, `0640`, `1e3`.
fn is_spelling(written: &str, value: &Value) -> bool {
    match value {
        Value::Bool(_) => {
            let words = ["true", "false", "yes", "no", "on", "off"];
            words.iter().any(|word| written.eq_ignore_ascii_case(word))
        }
        Value::Number(_) => written.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tiphys_schema::{DecodeError, FieldError, FieldRule, JsonType, Path, TypeMismatch};

    use super::{RefusalCause, Wanted};

    #[test]
    fn what_is_refused_says_what_is_wanted() {
        let decoded = |found: &str, expected: &str| {
            Wanted::from_refusal(&RefusalCause::Undecodable(DecodeError::Type(TypeMismatch {
                found: found.into(),
                expected: expected.into(),
                owner: Some("EnvVar".into()),
                names: vec!["spec".into(), "value".into()],
            })))
        };
        assert_eq!(decoded("number", "string"), Some(Wanted::Text));
        assert_eq!(decoded("string", "int32"), Some(Wanted::Number));
        assert_eq!(decoded("object", "string"), None);
        let validated = |found: &str, wanted: &str| {
            let rule = FieldRule::JsonType {
                found: JsonType::from_name(found),
                wanted: JsonType::from_name(wanted),
            };
            let error = FieldError::invalid(&Path::new("spec.a"), found, "").by_rule(rule);
            Wanted::from_refusal(&RefusalCause::Invalid(error))
        };
        assert_eq!(validated("string", "integer"), Some(Wanted::Number));
        assert_eq!(validated("string", "array"), None);
        let missing = FieldError::required(&Path::new("spec.a"), "");
        assert_eq!(Wanted::from_refusal(&RefusalCause::Invalid(missing)), None);
    }
}
