//! # A list of subnets or security groups holds one that the others do not know
//!
//! Lists of subnets and security groups are copied into annotations of Services and Ingresses, into the
//! values of controllers, and into `terraform.tfvars`. When one of them is made anew, its id changes; a list
//! in which it was forgotten names some that are there and one that is gone.
//!
//! People see: `InvalidSubnetID.NotFound: The subnet ID 'subnet-0a1…' does not exist`, `couldn't
//! auto-discover subnets`, `InvalidGroup.NotFound: The security group 'sg-0f9…' does not exist`; a load
//! balancer without an address.
//!
//! ## Bad
//! `alb.ingress.kubernetes.io/subnets: subnet-0aa…, subnet-0bb…` in an Ingress, and in `terraform.tfvars` of
//! the same environment `public_subnets = ["subnet-0aa…", "subnet-0cc…"]`.
//! ## Good
//! Subnets found by their tags (`kubernetes.io/role/elb`), or one list that the others refer to.
//!
//! ## When to suppress
//! Where a load balancer really is in another part of the network than the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_diag::{Severity, Span};
use tiphys_graph::{Files, tools::Lines};

use crate::{
    Context, Finding, Report, Rule,
    support::cloud_facts::{environment, environment_phrase, is_comment, is_example, is_placeholder},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G5-drifting-lists",
    incident: "G5",
    severity: Severity::Warning,
    title: "a list of subnets or security groups holds one that the others do not know",
    page: page!("g5_drifting_lists.rs"),
    check,
};

/// What lists are of, and how its ids begin.
const SORTS: [(&str, &str); 2] = [("subnet", "subnet-"), ("security group", "sg-")];

static ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:subnet|sg)-(?:[0-9a-f]{17}|[0-9a-f]{8})\b").expect("the expression is right")
});
static KEY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"([\w./-]+)["']?\s*[:=]"#).expect("the expression is right"));

/// Ids that stand under one key.
struct List {
    /// The key, in small letters and without separators.
    key: String,
    ids: BTreeMap<String, Span>,
    is_terraform: bool,
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (name, prefix) in SORTS {
        for (environment, lists) in lists(&context.survey.files, prefix) {
            let mut told: BTreeSet<&str> = BTreeSet::new();
            for (at, list) in lists.iter().enumerate().filter(|(_, list)| !list.is_terraform) {
                let others =
                    lists.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
                let Some((odd, of)) = forgotten(list, others) else { continue };
                if told.insert(odd) {
                    report.add(finding(name, &environment, (odd, &list.ids[odd]), of));
                }
            }
        }
    }
}

/// The lists of one sort, by environment.
fn lists(files: &Files, prefix: &str) -> BTreeMap<String, Vec<List>> {
    const ENDINGS: [&str; 5] = [".yaml", ".yml", ".tf", ".tfvars", ".json"];
    let mut found: BTreeMap<String, Vec<List>> = BTreeMap::new();
    for path in files.ending(&ENDINGS).filter(|path| !is_example(path)) {
        let Some(text) = files.text(path).filter(|text| text.contains(prefix)) else { continue };
        found.entry(environment(path)).or_default().extend(in_file(path, &text, prefix));
    }
    found
}

/// The lists of a file: ids on one line or on lines that follow each other.
fn in_file(path: &Arc<str>, text: &Arc<str>, prefix: &str) -> Vec<List> {
    let lines = Lines::new(path, text);
    let mut found: Vec<List> = Vec::new();
    let mut last = 0;
    for id in ID.find_iter(text).filter(|id| id.as_str().starts_with(prefix)) {
        if is_comment(text, id.start()) || is_placeholder(id.as_str()) {
            continue;
        }
        let line = lines.line(id.start());
        let own = KEY.captures_iter(line_before(text, id.start())).last();
        let own = own.and_then(|key| key.get(1)).map(|key| spelling(key.as_str()));
        let span = lines.span(id.range());
        match found.last_mut() {
            Some(list)
                if line == last || (line == last + 1 && own.as_ref().is_none_or(|own| *own == list.key)) =>
            {
                list.ids.insert(id.as_str().to_owned(), span);
            }
            _ => {
                let key = own.or_else(|| key_above(text, id.start())).unwrap_or_default();
                let is_terraform = path.ends_with(".tf") || path.ends_with(".tfvars");
                found.push(List { key, ids: BTreeMap::from([(id.as_str().to_owned(), span)]), is_terraform });
            }
        }
        last = line;
    }
    found
}

fn line_before(text: &str, at: usize) -> &str {
    text[..at].rsplit('\n').next().unwrap_or_default()
}

/// The key of the nearest line above that ends with it.
fn key_above(text: &str, at: usize) -> Option<String> {
    let above = text[..at].lines().rev().skip(1).find(|line| !line.trim().is_empty())?;
    let key = KEY.captures(above)?;
    Some(spelling(key.get(1)?.as_str()))
}

/// A key without what differs between tools: `publicSubnets`, `public_subnets`.
fn spelling(key: &str) -> String {
    let last = key.rsplit('/').next().unwrap_or(key);
    last.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The one id of a list that is not in another list, which has the rest of it and as many: a list of
/// Terraform, or one under the same key.
fn forgotten<'a>(list: &'a List, mut others: impl Iterator<Item = &'a List>) -> Option<(&'a str, &'a List)> {
    others.find_map(|other| {
        let is_comparable = other.is_terraform || (other.key == list.key && !list.key.is_empty());
        if !is_comparable || other.ids.len() != list.ids.len() || list.ids.len() < 2 {
            return None;
        }
        let mut odd = list.ids.keys().filter(|id| !other.ids.contains_key(*id));
        let first = odd.next()?;
        odd.next().is_none().then_some((first.as_str(), other))
    })
}

fn finding(name: &str, environment: &str, (odd, at): (&str, &Span), of: &List) -> Finding {
    let within = environment_phrase(environment);
    let message =
        format!("{within} has two lists of {name}s that differ in one: {odd} is in only one of them");
    let mut diagnostic = RULE.diagnostic(message).at(at.clone(), "not in the other list");
    if let Some(span) = of.ids.values().next() {
        diagnostic = diagnostic.see(span.clone(), "the other list");
    }
    let diagnostic = diagnostic
        .because("each list is a copy; when one of them is made anew its id changes, and the copies that are forgotten name what is gone")
        .help("keep the list in one place, or let the controller find them by their tags");
    Finding::new(RULE.incident, diagnostic).likely()
}
