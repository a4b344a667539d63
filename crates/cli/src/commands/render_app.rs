//! `tiphys render app FILE`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use tiphys_model::Application;
use tiphys_render::manifest;
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::FileTree;

use crate::{
    output::{Format, print},
    repository::{Given, Repository, render_one},
    templates,
};

/// From a template of a chart to what is read here.
const ONWARD: &str = " > app.yaml && tiphys render app app.yaml --repo .";

/// Which Application.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file with one Application or several.
    file: PathBuf,
    /// Folder of the repository that the Application means; by default the Git work tree of the file.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Take the commits that `targetRevision` names, not the files as they are.
    #[arg(long)]
    respect_revisions: bool,
    /// Fetch nothing.
    #[arg(long)]
    offline: bool,
    /// How the objects are written: text is one YAML document for each.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Renders and prints every object as one YAML document.
///
/// # Errors
/// The file holds no Application, or it does not render.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let file = args.file.canonicalize().with_context(|| format!("cannot open {}", args.file.display()))?;
    let folder = args.repo.clone().or_else(|| file.parent().map(PathBuf::from)).unwrap_or_default();
    let place = folder.to_str().context("the folder's path is not UTF-8")?;
    let repository = Repository::open(&Given {
        place,
        revision: None,
        path: None,
        respect_revisions: args.respect_revisions,
        offline: args.offline,
    })?;
    repository.notices.iter().for_each(|notice| eprintln!("{notice}"));
    let settings = repository.scan.render_settings();
    let mut objects: Vec<Value> = Vec::new();
    for app in applications(&file)? {
        let rendered = match render_one(&app, &repository.repositories, false, Some(&settings)) {
            Ok(rendered) => rendered,
            Err(error) => bail!("Application {}: {error:#}", app.metadata.name),
        };
        for warning in &rendered.warnings {
            eprintln!("{}: {warning}", app.metadata.name);
        }
        objects.extend(rendered.objects.into_iter().map(|object| object.value));
    }
    let document = |object: &Value| format!("---\n{}", tiphys_yaml::to_yaml(object));
    let text = objects.iter().map(document).collect::<String>();
    Ok(print(args.output, &text, &Value::Array(objects))?)
}

fn applications(file: &std::path::Path) -> anyhow::Result<Vec<Application>> {
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
    let apps: Vec<Application> = objects
        .iter()
        .filter(|object| object.value.kind() == "Application")
        .map(|object| Application::from_value(&object.value))
        .collect::<Result<_, _>>()?;
    if apps.is_empty() {
        bail!("{} holds no Application", file.display());
    }
    Ok(apps)
}
