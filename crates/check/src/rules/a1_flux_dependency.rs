//! # A Flux object that waits for one that is not there, or for itself
//!
//! A Kustomization or HelmRelease of Flux waits until everything in its `dependsOn` is ready. A name that
//! nothing makes, or a circle, lets it wait for ever, and with it whatever waits for it. So does a health
//! check without `apiVersion`: Flux takes it for one of the workloads of Kubernetes, and finds no other kind.
//!
//! People see: `dependency 'flux-system/cert-manager' is not ready`, `unable to get 'flux-system/db'
//! dependency: kustomizations.kustomize.toolkit.fluxcd.io "db" not found`, `no matches for kind
//! "HelmRelease"`.
//!
//! ## Bad
//! ```yaml
//! dependsOn: [{name: cert-manger}]
//! ```
//! ## Good
//! ```yaml
//! dependsOn: [{name: cert-manager}]
//! ```
//! ## When to suppress
//! Where the other object is made outside of the repository.

use std::collections::BTreeSet;

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Object, ObjectId, unused_folders};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        flux::Flux,
        placeholders,
        pods::{list, text},
        unrendered_files, unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-flux-dependency",
    incident: "A1",
    severity: Severity::Warning,
    title: "a Flux object waits for, or reads from, one that nothing makes, or waits for itself",
    page: page!("a1_flux_dependency.rs"),
    check,
};

const GROUPS: [&str; 2] = ["kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"];

fn check(context: &Context<'_>, report: &mut Report) {
    // What was put away is there for nobody.
    let is_in_use = |it: &&Object| unused_folders::put_away(&it.rendered.location.file).is_none();
    let of_flux = context.survey.objects.iter().filter(|it| GROUPS.contains(&it.key.group.as_str()));
    let all: Vec<&Object> = of_flux.filter(is_in_use).collect();
    let flux = Flux::from_survey(context.survey);
    let idle = idle_files(context, &all);
    let mut once = Once::default();
    let in_use = all.iter().filter(|it| !idle.contains(it.rendered.location.file.as_ref()));
    for object in in_use {
        for (name, namespace, path) in dependencies(object) {
            let found = objects_named(&all, object, name, namespace);
            let of_kind: Vec<&Object> =
                all.iter().filter(|it| it.key.kind == object.key.kind).copied().collect();
            if found.is_empty()
                && let Some(other) = elsewhere(&flux, &of_kind, object, name, namespace)
                && !flux.may_give(object, "dependsOn")
            {
                report_wrong_namespace(context, object, (name, namespace), other, path, &mut once);
            } else if found.is_empty() && !is_written(context, object, name) {
                missing(context, &all, object, name, path, &mut once);
            } else if !found.is_empty() && leads_back(&all, &found, object) {
                let mut diagnostic = RULE
                    .diagnostic(format!("{} waits for {name}, which waits for it", object.title()))
                    .at(context.survey.span(object, &path), "waits for this")
                    .because("none of the circle is ever ready")
                    .help("take one of the dependencies out");
                diagnostic.severity = Severity::Error;
                diagnostic = diagnostic.see(context.survey.start(found[0]), "this one waits for it in turn");
                once.add("", RULE.finding(context, object, diagnostic));
            }
        }
    }
    for object in &all {
        checked(context, object, &mut once);
        source(context, &flux, object, &mut once);
    }
    once.report(report);
}

/// The files of Kustomizations that nothing applies, where the roots of Flux lead to most of all that there
/// are: what they wait for, nobody waits for.
fn idle_files<'a>(context: &'a Context<'_>, all: &[&'a Object]) -> BTreeSet<&'a str> {
    const FEWEST: usize = 8;
    let Some(flux) = context.survey.flux.as_deref() else { return BTreeSet::new() };
    let applied: BTreeSet<&str> = flux.objects.iter().map(|it| it.rendered.location.file.as_ref()).collect();
    let files = all.iter().filter(|it| it.key.kind == "Kustomization");
    let files: BTreeSet<&str> = files.map(|it| it.rendered.location.file.as_ref()).collect();
    let idle: BTreeSet<&str> = files.difference(&applied).copied().collect();
    if files.len() >= FEWEST && idle.len() * 3 <= files.len() { idle } else { BTreeSet::new() }
}

