//! # A patch or image of a kustomization that finds nothing
//!
//! A patch with a `target`, or an entry of `images`, is applied to what it fits. What fits nothing is no
//! error: Kustomize leaves it out and says nothing, and what was to be changed stays as it was. Patches that
//! a Kustomization of Flux adds are no different.
//!
//! People see: nothing: the old image runs on, the patch has no effect.
//!
//! ## Bad
//! ```yaml
//! images: [{name: shop/web, newTag: v2}]       # the manifests have ghcr.io/shop/web
//! ```
//! ## Good
//! ```yaml
//! images: [{name: ghcr.io/shop/web, newTag: v2}]
//! ```
//! ## When to suppress
//! Where the entry is for objects that only some bases have.

use std::sync::Arc;

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{App, Object, Outcome, Unit, UnitKind};
use tiphys_value::{Location, ObjectExt, Value};
use tiphys_vfs::is_below;
use tiphys_yaml::{Content, Node, Profile};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::{keys, source},
        flux::built_folder,
        placeholders,
        pods::list,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-no-effect",
    incident: "D2",
    severity: Severity::Warning,
    title: "a patch or image of a kustomization that finds nothing",
    page: page!("d2_no_effect.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in context.survey.apps.iter().filter(|app| app.is_rendered()) {
        let sources = app.application.spec.effective_sources();
        let [only] = sources.as_slice() else { continue };
        let folder = only.path.trim_start_matches("./").trim_end_matches('/');
        let named = tiphys_kustomize::FILE_NAMES.iter().map(|name| format!("{folder}/{name}"));
        let Some(file) = named.filter_map(|path| app.read.get(path.as_str())).next() else { continue };
        let Some(text) = context.survey.files.text(file) else { continue };
        let Ok(documents) = tiphys_yaml::parse_documents(&text, Profile::Go2) else { continue };
        let Some(root) = documents.first().map(|document| &document.root) else { continue };
        let objects: Vec<&Object> = context.survey.objects_of(app.id).collect();
        images(context, app, file, root, &objects, &mut once);
        own_patches(context, app, &objects, &mut once);
        // What a patch deletes is not there to be seen, and what a replacement names anew is not there by its
        // name.
        if !text.contains("$patch: delete") && !app.read.iter().any(|it| takes_away(context, it)) {
            patches(context, &PatchedBy::App(app), (file, root), &objects, &mut once);
        }
    }
    of_flux(context, &mut once);
    of_units(context, &mut once);
    once.report(report);
}

/// Patches that an Application adds itself to the kustomization of its only source.
fn own_patches(context: &Context<'_>, app: &App, objects: &[&Object], once: &mut Once) {
    let spec = &app.application.spec;
    let sources = spec.effective_sources();
    let [only] = sources.as_slice() else { return };
    let given = only.kustomize.iter().flat_map(|it| &it.patches).enumerate();
    for (at, patch) in given.filter(|(_, patch)| !patch.patch.contains("$patch") && patch.options.is_empty())
    {
        let target = serde_json::to_value(&patch.target).unwrap_or_default();
        let text = |field: &str| target.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
        let selects = ["labelSelector", "annotationSelector"].iter().any(|it| text(it).is_some());
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let (Some(kind), Some(name)) = (text("kind"), text("name")) else { continue };
        let of_kind = || objects.iter().filter(|it| it.key.kind == kind).map(|it| it.value().name());
        if selects
            || !is_plain(kind)
            || !is_plain(name)
            || objects.is_empty()
            || of_kind().any(|it| it.contains(name))
        {
            continue;
        }
        let field = source(spec, 0).key("kustomize").key("patches").index(at).key("target").key("name");
        let diagnostic = RULE
            .diagnostic(format!(
                "Application {} renders no {kind}/{name}: its own patch has no effect",
                app.name()
            ))
            .at(context.survey.app_span(app, &field), "found nowhere")
            .because(
                "a patch is applied to what its target fits; if that is nothing, kustomize says nothing",
            );
        let finding = Finding::new(RULE.incident, diagnostic).app(app.name());
        once.add(name, finding.perhaps(name, similar_names::nearest_slip(name, of_kind())));
    }
}

