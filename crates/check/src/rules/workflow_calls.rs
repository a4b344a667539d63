//! Jobs that call a workflow of the same repository: keys that such a job cannot have, and what the called
//! workflow asks for.

use tiphys_diag::Span;
use tiphys_graph::{Files, tools::node_span};
use tiphys_yaml::{Node, Profile};

/// The keys of a job that calls a workflow (GitHub docs, "Reusing workflow configurations").
const KEYS: [&str; 9] =
    ["concurrency", "if", "name", "needs", "permissions", "secrets", "strategy", "uses", "with"];

/// A fault of a call: its place, what GitHub says, and what is wrong there.
pub(super) struct CallFault {
    pub span: Span,
    pub message: String,
    pub label: String,
}

/// The faults of a job that calls a workflow.
pub(super) fn faults(files: &Files, file: &std::sync::Arc<str>, job: &Node, uses: &Node) -> Vec<CallFault> {
    let place = |node: &Node| node_span(files, file, node);
    let mut found = Vec::new();
    for (key, _) in job.pairs().unwrap_or_default() {
        let Some(name) = key.as_str().filter(|name| !KEYS.contains(name) && *name != "<<") else { continue };
        found.push(CallFault {
            span: place(key),
            message: format!("Unexpected value '{name}'"),
            label: "a job that calls a workflow cannot have this".to_owned(),
        });
    }
    let Some(path) = uses.as_str().and_then(|uses| uses.strip_prefix("./")) else { return found };
    let Some(text) = files.text(path) else { return found };
    let Ok(documents) = tiphys_yaml::parse_documents(&text, Profile::Go3) else { return found };
    let Some(on) = documents.first().and_then(|document| document.root.get("on")) else { return found };
    let Some(call) = on.get("workflow_call") else { return found };
    let given = job.get("with");
    let inherits = job.get("secrets").and_then(Node::as_str) == Some("inherit");
    for (section, what, passed) in
        [("inputs", "Input", given), ("secrets", "Secret", job.get("secrets").filter(|_| !inherits))]
    {
        let declared = call.get(section).and_then(Node::pairs).unwrap_or_default();
        let is_known = |name: &str| {
            declared.iter().any(|(key, _)| key.as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)))
        };
        for (key, _) in passed.and_then(Node::pairs).unwrap_or_default() {
            let Some(name) = key.as_str().filter(|name| !is_known(name) && *name != "<<") else { continue };
            found.push(CallFault {
                span: place(key),
                message: format!(
                    "Invalid {}, {name} is not defined in the referenced workflow.",
                    what.to_lowercase()
                ),
                label: format!("{path} has none of this name"),
            });
        }
        let is_given = |name: &str| {
            let mut keys = passed.and_then(Node::pairs).unwrap_or_default().iter();
            keys.any(|(key, _)| key.as_str().is_some_and(|key| key.eq_ignore_ascii_case(name) || key == "<<"))
        };
        for (key, declaration) in declared {
            let is_required = declaration.get("required").and_then(Node::as_str) == Some("true")
                && declaration.get("default").is_none();
            let Some(name) = key.as_str().filter(|name| is_required && !is_given(name)) else { continue };
            if section == "secrets" && inherits {
                continue;
            }
            found.push(CallFault {
                span: place(uses),
                message: format!("{what} {name} is required, but not provided while calling."),
                label: format!("{path} asks for {name}"),
            });
        }
    }
    found
}
