//! Namespaces that things of Flux go to and that nothing makes, for `C5-no-namespace`: Flux makes none, but
//! where a HelmRelease asks for it.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, Outcome, Owner, Survey, is_of_flux, survey::is_namespaced};
use tiphys_kustomize::FILE_NAMES;
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::{base_name, join, parent};

use super::c5_no_namespace::{GIVEN, RULE, is_declared, is_made_by_command, is_product};
use crate::{
    Context, Finding, Report,
    support::{field_paths::keys, flux::Flux, kustomization_entries, placeholders, pods::list},
};

/// What goes to a namespace.
struct Use<'a> {
    /// The survey that the object is of.
    survey: &'a Survey,
    object: &'a Object,
    role: Role,
}

/// Why it goes there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is an object of Flux in this namespace.
    Own,
    /// It is a Kustomization that puts all its objects there.
    Target,
    /// It is a HelmRelease that installs there.
    Release,
    /// It is an object that a Kustomization applies.
    Applied,
}

/// Tells the namespaces that nothing makes, where most of the others are made.
pub(super) fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    const FEWEST: usize = 3;
    let used = uses(context);
    let made = made_namespaces(context);
    // What is filled in later may be any of them.
    if made.iter().any(|name| placeholders::is_in(name)) {
        return;
    }
    let known = used.keys().filter(|namespace| made.contains(*namespace)).count();
    if known < FEWEST || known * 4 < used.len() * 3 {
        return;
    }
    // Asked of every text of the repository, so only where something would be told.
    let is_open = LazyCell::new(|| has_hidden_trees(context) || has_open_declaration(context));
    for (namespace, it) in used {
        if made.contains(namespace)
            || is_declared(context, namespace)
            || is_made_by_script(survey, namespace)
            || is_made_by_hand(survey, namespace)
            || may_be_unbuilt(context, namespace)
            || is_parameter(context, namespace)
            || it.role != Role::Own && (*is_open || may_be_made(context, namespace))
        {
            continue;
        }
        report.add(finding(namespace, &it));
    }
}

fn finding(namespace: &str, it: &Use<'_>) -> Finding {
    let title = it.object.title();
    let (does, field, mechanism) = match it.role {
        Role::Own | Role::Applied => (
            "goes to",
            keys(&["metadata", "namespace"]),
            "the Kustomization that holds it fails, and applies none of its objects",
        ),
        Role::Target => (
            "puts its objects into",
            keys(&["spec", "targetNamespace"]),
            "the Kustomization fails, and applies none of its objects",
        ),
        Role::Release => {
            ("installs into", keys(&["spec", "targetNamespace"]), "Helm's install fails, and nothing runs")
        }
    };
    let create = if it.role == Role::Release { "set spec.install.createNamespace, or " } else { "" };
    let mut diagnostic = RULE
        .diagnostic(format!("{title} {does} namespace {namespace}, which nothing makes"))
        .at(it.survey.span(it.object, &field), "this namespace")
        .because(format!("`namespaces \"…\" not found`: {mechanism}"))
        .help(format!("{create}add a Namespace {namespace}, as the other namespaces have one"));
    diagnostic.severity = Severity::Warning;
    let finding = Finding::new(RULE.incident, diagnostic).object(title).likely();
    match it.survey.app_of(it.object) {
        Some(app) => finding.app(app.name()),
        None => finding,
    }
}

/// The namespaces that something goes to, each with what does.
fn uses<'a>(context: &'a Context<'_>) -> BTreeMap<&'a str, Use<'a>> {
    const GROUPS: [&str; 2] = ["kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"];
    let survey = context.survey;
    let (flux, built) = (Flux::from_survey(survey), built(survey));
    let is_of_built = |it: &&Object| match it.owner {
        Owner::Unit(unit) => is_built(survey, &built, &survey.units[unit.0].path),
        _ => false,
    };
    let own: Vec<&Object> = survey
        .objects
        .iter()
        .filter(|it| GROUPS.contains(&it.key.group.as_str()))
        .filter(is_of_built)
        .collect();
    let mut used: BTreeMap<&str, Use<'_>> = BTreeMap::new();
    let mut add = |namespace: &'a str, it: Use<'a>| {
        let is_open = placeholders::is_in(namespace) || GIVEN.contains(&namespace);
        if !namespace.is_empty() && !is_open {
            used.entry(namespace).or_insert(it);
        }
    };
    for object in own.iter().filter(|it| !flux.moves(it)) {
        let namespace = object.value().str_at(&["metadata", "namespace"]).unwrap_or_default();
        add(namespace, Use { survey, object, role: Role::Own });
    }
    let target = |object: &'a Object| object.value().str_at(&["spec", "targetNamespace"]).unwrap_or_default();
    let releases = own.iter().filter(|it| it.key.kind == "HelmRelease");
    for object in releases.filter(|it| goes_to_own_cluster(it) && !creates(it)) {
        add(target(object), Use { survey, object, role: Role::Release });
    }
    let kustomizations = survey.objects.iter().filter(|it| it.key.kind == "Kustomization");
    for object in kustomizations.filter(|it| goes_to_own_cluster(it) && has_objects(context, it)) {
        add(target(object), Use { survey, object, role: Role::Target });
    }
    let Some(flux) = survey.flux.as_deref() else { return used };
    let is_placed_here = |app: &App| {
        let destination = &app.application.spec.destination;
        app.is_rendered() && destination.namespace.is_empty() && destination.name.is_empty()
    };
    for object in &flux.objects {
        let is_applied = flux.app_of(object).is_some_and(is_placed_here)
            && is_namespaced(&object.value().gvk()) == Some(true);
        if is_applied {
            let namespace = object.value().str_at(&["metadata", "namespace"]).unwrap_or_default();
            add(namespace, Use { survey: flux, object, role: Role::Applied });
        }
    }
    used
}

