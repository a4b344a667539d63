//! `tiphys render app FILE`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use tiphys_apiserver::KubernetesVersion;
use tiphys_controller::Checkouts;
use tiphys_graph::{Declaration, Options, survey::is_namespaced};
use tiphys_model::{Application, Tracking, settings::RenderSettings};
use tiphys_render::{Context, RenderError, Rendered, manifest, render};
use tiphys_source::Repositories;
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::FileTree;

use crate::{
    ENGINE_NAMESPACE, dump,
    exit::Reported,
    output::{Format, print_manifests},
    repository::{self, Given, Repository, to_run},
    templates,
};

/// From a template of a chart to what is read here.
const ONWARD: &str = " > app.yaml && tiphys render app app.yaml --repo .";

/// Which Application.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file with one Application or several, a folder with such files, or - for the standard input.
    file: PathBuf,
    /// Folder of the repository that the Application means; by default the Git work tree of the file, or of
    /// the working directory.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Take the commits that `targetRevision` names, not the files as they are.
    #[arg(long)]
    respect_revisions: bool,
    /// Fetch nothing.
    #[arg(long)]
    offline: bool,
    /// The Kubernetes minor version that charts are rendered for, such as 1.34.
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<KubernetesVersion>,
    /// How the objects are written: text is one YAML document for each.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Renders and prints every object as one YAML document.
///
/// # Errors
/// The file holds no Application, or one of them does not render; the others are printed.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let is_input = args.file == Path::new("-");
    let file = match is_input {
        true => PathBuf::from("."),
        false => args.file.canonicalize().with_context(|| format!("cannot open {}", args.file.display()))?,
    };
    let beside = if file.is_dir() { Some(file.as_path()) } else { file.parent() };
    let folder = args.repo.clone().or_else(|| beside.map(PathBuf::from)).unwrap_or_default();
    let place = folder.to_str().context("the folder's path is not UTF-8")?;
    let Declared { apps: declared, mut is_sound, given } = if is_input {
        of_objects(dump::read_dump(&args.file)?.objects.iter(), &args.file)?
    } else if file.is_dir() {
        below(&file, args)?
    } else {
        applications(&file)?
    };
    let repository = Repository::open(&Given {
        place,
        revision: None,
        path: None,
        respect_revisions: args.respect_revisions,
        offline: args.offline,
    })?;
    given.iter().for_each(|url| repository.repositories.add_address(url));
    let (declarations, notice) = repository.declarations(&declared);
    if !file.is_dir() || is_input {
        notice.iter().for_each(|notice| eprintln!("note: {notice}"));
    }
    let settings = declarations.settings.rendering();
    let version = args.kubernetes_version.map(|version| version.to_string()).unwrap_or_default();
    let mut objects = Vec::new();
    for app in declared.iter().map(Application::from_value) {
        let app = app?;
        let rendered = match render_one(&app, &repository.repositories, &settings, &version) {
            Ok(rendered) => rendered,
            Err(error) => {
                eprintln!("Error: Application {}: {error:#}", app.metadata.name);
                is_sound = false;
                continue;
            }
        };
        for warning in &rendered.warnings {
            eprintln!("{}: {warning}", app.metadata.name);
        }
        objects.extend(rendered.objects.into_iter().map(|object| object.value));
    }
    let document = |object: &Value| format!("---\n{}", tiphys_yaml::to_yaml(object));
    let text = objects.iter().map(document).collect::<String>();
    print_manifests(args.output, &text, &Value::Array(objects))?;
    if is_sound { Ok(()) } else { Err(Reported.into()) }
}

/// Renders one Application without a cluster, under the settings of an installation. An empty version is the
/// newest that charts are rendered for.
fn render_one(
    app: &Application,
    repositories: &Repositories,
    settings: &RenderSettings,
    kube_version: &str,
) -> Result<Rendered, RenderError> {
    let checkouts = Checkouts::new(repositories).with_settings(settings.clone());
    let tracking = Tracking::default();
    let context = Context {
        sources: &checkouts,
        kube_version,
        api_versions: &[],
        tracking: &tracking,
        engine_namespace: ENGINE_NAMESPACE,
        is_namespaced: &is_namespaced,
        origins: false,
        mock_secrets: false,
        now: to_run().now,
    };
    render(app, &context)
}

/// Applications that are to be rendered.
struct Declared {
    apps: Vec<Value>,
    /// Whether all of them can be read.
    is_sound: bool,
    /// The addresses that are taken to be this repository's, which the Applications that charts render may
    /// show alone.
    given: Vec<String>,
}

/// The Applications of a folder.
fn below(folder: &Path, args: &Args) -> anyhow::Result<Declared> {
    let place = folder.to_str().context("the folder's path is not UTF-8")?;
    let given = Given { place, revision: None, path: None, respect_revisions: false, offline: args.offline };
    let opened = Repository::open(&given)?;
    let survey = opened.survey(Options { foreign: false, ..to_run() }, None, &[]);
    let faults = repository::faults(&survey);
    repository::notices(&survey).iter().chain(&faults).for_each(|notice| eprintln!("note: {notice}"));
    let (declared, mut is_sound) = (survey.apps.iter(), faults.is_empty());
    let declared = declared.filter(|app| !matches!(app.declaration, Declaration::Set(_)));
    let apps: Vec<Value> = declared.map(|app| app.declared.value.clone()).collect();
    let roots = survey.roots.iter().filter(|root| root.declared.value.kind() == "Application");
    for root in roots {
        if let Err(error) = Application::from_value(&root.declared.value) {
            eprintln!("Error: {}: {error}", root.declared.location);
            is_sound = false;
        }
    }
    if apps.is_empty() {
        let sets = survey.sets.len();
        let advice = "; `tiphys appset generate` prints what its ApplicationSets yield";
        bail!("{} holds no Application{}", args.file.display(), if sets > 0 { advice } else { "" });
    }
    let sources = survey.apps.iter().flat_map(|app| app.application.spec.effective_sources());
    let urls: BTreeSet<String> = sources.map(|source| source.repo_url).collect();
    let given = urls.into_iter().filter(|url| opened.repositories.is_own_address(url)).collect();
    Ok(Declared { apps, is_sound, given })
}

fn applications(file: &Path) -> anyhow::Result<Declared> {
    let tree: &dyn FileTree = &tiphys_vfs::DiskTree::open(file.parent().unwrap_or(file))?;
    let name = file.file_name().and_then(|name| name.to_str()).context("the file's name is not UTF-8")?;
    let text = manifest::read_text(tree, name)?;
    let objects = match manifest::parse_objects(name, &text, false) {
        Ok(objects) => objects,
        Err(error) => {
            let advice = templates::advice(file, ONWARD).map(|advice| format!("\n{advice}"));
            bail!("{error:#}{}", advice.unwrap_or_default())
        }
    };
    of_objects(objects.iter().map(|object| &object.value), file)
}

fn of_objects<'a>(objects: impl Iterator<Item = &'a Value>, place: &Path) -> anyhow::Result<Declared> {
    let apps: Vec<Value> = objects.filter(|object| object.kind() == "Application").cloned().collect();
    apps.iter().try_for_each(|app| Application::from_value(app).map(drop))?;
    if apps.is_empty() {
        bail!("{} holds no Application", place.display());
    }
    Ok(Declared { apps, is_sound: true, given: Vec::new() })
}
