//! Field errors as the Kubernetes API reports them: which field, what kind of fault, which value,
//! and the text that people and tools read (apimachinery, `validation/field`).

use std::fmt;

use serde_json::Value;

/// What kind of fault a [`FieldError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A value that refers to something that is not there.
    NotFound,
    /// A value that must be given.
    Required,
    /// A value that occurs twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value outside of an enumeration.
    NotSupported,
    /// A value that is well formed, but not allowed here.
    Forbidden,
    /// A value that is too long.
    TooLong,
    /// Too many items.
    TooMany,
    /// Too few items.
    TooFew,
    /// A fault of the server.
    Internal,
    /// A value of the wrong type.
    TypeInvalid,
    /// A value that is too short.
    TooShort,
}

impl ErrorKind {
    /// The machine-readable reason of a `Status` cause, such as `FieldValueInvalid`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooShort => "FieldValueTooShort",
        }
    }

    /// The words that open the message, such as `Invalid value`.
    pub fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
            Self::TooShort => "Too short",
        }
    }

    /// Whether the message shows the faulty value.
    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal)
    }
}

/// The rule behind a fault, for those rules that callers have to tell from others of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRule {
    /// A value has the type that the schema names, or its format.
    JsonType {
        /// What the value is.
        found: JsonType,
        /// What the schema wants.
        wanted: JsonType,
    },
    /// A selector selects the labels of its own template.
    SelectorMatchesTemplate,
    /// A selector selects something.
    SelectorNotEmpty,
    /// An Ingress has a backend: a default one, or rules.
    HasBackend,
    /// The cluster's own configuration allows it, such as its families of addresses.
    ClusterConfiguration,
    /// No fault of the object: rules were left out because of other faults.
    UncheckedRules,
    /// No fault of the object: a rule could not be compiled or evaluated, or cost too much.
    Unevaluated,
}

/// A type of JSON, as schemas name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of JSON")]
pub enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
    /// A format, or a choice of types.
    Other,
}

impl JsonType {
    /// The type that a schema calls by a name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => Self::Other,
        }
    }
}

/// One fault in one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Kind of fault.
    pub kind: ErrorKind,
    /// Path in the API's spelling, such as `spec.containers[0].name`.
    pub field: String,
    /// The faulty value, where the message shows one.
    pub value: Option<Value>,
    /// What is wrong, in the API server's words; may be empty.
    pub detail: String,
    /// How messages show the value, where that is not its JSON: the API server's own types have other names
    /// and another order.
    pub shown: Option<String>,
    /// The rule, where callers have to know it.
    pub rule: Option<FieldRule>,
}

impl FieldError {
    /// A fault of any kind.
    pub fn new(kind: ErrorKind, path: &Path, value: Option<Value>, detail: impl Into<String>) -> Self {
        Self { kind, field: path.to_string(), value, detail: detail.into(), shown: None, rule: None }
    }

    /// `Invalid value`.
    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// `Invalid value`, shown as the API server's own type prints it.
    pub fn invalid_as(path: &Path, shown: String, detail: impl Into<String>) -> Self {
        Self { shown: Some(shown), ..Self::new(ErrorKind::Invalid, path, None, detail) }
    }

    /// The same fault, its value shown as the API server's own type prints it.
    #[must_use]
    pub fn shown_as(mut self, shown: impl Into<String>) -> Self {
        self.shown = Some(shown.into());
        self
    }

    /// The same fault, with its rule.
    #[must_use]
    pub fn by_rule(mut self, rule: FieldRule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// What the API server says last if faults kept it from the rules of a schema.
    pub fn unchecked_rules(path: &Path) -> Self {
        const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        Self::invalid(path, Value::Null, UNCHECKED).by_rule(FieldRule::UncheckedRules)
    }

    /// `Required value`.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, path, None, detail)
    }

