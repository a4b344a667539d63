//! `tiphys app get`.

use std::time::Duration;

use tiphys_model::Application;

use crate::{
    app::{session::Session, view},
    output::{Format, print, say},
};

/// Show an Application: its status, its operation with what it waits for, its objects.
///
/// Examples:
///   tiphys app get shop
///   tiphys app get shop --refresh --output json
///   tiphys app get shop --watch
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// Let the engine look again first.
    #[arg(long)]
    refresh: bool,
    /// Let the engine look again first, with nothing remembered.
    #[arg(long)]
    hard_refresh: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Stay, and print it again whenever its status changes.
    #[arg(long, short)]
    watch: bool,
}

/// Prints an Application.
///
/// # Errors
/// It is not there, or the cluster does not answer.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    let mut object = match args.refresh || args.hard_refresh {
        true => session.refresh(&id, args.hard_refresh).await?,
        false => session.get(&id).await?,
    };
    loop {
        let app = Application::from_value(&object)?;
        let text = format!("{}\n{}", view::head(&app), view::resources(&app));
        print(args.output, &text, &object)?;
        if !args.watch {
            return Ok(());
        }
        let last = object.get("status").cloned();
        let next = session
            .until(&id, Duration::MAX, |now| match now {
                None => Some(None),
                Some(now) => (now.get("status") != last.as_ref()).then(|| Some(now.clone())),
            })
            .await;
        let Some(Some(next)) = next else {
            say(format_args!("{id} was deleted"))?;
            return Ok(());
        };
        say("")?;
        object = next;
    }
}
