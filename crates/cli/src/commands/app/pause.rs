//! `tiphys app pause` and `tiphys app resume`.

use std::time::Duration;

use jiff::Timestamp;
use tiphys_model::{Application, Time, names};
use tiphys_value::{ObjectExt as _, json};

use super::sync::object;
use crate::{
    app::session::Session,
    duration,
    output::{Format, print},
};

/// Let an Application rest: nothing is synced or healed until the time is over.
///
/// A pause always ends, so that none is forgotten. Argo CD's own engine does not know it; there `tiphys
/// app set --sync-policy none` does it.
///
/// Examples:
///   tiphys app pause shop --for 2h
///   tiphys app pause shop --for 30m --resource apps:Deployment:shop/cart
///   tiphys app resume shop
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// How long.
    #[arg(long = "for", default_value = "1h", value_parser = duration::parse, value_name = "DURATION")]
    length: Duration,
    /// Only these objects of it rest: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME.
    #[arg(long, value_name = "OBJECT")]
    resource: Vec<String>,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// End the pause of an Application.
///
/// Examples:
///   tiphys app resume shop
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ResumeArgs {
    /// The Application.
    app: String,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Pauses an Application.
///
/// # Errors
/// It is not there, or the cluster does not answer.
pub(super) async fn pause(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    let until = Time::from(tiphys_model::time::after(Timestamp::now(), args.length)).to_string();
    let resting = args
        .resource
        .iter()
        .map(|text| {
            object(text).map(|one| format!("{}/{}/{}/{}", one.group, one.kind, one.namespace, one.name))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let (_, after) = session
        .change(&id, |app, _| {
            let annotations = match resting.is_empty() {
                true => json!({names::PAUSED_UNTIL: &until}),
                false => json!({names::PAUSED_RESOURCES: listed(app, &resting, &until)}),
            };
            Ok(json!({"metadata": {"annotations": annotations}}))
        })
        .await?;
    let what = if resting.is_empty() { String::new() } else { format!(" for {}", resting.join(", ")) };
    Ok(print(args.output, &format!("{id} is paused until {until}{what}\n"), &after)?)
}

/// The objects that rest already, and these.
fn listed(app: &Application, resting: &[String], until: &str) -> String {
    let known = app.annotation(names::PAUSED_RESOURCES).unwrap_or_default();
    let others = known.split(',').map(str::trim).filter(|entry| {
        !entry.is_empty() && entry.split('=').next().is_none_or(|key| !resting.iter().any(|own| own == key))
    });
    let own = resting.iter().map(|key| format!("{key}={until}"));
    others.map(str::to_owned).chain(own).collect::<Vec<_>>().join(",")
}

/// Ends a pause.
///
/// # Errors
/// The Application is not there, or the cluster does not answer.
pub(super) async fn resume(session: &Session, args: &ResumeArgs) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    let both = [names::PAUSED_UNTIL, names::PAUSED_RESOURCES];
    let patch =
        json!({"metadata": {"annotations": {names::PAUSED_UNTIL: null, names::PAUSED_RESOURCES: null}}});
    let (before, after) = session.change(&id, |_, _| Ok(patch.clone())).await?;
    let was = both.iter().any(|name| before.annotation(name).is_some());
    let is = if was { "is no longer paused" } else { "was not paused" };
    Ok(print(args.output, &format!("{id} {is}\n"), &after)?)
}
