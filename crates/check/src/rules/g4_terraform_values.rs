//! # Terraform reads a value as what it is not
//!
//! A name that exists, and yields something else than its reader takes. A resource as a whole is an object:
//! an argument for its id or name wants one of its attributes. `metadata`, `spec` and `status` of the
//! Kubernetes provider are lists of one block, also in a reference: `metadata[0].name`. And `each` has a key
//! and a value, and nothing else.
//!
//! People see: `Error: Incorrect attribute value type … string required`, `Error: Unsupported attribute: This
//! value is a list of objects`, `Error: Invalid "each" attribute`.
//!
//! ## Bad
//! ```hcl
//! resource "aws_subnet" "a" { vpc_id = aws_vpc.main }
//! resource "kubernetes_secret" "db" { metadata { namespace = kubernetes_namespace.shop.metadata.name } }
//! ```
//! ## Good
//! ```hcl
//! resource "aws_subnet" "a" { vpc_id = aws_vpc.main.id }
//! resource "kubernetes_secret" "db" { metadata { namespace = kubernetes_namespace.shop.metadata[0].name } }
//! ```
//! ## When to suppress
//! Where a provider of your own takes an object for an argument that is called like an id.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{
    Files,
    tools::terraform::{Attribute, Block, Reference},
};

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G4-terraform-values",
    incident: "G4",
    severity: Severity::Warning,
    title: "Terraform reads a value as what it is not",
    page: page!("g4_terraform_values.rs"),
    check,
};

/// A reference that yields something else than what is read of it.
struct WrongValue<'a> {
    reference: &'a Reference,
    /// What Terraform says, in short.
    what: &'static str,
    /// The same reference as it is perhaps meant.
    meant: Option<String>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (folder, blocks) in context.survey.tools().terraform.modules() {
        if placeholders::is_skeleton(folder) {
            continue;
        }
        let resources = blocks.iter().filter(|block| block.kind == "resource");
        let resources: BTreeSet<String> = resources.map(|block| block.labels.join(".")).collect();
        let mut found = Vec::new();
        for block in &blocks {
            wrong_values(block, &resources, block.kind == "resource", &mut found);
        }
        report_each_once(&context.survey.files, found, report);
    }
}

/// Looks through a block and those in it.
fn wrong_values<'a>(
    block: &'a Block,
    resources: &BTreeSet<String>,
    is_in_resource: bool,
    found: &mut Vec<WrongValue<'a>>,
) {
    for attribute in block.attributes.iter().filter(|it| it.name.trim() != "depends_on") {
        if is_in_resource {
            found.extend(whole_resource(attribute, resources));
        }
        let untried = attribute.expression.references.iter().filter(|it| !it.is_tried);
        found.extend(untried.filter_map(|it| block_as_object(it).or_else(|| unknown_of_each(it))));
    }
    for inner in &block.blocks {
        wrong_values(inner, resources, is_in_resource, found);
    }
}

/// A resource where a text that belongs to it is wanted.
fn whole_resource<'a>(attribute: &'a Attribute, resources: &BTreeSet<String>) -> Option<WrongValue<'a>> {
    const TEXTS: [&str; 5] = ["name", "namespace", "password", "username", "zone"];
    const ENDINGS: [&str; 3] = ["_arn", "_id", "_name"];
    let name = attribute.name.trim();
    let wants_text = TEXTS.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending));
    let [reference] = attribute.expression.references.as_slice() else { return None };
    let steps = steps(reference);
    let is_alone = reference.span == attribute.expression.span;
    if !wants_text || !is_alone || steps.len() != 2 || !resources.contains(&steps.join(".")) {
        return None;
    }
    let what = "a text is wanted, and the whole resource is given:";
    Some(WrongValue { reference, what, meant: None })
}

/// A block of the Kubernetes provider, of which there is a list, read as one object.
fn block_as_object(reference: &Reference) -> Option<WrongValue<'_>> {
    let steps = steps(reference);
    let own = if steps.first() == Some(&"data") { 3 } else { 2 };
    let kind = *steps.get(own - 2)?;
    let is_block = matches!(*steps.get(own)?, "metadata" | "spec" | "status");
    let is_read_into = steps.len() > own + 1 && reference.before_index > own + 1;
    // That one keeps what it was given, as it was given.
    let is_of_blocks =
        kind.starts_with("kubernetes_") && !matches!(kind, "kubernetes_manifest" | "kubernetes_resource");
    if !is_block || !is_read_into || !is_of_blocks {
        return None;
    }
    let meant = format!("{}[0].{}", steps[..=own].join("."), steps[own + 1..].join("."));
    let what = "a list of blocks is read as one object by";
    Some(WrongValue { reference, what, meant: Some(meant) })
}

/// Something of the present element of `for_each` beside its key and its value.
fn unknown_of_each(reference: &Reference) -> Option<WrongValue<'_>> {
    let steps = steps(reference);
    let ["each", of, ..] = steps.as_slice() else { return None };
    let what = "`each` has only a key and a value, and no";
    (!matches!(*of, "key" | "value")).then_some(WrongValue { reference, what, meant: None })
}

fn steps(reference: &Reference) -> Vec<&str> {
    reference.path.iter().map(|step| step.trim()).collect()
}

/// Reports each sort of fault of a module once, at its first reference.
fn report_each_once(files: &Files, found: Vec<WrongValue<'_>>, report: &mut Report) {
    let mut by_kind: BTreeMap<&str, Vec<(String, WrongValue<'_>)>> = BTreeMap::new();
    for wrong in found {
        let path = steps(wrong.reference).join(".");
        // A loop may call its element so.
        let file = files.text(&wrong.reference.span.file);
        let is_of_loop = path.starts_with("each.") && file.is_some_and(|text| text.contains("for each"));
        let known = by_kind.entry(wrong.what).or_default();
        if !is_of_loop && known.iter().all(|(other, _)| *other != path) {
            known.push((path, wrong));
        }
    }
    for (what, wrong) in by_kind {
        let others = wrong.len().saturating_sub(1);
        let Some((path, first)) = wrong.into_iter().next() else { continue };
        let more = if others > 0 { format!(", and {others} more") } else { String::new() };
        let mut diagnostic = RULE
            .diagnostic(format!("Terraform refuses the module: {what} {path}{more}"))
            .at(first.reference.span.clone(), "here")
            .because(
                "Terraform knows the type of every attribute of a resource, and makes no text of an object",
            );
        diagnostic.help.push(match &first.meant {
            Some(meant) => format!("{meant} is its first and only one"),
            None if path.starts_with("each.") => "each.key and each.value are what there is".to_owned(),
            None => format!("name the attribute, such as {path}.id"),
        });
        let finding = Finding::new(RULE.incident, diagnostic);
        report.add(match first.meant {
            Some(meant) => finding.with_spelling(path, meant),
            None => finding,
        });
    }
}
