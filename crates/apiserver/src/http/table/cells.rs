//! Columns and the values in them.

use jiff::Timestamp;
use tiphys_value::{FieldPath, ObjectExt, Value, json};

/// A column of a table.
pub(super) struct Column {
    name: String,
    kind: String,
    format: String,
    priority: i64,
    description: String,
}

impl Column {
    pub(super) fn new(name: &str, kind: &str, priority: i64) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            format: String::new(),
            priority,
            description: String::new(),
        }
    }

    /// The same with a format, which tells clients how to show it.
    pub(super) fn formatted(self, format: &str) -> Self {
        Self { format: format.into(), ..self }
    }

    /// The first column of every table.
    pub(super) fn name() -> Self {
        Self { format: "name".into(), ..Self::new("Name", "string", 0) }
    }

    /// A column from `additionalPrinterColumns`.
    pub(super) fn custom(column: &Value) -> Self {
        let text = |key| column.str_at(&[key]).unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            priority: column.int_at(&["priority"]).unwrap_or(0),
            description: text("description"),
        }
    }

    pub(super) fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description, "priority": self.priority})
    }
}

/// The value of a custom column.
pub(super) fn custom_cell(column: &Value, object: &Value, now: Timestamp) -> Value {
    let path = column.str_at(&["jsonPath"]).unwrap_or_default();
    let Some(found) = lookup(object, path) else { return Value::Null };
    match (column.str_at(&["type"]), &found) {
        (Some("date"), Value::String(text)) => since(text, now).into(),
        (Some("string"), Value::String(_))
        | (Some("integer" | "number"), Value::Number(_))
        | (Some("boolean"), Value::Bool(_)) => found,
        (Some("string"), other) => other.to_string().into(),
        _ => Value::Null,
    }
}

/// A JSON path as printer columns use them: keys, indices, `[*]` (its first match) and
/// `[?(@.key=="value")]`.
fn lookup(object: &Value, path: &str) -> Option<Value> {
    if let Some((list, rest)) = path.split_once("[?(") {
        let (condition, rest) = rest.split_once(")]")?;
        let (key, wanted) = condition.split_once("==")?;
        let key = key.trim().strip_prefix("@.")?;
        let wanted = wanted.trim().trim_matches(|c| c == '"' || c == '\'');
        let list = lookup(object, list)?;
        let found = list.as_array()?.iter().find(|item| {
            lookup(item, &format!(".{key}"))
                .is_some_and(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned) == wanted)
        })?;
        return lookup(found, rest);
    }
    if let Some((list, rest)) = path.split_once("[*]") {
        let list = lookup(object, list)?;
        return lookup(list.as_array()?.first()?, rest);
    }
    let path = unescape(path).parse::<FieldPath>().ok()?;
    path.get(object).filter(|v| !v.is_null()).cloned()
}

/// `.metadata.labels['a\.b']` and `.metadata.labels.a\.b` name the key `a.b`.
fn unescape(path: &str) -> String {
    let path = path.replace("['", "[\"").replace("']", "\"]");
    if !path.contains("\\.") {
        return path;
    }
    let marked = path.replace("\\.", "\u{0}");
    let steps = marked.split('.').filter(|s| !s.is_empty()).map(|step| match step.contains('\u{0}') {
        true => format!("[{}]", Value::from(step.replace('\u{0}', "."))),
        false => format!(".{step}"),
    });
    steps.collect()
}

/// Since when an object exists.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    object
        .str_at(&["metadata", "creationTimestamp"])
        .map_or_else(|| "<unknown>".into(), |at| since(at, now).into())
}

/// The time since a moment, as people read it.
pub(super) fn since(moment: &str, now: Timestamp) -> String {
    match moment.parse::<Timestamp>() {
        Ok(at) => duration(now.as_second() - at.as_second()),
        Err(_) => "<unknown>".into(),
    }
}

/// Seconds as people read them: `5s`, `3m20s`, `5h`, `2d3h`, `400d`, `2y30d`.
pub(super) fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{big_unit}"),
        _ => format!("{big}{big_unit}{small}{small_unit}"),
    };
    match seconds {
        s if s < -1 => "<invalid>".into(),
        s if s < 0 => "0s".into(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, "y", s % YEAR / DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_prints_them() {
        for (seconds, text) in [
            (5, "5s"),
            (119, "119s"),
            (200, "3m20s"),
            (300, "5m"),
            (3600, "60m"),
            (5 * 3600, "5h"),
            (7 * 3600 + 60, "7h1m"),
            (30 * 3600, "30h"),
            (3 * 86400, "3d"),
            (3 * 86400 + 3600, "3d1h"),
            (400 * 86400, "400d"),
            (3 * 365 * 86400 + 86400, "3y1d"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn finds_what_printer_columns_name() {
        let object = json!({"metadata": {"labels": {"a.b/c": "x"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "urls": ["u"]}});
        let find = |path| lookup(&object, path);
        assert_eq!(find(r#".status.conditions[?(@.type=="Ready")].status"#), Some("True".into()));
        assert_eq!(find(".status.urls[*]"), Some("u".into()));
        assert_eq!(find(r".metadata.labels.a\.b/c"), Some("x".into()));
        assert_eq!(find(".metadata.labels['a.b/c']"), Some("x".into()));
        assert_eq!(find(".none.there"), None);
    }
}
