//! `tiphys app adopt`.

use std::io::IsTerminal as _;

use anyhow::bail;
use tiphys_model::{Application, names};
use tiphys_sync::SyncState;
use tiphys_value::{ResourceKey, json};

use crate::{
    app::{consent::ask, session::Session},
    output::{Format, print},
};

/// Say what happens to objects that somebody else owns: Helm, another engine, a person.
///
/// The engine refuses to write over them unless it is told. `adopt` takes them over, `share` sets only
/// fields that nobody else owns, `refuse` goes back to the default.
///
/// Examples:
///   tiphys app adopt shop
///   tiphys app adopt shop --policy share
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// What happens to them.
    #[arg(long, value_parser = ["adopt", "share", "refuse"], default_value = "adopt", value_name = "POLICY")]
    policy: String,
    /// Only show what would change.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Shows what is about to change, asks a person at a terminal, and writes the policy on the Application.
///
/// # Errors
/// It is not there, nobody agrees, or the cluster does not answer.
pub(super) async fn run(session: &Session, args: &Args, agreed: bool) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    let app = Application::from_value(&session.get(&id).await?)?;
    eprint!("{}", preview(&app, &args.policy));
    let can_ask = std::io::stdin().is_terminal();
    if args.dry_run {
        return Ok(());
    }
    if can_ask && !agreed && !ask("Go on?")? {
        bail!("nothing was changed");
    }
    let policy = match args.policy.as_str() {
        "refuse" => json!(null),
        policy => json!(policy),
    };
    let patch = json!({"metadata": {"annotations": {names::OWNERSHIP: policy}}});
    let (_, after) = session.change(&id, |_, _| Ok(patch.clone())).await?;
    let does = match args.policy.as_str() {
        "adopt" => "takes over",
        "share" => "shares",
        _ => "refuses",
    };
    Ok(print(args.output, &format!("{id}: {does} objects that somebody else owns\n"), &after)?)
}

/// What the policy is and becomes, and the objects that the last sync left to their owners, with what it said
/// of them.
fn preview(app: &Application, policy: &str) -> String {
    let present = app.metadata.annotations.get(names::OWNERSHIP).map_or("refuse", String::as_str);
    let mut text = format!("{}: what somebody else owns: {present} -> {policy}\n", app.metadata.name);
    let left = left_alone(app);
    if left.is_empty() {
        text.push_str("  its last sync left no object to another owner\n");
    }
    for key in &left {
        let results = app.status.operation_state.iter().flat_map(|state| &state.sync_result);
        let result = results.flat_map(|result| &result.resources).find(|one| {
            (&one.group, &one.kind, &one.namespace, &one.name)
                == (&key.group, &key.kind, &key.namespace, &key.name)
        });
        let why = result.map(|one| format!(": {}", one.message)).unwrap_or_default();
        text.push_str(&format!("  {key}{why}\n"));
    }
    text
}

/// The objects that the last operation left to their owners.
fn left_alone(app: &Application) -> Vec<ResourceKey> {
    let state = app.status.operation_state.clone().map(SyncState::from_operation_state);
    state.map(|state| state.extension.left_alone).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_over_is_shown_first() {
        let app = json!({"apiVersion": names::API_VERSION, "kind": "Application", "metadata": {"name": "shop"},
            "status": {"operationState": {"phase": "Succeeded", "startedAt": "2026-01-02T03:04:05Z", "operation": {"sync": {}},
                "tiphys": {"leftAlone": [{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"}]},
                "syncResult": {"revision": "abc", "resources": [{"group": "apps", "version": "v1", "kind": "Deployment",
                    "namespace": "shop", "name": "web", "message": "it belongs to Helm release shop/web"}]}}}});
        let text = preview(&Application::from_value(&app).unwrap(), "adopt");
        assert!(text.starts_with("shop: what somebody else owns: refuse -> adopt\n"), "{text}");
        assert!(text.contains("web: it belongs to Helm release shop/web\n"), "{text}");
    }
}
