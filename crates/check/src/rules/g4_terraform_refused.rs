//! # What Terraform refuses before it plans
//!
//! All files of a folder are one module. A variable, output, local value, resource or module that two blocks
//! of it define stops the plan; so does a function that reads a file that is not there, or a default of a
//! variable that speaks of another one, or a block that belongs into another one (`lifecycle`), or a resource
//! for an alias of a provider that the module neither configures nor declares among its
//! `configuration_aliases`. Nor does the Kubernetes provider take an argument in the wrong block of a pod, and of
//! two `set` blocks of one name a `helm_release` keeps the later alone. The classics are two branches that add the same output, and a manifest that moved
//! while `file("${path.module}/…")` stayed.
//!
//! People see: `Error: Duplicate output definition`, `Error: Duplicate resource "aws_eip" configuration`,
//! `Error: Invalid function argument: no file exists at "…"`, `Error: Variables not allowed`,
//! `Error: Unsupported block type`, `Error: Provider configuration not present`, `Error: Missing
//! required provider configuration`, `Error: Duplicate required providers configuration`, `Error: Unsupported
//! argument: An argument named "name" is not expected here`.
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
//! Where only one of the two files is there when Terraform runs, or something else makes the file that is
//! read.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, Span};
use tiphys_graph::tools::terraform::{Block, FileRead, Reference};
use tiphys_vfs::{EntryKind, join, parent};

use super::terraform_arguments;
use crate::{
    Context, Finding, Report, Rule,
    support::{placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G4-terraform-refused",
    incident: "G4",
    severity: Severity::Warning,
    title: "a folder that Terraform refuses before it plans",
    page: page!("g4_terraform_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    terraform_arguments::check(context, report);
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
    for finding in own.filter_map(|block| {
        variable_default(block)
            .or_else(|| misplaced_block(block))
            .or_else(|| description(block))
            .or_else(|| object_name(block))
            .or_else(|| argument_as_block(block))
    }) {
        report.add(finding);
    }
    // Terragrunt may write the configuration of providers.
    if context.survey.files.ending(&["terragrunt.hcl", ".tf.json"]).next().is_none() {
        let modules = terraform.modules();
        let is_whole = |folder: &str| {
            let mut unreadable = terraform.unreadable.iter();
            !unreadable.any(|it| parent(&it.span.file).unwrap_or_default() == folder)
        };
        for (folder, blocks) in modules.iter().filter(|(folder, _)| is_whole(folder)) {
            let read = blocks.iter().copied().filter(|block| is_read(&block.span.file));
            let own: Vec<&Block> = read.collect();
            provider_aliases(&own, report);
            let of = |source: &str| modules.get(join(folder, source).ok()?.as_str());
            own.iter().filter_map(|call| not_handed_over(call, of)).for_each(|it| report.add(it));
        }
    }
    for read in terraform.reads.iter().filter(|read| is_read(&read.span.file)) {
        if let Some(finding) = missing(context, read) {
            report.add(finding);
        }
    }
}

/// Whether a file is there instead of another one: much of what it defines, or all of it, the other defines
/// too. Each is then a module of its own, or only one of them is put in place.
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
        ("terraform", []) => {
            let required = block.children("required_providers");
            required.map(|it| ("required providers configuration".to_owned(), &it.span)).collect()
        }
        ("locals", []) => {
            let locals = block.attributes.iter();
            locals.map(|it| (format!("local value \"{}\"", it.name.trim()), &it.expression.span)).collect()
        }
        _ => Vec::new(),
    }
}

