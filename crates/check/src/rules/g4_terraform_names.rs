//! # A Terraform module refers to what it does not have
//!
//! A variable, local value or resource that no file of the folder declares; an argument that a module of the
//! repository does not take, or one that it must be given; an output that it does not have, also where its
//! state is read with `terraform_remote_state`; a folder that is not there. Terraform refuses the whole of it
//! before it plans – nearly always after something was renamed in one of two places. So is a bare word
//! between the brackets of an index, which names nothing, and a whole resource in the middle of a text, which
//! is none.
//!
//! People see: `Error: Reference to undeclared input variable`, `Error: Reference to undeclared resource`,
//! `Error: Unsupported argument`, `Error: Missing required argument`, `Error: Unsupported attribute`,
//! `Error: Unreadable module directory`, `Error: Invalid reference`, `Error: Invalid template interpolation
//! value`.
//!
//! ## Bad
//! ```hcl
//! variable "vpc_cidr" { default = "10.0.0.0/16" }
//! resource "aws_vpc" "main" { cidr_block = var.cidr }
//! ```
//! ## Good
//! ```hcl
//! resource "aws_vpc" "main" { cidr_block = var.vpc_cidr }
//! ```
//! ## When to suppress
//! Where another tool adds files to the folder before Terraform reads it.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{
    Files,
    tools::terraform::{Block, Reference, Terraform},
};
use tiphys_vfs::{join, parent};

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G4-terraform-names",
    incident: "G4",
    severity: Severity::Warning,
    title: "a Terraform module refers to what it does not have",
    page: page!("g4_terraform_names.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    let modules = Module::all(files, &context.survey.tools().terraform);
    for (folder, module) in modules.iter().filter(|(_, module)| module.is_whole && module.acts) {
        let mut lacking = BTreeMap::new();
        for reference in module.blocks.iter().flat_map(|block| block.references()) {
            if let Some((what, name, nearest)) = module.missing_name(reference) {
                lacking.entry((what, name)).or_insert((&reference.span, nearest));
            }
        }
        let mut found: Vec<UndeclaredName> = lacking
            .into_iter()
            .map(|((what, name), (span, nearest))| UndeclaredName {
                what: what.to_owned(),
                name,
                span: span.clone(),
                nearest,
            })
            .collect();
        found.extend(module.without_instance());
        found.extend(module.odd_places(files));
        for call in module.blocks.iter().filter(|block| block.kind == "module") {
            found.extend(calls(files, &modules, (folder, module), call));
        }
        found.extend(remote_states(&modules, module));
        module.quoted_names(files, report);
        report_by_kind(found, report);
    }
}

/// Outputs that a module reads from the state of another module of the repository, which has none of the
/// name.
fn remote_states(modules: &BTreeMap<&str, Module<'_>>, module: &Module<'_>) -> Vec<UndeclaredName> {
    let mut found: Vec<UndeclaredName> = Vec::new();
    let is_state = |block: &&&Block| {
        block.kind == "data" && block.labels.first().is_some_and(|kind| kind == "terraform_remote_state")
    };
    for state in module.blocks.iter().filter(is_state) {
        let Some(name) = state.labels.get(1) else { continue };
        let mut owners = modules.iter().filter(|(_, it)| it.is_whole && it.keeps_state_of(state));
        // Which of two that keep it in one place is meant depends on what is not seen.
        let (Some((folder, owner)), None) = (owners.next(), owners.next()) else { continue };
        let outputs: BTreeSet<&str> = owner.labels_of("output").collect();
        for reference in module.blocks.iter().flat_map(|block| read(block)).filter(|it| !it.is_tried) {
            let steps: Vec<&str> = reference.path.iter().map(|step| step.trim()).collect();
            let ["data", "terraform_remote_state", of, "outputs", output, ..] = steps.as_slice() else {
                continue;
            };
            let is_new = found.iter().all(|it| it.name != *output);
            if of == name && !outputs.contains(output) && is_new {
                let nearest = similar_names::nearest_slip(output, outputs.iter().copied());
                found.push(UndeclaredName {
                    what: format!("unsupported attribute: the state of {folder} has no output"),
                    name: (*output).to_owned(),
                    span: reference.span.clone(),
                    nearest: nearest.map(str::to_owned),
                });
            }
        }
    }
    found
}

