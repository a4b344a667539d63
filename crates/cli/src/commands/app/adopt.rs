//! `tiphys app adopt`.

use tiphys_model::names;
use tiphys_value::json;

use crate::{
    app::session::Session,
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
pub struct Args {
    /// The Application.
    app: String,
    /// What happens to them.
    #[arg(long, value_parser = ["adopt", "share", "refuse"], default_value = "adopt", value_name = "POLICY")]
    policy: String,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Writes the policy on the Application.
///
/// # Errors
/// It is not there, or the cluster does not answer.
pub async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
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
