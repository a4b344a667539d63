//! # A line of Argo CD's access rules that cannot be read
//!
//! Argo CD's rules are lines of texts between commas: `p` with subject, resource, action, object and effect,
//! or `g` with user and role. A line of another length is no rule: Argo CD refuses the whole text, or does
//! not let anybody do what it was to allow. A resource that is misspelt is taken, and allows nothing.
//!
//! People see: `invalid RBAC policy: p, role:admin, applications, *, allow`, `invalid user-defined policy`,
//! `permission denied` for everybody; `policy rule 'p, …' must be of the form: 'p, sub, res, act, obj, eft'`.
//!
//! ## Bad
//! ```yaml
//! policy.csv: p, role:dev, applications, *, allow
//! ```
//! ## Good
//! ```yaml
//! policy.csv: p, role:dev, applications, *, */*, allow
//! ```
//! ## When to suppress
//! Where another tool completes the line.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_diag::{Diagnostic, Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Location, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-argocd-policy",
    incident: "C2",
    severity: Severity::Error,
    title: "a line of Argo CD's access rules that cannot be read",
    page: page!("c2_argocd_policy.rs"),
    check,
};

/// The resources that rules are about (Argo CD docs, "RBAC Configuration").
const RESOURCES: [&str; 12] = [
    "applications",
    "applicationsets",
    "clusters",
    "projects",
    "repositories",
    "write-repositories",
    "accounts",
    "certificates",
    "gpgkeys",
    "logs",
    "exec",
    "extensions",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        match (object.key.group.as_str(), object.key.kind.as_str(), object.key.name.as_str()) {
            ("", "ConfigMap", "argocd-rbac-cm") => {
                let data = object.value().get("data").and_then(Value::as_object);
                for key in data.into_iter().flat_map(|map| map.keys()).filter(|key| is_policy(key)) {
                    policy(context, object, &keys(&["data"]).key(key), &mut once);
                }
            }
            ("argoproj.io", "ArgoCD", _) => {
                policy(context, object, &keys(&["spec", "rbac", "policy"]), &mut once);
            }
            ("argoproj.io", "AppProject", _) => project(context, object, &mut once),
            _ => {}
        }
    }
    values(context, &mut once);
    once.report(report);
}

/// `policy.csv`, and `policy.*.csv`, which are read after it.
fn is_policy(key: &str) -> bool {
    key.starts_with("policy.") && key.ends_with("csv")
}

fn policy(context: &Context<'_>, object: &Object, path: &FieldPath, once: &mut Once) {
    let Some(text) = path.get(object.value()).and_then(Value::as_str) else { return };
    for (line, fault) in faults(text) {
        let diagnostic = fault.diagnostic(&line).at(context.survey.span(object, path), "in this text");
        once.add(&line, RULE.finding(context, object, diagnostic));
    }
}

/// The rules in values files of the chart, which has them under this key.
fn values(context: &Context<'_>, once: &mut Once) {
    let files = &context.survey.files;
    let is_values = |path: &Arc<str>| path.rsplit('/').next().is_some_and(|base| base.contains("values"));
    for path in files.ending(&[".yaml", ".yml"]).filter(|path| is_values(path)) {
        let Some(text) = files.text(path).filter(|text| text.contains("policy.csv")) else { continue };
        let Some(value) = files.value(path) else { continue };
        let mut found = Vec::new();
        gather(&value, &mut found, 0);
        for (line, fault) in found.iter().flat_map(|text| faults(text)) {
            let at = text.lines().position(|of_file| of_file.contains(line.as_str())).unwrap_or_default();
            let at = Location::new(path.clone(), u32::try_from(at).unwrap_or_default() + 1, 0);
            let diagnostic = fault.diagnostic(&line).at(files.span(&at), "this line");
            once.add(&line, Finding::new(RULE.incident, diagnostic));
        }
    }
}

fn gather<'a>(value: &'a Value, found: &mut Vec<&'a str>, depth: usize) {
    const MAX_DEPTH: usize = 32;
    let Some(map) = value.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    for (key, below) in map {
        match below.as_str() {
            Some(text) if is_policy(key) => found.push(text),
            _ => gather(below, found, depth + 1),
        }
    }
}

