//! What starts a workflow (GitHub docs, "Events that trigger workflows").

use tiphys_diag::similar_names;
use tiphys_yaml::Node;

use super::{
    Effect, Walker, WorkflowFault,
    sections::{CALL, DISPATCH, Shape},
};

/// An event, with its activity types (none: they are not looked at) and the filters that it has.
struct Event {
    name: &'static str,
    types: &'static [&'static str],
    filters: &'static [&'static str],
}

const BRANCHES: &[&str] = &["branches", "branches-ignore"];
const OF_WORKFLOW_RUN: &[&str] = &["workflows", "branches", "branches-ignore"];
const BRANCHES_AND_PATHS: &[&str] = &["branches", "branches-ignore", "paths", "paths-ignore"];
const ALL: &[&str] = &["branches", "branches-ignore", "tags", "tags-ignore", "paths", "paths-ignore"];
const OF_PULL_REQUEST: &[&str] = &[
    "assigned",
    "unassigned",
    "labeled",
    "unlabeled",
    "opened",
    "edited",
    "closed",
    "reopened",
    "synchronize",
    "converted_to_draft",
    "locked",
    "unlocked",
    "enqueued",
    "dequeued",
    "milestoned",
    "demilestoned",
    "ready_for_review",
    "review_requested",
    "review_request_removed",
    "auto_merge_enabled",
    "auto_merge_disabled",
];
const WRITTEN: &[&str] = &["created", "edited", "deleted"];

const fn event(
    name: &'static str,
    types: &'static [&'static str],
    filters: &'static [&'static str],
) -> Event {
    Event { name, types, filters }
}

const EVENTS: [Event; 35] = [
    event("branch_protection_rule", WRITTEN, &[]),
    event("check_run", &["created", "rerequested", "completed", "requested_action"], &[]),
    event("check_suite", &["completed", "requested", "rerequested"], &[]),
    event("create", &[], &[]),
    event("delete", &[], &[]),
    event("deployment", &[], &[]),
    event("deployment_status", &[], &[]),
    event("discussion", &[], &[]),
    event("discussion_comment", WRITTEN, &[]),
    event("fork", &[], &[]),
    event("gollum", &[], &[]),
    event("image_version", &[], &["names", "versions"]),
    event("issue_comment", WRITTEN, &[]),
    event("issues", &[], &[]),
    event("label", WRITTEN, &[]),
    event("merge_group", &["checks_requested"], BRANCHES),
    event("milestone", &["created", "closed", "opened", "edited", "deleted"], &[]),
    event("page_build", &[], &[]),
    event("project", &[], &[]),
    event("project_card", &[], &[]),
    event("project_column", &[], &[]),
    event("public", &[], &[]),
    event("pull_request", OF_PULL_REQUEST, BRANCHES_AND_PATHS),
    event("pull_request_review", &["submitted", "edited", "dismissed"], &[]),
    event("pull_request_review_comment", WRITTEN, &[]),
    event("pull_request_target", OF_PULL_REQUEST, BRANCHES_AND_PATHS),
    event("push", &[], ALL),
    event("registry_package", &["published", "updated"], &[]),
    event(
        "release",
        &["published", "unpublished", "created", "edited", "deleted", "prereleased", "released"],
        &[],
    ),
    event("repository_dispatch", &[], &[]),
    event("status", &[], &[]),
    event("watch", &["started"], &[]),
    event("workflow_run", &["completed", "requested", "in_progress"], OF_WORKFLOW_RUN),
    // Looked at on their own, for they have inputs.
    event("workflow_call", &[], &[]),
    event("workflow_dispatch", &[], &[]),
];

/// The pairs of filters that shut each other out.
const EITHER: [&str; 3] = ["branches", "tags", "paths"];

/// Looks at what starts a workflow.
pub(super) fn check<'n>(on: &'n Node, walker: &mut Walker<'n>) {
    for name in super::one_or_many(on) {
        find(name, walker);
    }
    for (name, filters) in on.pairs().unwrap_or_default() {
        match name.as_str() {
            Some("schedule") => schedule(filters, walker),
            Some("workflow_dispatch") => walker.shape(filters, DISPATCH, None),
            Some("workflow_call") => walker.shape(filters, CALL, None),
            _ => {
                if let Some(event) = find(name, walker) {
                    has_filters(event, filters, walker);
                }
            }
        }
    }
}

