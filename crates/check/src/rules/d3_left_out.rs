//! # A list names all its siblings and leaves one out
//!
//! What an ApplicationSet's list or a kustomization names is deployed; what lies beside it and is not named
//! is not, and nothing says so. Whoever adds a folder or a file has to add it to the list too.
//!
//! People see: nothing at all, until someone asks where the service is.
//!
//! The rule speaks where at least three others of the same shape are listed (of a kustomization five of the
//! same kind: Applications, Namespaces), it is the only one that is not, and its name does not occur in the
//! list's file at all: what was put into a comment was left out on purpose. Of a kustomization that an
//! Application or Flux builds it is told, too, where it names all files of its folder but one with a whole
//! object, of which nothing else speaks; in a tree of Flux where nine of ten kustomizations name all that
//! lies beside them, it is enough that it names one. And it is told of a generator that names numbered
//! files, such as migrations, where the folder has files with higher numbers.
//!
//! ## Bad
//! ```yaml
//! # charts/ has auth, chat, ops and scan
//! generators: [{list: {elements: [{name: auth}, {name: chat}, {name: scan}]}}]
//! ```
//! ## Good
//! ```yaml
//! generators: [{list: {elements: [{name: auth}, {name: chat}, {name: ops}, {name: scan}]}}]
//! ```
//! Or a generator that finds the folders itself.
//!
//! ## When to suppress
//! Where it is not meant to be deployed, or not here.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::{Object, Outcome, Set, Survey, Unit, UnitKind, survey::declared_span};
use tiphys_kustomize::FILE_NAMES;
use tiphys_value::{FieldPath, Location, ObjectExt, Value};
use tiphys_vfs::{base_name, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        placeholders,
        pods::{list, text},
        unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D3-left-out",
    incident: "D3",
    severity: Severity::Warning,
    title: "a list names all its siblings and leaves one out",
    page: page!("d3_left_out.rs"),
    check,
};

/// How many siblings it takes to make a pattern.
const ENOUGH: usize = 3;
/// How many it takes to be sure of one.
const MANY: usize = 5;
/// What lies beside services but is none.
const NO_SERVICES: [&str; 13] = [
    "common", "shared", "lib", "library", "base", "local", "test", "tests", "docs", "tools", "template",
    "example", "examples",
];

fn check(context: &Context<'_>, report: &mut Report) {
    for set in &context.survey.sets {
        of_set(context, set, report);
        if let Some(finding) = of_directories(context, set) {
            report.add(finding);
        }
    }
    let listed_by_flux = FluxListings::from_survey(context.survey);
    for file in context.survey.files.paths().filter(|path| FILE_NAMES.contains(&base_name(path))) {
        // One file is told of once.
        let told = of_kustomization(context, file);
        let beside = beside_all(context, file, &listed_by_flux);
        let is_told = |finding: &Finding| told.as_ref().is_some_and(|told| is_of_one_file(told, finding));
        let beside = beside.filter(|finding| !is_told(finding));
        told.into_iter().chain(beside).for_each(|finding| report.add(finding));
        of_generators(context, file, report);
    }
}

