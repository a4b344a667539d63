//! # A value that is random at every rendering
//!
//! A template makes a password, key or certificate by chance. Helm keeps it through `lookup`; an engine that
//! renders without the cluster gets another one each time, so that the Application is OutOfSync after every
//! rendering, and a sync replaces the secret under the pods that use the old one.
//!
//! People see: an Application that is never Synced for long, `password authentication failed` after a sync,
//! `x509: certificate signed by unknown authority` of a webhook.
//!
//! ## Bad
//! ```yaml
//! data: {password: {{ randAlphaNum 16 | b64enc }}}
//! ```
//! ## Good
//! The value comes from an ExternalSecret, a SealedSecret or a Secret that is made once, by hand.
//!
//! ## When to suppress
//! Where `ignoreDifferences` leave the field out in a way that is not seen here.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, OriginKind, Value};

use crate::{Context, Report, Rule, support::dedup::Once};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-random-values",
    incident: "B5",
    severity: Severity::Warning,
    title: "a value that is random at every rendering",
    page: page!("b5_random_values.rs"),
    check,
};

const RANDOM: [&str; 13] = [
    "randAlphaNum",
    "randAlpha",
    "randNumeric",
    "randAscii",
    "randBytes",
    "randInt",
    "uuidv4",
    "genPrivateKey",
    "genCA",
    "genSelfSignedCert",
    "genSignedCert",
    "htpasswd",
    "bcrypt",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|it| it.hooks.is_empty()) {
        let Some(app) = context.survey.app_of(object) else { continue };
        if !app.application.spec.ignore_differences.is_empty() || app.application.automated_policy().is_none()
        {
            continue;
        }
        let Some((field, function)) = random(context, object) else { continue };
        let diagnostic = RULE
            .diagnostic(format!("{} of {} is another one at every rendering", field, object.title()))
            .at(context.survey.span(object, &field), format!("made by {function}"))
            .because("the engine renders without the cluster, so that there is no earlier value to keep: each rendering differs from what is there")
            .help("let an ExternalSecret or SealedSecret hold the value, or give it as a value of the chart");
        once.add(function, RULE.finding(context, object, diagnostic).likely());
    }
    once.report(report);
}

/// A field whose text comes from a line of a template that draws a number by chance.
fn random(context: &Context<'_>, object: &Object) -> Option<(FieldPath, &'static str)> {
    for (field, chain) in object.rendered.origins.all() {
        let is_text = field.get(object.value()).is_some_and(Value::is_string);
        let Some(origin) = chain.iter().find(|it| it.kind == OriginKind::Template).filter(|_| is_text) else {
            continue;
        };
        if !object.read.contains(&origin.location.file) || origin.location.line == 0 {
            continue;
        }
        let Some(text) = context.survey.files.text(&origin.location.file) else { continue };
        let line = text.lines().nth(origin.location.line as usize - 1).unwrap_or_default();
        if line.contains("lookup") || !line.contains("{{") {
            continue;
        }
        // A value that is given takes the place of the default.
        let is_default = line.contains("default") || line.contains(".Values");
        let is_given =
            is_default && chain.iter().any(|it| it.kind == OriginKind::Values && it.location.line > 0);
        if let Some(function) = RANDOM.iter().find(|it| line.contains(**it) && !is_given) {
            return Some((field, function));
        }
    }
    None
}
