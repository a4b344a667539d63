//! # A service lacks what all its siblings have
//!
//! Services that lie side by side are deployed in the same way: code, manifests, an Application, an entry in
//! the pipeline. Whoever adds one has to touch each of those places; what is forgotten is reported by
//! nothing, since nothing fails: the service is just never built, or never deployed.
//!
//! People see: nothing at all, until someone asks where the service is.
//!
//! ## Bad
//! `services/{auth,chat,scan,ops}`, an Application for each of `auth`, `chat` and `scan`, none for `ops`.
//! ## Good
//! One for each; or an ApplicationSet that finds the folders itself.
//!
//! ## When to suppress
//! Where the service is not meant to run, or not meant to run here.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, Span};
use tiphys_graph::{Survey, tools::docker};
use tiphys_vfs::parent;

use crate::{Context, Finding, Report, Rule, support::pods};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D3-incomplete-registration",
    incident: "D3",
    severity: Severity::Warning,
    title: "a service lacks what all its siblings have",
    page: page!("d3_incomplete_registration.rs"),
    check,
};

/// How many siblings it takes to make a pattern.
const ENOUGH: usize = 3;
/// What lies beside services but is none.
const NO_SERVICES: [&str; 16] = [
    "common", "shared", "lib", "libs", "base", "test", "tests", "e2e", "docs", "scripts", "tools", "proto",
    "library", "template", "example", "examples",
];

/// A place where services are registered, with those that are.
struct RegistrationPoint<'a> {
    /// What a service that is not there lacks.
    name: &'static str,
    /// Whether a service is listed there.
    lists: Box<dyn Fn(&str) -> bool + 'a>,
    /// Whether it may be there: what speaks of a service in any way may be what registers it.
    has: Box<dyn Fn(&str) -> bool + 'a>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut told: BTreeSet<String> = BTreeSet::new();
    for (folder, mut services) in families(survey) {
        // What has no manifests is deployed in another way, if at all.
        let manifests = manifests(survey, &folder);
        services.retain(|name, _| manifests.contains(name.as_str()));
        if services.len() <= ENOUGH {
            continue;
        }
        let mut lacking: BTreeMap<&str, Vec<(&'static str, usize)>> = BTreeMap::new();
        for place in places(survey, &folder) {
            let names = || services.keys().map(String::as_str);
            let there = names().filter(|name| (place.lists)(name)).count();
            let absent: Vec<&str> = names().filter(|name| !(place.has)(name)).collect();
            if there >= ENOUGH && absent.len() * 3 <= there {
                for name in absent {
                    lacking.entry(name).or_default().push((place.name, there));
                }
            }
        }
        for (name, missing) in lacking {
            if let Some(file) = services.get(name) {
                report.add(finding(survey, &folder, name, file, &missing));
                told.insert(name.to_owned());
            }
        }
    }
    charts(survey, &told, report);
}

/// Charts side by side of which all but one have an Application of their own, and nothing else speaks of that
/// one.
fn charts(survey: &Survey, told: &BTreeSet<String>, report: &mut Report) {
    let mut families: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for path in survey.files.paths() {
        let Some(folder) = path.strip_suffix("/Chart.yaml") else { continue };
        let Some((family, name)) = folder.rsplit_once('/') else { continue };
        if !NO_SERVICES.contains(&name) && !path.contains("/charts/") {
            families.entry(family).or_default().insert(name, path);
        }
    }
    let sources: BTreeSet<String> = survey
        .apps
        .iter()
        .flat_map(|app| app.application.spec.effective_sources())
        .map(|source| source.path.trim_start_matches("./").trim_end_matches('/').to_owned())
        .collect();
    for (folder, services) in families {
        let has = |name: &&&str| sources.contains(&format!("{folder}/{name}"));
        let (there, absent): (Vec<&&str>, Vec<&&str>) = services.keys().partition(has);
        let [name] = absent[..] else { continue };
        let Some(file) = services.get(name).filter(|_| there.len() >= ENOUGH) else { continue };
        let own = format!("{folder}/{name}/");
        let speaks = |path: &&std::sync::Arc<str>| {
            !path.starts_with(&own) && survey.files.text(path).is_some_and(|text| is_word(&text, name))
        };
        let is_library = survey.files.text(file).is_some_and(|text| text.contains("type: library"));
        if !is_library && !told.contains(*name) && !survey.files.paths().any(|path| speaks(&path)) {
            report.add(finding(survey, folder, name, file, &[("Application", there.len())]));
        }
    }
}

