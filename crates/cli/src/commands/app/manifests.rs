//! `tiphys app manifests`.

use clap::ValueEnum;
use tiphys_diff::mask_secret;
use tiphys_model::Application;
use tiphys_value::Value;

use crate::{
    app::{
        desired::{self, Wanted},
        session::Session,
    },
    output::{Format, print_manifests},
};

/// Print the objects of an Application: as its sources describe them, or as they are.
///
/// Values of Secrets are masked.
///
/// Examples:
///   tiphys app manifests shop
///   tiphys app manifests shop --source live
///   tiphys app manifests shop --revision v1.2.3 --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// Which objects.
    #[arg(long, value_enum, default_value_t = Source::Git)]
    source: Source,
    #[command(flatten)]
    wanted: Wanted,
    /// How the result is written: text is one YAML document for each object.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// As the sources describe them.
    Git,
    /// As they are in the cluster.
    Live,
}

/// Prints the objects.
///
/// # Errors
/// The Application is not there, does not render, or the cluster does not answer.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let app = Application::from_value(&session.get(&session.id(&args.app)?).await?)?;
    let settings = desired::settings_of(session).await?;
    let cluster = desired::destination(session, &app).await?;
    let mut objects: Vec<Value> = match args.source {
        Source::Live => desired::live(&cluster, &desired::listed(&app)).await?.into_values().collect(),
        Source::Git => {
            let rendered = desired::rendered(session, &cluster, &app, &args.wanted, &settings).await?;
            rendered.warnings.iter().for_each(|warning| eprintln!("{warning}"));
            rendered.objects.into_iter().map(|object| object.value).collect()
        }
    };
    for object in &mut objects {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        mask_secret(&mut [&mut *object], &settings.masked_annotations);
    }
    let text: String = match args.output {
        Format::Text => {
            objects.iter().map(|object| format!("---\n{}", tiphys_yaml::to_yaml(object))).collect()
        }
        Format::Json | Format::Yaml => String::new(),
    };
    Ok(print_manifests(args.output, &text, &Value::Array(objects))?)
}
