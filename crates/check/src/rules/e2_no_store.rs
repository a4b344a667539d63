//! # A store or issuer that nothing makes
//!
//! An ExternalSecret reads from a store, a Certificate is signed by an issuer, both by name and kind. A name
//! that nothing makes, where others of the kind are in Git, leaves the Secret unmade, and every pod that
//! needs it waits.
//!
//! People see: `could not get provider client: ClusterSecretStore "vault" not found`, `Referenced
//! "ClusterIssuer" not found: clusterissuer.cert-manager.io "letsencrypt" not found`, a Certificate that is
//! never Ready.
//!
//! ## Bad
//! ```yaml
//! issuerRef: {kind: ClusterIssuer, name: letsencrypt}      # the issuer is called letsencrypt-prod
//! ```
//! ## Good
//! ```yaml
//! issuerRef: {kind: ClusterIssuer, name: letsencrypt-prod}
//! ```
//! ## When to suppress
//! Where the store or issuer is made outside of the repository.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    App, Object, Owner, Survey,
    edges::{EdgeKind, Target},
};
use tiphys_value::{FieldPath, ResourceKey};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, placeholders, unrendered_files, word_replacement},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-store",
    incident: "E2",
    severity: Severity::Warning,
    title: "an ExternalSecret or Certificate names a store or issuer that nothing makes",
    page: page!("e2_no_store.rs"),
    check,
};

const GROUPS: [&str; 2] = ["external-secrets.io", "cert-manager.io"];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    let is_reach_known = unrendered_files::is_reach_known(survey);
    for object in &survey.objects {
        for edge in context.analyses().edges.from(object.id) {
            let (EdgeKind::Needs, Target::Named(key)) = (edge.kind, &edge.to) else { continue };
            if unrendered_files::is_from_unused_chart(survey, object)
                || !GROUPS.contains(&key.group.as_str())
                || placeholders::is_in(&key.name)
                || is_hidden(context, object, key)
            {
                continue;
            }
            let Some(mut finding) = check_reference(context, object, key, &edge.field) else { continue };
            // What no Application reaches waits for nothing.
            if matches!(object.owner, Owner::Unit(_)) && is_reach_known {
                finding.diagnostic.severity = Severity::Info;
            }
            once.add_by(format!("{} {} {}", key.kind, key.namespace, key.name), finding);
        }
    }
    once.report(report);
}

/// Whether something that was not seen may bring what is needed.
fn is_hidden(context: &Context<'_>, object: &Object, key: &ResourceKey) -> bool {
    let mut clusters = context.clusters().iter();
    let own = clusters.find(|cluster| cluster.objects.iter().any(|it| it.id == object.id));
    !key.namespace.is_empty() && own.is_some_and(|cluster| cluster.is_partly_hidden(&key.namespace))
}

/// Whether a chart out of reach is released under a name: its resources are called so, as often as not.
fn is_of_a_chart(survey: &Survey, name: &str) -> bool {
    let is_release = |it: &Object| it.key.kind == "HelmRelease" && it.key.name == name;
    let is_chart = |app: &App| {
        let sources = app.application.spec.effective_sources();
        !app.is_rendered() && sources.iter().any(|source| source.chart == name || app.name() == name)
    };
    survey.objects.iter().any(is_release) || survey.apps.iter().any(is_chart)
}

/// Whether a file that is no object by itself holds what is needed, as the values that a kustomization hands
/// to a chart do.
fn is_in_a_text(survey: &Survey, key: &ResourceKey) -> bool {
    const NEAR: usize = 8;
    let (kind, name) = (format!("kind: {}", key.kind), format!("name: {}", key.name));
    // A reference has a kind and a name, too, but no metadata between them.
    let holds = |text: &str| {
        if !text.contains(&name) || !text.contains(&kind) {
            return false;
        }
        let lines: Vec<&str> = text.lines().map(|line| line.trim().trim_start_matches("- ")).collect();
        let kinds = lines.iter().enumerate().filter(|(_, line)| **line == kind);
        kinds.into_iter().any(|(at, _)| {
            let near = lines.iter().skip(at).take(NEAR);
            near.skip_while(|line| **line != "metadata:").any(|line| **line == name)
        })
    };
    let is_object = |path: &str| survey.objects.iter().any(|it| it.rendered.location.file.as_ref() == path);
    let mut files = survey.files.ending(&[".yaml", ".yml"]);
    files.any(|path| survey.files.text(path).is_some_and(|text| holds(&text)) && !is_object(path))
}

fn check_reference(
    context: &Context<'_>,
    object: &Object,
    key: &ResourceKey,
    field: &FieldPath,
) -> Option<Finding> {
    let survey = context.survey;
    let is_loose = matches!(object.owner, Owner::Unit(_));
    let of = |kind: &str| -> Vec<&Object> {
        survey.objects.iter().filter(|it| it.key.group == key.group && it.key.kind == kind).collect()
    };
    let same = of(&key.kind);
    // What is in the repository but not applied may be applied by hand; from another namespace none is taken.
    let is_open = |namespace: &str| namespace.is_empty() || placeholders::is_in(namespace);
    let may_be_there = |it: &&Object| {
        let (namespace, wanted) = (it.key.namespace.as_str(), key.namespace.as_str());
        let is_here = namespace == wanted || is_open(namespace) || is_open(wanted);
        placeholders::is_in(&it.key.name)
            || it.key.name == key.name && is_here && (is_loose || matches!(it.owner, Owner::Unit(_)))
    };
    // The charts beside cert-manager bring issuers of their own.
    let is_of_a_chart = key.group == "cert-manager.io" && is_of_a_chart(survey, &key.name);
    if same.iter().any(may_be_there) || is_of_a_chart || is_in_a_text(survey, key) {
        return None;
    }
    let other_kind = match key.kind.strip_prefix("Cluster") {
        Some(kind) => kind.to_owned(),
        None => format!("Cluster{}", key.kind),
    };
    let twin = of(&other_kind).into_iter().find(|it| it.key.name == key.name);
    let here: Vec<&Object> = same.into_iter().filter(|it| is_loose || it.lives_with(object)).collect();
    let near = twin.or_else(|| here.first().copied())?;
    let mut diagnostic = RULE
        .diagnostic(format!("{} needs {}/{}, which nothing makes", object.title(), key.kind, key.name))
        .at(survey.span(object, field), "named here")
        .see(survey.start(near), format!("there is {}", near.title()))
        .because("its controller waits for it, and whatever needs the Secret waits too");
    if twin.is_some() {
        diagnostic = diagnostic.help(format!("say `kind: {other_kind}`"));
        let finding = RULE.finding(context, object, diagnostic).likely();
        let kind = field.parent().unwrap_or_default().key("kind");
        return Some(word_replacement::with_replacement(
            survey,
            object,
            &kind,
            (&key.kind, &other_kind),
            finding,
        ));
    }
    let nearest = similar_names::nearest_slip(&key.name, here.iter().map(|it| it.key.name.as_str()));
    Some(RULE.finding(context, object, diagnostic).likely().perhaps(&key.name, nearest))
}
