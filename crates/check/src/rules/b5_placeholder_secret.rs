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

use tiphys_diag::{Severity, Span};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        chart_uses::Release, cluster::Cluster, dedup::Once, field_paths::keys, pod_references,
        sync_options::ignored_differences, unrendered_files, value_steps::each_text,
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
            let is_kept = || is_written_here(context, secret, &field, &text) && is_kept(context, secret);
            let reader = reader(cluster, secret)
                .map(|it| (context.survey.start(it), it.title()))
                .or_else(|| chart_that_reads(context, cluster, secret));
            if let Some((place, who)) = reader.filter(|_| is_kept()) {
                add(context, (secret, &field, &text), (place, &who), &mut once);
            }
        }
    }
    once.report(report);
}

/// The first text of a Secret that waits for another one.
fn placeholder(secret: &Object) -> Option<(FieldPath, String)> {
    let texts = |field: &'static str| {
        let map = secret.value().get(field).and_then(Value::as_object).into_iter().flatten();
        map.filter_map(move |(key, text)| Some((keys(&[field]).key(key), text.as_str()?)))
    };
    let plain = texts("stringData").map(|(place, text)| (place, text.to_owned()));
    let encoded = texts("data").filter_map(|(place, text)| {
        let decoded = tiphys_gocompat::base64::decode(text.trim()).ok()?;
        Some((place, String::from_utf8(decoded).ok()?))
    });
    plain.chain(encoded).find(|(_, text)| waits(text))
}

/// The chart whose values name a Secret in its namespace: its pods read it.
fn chart_that_reads(context: &Context<'_>, cluster: &Cluster<'_>, secret: &Object) -> Option<(Span, String)> {
    let name = secret.key.name.as_str();
    let used = context.chart_uses().iter().find(|used| {
        let is_here = |it: &Release| it.scope == *cluster.scope() && it.namespace == secret.key.namespace;
        used.release.as_ref().is_some_and(is_here) && used.values.iter().any(|values| has_text(values, name))
    })?;
    Some((used.span.clone(), format!("chart {}", used.chart)))
}

/// Whether a value is a text, or holds one.
fn has_text(value: &Value, wanted: &str) -> bool {
    let mut is_found = false;
    each_text(value, &mut Vec::new(), &|_| true, &mut |_, text| is_found |= text == wanted);
    is_found
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
    let written = field.get(secret.value()).and_then(Value::as_str).unwrap_or(text);
    line.is_some_and(|line| line.contains(text) || line.contains(written.trim()))
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
    (place, who): (Span, &str),
    once: &mut Once,
) {
    let survey = context.survey;
    let diagnostic = RULE
        .diagnostic(format!("{} is kept at the placeholder {text:?}", secret.title()))
        .at(survey.value_span(secret, field), "waits for another text")
        .see(place, format!("{who} reads it"))
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