/// What a module does not have.
struct UndeclaredName {
    /// What Terraform calls it, such as `undeclared input variable`.
    what: String,
    name: String,
    span: Span,
    /// What is there and is similarly named.
    nearest: Option<String>,
}

/// Reports each kind of fault of a module once: of many names, the first.
fn report_by_kind(found: Vec<UndeclaredName>, report: &mut Report) {
    const MOST: usize = 3;
    let mut by_kind: BTreeMap<String, Vec<UndeclaredName>> = BTreeMap::new();
    for fault in found {
        by_kind.entry(fault.what.clone()).or_default().push(fault);
    }
    for (what, faults) in by_kind {
        let (several, most) = (faults.len() > MOST, if faults.len() > MOST { 1 } else { MOST });
        let others = faults.len() - 1;
        for fault in faults.into_iter().take(most) {
            let more = if several { format!(", and {others} more") } else { String::new() };
            let mut diagnostic = RULE
                .diagnostic(format!("Terraform refuses the module: {what} {}{more}", fault.name))
                .at(fault.span, "here")
                .because("Terraform resolves all names of a module before it does anything");
            diagnostic.help.extend(fault.nearest.as_ref().map(|nearest| format!("there is {nearest}")));
            let finding = Finding::new(RULE.incident, diagnostic).likely();
            report.add(match fault.nearest {
                Some(nearest) => finding.with_spelling(fault.name, nearest),
                None => finding,
            });
        }
    }
}

/// What a folder of Terraform files has.
struct Module<'a> {
    blocks: Vec<&'a Block>,
    /// `var.name`, `local.name`, `aws_vpc.name`, `data.aws_vpc.name`, `module.name`.
    names: BTreeSet<String>,
    /// Whether all of it can be read, and nothing else adds to it.
    is_whole: bool,
    /// Whether it does something by itself: else its files may be there to be linked into other folders.
    acts: bool,
}

