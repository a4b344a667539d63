//! `tiphys app terminate`.

use anyhow::bail;
use tiphys_value::json;

use crate::{
    app::session::Session,
    output::{Format, print},
};

/// End the operation that is under way. Running hooks are deleted; what was applied stays.
///
/// Examples:
///   tiphys app terminate shop
///   tiphys app terminate shop --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Asks for the end of the operation.
///
/// # Errors
/// None is under way.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    let (_, after) = session
        .change(&id, |app, _| {
            let state = app.status.operation_state.as_ref();
            let runs = state.is_some_and(|state| !state.phase.is_completed());
            match (runs, app.operation.is_some()) {
                (true, _) => Ok(json!({"status": {"operationState": {"phase": "Terminating"}}})),
                (false, true) => Ok(json!({"operation": null})),
                (false, false) => bail!("no operation of {id} is under way"),
            }
        })
        .await?;
    eprintln!("the operation of {id} is being ended");
    Ok(print(args.output, "", &after)?)
}
