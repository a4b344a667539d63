//! What `tiphys check` does beyond the rules: reading, comparing, fixing, showing.

mod args;
mod progress;
mod survey;

use std::{fs, io::IsTerminal as _, io::Write as _, path::Path, sync::Arc};

use anyhow::Context as _;
use tiphys_check::{
    Baseline, Checked, Config, Context, Options, Rule, Severity, Survey, config, judge, output,
    output::Shown, patch, rules,
};
use tiphys_diag::SourceMap;
use tiphys_vfs::FileTree;

use crate::exit::{Reported, WrongUse};
pub use args::Args;
use args::Output;
use survey::Reader;

/// Everything about a check that does not change while it is repeated.
struct Check<'a> {
    args: &'a Args,
    reader: Reader,
    base: Option<Survey>,
    rules: Vec<&'static Rule>,
    config: Config,
    baseline: Option<Baseline>,
    threshold: Severity,
}

/// One round of a check.
struct Round {
    survey: Survey,
    sources: SourceMap,
    checked: Checked,
}

/// Checks and prints, once or until interrupted.
///
/// # Errors
/// There are findings, or the check cannot run.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let check = Check::prepare(args).map_err(|error| WrongUse(format!("{error:#}")))?;
    let round = check.round();
    check.finish(&round)?;
    if args.watch {
        return check.follow();
    }
    let failed = check.shown(&round).findings().next().is_some() || !round.checked.faults.is_empty();
    // The process ends here: nobody needs the memory of every object back.
    std::mem::forget(round);
    if failed && !args.write_baseline { Err(Reported.into()) } else { Ok(()) }
}

impl<'a> Check<'a> {
    fn prepare(args: &'a Args) -> anyhow::Result<Self> {
        let clusters = args.clusters.as_deref().map(survey::clusters).transpose()?.unwrap_or_default();
        let reader = Reader::open(args, args.rev.as_deref(), clusters.clone())?;
        let base = match &args.diff {
            Some(base) => Some(Reader::open(args, Some(base), clusters)?.survey(None)),
            None => None,
        };
        let config = configuration(reader.tree().as_ref())?;
        let configured = config.severity.map(|level| level.severity().unwrap_or(Severity::Error));
        Ok(Self {
            threshold: args.severity.map(Severity::from).or(configured).unwrap_or(Severity::Warning),
            rules: chosen(&args.rules)?,
            baseline: baseline(args)?,
            args,
            reader,
            base,
            config,
        })
    }

    fn round(&self) -> Round {
        let survey = self.reader.survey(None);
        let mut checked = self.judge(&survey);
        let sources = survey.files.source_map();
        let again = |tree: Arc<dyn FileTree>| self.judge(&self.reader.survey(Some(tree))).findings;
        patch::prove(&mut checked.findings, &sources, self.reader.tree(), &again);
        Round { survey, sources, checked }
    }

    fn judge(&self, survey: &Survey) -> Checked {
        let options =
            Options { rules: self.rules.clone(), config: &self.config, baseline: self.baseline.as_ref() };
        judge(&Context::new(survey, self.base.as_ref()), &options)
    }

    fn shown<'r>(&self, round: &'r Round) -> Shown<'r> {
        Shown {
            checked: &round.checked,
            survey: &round.survey,
            sources: &round.sources,
            threshold: self.threshold,
        }
    }

    /// Prints, and writes what is to be written.
    fn finish(&self, round: &Round) -> anyhow::Result<()> {
        let shown = self.shown(round);
        let text = match self.args.output {
            Output::Text => output::text(&shown, std::io::stdout().is_terminal()),
            Output::Json => format!("{:#}\n", output::json(&shown)),
            Output::Sarif => format!("{:#}\n", output::sarif(&shown)),
            Output::Github => output::github(&shown),
            Output::Markdown => output::markdown(&shown),
            Output::Junit => output::junit(&shown),
        };
        std::io::stdout().lock().write_all(text.as_bytes())?;
        if let Some(file) = self.args.baseline.as_deref().filter(|_| self.args.write_baseline) {
            write_whole(file, &Baseline::of(&round.checked.findings).text())?;
            eprintln!("{} findings are known from now on: {}", round.checked.findings.len(), file.display());
        }
        if self.args.fix {
            self.fix(round)?;
        }
        Ok(())
    }

    fn fix(&self, round: &Round) -> anyhow::Result<()> {
        let (texts, left_out) = patch::fixed(&round.checked.findings, &round.sources);
        let root = self.reader.root().context("--fix needs a folder, not an address")?;
        for (file, text) in &texts {
            write_whole(&root.join(file.as_ref()), text)?;
            eprintln!("fixed {file}");
        }
        if left_out > 0 {
            eprintln!("{left_out} fixes overlap others and wait for the next run");
        }
        if texts.is_empty() {
            eprintln!("no finding has a fix that can be applied without a person");
        }
        Ok(())
    }

    /// Checks again after every edit, until interrupted.
    fn follow(&self) -> anyhow::Result<()> {
        let root = self.reader.root().context("--watch needs a folder, not an address")?;
        let (sender, edits) = std::sync::mpsc::channel();
        let _guard = tiphys_source::watch(root, move |paths| drop(sender.send(paths)))?;
        while edits.recv().is_ok() {
            // Editors write in several steps.
            std::thread::sleep(std::time::Duration::from_millis(20));
            while edits.try_recv().is_ok() {}
            if std::io::stdout().is_terminal() {
                write!(std::io::stdout(), "\x1b[2J\x1b[H")?;
            }
            self.finish(&self.round())?;
        }
        Ok(())
    }
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

/// The baseline to hold against; none while it is being written.
fn baseline(args: &Args) -> anyhow::Result<Option<Baseline>> {
    let Some(file) = args.baseline.as_deref().filter(|_| !args.write_baseline) else { return Ok(None) };
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read baseline {}", file.display()))?;
    let parsed = Baseline::parse(&text).with_context(|| file.display().to_string())?;
    Ok(Some(parsed))
}

/// Writes a file so that nobody ever sees half of it.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    let name = file.file_name().context("a file has a name")?.to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.tiphys-new"));
    let write = || -> std::io::Result<()> {
        fs::write(&beside, text)?;
        if let Ok(old) = fs::metadata(file) {
            fs::set_permissions(&beside, old.permissions())?;
        }
        fs::rename(&beside, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
