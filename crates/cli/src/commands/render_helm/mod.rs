//! `tiphys render helm [NAME] CHART`.

mod ignored_flags;
mod live_cluster;
mod output_dir;
mod remote_charts;
mod schemas;
mod unsupported_flags;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow, bail, ensure};
use tiphys_gocompat::{csv, strconv::quote, url::Url};
use tiphys_helm::{
    Chart, Compat, HelmError, RenderOptions, ValuesSource, chart_warnings, check_options, name_from_template,
    set_file_paths, template_with_warnings,
};
use tiphys_kustomize::RemoteLoader as _;
use tiphys_vfs::{DiskTree, MemTree, VfsError, VfsErrorKind};

use crate::app::cluster_choice::Target;

/// Which chart, and with which values: the flags of `helm template`. Of one that is given twice the last
/// counts.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Args {
    /// Release name and chart, or the chart alone: a folder, a `.tgz` archive, or what `helm template` would
    /// fetch (a name in --repo, `repo_name/chart`, `oci://…`, `https://….tgz`).
    #[arg(num_args = 1..=2, required = true, value_names = ["NAME", "CHART"])]
    name_and_chart: Vec<String>,
    /// Release name.
    #[arg(long, default_value = "release-name")]
    name: String,
    /// Release name as a Go template.
    #[arg(long)]
    name_template: Option<String>,
    /// As in `helm template`: only says that no name may be given.
    #[arg(long, short)]
    generate_name: bool,
    /// Release namespace; by default that of $HELM_NAMESPACE, of the kubeconfig's context, or `default`.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Values files or their URLs, `-` for stdin, also several with commas; later ones win.
    #[arg(long, short = 'f')]
    values: Vec<String>,
    /// Values as key1=val1,key2=val2.
    #[arg(long)]
    set: Vec<String>,
    /// Values that stay strings.
    #[arg(long)]
    set_string: Vec<String>,
    /// Values as JSON.
    #[arg(long)]
    set_json: Vec<String>,
    /// Values read from files: key1=path1,key2=path2.
    #[arg(long)]
    set_file: Vec<String>,
    /// A value that is taken as it stands.
    #[arg(long)]
    set_literal: Vec<String>,
    /// Kubernetes version for `.Capabilities.KubeVersion`.
    #[arg(long)]
    kube_version: Option<String>,
    /// Further API versions for `.Capabilities.APIVersions`.
    #[arg(long, short = 'a')]
    api_versions: Vec<String>,
    /// Print the CRDs of `crds/` too.
    #[arg(long)]
    include_crds: bool,
    /// Leave out test hooks.
    #[arg(long)]
    skip_tests: bool,
    /// Leave out hooks.
    #[arg(long)]
    no_hooks: bool,
    /// Set `.Release.IsUpgrade` in place of `.Release.IsInstall`.
    #[arg(long)]
    is_upgrade: bool,
    /// Do not check values against `values.schema.json`.
    #[arg(long)]
    skip_schema_validation: bool,
    /// Print only these templates.
    #[arg(long, short)]
    show_only: Vec<String>,
    /// Write into files below this folder instead of stdout.
    #[arg(long)]
    output_dir: Option<String>,
    /// Put the release name between the output folder and the files.
    #[arg(long)]
    release_name: bool,
    /// Which Helm to equal where versions differ.
    #[arg(long, value_enum, default_value_t = Version::Helm4)]
    compat: Version,
    /// Fetch nothing: dependencies must be vendored, or have been fetched before.
    #[arg(long)]
    offline: bool,
    /// With `server` templates see the cluster's version, what it serves, and by `lookup` its objects;
    /// nothing is written.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "unset", default_value_t = DryRun::Client)]
    dry_run: DryRun,
    /// Kubeconfig for --dry-run=server; by default that of a `tiphys up` that you run for this folder, else
    /// $KUBECONFIG, else ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
    #[command(flatten)]
    place: remote_charts::ChartSource,
    #[command(flatten)]
    refused: unsupported_flags::Refused,
    #[command(flatten)]
    idle: ignored_flags::Idle,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Version {
    Helm4,
    Helm3,
}

/// What a rendering may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    /// No cluster.
    #[value(alias = "true")]
    Client,
    /// The cluster of the kubeconfig.
    Server,
    /// What only an installation knows; Helm 3 takes it for `client`.
    #[value(alias = "false", hide = true)]
    None,
    /// The flag alone.
    #[value(hide = true)]
    Unset,
}

