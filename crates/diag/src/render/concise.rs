//! One line per diagnostic: `file:line:column: severity[rule]: message`.

use crate::{Diagnostic, sanitize};

/// One line, for logs and editors.
pub fn concise(diagnostic: &Diagnostic) -> String {
    let Diagnostic { rule, severity, message, primary, .. } = diagnostic;
    let message = sanitize::terminal(message);
    match primary {
        Some(label) => format!("{}: {severity}[{rule}]: {message}", sanitize::line(&label.span.to_string())),
        None => format!("{severity}[{rule}]: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::Span;

    use super::*;

    #[test]
    fn says_where_and_what() {
        let found = Diagnostic::error("yaml-syntax", "did not find expected key");
        assert_eq!(concise(&found), "error[yaml-syntax]: did not find expected key");
        let placed = found.at(Span::point("a/b.yaml", 3, 5), "");
        assert_eq!(concise(&placed), "a/b.yaml:3:5: error[yaml-syntax]: did not find expected key");
    }
}
