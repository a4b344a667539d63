//! # A resource names a part of itself that it does not have
//!
//! An AlertmanagerConfig, and values of a chart that writes the configuration of Alertmanager, route to
//! receivers by name. A list of receivers in values replaces the chart's, and its routes stay. A Workflow
//! begins with one of its templates and chains them by name, takes the outputs of its steps by theirs; its
//! containers mount the volumes and claims that it declares. A name that nothing in the resource has is
//! refused by the controller: the configuration is not taken over, the Workflow ends before its first step.
//!
//! People see: `undefined receiver "slak" used in route`, `spec.entrypoint template 'main' undefined`,
//! `templates.main.tasks.test template name 'tests' undefined`, `templates.main.tasks.push dependency 'built'
//! not defined`.
//!
//! ## Bad
//! ```yaml
//! kind: AlertmanagerConfig
//! spec: {route: {receiver: slak}, receivers: [{name: slack}]}
//! ```
//! ## Good
//! ```yaml
//! kind: AlertmanagerConfig
//! spec: {route: {receiver: slack}, receivers: [{name: slack}]}
//! ```
//! ## When to suppress
//! Never.

use std::collections::BTreeSet;

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use super::alertmanager_receivers;
use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
        unrendered_files,
        value_steps::{each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-undefined-name",
    incident: "C2",
    severity: Severity::Warning,
    title: "a resource names a part of itself that it does not have",
    page: page!("c2_undefined_name.rs"),
    check,
};

/// A name that stands for nothing.
struct UndefinedName<'a> {
    field: FieldPath,
    name: &'a str,
    message: String,
    known: Vec<&'a str>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let objects = &context.survey.objects;
    // To look through everything takes its time.
    let has_templates = objects.iter().any(|object| object.key.kind.ends_with("WorkflowTemplate"));
    let looked_through = objects.iter().filter(|_| has_templates);
    let begun: BTreeSet<&str> = looked_through.flat_map(|object| begun_templates(object.value())).collect();
    for object in objects {
        let faults = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("monitoring.coreos.com", "AlertmanagerConfig") => receivers(object),
            ("argoproj.io", "Workflow" | "WorkflowTemplate" | "ClusterWorkflowTemplate") => {
                workflow(&object.value()["spec"], &keys(&["spec"]))
            }
            ("argoproj.io", "CronWorkflow") => {
                workflow(&object.value()["spec"]["workflowSpec"], &keys(&["spec", "workflowSpec"]))
            }
            _ => continue,
        };
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        // Of a template whose parts others use one by one nobody asks where it begins.
        let is_kit =
            object.key.kind.ends_with("WorkflowTemplate") && !begun.contains(object.key.name.as_str());
        let is_idle =
            |fault: &UndefinedName<'_>| is_kit && fault.is_beginning() || placeholders::is_in(fault.name);
        for fault in faults.into_iter().filter(|fault| !is_idle(fault)) {
            add(context, object, &fault, &mut once);
        }
        workflow_outputs(context, object, &mut once);
    }
    once.report(report);
    alertmanager_receivers::check(context, report);
}

/// Outputs of the whole Workflow that a text takes, as that of an exit handler does, and that no template
/// gives a global name (Argo Workflows docs, "Workflow Variables").
fn workflow_outputs(context: &Context<'_>, object: &Object, once: &mut Once) {
    const TAKEN: &str = "{{workflow.outputs.parameters.";
    let whole = object.value().to_string();
    // What another template makes is not seen.
    if !whole.contains(TAKEN)
        || whole.contains("\"templateRef\"")
        || whole.contains("\"workflowTemplateRef\"")
    {
        return;
    }
    each_text(object.value(), &mut Vec::new(), &|_| true, &mut |steps, text| {
        for rest in text.split(TAKEN).skip(1) {
            let Some((name, _)) = rest.split_once("}}") else { continue };
            if whole.contains(&format!("\"globalName\":\"{name}\"")) || name.contains('{') {
                continue;
            }
            let message = format!("no template gives the global output parameter {name}");
            let diagnostic = RULE
                .diagnostic(format!("{}: {message}", object.title()))
                .at(context.survey.span(object, &path_below(FieldPath::default(), steps)), "taken here")
                .because("outputs of a Workflow are those that a template gives a globalName; the controller refuses the Workflow")
                .help(format!("add globalName: {name} to the output of the template that makes it"));
            once.add(&message, RULE.finding(context, object, diagnostic).likely());
        }
    });
}

