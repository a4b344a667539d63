//! `tiphys app list`.

use clap::ValueEnum;
use tiphys_cluster::Report;
use tiphys_model::{Application, LabelSelector};
use tiphys_value::{ObjectExt, Value};

use crate::{
    app::{
        session::{AppId, Session},
        view,
    },
    exit::WrongUse,
    output::{Format, print},
};

/// List Applications.
///
/// Examples:
///   tiphys app list
///   tiphys app list --selector team=red --output name
///   tiphys app list --watch
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub filter: Filter,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Stay, and print each Application again when it changes.
    #[arg(long, short)]
    watch: bool,
}

/// Which Applications.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Filter {
    /// Labels: key=value, key!=value, key in (a,b), key.
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// Only Applications of this project; may be given more than once.
    #[arg(long, short = 'p', value_name = "NAME")]
    project: Vec<String>,
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

impl Filter {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.selector.is_none() && self.project.is_empty()
    }

    /// The Applications that fit, by name.
    ///
    /// # Errors
    /// The selector cannot be read.
    pub fn choose(&self, apps: Vec<Value>) -> anyhow::Result<Vec<Value>> {
        let selector =
            LabelSelector::parse(self.selector.as_deref().unwrap_or_default()).map_err(WrongUse)?;
        let mut chosen: Vec<Value> = apps
            .into_iter()
            .filter(|app| selector.matches(|key| app.label(key)))
            .filter(|app| self.project.is_empty() || self.project.iter().any(|name| name == project(app)))
            .collect();
        chosen.sort_by_key(AppId::of);
        Ok(chosen)
    }
}

fn project(app: &Value) -> &str {
    app.str_at(&["spec", "project"]).filter(|name| !name.is_empty()).unwrap_or("default")
}

/// Prints the Applications.
///
/// # Errors
/// The selector cannot be read, or the cluster does not answer.
pub async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
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
            let names: String = apps.iter().map(|app| format!("{}\n", AppId::of(app))).collect();
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
        println!(
            "{}  {}  {}  {}",
            AppId::of(&object),
            app.status.sync.status.as_str(),
            view::health(&app),
            view::revision(&app)
        );
    }
    Ok(())
}
