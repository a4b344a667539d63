//! # An object too large for client-side apply
//!
//! Client-side apply keeps a copy of every object in its annotation
//! `kubectl.kubernetes.io/last-applied-configuration`. All annotations of an object together may have
//! 262,144 bytes; large CustomResourceDefinitions and dashboards pass that, and are refused.
//!
//! People see: `metadata.annotations: Too long: must have at most 262144 bytes` (newer servers: `may not
//! be more than 262144 bytes`).
//!
//! ## Bad
//! ```yaml
//! syncPolicy: {syncOptions: [CreateNamespace=true]}
//! ```
//! ## Good
//! ```yaml
//! syncPolicy: {syncOptions: [ServerSideApply=true, CreateNamespace=true]}
//! ```
//! ## When to suppress
//! Where the objects are there already and another tool owns them. Tiphys itself always applies server-side.

use std::io;

use tiphys_diag::Severity;
use tiphys_graph::{App, Object};
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, sync_options},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C1-last-applied-too-long",
    incident: "C1",
    severity: Severity::Error,
    title: "an object too large for client-side apply",
    page: page!("c1_last_applied_too_long.rs"),
    check,
};

/// All keys and values of annotations together (apimachinery, `ValidateAnnotationsSize`).
const LIMIT: usize = 256 << 10;
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in context.survey.apps.iter().filter(|app| app.is_rendered()) {
        for object in context.survey.objects_of(app.id) {
            let size = annotations_size(object.value());
            if size <= LIMIT || is_exempt(context, object) {
                continue;
            }
            once.add(&object.title(), finding(context, app, object, size));
        }
    }
    once.report(report);
}

fn finding(context: &Context<'_>, app: &App, object: &Object, size: usize) -> crate::Finding {
    let survey = context.survey;
    let message = format!(
        "{} is too large for client-side apply: metadata.annotations: Too long: must have at most {LIMIT} bytes",
        object.title()
    );
    let diagnostic = RULE
        .diagnostic(message)
        .at(survey.start(object), format!("its annotations would have {size} bytes"))
        .see(
            survey.app_span(app, &crate::support::field_paths::keys(&["spec", "syncPolicy"])),
            format!("Application {} does not ask for ServerSideApply", app.name()),
        )
        .because("client-side apply stores the whole object in the annotation last-applied-configuration, and the API server limits annotations")
        .help("set the sync option ServerSideApply=true for the Application")
        .help("or annotate the object with argocd.argoproj.io/sync-options: ServerSideApply=true");
    let finding = RULE.finding(context, object, diagnostic);
    let edits = sync_options::add_sync_option(survey, app, "ServerSideApply=true");
    finding.fix("apply the Application server-side", edits)
}

/// Server-side apply and replacing write no such annotation.
fn is_exempt(context: &Context<'_>, object: &Object) -> bool {
    ["ServerSideApply", "Replace"].iter().any(|option| sync_options::is_on(context.survey, object, option))
}

/// What the annotations of an object have in bytes once kubectl has added its own: the object without that
/// annotation, as Go writes it in JSON, with a line end.
fn annotations_size(object: &Value) -> usize {
    let mut own = 0;
    let mut before = 0;
    let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if key == LAST_APPLIED {
            // With it goes its comma; that an object might have it alone does not change the verdict.
            before = json_size(&Value::from(key.as_str())) + json_size(&Value::from(value)) + 2;
        } else {
            own += key.len() + value.len();
        }
    }
    own + LAST_APPLIED.len() + (json_size(object) - before) + 1
}

/// The bytes of a value in Go's JSON, which escapes `<`, `>`, `&` and two line separators.
fn json_size(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            const ESCAPED: usize = r"\u003c".len();
            let html = bytes.iter().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
            let separators = bytes.windows(3).filter(|it| matches!(it, [0xe2, 0x80, 0xa8 | 0xa9])).count();
            self.0 += bytes.len() + html * (ESCAPED - 1) + separators * (ESCAPED - 3);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("a value always has a JSON form");
    counter.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_are_those_of_gos_encoder() {
        assert_eq!(json_size(&json!({"a": "<&>\u{2028}"})), r#"{"a":"\u003c\u0026\u003e\u2028"}"#.len());
        let object = json!({"metadata": {"annotations": {"k": "v"}}});
        let expected = 2 + LAST_APPLIED.len() + r#"{"metadata":{"annotations":{"k":"v"}}}"#.len() + 1;
        assert_eq!(annotations_size(&object), expected);
        let again = json!({"metadata": {"annotations": {"k": "v", LAST_APPLIED: "{\"x\":1}\n"}}});
        assert_eq!(annotations_size(&again), expected);
    }
}
