//! `tiphys appset`: ApplicationSets before anything is changed.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Subcommand;
use tiphys_appset::{ClusterInfo, Generated, Preview, generate, preview};
use tiphys_controller::{SetInputs, declared_cluster};
use tiphys_diff::unified;
use tiphys_graph::Options;
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};

use crate::{
    app::{cluster_choice::Target, desired::settings_of, session::Session},
    dump,
    exit::{Reported, WrongUse},
    generators,
    output::{Format, print},
    repository::{self, Given, Repository, to_run},
    templates,
};

/// ApplicationSets: what they yield, and what a change of one would do.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Set,
}

#[derive(Clone, Debug, Subcommand)]
enum Set {
    Generate(GenerateArgs),
    Preview(PreviewArgs),
}

/// Print the Applications that ApplicationSets yield, without a cluster.
///
/// Exit codes: 0 all of them can be used; 1 one cannot, or a generator fails; 2 wrong use.
///
/// Examples:
///   tiphys appset generate appset.yaml
///   tiphys appset generate appset.yaml --clusters clusters.yaml --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct GenerateArgs {
    #[command(flatten)]
    input: Input,
    /// How the result is written: text is one YAML document for each Application.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Show what ApplicationSets would do to the Applications of a cluster: which would be added, changed and
/// deleted, and what each deletion would delete.
///
/// Exit codes: 0 told; 1 a generator fails, or with --exit-code something would be deleted; 2 wrong use.
///
/// Examples:
///   tiphys appset preview appset.yaml
///   tiphys appset preview appset.yaml --exit-code --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct PreviewArgs {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    target: Target,
    /// Exit with 1 if something would be deleted.
    #[arg(long)]
    exit_code: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Which sets, and what their generators read.
#[derive(Clone, Debug, clap::Args)]
struct Input {
    /// A file with ApplicationSets, a folder with such files, or - for the standard input.
    file: PathBuf,
    /// The repository that the sets are of: a folder, or an address that Git takes; by default that of the
    /// file.
    #[arg(long, value_name = "PATH_OR_URL")]
    repo: Option<String>,
    /// A file with the clusters that generators may name: their Secrets, or a YAML list of {name, server,
    /// labels}; by default those whose Secrets the repository holds (generate) or the cluster has (preview).
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// Take the commits that revisions name, not the files as they are.
    #[arg(long)]
    respect_revisions: bool,
    /// Fetch nothing.
    #[arg(long)]
    offline: bool,
}

/// Runs one of the commands.
///
/// # Errors
/// Those of the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Set::Generate(args) => run_generate(args),
        Set::Preview(args) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let result = runtime.block_on(run_preview(args));
            runtime.shutdown_background();
            result
        }
    }
}

impl Input {
    /// The sets, the repository that they are of, and the clusters that it declares.
    fn open(&self) -> anyhow::Result<(Vec<Value>, Repository, Vec<ClusterInfo>)> {
        let wrong = |error: anyhow::Error| WrongUse(format!("{error:#}"));
        let (mut sets, repository) = if self.file.is_dir() {
            let given = self.given_at(self.file.to_str().context("the folder's path is not UTF-8")?);
            let opened = Repository::open(&given).map_err(wrong)?;
            let survey = opened.survey(Options { foreign: false, ..to_run() }, None, &[]);
            let faults = repository::faults(&survey);
            repository::notices(&survey).iter().chain(&faults).for_each(|told| eprintln!("note: {told}"));
            let sets: Vec<Value> = survey.sets.iter().map(|set| set.declared.value.clone()).collect();
            match &self.repo {
                None => (sets, opened),
                Some(place) => (sets, Repository::open(&self.given_at(place)).map_err(wrong)?),
            }
        } else {
            let sets = self.sets_of_file()?;
            let beside = self.file.parent().and_then(Path::to_str).filter(|text| !text.is_empty());
            let place = self.repo.as_deref().or(beside).unwrap_or(".");
            (sets, Repository::open(&self.given_at(place)).map_err(wrong)?)
        };
        for set in &mut sets {
            if set.namespace().is_empty() {
                set["metadata"]["namespace"] = crate::ENGINE_NAMESPACE.into();
            }
        }
        if sets.is_empty() {
            return Err(WrongUse(format!("{} holds no ApplicationSet", self.file.display())).into());
        }
        let (declarations, notice) = repository.declarations(&sets);
        notice.iter().for_each(|notice| eprintln!("note: {notice}"));
        let clusters = declarations.clusters();
        Ok((sets, repository, clusters))
    }