/// Whether an object of Flux puts what it applies into the cluster that it is in, and is not suspended.
fn goes_to_own_cluster(object: &Object) -> bool {
    let spec = &object.value()["spec"];
    spec.get("kubeConfig").is_none() && spec.get("suspend").and_then(Value::as_bool) != Some(true)
}

/// Whether a HelmRelease makes its namespace.
fn creates(object: &Object) -> bool {
    object.value().at(&["spec", "install", "createNamespace"]).and_then(Value::as_bool) == Some(true)
}

/// Whether Flux is known to apply something from a Kustomization.
fn has_objects(context: &Context<'_>, object: &Object) -> bool {
    let mut apps = context.survey.flux.iter().flat_map(|flux| &flux.apps);
    let is_it = |app: &App| app.declared.location == object.rendered.location;
    apps.any(|app| is_it(app) && app.is_rendered() && !app.objects.is_empty())
}

/// The namespaces that manifests of any tree make, and those that HelmReleases ask for.
fn made_namespaces<'a>(context: &'a Context<'_>) -> BTreeSet<&'a str> {
    let survey = context.survey;
    let objects = || survey.objects.iter().chain(survey.flux.iter().flat_map(|flux| &flux.objects));
    let namespaces = objects()
        .filter(|it| it.key.kind == "Namespace" && it.key.group.is_empty())
        .map(|it| it.key.name.as_str());
    let asked = objects().filter(|it| it.key.kind == "HelmRelease" && creates(it)).flat_map(|it| {
        let target = it.value().str_at(&["spec", "targetNamespace"]);
        [target, Some(it.key.namespace.as_str())]
    });
    let by_argo = survey
        .apps
        .iter()
        .filter(|app| app.application.sync_options().is_on("CreateNamespace"))
        .map(|app| app.application.spec.destination.namespace.as_str());
    namespaces.chain(asked.flatten()).chain(by_argo).filter(|name| !name.is_empty()).collect()
}

/// Whether something outside of the manifests makes a namespace: a command, an installer's list of releases,
/// a controller, or a chart that is told its name.
fn may_be_made(context: &Context<'_>, namespace: &str) -> bool {
    // Namespaces of a cluster's own parts, and those that operators make for what they run.
    const PARTS: [&str; 6] = ["kube-", "openshift", "calico-", "cilium-", "tigera-", "cattle-"];
    let survey = context.survey;
    let lists_it = |path: &str| {
        base_name(path).contains("helmfile")
            && survey.files.text(path).is_some_and(|text| text.contains(namespace))
    };
    PARTS.iter().any(|part| namespace.starts_with(part))
        || is_product(context, namespace)
        || is_made_by_command(survey, namespace)
        || survey.files.paths().any(|path| lists_it(path))
        || context.chart_uses().iter().any(|used| used.values.iter().any(|values| holds(values, namespace)))
}

/// Whether a script, a playbook or Terraform names a namespace and makes namespaces, perhaps this one in a
/// loop.
fn is_made_by_script(survey: &Survey, namespace: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        ".sh", ".bash", ".tf", ".py", ".ps1", ".j2", ".hcl", ".mk", ".go", ".ts", ".toml", "Makefile",
        "justfile", ".just",
    ];
    const MAKE: [&str; 9] = [
        "create ns",
        "create namespace",
        "create-namespace",
        "create_namespace",
        "createNamespace",
        "kubernetes_namespace",
        "kind: Namespace",
        "V1Namespace",
        "Namespace(",
    ];
    survey.files.ending(&ENDINGS).any(|path| {
        survey.files.text(path).is_some_and(|text| {
            text.contains(namespace)
                && MAKE.iter().any(|make| text.contains(make))
                && text.lines().any(|line| has_word(line, namespace))
        })
    })
}