    /// `Forbidden`.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, path, None, detail)
    }

    /// `Duplicate value`.
    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// `Not found`.
    pub fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// `Unsupported value`, with the supported ones in the order given.
    pub fn not_supported(path: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|text| quote(text)).collect();
        let detail = match quoted.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", quoted.join(", ")),
        };
        Self::new(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// `Too long`, with the limit in bytes.
    pub fn too_long(path: &Path, limit: usize) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(ErrorKind::TooLong, path, None, format!("may not be more than {limit} {unit}"))
    }

    /// `Too many`, with the number there is and the limit.
    pub fn too_many(path: &Path, actual: usize, limit: usize) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        Self::new(ErrorKind::TooMany, path, Some(actual.into()), format!("must have at most {limit} {unit}"))
    }

    /// The message without the field: what a `Status` cause carries.
    pub fn body(&self) -> String {
        let mut text = self.kind.title().to_owned();
        if let Some(shown) = &self.shown {
            text.push_str(": ");
            text.push_str(&go_json(shown));
        } else if let (true, Some(value)) = (self.kind.shows_value(), &self.value) {
            text.push_str(": ");
            text.push_str(&value_text(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// `field: body`.
impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A faulty value as the message shows it: text quoted as Go does, the rest as JSON with sorted keys.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => go_json(&other.to_string()),
    }
}

/// Go's JSON encoder escapes the characters that matter inside HTML.
fn go_json(text: &str) -> String {
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Go's `strconv.Quote`: control characters escaped, printable text kept.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() || ('\u{2028}'..='\u{2029}').contains(&c) => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// All faults of an object, in the order in which the API server reports them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorList(pub Vec<FieldError>);

impl ErrorList {
    /// No faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fault.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Adds the faults of another list behind those here.
    pub fn extend(&mut self, other: impl IntoIterator<Item = FieldError>) {
        self.0.extend(other);
    }

    /// Whether there is no fault.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults in order.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }

    /// The message of all faults together: one as it is, several in brackets, each text once.
    pub fn message(&self) -> String {
        let mut seen = Vec::new();
        for text in self.0.iter().map(ToString::to_string) {
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        match seen.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        }
    }
}

impl IntoIterator for ErrorList {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

/// A path to a field in the spelling of API errors: `spec.ports[0].name`, `metadata.labels[key]`.
/// The root prints as `<nil>`, as the API server's does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// The root of an object.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path that starts with these field names, dot-separated.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// One field deeper.
    pub fn child(&self, name: &str) -> Self {
        match self.0.is_empty() {
            true => Self(name.to_owned()),
            false => Self(format!("{}.{name}", self.0)),
        }
    }

    /// One list position deeper.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// One map key deeper.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_read_as_the_api_server_writes_them() {
        let path = Path::root().child("spec").child("ports").index(0).child("name");
        let error = FieldError::invalid(&path, "A b", "wrong");
        assert_eq!(error.to_string(), r#"spec.ports[0].name: Invalid value: "A b": wrong"#);
        assert_eq!(FieldError::required(&path, "").body(), "Required value");
        let selector = FieldError::invalid(&Path::new("s"), json!({"b": 1, "a": "<"}), "x");
        assert_eq!(selector.body(), r#"Invalid value: {"a":"\u003c","b":1}: x"#);
        let unsupported = FieldError::not_supported(&Path::new("s"), "x", &["a", "b"]);
        assert_eq!(unsupported.body(), r#"Unsupported value: "x": supported values: "a", "b""#);
        assert_eq!(
            FieldError::too_long(&Path::new("s"), 63).body(),
            "Too long: may not be more than 63 bytes"
        );
    }

    #[test]
    fn several_faults_are_bracketed_and_repeats_left_out() {
        let error = |name: &str| FieldError::required(&Path::new(name), "");
        let list = ErrorList(vec![error("a"), error("b"), error("a")]);
        assert_eq!(list.message(), "[a: Required value, b: Required value]");
        assert_eq!(ErrorList(vec![error("a")]).message(), "a: Required value");
    }
}