impl UndefinedName<'_> {
    /// Whether it is about where a workflow begins or ends.
    fn is_beginning(&self) -> bool {
        self.message.starts_with("spec.")
    }
}

/// The templates that whole workflows are made from: those that a `workflowTemplateRef` names, wherever it
/// stands.
fn begun_templates(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                found.extend(map.get("workflowTemplateRef").map(|reference| text(reference, "name")));
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

fn add(context: &Context<'_>, object: &Object, fault: &UndefinedName<'_>, once: &mut Once) {
    let diagnostic = RULE
        .diagnostic(format!("{}: {}", object.title(), fault.message))
        .at(context.survey.span(object, &fault.field), "nothing here has this name")
        .because("the controller refuses the resource as a whole");
    let nearest = similar_names::nearest_slip(fault.name, fault.known.iter().copied());
    once.add(&fault.message, RULE.finding(context, object, diagnostic).perhaps(fault.name, nearest));
}

/// The routes of an AlertmanagerConfig, and below them (prometheus-operator, "AlertmanagerConfig").
fn receivers(object: &Object) -> Vec<UndefinedName<'_>> {
    let spec = &object.value()["spec"];
    let known: Vec<&str> = list(spec, "receivers").iter().map(|it| text(it, "name")).collect();
    let mut found = Vec::new();
    let mut open: Vec<(&Value, FieldPath)> =
        spec.get("route").map(|route| (route, keys(&["spec", "route"]))).into_iter().collect();
    while let Some((route, path)) = open.pop() {
        let name = text(route, "receiver");
        if !name.is_empty() && !known.contains(&name) {
            found.push(UndefinedName {
                field: path.key("receiver"),
                name,
                message: format!("undefined receiver {name:?} used in route"),
                known: known.clone(),
            });
        }
        let below = list(route, "routes").iter().enumerate();
        open.extend(below.map(|(at, route)| (route, path.key("routes").index(at))));
    }
    found
}

/// The entrypoint, and what steps and tasks name (Argo Workflows, "Field Reference").
fn workflow<'a>(spec: &'a Value, path: &FieldPath) -> Vec<UndefinedName<'a>> {
    let templates = list(spec, "templates");
    // What a template elsewhere brings, this one does not say.
    if templates.is_empty() || spec.get("workflowTemplateRef").is_some() {
        return Vec::new();
    }
    let known: Vec<&str> = templates.iter().map(|it| text(it, "name")).collect();
    let mut found = Vec::new();
    for field in ["entrypoint", "onExit"] {
        let name = text(spec, field);
        if !name.is_empty() && !known.contains(&name) {
            let message = format!("spec.{field} template '{name}' undefined");
            found.push(UndefinedName { field: path.key(field), name, message, known: known.clone() });
        }
    }
    found.extend(mounts(spec, path));
    for (at, template) in templates.iter().enumerate() {
        let place = path.key("templates").index(at);
        let of = text(template, "name");
        for (group, steps) in list(template, "steps").iter().enumerate() {
            for (index, step) in steps.as_array().into_iter().flatten().enumerate() {
                let place = place.key("steps").index(group).index(index);
                found.extend(undefined_template(step, &place, &format!("templates.{of}.steps"), &known));
            }
        }
        let steps = list(template, "steps").iter().flat_map(|group| group.as_array().into_iter().flatten());
        let names: Vec<&str> = steps.map(|it| text(it, "name")).collect();
        found.extend(outputs_of_nothing(template, &place, "steps", &names));
        let tasks = list(&template["dag"], "tasks");
        let names: Vec<&str> = tasks.iter().map(|it| text(it, "name")).collect();
        found.extend(outputs_of_nothing(template, &place, "tasks", &names));
        for (index, task) in tasks.iter().enumerate() {
            let place = place.key("dag").key("tasks").index(index);
            found.extend(undefined_template(task, &place, &format!("templates.{of}.tasks"), &known));
            for (nth, wanted) in list(task, "dependencies").iter().enumerate() {
                let wanted = wanted.as_str().unwrap_or_default();
                if !names.contains(&wanted) {
                    let message = format!(
                        "templates.{of}.tasks.{} dependency '{wanted}' not defined",
                        text(task, "name")
                    );
                    let field = place.key("dependencies").index(nth);
                    found.push(UndefinedName { field, name: wanted, message, known: names.clone() });
                }
            }
        }
    }
    found
}

