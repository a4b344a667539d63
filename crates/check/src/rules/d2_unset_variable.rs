//! # A variable of Flux that becomes nothing
//!
//! A Kustomization of Flux with `postBuild` puts values in place of `${NAME}` in all that it builds. A name
//! that neither `substitute` nor what `substituteFrom` names gives a value becomes an empty text, without a
//! word: a claim is called `-data`, an address has no host, a label is empty.
//!
//! People see: `metadata.name: Invalid value: "-data"`, `Required value`, or a program that asks an address
//! such as `https://.example.com`.
//!
//! The rule speaks where everything that gives variables is in the repository, of a container's own variables
//! in its script, and where nearly all who build
//! a component give a variable themselves. Scripts have variables of
//! their own: there `$NAME`, or `$${NAME}`, is left as it is. In other texts for programs it is an
//! information. `${1}`, the group of a pattern, is a name that no variable has: it becomes nothing wherever
//! the variables come from. `{$NAME}` is no variable at all, but a mapping of YAML: it is told, too. A
//! Kustomization without `postBuild` replaces nothing: that is told of names which others give themselves, or
//! that several others ask for with `substituteFrom`.
//!
//! ## Bad
//! ```yaml
//! kind: Kustomization
//! spec: {path: ./web, postBuild: {substitute: {APP: web}}}
//! ---
//! kind: PersistentVolumeClaim
//! metadata: {name: "${APP}", namespace: "${NS}"}       # nothing says what NS is
//! ```
//! ## Good
//! ```yaml
//! kind: Kustomization
//! spec: {path: ./web, postBuild: {substitute: {APP: web, NS: shop}}}
//! ```
//! ## When to suppress
//! Where the empty text is meant; `${NS:=}` says so.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::LazyLock,
};

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{Object, Survey, UnsetVariable, is_of_flux, survey::flux_variables};
use tiphys_value::{FieldPath, ObjectExt, Segment, Value};

use super::component_variables;
use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, unused_files, value_steps::each_text},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-unset-variable",
    incident: "D2",
    severity: Severity::Warning,
    title: "a variable of Flux that becomes nothing",
    page: page!("d2_unset_variable.rs"),
    check,
};

/// A name, in JSON or in YAML that stands in a text.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\bname\\?"?: ?\\?"?([A-Za-z0-9._-]+)"#).expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(flux) = context.survey.flux.as_deref() else { return };
    let given = given_somewhere(context.survey);
    let own = given_by_kustomizations(context.survey);
    let are_usual = are_given_by_each(context.survey);
    let asked = asked_elsewhere(flux);
    let mut by_field: BTreeMap<_, Vec<&UnsetVariable>> = BTreeMap::new();
    for unset in &flux.unset_variables {
        let file = &flux.app(unset.app).declared.location.file;
        let name = unset.name.as_str();
        // One that replaces no variables at all has forgotten it where others give this one themselves.
        let is_told = match unset.is_literal {
            true => {
                let object = flux.object(unset.object);
                let is_asked = asked.get(name).is_some_and(|files| files.len() >= ENOUGH);
                let is_given = own.contains(name) || are_usual && (given.contains(name) || is_asked);
                is_given && text_for_a_program(object, &unset.field).is_none()
            }
            false => !given.contains(name),
        };
        if is_told && !unused_files::is_in_unused_folder(file) && !placeholders::is_skeleton(file) {
            by_field.entry((unset.app, unset.object, &unset.field)).or_default().push(unset);
        }
    }
    // Where many replace nothing, something that is not seen may do it for all of them.
    let literal: BTreeSet<_> =
        by_field.values().flatten().filter(|it| it.is_literal).map(|it| it.app).collect();
    let is_for_each = literal.len() <= MOST_APART;
    let mut once = Once::default();
    for unset in by_field.values() {
        let first = unset[0];
        let finding = finding(flux, unset, flux.object(first.object));
        // What none gives is one slip, however many ask for it; else each Kustomization has its own.
        match unset[..] {
            [only] if only.is_literal && is_for_each && !own.contains(only.name.as_str()) => {
                once.add_by(format!("literal {}", flux.app(only.app).name()), finding);
            }
            [only] if only.is_literal && !own.contains(only.name.as_str()) => {
                once.add_by("literal".to_owned(), finding);
            }
            [only] if !own.contains(only.name.as_str()) => once.add_by(only.name.clone(), finding),
            _ => once.add(&first.name, finding),
        }
    }
    for (variable, finding) in component_variables::findings(context, &given) {
        once.add(&variable, finding);
    }
    for object in &flux.objects {
        each_exchanged(object.value(), &mut FieldPath::default(), &mut |path, text| {
            let what = format!("{{{text}}}");
            let diagnostic = RULE
                .diagnostic(format!("{} has {what}, a mapping in the place of a variable", object.title()))
                .at(flux.span(object, path), "a mapping with one key and no value")
                .because("Flux puts values in the place of `${NAME}` alone")
                .help(format!("write ${{{}}}", text.trim_start_matches('$')));
            let mut finding = Finding::new(RULE.incident, diagnostic).object(object.title());
            finding.app = flux.app_of(object).map(|app| app.name().to_owned());
            once.add(&what, finding);
        });
    }
    once.report(report);
}