/// The roles of a project, whose rules are only about the project.
fn project(context: &Context<'_>, object: &Object, once: &mut Once) {
    let name = &object.key.name;
    for (at, role) in list(&object.value()["spec"], "roles").iter().enumerate() {
        let subject = format!("proj:{name}:{}", text(role, "name"));
        for (index, rule) in list(role, "policies").iter().enumerate() {
            let Some(line) = rule.as_str().filter(|line| !is_open(line)) else { continue };
            let parts: Vec<&str> = line.split(',').map(str::trim).collect();
            let why = match parts[..] {
                ["p", given, ..] if parts.len() == 6 && given != subject && !is_open(name) => {
                    format!("policy subject must be: '{subject}', not '{given}'")
                }
                ["p", _, _, _, _, effect] if !matches!(effect, "allow" | "deny") => {
                    format!("effect must be: 'allow' or 'deny', not '{effect}'")
                }
                ["p", _, what, _, of, _] if OF_A_PROJECT.contains(&what) && !is_of_project(of, name) => {
                    format!("object must be of form '{name}/*', '{name}[/<NAMESPACE>]/<APPNAME>', not '{of}'")
                }
                ["p", _, _, _, _, _] => continue,
                _ => "must be of the form: 'p, sub, res, act, obj, eft'".to_owned(),
            };
            let path = keys(&["spec", "roles"]).index(at).key("policies").index(index);
            let mut diagnostic = invalid(line, &why)
                .because(
                    "the rule is about another project or role, so that it allows nothing; Argo CD refuses every edit \
                     of the project",
                )
                .at(context.survey.span(object, &path), "this rule");
            // It is read, and allows nothing; who edits the project in the engine is told.
            diagnostic.severity = Severity::Warning;
            // What was copied from project to project is one slip.
            once.add_by(
                format!("{subject}\n{}", parts.get(1).unwrap_or(&line)),
                RULE.finding(context, object, diagnostic),
            );
        }
    }
}

/// The resources that are called by their project and name.
const OF_A_PROJECT: [&str; 4] = ["applications", "applicationsets", "logs", "exec"];

/// Whether a rule's object fits Applications of a project. Argo CD wants the project in front, and yet lets
/// `*` fit.
fn is_of_project(of: &str, name: &str) -> bool {
    is_open(name)
        || of.starts_with('*')
        || of.strip_prefix(name).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1)
}

/// What is wrong with a line, in words.
enum PolicyLineError {
    /// Argo CD cannot read it.
    Unreadable(String),
    /// It is read, and fits nothing.
    FitsNothing(String),
}

impl PolicyLineError {
    fn diagnostic(&self, line: &str) -> Diagnostic {
        match self {
            Self::Unreadable(why) => {
                invalid(line, why).because("Argo CD does not load rules of which it cannot read a line")
            }
            Self::FitsNothing(why) => {
                let mut diagnostic = invalid(line, why)
                    .because("the rule is taken and fits nothing, so that it allows nothing");
                diagnostic.severity = Severity::Warning;
                diagnostic
            }
        }
    }
}

fn invalid(line: &str, why: &str) -> Diagnostic {
    RULE.diagnostic(format!("invalid RBAC policy: {line}: {why}"))
}

/// The lines of a text of rules that have a fault.
fn faults(text: &str) -> Vec<(String, PolicyLineError)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    let roles = roles(&lines);
    let closed = lines.iter().filter(|line| !is_open(line));
    closed
        .filter_map(|line| Some(((*line).to_owned(), fault(line).or_else(|| unknown_role(line, &roles))?)))
        .collect()
}

/// The roles that lines say something of, and those that Argo CD has itself.
fn roles<'t>(lines: &[&'t str]) -> BTreeSet<&'t str> {
    let subjects = lines.iter().filter_map(|line| line.split(',').nth(1)).map(str::trim);
    subjects.chain(["role:admin", "role:readonly"]).filter(|it| it.starts_with("role:")).collect()
}

/// What is wrong with a membership in a role of which no line says anything: it is nearly one that there is.
fn unknown_role(line: &str, roles: &BTreeSet<&str>) -> Option<PolicyLineError> {
    let parts: Vec<&str> = line.split(',').map(str::trim).collect();
    let ["g", _, role, ..] = parts[..] else { return None };
    if !role.starts_with("role:") || roles.contains(role) {
        return None;
    }
    let meant = similar_names::nearest_slip(role, roles.iter().copied())?;
    Some(PolicyLineError::FitsNothing(format!("no rule is about {role}: {meant} is meant")))
}

fn fault(line: &str) -> Option<PolicyLineError> {
    // Between quotes a comma separates nothing.
    if line.contains('"') {
        return None;
    }
    let parts: Vec<&str> = line.split(',').map(str::trim).collect();
    match (parts[0], parts.len()) {
        ("p", 6) => {
            let nearest = similar_names::nearest_slip(parts[2], RESOURCES.into_iter());
            let meant = nearest.filter(|_| !RESOURCES.contains(&parts[2]))?;
            Some(PolicyLineError::FitsNothing(format!("there is no resource {}: {meant} is meant", parts[2])))
        }
        // What stands behind the role is not read.
        ("g", 3..) => None,
        ("p", count) => {
            Some(PolicyLineError::Unreadable(format!("a rule has 5 texts after p, this one {}", count - 1)))
        }
        ("g", count) => Some(PolicyLineError::Unreadable(format!(
            "a membership has 2 texts after g, this one {}",
            count - 1
        ))),
        _ => Some(PolicyLineError::Unreadable("a line begins with p or g".to_owned())),
    }
}

/// Whether another tool fills a text in.
fn is_open(text: &str) -> bool {
    placeholders::is_in(text) || text.contains("{{") || text.contains("${") || text.starts_with("%{")
}