/// Whether a text for people says that they make a namespace.
fn is_made_by_hand(survey: &Survey, namespace: &str) -> bool {
    let says_so = |line: &str| {
        let lower = line.to_lowercase();
        has_word(line, namespace) && ["creat", "namespace"].iter().all(|word| lower.contains(word))
    };
    survey.files.ending(&[".md", ".adoc", ".txt"]).any(|path| {
        survey.files.text(path).is_some_and(|text| text.contains(namespace) && text.lines().any(says_so))
    })
}

/// Whether a name stands alone in a line.
fn has_word(line: &str, name: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).any(|word| word == name)
}

/// Whether a text stands alone somewhere in values, as a key or a value.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(map) => map.iter().any(|(key, below)| key == text || holds(below, text)),
        _ => false,
    }
}

/// Whether Flux builds a tree of which nothing is seen.
fn has_hidden_trees(context: &Context<'_>) -> bool {
    let Some(flux) = context.survey.flux.as_deref() else { return true };
    let is_release = |app: &App| {
        flux.objects
            .iter()
            .chain(&context.survey.objects)
            .any(|it| it.key.kind == "HelmRelease" && it.rendered.location == app.declared.location)
    };
    flux.apps.iter().any(|app| !app.is_rendered() && !is_release(app))
}

/// Whether a manifest declares a namespace whose name is filled in later.
fn has_open_declaration(context: &Context<'_>) -> bool {
    const ENDINGS: [&str; 5] = [".yaml", ".yml", ".j2", ".tpl", ".tmpl"];
    const OPEN: [&str; 3] = ["<<", "{{", "${"];
    let files = &context.survey.files;
    let is_open = |document: &str| {
        let is_name = |line: &str| {
            let name = line.trim().trim_start_matches("metadata:").trim_start_matches([' ', '{']);
            name.starts_with("name:") && OPEN.iter().any(|open| name.contains(open))
        };
        document.lines().any(|line| line.trim_start_matches([' ', '-']).trim_end() == "kind: Namespace")
            && document.lines().any(is_name)
    };
    files.ending(&ENDINGS).any(|path| {
        files
            .text(path)
            .is_some_and(|text| text.contains("kind: Namespace") && text.split("\n---").any(is_open))
    })
}

/// The folders that Flux builds.
fn built(survey: &Survey) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for object in survey.objects.iter().filter(|it| is_of_flux(it.value())) {
        let paths = [&["spec", "path"][..], &["spec", "sync", "path"]];
        let paths = paths.into_iter().filter_map(|path| object.value().str_at(path));
        found.extend(paths.filter_map(|path| join("", path).ok()));
    }
    found
}

/// Whether Flux builds a kustomization: by its folder, or by one above it, of which it takes all where that
/// has none.
fn is_built(survey: &Survey, built: &BTreeSet<String>, folder: &str) -> bool {
    let has_none = |above: &str| kustomization_entries::of_folder(&survey.files, above).next().is_none();
    built.contains(folder)
        || std::iter::successors(parent(folder), |above| parent(above))
            .any(|above| built.contains(above) && has_none(above))
}

/// Whether a namespace is also handed on as a parameter, as those of tenants are, which others set up.
fn is_parameter(context: &Context<'_>, namespace: &str) -> bool {
    let values = |object: &Object| -> bool {
        let given = object.value().at(&["spec", "postBuild", "substitute"]).and_then(Value::as_object);
        let inputs = list(&object.value()["spec"], "inputs").iter();
        given.is_some_and(|given| given.values().any(|value| value == namespace))
            || inputs.clone().any(|input| holds(input, namespace))
    };
    context.survey.objects.iter().any(values)
}

/// Whether a component may make a namespace in a kustomization of which nothing is seen: one sets it that
/// does not build.
fn may_be_unbuilt(context: &Context<'_>, namespace: &str) -> bool {
    let survey = context.survey;
    let is_set = |line: &str| line.strip_prefix("namespace:").is_some_and(|name| name.trim() == namespace);
    let is_seen = |path: &Arc<str>| {
        let folder = parent(path).unwrap_or_default();
        let is_unit =
            survey.units.iter().any(|it| it.path == folder && matches!(it.outcome, Outcome::Rendered));
        let mut apps = survey.flux.iter().flat_map(|flux| &flux.apps);
        is_unit || apps.any(|app| app.is_rendered() && app.read.contains(path))
    };
    let mut files = survey.files.paths().filter(|path| FILE_NAMES.contains(&base_name(path)));
    files.any(|path| survey.files.text(path).is_some_and(|text| text.lines().any(is_set)) && !is_seen(path))
}