/// What `{$NAME}` makes in the place of `${NAME}`: a mapping whose one key begins like a variable.
static EXCHANGED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\$[A-Za-z_][A-Za-z0-9_]*(?::?[-=].*)?$").expect("the pattern is well formed")
});

/// Calls back for each such mapping, with its place.
fn each_exchanged(value: &Value, path: &mut FieldPath, found: &mut dyn FnMut(&FieldPath, &str)) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                path.0.push(Segment::Index(at));
                each_exchanged(item, path, found);
                path.0.pop();
            }
        }
        Value::Object(map) => {
            if let Some((key, Value::Null)) = map.iter().next().filter(|_| map.len() == 1)
                && EXCHANGED.is_match(key)
            {
                found(path, key);
            }
            for (key, below) in map {
                path.0.push(Segment::Key(key.as_str().into()));
                each_exchanged(below, path, found);
                path.0.pop();
            }
        }
        _ => {}
    }
}

/// How many others make something usual.
const ENOUGH: usize = 3;

/// So many Kustomizations that replace nothing are each told of.
const MOST_APART: usize = 4;

/// The variables that are left in what Kustomizations with `substituteFrom` build, each with the files of
/// these: something that is not in the repository gives them.
fn asked_elsewhere(flux: &Survey) -> BTreeMap<String, BTreeSet<&str>> {
    let takes = |it: &&Object| {
        is_of_flux(it.value()) && it.value().at(&["spec", "postBuild", "substituteFrom"]).is_some()
    };
    let with: HashSet<(&str, &str)> = flux
        .objects
        .iter()
        .filter(takes)
        .map(|it| (it.rendered.location.file.as_ref(), it.key.name.as_str()))
        .collect();
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for app in &flux.apps {
        let file = app.declared.location.file.as_ref();
        if !with.contains(&(file, app.name())) {
            continue;
        }
        for object in flux.objects_of(app.id) {
            each_text(object.value(), &mut Vec::new(), &|_| true, &mut |_, text| {
                for name in flux_variables(text) {
                    found.entry(name.to_owned()).or_default().insert(file);
                }
            });
        }
    }
    found
}

/// Whether Kustomizations say themselves where their variables come from, and leave that to none above them.
fn are_given_by_each(survey: &Survey) -> bool {
    let of_flux = survey.objects.iter().filter(|it| is_of_flux(it.value()));
    of_flux.filter(|it| it.value().at(&["spec", "postBuild", "substituteFrom"]).is_some()).count() >= ENOUGH
}

/// The names that Kustomizations give values themselves.
fn given_by_kustomizations(survey: &Survey) -> BTreeSet<&str> {
    let of_flux = survey.objects.iter().filter(|it| is_of_flux(it.value()));
    let maps = of_flux.filter_map(|it| it.value().at(&["spec", "postBuild", "substitute"])?.as_object());
    maps.flat_map(|map| map.keys()).map(String::as_str).collect()
}

