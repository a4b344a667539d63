//! What ConfigMaps and Secrets hold.

use tiphys_gocompat::base64;
use tiphys_value::{ObjectExt as _, Value};

/// The text that a ConfigMap or a Secret holds under a key; that of a Secret's `data` decoded. Nothing if it
/// holds none, or what it holds is no text.
pub fn settings_text(holder: &Value, key: &str) -> Option<String> {
    let plain = |field: &str| holder.str_at(&[field, key]).map(str::to_owned);
    if holder.kind() != "Secret" {
        return plain("data");
    }
    let Some(encoded) = holder.str_at(&["data", key]) else { return plain("stringData") };
    String::from_utf8(base64::decode(encoded.trim()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::settings_text;

    #[test]
    fn what_a_secret_holds_is_decoded() {
        let text = |kind: &str, field: &str, value: &str| {
            settings_text(&json!({"kind": kind, field: {"values.yaml": value}}), "values.yaml")
        };
        assert_eq!(text("ConfigMap", "data", "YTogMQ==").as_deref(), Some("YTogMQ=="));
        assert_eq!(text("Secret", "data", "YTogMQ==").as_deref(), Some("a: 1"));
        assert_eq!(text("Secret", "stringData", "a: 1").as_deref(), Some("a: 1"));
        assert_eq!(text("Secret", "data", "no base64"), None);
        assert_eq!(text("ConfigMap", "stringData", "a: 1"), None);
    }
}
