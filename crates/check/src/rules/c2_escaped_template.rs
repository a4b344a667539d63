//! # A template that comes out as a template
//!
//! In a chart of Helm, a template for another controller has to be hidden from Helm:
//! `` {{ `{{ .password }}` }} `` leaves `{{ .password }}`. In a manifest that no chart renders, nothing takes
//! the outer pair away. External Secrets does then what Helm would have done, and the Secret holds the inner
//! template as a text.
//!
//! It is told only where every hidden name is one that the ExternalSecret itself fetches: a text that a
//! program fills in later, such as a notification, hides other names, and is meant to.
//!
//! People see: nothing, but for logins with the password `{{ .password }}`; `ErrImagePull` with a pull Secret
//! for the registry `{{ .registry }}`.
//!
//! ## Bad
//! ```yaml
//! # in no chart
//! spec:
//!   target: {template: {data: {password: '{{ `{{ .password }}` }}'}}}
//!   data: [{secretKey: password, remoteRef: {key: db}}]
//! ```
//! ## Good
//! ```yaml
//! spec:
//!   target: {template: {data: {password: '{{ .password }}'}}}
//!   data: [{secretKey: password, remoteRef: {key: db}}]
//! ```
//! ## When to suppress
//! Where a tool that the repository does not show renders the manifest as a template of Helm.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-escaped-template",
    incident: "C2",
    severity: Severity::Warning,
    title: "a template of an ExternalSecret that comes out as a template",
    page: page!("c2_escaped_template.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        // A template of a chart that nothing renders is not what is applied.
        if object.key.kind != "ExternalSecret"
            || unrendered_files::is_under_unused_chart(context.survey, object)
        {
            continue;
        }
        let fetched: BTreeSet<&str> =
            list(&object.value()["spec"], "data").iter().map(|it| text(it, "secretKey")).collect();
        let path = keys(&["spec", "target", "template", "data"]);
        let texts = path.get(object.value()).and_then(Value::as_object);
        for (key, template) in texts.into_iter().flatten().filter_map(|(key, it)| Some((key, it.as_str()?))) {
            let hidden = hidden_names(template);
            let Some(first) = hidden.iter().next() else { continue };
            let asks = |name: &&str| template.contains(&format!("{{{{ .{name} ")) && !hidden.contains(*name);
            if !hidden.iter().all(|name| fetched.contains(name)) || fetched.iter().any(asks) {
                continue;
            }
            once.add(key, finding(context, object, key, first));
        }
    }
    once.report(report);
}

fn finding(context: &Context<'_>, object: &Object, key: &str, name: &str) -> crate::Finding {
    let diagnostic = RULE
        .diagnostic(format!("{key} of {} holds the text `{{{{ .{name} }}}}`, not the value", object.title()))
        .at(
            context.survey.span(object, &keys(&["spec", "target", "template", "data", key])),
            "the inner template is a text here",
        )
        .because("no chart renders this manifest: External Secrets takes the outer pair away, and leaves the inner one")
        .help(format!("write `{{{{ .{name} }}}}` alone"));
    RULE.finding(context, object, diagnostic).likely()
}

/// The names that are asked for by templates within texts of a template: `` {{ `{{ .name }}` }} ``.
fn hidden_names(template: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for (at, _) in template.match_indices("{{") {
        let after = template[at + 2..].trim_start_matches('-').trim_start();
        let Some(inner) = after.strip_prefix('`').and_then(|rest| rest.split_once('`')) else { continue };
        let names = inner.0.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '{' | '}' | '|'));
        found.extend(names.filter_map(|word| word.strip_prefix('.')).filter(|name| !name.is_empty()));
    }
    found
}