/// Renders and prints.
///
/// # Errors
/// With Helm's text.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let compat = match args.compat {
        Version::Helm4 => Compat::Helm4,
        Version::Helm3 => Compat::Helm3,
    };
    args.refused.check()?;
    args.idle.check(args.dry_run == DryRun::Server)?;
    if compat == Compat::Helm4 {
        args.idle.warn();
        if args.dry_run == DryRun::Unset {
            eprintln!(
                "level=WARN msg=\"--dry-run is deprecated and should be replaced with '--dry-run=client'\""
            );
        }
    }
    let (name, chart) = name_and_chart(args)?;
    if args.dry_run == DryRun::None && compat == Compat::Helm4 {
        bail!("invalid dry-run value (\"none\"). Must be \"server\" or \"client\"");
    }
    let mut options = options(args, &name, compat)?;
    let mut warnings = Vec::new();
    let chart = load(args, chart, compat, &mut warnings).map_err(|error| match check_options(&options) {
        Err(sooner) if Path::new(chart).exists() => sooner.into(),
        _ => {
            warnings.drain(..).for_each(|warning| eprintln!("{warning}"));
            error
        }
    })?;
    if args.dry_run == DryRun::Server {
        let (lookup, served) = live_cluster::Live::connect(&target(args))?;
        options.lookup = Some(lookup);
        options.served = Some(served);
    }
    let output = template_with_warnings(&chart, &options, &mut warnings);
    warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            let Some((rendered, reason)) = error.debug_output().filter(|_| args.idle.debug()) else {
                return Err(error.into());
            };
            crate::output::write_manifests(rendered.as_bytes())?;
            bail!(reason);
        }
    };
    match args.output_dir.as_deref().filter(|folder| !folder.is_empty()).map(Path::new) {
        Some(folder) if args.release_name => output_dir::write(&folder.join(&name), folder, &output)?,
        Some(folder) => output_dir::write(folder, folder, &output)?,
        None => crate::output::write_manifests(output.stdout.as_bytes())?,
    }
    Ok(())
}

fn target(args: &Args) -> Target {
    let (kubeconfig, context) = (args.kubeconfig.clone(), args.kube_context.clone());
    Target { kubeconfig, context, ..Target::default() }
}

fn name_and_chart(args: &Args) -> anyhow::Result<(String, &str)> {
    match (args.name_and_chart.as_slice(), &args.name_template) {
        ([name, chart], template) => {
            ensure!(!args.generate_name, "cannot set --generate-name and also specify a name");
            ensure!(
                template.as_ref().is_none_or(String::is_empty),
                "cannot set --name-template and also specify a name"
            );
            Ok((name.clone(), chart))
        }
        ([chart], Some(template)) if !template.is_empty() => Ok((name_from_template(template)?, chart)),
        ([chart], _) => Ok((args.name.clone(), chart)),
        _ => bail!("give a chart"),
    }
}

/// The chart with its dependencies. If these cannot be had, `warnings` get what Helm says before it looks for
/// them.
fn load(args: &Args, name: &str, compat: Compat, warnings: &mut Vec<String>) -> anyhow::Result<Chart> {
    let (place, offline) = (Path::new(name), args.offline);
    if !place.exists() {
        let mut chart = Chart::load_archive_as(&args.place.fetch(name, offline)?, name, compat)?;
        let completed = args.place.fetcher(offline).complete(&mut chart, &MemTree::default(), "", false);
        completed.map_err(|error| anyhow!(error.as_told_by(compat)))?;
        return Ok(chart);
    }
    if place.is_file() {
        let bytes = std::fs::read(place).with_context(|| format!("cannot read {}", place.display()))?;
        let chart = Chart::load_archive_as(&bytes, &place.display().to_string(), compat)?;
        return complete(chart, place, args, compat, warnings);
    }
    let chart = folder(place, compat).inspect_err(|error| {
        if let Some(HelmError::BrokenLink { logged, .. }) = error.downcast_ref() {
            warnings.extend(logged.iter().cloned());
        }
    })?;
    complete(chart, place, args, compat, warnings)
}

/// A chart that lies in a folder. Its links may lead out of the folder, not out of the repository.
fn folder(place: &Path, compat: Compat) -> anyhow::Result<Chart> {
    let loaded = Chart::load_ahead(Arc::new(DiskTree::open(place)?), "", compat);
    let Err(HelmError::File(VfsError { kind: VfsErrorKind::OutsideTree, .. })) = loaded else {
        return Ok(loaded?);
    };
    let absolute = place.canonicalize().with_context(|| format!("cannot open {}", place.display()))?;
    match repository(&absolute).and_then(|root| Some((root, absolute.strip_prefix(root).ok()?.to_str()?))) {
        Some((root, path)) => Ok(Chart::load_ahead(Arc::new(DiskTree::open(root)?), path, compat)?),
        None => Ok(loaded?),
    }
}

