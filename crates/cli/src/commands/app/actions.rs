//! `tiphys app actions`.

use std::{collections::BTreeMap, fmt::Write as _};

use clap::Subcommand;
use tiphys_cluster::{Cluster, ClusterError, PatchType};
use tiphys_health::{Actions, Outcome};
use tiphys_merge::create_merge_patch;
use tiphys_model::{AppProject, Application, Clock, Destination, names};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey, Value, json};

use crate::{
    app::{
        desired,
        session::{AppId, FIELD_MANAGER, Session},
    },
    clusters::{HOME, cluster_of},
    exit::WrongUse,
    output::{Format, print, table},
};

/// Run actions on the live objects of an Application: restart, scale, pause, promote, …
///
/// Actions are those of the keys resource.customizations.actions.* of argocd-cm and built-in ones, by Argo
/// CD's names. An Application itself is one of its objects (toggle-auto-sync).
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

impl Args {
    /// Whether an action is run, and not only listed.
    pub(super) fn runs_one(&self) -> bool {
        matches!(self.command, Command::Run(_))
    }
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    List(ListArgs),
    Run(RunArgs),
}

/// List what the objects of an Application offer.
///
/// Examples:
///   tiphys app actions list shop
///   tiphys app actions list shop --kind Deployment --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct ListArgs {
    /// The Application.
    app: String,
    #[command(flatten)]
    filter: Filter,
    /// Only objects of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Run an action on an object of an Application, or on several.
///
/// What an action makes must be permitted by the Application's project. A change of a field that the sources
/// set is a difference, and self-heal takes it back.
///
/// Examples:
///   tiphys app actions run shop restart --kind Deployment --all
///   tiphys app actions run shop scale --kind Deployment --resource-name web --param replicas=3
///   tiphys app actions run shop create-job --kind CronJob --resource-name backup
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct RunArgs {
    /// The Application.
    app: String,
    /// The action.
    action: String,
    #[command(flatten)]
    filter: Filter,
    /// Kind of the object.
    #[arg(long)]
    kind: String,
    /// Run it on all objects that fit.
    #[arg(long)]
    all: bool,
    /// A parameter of the action; may be given more than once.
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Which objects.
#[derive(Clone, Debug, clap::Args)]
struct Filter {
    /// API group of the object; empty for the core group.
    #[arg(long)]
    group: Option<String>,
    /// Namespace of the object.
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Name of the object.
    #[arg(long, value_name = "NAME")]
    resource_name: Option<String>,
}

impl Filter {
    fn fits(&self, object: &Value, kind: Option<&str>) -> bool {
        let is = |wanted: Option<&str>, given: &str| wanted.is_none_or(|wanted| wanted == given);
        is(kind, object.kind())
            && is(self.group.as_deref(), &object.gvk().group)
            && is(self.namespace.as_deref(), object.namespace())
            && is(self.resource_name.as_deref(), object.name())
    }
}

/// Lists or runs.
///
/// # Errors
/// No object fits, an action fails or is not permitted, or the cluster refuses what it makes.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::List(args) => list(session, args).await,
        Command::Run(args) => act(session, args).await,
    }
}

/// The live objects of an Application, and what is needed to act on them.
struct Scene {
    app: Application,
    /// The cluster of the Application's objects.
    cluster: Cluster,
    objects: Vec<Value>,
    actions: Actions,
}

impl Scene {
    async fn open(session: &Session, id: &AppId) -> anyhow::Result<Self> {
        let object = session.get(id).await?;
        let app = Application::from_value(&object)?;
        let cluster = desired::destination(session, &app).await?;
        let live = desired::live(&cluster, &desired::listed(&app)).await?;
        let settings = desired::settings_of(session).await?;
        let actions = Actions::new(settings.customizations, Clock::default());
        let objects = live.into_values().chain([object]).collect();
        Ok(Self { app, cluster, objects, actions })
    }
}

async fn list(session: &Session, args: &ListArgs) -> anyhow::Result<()> {
    let scene = Scene::open(session, &session.id(&args.app)?).await?;
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for object in scene.objects.iter().filter(|object| args.filter.fits(object, args.kind.as_deref())) {
        let ResourceKey { group, kind, namespace, name } = object.resource_key();
        for action in scene.actions.list(object)? {
            let params: Vec<String> = action
                .params
                .iter()
                .map(|param| format!("{}={}", param.name, param.default.as_deref().unwrap_or_default()))
                .collect();
            values.push(json!({"group": group, "kind": kind, "namespace": namespace, "name": name,
                "action": action.name, "displayName": action.display_name, "disabled": action.disabled,
                "params": action.params.iter().map(|param| json!({"name": param.name, "default": param.default})).collect::<Vec<_>>()}));
            rows.push([
                group.clone(),
                kind.clone(),
                namespace.clone(),
                name.clone(),
                action.name,
                action.disabled.to_string(),
                params.join(" "),
            ]);
        }
    }
    let header = ["GROUP", "KIND", "NAMESPACE", "NAME", "ACTION", "DISABLED", "PARAMETERS"];
    Ok(print(args.output, &table(header, &rows), &Value::Array(values))?)
}

