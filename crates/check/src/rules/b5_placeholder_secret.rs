//! # Self-heal keeps a placeholder in a Secret
//!
//! A Secret in Git holds a text that somebody was to replace, such as `CHANGE_ME`, and a pod reads it. Who
//! puts the real value into the cluster finds it gone a moment later: self-heal writes the text from Git
//! back.
//!
//! People see: `password authentication failed`, `401 Unauthorized`, a Secret that was right yesterday.
//!
//! ## Bad
//! ```yaml
//! kind: Secret
//! stringData: {password: CHANGE_ME}
//! ```
//! ## Good
//! The Secret is made by a SealedSecret, an ExternalSecret or SOPS; or it is not in Git, or its data is among
//! the `ignoreDifferences` of the Application, with `RespectIgnoreDifferences=true`.
//!
//! ## When to suppress
//! Where the text is the real value.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster, dedup::Once, field_paths::keys, pod_references, sync_options::ignored_differences,
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-placeholder-secret",
    incident: "B5",
    severity: Severity::Warning,
    title: "self-heal keeps a placeholder in a Secret",
    page: page!("b5_placeholder_secret.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for secret in cluster.objects.iter().filter(|it| it.key.kind == "Secret" && it.key.group.is_empty()) {
            let Some((field, text)) = placeholder(secret) else { continue };
            let is_kept = || is_written_here(context, secret, &field, text) && is_kept(context, secret);
            if let Some(reader) = reader(cluster, secret).filter(|_| is_kept()) {
                add(context, (secret, &field, text), reader, &mut once);
            }
        }
    }
    once.report(report);
}

/// The first text of a Secret that waits for another one.
fn placeholder(secret: &Object) -> Option<(FieldPath, &str)> {
    let texts = secret.value().get("stringData").and_then(Value::as_object)?;
    let mut all =
        texts.iter().filter_map(|(key, text)| Some((keys(&["stringData"]).key(key), text.as_str()?)));
    all.find(|(_, text)| waits(text))
}

/// Whether a text says that another one belongs in its place.
fn waits(text: &str) -> bool {
    const EXACT: [&str; 9] = [
        "changeme",
        "replaceme",
        "placeholder",
        "todo",
        "tbd",
        "fixme",
        "redacted",
        "changethis",
        "replacethis",
    ];
    const BEGINNINGS: [&str; 6] = ["change-me", "replace-me", "replace-with", "your-", "insert-", "to-be-"];
    let small = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
    // What Argo CD's plugin for Vault fills in.
    let is_bracketed =
        small.starts_with('<') && small.ends_with('>') && !small.contains(':') && small.len() > 2;
    EXACT.contains(&small.replace('-', "").as_str())
        || BEGINNINGS.iter().any(|start| small.starts_with(start)) && !small.contains("://")
        || is_bracketed
}

/// The workload that reads a Secret.
fn reader<'a>(cluster: &Cluster<'a>, secret: &Object) -> Option<&'a Object> {
    let reads = |pod: &&crate::support::pods::Pod<'a>| {
        let mut all = pod_references::of_pod(pod).into_iter();
        pod.object.key.namespace == secret.key.namespace
            && all.any(|it| it.kind == "Secret" && it.name == secret.key.name)
    };
    cluster.pods.iter().find(reads).map(|pod| pod.object)
}

/// Whether a text stands in a file of the repository, and is not the default of a chart from elsewhere.
fn is_written_here(context: &Context<'_>, secret: &Object, field: &FieldPath, text: &str) -> bool {
    let span = context.survey.value_span(secret, field);
    let file = context.survey.files.text(&span.file);
    let line = file.as_ref().and_then(|file| file.lines().nth(span.start.line.max(1) as usize - 1));
    line.is_some_and(|line| line.contains(text))
}

/// Whether the engine takes every other value back.
fn is_kept(context: &Context<'_>, secret: &Object) -> bool {
    const OF_TOOLS: [&str; 4] = ["avp.kubernetes.io", "sops", "vault", "replicat"];
    let Some(app) = context.survey.app_of(secret) else { return false };
    let heals = app.application.automated_policy().is_some_and(|it| it.self_heal == Some(true));
    let annotations = secret.value()["metadata"]["annotations"].to_string();
    let is_filled_in = OF_TOOLS.iter().any(|tool| annotations.contains(tool));
    let sources = app.application.spec.effective_sources();
    heals
        && !is_filled_in
        && sources.iter().all(|source| source.plugin.is_none())
        && ignored_differences(context, app, secret).is_empty()
        && context.analyses().edges.products(secret, &secret.key).is_empty()
        && secret.value().annotation("argocd.argoproj.io/compare-options").is_none()
        && !unrendered_files::is_under_unused_chart(context.survey, secret)
}

fn add(
    context: &Context<'_>,
    (secret, field, text): (&Object, &FieldPath, &str),
    reader: &Object,
    once: &mut Once,
) {
    let survey = context.survey;
    let diagnostic = RULE
        .diagnostic(format!("{} is kept at the placeholder {text:?}", secret.title()))
        .at(survey.value_span(secret, field), "waits for another text")
        .see(survey.start(reader), format!("{} reads it", reader.title()))
        .because("self-heal takes back whatever somebody writes into the Secret in the cluster")
        .help("have it made by a SealedSecret or ExternalSecret, or ignore its data in `ignoreDifferences`");
    once.add(&secret.key.name, RULE.finding(context, secret, diagnostic).likely());
}

#[cfg(test)]
mod tests {
    use super::waits;

    #[test]
    fn texts_that_wait_are_known() {
        for text in ["CHANGE_ME", "changeme", "<your password>", "replace-me-later", "YOUR_TOKEN", "todo"] {
            assert!(waits(text), "{text}");
        }
        for text in ["s3cret", "postgres", "<path:kv/data#key>", "your", "https://your-host/x", "a<b>c"] {
            assert!(!waits(text), "{text}");
        }
    }
}
