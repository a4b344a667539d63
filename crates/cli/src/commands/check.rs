//! `tiphys check`.

use std::io::{IsTerminal as _, Write as _};

use tiphys_check::{Context, Severity, Survey, check, rules};
use tiphys_controller::Checkouts;
use tiphys_diag::render::full;
use tiphys_graph::Input;

use crate::{
    exit::Reported,
    repository::{Given, Repository},
};

/// Tell from a repository alone what will break: no cluster, no configuration.
///
/// Reads the repository as the engine would: finds the Applications, renders every source, follows what
/// they declare in turn, and looks at the whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tiphys check\n  tiphys check examples/storefront --offline")]
pub struct Args {
    /// Folder or address of the repository.
    #[arg(default_value = ".")]
    place: String,
    /// Branch, tag or commit, in place of the files as they are.
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
    /// Fetch nothing.
    #[arg(long)]
    offline: bool,
}

/// Checks and prints.
///
/// # Errors
/// The repository cannot be read, or there are findings of severity error.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let repository = Repository::open(&Given {
        place: &args.place,
        revision: args.rev.as_deref(),
        path: None,
        respect_revisions: false,
        offline: args.offline,
    })?;
    let checkouts = Checkouts::new(&repository.repositories);
    let survey = Survey::of(&Input {
        tree: repository.tree.clone(),
        folder: &repository.folder,
        sources: &checkouts,
        is_given: &|url| repository.repositories.is_given(url),
        clusters: Vec::new(),
        kube_version: "",
        progress: &|_, _| {},
    });
    let checked = check(&Context { survey: &survey, base: None }, rules::ALL);
    let map = survey.files.source_map();
    let color = std::io::stdout().is_terminal();
    let mut out = std::io::stdout().lock();
    for finding in &checked.findings {
        writeln!(out, "{}", full(&finding.diagnostic, &map, color))?;
    }
    let rendered = survey.apps.iter().filter(|app| app.is_rendered()).count();
    writeln!(
        out,
        "{} files, {} Applications ({rendered} rendered), {} ApplicationSets, {} unreachable, {} objects: {} findings",
        survey.files.count(),
        survey.apps.len(),
        survey.sets.len(),
        survey.units.len(),
        survey.objects.len(),
        checked.findings.len()
    )?;
    for unseen in &survey.unseen {
        writeln!(out, "not seen: {}: {}", unseen.what, unseen.why)?;
    }
    if checked.findings.iter().any(|finding| finding.diagnostic.severity == Severity::Error) {
        return Err(Reported.into());
    }
    Ok(())
}
