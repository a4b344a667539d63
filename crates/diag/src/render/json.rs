//! The form for programs.

use serde_json::{Value, json};

use crate::{Diagnostic, Label, SourceMap};

/// One JSON object: rule, severity, message, primary, related, mechanism, help. A place has file,
/// line, column, endLine, endColumn, text, and the line itself as `snippet` where it is known.
pub fn json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    json!({
        "rule": diagnostic.rule,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "primary": diagnostic.primary.as_ref().map(|label| place(label, sources)),
        "related": diagnostic.related.iter().map(|label| place(label, sources)).collect::<Vec<_>>(),
        "mechanism": diagnostic.mechanism,
        "help": diagnostic.help,
    })
}

fn place(label: &Label, sources: &SourceMap) -> Value {
    let span = &label.span;
    json!({
        "file": span.file,
        "line": span.start.line,
        "column": span.start.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
        "text": label.text,
        "snippet": sources.line(span),
    })
}

#[cfg(test)]
mod tests {
    use crate::Span;

    use super::*;

    #[test]
    fn carries_the_line_of_the_place() {
        let mut sources = SourceMap::default();
        sources.insert("f.yaml", "a: 1\nb 2\n");
        let found = json(&Diagnostic::error("r", "m").at(Span::point("f.yaml", 2, 1), "here"), &sources);
        assert_eq!(found["primary"]["snippet"], "b 2");
        assert_eq!(found["primary"]["line"], 2);
        assert_eq!(found["severity"], "error");
    }
}