fn finding(
    survey: &Survey,
    folder: &str,
    name: &str,
    file: &str,
    missing: &[(&'static str, usize)],
) -> Finding {
    let words: Vec<&str> = missing.iter().map(|(what, _)| *what).collect();
    let count = missing.iter().map(|(_, count)| *count).min().unwrap_or_default();
    let message =
        format!("{name} has no {}, though {count} of its siblings in {folder} have", words.join(" and no "));
    let span: Span = survey.files.span(&tiphys_value::Location::new(file, 1, 0));
    let diagnostic = RULE
        .diagnostic(message)
        .at(span, "this is of a service that is registered only in part")
        .because("each place where services are listed has to be told of a new one; what is not listed is neither built nor deployed, and nothing fails")
        .help(format!("add {name} wherever its siblings are named"));
    Finding::new(RULE.incident, diagnostic).likely()
}

/// Folders whose children are services: each with a Dockerfile of its own.
fn families(survey: &Survey) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut families: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for path in survey.files.paths().filter(|path| path.rsplit('/').next() == Some("Dockerfile")) {
        let mut service = parent(path).unwrap_or_default();
        // `services/auth/docker/Dockerfile` is auth's.
        if matches!(service.rsplit('/').next(), Some("docker" | "build" | "deploy")) {
            service = parent(service).unwrap_or_default();
        }
        let (Some(family), Some(name)) = (parent(service), service.rsplit('/').next()) else { continue };
        if !family.is_empty()
            && !name.is_empty()
            && !NO_SERVICES.contains(&name)
            && docker::is_dockerfile(path)
        {
            families.entry(family.to_owned()).or_default().insert(name.to_owned(), path.to_string());
        }
    }
    families
}

/// The names of the folders that charts, kustomizations and manifests lie in, but for those beside the code.
fn manifests<'a>(survey: &'a Survey, folder: &str) -> BTreeSet<&'a str> {
    // Where Applications deploy from beside the code, what lies there counts.
    let own = format!("{folder}/");
    let sources = survey.apps.iter().flat_map(|app| app.application.spec.effective_sources());
    let own_sources: BTreeSet<String> =
        sources.map(|source| source.path).filter(|path| path.starts_with(&own)).collect();
    let own = if own_sources.len() < ENOUGH { own } else { "/".to_owned() };
    let is_mark = |name: &str| name == "Chart.yaml" || tiphys_kustomize::FILE_NAMES.contains(&name);
    let all =
        survey.files.paths().filter(|path| is_mark(tiphys_vfs::base_name(path)) && !path.starts_with(&own));
    let workloads = survey.objects.iter().filter(|object| pods::pod_of(object).is_some());
    let plain = workloads.map(|object| object.rendered.location.file.as_ref());
    let folders = all.map(AsRef::as_ref).chain(plain.filter(|path| !path.starts_with(&own)));
    folders.flat_map(|path| parent(path).unwrap_or_default().split('/')).collect()
}

/// The places where services may be registered.
fn places<'a>(survey: &'a Survey, folder: &str) -> Vec<RegistrationPoint<'a>> {
    let mut apps: BTreeSet<String> = BTreeSet::new();
    for app in &survey.apps {
        apps.insert(app.name().to_owned());
        let spec = &app.application.spec;
        for source in spec.source.iter().chain(&spec.sources) {
            apps.extend(source.path.split('/').map(str::to_owned));
        }
    }
    let texts: Vec<_> =
        survey.tools().pipelines.iter().filter_map(|pipeline| survey.files.text(&pipeline.file)).collect();
    let mut places = vec![RegistrationPoint {
        name: "Application",
        lists: Box::new({
            let apps = apps.clone();
            move |name| apps.iter().any(|app| is_word(app, name))
        }),
        has: Box::new(move |name| apps.iter().any(|app| is_word(app, name))),
    }];
    // A pipeline that looks for the folders when it runs needs no list.
    if !texts.iter().any(|text| finds_folders(text, folder)) {
        let folder = folder.to_owned();
        places.push(RegistrationPoint {
            name: "entry in the pipelines",
            lists: Box::new({
                let texts = texts.clone();
                move |name| texts.iter().any(|text| has_entry(text, &folder, name))
            }),
            has: Box::new(move |name| texts.iter().any(|text| is_word(text, name))),
        });
    }
    places
}

/// Whether a pipeline finds the folders below one when it runs: by a pattern, or by a program that lists.
fn finds_folders(text: &str, folder: &str) -> bool {
    let pattern = format!("{folder}/*");
    // `- services/**` is what a workflow starts on.
    let is_filter = |line: &str| {
        let item = line.trim().strip_prefix("- ").unwrap_or_default();
        item.trim_start_matches(['\'', '"', '!']).starts_with(&pattern)
    };
    let is_listing = |line: &str| {
        if line.contains(&pattern) && !is_filter(line) {
            return true;
        }
        let has_folder = is_word(line, folder);
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
        has_folder && words.any(|word| matches!(word, "ls" | "find" | "fd" | "readdir" | "listdir" | "tree"))
    };
    text.lines().any(is_listing)
}

/// Whether a pipeline has a name as an entry: the item of a list, a key, the value of one, or the last step
/// of the folder's path. A word in a sentence, or in the name of something else, is none.
fn has_entry(text: &str, folder: &str, name: &str) -> bool {
    let path = format!("{folder}/{name}");
    let is_entry = |line: &str| {
        let line = line.trim();
        if line.starts_with('#') {
            return false;
        }
        let item = line.trim_start_matches("- ");
        let parts = item.split([',', ' ', ':', '[', ']', '\'', '"']).filter(|part| !part.is_empty());
        let parts: Vec<&str> = parts.collect();
        let is_short = parts.len() <= 2 || item.contains('[');
        is_word(line, &path) || (is_short && parts.contains(&name))
    };
    text.lines().any(is_entry)
}

/// Whether a name stands in a text, not as part of a longer word. A suffix such as `-prod` makes no longer
/// word.
fn is_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        ends(before) && ends(after)
    })
}