/// Endings of manifests, and of templates that a script makes some from when a cluster is set up.
const WRITTEN: [&str; 7] = [".yaml", ".yml", ".templ", ".template", ".tmpl", ".tpl", ".j2"];

/// Whether a file declares a source that does not come out as an object: the kind stands there other than
/// below a reference, and so does the name.
fn is_declared(context: &Context<'_>, kind: &str, name: &str) -> bool {
    let (kind_line, name_line) = (format!("kind: {kind}"), format!("name: {name}"));
    let said = |line: &str| line.trim().trim_start_matches("- ").trim_matches(['"', '\'']).to_owned();
    let declares = |text: &str| {
        let lines: Vec<String> = text.lines().map(said).collect();
        let is_reference =
            |at: usize| lines[at.saturating_sub(2)..at].iter().any(|line| line.ends_with("Ref:"));
        let mut kinds = lines.iter().enumerate().filter(|(_, line)| **line == kind_line);
        kinds.any(|(at, _)| !is_reference(at)) && lines.contains(&name_line)
    };
    let mut files = context.survey.files.ending(&WRITTEN);
    name == "flux-system"
        || files.any(|path| {
            let text = context.survey.files.text(path).filter(|text| text.contains(&kind_line));
            text.is_some_and(|text| declares(&text))
        })
}

/// The source that a Kustomization or HelmRelease reads, where none of its kind has the name.
fn source(context: &Context<'_>, flux: &Flux, object: &Object, once: &mut Once) {
    let file = &object.rendered.location.file;
    if unrendered_files::may_be_a_patch(context.survey, object) || unused_files::is_in_unused_folder(file) {
        return;
    }
    let places: [&[&str]; 3] =
        [&["spec", "sourceRef"], &["spec", "chart", "spec", "sourceRef"], &["spec", "chartRef"]];
    for place in places {
        let Some(reference) = object.value().at(place) else { continue };
        let (kind, name) = (text(reference, "kind"), text(reference, "name"));
        let of_kind: Vec<&Object> = context
            .survey
            .objects
            .iter()
            .filter(|it| it.key.kind == kind && it.key.group == "source.toolkit.fluxcd.io")
            .collect();
        let given = reference.str_at(&["namespace"]);
        if named_in(&of_kind, object, name, given).is_empty()
            && let Some(other) = elsewhere(flux, &of_kind, object, name, given)
            && !flux.may_give(object, place.last().unwrap_or(&""))
        {
            report_wrong_namespace(context, object, (name, given), other, keys(place).key("name"), once);
            continue;
        }
        let is_there = |it: &&Object| it.key.name == name || placeholders::is_in(&it.key.name);
        // Where no source of the kind is in Git, they are made elsewhere.
        if name.is_empty()
            || placeholders::is_in(name)
            || name.starts_with('$')
            || of_kind.is_empty()
            || of_kind.iter().any(is_there)
            || is_declared(context, kind, name)
        {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!("{} reads from {kind} {name}, which nothing makes", object.title()))
            .at(context.survey.span(object, &keys(place).key("name")), "read from this")
            .because("it is never ready, and what depends on it is not either");
        let nearest = similar_names::nearest_slip(name, of_kind.iter().map(|it| it.key.name.as_str()));
        once.add(name, RULE.finding(context, object, diagnostic).likely().perhaps(name, nearest));
    }
}

/// The kinds that Flux takes a health check without a version for.
const WORKLOADS: [&str; 5] = ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];

/// A health check that does not say of which version its kind is.
fn report_unversioned(context: &Context<'_>, object: &Object, at: usize, entry: &Value, once: &mut Once) {
    let (kind, name) = (text(entry, "kind"), text(entry, "name"));
    let path = keys(&["spec", "healthChecks"]).index(at).key("kind");
    let diagnostic = RULE
        .diagnostic(format!(
            "{} waits for the health of {kind} {name} without its apiVersion",
            object.title()
        ))
        .at(context.survey.span(object, &path), "no matches for this kind")
        .because("Flux looks for it among the workloads of Kubernetes; the check fails, and what depends on it waits")
        .help(format!("write the apiVersion of {kind} beside it"));
    once.add_by(format!("{kind} without apiVersion"), RULE.finding(context, object, diagnostic));
}

