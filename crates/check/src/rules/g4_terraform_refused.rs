//! # What Terraform refuses before it plans
//!
//! All files of a folder are one module. A variable, output, local value, resource or module that two blocks of it
//! define stops the plan; so does a function that reads a file that is not there, or a default of a variable that
//! speaks of another one, or a block that belongs into another one (`lifecycle`). The classics are two branches that add the same output, and a manifest that moved while
//! `file("${path.module}/…")` stayed.
//!
//! People see: `Error: Duplicate output definition`, `Error: Duplicate resource "aws_eip" configuration`,
//! `Error: Invalid function argument: no file exists at "…"`, `Error: Variables not allowed`,
//! `Error: Unsupported block type`.
//!
//! ## Bad
//! ```hcl
//! output "node_ip" { value = aws_eip.node.public_ip }
//! # and in another file of the folder
//! output "node_ip" { value = aws_instance.node.public_ip }
//! ```
//! ## Good
//! ```hcl
//! output "node_ip" { value = aws_eip.node.public_ip }
//! ```
//! ## When to suppress
//! Where only one of the two files is there when Terraform runs, or something else makes the file that is read.

use std::collections::BTreeMap;

use tiphys_diag::{Severity, Span};
use tiphys_graph::tools::terraform::{Block, FileRead};
use tiphys_vfs::{EntryKind, join, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{placeholders, set_aside},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "G4-terraform-refused",
    incident: "G4",
    severity: Severity::Warning,
    title: "a folder that Terraform refuses before it plans",
    source: include_str!("g4_terraform_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let terraform = &context.survey.tools().terraform;
    let mut defined: BTreeMap<(&str, String), &Span> = BTreeMap::new();
    for (file, blocks) in terraform.files.iter().filter(|(file, _)| is_read(file)) {
        let folder = parent(file).unwrap_or_default();
        let own: Vec<(String, &Span)> = blocks.iter().flat_map(definitions).collect();
        let known = own.iter().filter(|(what, _)| defined.contains_key(&(folder, what.clone()))).count();
        let is_alternative = is_alternative(known, own.len());
        for (what, span) in own {
            match defined.get(&(folder, what.clone())) {
                Some(first) if is_alternative && first.file != span.file => {}
                Some(first) => report.add(twice(&what, first, span)),
                None => {
                    defined.insert((folder, what), span);
                }
            }
        }
    }
    let own = terraform.files.iter().filter(|(file, _)| is_read(file)).flat_map(|(_, blocks)| blocks);
    for finding in own.filter_map(|block| variable_default(block).or_else(|| misplaced(block))) {
        report.add(finding);
    }
    for read in terraform.reads.iter().filter(|read| is_read(&read.span.file)) {
        if let Some(finding) = missing(context, read) {
            report.add(finding);
        }
    }
}

/// Whether a file is there instead of another one: much of what it defines, or all of it, the other defines too. Each is
/// then a module of its own, or only one of them is put in place.
fn is_alternative(known: usize, all: usize) -> bool {
    const MANY: usize = 4;
    (known == all && all > 1) || (known >= MANY && known * 3 >= all)
}

/// Whether a file is one of a module as it stands: what overrides, and what is a template, is not.
fn is_read(file: &str) -> bool {
    let base = file.rsplit('/').next().unwrap_or(file);
    let is_override = base == "override.tf" || base.ends_with("_override.tf");
    base.ends_with(".tf") && !is_override && !placeholders::is_skeleton(file)
}

/// What a block defines, as Terraform calls it, with the places.
fn definitions(block: &Block) -> Vec<(String, &Span)> {
    let named = |what: String| vec![(what, &block.span)];
    match (block.kind.as_str(), block.labels.as_slice()) {
        ("output" | "variable" | "module", [name]) => named(format!("{} \"{name}\"", block.kind)),
        ("resource" | "data", [kind, name]) => named(format!("{} \"{kind}\" \"{name}\"", block.kind)),
        ("locals", []) => {
            let locals = block.attributes.iter();
            locals.map(|it| (format!("local value \"{}\"", it.name.trim()), &it.expression.span)).collect()
        }
        _ => Vec::new(),
    }
}

/// A block that no file of a module can have by itself (Terraform docs, "Configuration Syntax").
fn misplaced(block: &Block) -> Option<Finding> {
    const KINDS: [&str; 15] = [
        "action",
        "check",
        "data",
        "ephemeral",
        "import",
        "list",
        "locals",
        "module",
        "moved",
        "output",
        "provider",
        "removed",
        "resource",
        "terraform",
        "variable",
    ];
    if KINDS.contains(&block.kind.as_str()) {
        return None;
    }
    let diagnostic = RULE
        .diagnostic(format!(
            "Unsupported block type: Blocks of type \"{}\" are not expected here.",
            block.kind
        ))
        .at(block.span.clone(), "stands by itself")
        .because(
            "Terraform reads all files of a folder before it does anything, and refuses the whole module",
        );
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

/// A variable whose default speaks of something else: defaults are read before anything has a value.
fn variable_default(block: &Block) -> Option<Finding> {
    let [name] = block.labels.as_slice() else { return None };
    let default = block.get("default").filter(|_| block.kind == "variable")?;
    let reference = default.references.iter().find(|it| it.path.len() > 1)?;
    let diagnostic = RULE
        .diagnostic(format!(
            "variables may not be used here: the default of variable \"{name}\" is to be {}",
            reference.path.join(".")
        ))
        .at(default.span.clone(), "has to be a plain value")
        .because("defaults are read before anything has a value: Terraform refuses the whole module")
        .help("put it together in a local value, and use that one");
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

fn twice(what: &str, first: &Span, second: &Span) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!("{what} is defined twice in one folder"))
        .at(second.clone(), "defined again")
        .see(first.clone(), "defined here")
        .because("all files of a folder are one module, in which each name stands for one thing: Terraform refuses the whole of it")
        .help("take one of the two out, or give it another name");
    Finding::new(RULE.incident, diagnostic).likely()
}

/// A file that a function reads and that is not there, where nothing is seen to make it.
fn missing(context: &Context<'_>, read: &FileRead) -> Option<Finding> {
    // What people write, and not what a build leaves.
    const WRITTEN: [&str; 9] =
        [".yaml", ".yml", ".json", ".tpl", ".tftpl", ".tmpl", ".sh", ".conf", ".policy"];
    let files = &context.survey.files;
    let folder = parent(&read.span.file).unwrap_or_default();
    let path = join(folder, &read.path).ok().filter(|path| WRITTEN.iter().any(|end| path.ends_with(end)))?;
    let above = parent(&path).unwrap_or_default();
    let is_there = matches!(files.tree().kind(&path), Ok(EntryKind::File));
    if is_there || !(above.is_empty() || files.has_folder(above)) || set_aside::is_ignored(files, &path) {
        return None;
    }
    // Another resource, or a script beside it, may write the file first.
    let base = path.rsplit('/').next().unwrap_or(&path);
    let is_written = |line: &str| {
        line.contains(base)
            && ["filename", "output", ">", "tee ", "-o "].iter().any(|mark| line.contains(mark))
    };
    let mut makers =
        files.ending(&[".tf", ".sh", "Makefile"]).filter(|file| parent(file).unwrap_or_default() == folder);
    if makers.any(|file| files.text(file).is_some_and(|text| text.lines().any(is_written))) {
        return None;
    }
    let diagnostic = RULE
        .diagnostic(format!("{}: no file exists at {path}", read.function))
        .at(read.span.clone(), "reads a file that is not there")
        .because(
            "functions that read files are evaluated when Terraform validates the module: nothing is planned",
        )
        .help("name the file where it is now");
    Some(Finding::new(RULE.incident, diagnostic).likely())
}
