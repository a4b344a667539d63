//! `tiphys app delete`.

use std::{io::IsTerminal as _, time::Duration};

use anyhow::bail;
use tiphys_model::{Application, Cascade, names};
use tiphys_value::json;

use crate::{
    app::{
        consent::ask,
        selection::Selection,
        session::{AppId, Session},
    },
    duration,
    exit::WrongUse,
    output::{Format, print},
};

/// Delete Applications, and with them their objects.
///
/// Without --cascade=false every object of an Application is deleted too; it is said beforehand which,
/// and a terminal is asked.
///
/// Examples:
///   tiphys app delete shop
///   tiphys app delete shop --yes --wait
///   tiphys app delete shop --cascade=false --yes
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Delete the objects too.
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set, value_name = "BOOL")]
    cascade: bool,
    /// How what the objects own is deleted.
    #[arg(long, short = 'P', value_parser = ["foreground", "background"], default_value = "foreground", value_name = "POLICY")]
    propagation_policy: String,
    /// Wait until they are gone.
    #[arg(long)]
    wait: bool,
    /// How long to wait.
    #[arg(long, default_value = "10m", value_parser = duration::parse, value_name = "DURATION")]
    timeout: Duration,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Deletes the Applications.
///
/// # Errors
/// Nobody agreed, or the cluster does not answer.
pub(super) async fn run(session: &Session, args: &Args, agreed: bool) -> anyhow::Result<()> {
    let ids = args.selection.resolve(session).await?;
    let mut apps = Vec::new();
    for id in &ids {
        apps.push(Application::from_value(&session.get(id).await?)?);
    }
    if !agreed {
        agree(session, args, &apps)?;
    }
    for id in &ids {
        session.change(id, |app, _| Ok(json!({"metadata": {"finalizers": finalizers(args, app)}}))).await?;
        session.delete(id).await?;
        eprintln!("deletion of {id} was asked for");
    }
    if args.wait {
        for id in &ids {
            wait_until_gone(session, id, args.timeout).await?;
        }
    }
    let values = apps.iter().map(|app| {
        let objects = app.status.resources.iter().filter(|resource| !resource.hook).count();
        json!({"namespace": app.metadata.namespace, "name": app.metadata.name, "gone": args.wait,
            "cascade": args.cascade, "objects": objects})
    });
    Ok(print(args.output, "", &values.collect())?)
}

async fn wait_until_gone(session: &Session, id: &AppId, patience: Duration) -> anyhow::Result<()> {
    let mut held = String::new();
    let seen = session
        .until(id, patience, |object| match object {
            None => Some(()),
            Some(object) => {
                let app = Application::from_value(object).ok()?;
                let conditions = app.status.conditions.iter().map(|condition| condition.message.clone());
                held = conditions.collect::<Vec<_>>().join("; ");
                None
            }
        })
        .await;
    match seen {
        Some(()) => {
            eprintln!("{id} is gone");
            Ok(())
        }
        None => bail!("{id} is not gone after {}: {held}", duration::humanize(patience)),
    }
}

/// The finalizers that make the engine do what is asked for; those of others stay.
fn finalizers(args: &Args, app: &Application) -> Vec<String> {
    let ours = [names::RESOURCES_FINALIZER, names::FOREGROUND_FINALIZER, names::BACKGROUND_FINALIZER];
    let mut all: Vec<String> =
        app.metadata.finalizers.iter().filter(|name| !ours.contains(&name.as_str())).cloned().collect();
    if args.cascade {
        let policy = args.propagation_policy.as_str();
        let name =
            if policy == "background" { names::BACKGROUND_FINALIZER } else { names::RESOURCES_FINALIZER };
        all.push(name.to_owned());
    }
    all
}

fn agree(session: &Session, args: &Args, apps: &[Application]) -> anyhow::Result<()> {
    for app in apps {
        let count = app.status.resources.iter().filter(|resource| !resource.hook).count();
        let was = if app.cascade() == Cascade::Orphan { " (it had no finalizer for that)" } else { "" };
        let what = match args.cascade {
            true => format!("and its {count} objects{was}"),
            false => format!("; its {count} objects stay"),
        };
        eprintln!("{}/{} {what} would be deleted", app.metadata.namespace, app.metadata.name);
    }
    if !std::io::stdin().is_terminal() {
        return Err(WrongUse("nobody can be asked here; --yes deletes without asking".into()).into());
    }
    if ask(&format!("Delete from the cluster at {}?", session.address))? {
        Ok(())
    } else {
        bail!("nothing was deleted")
    }
}