/// Objects whose health a Kustomization waits for: of a kind that is not there, or by a name that is nearly
/// one of those that there are.
fn checked(context: &Context<'_>, object: &Object, once: &mut Once) {
    const OF_KUBERNETES: [&str; 4] = ["", "v1", "apps/v1", "batch/v1"];
    let is_kustomization = object.key.group == "kustomize.toolkit.fluxcd.io";
    // Who waits for everything does not look at them.
    if object.value()["spec"]["wait"] == Value::Bool(true) {
        return;
    }
    for (at, entry) in list(&object.value()["spec"], "healthChecks").iter().enumerate() {
        let (kind, name) = (text(entry, "kind"), text(entry, "name"));
        let is_unversioned = entry["apiVersion"].is_null() && !WORKLOADS.contains(&kind);
        if is_kustomization && is_unversioned && !kind.is_empty() && !placeholders::is_in(kind) {
            report_unversioned(context, object, at, entry, once);
            continue;
        }
        // Charts and operators make workloads.
        if OF_KUBERNETES.contains(&text(entry, "apiVersion")) || placeholders::is_in(name) {
            continue;
        }
        let group = text(entry, "apiVersion").split('/').next().unwrap_or_default();
        let of_kind = context.survey.objects.iter().filter(|it| it.key.kind == kind && it.key.group == group);
        let names: Vec<&str> = of_kind.map(|it| it.key.name.as_str()).collect();
        if names.iter().any(|it| *it == name || placeholders::is_in(it)) {
            continue;
        }
        let Some(nearest) = similar_names::nearest_slip(name, names.iter().copied()) else { continue };
        let path = keys(&["spec", "healthChecks"]).index(at).key("name");
        let diagnostic = RULE
            .diagnostic(format!(
                "{} waits for the health of {kind} {name}, which nothing makes",
                object.title()
            ))
            .at(context.survey.span(object, &path), "waits for this")
            .because("it waits until its time is out, and is never ready; what depends on it is not either");
        once.add(name, RULE.finding(context, object, diagnostic).likely().perhaps(name, Some(nearest)));
    }
}

/// What an object waits for: name, namespace if it is given, and place.
fn dependencies(object: &Object) -> Vec<(&str, Option<&str>, FieldPath)> {
    let listed = list(&object.value()["spec"], "dependsOn").iter().enumerate();
    let of = |(at, it)| {
        let path = keys(&["spec", "dependsOn"]).index(at).key("name");
        (text(it, "name"), it.str_at(&["namespace"]), path)
    };
    listed.map(of).filter(|(name, ..)| !name.is_empty() && !placeholders::is_in(name)).collect()
}

/// Whether a file has it that does not come out as objects, or Flux makes it when it is installed.
fn is_written(context: &Context<'_>, near: &Object, name: &str) -> bool {
    let kind = format!("kind: {}", near.key.kind);
    // The name may be given an anchor: `name: &app web`.
    let is_name = |line: &str| {
        let value = line.trim().strip_prefix("name:").unwrap_or_default().trim();
        let value = match value.strip_prefix('&') {
            Some(anchored) => anchored.split_once(' ').map_or("", |(_, value)| value),
            None => value,
        };
        value.trim().trim_matches(['"', '\'']) == name
    };
    let has = |text: &str| text.contains(&kind) && text.lines().any(is_name);
    let files = context.survey.files.ending(&WRITTEN);
    let mut files = files.filter(|path| unused_folders::put_away(path).is_none());
    name == "flux-system" || files.any(|path| context.survey.files.text(path).is_some_and(|text| has(&text)))
}

/// The objects of a kind and name. A manifest may leave its namespace to whoever applies it.
fn objects_named<'a>(
    all: &[&'a Object],
    near: &Object,
    name: &str,
    namespace: Option<&str>,
) -> Vec<&'a Object> {
    let of_kind: Vec<&Object> = all.iter().filter(|it| it.key.kind == near.key.kind).copied().collect();
    named_in(&of_kind, near, name, namespace)
}