/// The names that maps and Secrets give which any Kustomization takes its variables from. One that is not
/// seen may add them to this one, too.
fn given_somewhere(survey: &Survey) -> BTreeSet<&str> {
    let of_flux = survey.objects.iter().filter(|it| is_of_flux(it.value()));
    let texts = of_flux.map(|it| it.value()["spec"].to_string()).filter(|it| it.contains("substituteFrom"));
    let texts: BTreeSet<String> = texts.collect();
    let names = texts.iter().flat_map(|text| NAME.captures_iter(text)).filter_map(|it| it.get(1));
    let names: BTreeSet<&str> = names.map(|name| name.as_str()).collect();
    let is_giver = |object: &&Object| {
        matches!(object.key.kind.as_str(), "ConfigMap" | "Secret") && names.contains(object.key.name.as_str())
    };
    let givers = survey.objects.iter().filter(is_giver);
    let maps = givers.flat_map(|it| ["data", "stringData"].map(|field| it.value().get(field)));
    let maps = maps.flatten().filter_map(Value::as_object);
    maps.flat_map(|map| map.keys()).map(String::as_str).collect()
}

fn finding(flux: &Survey, all: &[&UnsetVariable], object: &Object) -> Finding {
    let unset = all[0];
    let app = flux.app(unset.app);
    let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    let (what, name) = (if names.len() == 1 { "variable" } else { "variables" }, names.join(", "));
    let (effect, because) = match unset.is_literal {
        true => ("it stays as it is", "a Kustomization without postBuild replaces no variables"),
        false => (
            "Flux puts an empty text there",
            "with postBuild, Flux replaces all variables of what it builds; those that it does not know become empty",
        ),
    };
    let title = format!("{}/{}", object.key.kind, object.key.name);
    let used = flux.span(object, &unset.field);
    let declared = flux.app_span(app, &keys(&["metadata", "name"]));
    // What others build too is right there, so that this Kustomization lacks something.
    let is_shared = is_right_elsewhere(flux, unset, object);
    let (primary, label, other, seen) = match is_shared {
        true => (declared, "gives it no value", used, "asks for it"),
        false => (used, "asks for it", declared, "gives it no value"),
    };
    let is_number = names.iter().all(|name| name.chars().all(|c| c.is_ascii_digit()));
    let because = if is_number {
        "Flux takes it for a variable, and none has a number for its name: with postBuild it becomes empty"
    } else {
        because
    };
    let mut diagnostic = RULE
        .diagnostic(format!(
            "Kustomization {} gives the {what} {name} no value, and {title} asks for it: {effect}",
            app.name()
        ))
        .at(primary, label)
        .see(other, seen)
        .because(because);
    if !is_number {
        diagnostic = diagnostic.help(format!(
            "give it a value below postBuild.substitute, or write a default: ${{{}:=…}}",
            names[0]
        ));
    }
    if let Some(is_script) = text_for_a_program(object, &unset.field) {
        diagnostic = diagnostic
            .help(format!("a variable that the program itself fills in is written `$${{{}}}`", names[0]));
        let is_number = |name: &&str| name.chars().all(|c| c.is_ascii_digit());
        let text = unset.field.get(object.value()).and_then(Value::as_str).unwrap_or_default();
        let is_own = |name: &&str| text.contains(&format!("{name}="));
        if !is_script && !names.iter().any(|name| is_number(name) || is_own(name)) {
            diagnostic.severity = Severity::Info;
        }
    }
    Finding::new(RULE.incident, diagnostic).app(app.name()).object(title).likely()
}

/// Whether another Kustomization builds the same file and gives the variable a value.
fn is_right_elsewhere(flux: &Survey, unset: &UnsetVariable, object: &Object) -> bool {
    let file = &object.rendered.location.file;
    let without = flux.unset_variables.iter().filter(|it| it.name == unset.name).map(|it| it.app);
    let without: HashSet<_> = without.collect();
    flux.apps.iter().any(|app| !without.contains(&app.id) && app.read.contains(file))
}

/// Of a text that a program reads, whether it is a script.
fn text_for_a_program(object: &Object, field: &FieldPath) -> Option<bool> {
    let text = field.get(object.value()).and_then(Value::as_str)?;
    let is_command =
        field.0.iter().any(|step| matches!(step, Segment::Key(key) if key == "command" || key == "args"));
    let is_data = |step: &Segment| matches!(step, Segment::Key(key) if key == "data" || key == "stringData");
    let is_map =
        matches!(object.value().kind(), "ConfigMap" | "Secret") && field.0.first().is_some_and(is_data);
    let is_long = text.contains('\n');
    (is_command || is_map || is_long).then(|| is_command && is_long || text.starts_with("#!"))
}
