//! `tiphys app history`.

use tiphys_model::{Application, RevisionHistory};
use tiphys_value::{Value, json};

use crate::{
    app::session::Session,
    output::{Format, print, table},
};

/// Show what was deployed when.
///
/// Examples:
///   tiphys app history shop
///   tiphys app history shop --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Prints the history, oldest first.
///
/// # Errors
/// The Application is not there, or the cluster does not answer.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let object = session.get(&session.id(&args.app)?).await?;
    let app = Application::from_value(&object)?;
    let rows: Vec<[String; 4]> = app.status.history.iter().map(row).collect();
    let value = object.pointer("/status/history").cloned().unwrap_or_else(|| json!([]));
    let text = table(["ID", "DATE", "REVISION", "BY"], &rows);
    Ok(print(args.output, &text, &Value::clone(&value))?)
}

fn row(entry: &RevisionHistory) -> [String; 4] {
    let by = match entry.initiated_by.automated {
        true => "automated sync".to_owned(),
        false => entry.initiated_by.username.clone(),
    };
    let revision =
        if entry.revisions.is_empty() { entry.revision.clone() } else { entry.revisions.join(", ") };
    [entry.id.to_string(), entry.deployed_at.to_string(), revision, by]
}