async fn act(session: &Session, args: &RunArgs) -> anyhow::Result<()> {
    let params = params(&args.param)?;
    let id = session.id(&args.app)?;
    let scene = Scene::open(session, &id).await?;
    let chosen = chosen(&scene.objects, args)?;
    let project = project_of(session, &scene.app).await?;
    let mut planned = Vec::new();
    for object in chosen {
        // The Application itself lives in this cluster, whatever its destination.
        let is_app = object.gvk().group == names::GROUP && AppId::from_object(object) == id;
        let cluster = if is_app { &session.cluster } else { &scene.cluster };
        for outcome in scene.actions.run(object, &args.action, &params)? {
            if !is_app {
                permitted(cluster, project.as_ref(), &scene.app, object, outcome.object())?;
            }
            if let Outcome::Create(made) = &outcome {
                cluster.create(made, FIELD_MANAGER, true).await?;
            }
            planned.push((cluster, object, outcome));
        }
    }
    let (mut text, mut values) = (String::new(), Vec::new());
    for (cluster, live, outcome) in planned {
        let object = outcome.object();
        let name = format!("{}/{}", object.kind(), object.name());
        let done =
            write(cluster, live, &outcome).await.map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}: {done}");
        let ResourceKey { group, kind, namespace, name } = object.resource_key();
        values.push(
            json!({"group": group, "kind": kind, "namespace": namespace, "name": name, "result": done}),
        );
    }
    Ok(print(args.output, &text, &Value::Array(values))?)
}

fn params(given: &[String]) -> Result<BTreeMap<String, String>, WrongUse> {
    let read = |text: &String| {
        let (name, value) =
            text.split_once('=').ok_or_else(|| WrongUse(format!("--param {text}: write NAME=VALUE")))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    given.iter().map(read).collect()
}

/// The objects that an action is asked for.
fn chosen<'a>(objects: &'a [Value], args: &RunArgs) -> Result<Vec<&'a Value>, WrongUse> {
    let fits = |object: &&Value| args.filter.fits(object, Some(&args.kind));
    let chosen: Vec<&Value> = objects.iter().filter(fits).collect();
    let Some(first) = chosen.first() else {
        return Err(WrongUse(format!("no object of {} of kind {} fits", args.app, args.kind)));
    };
    if chosen.iter().any(|object| object.gvk().group != first.gvk().group) {
        return Err(WrongUse(format!("{} is a kind of several groups; choose one with --group", args.kind)));
    }
    if chosen.len() > 1 && !args.all {
        let names: Vec<&str> = chosen.iter().map(|object| object.name()).collect();
        return Err(WrongUse(format!(
            "{} objects fit ({}); choose one with --resource-name, or take --all",
            chosen.len(),
            names.join(", ")
        )));
    }
    Ok(chosen)
}

/// The project of an Application, with what global projects add left out; `None` if it may not be read.
async fn project_of(session: &Session, app: &Application) -> anyhow::Result<Option<AppProject>> {
    let kind = GroupVersionKind::from_api_version(names::API_VERSION, "AppProject");
    let resource = session.cluster.resource(&kind).await?;
    match session.cluster.get(&resource, &session.namespace, app.project()).await {
        Ok(Some(project)) => Ok(Some(AppProject::from_value(&project)?)),
        Ok(None) => Err(WrongUse(format!("there is no project {}", app.project())).into()),
        Err(ClusterError::Api { code: 403, .. }) => {
            eprintln!("project {} may not be read, and is not asked whether it permits this", app.project());
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks the project about an object that an action of `live` makes. The namespace of `live` was permitted
/// when it was synced.
fn permitted(
    cluster: &Cluster,
    project: Option<&AppProject>,
    app: &Application,
    live: &Value,
    object: &Value,
) -> anyhow::Result<()> {
    let Some(project) = project else { return Ok(()) };
    let ResourceKey { group, kind, namespace, name } = object.resource_key();
    let is_namespaced = cluster.discovery().resource(&object.gvk()).is_none_or(|known| known.namespaced);
    let mut destination = Destination { namespace: namespace.clone(), ..app.spec.destination.clone() };
    if cluster_of(&destination) == HOME {
        names::IN_CLUSTER_SERVER.clone_into(&mut destination.server);
        names::IN_CLUSTER_NAME.clone_into(&mut destination.name);
    }
    let is_permitted = project.permits_kind(&group, &kind, &name, is_namespaced)
        && (!is_namespaced || namespace == live.namespace() || project.permits_destination(&destination));
    anyhow::ensure!(
        is_permitted,
        "project {} does not permit {kind} {namespace}/{name}",
        project.metadata.name
    );
    Ok(())
}

/// Writes what an action asks for. Returns what was done.
async fn write(cluster: &Cluster, live: &Value, outcome: &Outcome) -> Result<&'static str, ClusterError> {
    let object = match outcome {
        Outcome::Create(object) => {
            cluster.create(object, FIELD_MANAGER, false).await?;
            return Ok("created");
        }
        Outcome::Patch(object) => object,
    };
    let mut patch = create_merge_patch(live, object);
    if patch.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok("nothing to change");
    }
    let resource = cluster.resource(&object.gvk()).await?;
    let send = async |patch: &Value, subresource: &str| {
        let name = (object.namespace(), object.name());
        cluster.patch(&resource, name, subresource, PatchType::Merge, patch, FIELD_MANAGER).await
    };
    if let Some(status) = patch.get("status").cloned() {
        match send(&json!({"status": status}), "status").await {
            // Its status is no subresource: one patch is for all of the object.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
            Ok(_) => {
                if let Some(rest) = patch.as_object_mut() {
                    rest.remove("status");
                }
            }
        }
    }
    if patch.as_object().is_some_and(|rest| !rest.is_empty()) {
        send(&patch, "").await?;
    }
    Ok("changed")
}