/// The objects of a name among those of a kind that one may mean.
fn named_in<'a>(
    of_kind: &[&'a Object],
    near: &Object,
    name: &str,
    namespace: Option<&str>,
) -> Vec<&'a Object> {
    let wanted = namespace.or_else(|| namespace_of(near));
    let fits = |object: &&&Object| {
        let own = namespace_of(object);
        (object.key.name == name || placeholders::is_in(&object.key.name))
            && (own.is_none() || wanted.is_none() || own == wanted)
    };
    of_kind.iter().filter(fits).copied().collect()
}

/// The object of a name, where all of its kind that there are lie in namespaces of their own, and who names
/// it means another.
fn elsewhere<'a>(
    flux: &Flux,
    of_kind: &[&'a Object],
    near: &Object,
    name: &str,
    namespace: Option<&str>,
) -> Option<&'a Object> {
    let wanted = namespace.or_else(|| namespace_of(near))?;
    let mut same = of_kind.iter().filter(|it| it.key.name == name);
    let is_plain = |text: &str| !placeholders::is_in(text);
    let is_placed = |it: &&&'a Object| namespace_of(it).is_some_and(is_plain) && !flux.moves(it);
    if namespace.is_none() && flux.moves(near) {
        return None;
    }
    let other = same.clone().next().copied()?;
    (is_plain(wanted) && same.all(|it| is_placed(&it))).then_some(other)
}

/// The namespace that a manifest gives an object.
fn namespace_of(object: &Object) -> Option<&str> {
    object.value().str_at(&["metadata", "namespace"])
}

/// Tells of a name that is right, and is looked for in the wrong namespace.
fn report_wrong_namespace(
    context: &Context<'_>,
    object: &Object,
    (name, namespace): (&str, Option<&str>),
    other: &Object,
    path: FieldPath,
    once: &mut Once,
) {
    let kind = &other.key.kind;
    let wanted = namespace.or_else(|| namespace_of(object)).unwrap_or_default();
    let own = namespace_of(other).unwrap_or_default();
    let verb = if kind == &object.key.kind { "waits for" } else { "reads from" };
    let diagnostic = RULE
        .diagnostic(format!(
            "{} {verb} {kind} {name} in {wanted}, and there is only one in {own}",
            object.title()
        ))
        .at(
            context.survey.span(object, &path),
            if namespace.is_some() { "in this namespace" } else { "in its own namespace" },
        )
        .see(context.survey.start(other), format!("this one is in {own}"))
        .because(
            "Flux looks in the namespace that is given, or in that of the object itself: it is never found",
        )
        .help(format!("write namespace: {own} beside the name"));
    once.add(name, RULE.finding(context, object, diagnostic).likely());
}

/// Whether objects wait, by however many others, for one.
fn leads_back(all: &[&Object], from: &[&Object], to: &Object) -> bool {
    // Of several that are called alike, nobody knows which is meant.
    let mut open: Vec<&Object> = if from.len() == 1 { from.to_vec() } else { return false };
    let mut seen: Vec<ObjectId> = Vec::new();
    while let Some(object) = open.pop() {
        if object.id == to.id {
            return true;
        }
        if seen.contains(&object.id) {
            continue;
        }
        seen.push(object.id);
        for (name, namespace, _) in dependencies(object) {
            if let [only] = objects_named(all, object, name, namespace)[..] {
                open.push(only);
            }
        }
    }
    false
}

fn missing(
    context: &Context<'_>,
    all: &[&Object],
    object: &Object,
    name: &str,
    path: FieldPath,
    once: &mut Once,
) {
    let others = all.iter().filter(|it| it.key.kind == object.key.kind);
    let diagnostic = RULE
        .diagnostic(format!("{} waits for {} {name}, which nothing makes", object.title(), object.key.kind))
        .at(context.survey.span(object, &path), "waits for this")
        .because("it is never reconciled, and what waits for it is not either");
    let nearest = similar_names::nearest_slip(name, others.map(|it| it.key.name.as_str()));
    once.add("", RULE.finding(context, object, diagnostic).likely().perhaps(name, nearest));
}
