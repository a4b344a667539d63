//! # A class that nothing declares, beside one that is similarly named
//!
//! A claim names a StorageClass, a pod a PriorityClass or RuntimeClass, an Ingress an IngressClass. A claim
//! whose class does not exist is never bound, and its pod stays Pending; a pod with an unknown PriorityClass
//! or RuntimeClass is refused; an Ingress is served by nobody. This is told where the repository declares a
//! class that is similarly named; of PriorityClasses and RuntimeClasses, without which a pod is refused, also
//! where it declares others and says nothing more of this one.
//!
//! People see: `storageclass.storage.k8s.io "gp-3" not found`, `0/3 nodes are available: pod has unbound
//! immediate PersistentVolumeClaims`, `pods "web-…" is forbidden: no PriorityClass with name high-prio was
//! found`, and an Ingress without an address.
//!
//! ## Bad
//! ```yaml
//! kind: PersistentVolumeClaim
//! spec: {storageClassName: fast-sdd}        # the StorageClass is called fast-ssd
//! ```
//! ## Good
//! ```yaml
//! kind: PersistentVolumeClaim
//! spec: {storageClassName: fast-ssd}
//! ```
//! ## When to suppress
//! Where a class of this name is in the cluster, too.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        misspelled_names::Misnamed,
        nearest_name, placeholders,
        pods::{self, list, text},
        unrendered_files,
    },
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "E2-unknown-class",
    incident: "E2",
    severity: Severity::Warning,
    title: "a class that nothing declares, beside one that is nearly called so",
    page: page!("e2_unknown_class.rs"),
    check,
};

/// A class that an object names.
struct Named<'a> {
    kind: &'static str,
    name: &'a str,
    path: FieldPath,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut declared: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for object in survey.objects.iter().filter(|it| it.key.kind.ends_with("Class")) {
        declared.entry(object.key.kind.as_str()).or_default().push(object);
    }
    if declared.is_empty() {
        return;
    }
    let users = survey.objects.iter().filter(|it| {
        !unrendered_files::is_from_unused_chart(survey, it) && !unrendered_files::may_be_a_patch(survey, it)
    });
    let named: Vec<(&Object, Named<'_>)> =
        users.flat_map(|object| names(object).into_iter().map(move |it| (object, it))).collect();
    // What several files say is no slip.
    let mut files: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (object, it) in &named {
        files.entry((it.kind, it.name)).or_default().insert(&object.rendered.location.file);
    }
    let mut once = Once::default();
    for (object, it) in &named {
        if files[&(it.kind, it.name)].len() > 1 || placeholders::is_in(it.name) {
            continue;
        }
        let classes = declared.get(it.kind).map(Vec::as_slice).unwrap_or_default();
        // Who names both means both.
        let is_beside = |other: &str| {
            let users = files.get(&(it.kind, other));
            users.is_some_and(|users| users.contains(object.rendered.location.file.as_ref()))
        };
        if let Some(meant) = nearest_class(it.name, classes).filter(|meant| !is_beside(&meant.key.name))
            && !is_of_values(context, it)
        {
            add(context, object, it, meant, &mut once);
        } else if is_refused(context, object, it, classes) {
            report_other_kind(context, object, it, classes[0], &mut once);
        }
    }
    once.report(report);
}

/// The classes that an object names.
fn names(object: &Object) -> Vec<Named<'_>> {
    let (spec, path) = (&object.value()["spec"], keys(&["spec"]));
    let mut places: Vec<(&'static str, &Value, FieldPath, &'static str)> = Vec::new();
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("", "PersistentVolumeClaim") => {
            places.push(("StorageClass", spec, path.clone(), "storageClassName"));
        }
        ("networking.k8s.io", "Ingress") => {
            places.push(("IngressClass", spec, path.clone(), "ingressClassName"));
        }
        _ => {}
    }
    for (at, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let path = path.key("volumeClaimTemplates").index(at).key("spec");
        places.push(("StorageClass", &claim["spec"], path, "storageClassName"));
    }
    if let Some(pod) = pods::pod_of(object) {
        places.push(("PriorityClass", pod.spec(), pod.spec_path(), "priorityClassName"));
        places.push(("RuntimeClass", pod.spec(), pod.spec_path(), "runtimeClassName"));
    }
    let named = places.into_iter().filter(|(_, owner, _, key)| !text(owner, key).is_empty());
    named
        .map(|(kind, owner, path, key)| Named { kind, name: text(owner, key), path: path.key(key) })
        .collect()
}