impl<'a> Module<'a> {
    fn all(files: &Files, terraform: &'a Terraform) -> BTreeMap<&'a str, Self> {
        let unread: BTreeSet<&str> =
            terraform.unreadable.iter().filter_map(|it| parent(&it.span.file)).collect();
        // What Terragrunt generates, and what is written as JSON, is not read here.
        let others: BTreeSet<&str> = files
            .ending(&["terragrunt.hcl", ".tf.json", ".tofu", ".tf.tmpl", ".tf.tpl", ".tf.j2"])
            .filter_map(|path| parent(path))
            .collect();
        let of = |(folder, mut blocks): (&'a str, Vec<&'a Block>)| {
            // These name what was there before, or is not there yet.
            blocks.retain(|block| !matches!(block.kind.as_str(), "moved" | "removed" | "import"));
            let names = blocks.iter().flat_map(|block| declared(block)).collect();
            let is_whole =
                !unread.contains(folder) && !others.contains(folder) && !placeholders::is_skeleton(folder);
            let acts =
                blocks.iter().any(|block| matches!(block.kind.as_str(), "resource" | "module" | "data"));
            (folder, Self { blocks, names, is_whole, acts })
        };
        terraform.modules().into_iter().map(of).collect()
    }

    /// What a reference names that the module does not have, as Terraform says it, and what is similarly
    /// named.
    fn missing_name(&self, reference: &Reference) -> Option<(&'static str, String, Option<String>)> {
        let steps: Vec<&str> = reference.path.iter().map(|step| step.trim()).collect();
        let (what, name) = match steps.as_slice() {
            ["var", name, ..] => ("reference to undeclared input variable", format!("var.{name}")),
            ["local", name, ..] => ("reference to undeclared local value", format!("local.{name}")),
            ["module", name, ..] => ("reference to undeclared module", format!("module.{name}")),
            ["data", kind, name, ..] if is_type(kind) || self.has_kind(&format!("data.{kind}")) => {
                ("reference to undeclared resource", format!("data.{kind}.{name}"))
            }
            [kind, name, ..] if is_type(kind) || self.has_kind(kind) || self.is_near_kind(kind, name) => {
                ("reference to undeclared resource", format!("{kind}.{name}"))
            }
            _ => return None,
        };
        // A module without any variable of its own gets them from a file that is not in Git.
        let is_kept_out =
            what.ends_with("variable") && !self.names.iter().any(|name| name.starts_with("var."));
        if self.names.contains(&name) || is_kept_out {
            return None;
        }
        let nearest =
            similar_names::nearest_slip(&name, self.names.iter().map(String::as_str)).map(str::to_owned);
        Some((what, name, nearest))
    }
}

impl Module<'_> {
    /// Texts that begin with the name of a variable or local value, as it stands: it is no reference there.
    fn quoted_names(&self, files: &Files, report: &mut Report) {
        let all = self.blocks.iter().filter(|block| !matches!(block.kind.as_str(), "variable" | "output"));
        let mut spans = Vec::new();
        all.for_each(|block| values(block, &mut spans));
        for span in spans {
            let Some(name) = quoted_name(files, &span).filter(|name| self.names.contains(name)) else {
                continue;
            };
            let diagnostic = RULE
                .diagnostic(format!("{name} between quotes is a text, and not the value"))
                .at(span, "taken as it stands")
                .because("in a text Terraform reads names within `${…}` alone")
                .help(format!("write ${{{name}}}, or leave out the quotes"));
            report.add(Finding::new(RULE.incident, diagnostic).likely());
        }
    }

    /// The first labels of the blocks of a kind.
    fn labels_of<'b>(&'b self, kind: &'b str) -> impl Iterator<Item = &'b str> {
        let blocks = self.blocks.iter().filter(move |block| block.kind == kind);
        blocks.filter_map(|block| block.labels.first().map(String::as_str))
    }

    /// Whether this module keeps its state where a `terraform_remote_state` reads one: what names it in the
    /// backend is the same plain text in both.
    fn keeps_state_of(&self, state: &Block) -> bool {
        /// What tells states of a backend apart.
        const NAMING: [&str; 6] = ["key", "prefix", "secret_suffix", "bucket", "path", "container_name"];
        let given = |name: &str| {
            let block = state.children("config").find_map(|it| it.str(name));
            block.or_else(|| state.get("config")?.get(name)?.as_str())
        };
        let (Some(kind), true) = (state.str("backend"), state.get("workspace").is_none()) else {
            return false;
        };
        let mut settings = self.blocks.iter().filter(|block| block.kind == "terraform");
        settings.any(|block| {
            block.children("backend").any(|backend| {
                let names = NAMING.iter().filter(|name| given(name).is_some() || backend.get(name).is_some());
                let mut same = 0;
                backend.labels.first().is_some_and(|it| it == kind)
                    && names.clone().all(|name| {
                        same += usize::from(!matches!(*name, "bucket" | "container_name"));
                        given(name).is_some() && given(name) == backend.str(name)
                    })
                    && same > 0
            })
        })
    }

