//! `tiphys app resources`.

use tiphys_model::Application;
use tiphys_value::{ObjectExt as _, Value, json};

use crate::{
    app::{session::Session, view},
    exit::WrongUse,
    output::{Format, print, table},
};

/// List the objects of an Application with their state.
///
/// Examples:
///   tiphys app resources shop
///   tiphys app resources shop --output json
///   tiphys app resources shop --orphaned
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// List the objects of its destination namespace that no Application has; its project must monitor them
    /// (spec.orphanedResources).
    #[arg(long)]
    orphaned: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Prints the objects.
///
/// # Errors
/// The Application is not there, or the cluster does not answer.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let object = session.get(&session.id(&args.app)?).await?;
    let app = Application::from_value(&object)?;
    if args.orphaned {
        return orphaned(&object, args.output);
    }
    let value = object.pointer("/status/resources").cloned().unwrap_or_else(|| json!([]));
    Ok(print(args.output, &view::resources(&app), &value)?)
}

/// Prints what the engine found in the destination namespace.
fn orphaned(app: &Value, format: Format) -> anyhow::Result<()> {
    let Some(found) = app.pointer("/status/tiphys/orphaned") else {
        let project = app.str_at(&["spec", "project"]).unwrap_or("default");
        let message = format!(
            "nobody looks for orphaned objects: project {project} has no spec.orphanedResources, or the engine has not looked yet"
        );
        return Err(WrongUse(message).into());
    };
    let objects = found.get("objects").and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |object: &Value, field: &str| object.str_at(&[field]).unwrap_or_default().to_owned();
    let rows: Vec<[String; 4]> = objects
        .iter()
        .map(|object| ["group", "kind", "namespace", "name"].map(|field| text(object, field)))
        .collect();
    let mut shown = table(["GROUP", "KIND", "NAMESPACE", "NAME"], &rows);
    let count = found.get("count").and_then(Value::as_u64).unwrap_or_default();
    let left_out = count.saturating_sub(objects.len() as u64);
    if left_out > 0 {
        shown.push_str(&format!("and {left_out} more\n"));
    }
    Ok(print(format, &shown, found)?)
}
