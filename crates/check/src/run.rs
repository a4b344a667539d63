//! Running the rules, and what is left of their findings.

use std::{collections::HashMap, sync::OnceLock};

use tiphys_diag::Diagnostic;
use tiphys_graph::parallel;

use crate::{
    Baseline, Config, Context, Finding, Report, Rule, assumptions,
    causes::{self, CauseGroup},
    rules,
    support::{dedup, unused_files, word_replacement},
    suppress::Suppressions,
};

/// What a run of the rules found.
#[derive(Default)]
pub struct Checked {
    /// The findings by cause, those that break most first.
    pub findings: Vec<Finding>,
    /// Their causes in this order, if they were judged.
    pub causes: Vec<CauseGroup>,
    /// How many a comment suppresses.
    pub suppressed: usize,
    /// How many are known from a baseline, or from the revision that a change is held against.
    pub known: usize,
    /// Suppressions that name no rule that exists, or suppress nothing.
    pub faults: Vec<Diagnostic>,
    /// Entries of the baseline that nothing needs any more, each in one line.
    pub unneeded: Vec<String>,
    /// What the silence rests on: objects that something needs, that nothing here makes, and about which no
    /// rule says anything, by kind.
    pub assumed: Vec<String>,
}

/// What to run, and what to leave out; for one repository.
pub struct Options<'a> {
    /// The rules.
    pub rules: Vec<&'static Rule>,
    /// What the repository's configuration says.
    pub config: &'a Config,
    /// Findings that are known.
    pub baseline: Option<&'a Baseline>,
    /// Those of the revision that a change is held against, once they were looked for.
    before: OnceLock<Baseline>,
}

impl<'a> Options<'a> {
    /// Options for as many runs as there are trees to judge.
    pub fn new(rules: Vec<&'static Rule>, config: &'a Config, baseline: Option<&'a Baseline>) -> Self {
        Self { rules, config, baseline, before: OnceLock::new() }
    }
}

/// Runs rules, and nothing else: all that they find, in order.
pub fn check(context: &Context<'_>, rules: &[&Rule]) -> Checked {
    let mut findings = run(context, rules);
    if let Some(flux) = &context.survey.flux {
        let base = context.base.and_then(|base| base.flux.as_deref());
        let of_clusters: Vec<&Rule> = rules.iter().copied().filter(|it| is_of_clusters(it)).collect();
        let of_flux = run(&Context::new(flux, base), &of_clusters);
        // What is still to be filled in may be anything.
        findings.extend(of_flux.into_iter().filter(|it| !it.diagnostic.message.contains("${")));
    }
    word_replacement::patches(&context.survey.files, &mut findings);
    sort(&mut findings);
    findings.dedup();
    Checked { findings: bounded(dedup::by_place(findings)), ..Checked::default() }
}

/// How many findings of one rule are told of one file. Nobody reads more of them.
const MOST_ALIKE: usize = 200;

/// The findings, of each rule and file at most so many. The last of them says how many more there are at
/// least.
fn bounded(findings: Vec<Finding>) -> Vec<Finding> {
    let key = |finding: &Finding| {
        let file = finding.diagnostic.primary.as_ref().map(|label| label.span.file.clone());
        (finding.diagnostic.rule.clone(), file)
    };
    let mut counts: HashMap<_, usize> = HashMap::new();
    findings.iter().for_each(|finding| *counts.entry(key(finding)).or_default() += 1);
    let mut told: HashMap<_, usize> = HashMap::new();
    let mut kept = Vec::with_capacity(findings.len().min(MOST_ALIKE));
    for mut finding in findings {
        let key = key(&finding);
        let (count, all) = (told.entry(key.clone()).or_default(), counts[&key]);
        *count += 1;
        if *count > MOST_ALIKE {
            continue;
        }
        if *count == MOST_ALIKE && all > MOST_ALIKE {
            let more = format!("at least {} more of this rule in this file are not listed", all - MOST_ALIKE);
            finding.diagnostic = finding.diagnostic.help(more);
        }
        kept.push(finding);
    }
    kept
}

/// What rules find in one survey.
fn run(context: &Context<'_>, rules: &[&Rule]) -> Vec<Finding> {
    let reports = parallel::each(rules, |rule| {
        let mut report = Report::default();
        (rule.check)(context, &mut report);
        report.into_findings()
    });
    let mut findings: Vec<Finding> = reports.into_iter().flatten().collect();
    unused_files::weigh(context.survey, &mut findings);
    findings
}

fn is_of_clusters(rule: &Rule) -> bool {
    rules::OF_CLUSTERS.iter().any(|it| it.id == rule.id)
}

/// Runs rules and leaves out what comments suppress, what the configuration leaves out, what a baseline
/// knows and, where a change is judged, what was so before it.
pub fn judge(context: &Context<'_>, options: &Options<'_>) -> Checked {
    let mut checked = remaining(context, options);
    if let Some(baseline) = options.baseline {
        let has_run = |id: &str| options.rules.iter().any(|rule| rule.id == id);
        checked.unneeded = baseline.unneeded(&checked.findings, &has_run);
    }
    let before = context.base.map(|base| {
        let look = || Baseline::from_findings(&remaining(&Context::new(base, None), options).findings);
        options.before.get_or_init(look)
    });
    for baseline in options.baseline.into_iter().chain(before) {
        let all = checked.findings.len();
        checked.findings = baseline.subtract(checked.findings);
        checked.known += all - checked.findings.len();
    }
    (checked.findings, checked.causes) = causes::ordered(context.survey, checked.findings);
    checked.assumed = assumptions::assumed(context, &checked.findings);
    checked
}

fn remaining(context: &Context<'_>, options: &Options<'_>) -> Checked {
    let mut checked = check(context, &options.rules);
    let suppressions = Suppressions::from_texts(context.survey.files.texts());
    let all = checked.findings.len();
    checked.findings.retain(|finding| !suppressions.cover(finding));
    checked.suppressed = all - checked.findings.len();
    checked.findings =
        checked.findings.into_iter().filter_map(|finding| options.config.apply(finding)).collect();
    sort(&mut checked.findings);
    // What could not be had may be what a comment is about.
    if context.survey.unseen.is_empty() {
        checked.faults = suppressions.unused_suppressions(&options.rules);
    }
    checked.faults.extend(suppressions.faults);
    checked
}

fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        let place = |finding: &Finding| finding.diagnostic.primary.as_ref().map(|label| label.span.clone());
        let severity = b.diagnostic.severity.cmp(&a.diagnostic.severity);
        severity
            .then_with(|| a.diagnostic.rule.cmp(&b.diagnostic.rule))
            .then_with(|| place(a).cmp(&place(b)))
            .then_with(|| a.diagnostic.message.cmp(&b.diagnostic.message))
    });
}