    /// Attributes that are read of a resource with `count` or `for_each` as if it were one. Of a module that
    /// is seen only when the value is made.
    fn without_instance(&self) -> Vec<UndeclaredName> {
        let is_several = |block: &&&Block| block.get("count").or_else(|| block.get("for_each")).is_some();
        let is_static = |block: &&&Block| matches!(block.kind.as_str(), "resource" | "data");
        let several = self.blocks.iter().filter(is_static).filter(is_several);
        let several: BTreeSet<String> = several.filter_map(|block| declared(block).pop()).collect();
        let mut found: Vec<UndeclaredName> = Vec::new();
        for reference in self.blocks.iter().flat_map(|block| read(block)).filter(|it| !it.is_tried) {
            let own = if reference.path.first().is_some_and(|root| root == "data") { 3 } else { 2 };
            let is_indexed = reference.before_index < reference.path.len() && reference.before_index <= own;
            if reference.path.len() <= own || is_indexed {
                continue;
            }
            let steps: Vec<&str> = reference.path[..own].iter().map(|step| step.trim()).collect();
            let name = steps.join(".");
            if several.contains(&name) && found.iter().all(|it| it.name != name) {
                found.push(UndeclaredName {
                    what: "missing resource instance key: `count` or `for_each` is set on".to_owned(),
                    name,
                    span: reference.span.clone(),
                    nearest: None,
                });
            }
        }
        found
    }

    /// Bare words as indices, and whole resources within texts.
    fn odd_places(&self, files: &Files) -> Vec<UndeclaredName> {
        let mut found: Vec<UndeclaredName> = Vec::new();
        let all = self.blocks.iter().filter(|block| block.kind != "variable");
        for reference in all.flat_map(|block| block.references()) {
            let steps: Vec<&str> = reference.path.iter().map(|step| step.trim()).collect();
            let name = steps.join(".");
            let what = match steps.as_slice() {
                [word] if is_bare_index(files, reference, word) => {
                    "invalid reference: a name between quotes is meant by"
                }
                [_, _] | ["data", _, _]
                    if self.names.contains(&name)
                        && !matches!(steps[0], "var" | "local" | "module")
                        && reference.before_index == steps.len()
                        && is_part_of_text(files, reference) =>
                {
                    "invalid template interpolation value: no text is the whole of"
                }
                _ => continue,
            };
            if found.iter().all(|it| it.name != name) {
                found.push(UndeclaredName {
                    what: what.to_owned(),
                    name,
                    span: reference.span.clone(),
                    nearest: None,
                });
            }
        }
        found
    }

    /// Whether the module declares something of a type, which is then no name of a loop's element.
    fn has_kind(&self, kind: &str) -> bool {
        let is_of_kind = |name: &String| name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.'));
        !matches!(kind, "var" | "local" | "module" | "data") && self.names.iter().any(is_of_kind)
    }

    /// Whether a word is nearly the type of a resource that has this very name.
    fn is_near_kind(&self, kind: &str, name: &str) -> bool {
        let of_name = self.names.iter().filter_map(|known| known.strip_suffix(name)?.strip_suffix('.'));
        let kinds = of_name.filter(|known| known.contains('_') && !known.contains('.'));
        kind.contains('_') && similar_names::nearest_slip(kind, kinds).is_some()
    }
}

/// Whether a word is a type of resources, and not the name of a loop's element.
fn is_type(word: &str) -> bool {
    const PROVIDERS: [&str; 42] = [
        "aws_",
        "auth0_",
        "authentik_",
        "azuread_",
        "azurerm_",
        "civo_",
        "cloudflare_",
        "consul_",
        "datadog_",
        "digitalocean_",
        "equinix_",
        "exoscale_",
        "fastly_",
        "flux_",
        "github_",
        "gitlab_",
        "google_",
        "grafana_",
        "hcloud_",
        "helm_",
        "ionoscloud_",
        "keycloak_",
        "kubectl_",
        "kubernetes_",
        "linode_",
        "minio_",
        "mongodbatlas_",
        "nomad_",
        "null_",
        "oci_",
        "openstack_",
        "ovh_",
        "proxmox_",
        "random_",
        "scaleway_",
        "spacelift_",
        "tailscale_",
        "talos_",
        "tls_",
        "vault_",
        "vsphere_",
        "vultr_",
    ];
    PROVIDERS.iter().any(|provider| word.starts_with(provider))
}