/// Patches that a Kustomization of Flux adds to the kustomization of its folder.
fn of_flux(context: &Context<'_>, once: &mut Once) {
    let survey = context.survey;
    for object in &survey.objects {
        let spec = &object.value()["spec"];
        let Some(folder) = built_folder(object) else { continue };
        let is_built = |unit: &&Unit| unit.kind == UnitKind::Kustomization && unit.path == folder;
        let Some(unit) = survey.units.iter().find(is_built) else { continue };
        // What is deleted or named anew in the folder itself is not there to be seen.
        let mut inner = survey.files.paths().filter(|file| is_below(file, &folder));
        if inner.any(|file| takes_away(context, file)) || spec.to_string().contains("$patch") {
            continue;
        }
        let built: Vec<&Object> = unit.objects.iter().map(|id| survey.object(*id)).collect();
        for (at, patch) in list(spec, "patches").iter().enumerate() {
            let target = &patch["target"];
            let text = |field: &str| target.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
            let selects = ["labelSelector", "annotationSelector"].iter().any(|it| text(it).is_some());
            let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            let (Some(kind), name) = (text("kind"), text("name")) else { continue };
            if selects || !is_plain(kind) || !name.is_none_or(is_plain) || built.is_empty() {
                continue;
            }
            let fits = |it: &&Object| {
                it.key.kind == kind && name.is_none_or(|name| it.value().name().contains(name))
            };
            if built.iter().copied().any(|it| fits(&it)) {
                continue;
            }
            let shown = name.map_or_else(|| kind.to_owned(), |name| format!("{kind}/{name}"));
            let field = keys(&["spec", "patches"]).index(at).key("target").key(if name.is_some() {
                "name"
            } else {
                "kind"
            });
            let of_kind = built.iter().filter(|it| it.key.kind == kind).map(|it| it.value().name());
            let nearest = name.and_then(|name| similar_names::nearest_slip(name, of_kind));
            let diagnostic = RULE
                .diagnostic(format!("{} has a patch for {shown}, and {folder} has none: the patch has no effect", object.title()))
                .at(survey.span(object, &field), "found nowhere")
                .because("a patch is applied to what its target fits in the folder that is built; if that is nothing, nothing is said");
            let finding = RULE.finding(context, object, diagnostic).likely();
            once.add("", finding.perhaps(name.unwrap_or_default(), nearest));
        }
    }
}

/// Whether a file takes objects away, or their names.
fn takes_away(context: &Context<'_>, file: &str) -> bool {
    let names_anew = |text: &str| {
        text.contains("/metadata/name") || text.contains("fieldPaths") && text.contains("metadata.name")
    };
    let text = context.survey.files.text(file);
    text.is_some_and(|text| text.contains("$patch: delete") || names_anew(&text))
}

/// The entry of a mapping.
fn entry<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Content::Mapping(pairs) = &node.content else { return None };
    let found =
        pairs.iter().find(|(key, _)| matches!(&key.content, Content::Scalar(text) if &**text == name));
    found.map(|(_, value)| value)
}

fn scalar<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    match &entry(node, name)?.content {
        Content::Scalar(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn items<'n>(node: &'n Node, name: &str) -> &'n [Node] {
    match entry(node, name).map(|it| &it.content) {
        Some(Content::Sequence(items)) => items,
        _ => &[],
    }
}

