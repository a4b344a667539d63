//! # A class that nothing declares, beside one that is similarly named
//!
//! A claim names a StorageClass, a pod a PriorityClass or RuntimeClass, an Ingress an IngressClass. A claim
//! whose class does not exist is never bound, and its pod stays Pending; a pod with an unknown PriorityClass
//! or RuntimeClass is refused; an Ingress is served by nobody. This is told where the repository declares a
//! class that is similarly named, or where several others name a class that it declares, and this one alone
//! names another, of which nothing else speaks; of PriorityClasses and RuntimeClasses, without which a pod is
//! refused, also where it declares others and says nothing more of this one.
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

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Object, Owner};
use tiphys_schema::Catalog;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        misspelled_names::Misnamed,
        placeholders,
        pods::{self, list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
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
        let nearest = nearest_class(it.name, classes).or_else(|| unnamed_class(object, it, classes, &files));
        if let Some(meant) = nearest.filter(|meant| !is_beside(&meant.key.name))
            && !is_of_values(context, it)
        {
            add(context, object, it, meant, &mut once);
        } else if is_refused(context, object, it, classes) {
            report_other_kind(context, object, it, classes.first().copied(), &mut once);
        } else if let Some(usual) = is_outlier(context, object, it, classes, &files) {
            report_outlier(context, object, it, usual, &mut once);
        }
    }
    once.report(report);
}

/// The one class that comes with an object, whose name goes on where the one that the object names ends, and
/// that nothing names.
fn unnamed_class<'a>(
    object: &Object,
    named: &Named<'_>,
    classes: &[&'a Object],
    users: &BTreeMap<(&str, &str), BTreeSet<&str>>,
) -> Option<&'a Object> {
    let is_here = |it: &&&Object| it.owner == object.owner && it.folder() == object.folder();
    let mut here = classes.iter().filter(is_here);
    let only = here.next().copied().filter(|_| here.next().is_none())?;
    let name = only.key.name.as_str();
    let goes_on = name.strip_prefix(named.name).is_some_and(|rest| rest.starts_with('-'));
    let is_named = users.contains_key(&(named.kind, name));
    (goes_on && !is_named && classes.iter().all(|it| it.key.name != named.name)).then_some(only)
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
    let of_custom = Catalog::latest().kind(&object.value().gvk()).is_none();
    named
        .map(|(kind, owner, path, key)| Named { kind, name: text(owner, key), path: path.key(key) })
        .chain(of_custom.then(|| claims_of_custom(object)).into_iter().flatten())
        .collect()
}

/// The StorageClasses that a custom resource names for the claims that its controller makes.
fn claims_of_custom(object: &Object) -> Vec<Named<'_>> {
    const KINDS_OF_STORAGE: [&str; 4] =
        ["storage.k8s.io", "snapshot.storage.k8s.io", "argoproj.io", "helm.toolkit.fluxcd.io"];
    let mut found = Vec::new();
    if !KINDS_OF_STORAGE.contains(&object.key.group.as_str()) {
        gather_classes(&object.value()["spec"], &keys(&["spec"]), &mut found, 0);
    }
    found
}

fn gather_classes<'a>(value: &'a Value, path: &FieldPath, found: &mut Vec<Named<'a>>, depth: usize) {
    const DEEPEST: usize = 24;
    match value {
        _ if depth > DEEPEST => {}
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                gather_classes(item, &path.index(at), found, depth + 1);
            }
        }
        Value::Object(fields) => {
            for (key, inner) in fields {
                let path = path.key(key);
                match inner.as_str() {
                    Some(name)
                        if matches!(key.as_str(), "storageClassName" | "storageClass")
                            && !name.is_empty() =>
                    {
                        found.push(Named { kind: "StorageClass", name, path });
                    }
                    _ => gather_classes(inner, &path, found, depth + 1),
                }
            }
        }
        _ => {}
    }
}