fn find<'n>(name: &'n Node, walker: &mut Walker<'n>) -> Option<&'static Event> {
    let text = name.as_str()?;
    let known = EVENTS.iter().find(|event| event.name == text);
    let names = EVENTS.iter().map(|event| event.name).chain(["schedule"]);
    // What GitHub may have learnt since is left alone.
    if known.is_none()
        && text != "schedule"
        && let Some(meant) = similar_names::nearest_slip(text, names)
    {
        ignored(walker, name, format!("there is no event {text}"), format!("{meant} is meant"));
    }
    known
}

/// The event that is meant by a name that none has, as `github.event_name` is compared with it.
pub(super) fn unknown_name(name: &str) -> Option<String> {
    // What people call these is not what GitHub calls them.
    const CALLED: [(&str, &str); 6] = [
        ("pull", "pull_request"),
        ("pr", "pull_request"),
        ("tag", "push"),
        ("manual", "workflow_dispatch"),
        ("dispatch", "workflow_dispatch"),
        ("cron", "schedule"),
    ];
    let mut names = EVENTS.iter().map(|event| event.name).chain(["schedule", "dynamic"]);
    if name.is_empty() || names.clone().any(|known| known == name) {
        return None;
    }
    let called = CALLED.iter().find(|(wrong, _)| *wrong == name).map(|(_, meant)| *meant);
    let meant = called.or_else(|| similar_names::nearest_slip(name, &mut names))?;
    Some(meant.to_owned())
}

/// What GitHub neither knows nor refuses in an event.
fn ignored<'n>(walker: &mut Walker<'n>, node: &'n Node, message: String, label: String) {
    walker
        .faults
        .push(WorkflowFault { effect: Effect::Ignored, ..WorkflowFault::refusal(node, message, label) });
}

fn has_filters<'n>(event: &Event, filters: &'n Node, walker: &mut Walker<'n>) {
    let of = event.name;
    for (key, value) in filters.pairs().unwrap_or_default() {
        let Some(name) = key.as_str() else { continue };
        if name == "types" {
            for of_type in super::one_or_many(value).filter(|_| !event.types.is_empty()) {
                let text = of_type.as_str().unwrap_or_default();
                if !event.types.contains(&text) {
                    let label = format!("expected: {}", event.types.join(", "));
                    ignored(walker, of_type, format!("the event {of} has no type {text}"), label);
                }
            }
        } else if !event.filters.contains(&name) && (ALL.contains(&name) || !event.filters.is_empty()) {
            let label = match event.filters {
                [] => "it happens as often as without the filter".to_owned(),
                filters => format!("expected: types, {}", filters.join(", ")),
            };
            ignored(walker, key, format!("the event {of} has no filter {name}"), label);
        }
    }
    for filter in EITHER {
        let ignored = format!("{filter}-ignore");
        if let (Some(_), Some(second)) = (filters.get(filter), filters.key_node(&ignored)) {
            let message = format!("you may only define one of `{filter}` and `{ignored}` for a single event");
            walker.refuse(second, message, "an event takes one of the two; `!` excludes");
        }
    }
}

/// Times; GitHub takes the five fields of POSIX.
fn schedule<'n>(times: &'n Node, walker: &mut Walker<'n>) {
    const FIELDS: usize = 5;
    for time in times.items().unwrap_or_default() {
        let Some(cron) = time.get("cron") else { continue };
        let text = cron.as_str().unwrap_or_default();
        if text.split_whitespace().count() != FIELDS && !text.contains("${{") {
            let message = format!("'{text}' is not a valid cron expression");
            walker.faults.push(WorkflowFault::refusal(
                cron,
                message,
                "five fields are expected: minute, hour, day, month, weekday",
            ));
        }
    }
    if times.as_str().is_some_and(|text| !text.is_empty()) || times.pairs().is_some() {
        walker.shape(times, Shape::List(&Shape::Any), None);
    }
}
