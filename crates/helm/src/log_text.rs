//! Texts in the lines that Helm logs.

use tiphys_gocompat::{strconv::quote, unicode::is_print};

/// A text as Helm's log shows it: quoted where it would be taken for several.
pub(crate) fn log_text(text: &str) -> String {
    let is_odd = |c: char| c <= ' ' || matches!(c, '"' | '=') || !is_print(c);
    if text.is_empty() || text.contains(is_odd) { quote(text) } else { text.to_owned() }
}