/// The repository that a folder is a part of.
fn repository(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// The folder within which a chart may name others by `file://`, and a kustomization its bases: its repository,
/// where the person stands if that is above it, or what it lies in.
pub(super) fn reach(chart: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(|it| it.canonicalize()).ok();
    let here = here.filter(|here| chart != here && chart.starts_with(here));
    repository(chart)
        .map(Path::to_owned)
        .or(here)
        .unwrap_or_else(|| chart.parent().unwrap_or(chart).to_owned())
}

/// Fetches dependencies that are not vendored.
fn complete(
    mut chart: Chart,
    place: &Path,
    args: &Args,
    compat: Compat,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Chart> {
    if chart.missing_dependencies().is_empty() {
        return Ok(chart);
    }
    let place = place.canonicalize().with_context(|| format!("cannot open {}", place.display()))?;
    let root = reach(&place);
    let below = place.strip_prefix(&root)?.to_str().context("the chart's path is not UTF-8")?;
    let fetcher = args.place.fetcher(args.offline);
    let fetched = fetcher.complete(&mut chart, &DiskTree::open(&root)?, below, false);
    match fetched {
        Ok(()) => Ok(chart),
        Err(error) => {
            warnings.extend(chart_warnings(&chart, compat));
            bail!(error.as_told_by(compat));
        }
    }
}

/// The namespace of the release. An empty one counts as none given.
fn namespace(args: &Args) -> String {
    let is_said = |namespace: &String| !namespace.is_empty();
    let variable = |name: &str| std::env::var(name).ok().filter(is_said);
    let given = args.namespace.clone().filter(is_said).or_else(|| variable("HELM_NAMESPACE"));
    given
        .or_else(|| {
            let context = args.kube_context.clone().or_else(|| variable("HELM_KUBECONTEXT"));
            tiphys_cluster::context_namespace(args.kubeconfig.as_deref(), context.as_deref())
        })
        .unwrap_or_else(|| "default".to_owned())
}

fn options(args: &Args, name: &str, compat: Compat) -> anyhow::Result<RenderOptions> {
    Ok(RenderOptions {
        release_name: name.to_owned(),
        namespace: namespace(args),
        values: values(args)?,
        kube_version: args.kube_version.clone(),
        api_versions: lists(&args.api_versions, "-a, --api-versions")?,
        include_crds: args.include_crds,
        skip_tests: args.skip_tests,
        no_hooks: args.no_hooks,
        is_upgrade: args.is_upgrade,
        skip_schema_validation: args.skip_schema_validation,
        show_only: args.show_only.clone(),
        compat,
        schemas: Some(Arc::new(schemas::Fetched { offline: args.offline })),
        ..RenderOptions::default()
    })
}

fn values(args: &Args) -> anyhow::Result<Vec<ValuesSource>> {
    let mut all = Vec::new();
    for file in lists(&args.values, "-f, --values")? {
        let content = read(&file, args.offline)?;
        all.push(ValuesSource::File(file, content));
    }
    all.extend(args.set_json.iter().cloned().map(ValuesSource::SetJson));
    all.extend(args.set.iter().cloned().map(ValuesSource::Set));
    all.extend(args.set_string.iter().cloned().map(ValuesSource::SetString));
    for text in &args.set_file {
        let read = |path: String| {
            let content = read(&path, args.offline).map_err(|error| format!("{error:#}"));
            (path, content)
        };
        let contents = set_file_paths(text).into_iter().map(read).collect();
        all.push(ValuesSource::SetFile(text.clone(), contents));
    }
    all.extend(args.set_literal.iter().cloned().map(ValuesSource::SetLiteral));
    Ok(all)
}

/// The texts of a flag that takes lists with commas.
fn lists(texts: &[String], flag: &str) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for text in texts {
        let record = csv::record(text);
        all.extend(
            record.map_err(|error| anyhow!("invalid argument {} for {flag:?} flag: {error}", quote(text)))?,
        );
    }
    Ok(all)
}

/// What Helm reads for `-f` and `--set-file`: standard input, what a URL names, or a file, whose name has to
/// be a URL, too.
fn read(file: &str, offline: bool) -> anyhow::Result<Arc<[u8]>> {
    if file.trim() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)?;
        return Ok(bytes.into());
    }
    Url::parse(file)?;
    if file.starts_with("https://") || file.starts_with("http://") {
        let body = crate::fetch::fetcher(offline).file(file);
        return body.map(Into::into).with_context(|| format!("cannot read {file}"));
    }
    std::fs::read(file).map(Into::into).map_err(|error| anyhow!(unread(file, &error)))
}

/// Why a file cannot be read, in Go's words.
fn unread(file: &str, error: &std::io::Error) -> String {
    let is_folder = error.kind() == std::io::ErrorKind::IsADirectory;
    format!("{} {file}: {}", if is_folder { "read" } else { "open" }, system_words(error))
}

/// The system's words for an error as Go has them: no capital letter, no number.
fn system_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    let mut letters = words.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
