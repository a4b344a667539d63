//! Variables of Flux that a component asks for, and that one of the Kustomizations which build it does not
//! give, while the others give it themselves. That says enough where it is not seen what else gives
//! variables.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::LazyLock,
};

use regex::Regex;
use tiphys_graph::{Files, Object, Survey, is_of_flux, unused_folders};
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::{EntryKind, join};

use super::d2_unset_variable::RULE;
use crate::{
    Context, Finding,
    support::{field_paths::keys, pods::list},
};

/// A variable without a default, which is no text of a script: `${NAME}`, and not `$${NAME}`.
static REQUIRED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^$])\$\{([A-Za-z_][A-Za-z0-9_]*)\}").expect("the pattern is well formed")
});

/// How many have to give a variable themselves, and how many times as many as do not.
const FEWEST_GIVERS: usize = 3;
const TIMES: usize = 4;

/// What is told of each Kustomization and variable.
pub(super) fn findings(context: &Context<'_>, given: &BTreeSet<&str>) -> Vec<(String, Finding)> {
    let survey = context.survey;
    let known = told_otherwise(survey);
    let mut found = Vec::new();
    for (component, users) in users_of_components(survey) {
        for variable in required(&survey.files, &component).iter().filter(|it| !given.contains(it.as_str())) {
            let (givers, others): (Vec<&Object>, Vec<&Object>) =
                users.iter().copied().partition(|it| gives(it, variable));
            if givers.len() < FEWEST_GIVERS || others.len() * TIMES > givers.len() {
                continue;
            }
            // What one takes from elsewhere may give it.
            let lacks = |it: &&&Object| {
                it.value().at(&["spec", "postBuild", "substitute"]).is_some_and(Value::is_object)
                    && it.value().at(&["spec", "postBuild", "substituteFrom"]).is_none()
            };
            for object in others.iter().filter(lacks) {
                if !known.contains(&(object.rendered.location.file.as_ref(), variable.as_str())) {
                    let finding = finding(context, object, (variable, &component), givers.len());
                    found.push((variable.clone(), finding));
                }
            }
        }
    }
    found
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    (variable, component): (&str, &str),
    givers: usize,
) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!(
            "{} gives no value to {variable}, which component {component} asks for",
            object.title()
        ))
        .at(
            context.survey.span(object, &keys(&["spec", "postBuild", "substitute"])),
            format!("{givers} others that build the component give it here"),
        )
        .because("Flux replaces all variables of what it builds; those that it does not know become empty")
        .help(format!("give {variable} a value, or write a default in the component: ${{{variable}:=…}}"));
    RULE.finding(context, object, diagnostic).likely()
}

/// The files of Kustomizations, each with a variable that is known to be unset there.
fn told_otherwise(survey: &Survey) -> HashSet<(&str, &str)> {
    let Some(flux) = survey.flux.as_deref() else { return HashSet::new() };
    let file = |app| flux.app(app).declared.location.file.as_ref();
    flux.unset_variables.iter().map(|it| (file(it.app), it.name.as_str())).collect()
}

/// The folders of components, each with the Kustomizations of Flux that build it.
fn users_of_components(survey: &Survey) -> BTreeMap<String, Vec<&Object>> {
    let mut found: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
    let is_used = |it: &&Object| {
        is_of_flux(it.value()) && unused_folders::put_away(&it.rendered.location.file).is_none()
    };
    for object in survey.objects.iter().filter(is_used) {
        let Some(folder) = survey.flux_sources.folder(object.value()) else { continue };
        let named = list(&object.value()["spec"], "components").iter().filter_map(Value::as_str);
        for component in named.filter_map(|it| join(&folder, it).ok()) {
            found.entry(component).or_default().push(object);
        }
    }
    found
}

fn gives(object: &Object, variable: &str) -> bool {
    object.value().at(&["spec", "postBuild", "substitute", variable]).is_some()
}

/// The variables that the manifests of a folder cannot do without.
fn required(files: &Files, folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in files.tree().read_dir(folder).unwrap_or_default() {
        let path = format!("{folder}/{}", entry.name);
        if entry.kind != EntryKind::File {
            continue;
        }
        let text = files.text(&path).unwrap_or_else(|| "".into());
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let names = lines.flat_map(|line| REQUIRED.captures_iter(line)).filter_map(|it| it.get(1));
        found.extend(names.map(|name| name.as_str().to_owned()));
    }
    found
}
