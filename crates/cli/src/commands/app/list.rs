//! `tiphys app list`.

use clap::ValueEnum;
use tiphys_cluster::Report;
use tiphys_model::Application;
use tiphys_value::Value;

use crate::{
    app::{
        selection::Filter,
        session::{AppId, Session},
        view,
    },
    output::{Format, print, say},
};

/// List Applications.
///
/// Examples:
///   tiphys app list
///   tiphys app list --selector team=red --output name
///   tiphys app list --watch
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    pub filter: Filter,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Stay, and print each Application again when it changes.
    #[arg(long, short)]
    watch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table.
    #[value(alias = "wide")]
    Text,
    /// One JSON text.
    Json,
    /// One YAML text.
    Yaml,
    /// Namespaces and names only.
    Name,
}

/// Prints the Applications.
///
/// # Errors
/// The selector cannot be read, or the cluster does not answer.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    show(args, args.filter.choose(session.list().await?)?)?;
    if !args.watch {
        return Ok(());
    }
    let mut failure = None;
    session
        .follow(|report| {
            let Report::Upsert(app) = report else { return true };
            let shown = args.filter.choose(vec![app]).and_then(|apps| changed(args, apps));
            failure = shown.err();
            failure.is_none()
        })
        .await;
    failure.map_or(Ok(()), Err)
}

fn show(args: &Args, apps: Vec<Value>) -> anyhow::Result<()> {
    let format = match args.output {
        Output::Text => Format::Text,
        Output::Json => Format::Json,
        Output::Yaml => Format::Yaml,
        Output::Name => {
            let names: String = apps.iter().map(|app| format!("{}\n", AppId::from_object(app))).collect();
            return Ok(print(Format::Text, &names, &Value::Null)?);
        }
    };
    let text = if format == Format::Text { view::rows(&apps) } else { String::new() };
    Ok(print(format, &text, &Value::Array(apps))?)
}

/// One Application again: a row without the header, or an object.
fn changed(args: &Args, apps: Vec<Value>) -> anyhow::Result<()> {
    if args.output != Output::Text {
        return show(args, apps);
    }
    for object in apps {
        let app = Application::from_value(&object)?;
        say(format_args!(
            "{}  {}  {}  {}",
            AppId::from_object(&object),
            app.status.sync.status.as_str(),
            view::health(&app),
            view::revision(&app)
        ))?;
    }
    Ok(())
}