fn images(
    context: &Context<'_>,
    app: &App,
    file: &Arc<str>,
    root: &Node,
    objects: &[&Object],
    once: &mut Once,
) {
    let mut known: Vec<&str> = Vec::new();
    objects.iter().for_each(|object| gather(object.value(), &mut known, 0));
    let repositories: Vec<&str> = known.iter().map(|image| repository(image)).collect();
    for image in items(root, "images") {
        let Some(name) = scalar(image, "name").filter(|name| !placeholders::is_in(name)) else { continue };
        let wanted = scalar(image, "newName").unwrap_or(name);
        // A kustomization without images may be about other kinds altogether; of two spellings one is enough.
        let last = |text: &str| text.rsplit('/').next().unwrap_or(text).to_owned();
        let is_there = |name: &str| repositories.contains(&repository(name));
        // A transformer may put a registry before the name that an entry gives.
        let is_behind = |given: &str| repositories.iter().any(|it| it.ends_with(&format!("/{given}")));
        let is_given = scalar(image, "newName").is_some_and(is_behind);
        let mut spellings = items(root, "images").iter().filter_map(|it| scalar(it, "name"));
        if repositories.is_empty()
            || is_there(wanted)
            || is_given
            || is_there(name)
            || spellings.any(|other| other != name && last(other) == last(name) && is_there(other))
        {
            continue;
        }
        let meant = repositories.iter().copied().find(|it| last(it) == last(name));
        let meant = meant.or_else(|| similar_names::nearest_slip(name, repositories.iter().copied()));
        let diagnostic = RULE
            .diagnostic(format!("no container of Application {} has image {name}: the entry has no effect", app.name()))
            .at(place(context, file, image, "name"), "found nowhere")
            .because("kustomize changes the images that are called so, letter by letter, and says nothing if there are none");
        once.add("", Finding::new(RULE.incident, diagnostic).app(app.name()).perhaps(name, meant));
    }
}

/// An image without tag and digest.
fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    }
}

fn gather<'a>(value: &'a Value, images: &mut Vec<&'a str>, depth: usize) {
    const MAX_DEPTH: usize = 64;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            if let Some(image) = map.get("image").and_then(Value::as_str) {
                images.push(image);
            }
            map.values().for_each(|inner| gather(inner, images, depth + 1));
        }
        Value::Array(items) => items.iter().for_each(|inner| gather(inner, images, depth + 1)),
        _ => {}
    }
}

/// Whose patches are judged.
enum PatchedBy<'a> {
    App(&'a App),
    /// A kustomization that no Application builds, by its folder.
    Unit(&'a str),
}

impl PatchedBy<'_> {
    fn title(&self) -> String {
        match self {
            Self::App(app) => format!("Application {} renders", app.name()),
            Self::Unit(folder) => format!("the kustomization in {folder} builds"),
        }
    }
}

/// The patches of kustomizations that no Application builds.
fn of_units(context: &Context<'_>, once: &mut Once) {
    let survey = context.survey;
    let is_built = |unit: &&Unit| {
        unit.kind == UnitKind::Kustomization
            && matches!(unit.outcome, Outcome::Rendered)
            && !unit.objects.is_empty()
    };
    for unit in survey.units.iter().filter(is_built) {
        let mut named = tiphys_kustomize::FILE_NAMES.iter().map(|name| format!("{}/{name}", unit.path));
        let Some(file) = named.find(|path| survey.files.contains(path)) else { continue };
        let Some(text) = survey.files.text(&file).filter(|text| text.contains("atches")) else { continue };
        let Ok(documents) = tiphys_yaml::parse_documents(&text, Profile::Go2) else { continue };
        let Some(root) = documents.first().map(|document| &document.root) else { continue };
        let objects: Vec<&Object> = unit.objects.iter().map(|id| survey.object(*id)).collect();
        let mut found = Once::default();
        let file: Arc<str> = file.into();
        patches(context, &PatchedBy::Unit(&unit.path), (&file, root), &objects, &mut found);
        // What is deleted or named anew on the way is not there to be seen.
        let folders = objects.iter().filter_map(|it| it.rendered.location.file.rsplit_once('/'));
        let mut bases: Vec<&str> = folders.map(|(folder, _)| folder).chain([unit.path.as_str()]).collect();
        bases.sort_unstable();
        bases.dedup();
        let is_near = |path: &str| bases.iter().any(|base| is_below(path, base));
        if !found.is_empty() && !survey.files.paths().any(|it| is_near(it) && takes_away(context, it)) {
            let mut own = Report::default();
            found.report(&mut own);
            own.into_findings().into_iter().for_each(|finding| once.add("", finding));
        }
    }
}