/// Whether a class is named by this one alone, while others name another class that Git declares; no file
/// says more of it, no provider brings a class of the name, and nothing that is not seen may declare classes.
fn is_outlier<'a>(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    classes: &[&'a Object],
    users: &BTreeMap<(&str, &str), BTreeSet<&str>>,
) -> Option<(&'a Object, usize)> {
    const LEAST: usize = 3;
    const LEAST_BESIDE_DEFAULT: usize = 2;
    if !matches!(named.kind, "StorageClass" | "IngressClass")
        || !matches!(object.owner, Owner::App(_))
        || classes.iter().any(|it| it.key.name == named.name || placeholders::is_in(&it.key.name))
        || is_provided(named.name)
        || may_be_declared_unseen(context, named)
    {
        return None;
    }
    let count = |class: &&&Object| users.get(&(named.kind, class.key.name.as_str())).map_or(0, BTreeSet::len);
    let usual = classes.iter().max_by_key(count)?;
    let number = count(&usual);
    // Who declares a default class declares those of the whole cluster.
    let has_default = classes
        .iter()
        .any(|it| it.value().annotation("storageclass.kubernetes.io/is-default-class") == Some("true"));
    let least = if has_default { LEAST_BESIDE_DEFAULT } else { LEAST };
    let is_alone = number >= least && !is_said_elsewhere(context, named) && !is_of_values(context, named);
    is_alone.then_some((usual, number))
}

/// Whether clusters of a provider or distribution have a class of a name from the start.
fn is_provided(name: &str) -> bool {
    const EXACT: [&str; 12] = [
        "default",
        "standard",
        "gp2",
        "gp3",
        "hostpath",
        "local-path",
        "manual",
        "nginx",
        "traefik",
        "alb",
        "gce",
        "managed",
    ];
    const BEGINNINGS: [&str; 22] = [
        "standard-",
        "premium-",
        "enterprise-",
        "managed-",
        "azurefile",
        "azureblob",
        "efs",
        "ebs",
        "gce-",
        "gce_",
        "do-block",
        "linode-",
        "oci",
        "vultr-",
        "scw-",
        "hcloud-",
        "civo-",
        "csi-",
        "thin",
        "ocs-",
        "azure-",
        "microk8s-",
    ];
    EXACT.contains(&name) || BEGINNINGS.iter().any(|start| name.starts_with(start))
}

/// Whether something that is not seen may declare the class: a driver or controller whose chart is out of
/// reach, a tool that is asked to install one.
fn may_be_declared_unseen(context: &Context<'_>, named: &Named<'_>) -> bool {
    const OF_STORAGE: [&str; 18] = [
        "csi",
        "storage",
        "longhorn",
        "rook",
        "ceph",
        "nfs",
        "provisioner",
        "openebs",
        "ebs",
        "efs",
        "local-path",
        "piraeus",
        "linstor",
        "zfs",
        "lvm",
        "hostpath",
        "trident",
        "volume",
    ];
    const OF_INGRESS: [&str; 12] = [
        "ingress",
        "nginx",
        "traefik",
        "haproxy",
        "kong",
        "contour",
        "alb",
        "load-balancer",
        "istio",
        "cilium",
        "ambassador",
        "tailscale",
    ];
    let words: &[&str] = if named.kind == "StorageClass" { &OF_STORAGE } else { &OF_INGRESS };
    let speaks = |name: &str| words.iter().any(|word| name.contains(word));
    let unseen = context.survey.apps.iter().filter(|app| !app.is_rendered());
    let of_apps = unseen.into_iter().any(|app| {
        let sources = app.application.spec.effective_sources();
        speaks(app.name()) || sources.iter().any(|it| speaks(&it.chart) || speaks(&it.path))
    });
    of_apps
        || context.chart_uses().iter().any(|it| speaks(&it.chart))
        || context.survey.tools().writers.iter().any(|writer| speaks(&writer.subject()))
}

/// Whether a line of any file has the name of a class, other than one that asks for it.
fn is_said_elsewhere(context: &Context<'_>, named: &Named<'_>) -> bool {
    let says = |line: &str| line.contains(named.name) && !line.to_ascii_lowercase().contains("class");
    context.survey.files.any_text(|text| text.lines().any(says))
}

