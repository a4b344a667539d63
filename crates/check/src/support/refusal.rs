//! Why the API server refuses an object, as data.

use tiphys_schema::{DecodeError, ErrorKind, FieldError, FieldRule, TypeMismatch};
use tiphys_value::Value;

/// Why an object is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RefusalCause {
    /// No API server has its kind.
    UnservedKind,
    /// Its type has no such field; the path as the API spells it.
    UnknownField(String),
    /// A value cannot be read into the type.
    Undecodable(DecodeError),
    /// A field breaks a rule of the kind.
    Invalid(FieldError),
}

impl RefusalCause {
    /// The fault of a field that validation found.
    pub(crate) fn field_error(&self) -> Option<&FieldError> {
        match self {
            Self::Invalid(error) => Some(error),
            _ => None,
        }
    }

    /// The value of another type, where reading failed on one.
    pub(crate) fn type_mismatch(&self) -> Option<&TypeMismatch> {
        match self {
            Self::Undecodable(DecodeError::Type(mismatch)) => Some(mismatch),
            _ => None,
        }
    }

    /// The rule that a field breaks, of those that have a name.
    pub(crate) fn rule(&self) -> Option<&FieldRule> {
        self.field_error()?.rule.as_ref()
    }

    /// Whether a field must be given and is not.
    pub(crate) fn is_missing_value(&self) -> bool {
        self.field_error().is_some_and(|error| error.kind == ErrorKind::Required)
    }

    /// Whether a text is no base64.
    pub(crate) fn is_base64(&self) -> bool {
        matches!(self, Self::Undecodable(DecodeError::Base64 { .. }))
    }

    /// Whether a value has another type than its schema names.
    pub(crate) fn is_json_type(&self) -> bool {
        matches!(self.rule(), Some(FieldRule::JsonType { .. }))
    }

    /// The text that is refused as malformed.
    pub(crate) fn refused_text(&self) -> Option<&str> {
        let error = self.field_error()?;
        let is_malformed = matches!(error.kind, ErrorKind::Invalid | ErrorKind::TypeInvalid);
        error.value.as_ref().filter(|_| is_malformed).and_then(Value::as_str)
    }
}
