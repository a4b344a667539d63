//! # A template asks for a key that is not fetched
//!
//! The template of an ExternalSecret knows the keys that its `data` fetches, and no others. One that asks for
//! another name is not filled in, and the Secret is neither made nor changed.
//!
//! People see: `could not apply template: … map has no entry for key "user"`, `SecretSyncedError`.
//!
//! ## Bad
//! ```yaml
//! data: [{secretKey: password, remoteRef: {key: db}}]
//! target: {template: {data: {URL: "pg://{{ .user }}:{{ .password }}@db"}}}
//! ```
//! ## Good
//! ```yaml
//! data:
//! - {secretKey: password, remoteRef: {key: db, property: password}}
//! - {secretKey: user, remoteRef: {key: db, property: user}}
//! target: {template: {data: {URL: "pg://{{ .user }}:{{ .password }}@db"}}}
//! ```
//! ## When to suppress
//! Where something else completes the ExternalSecret.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-template-key",
    incident: "C2",
    severity: Severity::Warning,
    title: "a template asks for a key that is not fetched",
    page: page!("c2_template_key.rs"),
    check,
};

/// What stands between the braces of a template.
static ACTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?s)\{\{-?(.*?)-?\}\}").expect("the pattern is well formed"));
/// Texts between backticks.
static RAW: LazyLock<Regex> = LazyLock::new(|| Regex::new("`[^`]*`").expect("the pattern is well formed"));
/// Texts within an action.
static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*""#).expect("the pattern is well formed"));
/// A name that an action asks for.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s(|])\.([A-Za-z_][A-Za-z0-9_]*)").expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let of_kind = context.survey.objects.iter().filter(|it| it.key.kind == "ExternalSecret");
    for object in of_kind.filter(|it| it.key.group == "external-secrets.io") {
        let file = object.rendered.location.file.as_ref();
        if placeholders::is_skeleton(file) || unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        check_templates(context, object, &mut once);
    }
    once.report(report);
}

fn check_templates(context: &Context<'_>, object: &Object, once: &mut Once) {
    let spec = &object.value()["spec"];
    let fetched: BTreeSet<&str> = list(spec, "data").iter().map(|it| text(it, "secretKey")).collect();
    let template = &spec["target"]["template"];
    let is_old = text(template, "engineVersion") == "v1";
    // What `dataFrom` fetches is called as the store has it.
    if fetched.is_empty()
        || !list(spec, "dataFrom").is_empty()
        || is_old
        || fetched.iter().any(|it| it.contains('$'))
    {
        return;
    }
    let texts = template.at(&["data"]).and_then(Value::as_object);
    for (key, value) in texts.into_iter().flatten() {
        let Some(lacking) = value.as_str().and_then(|text| lacking(text, &fetched)) else { continue };
        let path = keys(&["spec", "target", "template", "data", key]);
        let diagnostic = RULE
            .diagnostic(format!("the template {key} of {} asks for {lacking}, which data does not fetch", object.title()))
            .at(context.survey.span(object, &path), "in this template")
            .because("the operator fills in what data fetches; a name that it does not know is an error, and the Secret is not made");
        let meant = similar_names::nearest_slip(&lacking, fetched.iter().copied());
        once.add(&lacking, RULE.finding(context, object, diagnostic).likely().perhaps(&lacking, meant));
    }
}

/// The first name that a template asks for and that is not there. Within blocks a dot means something else.
fn lacking(text: &str, fetched: &BTreeSet<&str>) -> Option<String> {
    const BLOCKS: [&str; 7] = ["range", "with", "define", "block", "template", "index", "if"];
    // What stands between backticks is a text, also where it looks like an action.
    let text = RAW.replace_all(text, "\"\"");
    let actions: Vec<_> =
        ACTION.captures_iter(&text).map(|it| QUOTED.replace_all(&it[1], "\"\"").into_owned()).collect();
    let has_block = |action: &String| action.split_whitespace().any(|word| BLOCKS.contains(&word));
    if actions.iter().any(has_block) {
        return None;
    }
    let names = actions.iter().flat_map(|action| NAME.captures_iter(action).map(|it| it[1].to_owned()));
    let mut names = names.filter(|name| !fetched.contains(name.as_str()));
    names.next()
}

#[cfg(test)]
mod tests {
    use super::lacking;

    #[test]
    fn names_are_those_that_an_action_asks_for() {
        let of = |text: &str| lacking(text, &["a", "b"].into());
        assert_eq!(of("{{ .a }}:{{ .c }}"), Some("c".to_owned()));
        assert_eq!(of("{{ .a | b64enc }} {{ printf \"%s .x\" .b }}"), None);
        assert_eq!(of("{{ `{{ .x }}` }}"), None);
        assert_eq!(of("{{ range .x }}{{ .y }}{{ end }}"), None);
    }
}