/// What a block declares.
fn declared(block: &Block) -> Vec<String> {
    match (block.kind.as_str(), block.labels.as_slice()) {
        ("variable", [name]) => vec![format!("var.{name}")],
        ("module", [name]) => vec![format!("module.{name}")],
        ("resource" | "ephemeral", [kind, name]) => vec![format!("{kind}.{name}")],
        ("data", [kind, name]) => vec![format!("data.{kind}.{name}")],
        ("locals", []) => block.attributes.iter().map(|it| format!("local.{}", it.name.trim())).collect(),
        // A check may read what nothing else does.
        ("check", _) => block.blocks.iter().flat_map(declared).collect(),
        _ => Vec::new(),
    }
}

/// Looks at a call of a module of this repository: what it gives, and what is taken from it.
fn calls(
    files: &Files,
    modules: &BTreeMap<&str, Module<'_>>,
    (folder, caller): (&str, &Module<'_>),
    call: &Block,
) -> Vec<UndeclaredName> {
    const OF_TERRAFORM: [&str; 6] = ["source", "version", "count", "for_each", "providers", "depends_on"];
    let (Some(source), Some(name)) = (call.str("source"), call.labels.first()) else { return Vec::new() };
    let is_local = source.starts_with("./") || source.starts_with("../");
    let Some(path) = join(folder, source).ok().filter(|_| is_local) else { return Vec::new() };
    let Some(called) = modules.get(path.as_str()) else { return no_module(files, &path, call) };
    if !called.is_whole {
        return Vec::new();
    }
    let mut found = Vec::new();
    let of_kind = |kind: &'static str| called.blocks.iter().filter(move |block| block.kind == kind);
    let variables: BTreeMap<&str, &Block> =
        of_kind("variable").filter_map(|block| Some((block.labels.first()?.as_str(), *block))).collect();
    for argument in &call.attributes {
        let given = argument.name.trim();
        if !variables.contains_key(given) && !OF_TERRAFORM.contains(&given) {
            let nearest = similar_names::nearest_slip(given, variables.keys().copied()).map(str::to_owned);
            let what = format!("unsupported argument: module {name} does not take");
            found.push(UndeclaredName {
                what,
                name: given.to_owned(),
                span: argument.expression.span.clone(),
                nearest,
            });
        }
    }
    for (wanted, _) in variables.iter().filter(|(_, variable)| variable.get("default").is_none()) {
        if call.attributes.iter().all(|it| it.name.trim() != *wanted) {
            let what = format!("missing required argument: module {name} must be given");
            found.push(UndeclaredName {
                what,
                name: (*wanted).to_owned(),
                span: call.span.clone(),
                nearest: None,
            });
        }
    }
    let outputs: BTreeSet<&str> =
        of_kind("output").filter_map(|block| Some(block.labels.first()?.as_str())).collect();
    let mut seen = BTreeSet::new();
    // Whether a call has an output is seen when the value is made, which `try` catches; whether there is such
    // a call is not.
    for reference in caller.blocks.iter().flat_map(|block| read(block)).filter(|it| !it.is_tried) {
        let [root, of, output, ..] = reference.path.as_slice() else { continue };
        let output = output.trim();
        if root == "module" && of.trim() == name && !outputs.contains(output) && seen.insert(output) {
            let nearest = similar_names::nearest_slip(output, outputs.iter().copied()).map(str::to_owned);
            let what = format!("unsupported attribute: module {name} has no output");
            found.push(UndeclaredName {
                what,
                name: output.to_owned(),
                span: reference.span.clone(),
                nearest,
            });
        }
    }
    found
}

/// Where the values of a block stand, but for descriptions.
fn values(block: &Block, found: &mut Vec<Span>) {
    let own = block.attributes.iter().filter(|it| it.name.trim() != "description");
    found.extend(own.map(|it| it.expression.span.clone()));
    block.blocks.iter().for_each(|inner| values(inner, found));
}

/// The name of a variable or local value that a text begins with.
fn quoted_name(files: &Files, span: &Span) -> Option<String> {
    let text = files.text(&span.file)?;
    let line = text.lines().nth((span.start.line as usize).checked_sub(1)?)?;
    let start = (span.start.column as usize).saturating_sub(1);
    let value: String = line.chars().skip(start).collect();
    let value = value.strip_prefix('"')?;
    let is_name = value.starts_with("var.") || value.starts_with("local.");
    let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))?;
    is_name.then(|| value[..end].to_owned())
}

