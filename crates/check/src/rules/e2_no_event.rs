//! # A Sensor waits for an event that no EventSource has
//!
//! A Sensor of Argo Events names an EventSource and one of the events under it. One that the EventSource does
//! not have never comes: the Sensor is healthy, and triggers nothing.
//!
//! People see: nothing is triggered.
//!
//! ## Bad
//! ```yaml
//! kind: EventSource                  # called github
//! spec: {github: {shop: {owner: example}}}
//! ---
//! kind: Sensor
//! spec: {dependencies: [{name: push, eventSourceName: github, eventName: test}]}
//! ```
//! ## Good
//! ```yaml
//! spec: {dependencies: [{name: push, eventSourceName: github, eventName: shop}]}
//! ```
//! ## When to suppress
//! Where the EventSource is completed by something outside of the repository.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-event",
    incident: "E2",
    severity: Severity::Warning,
    title: "a Sensor waits for an event that no EventSource has",
    page: page!("e2_no_event.rs"),
    check,
};

const GROUP: &str = "argoproj.io";

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let of_kind = |kind: &'static str| {
        survey.objects.iter().filter(move |it| it.key.group == GROUP && it.key.kind == kind)
    };
    let mut once = Once::default();
    for sensor in of_kind("Sensor").filter(|it| !unrendered_files::may_be_a_patch(survey, it)) {
        for (at, dependency) in list(&sensor.value()["spec"], "dependencies").iter().enumerate() {
            let (source, event) = (text(dependency, "eventSourceName"), text(dependency, "eventName"));
            let named: Vec<&Object> = of_kind("EventSource").filter(|it| it.key.name == source).collect();
            let known: Vec<&str> = named.iter().flat_map(|it| events(it)).collect();
            if known.is_empty() || event.is_empty() || known.contains(&event) || placeholders::is_in(event) {
                continue;
            }
            let nearest = similar_names::nearest_slip(event, known.iter().copied());
            let path = keys(&["spec", "dependencies"]).index(at).key("eventName");
            let diagnostic = RULE
                .diagnostic(format!(
                    "{} waits for the event {event} of {source}, which has none of this name",
                    sensor.title()
                ))
                .at(survey.span(sensor, &path), "no event is called so")
                .see(survey.start(named[0]), format!("it has {}", known.join(", ")))
                .because("the Sensor subscribes to a name under which nothing is ever published");
            once.add(event, RULE.finding(context, sensor, diagnostic).likely().perhaps(event, nearest));
        }
    }
    once.report(report);
}

/// The names of the events of an EventSource: those below each type of source.
fn events(source: &Object) -> impl Iterator<Item = &str> {
    const OTHERS: [&str; 5] = ["template", "service", "eventBusName", "replicas", "webhookSecret"];
    let spec = source.value().get("spec").and_then(Value::as_object).into_iter().flatten();
    let types = spec.filter(|(name, _)| !OTHERS.contains(&name.as_str()));
    types.filter_map(|(_, value)| value.as_object()).flat_map(|map| map.keys().map(String::as_str))
}
