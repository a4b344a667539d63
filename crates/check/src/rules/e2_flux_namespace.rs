//! # An object of Flux asks for a Secret or ConfigMap that lives in another namespace
//!
//! `postBuild.substituteFrom`, `valuesFrom` and `secretRef` have no namespace: Flux looks in that of the
//! object that names them. What the workloads of an application have in their own namespace is not there for
//! the Kustomization, which lives in `flux-system`.
//!
//! People see: `secrets "cluster-vars" not found`, a Kustomization that never becomes Ready.
//!
//! So it is with a source that a HelmRelease names without its namespace, where the Kustomization moves the
//! release to `targetNamespace`.
//!
//! The rule speaks where the repository makes an object of this name in exactly one other namespace, and
//! nothing copies it; and where nothing makes one, but something beside it of nearly that name, which nothing
//! asks for.
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

use std::{cell::LazyCell, collections::HashSet};

use tiphys_diag::{Diagnostic, Severity, similar_names};
use tiphys_graph::{Object, Survey};
use tiphys_value::{FieldPath, Location, ObjectExt, Value};
use tiphys_vfs::parent;

use crate::{
    Context, Finding, Report, Rule,
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

impl Named<'_> {
    /// Whether it is a source of Flux's.
    fn is_source(&self) -> bool {
        !matches!(self.kind, "Secret" | "ConfigMap")
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey.flux.as_deref().unwrap_or(context.survey);
    let mut once = Once::default();
    let is_of_flux =
        |it: &&Object| it.key.group.ends_with("toolkit.fluxcd.io") && !it.key.namespace.is_empty();
    let wanted: LazyCell<HashSet<&str>, _> =
        LazyCell::new(|| survey.objects.iter().flat_map(names).map(|it| it.name).collect());
    let stated = stated_namespaces(context.survey);
    for object in survey.objects.iter().filter(is_of_flux) {
        if unrendered_files::may_be_a_patch(survey, object) || placeholders::is_in(&object.key.namespace) {
            continue;
        }
        let is_moved = !stated.contains(&object.rendered.location);
        let sources = source(object).filter(|_| is_moved);
        for named in names(object).into_iter().chain(sources) {
            let mut makers: Vec<&Object> = survey.objects.iter().filter(|it| makes(it, &named)).collect();
            makers.dedup_by(|one, other| one.key.namespace == other.key.namespace);
            let is_here = |it: &&Object| {
                it.key.namespace == object.key.namespace
                    || it.key.namespace.is_empty()
                    || placeholders::is_in(&it.key.namespace)
            };
            let text_of = |it: &Object| it.value()["metadata"].to_string() + &it.value()["spec"].to_string();
            let is_copied = |it: &&Object| COPIERS.iter().any(|word| text_of(it).contains(word));
            if makers.is_empty()
                && let Some(other) = nearly_named(survey, object, &named, &wanted)
                && !is_by_hand(context, named.name)
            {
                misnamed(survey, object, &named, other, &mut once);
            }
            let maker = match makers[..] {
                [maker] => maker,
                // Of a source it does not matter which of several was meant: none is here.
                [maker, ..] if named.is_source() => maker,
                _ => continue,
            };
            // A script may make the one that is asked for.
            let may_be_scripted = !named.is_source() && is_by_hand(context, named.name);
            if makers.iter().any(is_here) || is_copied(&maker) || may_be_scripted {
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
            once.add(&what, finding(survey, object, diagnostic));
        }
    }
    once.report(report);
}

/// Where manifests stand that say themselves in which namespace their object lives.
fn stated_namespaces(survey: &Survey) -> HashSet<&Location> {
    let says = |it: &&Object| it.value().str_at(&["metadata", "namespace"]).is_some();
    survey.objects.iter().filter(says).map(|it| &it.rendered.location).collect()
}

/// A finding about an object of the clusters, which is one of theirs and not of the repository's.
fn finding(survey: &Survey, object: &Object, diagnostic: Diagnostic) -> Finding {
    let finding = Finding::new(RULE.incident, diagnostic).object(object.title()).likely();
    match survey.app_of(object) {
        Some(app) => finding.app(app.name()),
        None => finding,
    }
}

/// The one thing beside an object that is nearly what it names, and that nothing asks for: its name, and what
/// makes it.
fn nearly_named<'a>(
    survey: &'a Survey,
    object: &Object,
    named: &Named<'_>,
    wanted: &HashSet<&str>,
) -> Option<(&'a str, &'a Object)> {
    let folder = |it: &'a Object| parent(&it.rendered.location.file);
    let own_folder = parent(&object.rendered.location.file);
    let is_near = |name: &str, it: &'a Object| {
        similar_names::nearest_slip(named.name, std::iter::once(name)).is_some()
            || folder(it) == own_folder && has_same_end(named.name, name)
    };
    let mut beside = survey.objects.iter().filter_map(|it| {
        let name = made_name(it, named.kind).filter(|_| it.key.namespace == object.key.namespace)?;
        (!wanted.contains(name) && is_near(name, it)).then_some((name, it))
    });
    beside.next().filter(|_| beside.next().is_none())
}

/// The name of the object of a kind that an object is, or makes.
fn made_name<'a>(object: &'a Object, kind: &str) -> Option<&'a str> {
    if object.key.kind == kind && object.key.group.is_empty() {
        return Some(&object.key.name);
    }
    made_secret(object.value()).filter(|_| kind == "Secret")
}

/// Tells of an object that names what nothing makes, where something beside it has a similar name.
fn misnamed(
    survey: &Survey,
    object: &Object,
    named: &Named<'_>,
    (meant, other): (&str, &Object),
    once: &mut Once,
) {
    let what = format!("{} asks for {}/{}, which nothing makes", object.title(), named.kind, named.name);
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(survey.span(object, &named.field), "no such object")
        .see(survey.start(other), format!("{meant} is made here, and nothing asks for it"))
        .because("Flux waits for what an object of its own names, and does nothing before it is there");
    once.add(&what, finding(survey, object, diagnostic).perhaps(named.name, Some(meant)));
}

/// Whether two names differ in their first word alone, and go on with two words or more.
fn has_same_end(one: &str, other: &str) -> bool {
    match (one.split_once('-'), other.split_once('-')) {
        (Some((_, end)), Some((_, other_end))) => one != other && end == other_end && end.contains('-'),
        _ => false,
    }
}

/// Whether a script, a job or Terraform speaks of a name, and may make what is called so.
fn is_by_hand(context: &Context<'_>, name: &str) -> bool {
    is_spoken_of(context, name) || is_scripted(context, name)
}

/// The source that a HelmRelease names without a namespace.
fn source(object: &Object) -> Option<Named<'_>> {
    let places: [&[&str]; 2] = [&["spec", "chartRef"], &["spec", "chart", "spec", "sourceRef"]];
    let (place, reference) = places.into_iter().find_map(|it| Some((it, object.value().at(it)?)))?;
    let (kind, name) = (text(reference, "kind"), text(reference, "name"));
    let is_plain = !name.is_empty() && !placeholders::is_in(name) && reference.get("namespace").is_none();
    is_plain.then(|| Named { kind, name, field: keys(place).key("name") })
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