    fn given_at<'a>(&self, place: &'a str) -> Given<'a> {
        Given {
            place,
            revision: None,
            path: None,
            respect_revisions: self.respect_revisions,
            offline: self.offline,
        }
    }

    fn sets_of_file(&self) -> anyhow::Result<Vec<Value>> {
        let dump = dump::read_dump(&self.file).map_err(|error| {
            let advice = templates::advice(&self.file, " | tiphys appset generate -");
            let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
            WrongUse(format!("{error:#}{advice}"))
        })?;
        Ok(dump.objects.into_iter().filter(|object| object.kind() == "ApplicationSet").collect())
    }

    /// The clusters that generators may name: those of the file, else those that are known otherwise.
    fn declared(&self, otherwise: impl FnOnce() -> Vec<ClusterInfo>) -> anyhow::Result<Vec<ClusterInfo>> {
        match &self.clusters {
            Some(file) => Ok(crate::clusters::read(file)?),
            None => Ok(otherwise()),
        }
    }
}

fn run_generate(args: &GenerateArgs) -> anyhow::Result<()> {
    let (sets, repository, clusters) = args.input.open()?;
    let declared = args.input.declared(|| clusters)?;
    let mut all: Vec<Generated> = Vec::new();
    let mut is_sound = true;
    for set in sets {
        let inputs = SetInputs::with_clusters(&repository.repositories, declared.clone());
        match generate(&set, &inputs) {
            Ok(generated) => {
                if generated.is_empty() {
                    eprintln!("note: {}", yields_none(&set, &declared));
                }
                let open = generators::left_open(&set, generated.iter().map(|one| &one.application));
                if !open.is_empty() {
                    let open = open.into_iter().collect::<Vec<_>>().join(", ");
                    eprintln!(
                        "note: ApplicationSet {}: no generator gives these parameters a value, and they stay as they are written: {open}",
                        set.name()
                    );
                }
                all.extend(generated);
            }
            Err(error) => {
                eprintln!("Error: ApplicationSet {}: {error}", set.name());
                is_sound = false;
            }
        }
    }
    let text: String =
        all.iter().map(|one| format!("---\n{}", tiphys_yaml::to_yaml(&one.application))).collect();
    let value = all.iter().map(|one| one.application.clone()).collect();
    print(args.output, &text, &Value::Array(value))?;
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in all.iter().filter_map(|one| one.fault.as_deref()) {
        *faults.entry(fault).or_default() += 1;
    }
    for (fault, count) in &faults {
        let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
        eprintln!("Error: {fault}{times}");
        is_sound = false;
    }
    if is_sound { Ok(()) } else { Err(Reported.into()) }
}

/// What is told of a set that yields nothing: it may be right, and may be for want of clusters.
fn yields_none(set: &Value, declared: &[ClusterInfo]) -> String {
    let list = set.at(&["spec", "generators"]).unwrap_or(&Value::Null);
    let clusters = match generators::clusters_wanted(list) {
        wanted if wanted.is_empty() => wanted,
        wanted => format!("clusters with {wanted}"),
    };
    let told: Vec<String> =
        [clusters, generators::looked_for(list)].into_iter().filter(|it| !it.is_empty()).collect();
    let told = match told.is_empty() {
        true => String::new(),
        false => format!(": its generators look for {}", told.join("; ")),
    };
    let why = match (generators::ask_for_clusters(list), declared.len()) {
        (false, _) => told,
        (true, 0) => {
            let told = told.replacen(':', ", and", 1);
            format!(": only the engine's own cluster is known{told}; --clusters names others")
        }
        (true, 1) => format!(", with 1 cluster known{told}"),
        (true, count) => format!(", with {count} clusters known{told}"),
    };
    format!("ApplicationSet {} yields no Application{why}", set.name())
}

