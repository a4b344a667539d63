//! Actions of Kubernetes' own kinds: what `kubectl rollout`, `scale` and `create job --from` do.

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{
    builtin::{BuiltinAction, action},
    object_edit::{Edit, is_on, items, set_field},
};

const RESTARTED: &[&str] =
    &["spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"];
const PAUSED: &[&str] = &["spec", "paused"];
pub(super) const SUSPEND: &[&str] = &["spec", "suspend"];
/// Conditions of a Job that has ended, or is ending.
const ENDED: [&str; 4] = ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"];

pub(super) fn actions_of(kind: &str, object: &Value) -> Vec<BuiltinAction> {
    match kind {
        "DaemonSet" => vec![action("restart", restart)],
        "StatefulSet" => vec![action("restart", restart), action("scale", scale).with("replicas", None)],
        "Deployment" => vec![
            action("restart", restart),
            action("pause", pause).disabled_if(is_on(object, PAUSED)),
            action("resume", unpause).disabled_if(!is_on(object, PAUSED)),
            action("scale", scale).with("replicas", None),
        ],
        "CronJob" => vec![
            action("create-job", create_job).shown_as("Create Job"),
            action("suspend", suspend).hidden_if(is_on(object, SUSPEND)),
            action("resume", resume).hidden_if(!is_on(object, SUSPEND)),
        ],
        "Job" => vec![
            action("suspend", suspend).hidden_if(has_ended(object) || is_on(object, SUSPEND)),
            action("resume", resume).hidden_if(has_ended(object) || !is_on(object, SUSPEND)),
            action("terminate", terminate).hidden_if(has_ended(object) || object.get("status").is_none()),
        ],
        _ => Vec::new(),
    }
}

fn restart(edit: &mut Edit<'_>) -> Result<(), String> {
    let time = edit.time();
    edit.set(RESTARTED, time);
    Ok(())
}

pub(super) fn scale(edit: &mut Edit<'_>) -> Result<(), String> {
    let replicas = edit.replicas()?;
    edit.set(&["spec", "replicas"], replicas);
    Ok(())
}

pub(super) fn pause(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(PAUSED, true);
    Ok(())
}

fn unpause(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.unset(PAUSED);
    Ok(())
}

pub(super) fn suspend(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(SUSPEND, true);
    Ok(())
}

pub(super) fn resume(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.switch_off(SUSPEND);
    Ok(())
}

fn has_ended(object: &Value) -> bool {
    items(object, &["status", "conditions"]).iter().any(|condition| {
        condition.str_at(&["status"]) == Some("True")
            && condition.str_at(&["type"]).is_some_and(|kind| ENDED.contains(&kind))
    })
}

/// A condition that makes the Job's controller stop its pods and call it failed.
fn terminate(edit: &mut Edit<'_>) -> Result<(), String> {
    if has_ended(&edit.object) || edit.object.get("status").is_none() {
        return Ok(());
    }
    let mut conditions = items(&edit.object, &["status", "conditions"]).to_vec();
    conditions.push(json!({"type": "FailureTarget", "status": "True", "lastTransitionTime": edit.time(),
        "reason": "ManuallyTerminated", "message": "Terminated by the action \"terminate\""}));
    edit.set(&["status", "conditions"], conditions);
    Ok(())
}

fn create_job(edit: &mut Edit<'_>) -> Result<(), String> {
    let template = edit.object.at(&["spec", "jobTemplate"]).ok_or("the CronJob has no spec.jobTemplate")?;
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": template.get("metadata").cloned().unwrap_or_else(|| json!({}))});
    set_field(&mut job, &["spec"], template.get("spec").cloned().unwrap_or_default());
    let name = format!("{}-{}", edit.object.name(), edit.now.strftime("%y%m%d%H%M"));
    set_field(&mut job, &["metadata", "name"], name.into());
    set_field(&mut job, &["metadata", "namespace"], edit.object.namespace().into());
    set_field(&mut job, &["metadata", "annotations", "cronjob.kubernetes.io/instantiate"], "manual".into());
    let mut owner = edit.owner();
    owner["controller"] = true.into();
    owner["blockOwnerDeletion"] = true.into();
    set_field(&mut job, &["metadata", "ownerReferences"], json!([owner]));
    edit.created.push(job);
    Ok(())
}
