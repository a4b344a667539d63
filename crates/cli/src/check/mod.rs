//! What `tiphys check` does beyond the rules: reading, comparing, fixing, showing.

mod args;
mod links;
mod progress;
mod survey;
mod watch;

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    io::IsTerminal as _,
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use tiphys_check::{
    Baseline, Checked, Confidence, Config, Context, Options, Rule, Severity, Survey, config, judge, output,
    output::{ReportContents, View},
    patch, rules,
};
use tiphys_diag::{Diagnostic, SourceMap};
use tiphys_graph::Kept;
use tiphys_vfs::FileTree;

use crate::{
    exit::{Reported, WrongUse},
    repository::with_environment,
};
pub(crate) use args::Args;
use args::Output;
use survey::Reader;

/// Everything about a check that does not change while it is repeated.
struct Check<'a> {
    args: &'a Args,
    reader: Reader,
    base: Option<Survey>,
    rules: Vec<&'static Rule>,
}

/// One round of a check.
struct Round {
    survey: Survey,
    kept: Kept,
    sources: SourceMap,
    /// The same without the values of Secrets, if these are not to be shown.
    shown: SourceMap,
    checked: Checked,
    threshold: Severity,
}

/// Checks and prints, once or until interrupted.
///
/// # Errors
/// There are findings, or the check cannot run.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let cannot = |error: anyhow::Error| WrongUse(format!("{error:#}"));
    let check = Check::prepare(args).map_err(cannot)?;
    if args.watch {
        return watch::follow(&check);
    }
    let mut round = check.round(&Kept::default()).map_err(cannot)?;
    if !args.allow_empty && is_empty(&round) {
        return Err(check.nothing_there(&round).into());
    }
    if (args.fix || args.fix_likely) && check.fix(&round)? {
        // What is printed is what is left.
        round = check.round(&Kept::default()).map_err(cannot)?;
    }
    check.finish(&round)?;
    let is_bad = |fault: &Diagnostic| fault.severity >= round.threshold;
    let failed =
        check.displayed(&round).findings().next().is_some() || round.checked.faults.iter().any(is_bad);
    if failed && !args.write_baseline { Err(Reported.into()) } else { Ok(()) }
}

impl<'a> Check<'a> {
    fn prepare(args: &'a Args) -> anyhow::Result<Self> {
        let clusters = args.clusters.as_deref().map(crate::clusters::read).transpose()?.unwrap_or_default();
        let reader = Reader::open(args, args.revision.as_deref(), clusters.clone())?;
        let base = match &args.diff {
            Some(base) => {
                let before = Reader::open(args, Some(base), clusters)?;
                let mut survey = before.survey(before.tree().clone(), &Kept::default()).0;
                // What a branch holds that an Application names does not depend on which state is judged.
                reader.look_up_revisions(&mut survey);
                Some(survey)
            }
            None => None,
        };
        Ok(Self { rules: chosen(&args.rules)?, args, reader, base })
    }

    /// Reads and judges. What of `kept` still holds is not read again.
    fn round(&self, kept: &Kept) -> anyhow::Result<Round> {
        let config = configuration(self.reader.tree().as_ref())?;
        let configured = config.severity.map(|level| level.severity().unwrap_or(Severity::Error));
        let threshold = self.args.severity.map(Severity::from).or(configured).unwrap_or(Severity::Warning);
        let baseline = baseline(self.args)?;
        let options = Options::new(self.rules.clone(), &config, baseline.as_ref());
        let judged = |survey: &Survey| judge(&Context::new(survey, self.base.as_ref()), &options);
        let (survey, kept) = self.reader.survey(self.reader.tree().clone(), kept);
        let survey = with_environment(survey)?;
        known_application(&survey, self.args.app.as_deref())?;
        let mut checked = judged(&survey);
        let sources = survey.files.source_map();
        let again = |tree: Arc<dyn FileTree>, changed: &[String]| {
            let kept = kept.after(&survey.files, tree.as_ref(), changed);
            judged(&self.reader.survey(tree, &kept).0).findings
        };
        patch::prove(&mut checked.findings, &sources, self.reader.tree(), &again);
        let shown = match self.args.show_secrets {
            true => sources.clone(),
            false => {
                let pointed = pointed_into(&checked);
                sources.map(|file, text| pointed.contains(file).then(|| output::mask_secrets(text)).flatten())
            }
        };
        Ok(Round { survey, kept, sources, shown, checked, threshold })
    }

