//! # A manifest in a script that the API server refuses
//!
//! Playbooks and scripts hand manifests to `kubectl apply -f -` in here-documents. Nothing looks at those
//! before they are sent: a field that the kind does not have is refused (or, without validation, dropped),
//! and what it was to say is not said. The classic is an Ingress that names the namespace of its backend: it
//! has none but its own.
//!
//! People see: `Error from server (BadRequest): … strict decoding error: unknown field
//! "spec.rules[0].http.paths[0].backend.service.namespace"`.
//!
//! ## Bad
//! ```yaml
//! - shell: |
//!     kubectl apply -f - <<EOF
//!     kind: Ingress
//!     …
//!             backend: {service: {name: web, namespace: shop, port: {number: 80}}}
//!     EOF
//! ```
//! ## Good
//! An Ingress for each namespace, with `backend: {service: {name: web, port: {number: 80}}}`.
//!
//! ## When to suppress
//! Where the cluster is so old or new that the kind has the field.

use std::sync::Arc;

use tiphys_diag::Severity;
use tiphys_schema::Catalog;
use tiphys_value::{Location, ObjectExt};
use tiphys_yaml::Profile;

use crate::{
    Context, Finding, Report, Rule,
    support::{field_paths, inline_manifests},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-inline-manifest",
    incident: "C2",
    severity: Severity::Warning,
    title: "a manifest in a playbook or script with a field that its kind does not have",
    page: page!("c2_inline_manifest.rs"),
    check,
};

/// Files that may hold here-documents.
const ENDINGS: [&str; 7] = [".yml", ".yaml", ".sh", ".bash", ".j2", ".tf", "Makefile"];

/// A manifest inside another file.
struct Inline {
    /// The line, from 0, of its first one.
    line: usize,
    /// How far it is indented.
    indent: usize,
    text: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.ending(&ENDINGS) {
        let Some(text) = files.text(path).filter(|text| text.contains("<<") && text.contains("apiVersion"))
        else {
            continue;
        };
        for inline in here_documents(&text) {
            judge(context, path, &inline, report);
        }
    }
}

/// The here-documents of a text that are given to kubectl.
fn here_documents(text: &str) -> Vec<Inline> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let opening = lines[at];
        at += 1;
        let Some(word) = delimiter(opening).filter(|_| opening.contains("kubectl")) else { continue };
        let Some(length) = lines[at..].iter().position(|line| line.trim() == word) else { continue };
        let body = &lines[at..at + length];
        let indents = body.iter().filter(|line| !line.trim().is_empty());
        let indent = indents.map(|line| line.len() - line.trim_start_matches(' ').len()).min().unwrap_or(0);
        let dedented = body.iter().map(|line| without_placeholders(line.get(indent..).unwrap_or_default()));
        found.push(Inline { line: at, indent, text: dedented.collect::<Vec<_>>().join("\n") });
        at += length;
    }
    found
}

/// The word that ends the here-document which a line begins.
fn delimiter(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("<<")?;
    let rest = rest.trim_start_matches(['-', ' ']);
    let word = rest.split([' ', '|', ')', ';', '>']).next()?;
    let word = word.trim_matches(['"', '\'']);
    (!word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some(word)
}

/// A line with a plain word in place of what is filled in later: `{{ name }}`, `$NAME`, `${name}`, `$(call)`.
fn without_placeholders(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['{', '$']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let length = if from.starts_with("{{") {
            from.find("}}").map(|end| end + 2)
        } else if from.starts_with("${") {
            from.find('}').map(|end| end + 1)
        } else if from.starts_with("$(") {
            from.find(')').map(|end| end + 1)
        } else if let Some(name) = from.strip_prefix('$') {
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            Some(end.map_or(from.len(), |end| end + 1))
        } else {
            None
        };
        match length {
            Some(length) => {
                out.push('x');
                rest = &from[length..];
            }
            None => {
                out.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    out + rest
}

fn judge(context: &Context<'_>, path: &Arc<str>, inline: &Inline, report: &mut Report) {
    let Ok(documents) = tiphys_yaml::parse_documents(&inline.text, Profile::Go2) else { return };
    for document in &documents {
        let Ok(mut value) = tiphys_yaml::to_value(&document.root, Profile::Go2) else { continue };
        let (gvk, catalog) = (value.gvk(), Catalog::latest());
        let Some(ty) = catalog.kind(&gvk).and_then(|_| catalog.type_of(&gvk)) else { continue };
        let title = format!("{}/{}", value.kind(), value.name());
        for field in inline_manifests::unknown_fields(ty, &mut value) {
            let place = inline_manifests::position(&document.root, &field_paths::of_api(&field));
            let (line, column) = place.map_or((0, 0), |at| (at.0 + inline.line, at.1 + inline.indent));
            let span = context.survey.files.span(&Location::new(
                path.clone(),
                u32::try_from(line.max(1)).unwrap_or(u32::MAX),
                u32::try_from(column).unwrap_or_default(),
            ));
            let kind = &gvk.kind;
            let message = format!(
                "{kind} in version \"{}\" cannot be handled as a {kind}: strict decoding error: unknown field \"{field}\"",
                gvk.version
            );
            let mut diagnostic = RULE
                .diagnostic(message)
                .at(span, "the kind has no such field")
                .because("kubectl asks for strict validation, and the API server refuses the object; without it the field is dropped");
            if field.contains("backend.service.namespace") {
                diagnostic = diagnostic
                    .help("an Ingress reaches only Services of its own namespace: make one Ingress for each");
            }
            report.add(Finding::new(RULE.incident, diagnostic).object(title.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{delimiter, here_documents, without_placeholders};

    #[test]
    fn here_documents_are_cut_out() {
        let text =
            "- shell: |\n    kubectl apply -f - <<EOF\n    kind: A\n      b: {{ c }}\n    EOF\n  x: y\n";
        let found = here_documents(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].indent), (2, 4));
        assert_eq!(found[0].text, "kind: A\n  b: x");
    }

    #[test]
    fn what_is_filled_in_later_is_a_word() {
        assert_eq!(without_placeholders("a: {b: $C, d: ${e}-{{ f }}}"), "a: {b: x, d: x-x}");
        assert_eq!(delimiter("cat <<-'EOF' | kubectl apply -f -"), Some("EOF"));
        assert_eq!(delimiter("x << 3"), Some("3"));
    }
}
