//! # One fact of the cloud stands in several places, with different values
//!
//! Ids of the cloud (VPC, account, hosted zone) are copied into values, annotations and scripts. When the
//! thing is rebuilt, its id changes, and one of the copies is forgotten: a controller then looks for load
//! balancers in a network that is gone. Such an id should come from where it is made: an output of Terraform,
//! a parameter store.
//!
//! People see: `vpc-08049a4dd788790fa does not exist`, `couldn't find subnets`, `AccessDenied` for a role of
//! another account.
//!
//! ## Bad
//! `vpcId: vpc-0a1…` in an Application, `vpc_id = "vpc-0f9…"` in the same environment's `terraform.tfvars`.
//! ## Good
//! One place; the others refer to it.
//!
//! ## When to suppress
//! Where an environment really has two networks or accounts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_diag::{Severity, Span};
use tiphys_graph::{Files, Survey, tools::Lines};

use crate::{
    Context, Finding, Report, Rule,
    support::cloud_facts::{environment, environment_phrase, is_comment, is_example, is_placeholder},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G5-drifting-ids",
    incident: "G5",
    severity: Severity::Warning,
    title: "one fact of the cloud stands in several places, with different values",
    page: page!("g5_drifting_ids.rs"),
    check,
};

/// A sort of id.
struct Sort {
    /// What it is.
    name: &'static str,
    /// Finds the key and the id, in this order.
    pattern: &'static LazyLock<Regex>,
    /// What Terraform creates it with, if it is something that Terraform creates.
    resource: Option<&'static str>,
    /// Whether things of one environment may well differ in it, so that only one among many is told.
    outliers_only: bool,
}

