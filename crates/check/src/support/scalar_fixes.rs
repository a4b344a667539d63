//! Patches of values that are of the wrong type: `8080` where a text is wanted, `"3"` where a number is.

use tiphys_diag::{Edit, Position, Span};
use tiphys_graph::{Object, Survey};
use tiphys_value::{FieldPath, OriginKind, Value};

use super::field_paths;

/// What a value is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl Wanted {
    /// What an answer of the API server wants instead of what it got, if one is only to be written otherwise.
    pub fn from_message(message: &str) -> Option<Self> {
        const FORMS: [(&str, &str, Wanted); 9] = [
            ("cannot unmarshal number into", " of type string", Wanted::Text),
            ("cannot unmarshal bool into", " of type string", Wanted::Text),
            ("must be of type string: \"integer\"", "", Wanted::Text),
            ("must be of type string: \"number\"", "", Wanted::Text),
            ("must be of type string: \"boolean\"", "", Wanted::Text),
            ("cannot unmarshal string into", " of type int", Wanted::Number),
            ("must be of type integer: \"string\"", "", Wanted::Number),
            ("cannot unmarshal string into", " of type bool", Wanted::Boolean),
            ("must be of type boolean: \"string\"", "", Wanted::Boolean),
        ];
        let mut forms = FORMS.iter();
        let found = forms.find(|(first, then, _)| message.contains(first) && message.contains(then));
        found.map(|(_, _, wanted)| *wanted)
    }

    /// Whether a value, or one that a map has, is only written otherwise than it is to be.
    pub fn is_wrong(self, value: &Value) -> bool {
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
pub fn rewrite(survey: &Survey, object: &Object, field: &FieldPath, wanted: Wanted) -> Vec<Edit> {
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
    use super::Wanted;

    #[test]
    fn answers_of_the_api_server_say_what_is_wanted() {
        let json = "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string";
        assert_eq!(Wanted::from_message(json), Some(Wanted::Text));
        let schema = "spec.a: Invalid value: \"string\": spec.a in body must be of type integer: \"string\"";
        assert_eq!(Wanted::from_message(schema), Some(Wanted::Number));
        assert_eq!(Wanted::from_message("spec.a: Required value"), None);
        assert_eq!(Wanted::from_message("must be of type array: \"string\""), None);
    }
}
