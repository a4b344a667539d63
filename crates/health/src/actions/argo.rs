//! Actions of the kinds of Argo's projects: Applications, Rollouts, workflows, promotions.

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{
    builtin::{BuiltinAction, action},
    object_edit::{Edit, is_on, items, set_field},
    workloads::pause,
};

const TERMINATE: &[&str] = &["spec", "terminate"];
const ABORT: &[&str] = &["status", "abort"];
const STEPS: &[&str] = &["spec", "strategy", "canary", "steps"];
const STEP: &[&str] = &["status", "currentStepIndex"];
const PAUSES: &[&str] = &["status", "pauseConditions"];
const PAUSED: &[&str] = &["spec", "paused"];
const AUTOMATED: &[&str] = &["spec", "syncPolicy", "automated"];
const ENABLED: &[&str] = &["spec", "syncPolicy", "automated", "enabled"];
/// Phases of an AnalysisRun that has ended.
const ENDED: [&str; 4] = ["Successful", "Failed", "Error", "Inconclusive"];

pub(super) fn actions_of(kind: &str, object: &Value) -> Vec<BuiltinAction> {
    match kind {
        "AnalysisRun" => {
            let has_ended = object.str_at(&["status", "phase"]).is_some_and(|phase| ENDED.contains(&phase));
            vec![action("terminate", terminate).disabled_if(has_ended || is_on(object, TERMINATE))]
        }
        "Application" => {
            let name = if syncs_by_itself(object) { "Disable Auto-Sync" } else { "Enable Auto-Sync" };
            vec![action("toggle-auto-sync", toggle_auto_sync).shown_as(name)]
        }
        "CronWorkflow" => vec![action("create-workflow", of_cron_workflow).shown_as("Create Workflow")],
        "WorkflowTemplate" => vec![action("create-workflow", of_template).shown_as("Create Workflow")],
        "PullRequest" => vec![
            action("merge", merge)
                .shown_as("Merge PR")
                .disabled_if(object.str_at(&["spec", "state"]) != Some("open")),
        ],
        "Rollout" => of_rollout(object),
        _ => Vec::new(),
    }
}

fn of_rollout(object: &Value) -> Vec<BuiltinAction> {
    let status = |key: &str| object.at(&["status", key]).filter(|value| !value.is_null());
    let is_promoted = status("currentPodHash") == status("stableRS");
    let is_paused = match status("pauseConditions") {
        Some(_) => !items(object, PAUSES).is_empty(),
        None => is_on(object, PAUSED),
    };
    let is_aborted = is_on(object, ABORT);
    let cannot_promote = object.get("status").is_none()
        || is_promoted
        || (is_before_0_10(object) && object.at(&["spec", "strategy", "blueGreen"]).is_some());
    let steps = items(object, STEPS).len();
    let is_last_step = object.int_at(STEP).is_some_and(|step| usize::try_from(step) == Ok(steps));
    vec![
        action("restart", restart).shown_as("Restart Pods"),
        action("resume", resume).disabled_if(!is_paused),
        action("abort", abort).disabled_if(is_promoted || is_aborted),
        action("retry", retry).disabled_if(is_promoted || !is_aborted),
        action("pause", pause).disabled_if(is_promoted || is_aborted || is_on(object, PAUSED)),
        action("promote-full", promote_full).disabled_if(cannot_promote),
        action("skip-current-step", skip_step).disabled_if(object.at(STEPS).is_none() || is_last_step),
    ]
}

