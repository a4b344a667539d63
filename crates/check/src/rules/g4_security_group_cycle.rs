//! # Security groups that refer to each other through inline rules
//!
//! A rule that stands inside an `aws_security_group` makes the whole group depend on the groups that the rule
//! names. Two groups that name each other so can be neither created nor deleted: Terraform finds the cycle
//! when it plans. Where only one of the two rules is inline and the other one is a resource of its own on a
//! group with inline rules, the two ways overwrite each other at every apply, and the rules that are left
//! keep the groups from being deleted.
//!
//! People see: `Error: Cycle: aws_security_group.control, aws_security_group.node`,
//! `DependencyViolation: resource sg-… has a dependent object`.
//!
//! ## Bad
//! ```hcl
//! resource "aws_security_group" "control" {
//!   ingress {
//!     security_groups = [aws_security_group.node.id]
//!   }
//! }
//! resource "aws_security_group" "node" {
//!   ingress {
//!     security_groups = [aws_security_group.control.id]
//!   }
//! }
//! ```
//! ## Good
//! ```hcl
//! resource "aws_vpc_security_group_ingress_rule" "control_from_node" {
//!   security_group_id            = aws_security_group.control.id
//!   referenced_security_group_id = aws_security_group.node.id
//! }
//! ```
//! or one group for all nodes whose rule is `self = true`.
//!
//! ## When to suppress
//! Never for a cycle.

use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry};

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::tools::terraform::{Block, Reference};

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G4-security-group-cycle",
    incident: "G4",
    severity: Severity::Error,
    title: "security groups that refer to each other through inline rules",
    page: page!("g4_security_group_cycle.rs"),
    check,
};

/// Resources that are one rule of a group.
const RULES: [&str; 3] =
    ["aws_security_group_rule", "aws_vpc_security_group_ingress_rule", "aws_vpc_security_group_egress_rule"];

fn check(context: &Context<'_>, report: &mut Report) {
    for blocks in context.survey.tools().terraform.modules().into_values() {
        let groups: BTreeMap<&str, &Block> = blocks
            .iter()
            .filter(|block| block.is_resource("aws_security_group"))
            .filter_map(|block| Some((block.labels.get(1)?.as_str(), *block)))
            .collect();
        cycles(&groups, report);
        mixed(&groups, &blocks, report);
    }
}

/// The group that a reference names.
fn group_name(reference: &Reference) -> Option<&str> {
    match reference.path.as_slice() {
        [kind, name, ..] if kind == "aws_security_group" => Some(name),
        _ => None,
    }
}

/// The other groups that a group's own block names, with the places.
fn edges<'a>(group: &str, block: &'a Block) -> BTreeMap<&'a str, &'a Reference> {
    let references = block.references().into_iter();
    references.filter_map(|it| Some((group_name(it)?, it))).filter(|(name, _)| *name != group).collect()
}

/// The other groups that each group's own block names, with the places.
type Edges<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Reference>>;

fn cycles(groups: &BTreeMap<&str, &Block>, report: &mut Report) {
    let edges: Edges<'_> = groups.iter().map(|(name, block)| (*name, edges(name, block))).collect();
    let mut reported: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for start in edges.keys() {
        let Some(cycle) = shortest(&edges, start) else { continue };
        if reported.insert(cycle.iter().copied().collect()) {
            report.add(Finding::new(RULE.incident, cycle_found(&cycle, &edges)));
        }
    }
}

/// What is said of groups each of which needs the next, and the last one the first.
fn cycle_found(cycle: &[&str], edges: &Edges<'_>) -> Diagnostic {
    /// Places that a person may still read through.
    const SHOWN: usize = 12;
    let mut addresses: Vec<String> =
        cycle.iter().take(SHOWN).map(|name| format!("aws_security_group.{name}")).collect();
    if cycle.len() > SHOWN {
        addresses.push(format!("and {} more", cycle.len() - SHOWN));
    }
    let mut diagnostic = RULE.diagnostic(format!("Error: Cycle: {}", addresses.join(", ")));
    for (at, name) in cycle.iter().enumerate().take(SHOWN) {
        let next = cycle[(at + 1) % cycle.len()];
        let Some(reference) = edges.get(name).and_then(|named| named.get(next)) else { continue };
        let label = format!("{name} needs {next}");
        diagnostic = match at {
            0 => diagnostic.at(reference.span.clone(), label),
            _ => diagnostic.see(reference.span.clone(), label),
        };
    }
    diagnostic
        .because("an inline rule makes its group depend on the group that it names, so each of them has to exist, and to be deleted, before the other")
        .help("make the rules resources of their own (aws_vpc_security_group_ingress_rule)")
        .help("give all of them one group whose rule is `self = true`")
}

/// The shortest way from a group back to itself.
fn shortest<'a>(edges: &Edges<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    // From which group each was reached first.
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(group) = open.pop_front() {
        for next in edges.get(group)?.keys().copied().filter(|next| edges.contains_key(next)) {
            if next == start {
                let before = |group: &&'a str| from.get(group).copied();
                let mut way: Vec<&str> = std::iter::successors(Some(group), before).collect();
                way.reverse();
                return Some(way);
            }
            if let Entry::Vacant(entry) = from.entry(next) {
                entry.insert(group);
                open.push_back(next);
            }
        }
    }
    None
}

/// Groups with inline rules that other resources add rules to.
fn mixed(groups: &BTreeMap<&str, &Block>, blocks: &[&Block], report: &mut Report) {
    let mut found: BTreeMap<&str, Vec<(&Block, &Block)>> = BTreeMap::new();
    for rule in blocks.iter().filter(|block| RULES.iter().any(|kind| block.is_resource(kind))) {
        let target = rule.get("security_group_id").and_then(|it| it.references.first()).and_then(group_name);
        let Some((name, group)) = target.and_then(|name| groups.get_key_value(name)) else { continue };
        let kind = match rule.labels.first().map(String::as_str) {
            Some("aws_security_group_rule") => rule.str("type"),
            Some("aws_vpc_security_group_egress_rule") => Some("egress"),
            _ => Some("ingress"),
        };
        let Some(inline) = kind.and_then(|kind| group.children(kind).next()) else { continue };
        // Then the group says that it leaves the rules alone.
        if !group.children("lifecycle").any(|lifecycle| lifecycle.get("ignore_changes").is_some()) {
            found.entry(name).or_default().push((rule, inline));
        }
    }
    for (name, rules) in found {
        let (first, inline) = rules[0];
        let others = match rules.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let message =
            format!("aws_security_group.{name} has inline rules, and {}{others} add to it", first.address());
        let mut diagnostic = RULE
            .diagnostic(message)
            .at(first.span.clone(), "this rule is removed by the next apply of the group")
            .see(inline.span.clone(), "the group says here that these are all its rules")
            .because("inline rules are the complete list of a group's rules: Terraform removes every other one, and the rule's own resource adds it again")
            .help("make all rules of the group resources of their own");
        diagnostic.severity = Severity::Warning;
        report.add(Finding::new(RULE.incident, diagnostic));
    }
}
