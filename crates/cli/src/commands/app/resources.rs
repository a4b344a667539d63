//! `tiphys app resources`.

use tiphys_model::Application;
use tiphys_value::json;

use crate::{
    app::{session::Session, view},
    output::{Format, print},
};

/// List the objects of an Application with their state.
///
/// Examples:
///   tiphys app resources shop
///   tiphys app resources shop --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The Application.
    app: String,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Prints the objects.
///
/// # Errors
/// The Application is not there, or the cluster does not answer.
pub async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let object = session.get(&session.id(&args.app)).await?;
    let app = Application::from_value(&object)?;
    let value = object.pointer("/status/resources").cloned().unwrap_or_else(|| json!([]));
    Ok(print(args.output, &view::resources(&app), &value)?)
}
