//! Actions of single operators' kinds.

use serde_json::Value;
use tiphys_value::ObjectExt;

use super::{
    builtin::{BuiltinAction, action},
    object_edit::{Edit, is_on, items},
    workloads::{SUSPEND, resume, suspend},
};

const RECONCILIATION: &str = "cnpg.io/reconciliationLoop";
const ROLLING: &str = "strimzi.io/manual-rolling-update";
const SCALER_PAUSED: &str = "autoscaling.keda.sh/paused";
const SCALER_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
const PAUSE: &[&str] = &["spec", "pause"];
const HEALTHY: &[&str] = &["status", "instancesStatus", "healthy"];

pub(super) fn actions_of(group: &str, kind: &str, object: &Value) -> Vec<BuiltinAction> {
    match (group, kind) {
        ("core.strimzi.io", "StrimziPodSet") => {
            vec![action("rolling-update", roll).disabled_if(object.annotation(ROLLING) == Some("true"))]
        }
        ("external-secrets.io", "ExternalSecret") => {
            let changes_only = object.str_at(&["spec", "refreshPolicy"]) == Some("OnChange");
            vec![action("refresh", force_sync).disabled_if(!changes_only && is_never_refreshed(object))]
        }
        ("external-secrets.io", "PushSecret") => {
            vec![action("push", force_sync).disabled_if(is_never_refreshed(object))]
        }
        ("k8s.mariadb.com", "MariaDB") => vec![
            action("suspend", suspend).shown_as("Suspend").hidden_if(is_on(object, SUSPEND)),
            action("resume", resume).shown_as("Resume").hidden_if(!is_on(object, SUSPEND)),
        ],
        ("keda.sh", "ScaledJob" | "ScaledObject") => of_scaler(kind, object),
        ("postgresql.cnpg.io", "Cluster") => of_postgres(object),
        ("psmdb.percona.com", "PerconaServerMongoDB") => vec![
            action("pause", pause).disabled_if(is_on(object, PAUSE)),
            action("unpause", unpause).disabled_if(!is_on(object, PAUSE)),
        ],
        _ => Vec::new(),
    }
}

fn roll(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(ROLLING, "true");
    Ok(())
}

/// Whether the interval is zero, which for the operator means once.
fn is_never_refreshed(object: &Value) -> bool {
    let interval = object.str_at(&["spec", "refreshInterval"]).unwrap_or("1h");
    let unit = interval.strip_prefix('0');
    unit.is_some_and(|unit| ["", "ns", "us", "µs", "ms", "s", "m", "h"].contains(&unit))
}

fn force_sync(edit: &mut Edit<'_>) -> Result<(), String> {
    let time = edit.time();
    edit.annotate("force-sync", time);
    Ok(())
}

fn of_scaler(kind: &str, object: &Value) -> Vec<BuiltinAction> {
    let is_paused = object.annotation(SCALER_PAUSED) == Some("true");
    let replicas = object.annotation(SCALER_REPLICAS).filter(|_| kind == "ScaledObject");
    let rests = is_paused || replicas.is_some();
    let mut all = vec![
        action("pause", pause_scaler).disabled_if(rests),
        action("resume", resume_scaler).disabled_if(!rests),
    ];
    if kind == "ScaledObject" {
        let at = action("paused-replicas", pause_scaler_at).with("replicas", Some(replicas.unwrap_or("0")));
        all.push(at.disabled_if(is_paused));
    }
    all
}

fn pause_scaler(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(SCALER_PAUSED, "true");
    Ok(())
}

fn pause_scaler_at(edit: &mut Edit<'_>) -> Result<(), String> {
    let replicas = edit.replicas()?;
    edit.annotate(SCALER_REPLICAS, replicas.to_string());
    Ok(())
}

fn resume_scaler(edit: &mut Edit<'_>) -> Result<(), String> {
    for key in [SCALER_PAUSED, SCALER_REPLICAS] {
        edit.unset(&["metadata", "annotations", key]);
    }
    Ok(())
}

fn pause(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(PAUSE, true);
    Ok(())
}

fn unpause(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.set(PAUSE, false);
    Ok(())
}

fn of_postgres(object: &Value) -> Vec<BuiltinAction> {
    let rests = object.annotation(RECONCILIATION) == Some("disabled");
    vec![
        action("restart", restart_postgres).shown_as("Rollout restart Cluster"),
        action("reload", reload_postgres).shown_as("Reload all Configuration"),
        action("promote", promote)
            .shown_as("Promote Replica to Primary")
            .with("instance", Some("any"))
            .disabled_if(items(object, HEALTHY).len() < 2),
        action("suspend", suspend_postgres).shown_as("Suspend Reconciliation").hidden_if(rests),
        action("resume", resume_postgres).shown_as("Resume Reconciliation").hidden_if(!rests),
    ]
}

fn restart_postgres(edit: &mut Edit<'_>) -> Result<(), String> {
    let time = edit.time();
    edit.annotate("kubectl.kubernetes.io/restartedAt", time);
    Ok(())
}

fn reload_postgres(edit: &mut Edit<'_>) -> Result<(), String> {
    let time = edit.time();
    edit.annotate("cnpg.io/reloadedAt", time);
    Ok(())
}

fn suspend_postgres(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.annotate(RECONCILIATION, "disabled");
    Ok(())
}

fn resume_postgres(edit: &mut Edit<'_>) -> Result<(), String> {
    edit.unset(&["metadata", "annotations", RECONCILIATION]);
    Ok(())
}

/// Asks for a switchover to an instance: `any` for the healthy one after the primary, a number, or a name.
fn promote(edit: &mut Edit<'_>) -> Result<(), String> {
    let wanted = edit.params.get("instance").map_or("any", String::as_str);
    let healthy: Vec<&str> = items(&edit.object, HEALTHY).iter().filter_map(Value::as_str).collect();
    let numbered = wanted.parse::<u32>().is_ok().then(|| format!("{}-{wanted}", edit.object.name()));
    let chosen = match wanted {
        "any" => {
            let primary = edit.object.str_at(&["status", "currentPrimary"]);
            let at = healthy.iter().position(|name| Some(*name) == primary).map_or(0, |at| at + 1);
            healthy.get(at).or_else(|| healthy.first())
        }
        _ => healthy.iter().find(|name| **name == numbered.as_deref().unwrap_or(wanted)),
    };
    let chosen = chosen.ok_or_else(|| match healthy.is_empty() {
        true => "no instance is healthy".to_owned(),
        false => format!("no healthy instance is {wanted:?}; there is {}", healthy.join(", ")),
    })?;
    let (chosen, time) = ((*chosen).to_owned(), edit.time());
    edit.set(&["status", "phaseReason"], format!("Switching over to {chosen}"));
    edit.set(&["status", "targetPrimary"], chosen);
    edit.set(&["status", "targetPrimaryTimestamp"], time);
    // The operator's own word for the phase.
    edit.set(&["status", "phase"], "Switchover in progress");
    Ok(())
}
