//! Actions of Numaflow's pipelines and of the rollouts of Numaplane that carry them.

use serde_json::Value;
use tiphys_value::ObjectExt;

use super::{
    builtin::{BuiltinAction, Run, action},
    object_edit::Edit,
};

const UPGRADE_STATE: &str = "numaplane.numaproj.io/upgrade-state";
const FORCE_PROMOTE: &str = "numaplane.numaproj.io/force-promote";
const DATA_LOSS: &str = "numaplane.numaproj.io/allow-data-loss";
const DELETION: &str = "numaplane.numaproj.io/marked-for-deletion";
const RESUME_STRATEGY: &str = "numaflow.numaproj.io/resume-strategy";
const STRATEGIES: &str = "numaflow.numaproj.io/allowed-resume-strategies";

pub(super) fn actions_of(kind: &str, object: &Value) -> Vec<BuiltinAction> {
    match kind {
        "InterStepBufferService" => vec![promotion(object)],
        "MonoVertex" => {
            let [pause, slowly, fast] = pausing(object, &[], [pause, vertex_slowly, run]);
            vec![pause, slowly, fast, promotion(object)]
        }
        "Pipeline" => {
            let [pause, slowly, fast] = pausing(object, &[], [pause, pipeline_slowly, pipeline_fast]);
            let is_old = object.label(UPGRADE_STATE) == Some("recyclable");
            let delete = action("delete", delete).shown_as("Delete").disabled_if(!is_old);
            vec![pause, slowly, fast, promotion(object), delete]
        }
        "MonoVertexRollout" => {
            let runs = [pause_vertex, rollout_vertex_slowly, rollout_vertex_fast];
            pausing(object, &["monoVertex"], runs).into()
        }
        "PipelineRollout" => {
            let runs = [pause_pipeline, rollout_pipeline_slowly, rollout_pipeline_fast];
            let drains = object.str_at(&["status", "upgradeInProgress"]) == Some("PipelinePauseAndDrain");
            let is_allowed = object.annotation(DATA_LOSS) == Some("true");
            let mut all = Vec::from(pausing(object, &["pipeline"], runs));
            all.push(
                action("allow-data-loss", allow_loss)
                    .shown_as("Allow (Possible) Data Loss")
                    .disabled_if(!drains),
            );
            all.push(
                action("disallow-data-loss", disallow_loss)
                    .shown_as("Disallow Data Loss")
                    .disabled_if(!is_allowed),
            );
            all
        }
        _ => Vec::new(),
    }
}

/// Pausing, and going on slowly or fast, of what stands below the spec at `inner`.
fn pausing(object: &Value, inner: &[&str], runs: [Run; 3]) -> [BuiltinAction; 3] {
    let at = |rest: &[&str]| {
        let path: Vec<&str> = ["spec"].iter().chain(inner).chain(rest).copied().collect();
        object.str_at(&path)
    };
    let phase: &[&str] = if inner.is_empty() {
        &["lifecycle", "desiredPhase"]
    } else {
        &["spec", "lifecycle", "desiredPhase"]
    };
    let is_paused = at(phase) == Some("Paused");
    let strategies = at(&["metadata", "annotations", STRATEGIES]);
    let may_fast = matches!(strategies, Some("fast" | "slow, fast"));
    let may_slowly = strategies != Some("fast");
    let [pause, slowly, fast] = runs;
    [
        action("pause", pause).disabled_if(is_paused),
        action("unpause-gradual", slowly)
            .shown_as("Unpause (gradual)")
            .disabled_if(!(is_paused && may_slowly)),
        action("unpause-fast", fast).shown_as("Unpause (fast)").disabled_if(!(is_paused && may_fast)),
    ]
}

fn promotion(object: &Value) -> BuiltinAction {
    let is_upgrading = matches!(object.label(UPGRADE_STATE), Some("in-progress" | "trial"));
    let is_forced = object.label(FORCE_PROMOTE) == Some("true");
    let offered = action("force-promote", force_promote).disabled_if(!is_upgrading || is_forced);
    if object.kind() == "InterStepBufferService" { offered } else { offered.shown_as("Force Promote") }
}

fn force_promote(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(&["metadata", "labels", FORCE_PROMOTE], "true");
    Ok(())
}

fn delete(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(DELETION, "true");
    Ok(())
}

fn allow_loss(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(DATA_LOSS, "true");
    Ok(())
}

fn disallow_loss(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(DATA_LOSS, "false");
    Ok(())
}

fn pause(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(&["spec", "lifecycle", "desiredPhase"], "Paused");
    Ok(())
}

fn run(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(&["spec", "lifecycle", "desiredPhase"], "Running");
    Ok(())
}

/// The autoscaler begins anew.
fn vertex_slowly(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.unset(&["spec", "replicas"]);
    run(edit)
}

fn pipeline_slowly(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(RESUME_STRATEGY, "slow");
    run(edit)
}

fn pipeline_fast(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(RESUME_STRATEGY, "fast");
    run(edit)
}

fn inner_phase(edit: &mut Edit<'_>, inner: &str, phase: &str) {
    edit.set(&["spec", inner, "spec", "lifecycle", "desiredPhase"], phase);
}

fn go_on(edit: &mut Edit<'_>, inner: &str, fast: bool) {
    inner_phase(edit, inner, "Running");
    edit.set(&["spec", "strategy", "pauseResume", "fastResume"], fast);
}

fn pause_vertex(edit: &mut Edit<'_>) -> Result<(), String> {
    inner_phase(edit, "monoVertex", "Paused");
    Ok(())
}

fn rollout_vertex_slowly(edit: &mut Edit<'_>) -> Result<(), String> {
    go_on(edit, "monoVertex", false);
    Ok(())
}

fn rollout_vertex_fast(edit: &mut Edit<'_>) -> Result<(), String> {
    go_on(edit, "monoVertex", true);
    Ok(())
}

fn pause_pipeline(edit: &mut Edit<'_>) -> Result<(), String> {
    inner_phase(edit, "pipeline", "Paused");
    Ok(())
}

fn rollout_pipeline_slowly(edit: &mut Edit<'_>) -> Result<(), String> {
    go_on(edit, "pipeline", false);
    Ok(())
}

fn rollout_pipeline_fast(edit: &mut Edit<'_>) -> Result<(), String> {
    go_on(edit, "pipeline", true);
    Ok(())
}