/// A block that no file of a module can have by itself (Terraform docs, "Configuration Syntax").
fn misplaced_block(block: &Block) -> Option<Finding> {
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

/// A description of a security group with a character that AWS does not take: nothing but these is allowed
/// (EC2 API, `CreateSecurityGroup`), and a dash that an editor made longer is none of them.
fn description(block: &Block) -> Option<Finding> {
    const KINDS: [&str; 4] = [
        "aws_security_group",
        "aws_security_group_rule",
        "aws_vpc_security_group_egress_rule",
        "aws_vpc_security_group_ingress_rule",
    ];
    if !KINDS.iter().any(|kind| block.is_resource(kind)) {
        return None;
    }
    let rules = block.blocks.iter().filter(|it| matches!(it.kind.as_str(), "ingress" | "egress"));
    let mut texts = std::iter::once(block).chain(rules).filter_map(|it| it.get("description"));
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " ._-:/()#,@[]+=&;{}!$*".contains(c);
    let (text, other) = texts.find_map(|it| Some((it, it.as_str()?.chars().find(|c| !is_allowed(*c))?)))?;
    let diagnostic = RULE
        .diagnostic(format!(
            "invalid value for description of {}: AWS does not take {other:?} there",
            block.address()
        ))
        .at(text.span.clone(), "letters of ASCII, digits, blanks and ._-:/()#,@[]+=&;{}!$* alone")
        .because("Terraform's provider refuses the group before it asks AWS, and with it the whole plan")
        .help("write it with plain characters");
    Some(Finding::new(RULE.incident, diagnostic))
}

/// A name of a Kubernetes object that the API server does not take: a subdomain of RFC 1123, as those of most
/// kinds are.
fn object_name(block: &Block) -> Option<Finding> {
    const KINDS: [&str; 12] = [
        "config_map",
        "cron_job",
        "daemonset",
        "deployment",
        "ingress",
        "job",
        "namespace",
        "persistent_volume_claim",
        "secret",
        "service",
        "service_account",
        "stateful_set",
    ];
    let kind = block.labels.first().filter(|_| block.kind == "resource")?.strip_prefix("kubernetes_")?;
    if !KINDS.contains(&kind.strip_suffix("_v1").unwrap_or(kind)) {
        return None;
    }
    let name = block.children("metadata").next()?.get("name")?;
    let text = name.as_str().filter(|it| !it.is_empty())?;
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_right = text.chars().all(|c| is_inner(c) || matches!(c, '-' | '.'))
        && text.starts_with(is_inner)
        && text.ends_with(is_inner);
    if is_right {
        return None;
    }
    let diagnostic = RULE
        .diagnostic(format!("metadata.name of {}: Invalid value: \"{text}\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'", block.address()))
        .at(name.span.clone(), "the API server does not take it")
        .because("names of Kubernetes are names of hosts: the plan goes through, and the apply ends here");
    Some(Finding::new(RULE.incident, diagnostic))
}

/// A map that is written as a block: Terraform takes it behind an equals sign alone.
fn argument_as_block(block: &Block) -> Option<Finding> {
    // By the beginning of the resource's type, and the blocks that lead to the map.
    const MAPS: [(&str, &[&str], &str); 11] = [
        ("null_resource", &[], "triggers"),
        ("aws_", &[], "tags"),
        ("azurerm_", &[], "tags"),
        ("google_", &[], "labels"),
        ("kubernetes_", &["metadata"], "labels"),
        ("kubernetes_", &["metadata"], "annotations"),
        ("kubernetes_", &["spec", "template", "metadata"], "labels"),
        ("kubernetes_", &["spec", "template", "metadata"], "annotations"),
        ("kubernetes_", &["spec", "selector"], "match_labels"),
        ("kubernetes_config_map", &[], "data"),
        ("kubernetes_secret", &[], "data"),
    ];
    let kind = block.labels.first().filter(|_| block.kind == "resource")?;
    let (name, span) =
        MAPS.iter().filter(|(start, ..)| kind.starts_with(start)).find_map(|(_, steps, name)| {
            let mut holder = block;
            for step in *steps {
                holder = holder.children(step).next()?;
            }
            Some((*name, holder.children(name).next()?.span.clone()))
        })?;
    let diagnostic = RULE
        .diagnostic(format!("Unsupported block type: Blocks of type \"{name}\" are not expected here."))
        .at(span, "a block")
        .because("a map is an argument, and the provider knows no block of this name")
        .help(format!("write {name} = {{ … }}"));
    Some(Finding::new(RULE.incident, diagnostic))
}

/// Resources of a module for an alias of a provider that nothing in the module knows (Terraform docs,
/// "Providers Within Modules").
fn provider_aliases(blocks: &[&Block], report: &mut Report) {
    let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
    for block in blocks {
        match block.kind.as_str() {
            "provider" => known.extend(block.labels.first().map(String::as_str).zip(block.str("alias"))),
            "terraform" => known.extend(block.references().into_iter().filter_map(alias)),
            _ => {}
        }
    }
    let mut told = BTreeSet::new();
    for block in blocks.iter().filter(|it| matches!(it.kind.as_str(), "resource" | "data")) {
        let Some(provider) = block.get("provider") else { continue };
        let Some(named) = provider.references.first().and_then(alias) else { continue };
        if known.contains(&named) || !told.insert(named) {
            continue;
        }
        let name = format!("{}.{}", named.0, named.1);
        let diagnostic = RULE
            .diagnostic(format!("Provider configuration not present: {} is of {name}", block.address()))
            .at(provider.span.clone(), "no provider of the module has this alias")
            .because("an alias is known in the module that configures it alone: a module that is given one declares it among its configuration_aliases")
            .help(format!("add `configuration_aliases = [{name}]` to the module's required_providers, and hand it over with `providers`"));
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}

/// A call of a module that wants a provider with an alias, and is given none at all.
fn not_handed_over<'a>(call: &Block, of: impl Fn(&str) -> Option<&'a Vec<&'a Block>>) -> Option<Finding> {
    if call.kind != "module" || call.get("providers").is_some() {
        return None;
    }
    let source = call.str("source").filter(|it| it.starts_with('.'))?;
    let wanted = of(source)?.iter().filter(|it| it.kind == "terraform");
    let reference = wanted.flat_map(|it| it.references()).find(|it| alias(it).is_some())?;
    let name = reference.path.join(".");
    let diagnostic = RULE
        .diagnostic(format!(
            "Missing required provider configuration: module \"{}\" is to be given {name}",
            call.labels.join(".")
        ))
        .at(call.span.clone(), "hands over no provider")
        .see(reference.span.clone(), "the module asks for it here")
        .because("a provider with an alias is not handed down by itself: Terraform refuses the whole configuration")
        .help(format!("add `providers = {{ {name} = … }}`"));
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

/// The provider and the alias that a reference is to.
fn alias(reference: &Reference) -> Option<(&str, &str)> {
    match reference.path.as_slice() {
        [provider, alias] => Some((provider, alias)),
        _ => None,
    }
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
    if is_there
        || !(above.is_empty() || files.has_folder(above))
        || unused_files::is_git_ignored(files, &path)
    {
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
