//! SARIF 2.1.0 (OASIS standard), which code hosts show beside the lines of a change.

use serde_json::{Value, json};
use tiphys_diag::{Label, Severity, Span};

use super::ReportContents;
use crate::{Finding, rules};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// One run with every rule that exists and the findings as results.
pub fn sarif(shown: &ReportContents<'_>) -> Value {
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tiphys",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules::ALL.iter().map(|rule| json!({
                    "id": rule.id,
                    "shortDescription": {"text": rule.title},
                    "help": {"text": rule.documentation(), "markdown": rule.documentation()},
                    "defaultConfiguration": {"level": level(rule.severity)},
                    "properties": {"incident": rule.incident},
                })).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": shown.findings().map(|finding| result(finding, shown)).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Finding, shown: &ReportContents<'_>) -> Value {
    let diagnostic = &finding.diagnostic;
    let mut message = diagnostic.message.clone();
    for more in std::iter::once(&diagnostic.mechanism).chain(&diagnostic.help).filter(|it| !it.is_empty()) {
        message.push_str("\n\n");
        message.push_str(more);
    }
    let mut result = json!({
        "ruleId": diagnostic.rule,
        "level": level(diagnostic.severity),
        "message": {"text": message},
        "locations": diagnostic.primary.iter().map(|label| json!({"physicalLocation": place(&label.span)})).collect::<Vec<_>>(),
        "relatedLocations": diagnostic.related.iter().enumerate().map(related).collect::<Vec<_>>(),
        "partialFingerprints": {"tiphys/v1": finding.fingerprint()},
        "properties": {
            "app": finding.app,
            "object": finding.object,
            "confidence": finding.confidence,
            "unreachable": shown.is_unreached(finding),
        },
    });
    if let Some(position) = rules::ALL.iter().position(|rule| rule.id == diagnostic.rule) {
        result["ruleIndex"] = position.into();
    }
    if let Some(fix) = finding.fix.as_ref().filter(|fix| !fix.patch.is_empty()) {
        let changes: Vec<Value> = fix
            .patch
            .iter()
            .map(|edit| {
                json!({
                    "artifactLocation": {"uri": uri(&edit.span.file)},
                    "replacements": [{"deletedRegion": region(&edit.span), "insertedContent": {"text": edit.replacement}}],
                })
            })
            .collect();
        result["fixes"] = json!([{"description": {"text": fix.description}, "artifactChanges": changes}]);
    }
    result
}

fn related((index, label): (usize, &Label)) -> Value {
    json!({"id": index, "physicalLocation": place(&label.span), "message": {"text": label.text}})
}

fn place(span: &Span) -> Value {
    json!({"artifactLocation": {"uri": uri(&span.file)}, "region": region(span)})
}

fn region(span: &Span) -> Value {
    json!({
        "startLine": span.start.line.max(1),
        "startColumn": span.start.column.max(1),
        "endLine": span.end.line.max(1),
        "endColumn": span.end.column.max(1),
    })
}

/// A path as a relative URI reference (RFC 3986): everything but unreserved characters and `/` escaped.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte))
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_become_uris() {
        assert_eq!(super::uri("a b/ü#.yaml"), "a%20b/%C3%BC%23.yaml");
    }
}