/// What stands before and behind a reference on its line.
fn around(files: &Files, reference: &Reference) -> Option<(String, String)> {
    let span = &reference.span;
    let text = files.text(&span.file)?;
    let line = text.lines().nth((span.start.line as usize).checked_sub(1)?)?;
    let (start, end) = (span.start.column as usize, span.end.column as usize);
    (span.start.line == span.end.line && start >= 1 && end > start).then(|| {
        let before = line.chars().take(start - 1).collect();
        (before, line.chars().skip(end - 1).collect())
    })
}

/// Whether a word stands alone between the brackets of an index, and no loop of the file calls anything so.
fn is_bare_index(files: &Files, reference: &Reference, word: &str) -> bool {
    // What Terraform itself knows, and what names no element.
    const KNOWN: [&str; 9] = ["each", "count", "self", "path", "terraform", "true", "false", "null", "var"];
    let Some((before, behind)) = around(files, reference) else { return false };
    let is_index = before.strip_suffix('[').is_some_and(|rest| {
        rest.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ']' | ')'))
    }) && behind.starts_with(']');
    if !is_index || KNOWN.contains(&word) {
        return false;
    }
    let text = files.text(&reference.span.file).unwrap_or_default();
    let mut words =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|it| !it.is_empty());
    // `for key, value in …`, `iterator = key`, `dynamic "key"`
    let mut last = ["", ""];
    let is_of_loop = words.any(|it| {
        let names_next = |before: &str| matches!(before, "for" | "iterator" | "dynamic");
        let is_named = it == word && (names_next(last[1]) || last[0] == "for");
        last = [last[1], it];
        is_named
    });
    !is_of_loop
}

/// Whether a reference is the whole of an interpolation that has text beside it.
fn is_part_of_text(files: &Files, reference: &Reference) -> bool {
    let Some((before, behind)) = around(files, reference) else { return false };
    let (Some(before), Some(behind)) = (before.strip_suffix("${"), behind.strip_prefix('}')) else {
        return false;
    };
    // An escaped one is text itself.
    let is_alone = before.ends_with('"') && behind.starts_with('"');
    !is_alone && !before.ends_with('$')
}

/// The references of a block whose values are read; order alone asks for none.
fn read(block: &Block) -> Vec<&Reference> {
    let own = block.attributes.iter().filter(|it| it.name.trim() != "depends_on");
    let own = own.flat_map(|it| it.expression.references.iter());
    own.chain(block.blocks.iter().flat_map(read)).collect()
}

/// A module whose folder is not there, though the folder above it is.
fn no_module(files: &Files, path: &str, call: &Block) -> Vec<UndeclaredName> {
    let above = parent(path).unwrap_or_default();
    if files.has_folder(path) || !(above.is_empty() || files.has_folder(above)) {
        return Vec::new();
    }
    let beside = files.tree().read_dir(above).unwrap_or_default();
    let names: Vec<String> = beside.into_iter().map(|entry| entry.name).collect();
    let last = path.rsplit('/').next().unwrap_or(path);
    let nearest = similar_names::nearest_slip(last, names.iter().map(String::as_str)).map(str::to_owned);
    let what = "unreadable module directory".to_owned();
    vec![UndeclaredName { what, name: path.to_owned(), span: call.span.clone(), nearest }]
}