fn patches(
    context: &Context<'_>,
    by: &PatchedBy<'_>,
    (file, root): (&Arc<str>, &Node),
    objects: &[&Object],
    once: &mut Once,
) {
    for patch in items(root, "patches").iter().chain(items(root, "patchesJson6902")) {
        let Some(target) = entry(patch, "target") else { continue };
        let selects = ["labelSelector", "annotationSelector"].iter().any(|it| entry(target, it).is_some());
        let (kind, name) = (scalar(target, "kind"), scalar(target, "name"));
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if selects || !kind.is_none_or(is_plain) || !name.is_none_or(is_plain) {
            continue;
        }
        let (Some(kind), name) = (kind, name) else { continue };
        let of_kind = || objects.iter().filter(|object| object.key.kind == kind);
        // Prefixes and suffixes come to names later.
        let fits = |object: &&&Object| name.is_none_or(|name| object.value().name().contains(name));
        if objects.is_empty() {
            continue;
        }
        if of_kind().any(|object| fits(&object)) {
            let named: Vec<&Object> = of_kind().filter(fits).copied().collect();
            other_namespace(context, by, (file, target), &named, once);
            continue;
        }
        let shown = name.map_or_else(|| kind.to_owned(), |name| format!("{kind}/{name}"));
        let field = if name.is_some() { "name" } else { "kind" };
        let diagnostic = RULE
            .diagnostic(format!("{} no {shown}: the patch has no effect", by.title()))
            .at(place(context, file, target, field), "found nowhere")
            .because(
                "a patch is applied to what its target fits; if that is nothing, kustomize says nothing",
            );
        let finding = match by {
            PatchedBy::App(app) => Finding::new(RULE.incident, diagnostic).app(app.name()),
            PatchedBy::Unit(_) => Finding::new(RULE.incident, diagnostic).likely(),
        };
        let nearest =
            name.and_then(|name| similar_names::nearest_slip(name, of_kind().map(|it| it.value().name())));
        once.add("", finding.perhaps(name.unwrap_or_default(), nearest));
    }
}

/// A target whose namespace none of the objects has that its kind and name fit.
fn other_namespace(
    context: &Context<'_>,
    by: &PatchedBy<'_>,
    (file, target): (&Arc<str>, &Node),
    named: &[&Object],
    once: &mut Once,
) {
    let is_plain = |text: &&str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let Some(namespace) = scalar(target, "namespace").filter(is_plain) else { return };
    // An object may have had the namespace before the kustomization gave it another one.
    let has_had = |object: &&Object| {
        let text = context.survey.files.text(&object.rendered.location.file);
        object.value().namespace() == namespace
            || object.value().namespace().is_empty()
            || text.is_none_or(|text| text.contains(&format!("namespace: {namespace}")))
    };
    let Some(first) = named.first().filter(|_| !named.iter().any(has_had)) else { return };
    let own = first.value().namespace();
    let diagnostic = RULE
        .diagnostic(format!(
            "{} {} in {own}, and not in {namespace}: the patch has no effect",
            by.title(),
            format_args!("{}/{}", first.key.kind, first.key.name)
        ))
        .at(place(context, file, target, "namespace"), "found in no such namespace")
        .because("a patch is applied to what its target fits; if that is nothing, kustomize says nothing");
    let finding = Finding::new(RULE.incident, diagnostic).likely().with_spelling(namespace, own);
    once.add(namespace, finding);
}

fn place(context: &Context<'_>, file: &Arc<str>, node: &Node, field: &str) -> tiphys_diag::Span {
    let at = entry(node, field).unwrap_or(node).span.start;
    context.survey.files.span(&Location::new(file.clone(), at.line, at.column))
}
