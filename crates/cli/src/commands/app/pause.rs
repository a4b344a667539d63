//! `tiphys app pause` and `tiphys app resume`.

use std::time::Duration;

use jiff::Timestamp;
use tiphys_model::{Time, names};
use tiphys_value::json;

use crate::{app::session::Session, duration};

/// Let an Application rest: nothing is synced or healed until the time is over.
///
/// A pause always ends, so that none is forgotten. Argo CD's own engine does not know it; there `tiphys
/// app set --sync-policy none` does it.
///
/// Examples:
///   tiphys app pause shop --for 2h
///   tiphys app resume shop
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The Application.
    app: String,
    /// How long.
    #[arg(long = "for", default_value = "1h", value_parser = duration::parse, value_name = "DURATION")]
    length: Duration,
}

/// End the pause of an Application.
///
/// Examples:
///   tiphys app resume shop
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ResumeArgs {
    /// The Application.
    app: String,
}

/// Pauses an Application.
///
/// # Errors
/// It is not there, or the cluster does not answer.
pub async fn pause(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app);
    let until = Time::from(tiphys_model::time::after(Timestamp::now(), args.length)).to_string();
    session
        .change(&id, |_, _| Ok(json!({"metadata": {"annotations": {names::PAUSED_UNTIL: &until}}})))
        .await?;
    println!("{id} is paused until {until}");
    Ok(())
}

/// Ends a pause.
///
/// # Errors
/// The Application is not there, or the cluster does not answer.
pub async fn resume(session: &Session, args: &ResumeArgs) -> anyhow::Result<()> {
    let id = session.id(&args.app);
    let patch = json!({"metadata": {"annotations": {names::PAUSED_UNTIL: null}}});
    let (before, _) = session.change(&id, |_, _| Ok(patch.clone())).await?;
    let was = before.pointer("/metadata/annotations").and_then(|all| all.get(names::PAUSED_UNTIL)).is_some();
    println!("{id} {}", if was { "is no longer paused" } else { "was not paused" });
    Ok(())
}
