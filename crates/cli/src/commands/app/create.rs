//! `tiphys app create`.

use std::path::PathBuf;

use anyhow::bail;
use tiphys_model::{Application, has_null, names};
use tiphys_value::{ObjectExt, Value, json};

use crate::{
    app::{
        session::{AppId, Session, put},
        spec::SpecArgs,
    },
    dump,
    exit::WrongUse,
    output::{Format, print},
};

/// Create an Application, from flags or from a file.
///
/// Examples:
///   tiphys app create shop --repo https://git.example.com/shop.git --path deploy \
///     --dest-name in-cluster --dest-namespace shop --sync-policy automated --self-heal
///   tiphys app create --file shop.yaml --upsert
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Name of the Application; a file may say it.
    #[arg(required_unless_present = "file")]
    app: Option<String>,
    /// A file with an Application, or - for the standard input; flags change what it says.
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Change the Application if it is there already.
    #[arg(long)]
    upsert: bool,
    /// Delete the objects when the Application is deleted.
    #[arg(long)]
    set_finalizer: bool,
    #[command(flatten)]
    spec: SpecArgs,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Creates the Application.
///
/// # Errors
/// It is there already, it lacks something, or the cluster refuses it.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let mut app = match &args.file {
        Some(file) => from_file(file)?,
        None => Application::default(),
    };
    if let Some(name) = &args.app {
        let id = session.id(name)?;
        app.metadata.name = id.name;
        app.metadata.namespace = id.namespace;
    }
    if app.metadata.namespace.is_empty() {
        app.metadata.namespace.clone_from(&session.namespace);
    }
    args.spec.apply(&mut app)?;
    if app.spec.project.is_empty() {
        app.spec.project = "default".into();
    }
    if args.set_finalizer && app.metadata.finalizers.is_empty() {
        app.metadata.finalizers.push(names::RESOURCES_FINALIZER.into());
    }
    check(&app)?;
    let id = AppId { namespace: app.metadata.namespace.clone(), name: app.metadata.name.clone() };
    args.spec.warn();
    let (fate, created) = create(session, args, &id, &app).await?;
    print(args.output, &format!("application {id} {fate}\n"), &created)?;
    Ok(())
}

/// Creates the Application, or changes it; returns what became of it.
async fn create(
    session: &Session,
    args: &Args,
    id: &AppId,
    app: &Application,
) -> anyhow::Result<(&'static str, Value)> {
    let mut object = app.to_value();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    match session.find(id).await? {
        None => Ok(("was created", session.create(&object).await?)),
        Some(there) if there.get("spec") == object.get("spec") => Ok(("was so already", there)),
        Some(_) if args.upsert => {
            let wanted =
                |_: &Application, there: &Value| Ok(wanted_of(there, &object, object["metadata"].clone()));
            Ok(("was changed", session.change(id, wanted).await?.1))
        }
        Some(_) => bail!("Application {id} is there already with another spec; --upsert changes it"),
    }
}

/// The patch that gives an Application the spec of another, and metadata beside its own.
pub(super) fn wanted_of(there: &Value, wanted: &Value, metadata: Value) -> Value {
    if has_null(&wanted["spec"]) {
        let mut operations = vec![put("/spec", wanted["spec"].clone())];
        for (field, own) in metadata.as_object().into_iter().flatten() {
            let mut all = there["metadata"][field].clone();
            match (&mut all, own) {
                (_, Value::Null) => continue,
                (Value::Object(all), Value::Object(own)) => all.extend(own.clone()),
                (all, own) => *all = own.clone(),
            }
            operations.push(put(&format!("/metadata/{field}"), all));
        }
        return operations.into();
    }
    let mut patch = json!({"metadata": metadata, "spec": wanted["spec"]});
    forget_absent(&there["spec"], &mut patch["spec"], 0);
    patch
}

/// Makes a merge patch of what is wanted: what is there and not wanted goes.
fn forget_absent(there: &Value, wanted: &mut Value, depth: usize) {
    const MAX_DEPTH: usize = 64;
    let (Value::Object(there), Value::Object(wanted)) = (there, wanted) else { return };
    if depth > MAX_DEPTH {
        return;
    }
    for (key, value) in there {
        match wanted.get_mut(key) {
            Some(below) => forget_absent(value, below, depth + 1),
            None => {
                wanted.insert(key.clone(), Value::Null);
            }
        }
    }
}

fn from_file(file: &std::path::Path) -> anyhow::Result<Application> {
    let objects = dump::read(file).map_err(|error| WrongUse(format!("{error:#}")))?;
    let mut apps = objects.iter().filter(|object| object.kind() == "Application");
    match (apps.next(), apps.next()) {
        (Some(app), None) => Ok(Application::from_value(app).map_err(|error| WrongUse(error.to_string()))?),
        (None, _) => Err(WrongUse(format!("{} holds no Application", file.display())).into()),
        (Some(_), Some(_)) => {
            Err(WrongUse(format!("{} holds more than one Application", file.display())).into())
        }
    }
}

fn check(app: &Application) -> Result<(), WrongUse> {
    let lacks = |what: &str| Err(WrongUse(format!("the Application has no {what}")));
    if app.metadata.name.is_empty() {
        return lacks("name");
    }
    let sources = app.spec.effective_sources();
    if sources.is_empty() || sources.iter().any(|source| source.repo_url.is_empty()) {
        return lacks("repository: give one with --repo");
    }
    if sources.iter().all(|source| source.path.is_empty() && source.chart.is_empty()) {
        return lacks("path or chart: give one with --path or --helm-chart");
    }
    let destination = &app.spec.destination;
    if destination.server.is_empty() && destination.name.is_empty() {
        return lacks("destination: give one with --dest-server or --dest-name");
    }
    Ok(())
}
