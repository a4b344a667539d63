//! # An option of Argo CD that it does not know
//!
//! Sync options, hooks and compare options are words in annotations and lists that nobody validates. One that
//! is misspelt is passed over silently: a Job that was to run before the sync is an object like any other, a
//! namespace is not made, a large definition is applied on the client's side after all.
//!
//! People see: nothing – what the option was for does not happen.
//!
//! ## Bad
//! ```yaml
//! metadata: {annotations: {argocd.argoproj.io/hook: Presync}}
//! spec: {syncPolicy: {syncOptions: [CreateNamespaces=true]}}
//! ```
//! ## Good
//! ```yaml
//! metadata: {annotations: {argocd.argoproj.io/hook: PreSync}}
//! spec: {syncPolicy: {syncOptions: [CreateNamespace=true]}}
//! ```
//! ## When to suppress
//! Where a newer version of Argo CD knows the option.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_model::SYNC_OPTIONS;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-unknown-option",
    incident: "C2",
    severity: Severity::Warning,
    title: "an option of Argo CD that is misspelt",
    page: page!("c2_unknown_option.rs"),
    check,
};

/// Annotations whose words are a closed list, beside the sync options.
const WORDS: [(&str, &[&str]); 3] = [
    (
        "argocd.argoproj.io/hook",
        &["PreSync", "Sync", "PostSync", "SyncFail", "PostDelete", "PreDelete", "Skip"],
    ),
    ("argocd.argoproj.io/hook-delete-policy", &["HookSucceeded", "HookFailed", "BeforeHookCreation"]),
    (
        "argocd.argoproj.io/compare-options",
        &[
            "IgnoreExtraneous",
            "ServerSideDiff=true",
            "ServerSideDiff=false",
            "IncludeMutationWebhook=true",
            "IncludeMutationWebhook=false",
        ],
    ),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        for (annotation, known) in WORDS {
            let path = keys(&["metadata", "annotations", annotation]);
            let words = object.value().annotation(annotation).unwrap_or_default().split(',').map(str::trim);
            words.for_each(|word| check_option(context, object, &path, word, known, &mut once));
        }
        let path = keys(&["metadata", "annotations", "argocd.argoproj.io/sync-options"]);
        let options = object.value().annotation("argocd.argoproj.io/sync-options").unwrap_or_default();
        options.split(',').for_each(|option| name(context, object, &path, option, &mut once));
        if object.key.group == tiphys_model::names::GROUP && object.key.kind == "Application" {
            let path = keys(&["spec", "syncPolicy", "syncOptions"]);
            let listed = path.get(object.value()).and_then(Value::as_array).into_iter().flatten();
            for (at, option) in listed.enumerate().filter_map(|(at, it)| Some((at, it.as_str()?))) {
                name(context, object, &path.index(at), option, &mut once);
            }
        }
    }
    once.report(report);
}

/// Looks at a sync option: its name before the `=`.
fn name(context: &Context<'_>, object: &Object, path: &FieldPath, option: &str, once: &mut Once) {
    let option = option.trim();
    let before = option.split('=').next().unwrap_or(option).trim();
    check_option(context, object, path, before, &SYNC_OPTIONS, once);
}

fn check_option(
    context: &Context<'_>,
    object: &Object,
    path: &FieldPath,
    word: &str,
    known: &[&'static str],
    once: &mut Once,
) {
    if word.is_empty() || known.contains(&word) || placeholders::is_in(word) {
        return;
    }
    let same = known.iter().copied().find(|it| it.eq_ignore_ascii_case(word));
    // What is like none of the words may be of a later version; those for hooks have been the same for years.
    let is_closed = known.contains(&"HookSucceeded");
    let meant = same.or_else(|| similar_names::nearest_slip(word, known.iter().copied()));
    if meant.is_none() && !is_closed {
        return;
    }
    let diagnostic = RULE
        .diagnostic(format!("{} has an option {word:?}, which Argo CD does not know", object.title()))
        .at(context.survey.span(object, path), "passed over without a word")
        .because("nobody validates these words: what the option was for does not happen")
        .help(format!("write {}", meant.map_or_else(|| known.join(" or "), str::to_owned)));
    let finding = RULE.finding(context, object, diagnostic).likely();
    once.add(
        word,
        match meant {
            Some(meant) => finding.with_spelling(word, meant),
            None => finding,
        },
    );
}