/// Outputs that a template takes of a step or task that it does not have: `{{steps.build.outputs.result}}`.
fn outputs_of_nothing<'a>(
    template: &'a Value,
    path: &FieldPath,
    of: &str,
    names: &[&'a str],
) -> Vec<UndefinedName<'a>> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    each_text(template, &mut Vec::new(), &|_| true, &mut |steps, text| {
        for (at, _) in text.match_indices(&format!("{of}.")) {
            let is_begin = text[..at].trim_end().ends_with("{{");
            let mut words = text[at + of.len() + 1..].split('.');
            let (Some(name), Some("outputs" | "status" | "exitCode" | "ip")) = (words.next(), words.next())
            else {
                continue;
            };
            if is_begin && !names.contains(&name) {
                found.push(UndefinedName {
                    field: path_below(path.clone(), steps),
                    name,
                    message: format!(
                        "templates.{}: failed to resolve {{{{{of}.{name}.…}}}}",
                        template["name"].as_str().unwrap_or_default()
                    ),
                    known: names.to_vec(),
                });
            }
        }
    });
    found
}

/// Volumes that containers mount, and that have another name where the workflow declares them: one is
/// declared that nothing mounts. Defaults of the controller may bring more.
fn mounts<'a>(spec: &'a Value, path: &FieldPath) -> Vec<UndefinedName<'a>> {
    let claims = list(spec, "volumeClaimTemplates").iter().map(|it| text(&it["metadata"], "name"));
    let declared: Vec<&str> = list(spec, "volumes").iter().map(|it| text(it, "name")).chain(claims).collect();
    if spec.get("podSpecPatch").is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut mounted = BTreeSet::new();
    for (at, template) in list(spec, "templates").iter().enumerate() {
        let own: Vec<&str> = list(template, "volumes").iter().map(|it| text(it, "name")).collect();
        let place = path.key("templates").index(at);
        let single = ["container", "script"].map(|field| (template.get(field), place.key(field)));
        let more = ["initContainers", "sidecars"].into_iter().flat_map(|field| {
            let items = list(template, field).iter().enumerate();
            let place = place.key(field);
            items.map(move |(at, it)| (Some(it), place.index(at))).collect::<Vec<_>>()
        });
        for (container, place) in single.into_iter().chain(more) {
            let Some(container) = container else { continue };
            for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
                let name = text(mount, "name");
                mounted.insert(name);
                if !declared.contains(&name) && !own.contains(&name) && template.get("podSpecPatch").is_none()
                {
                    let message = format!(
                        "spec.templates.{}.volumeMounts[{index}].name: Not found: {name:?}",
                        text(template, "name")
                    );
                    let field = place.key("volumeMounts").index(index).key("name");
                    found.push(UndefinedName { field, name, message, known: declared.clone() });
                }
            }
        }
    }
    if declared.iter().all(|name| mounted.contains(name)) {
        found.clear();
    }
    found
}

/// The template that a step or task runs.
fn undefined_template<'a>(
    step: &'a Value,
    path: &FieldPath,
    place: &str,
    known: &[&'a str],
) -> Option<UndefinedName<'a>> {
    let name = text(step, "template");
    if name.is_empty() || known.contains(&name) {
        return None;
    }
    let message = format!("{place}.{} template name '{name}' undefined", text(step, "name"));
    Some(UndefinedName { field: path.key("template"), name, message, known: known.to_vec() })
}