static VPC: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(vpc-?_?id)["']?\s*[:=,]?\s*(?:value\s*[:=]\s*)?["']?(vpc-[0-9a-f]{8,17})\b"#)
});
static ROLE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(eks\.amazonaws\.com/role-arn)["']?\s*[:=]\s*["']?arn:aws[a-z-]*:iam::(\d{12}):role/"#)
});
static REGION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"\b(aws_?(?:default_?)?region)["']?\s*[:=]\s*["']?([a-z]{2}(?:-gov)?-[a-z]+-\d)\b"#)
});
static ZONE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(hosted-?_?zone-?_?id)["']?\s*[:=]\s*["']?(Z[0-9A-Z]{12,24})\b"#));

fn pattern(text: &str) -> Regex {
    Regex::new(&format!("(?i){text}")).expect("the expression is right")
}

const SORTS: [Sort; 4] = [
    Sort { name: "VPC", pattern: &VPC, resource: Some("aws_vpc"), outliers_only: false },
    Sort { name: "account of a role", pattern: &ROLE, resource: None, outliers_only: false },
    Sort { name: "hosted zone", pattern: &ZONE, resource: None, outliers_only: false },
    Sort { name: "region", pattern: &REGION, resource: None, outliers_only: true },
];

/// One mention of an id.
struct Mention {
    id: String,
    span: Span,
    is_terraform: bool,
}

fn check(context: &Context<'_>, report: &mut Report) {
    for sort in &SORTS {
        let found = mentions(&context.survey.files, sort);
        let mut drifts = false;
        for (environment, mentions) in &found {
            if let Some(finding) = drift(sort, environment, mentions) {
                report.add(finding);
                drifts = true;
            }
        }
        if !drifts {
            made_here(context.survey, sort, found.values().flatten(), report);
        }
    }
}

/// Where each sort of id is mentioned, by environment. Examples, tests and documents do not count.
fn mentions(files: &Files, sort: &Sort) -> BTreeMap<String, Vec<Mention>> {
    const ENDINGS: [&str; 7] = [".yaml", ".yml", ".tf", ".tfvars", ".json", ".env", ".properties"];
    let mut found: BTreeMap<String, Vec<Mention>> = BTreeMap::new();
    for path in files.ending(&ENDINGS).filter(|path| !is_example(path)) {
        let Some(text) = files.text(path) else { continue };
        let marks = ["vpc-", "arn:aws", "Z", "region", "REGION", "Region"];
        if !marks.iter().any(|mark| text.contains(mark)) {
            continue;
        }
        let lines = Lines::new(path, &text);
        for captures in joined(&text, sort.pattern) {
            let (id, at) = captures;
            if is_placeholder(&id) || is_comment(&text, at) {
                continue;
            }
            let span = lines.span(at..at + id.len());
            let is_terraform = path.ends_with(".tf") || path.ends_with(".tfvars");
            found.entry(environment(path)).or_default().push(Mention { id, span, is_terraform });
        }
    }
    found
}

/// The ids that a pattern finds, with their places; a Helm parameter has its value on the next line.
fn joined(text: &str, pattern: &Regex) -> Vec<(String, usize)> {
    let all = pattern.captures_iter(text).filter_map(|captures| {
        let key = captures.get(1)?.start();
        // Networks that peer are two.
        let before = text.get(key.saturating_sub(12)..key).unwrap_or_default().to_lowercase();
        let is_other = ["peer", "accepter", "requester", "remote", "source", "target"]
            .iter()
            .any(|word| before.contains(word));
        let id = captures.get(2)?;
        (!is_other).then(|| (id.as_str().to_owned(), id.start()))
    });
    all.collect()
}

fn drift(sort: &Sort, environment: &str, mentions: &[Mention]) -> Option<Finding> {
    let mut by_id: BTreeMap<&str, Vec<&Mention>> = BTreeMap::new();
    for mention in mentions {
        by_id.entry(&mention.id).or_default().push(mention);
    }
    let files: BTreeSet<&Arc<str>> = mentions.iter().map(|mention| &mention.span.file).collect();
    let mut ids: Vec<(&str, Vec<&Mention>)> = by_id.into_iter().collect();
    ids.sort_by_key(|(id, all)| (all.len(), *id));
    // Two values are a drift; many are a list of different things.
    let [(odd, rare), (usual, common)] = ids.as_slice() else { return None };
    if files.len() < 2 || (sort.outliers_only && !is_outlier(odd, rare.len(), common.len())) {
        return None;
    }
    let within = environment_phrase(environment);
    let message = format!("{within} has two values for the {}: {odd} and {usual}", sort.name);
    let diagnostic = RULE
        .diagnostic(message)
        .at(rare.first()?.span.clone(), "this one")
        .see(common.first()?.span.clone(), "and this one")
        .because("each of them is a copy; when the thing is rebuilt its id changes, and the copies that are forgotten name what is gone")
        .help("keep the id in one place, and let the others refer to it");
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

/// Whether a region stands alone among many mentions of another. Some services are in one region only.
fn is_outlier(odd: &str, rare: usize, common: usize) -> bool {
    const OF_SERVICES: &str = "us-east-1";
    const MANY: usize = 4;
    odd != OF_SERVICES && rare == 1 && common >= MANY
}

/// Ids that are written out though Terraform of the same repository makes the thing.
fn made_here<'a>(
    survey: &Survey,
    sort: &Sort,
    mentions: impl Iterator<Item = &'a Mention>,
    report: &mut Report,
) {
    let Some(resource) = sort.resource else { return };
    let Some(made) = survey.tools().terraform.resources(resource).find(|block| !is_example(&block.span.file))
    else {
        return;
    };
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for mention in mentions.filter(|mention| !mention.is_terraform) {
        if !seen.insert(&mention.id) {
            continue;
        }
        let message = format!(
            "the id of a {} is written out, though Terraform makes one here: {}",
            sort.name, mention.id
        );
        let mut diagnostic = RULE
            .diagnostic(message)
            .at(mention.span.clone(), "this id is another one once the thing is rebuilt")
            .see(made.span.clone(), "it is made here")
            .because("Terraform gives the id when it creates the thing; a copy of it is wrong from the next rebuild on")
            .help("let Terraform hand the id over: an output, a parameter, a ConfigMap, or a cluster Secret's annotation");
        diagnostic.severity = Severity::Info;
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}