async fn run_preview(args: &PreviewArgs) -> anyhow::Result<()> {
    let session = Session::open(&args.target).await?;
    let mut input = args.input.clone();
    let served = session.repository.as_ref().and_then(|served| served.folder.to_str());
    input.repo = input.repo.or(served.map(str::to_owned));
    let existing = session.list().await?;
    let secrets = secrets(&session).await?;
    let flags = settings_of(&session).await?.sets;
    let task = tokio::task::spawn_blocking(move || {
        let (sets, repository, _) = input.open()?;
        let declared = input.declared(|| secrets)?;
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for set in sets {
            let beside: Vec<Value> =
                existing.iter().filter(|app| app.namespace() == set.namespace()).cloned().collect();
            let inputs = SetInputs::with_clusters(&repository.repositories, declared.clone());
            match preview(&flags.in_force(&set), &beside, &inputs) {
                Ok(preview) => all.push((set.name().to_owned(), preview)),
                Err(error) => faults.push(format!("ApplicationSet {}: {error}", set.name())),
            }
        }
        anyhow::Ok((all, faults))
    });
    let (previews, faults) = task.await??;
    let text: String = previews.iter().map(|(name, preview)| preview_text(name, preview)).collect();
    print(args.output, &text, &previews.iter().map(|(name, preview)| value(name, preview)).collect())?;
    faults.iter().for_each(|fault| eprintln!("Error: {fault}"));
    let deletes = previews.iter().any(|(_, preview)| !preview.plan.delete.is_empty());
    if !faults.is_empty() || (args.exit_code && deletes) { Err(Reported.into()) } else { Ok(()) }
}

/// The clusters that the cluster's Secrets declare.
async fn secrets(session: &Session) -> anyhow::Result<Vec<ClusterInfo>> {
    let resource = session.cluster.resource(&GroupVersionKind::new("", "v1", "Secret")).await?;
    let all = session.cluster.list(&resource, &session.namespace).await?.items;
    let is_cluster = |object: &&Value| object.label(tiphys_model::names::SECRET_TYPE) == Some("cluster");
    Ok(all.iter().filter(is_cluster).map(declared_cluster).collect())
}

fn preview_text(name: &str, preview: &Preview) -> String {
    let plan = &preview.plan;
    let mut text = format!(
        "ApplicationSet {name}: {} yielded; {} added, {} changed, {} deleted\n",
        preview.generated.len(),
        plan.create.len(),
        plan.update.len(),
        plan.delete.len()
    );
    for one in preview.generated.iter().filter_map(|one| one.fault.as_ref()) {
        text.push_str(&format!("! {one}\n"));
    }
    for app in &plan.create {
        text.push_str(&format!("+ {}\n", app.name()));
    }
    for update in &plan.update {
        let bare = |app: &Value| {
            json!({"metadata": {"labels": app["metadata"]["labels"],
            "annotations": app["metadata"]["annotations"]}, "spec": app["spec"]})
        };
        let diff = unified(&bare(&update.before), &bare(&update.after), "now", "then");
        text.push_str(&format!("~ {}\n{diff}", update.after.name()));
    }
    for deleted in &preview.deleted {
        let count = deleted.objects.len();
        let noun = if count == 1 { "object" } else { "objects" };
        text.push_str(&format!("- {} and {count} {noun}\n", deleted.application));
        for object in &deleted.objects {
            text.push_str(&format!("    {object}\n"));
        }
    }
    if let Some(held) = &plan.held {
        text.push_str(&format!("the deletions would be held: {held}\n"));
    }
    text
}

fn value(name: &str, preview: &Preview) -> Value {
    let plan = &preview.plan;
    let deleted: Vec<Value> = preview
        .deleted
        .iter()
        .map(|deleted| {
            let objects: Vec<String> = deleted.objects.iter().map(ToString::to_string).collect();
            json!({"application": deleted.application, "objects": objects})
        })
        .collect();
    let updated: Vec<Value> =
        plan.update.iter().map(|update| json!({"before": update.before, "after": update.after})).collect();
    let faults: Vec<&String> = preview.generated.iter().filter_map(|one| one.fault.as_ref()).collect();
    json!({"applicationSet": name, "yielded": preview.generated.len(), "added": plan.create,
        "changed": updated, "deleted": deleted, "held": plan.held, "faults": faults})
}
