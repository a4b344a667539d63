//! # An object of Flux asks for a Secret or ConfigMap that lives in another namespace
//!
//! `postBuild.substituteFrom`, `valuesFrom` and `secretRef` have no namespace: Flux looks in that of the object
//! that names them. What the workloads of an application have in their own namespace is not there for the
//! Kustomization, which lives in `flux-system`.
//!
//! People see: `secrets "cluster-vars" not found`, a Kustomization that never becomes Ready.
//!
//! The rule speaks where the repository makes an object of this name in exactly one other namespace, and
//! nothing copies it.
//!
//! ## Bad
//! ```yaml
//! kind: Kustomization
//! metadata: {name: monitoring, namespace: flux-system}
//! spec: {postBuild: {substituteFrom: [{kind: Secret, name: db-password}]}}   # made in namespace monitoring
//! ```
//! ## Good
//! An ExternalSecret `db-password` in namespace flux-system.
//!
//! ## When to suppress
//! Where it is made in this namespace by hand, too.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        made_secrets::{COPIERS, made_secret},
        placeholders,
        pods::{list, text},
        scripted_objects::{is_scripted, is_spoken_of},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-flux-namespace",
    incident: "E2",
    severity: Severity::Warning,
    title: "an object of Flux asks for what lives in another namespace",
    page: page!("e2_flux_namespace.rs"),
    check,
};

/// A Secret or ConfigMap that an object of Flux names.
struct Named<'a> {
    kind: &'a str,
    name: &'a str,
    field: FieldPath,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey.flux.as_deref().unwrap_or(context.survey);
    let mut once = Once::default();
    let is_of_flux =
        |it: &&Object| it.key.group.ends_with("toolkit.fluxcd.io") && !it.key.namespace.is_empty();
    for object in survey.objects.iter().filter(is_of_flux) {
        if unrendered_files::may_be_a_patch(survey, object) || placeholders::is_in(&object.key.namespace) {
            continue;
        }
        for named in names(object) {
            let mut makers: Vec<&Object> = survey.objects.iter().filter(|it| makes(it, &named)).collect();
            makers.dedup_by(|one, other| one.key.namespace == other.key.namespace);
            let is_here = |it: &&Object| {
                it.key.namespace == object.key.namespace
                    || it.key.namespace.is_empty()
                    || placeholders::is_in(&it.key.namespace)
            };
            let text_of = |it: &Object| it.value()["metadata"].to_string() + &it.value()["spec"].to_string();
            let is_copied = |it: &&Object| COPIERS.iter().any(|word| text_of(it).contains(word));
            let [maker] = makers[..] else { continue };
            // A script may make the one that is asked for.
            if is_here(&maker) || is_copied(&maker) || is_by_hand(context, named.name) {
                continue;
            }
            let (own, other) = (&object.key.namespace, &maker.key.namespace);
            let what = format!(
                "{} asks for {}/{} in {own}, and there is only one in {other}",
                object.title(),
                named.kind,
                named.name
            );
            let diagnostic = RULE
                .diagnostic(what.clone())
                .at(survey.span(object, &named.field), format!("looked for in {own}"))
                .see(survey.start(maker), format!("this one is in {other}"))
                .because("Flux takes what has no namespace from that of the object which names it")
                .help(format!("make it in {own}, too"));
            once.add(&what, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// Whether a script, a job or Terraform speaks of a name, and may make what is called so.
fn is_by_hand(context: &Context<'_>, name: &str) -> bool {
    is_spoken_of(context, name) || is_scripted(context, name)
}

/// Whether an object is, or makes, what is named.
fn makes(object: &Object, named: &Named<'_>) -> bool {
    let is_it = object.key.kind == named.kind && object.key.name == named.name;
    is_it || named.kind == "Secret" && made_secret(object.value()) == Some(named.name)
}

/// The Secrets and ConfigMaps that an object of Flux cannot do without.
fn names(object: &Object) -> Vec<Named<'_>> {
    let spec = &object.value()["spec"];
    let mut found = Vec::new();
    let lists = [
        (keys(&["spec", "postBuild", "substituteFrom"]), list(&spec["postBuild"], "substituteFrom")),
        (keys(&["spec", "valuesFrom"]), list(spec, "valuesFrom")),
    ];
    for (field, entries) in lists {
        let is_needed = |(_, entry): &(usize, &Value)| entry.get("optional") != Some(&Value::Bool(true));
        for (at, entry) in entries.iter().enumerate().filter(is_needed) {
            found.push(Named {
                kind: text(entry, "kind"),
                name: text(entry, "name"),
                field: field.index(at).key("name"),
            });
        }
    }
    for key in ["secretRef", "certSecretRef", "proxySecretRef"] {
        if let Some(reference) = spec.get(key) {
            let field = keys(&["spec", key, "name"]);
            found.push(Named { kind: "Secret", name: text(reference, "name"), field });
        }
    }
    found.retain(|it| !it.name.is_empty() && !placeholders::is_in(it.name));
    found
}
