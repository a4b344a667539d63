//! A look of an engine beside another one: what would be done for an Application, recorded and not done.

use tiphys_model::{Application, HealthCode, SyncStatusCode};
use tiphys_sync::AutoSync;
use tiphys_value::{ObjectExt, ResourceKey};

use super::{decide::automated, report::Report, status::show};
use crate::{
    AppKey, Refresh,
    destinations::Absent,
    engine::Engine,
    finalize::Members,
    shadow::{Decision, Difference, decision},
};

/// What would be done for an Application; `None` while that cannot be known.
pub(super) async fn decision_about(
    engine: &Engine,
    key: &AppKey,
    mut app: Application,
    level: Refresh,
    report: &mut Report,
) -> Option<Decision> {
    let home = &engine.home;
    let there = app.clone();
    if app.is_terminating() {
        let mut made = decision("Application", key, "delete", "its deletion was asked for");
        let members = match engine.clusters.cluster_of(&app) {
            Ok(cluster) => engine.finalizer.members(&app, &cluster),
            Err(_) => Ok(Members::default()),
        };
        let members = match members {
            Ok(members) => members.going,
            Err(why) => {
                return Some(decision("Application", key, "wait", why));
            }
        };
        made.delete = members.iter().map(|object| object.resource_key().to_string()).collect();
        return Some(made);
    }
    let faults = engine.policies.spec_faults(&app);
    if !faults.is_empty() {
        return Some(decision("Application", key, "refuse", faults.join("; ")));
    }
    let cluster = match engine.clusters.cluster_of(&app) {
        Ok(cluster) => cluster,
        Err(Absent::Pending) => return None,
        Err(Absent::Unknown(why) | Absent::Unreachable(why)) => {
            return Some(decision("Application", key, "wait", why));
        }
    };
    let rendering = engine.renderer.rendering(key, &app, level, &cluster, report).await;
    report.looks.extend(engine.renderer.next_poll(key, &rendering));
    let compared = engine.comparer.compare(&app, rendering.clone(), &cluster).await;
    show(&mut app, compared.as_ref(), level, &home.settings.namespace, home.now());
    let Some(compared) = compared else {
        let fault = rendering.targets.as_ref().err().map(|error| format!("{error:#}"));
        let reason = fault.unwrap_or_else(|| "its project is not known".into());
        return Some(decision("Application", key, "refuse", reason));
    };
    let open = compared.policy.may_begin(&app, home.now());
    let (action, reason) =
        match automated(&app, &compared, open == Ok(true), &home.installation().auto, home.now()) {
            AutoSync::Start(operation) => {
                let heals = operation.sync.as_ref().is_some_and(|sync| sync.is_selective());
                ("sync", if heals { "self-heal" } else { "automated sync" }.to_owned())
            }
            AutoSync::Refused(condition) => ("refuse", condition.message),
            AutoSync::Later(at, why) => ("wait", format!("{why}; until {at}")),
            AutoSync::Held(_, condition) => ("wait", condition.message),
            AutoSync::Nothing(why) => ("none", why.to_owned()),
            AutoSync::Left(why) => ("none", why),
        };
    let mut made = decision("Application", key, action, reason);
    made.revision = compared.rendering.revision().to_owned();
    made.sync = Some(app.status.sync.status);
    made.health = app.status.health.status;
    made.differs = differences(&there, &app);
    if action == "sync" {
        made.apply = compared.comparison.out_of_sync.iter().map(ResourceKey::to_string).collect();
        made.delete = compared.comparison.prunable.iter().map(ResourceKey::to_string).collect();
    }
    Some(made)
}

/// Where the status that is there and the one that this engine would write disagree.
fn differences(there: &Application, ours: &Application) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut push = |what: &'static str, text: String| all.push(Difference { what, text });
    let (theirs, own) = (there.status.sync.status, ours.status.sync.status);
    if theirs != own {
        push("sync", format!("sync status: {} there, {} here", theirs.as_str(), own.as_str()));
    }
    let text = |app: &Application| app.status.health.status.map_or("none", HealthCode::as_str);
    if there.status.health.status != ours.status.health.status {
        push("health", format!("health: {} there, {} here", text(there), text(ours)));
    }
    for resource in &ours.status.resources {
        let same = there.status.resources.iter().find(|other| {
            (&other.group, &other.kind, &other.namespace, &other.name)
                == (&resource.group, &resource.kind, &resource.namespace, &resource.name)
        });
        let status = |status: Option<SyncStatusCode>| status.map_or("none", SyncStatusCode::as_str);
        let name = format!("{}/{}", resource.kind, resource.name);
        match same {
            None => push("object", format!("{name}: not listed there, {} here", status(resource.status))),
            Some(same) if same.status != resource.status => {
                push(
                    "object",
                    format!("{name}: {} there, {} here", status(same.status), status(resource.status)),
                );
            }
            Some(_) => {}
        }
    }
    all
}