/// Numbered files of a folder that a generator does not name, though it names all that come before them.
fn of_generators(context: &Context<'_>, file: &str, report: &mut Report) {
    let survey = context.survey;
    let Some(content) = survey.files.value(file) else { return };
    let folder = parent(file).unwrap_or_default();
    for generator in list(&content, "configMapGenerator").iter().chain(list(&content, "secretGenerator")) {
        let entries = list(generator, "files").iter().filter_map(Value::as_str);
        // An entry may give the key first.
        let paths = entries.map(|entry| entry.split_once('=').map_or(entry, |(_, path)| path));
        let named: BTreeSet<String> = paths.filter_map(|path| tiphys_vfs::join(folder, path).ok()).collect();
        if let Some((first, others)) = following(survey, &named) {
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            let diagnostic = RULE
                .diagnostic(format!("{file} lists the numbered files of a folder up to {first}, and not that one{more}"))
                .at(survey.files.span(&Location::new(file, 1, 0)), "what is not listed here is not in the ConfigMap")
                .see(survey.files.span(&Location::new(first.clone(), 1, 0)), "this one comes next")
                .because("a generator takes the files that it names; whatever runs them in their order never sees the others")
                .help(format!("add {} to the files of {}", base_name(&first), text(generator, "name")));
            report.add(Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

/// The first file of a series that goes on where what is named ends, and how many come after it.
fn following(survey: &Survey, named: &BTreeSet<String>) -> Option<(String, usize)> {
    const FEWEST: usize = 2;
    let numbered: Vec<(&str, u32, &str)> = named.iter().filter_map(|path| number_of(path)).collect();
    let (folder, _, ending) = *numbered.first()?;
    let last = numbered.iter().map(|(_, number, _)| *number).max()?;
    let is_one_series = numbered.iter().all(|(of, _, with)| *of == folder && *with == ending);
    if numbered.len() < FEWEST || !is_one_series {
        return None;
    }
    let entries = survey.files.tree().read_dir(folder).unwrap_or_default();
    let all: Vec<String> =
        entries.iter().filter_map(|entry| tiphys_vfs::join(folder, &entry.name).ok()).collect();
    let series: Vec<(u32, &String)> = all
        .iter()
        .filter_map(|path| number_of(path).filter(|it| it.2 == ending).map(|it| (it.1, path)))
        .collect();
    // Who leaves one out on the way has a reason.
    let is_whole = series.iter().all(|(number, path)| *number > last || named.contains(*path));
    let mut next: Vec<&(u32, &String)> = series.iter().filter(|(number, _)| *number > last).collect();
    next.sort();
    let first = next.first().filter(|(number, _)| is_whole && *number == last + 1)?;
    Some((first.1.clone(), next.len() - 1))
}

/// The folder of a file, the number that its name begins with, and its ending.
fn number_of(path: &str) -> Option<(&str, u32, &str)> {
    const FEWEST_DIGITS: usize = 2;
    let name = base_name(path);
    let (stem, ending) = name.rsplit_once('.')?;
    let digits = stem.find(|c: char| !c.is_ascii_digit())?;
    let number = stem.get(..digits).filter(|it| it.len() >= FEWEST_DIGITS)?.parse().ok()?;
    Some((parent(path)?, number, ending))
}

fn is_of_one_file(one: &Finding, other: &Finding) -> bool {
    let file = |of: &Finding| of.diagnostic.primary.as_ref().map(|label| label.span.file.clone());
    file(one) == file(other)
}

/// The one object beside a kustomization of an Application that it does not name, while it names all others.
fn beside_all(context: &Context<'_>, file: &str, listed_by_flux: &FluxListings) -> Option<Finding> {
    // Files for people, and for another day.
    const WORDS: [&str; 16] = [
        "example", "sample", "test", "patch", "values", "old", "bak", "backup", "disabled", "template",
        "local", "dev", "unused", "draft", "debug", "manual",
    ];
    // What people apply by hand, once; an Application often lies beside what it deploys.
    const BY_HAND: [&str; 8] = [
        "argoproj.io/Application",
        "argoproj.io/ApplicationSet",
        "/Secret",
        "/Pod",
        "/Namespace",
        "batch/Job",
        "apiextensions.k8s.io/CustomResourceDefinition",
        "config.kubernetes.io/Kustomization",
    ];
    let survey = context.survey;
    let apps = || survey.apps.iter().chain(survey.flux.iter().flat_map(|flux| &flux.apps));
    let is_built = apps().any(|app| app.read.contains(file));
    let text = survey.files.text(file).filter(|_| is_built)?;
    let content = survey.files.value(file)?;
    let folder = parent(file).unwrap_or_default();
    let named = named_beside(survey, folder, &content);
    let is_by_habit = named > 0 && named < ENOUGH && listed_by_flux.is_habit(file);
    if (named < ENOUGH && !is_by_habit) || content.str_at(&["kind"]) == Some("Component") {
        return None;
    }
    let beside = unnamed_beside(survey, folder, &text);
    let [path] = &beside[..] else { return None };
    let name = base_name(path);
    let is_aside =
        name.split(['.', '-', '_']).any(|word| WORDS.contains(&word)) || name.starts_with(['.', '_']);
    let kind = kind_of(survey, path).filter(|kind| !BY_HAND.contains(&kind.as_str()) && !is_aside)?;
    // To leave one of those out is how people put an application away.
    const SWITCHED: [&str; 2] =
        ["kustomize.toolkit.fluxcd.io/Kustomization", "helm.toolkit.fluxcd.io/HelmRelease"];
    if is_by_habit && SWITCHED.contains(&kind.as_str()) {
        return None;
    }
    // A Kustomization of Flux that builds this very folder is for who applies it from above.
    let builds_folder = |object: &Object| {
        let path = object.value().str_at(&["spec", "path"]).unwrap_or_default();
        object.key.group == "kustomize.toolkit.fluxcd.io"
            && path.trim_start_matches("./").trim_end_matches('/') == folder
    };
    let is_rendered = |title: &str| {
        survey
            .objects
            .iter()
            .any(|it| it.rendered.location.file.as_ref() != path.as_str() && it.title() == title)
    };
    let object = survey.objects.iter().find(|it| it.rendered.location.file.as_ref() == path.as_str());
    if apps().any(|app| app.read.contains(path.as_str()))
        || is_for_others(&kind) && !is_named_elsewhere(survey, path, object)
        || ["builtin", "viaduct.ai"].iter().any(|group| kind.starts_with(group))
        || object.is_none_or(|object| {
            is_rendered(&object.title())
                || builds_folder(object)
                || placeholders::has_placeholder(object.value())
        })
        || unused_files::is_git_ignored(&survey.files, path)
        || unused_files::is_in_unused_folder(path)
        || is_spoken_of(survey, file, path)
    {
        return None;
    }
    let kind = kind.rsplit('/').next().unwrap_or(&kind);
    let others = if named == 1 { "one file".to_owned() } else { format!("{named} files") };
    let mut diagnostic = RULE
        .diagnostic(format!("{file} names the {others} beside it, and not {name} ({kind})"))
        .at(survey.files.span(&Location::new(path.clone(), 1, 0)), "nothing applies this")
        .see(survey.files.span(&Location::new(file, 1, 0)), "the files beside it are listed here")
        .because("a kustomization takes what it names; of what else lies in its folder it takes no notice")
        .help(format!("add {name} to the resources, or remove the file"));
    // Where few are named, one may well be for another day.
    if named < MANY {
        diagnostic.severity = Severity::Info;
    }
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

/// How many files of its own folder a kustomization has among its resources.
fn named_beside(survey: &Survey, folder: &str, kustomization: &Value) -> usize {
    let is_here = |entry: &str| {
        tiphys_vfs::join(folder, entry)
            .is_ok_and(|path| parent(&path).unwrap_or_default() == folder && survey.files.contains(&path))
    };
    list(kustomization, "resources").iter().filter_map(Value::as_str).filter(|it| is_here(it)).count()
}

/// The manifests of a folder of which the text of its kustomization does not speak.
fn unnamed_beside(survey: &Survey, folder: &str, text: &str) -> Vec<String> {
    let entries = survey.files.tree().read_dir(folder).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| tiphys_vfs::join(folder, &entry.name).ok())
        .filter(|path| path.ends_with(".yaml") || path.ends_with(".yml"))
        .filter(|path| !FILE_NAMES.contains(&base_name(path)) && !text.contains(base_name(path)))
        .collect()
}

/// The kustomizations that Flux builds, and whether they name all files beside them as a rule: then one that
/// is not named was forgotten, even where it has but one sibling.
struct FluxListings {
    files: BTreeSet<String>,
    whole: usize,
}

impl FluxListings {
    fn from_survey(survey: &Survey) -> Self {
        let mut found = Self { files: BTreeSet::new(), whole: 0 };
        let read = survey.flux.iter().flat_map(|flux| &flux.apps).flat_map(|app| app.read.iter());
        for file in read.filter(|path| FILE_NAMES.contains(&base_name(path))) {
            let (Some(text), Some(content)) = (survey.files.text(file), survey.files.value(file)) else {
                continue;
            };
            let folder = parent(file).unwrap_or_default();
            if named_beside(survey, folder, &content) > 0 && found.files.insert(file.to_string()) {
                found.whole += usize::from(unnamed_beside(survey, folder, &text).is_empty());
            }
        }
        found
    }

    /// Whether a kustomization is one of many of which all but a few name everything beside them.
    fn is_habit(&self, file: &str) -> bool {
        const FEWEST: usize = 8;
        let all = self.files.len();
        self.files.contains(file) && all >= FEWEST && self.whole * 10 >= all * 9
    }
}

/// Whether a kind is nothing without others that name it: a source of charts, what makes a Secret.
fn is_for_others(kind: &str) -> bool {
    kind.starts_with("source.toolkit.fluxcd.io/")
        || ["/SealedSecret", "/ExternalSecret"].iter().any(|end| kind.ends_with(end))
}

/// Whether another file says the name of an object.
fn is_named_elsewhere(survey: &Survey, path: &str, object: Option<&Object>) -> bool {
    let name = object.map(|it| it.key.name.as_str()).unwrap_or_default();
    let mut others = survey.files.paths().filter(|it| it.as_ref() != path);
    !name.is_empty()
        && others.any(|other| {
            let ends = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.' | '/');
            let text = survey.files.text(other).unwrap_or_else(|| "".into());
            text.contains(name) && text.split(ends).any(|word| word == name)
        })
}

/// Whether another file of the folder, or one anywhere with the folder's name, speaks of a file: a script
/// that applies it.
fn is_spoken_of(survey: &Survey, kustomization: &str, path: &str) -> bool {
    let (name, folder) = (base_name(path), parent(path).unwrap_or_default());
    let full = format!("{}/{name}", base_name(folder));
    let others = survey.files.paths().filter(|it| it.as_ref() != kustomization && it.as_ref() != path);
    others.into_iter().any(|other| {
        let is_beside = parent(other).unwrap_or_default() == folder;
        survey.files.text(other).is_some_and(|text| text.contains(if is_beside { name } else { &full }))
    })
}

/// Folders beside those that an ApplicationSet lists.
fn of_set(context: &Context<'_>, set: &Set, report: &mut Report) {
    let survey = context.survey;
    let Some(field) = list_elements_path(&set.declared.value).filter(|_| !set.symbolic && !set.unseen) else {
        return;
    };
    let paths: BTreeSet<String> = set.apps.iter().filter_map(|id| path_of(survey, *id)).collect();
    let Some((place, names)) = varying(&paths).filter(|(_, names)| names.len() >= ENOUGH) else { return };
    let Some(like) = paths.first().map(|path| path.split('/').collect::<Vec<_>>()) else { return };
    let file = &set.declared.location.file;
    let text = survey.files.text(file).unwrap_or_else(|| "".into());
    // What does not build, as an empty kustomization, nobody would list.
    let builds = |unit: &&Unit| !matches!(unit.outcome, Outcome::Failed(_));
    let units = survey.units.iter().filter(|unit| unit.kind != UnitKind::Manifest).filter(builds);
    let left_out: BTreeSet<&str> = units
        .filter_map(|unit| {
            let steps: Vec<&str> = unit.path.split('/').collect();
            let name = *steps.get(place)?;
            let is_beside = steps.len() == like.len()
                && steps.iter().zip(&like).enumerate().all(|(at, (one, other))| at == place || one == other);
            let is_open = !names.contains(name) && !NO_SERVICES.contains(&name) && !text.contains(name);
            (is_beside && is_open && !unused_files::is_in_unused_folder(&unit.path)).then_some(name)
        })
        .collect();
    // Who leaves several out does so on purpose.
    let [name] = left_out.into_iter().collect::<Vec<_>>()[..] else { return };
    let title = set.declared.value.name();
    let mut path: Vec<&str> = like.clone();
    path[place] = name;
    let diagnostic = RULE
        .diagnostic(format!(
            "ApplicationSet {title} lists {} folders like {}, and not that one",
            names.len(),
            path.join("/")
        ))
        .at(declared_span(&survey.files, &set.declared, &field), "what is not listed here is not deployed")
        .because("no Application is made for it, and nothing fails")
        .help(format!("add {name} to the list, or let a git generator find the folders"));
    report.add(Finding::new(RULE.incident, diagnostic).likely());
}

/// The one folder beside those that a git generator names one by one.
fn of_directories(context: &Context<'_>, set: &Set) -> Option<Finding> {
    let survey = context.survey;
    let generators = list(&set.declared.value["spec"], "generators");
    let git = generators.iter().position(|it| it.get("git").is_some())?;
    let entries = list(&generators[git]["git"], "directories");
    let path = |entry: &Value| Some(entry.str_at(&["path"])?.trim_matches('/').to_owned());
    let paths: Vec<String> = entries.iter().filter_map(path).collect();
    let is_listed = |entry: &&Value| entry.get("exclude").and_then(Value::as_bool) != Some(true);
    let listed: BTreeSet<String> = entries.iter().filter(is_listed).filter_map(path).collect();
    let above: BTreeSet<&str> = listed.iter().filter_map(|it| parent(it)).collect();
    let [above] = above.into_iter().collect::<Vec<_>>()[..] else { return None };
    let is_plain = |path: &String| !path.contains(['*', '?', '[', '{']) && survey.files.has_folder(path);
    if listed.len() < MANY || generators.len() != 1 || !listed.iter().all(is_plain) {
        return None;
    }
    let file = &set.declared.location.file;
    let text = survey.files.text(file)?;
    let kind = |path: &str| {
        ["kustomization.yaml", "kustomization.yml", "Chart.yaml"]
            .iter()
            .any(|it| survey.files.contains(&format!("{path}/{it}")))
    };
    let entries = survey.files.tree().read_dir(above).unwrap_or_default();
    let left_out: Vec<String> = entries
        .iter()
        .filter_map(|entry| tiphys_vfs::join(above, &entry.name).ok())
        .filter(|it| survey.files.has_folder(it) && !paths.contains(it) && kind(it))
        .filter(|it| !NO_SERVICES.contains(&base_name(it)) && !text.contains(base_name(it)))
        .filter(|it| !unused_files::is_in_unused_folder(&format!("{it}/kustomization.yaml")))
        .filter(|it| {
            !survey.apps.iter().any(|app| app.read.iter().any(|read| tiphys_vfs::is_below(read, it)))
        })
        .collect();
    let [folder] = &left_out[..] else { return None };
    let field = FieldPath::default().key("spec").key("generators").index(git).key("git").key("directories");
    let title = set.declared.value.name();
    let diagnostic = RULE
        .diagnostic(format!(
            "ApplicationSet {title} names {} folders beside {folder}, and not that one",
            listed.len()
        ))
        .at(declared_span(&survey.files, &set.declared, &field), "what is not named here is not deployed")
        .because("no Application is made for it, and nothing fails")
        .help(format!("add {folder}, or name {above}/* and leave out what is not meant"));
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

/// Where the elements of an ApplicationSet's only generator, a list, are; nothing if another one takes part.
fn list_elements_path(set: &Value) -> Option<FieldPath> {
    let generators = list(&set["spec"], "generators");
    let [only] = generators else { return None };
    let elements = only.at(&["list", "elements"]).and_then(Value::as_array)?;
    let path = FieldPath::default().key("spec").key("generators").index(0);
    (!elements.is_empty() && only.get("selector").is_none()).then(|| path.key("list").key("elements"))
}

fn path_of(survey: &Survey, id: tiphys_graph::AppId) -> Option<String> {
    let sources = survey.app(id).application.spec.effective_sources();
    let path = sources.iter().map(|source| source.path.trim_matches('/')).find(|path| !path.is_empty())?;
    (!placeholders::is_in(path)).then(|| path.trim_start_matches("./").to_owned())
}

/// The one step in which paths of one length differ, and what stands there.
fn varying(paths: &BTreeSet<String>) -> Option<(usize, BTreeSet<&str>)> {
    let all: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let first = all.first()?;
    if all.iter().any(|path| path.len() != first.len()) {
        return None;
    }
    let mut places = (0..first.len()).filter(|at| all.iter().any(|path| path[*at] != first[*at]));
    let place = places.next()?;
    places.next().is_none().then(|| (place, all.iter().map(|path| path[place]).collect()))
}

/// Files like those that a kustomization lists, all of one kind: beside them, or in folders beside theirs.
fn of_kustomization(context: &Context<'_>, file: &str) -> Option<Finding> {
    // Not those of Flux: to leave one out is how people there put an application away.
    const KINDS: [&str; 4] =
        ["argoproj.io/Application", "argoproj.io/ApplicationSet", "argoproj.io/AppProject", "/Namespace"];
    let survey = context.survey;
    let text = survey.files.text(file)?;
    let content = survey.files.value(file)?;
    let folder = parent(file).unwrap_or_default();
    let beside =
        |entry: &str| tiphys_vfs::join(folder, entry).ok().filter(|path| survey.files.contains(path));
    let named: BTreeSet<String> =
        list(&content, "resources").iter().filter_map(|it| beside(it.as_str()?)).collect();
    let (place, words) = varying(&named)?;
    let like = named.first().map(|path| path.split('/').collect::<Vec<_>>())?;
    let kinds: Vec<Option<String>> = named.iter().map(|path| kind_of(survey, path)).collect();
    let [Some(kind), ..] = &kinds[..] else { return None };
    let is_of_one_kind = kinds.iter().all(|it| it.as_ref() == Some(kind));
    if kinds.len() < MANY || !is_of_one_kind || !KINDS.contains(&kind.as_str()) {
        return None;
    }
    let is_alike = |path: &&str| {
        let steps: Vec<&str> = path.split('/').collect();
        steps.len() == like.len()
            && steps.iter().zip(&like).enumerate().all(|(at, (one, other))| at == place || one == other)
            && !words.contains(steps[place])
    };
    let is_open = |path: &&str| {
        let word = path.split('/').nth(place).unwrap_or_default();
        !text.contains(word.trim_end_matches(".yaml").trim_end_matches(".yml"))
            && kind_of(survey, path).as_ref() == Some(kind)
            && !survey.apps.iter().any(|app| app.read.contains(*path))
            && !unused_files::is_git_ignored(&survey.files, path)
            && !unused_files::is_in_unused_folder(path)
    };
    let beside = survey.files.ending(&[".yaml", ".yml"]).map(AsRef::as_ref).filter(is_alike);
    let left: Vec<&str> = beside.filter(is_open).collect();
    // Of many, two may be forgotten together.
    if left.len() > 1 + named.len() / (2 * MANY) || left.len() > 2 {
        return None;
    }
    let path = *left.first()?;
    let all = left.join(" and ");
    let kind = kind.rsplit('/').next().unwrap_or(kind);
    let diagnostic = RULE
        .diagnostic(format!("{file} lists {} files of kind {kind}, and not {all}", named.len()))
        .at(survey.files.span(&Location::new(path, 1, 0)), "nothing applies this")
        .see(survey.files.span(&Location::new(file, 1, 0)), "the files beside it are listed here")
        .because("a kustomization takes what it names; of what else lies in its folder it takes no notice")
        .help(format!(
            "add {} to the resources",
            path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/')
        ));
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

/// The group and kind of a file with one object: `argoproj.io/Application`, `/Namespace`.
fn kind_of(survey: &Survey, path: &str) -> Option<String> {
    let text = survey.files.text(path).filter(|_| survey.files.contains(path))?;
    if text.trim_start_matches("---").contains("\n---\n") {
        return None;
    }
    let content = survey.files.value(path)?;
    let group = content.str_at(&["apiVersion"])?.rsplit_once('/').map_or("", |(group, _)| group);
    content.str_at(&["kind"]).map(|kind| format!("{group}/{kind}"))
}
