//! # A sealed Secret is given another name or namespace than it was sealed for
//!
//! `kubeseal` encrypts a Secret for one name and one namespace, unless it is told otherwise. A kustomization
//! with `namePrefix`, `nameSuffix` or `namespace` renames the SealedSecret like everything else, and the
//! controller can no longer decrypt it: the Secret is never made, and what needs it waits.
//!
//! People see: `no key could decrypt secret (password)`, a SealedSecret that is not Synced,
//! `secret "prod-db" not found`, `CreateContainerConfigError`.
//!
//! ## Bad
//! ```yaml
//! namePrefix: prod-
//! resources: [sealed-db.yaml]            # kind: SealedSecret, called db
//! ```
//! ## Good
//! ```yaml
//! metadata:
//!   name: db
//!   annotations: {sealedsecrets.bitnami.com/cluster-wide: "true"}      # sealed with --scope cluster-wide
//! ```
//! Or keep the name: sealed for `prod-db`, in the folder that has the prefix.
//!
//! ## When to suppress
//! Where it was sealed for the name that it ends up with, though the file says another.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-sealed-name",
    incident: "E2",
    severity: Severity::Warning,
    title: "a sealed Secret with another name or namespace than it was sealed for",
    page: page!("e2_sealed_name.rs"),
    check,
};

const SCOPES: [&str; 2] =
    ["sealedsecrets.bitnami.com/cluster-wide", "sealedsecrets.bitnami.com/namespace-wide"];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    let sealed = survey
        .objects
        .iter()
        .filter(|it| it.key.group == "bitnami.com" && it.key.kind == "SealedSecret")
        .filter(|it| !unrendered_files::may_be_a_patch(survey, it));
    for object in sealed {
        let Some(written) = written_at(context, object) else { continue };
        for (field, was, is, scopes) in [
            ("name", written.name, object.value().str_at(&["metadata", "name"]), &SCOPES[..]),
            ("namespace", written.namespace, object.value().str_at(&["metadata", "namespace"]), &SCOPES[..1]),
        ] {
            let (Some(was), Some(is)) = (was, is) else { continue };
            if was == is || placeholders::is_in(&was) || placeholders::is_in(is) || has_scope(object, scopes)
            {
                continue;
            }
            // The template keeps the name that it was sealed for.
            let sealed_for = object.value().str_at(&["spec", "template", "metadata", field]);
            if sealed_for.is_some_and(|sealed_for| sealed_for == is) {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!(
                    "{} was sealed for {field} {was}, and is rendered with {field} {is}",
                    object.title()
                ))
                .at(survey.span(object, &keys(&["metadata", field])), format!("becomes {is}"))
                .because(
                    "name and namespace are a part of what is encrypted: the controller cannot decrypt it",
                )
                .help("seal it for the name and namespace that it ends up with")
                .help("or seal it with --scope namespace-wide or cluster-wide, and keep the annotation");
            once.add(field, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// Whether it says that it may have another name, or live elsewhere.
fn has_scope(object: &Object, scopes: &[&str]) -> bool {
    scopes.iter().copied().any(|scope| {
        let of_template = object.value().str_at(&["spec", "template", "metadata", "annotations", scope]);
        [object.value().annotation(scope), of_template].contains(&Some("true"))
    })
}

/// Name and namespace as the file has them.
struct Written {
    name: Option<String>,
    namespace: Option<String>,
}

/// What the manifest of an object says before anything renames it; `None` where no file of the repository
/// has it as a manifest.
fn written_at(context: &Context<'_>, object: &Object) -> Option<Written> {
    let location = &object.rendered.location;
    let text = context.survey.files.text(&location.file)?;
    let own = text.lines().skip((location.line as usize).saturating_sub(1)).collect::<Vec<_>>();
    let first = own.iter().position(|line| !line.trim().is_empty() && *line != "---")?;
    let own = own[first..].iter().take_while(|line| **line != "---");
    let mut metadata = own.skip_while(|line| line.trim_end() != "metadata:").skip(1).peekable();
    let indent = indent_of(metadata.peek()?);
    let mut written = Written { name: None, namespace: None };
    for line in metadata.take_while(|line| line.trim().is_empty() || indent_of(line) > 0) {
        if indent_of(line) != indent {
            continue;
        }
        let plain =
            |text: &str| text.split(" #").next().unwrap_or(text).trim().trim_matches(['"', '\'']).to_owned();
        match line.trim().split_once(':') {
            Some(("name", name)) => written.name = Some(plain(name)).filter(|it| !it.is_empty()),
            Some(("namespace", name)) => written.namespace = Some(plain(name)).filter(|it| !it.is_empty()),
            _ => {}
        }
    }
    Some(written)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
