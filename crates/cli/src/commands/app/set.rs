//! `tiphys app set`.

use tiphys_model::{Application, names};
use tiphys_value::{ObjectExt as _, Value, json};

use super::create::wanted_of;
use crate::{
    app::{session::Session, spec::SpecArgs},
    exit::WrongUse,
    output::{Format, print},
};

/// Change parts of an Application's spec.
///
/// What Git describes is changed back by who renders it; for an Application of an App-of-Apps change its
/// source.
///
/// Examples:
///   tiphys app set shop --revision v1.2.3
///   tiphys app set shop --helm-set image.tag=1.4 --sync-option PruneLast=true
///   tiphys app set shop --sync-policy none
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    #[command(flatten)]
    spec: SpecArgs,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Changes the Application.
///
/// # Errors
/// It is not there, nothing can be set so, or the cluster refuses it.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    if args.spec.is_empty() {
        return Err(
            WrongUse("there is nothing to set; `tiphys app set --help` lists what can be".into()).into()
        );
    }
    args.spec.warn();
    let (before, after) = session
        .change(&id, |app, object| {
            let mut wanted: Application = app.clone();
            args.spec.apply(&mut wanted)?;
            let wanted = wanted.to_value();
            let metadata = &wanted["metadata"];
            let metadata = json!({"labels": metadata["labels"], "annotations": metadata["annotations"]});
            Ok(wanted_of(object, &wanted, metadata))
        })
        .await?;
    let changed = ["spec", "metadata"].iter().any(|part| meaning(&before, part) != meaning(&after, part));
    if let Some(mark) = after.annotation(names::TRACKING_ID) {
        let owner = mark.split(':').next().unwrap_or_default();
        eprintln!("{id} is rendered by the Application {owner}, which may change it back");
    }
    let text = if changed { format!("{id} was changed\n") } else { format!("{id} was so already\n") };
    Ok(print(args.output, &text, &after)?)
}

/// What of an object a person means when they change it.
fn meaning(object: &Value, part: &str) -> Value {
    match part {
        "metadata" => {
            json!([object["metadata"]["labels"].clone(), object["metadata"]["annotations"].clone()])
        }
        _ => object[part].clone(),
    }
}