/// Whether the controller is one before 0.10, which does not write the generation that it has seen, but a
/// hash.
fn is_before_0_10(object: &Value) -> bool {
    let seen = match object.at(&["status", "observedGeneration"]) {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    seen.is_none_or(|seen| seen > object.generation())
}

fn restart(edit: &mut Edit<'_>) -> Result<(), String> {
    let time = edit.time();
    edit.set(&["spec", "restartAt"], time);
    Ok(())
}

fn resume(edit: &mut Edit<'_>) -> Result<(), String> {
    leave_pauses(edit);
    edit.switch_off(PAUSED);
    Ok(())
}

fn leave_pauses(edit: &mut Edit<'_>) {
    if !items(&edit.object, PAUSES).is_empty() {
        edit.unset(PAUSES);
    }
}

fn abort(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(ABORT, true);
    Ok(())
}

fn retry(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.unset(ABORT);
    Ok(())
}

fn promote_full(edit: &mut Edit<'_>) -> Result<(), String> {
    if edit.object.get("status").is_none() {
        return Ok(());
    }
    if !is_before_0_10(&edit.object) {
        edit.set(&["status", "promoteFull"], true);
        return Ok(());
    }
    edit.unset(ABORT);
    if edit.object.at(STEPS).is_some() {
        let steps = items(&edit.object, STEPS).len();
        edit.set(STEP, steps);
    }
    Ok(())
}

fn skip_step(edit: &mut Edit<'_>) -> Result<(), String> {
    let steps = items(&edit.object, STEPS).len();
    let Some(step) = edit.object.int_at(STEP) else { return Ok(()) };
    if usize::try_from(step).is_ok_and(|step| step < steps) {
        leave_pauses(edit);
        edit.set(STEP, step + 1);
    }
    Ok(())
}

fn terminate(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(TERMINATE, true);
    Ok(())
}

fn merge(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(&["spec", "state"], "merged");
    Ok(())
}

fn syncs_by_itself(object: &Value) -> bool {
    let is_there = object.at(AUTOMATED).is_some_and(|automated| !automated.is_null());
    is_there && object.at(ENABLED).and_then(Value::as_bool) != Some(false)
}

fn toggle_auto_sync(edit: &mut Edit<'_>) -> Result<(), String> {
    let is_enabled = syncs_by_itself(&edit.object);
    edit.set(ENABLED, !is_enabled);
    Ok(())
}

/// A Workflow without a spec, named after its origin and the minute.
fn workflow(edit: &Edit<'_>, label: &str) -> Value {
    let origin = edit.object.name();
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {
        "name": format!("{origin}-{}", edit.now.strftime("%Y%m%d%H%M")), "namespace": edit.object.namespace(),
        "labels": {label: origin}, "ownerReferences": [edit.owner()]}})
}

fn of_template(edit: &mut Edit<'_>) -> Result<(), String> {
    let mut made = workflow(edit, "workflows.argoproj.io/workflow-template");
    set_field(&mut made, &["spec", "workflowTemplateRef", "name"], edit.object.name().into());
    edit.created.push(made);
    Ok(())
}

fn of_cron_workflow(edit: &mut Edit<'_>) -> Result<(), String> {
    const INSTANCE: &str = "workflows.argoproj.io/controller-instanceid";
    let spec =
        edit.object.at(&["spec", "workflowSpec"]).ok_or("the CronWorkflow has no spec.workflowSpec")?;
    let mut made = workflow(edit, "workflows.argoproj.io/cron-workflow");
    set_field(&mut made, &["spec"], spec.clone());
    for part in ["labels", "annotations"] {
        let given = edit.object.at(&["spec", "workflowMetadata", part]).and_then(Value::as_object);
        for (key, value) in given.into_iter().flatten() {
            if made.at(&["metadata", part, key]).is_none() {
                set_field(&mut made, &["metadata", part, key], value.clone());
            }
        }
    }
    let finalizers = items(&edit.object, &["spec", "workflowMetadata", "finalizers"]);
    if !finalizers.is_empty() {
        set_field(&mut made, &["metadata", "finalizers"], finalizers.into());
    }
    if let Some(instance) = edit.object.label(INSTANCE) {
        set_field(&mut made, &["metadata", "labels", INSTANCE], instance.into());
    }
    set_field(
        &mut made,
        &["metadata", "annotations", "workflows.argoproj.io/scheduled-time"],
        edit.time().into(),
    );
    edit.created.push(made);
    Ok(())
}