/// Whether the values of a chart declare a class of this name, as those of CSI drivers and Ingress
/// controllers do: `storageClasses: [{name: …}]`, `ingressClassResource: {name: …}`.
fn is_of_values(context: &Context<'_>, named: &Named<'_>) -> bool {
    let files = &context.survey.files;
    let word = &named.kind[1..];
    let is_name = |line: &str| {
        let entry = line.trim_start().trim_start_matches("- ").strip_prefix("name:");
        entry.is_some_and(|name| name.trim().trim_matches(['"', '\'']) == named.name)
    };
    let mut texts = files.ending(&[".yaml", ".yml"]).filter_map(|path| files.text(path));
    texts.any(|text| text.contains(word) && text.lines().any(is_name))
}

/// Whether a pod is refused for its class: the repository declares such classes, and of this one it says
/// nothing but that pods have it.
fn is_refused(context: &Context<'_>, object: &Object, named: &Named<'_>, classes: &[&Object]) -> bool {
    const OF_PODS: [&str; 2] = ["PriorityClass", "RuntimeClass"];
    let survey = context.survey;
    const OF_CLUSTERS: [&str; 2] = ["-cluster-critical", "-node-critical"];
    let is_given = OF_CLUSTERS.iter().any(|end| named.name.ends_with(end)) || classes.is_empty();
    let is_known = || classes.iter().any(|it| it.key.name == named.name || placeholders::is_in(&it.key.name));
    // A chart calls its classes after itself.
    let is_of_a_chart = || {
        let mut apps = survey.apps.iter().filter(|app| !app.is_rendered());
        apps.any(|app| named.name.contains(app.name()))
    };
    let field = format!("{}{}Name", named.kind[..1].to_lowercase(), &named.kind[1..]);
    let is_said_elsewhere = || {
        let says = |line: &str| line.contains(named.name) && !line.contains(&field);
        survey.files.paths().any(|path| survey.files.text(path).is_some_and(|text| text.lines().any(says)))
    };
    OF_PODS.contains(&named.kind)
        && !is_given
        && matches!(object.owner, Owner::App(_))
        && !is_known()
        && !is_of_a_chart()
        && !is_of_values(context, named)
        && !is_said_elsewhere()
}

fn report_other_kind(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    other: &Object,
    once: &mut Once,
) {
    let Named { kind, name, path } = named;
    let diagnostic = RULE
        .diagnostic(format!("{} names {kind}/{name}, which nothing declares", object.title()))
        .at(context.survey.span(object, path), "named here")
        .see(context.survey.start(other), "the classes of this repository are declared like this one")
        .because(format!("the API server refuses the pods: no {kind} with name {name} was found"));
    once.add(name, RULE.finding(context, object, diagnostic).likely());
}

/// The class that a name nearly is; `None` if one has it, or none does nearly.
fn nearest_class<'a>(name: &str, classes: &[&'a Object]) -> Option<&'a Object> {
    if classes.iter().any(|it| it.key.name == name || placeholders::is_in(&it.key.name)) {
        return None;
    }
    let nearest = nearest_name::nearest(name, classes.iter().map(|it| it.key.name.as_str()))?;
    let letters = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit()).collect() };
    // `gp2` and `gp3` are two of several, and the first comes with the cluster.
    if letters(name) == letters(nearest) {
        return None;
    }
    classes.iter().find(|it| it.key.name == nearest).copied()
}

fn add(context: &Context<'_>, object: &Object, named: &Named<'_>, meant: &Object, once: &mut Once) {
    let misnamed = Misnamed { kind: named.kind, name: named.name, path: &named.path, meant };
    let why = "what names a class that does not exist waits for it, or is refused";
    once.add(named.name, misnamed.finding(&RULE, context, object, "nothing declares", why));
}