    fn displayed<'r>(&self, round: &'r Round) -> ReportContents<'r> {
        ReportContents {
            checked: &round.checked,
            survey: &round.survey,
            sources: &round.shown,
            threshold: round.threshold,
            view: View { app: self.args.app.clone(), is_all: self.args.all, is_argo_cd: self.args.argo_cd },
        }
    }

    /// Prints, and writes what is to be written.
    fn finish(&self, round: &Round) -> anyhow::Result<()> {
        let shown = self.displayed(round);
        let text = match self.args.output {
            Output::Text if self.args.applications => output::applications(&shown),
            Output::Text if self.args.brief => output::brief(&shown),
            Output::Text => self.text(&shown),
            Output::Json => crate::output::json_text(&output::json(&shown)),
            Output::Sarif => crate::output::json_text(&output::sarif(&shown)),
            Output::Github => output::github(&shown),
            Output::Markdown => output::markdown(&shown),
            Output::Junit => output::junit(&shown),
            Output::Html => output::html(&shown),
        };
        crate::output::write(text.as_bytes())?;
        if let Some(file) = self.args.baseline.as_deref().filter(|_| self.args.write_baseline) {
            write_baseline(file, &Baseline::from_findings(&round.checked.findings))?;
            eprintln!(
                "{} findings are written to the baseline {}",
                round.checked.findings.len(),
                file.display()
            );
        }
        Ok(())
    }

    /// The error for a folder that holds nothing that is checked: as a rule it is the wrong one.
    fn nothing_there(&self, round: &Round) -> WrongUse {
        WrongUse(format!(
            "nothing to check in {}: among its {} files are no Applications, charts, kustomizations, manifests, pipelines, Terraform, Ansible or Dockerfiles; give the folder of the repository, or --allow-empty if this is meant",
            self.args.place,
            round.survey.files.count()
        ))
    }

    /// For people: on a terminal in colour, with links to the files.
    fn text(&self, shown: &ReportContents<'_>) -> String {
        let is_terminal = std::io::stdout().is_terminal();
        let text = output::text(shown, is_terminal);
        match self.reader.root().filter(|_| is_terminal) {
            Some(root) => links::linked(&text, root),
            None => text,
        }
    }

    /// Applies fixes. Whether there were any.
    fn fix(&self, round: &Round) -> anyhow::Result<bool> {
        let least = if self.args.fix_likely { Confidence::Likely } else { Confidence::Certain };
        let findings = &round.checked.findings;
        let (texts, left_out) = patch::apply_fixes(findings, &round.sources, least);
        let root = self.reader.root().context("--fix needs a folder, not an address")?;
        for (file, text) in &texts {
            tiphys_vfs::write_file(root, file.as_ref(), text.as_bytes()).context("cannot write a fix")?;
            eprintln!("fixed {file}");
        }
        if left_out > 0 {
            eprintln!("{left_out} fixes overlap others and wait for the next run");
        }
        if texts.is_empty() {
            let likely = findings.iter().filter(|finding| finding.patch().is_some()).count();
            match likely {
                0 => eprintln!("no finding has a fix that can be applied without a person"),
                _ => eprintln!("no fix is certain; --fix-likely applies {likely} that are likely"),
            }
        }
        Ok(!texts.is_empty())
    }
}

/// Refuses the name of an Application that is not there: nothing would be found about it.
fn known_application(survey: &Survey, name: Option<&str>) -> Result<(), WrongUse> {
    const NAMED: usize = 10;
    let Some(name) = name else { return Ok(()) };
    let all =
        || survey.apps.iter().chain(survey.flux.iter().flat_map(|flux| &flux.apps)).map(|app| app.name());
    if all().any(|it| it == name) {
        return Ok(());
    }
    let known: BTreeSet<&str> = all().collect();
    let first = known.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if known.len() > NAMED { format!(" and {} more", known.len() - NAMED) } else { String::new() };
    Err(WrongUse(match known.is_empty() {
        true => format!("there is no Application {name:?}; the repository has none"),
        false => format!("there is no Application {name:?}; there are {first}{more}"),
    }))
}

/// Whether a folder holds nothing that any rule looks at.
fn is_empty(round: &Round) -> bool {
    const READ: [&str; 5] = [".tf", ".tfvars", "Dockerfile", "Containerfile", ".dockerfile"];
    let survey = &round.survey;
    let declares = !survey.apps.is_empty() || !survey.sets.is_empty() || survey.flux.is_some();
    let holds = !survey.objects.is_empty() || !survey.units.is_empty() || !survey.faults.is_empty();
    let found = !round.checked.findings.is_empty() || !round.checked.faults.is_empty();
    if declares || holds || found || survey.files.ending(&READ).next().is_some() {
        return false;
    }
    let tools = survey.tools();
    tools.pipelines.is_empty() && tools.writers.is_empty() && tools.ansible.files.is_empty()
}

/// The files that something which was found points into.
fn pointed_into(checked: &Checked) -> HashSet<Arc<str>> {
    let findings = checked.findings.iter().map(|finding| &finding.diagnostic);
    let all = findings.chain(&checked.faults);
    let labels = all.flat_map(|diagnostic| diagnostic.primary.iter().chain(&diagnostic.related));
    let edits = checked.findings.iter().filter_map(|finding| finding.fix.as_ref()).flat_map(|fix| &fix.patch);
    labels.map(|label| label.span.file.clone()).chain(edits.map(|edit| edit.span.file.clone())).collect()
}

fn configuration(tree: &dyn FileTree) -> anyhow::Result<Config> {
    if !tree.is_file(config::FILE) {
        return Ok(Config::default());
    }
    let text =
        tiphys_render::manifest::read_text(tree, config::FILE).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(Config::parse(&text)?)
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Rule>> {
    if names.is_empty() {
        return Ok(rules::ALL.to_vec());
    }
    let mut chosen = Vec::new();
    for name in names {
        chosen.extend(config::select(name)?);
    }
    chosen.sort_by_key(|rule| rule.id);
    chosen.dedup_by_key(|rule| rule.id);
    Ok(chosen)
}

fn write_baseline(file: &Path, baseline: &Baseline) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("--baseline {}: name a file", file.display()))?;
    tiphys_vfs::write_file(folder, name, baseline.text().as_bytes())
        .with_context(|| format!("cannot write the baseline into {}", folder.display()))
}

/// The baseline to hold against; none while it is being written.
fn baseline(args: &Args) -> anyhow::Result<Option<Baseline>> {
    let Some(file) = args.baseline.as_deref().filter(|_| !args.write_baseline) else { return Ok(None) };
    let text = fs::read_to_string(file).with_context(|| {
        let hint = if file.exists() { "" } else { "; --write-baseline makes it" };
        format!("cannot read baseline {}{hint}", file.display())
    })?;
    let parsed = Baseline::parse(&text).with_context(|| file.display().to_string())?;
    Ok(Some(parsed))
}