fn report_outlier(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    (usual, number): (&Object, usize),
    once: &mut Once,
) {
    let Named { kind, name, path } = named;
    let diagnostic = RULE
        .diagnostic(format!("{} names {kind}/{name}, which nothing declares", object.title()))
        .at(context.survey.span(object, path), "the only one that names it")
        .see(
            context.survey.start(usual),
            format!("{number} files name {}, which is declared here", usual.key.name),
        )
        .because("what names a class that does not exist waits for it, or is served by nobody");
    once.add(name, RULE.finding(context, object, diagnostic).likely());
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
    // Where the repository declares no class at all, only a cluster that is seen as a whole lacks this one.
    let is_seen = || {
        let own = context.clusters().iter().find(|it| it.objects.iter().any(|it| it.id == object.id));
        own.is_some_and(|it| it.is_whole() && is_of_platform(it)) && !is_installed_by_tools(context)
    };
    let is_given =
        OF_CLUSTERS.iter().any(|end| named.name.ends_with(end)) || classes.is_empty() && !is_seen();
    let is_known = || classes.iter().any(|it| it.key.name == named.name || placeholders::is_in(&it.key.name));
    // A chart calls its classes after itself.
    let is_of_a_chart = || {
        let mut apps = survey.apps.iter().filter(|app| !app.is_rendered());
        apps.any(|app| named.name.contains(app.name()))
    };
    let field = format!("{}{}Name", named.kind[..1].to_lowercase(), &named.kind[1..]);
    let is_said_elsewhere = || {
        let says = |line: &str| line.contains(named.name) && !line.contains(&field);
        survey.files.any_text(|text| text.lines().any(says))
    };
    OF_PODS.contains(&named.kind)
        && !is_given
        && matches!(object.owner, Owner::App(_))
        && !is_known()
        && !is_of_a_chart()
        && !is_of_values(context, named)
        && !is_said_elsewhere()
}

/// Whether the Applications of a cluster bring what whoever runs the cluster brings, so that no other
/// repository does.
fn is_of_platform(cluster: &Cluster<'_>) -> bool {
    const KINDS: [&str; 5] = [
        "ClusterIssuer",
        "CustomResourceDefinition",
        "IngressClass",
        "StorageClass",
        "ValidatingWebhookConfiguration",
    ];
    cluster.objects.iter().any(|it| KINDS.contains(&it.key.kind.as_str()))
}

/// Whether scripts, playbooks or Terraform install anything, which may bring classes.
fn is_installed_by_tools(context: &Context<'_>) -> bool {
    let mut writers = context.survey.tools().writers.iter();
    writers.any(|writer| writer.objects().is_empty())
}

fn report_other_kind(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    other: Option<&Object>,
    once: &mut Once,
) {
    let Named { kind, name, path } = named;
    let mut diagnostic = RULE
        .diagnostic(format!("{} names {kind}/{name}, which nothing declares", object.title()))
        .at(context.survey.span(object, path), "named here")
        .because(format!("the API server refuses the pods: no {kind} with name {name} was found"));
    if let Some(other) = other {
        let label = "the classes of this repository are declared like this one";
        diagnostic = diagnostic.see(context.survey.start(other), label);
    }
    once.add(name, RULE.finding(context, object, diagnostic).likely());
}

/// The class that a name nearly is; `None` if one has it, or none does nearly.
fn nearest_class<'a>(name: &str, classes: &[&'a Object]) -> Option<&'a Object> {
    if classes.iter().any(|it| it.key.name == name || placeholders::is_in(&it.key.name)) {
        return None;
    }
    // `gp2` and `gp3` are two of several, and the first comes with the cluster.
    let names = classes.iter().map(|it| it.key.name.as_str());
    let nearest = similar_names::nearest_slip_beside_numbers(name, names)?;
    classes.iter().find(|it| it.key.name == nearest).copied()
}

fn add(context: &Context<'_>, object: &Object, named: &Named<'_>, meant: &Object, once: &mut Once) {
    let misnamed = Misnamed { kind: named.kind, name: named.name, path: &named.path, meant };
    let why = "what names a class that does not exist waits for it, or is refused";
    once.add(named.name, misnamed.finding(&RULE, context, object, "nothing declares", why));
}
