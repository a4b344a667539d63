//! Arguments of the Kubernetes provider's blocks that it does not know, and values that a release of Helm is
//! given twice.

use std::collections::BTreeMap;

use tiphys_graph::tools::terraform::Block;

use super::g4_terraform_refused::RULE;
use crate::{Context, Finding, Report, support::placeholders};

/// Blocks in a pod, and the arguments and blocks that they have (provider `hashicorp/kubernetes`, "Nested
/// Schema" of `kubernetes_deployment_v1`).
const BLOCKS: [(&str, &[&str]); 12] = [
    ("volume_mount", &["mount_path", "mount_propagation", "name", "read_only", "sub_path", "sub_path_expr"]),
    ("host_path", &["path", "type"]),
    ("empty_dir", &["medium", "size_limit"]),
    ("persistent_volume_claim", &["claim_name", "read_only"]),
    ("nfs", &["path", "read_only", "server"]),
    ("env", &["name", "value", "value_from"]),
    ("env_from", &["config_map_ref", "prefix", "secret_ref"]),
    ("secret_key_ref", &["key", "name", "optional"]),
    ("config_map_key_ref", &["key", "name", "optional"]),
    ("http_get", &["host", "http_header", "path", "port", "scheme"]),
    ("tcp_socket", &["host", "port"]),
    ("exec", &["command"]),
];
/// Resources that have a pod in them.
const WITH_PODS: [&str; 7] =
    ["cron_job", "daemonset", "daemon_set", "deployment", "job", "pod", "stateful_set"];

pub(super) fn check(context: &Context<'_>, report: &mut Report) {
    let terraform = &context.survey.tools().terraform;
    for block in terraform.blocks().filter(|it| !placeholders::is_skeleton(&it.span.file)) {
        if is_workload(block) {
            unknown_arguments(block, block, report);
        }
        if block.is_resource("helm_release") {
            set_twice(block, report);
        }
    }
}

fn is_workload(block: &Block) -> bool {
    let kind = block.labels.first().and_then(|it| it.strip_prefix("kubernetes_")).unwrap_or_default();
    let kind = kind.strip_suffix("_v1").unwrap_or(kind);
    block.kind == "resource" && WITH_PODS.contains(&kind)
}

/// Arguments that a block in a pod does not have.
fn unknown_arguments(resource: &Block, block: &Block, report: &mut Report) {
    for inner in &block.blocks {
        unknown_arguments(resource, inner, report);
        let Some((_, known)) = BLOCKS.iter().find(|(kind, _)| *kind == inner.kind) else { continue };
        for attribute in inner.attributes.iter().filter(|it| !known.contains(&it.name.trim())) {
            let name = attribute.name.trim();
            let diagnostic = RULE
                .diagnostic(format!(
                    "unsupported argument: {name:?} is not expected in {} of {}",
                    inner.kind,
                    resource.address()
                ))
                .at(attribute.expression.span.clone(), "the provider does not know this argument here")
                .because(format!("Terraform refuses the module; {} knows {}", inner.kind, known.join(", ")));
            report.add(Finding::new(RULE.incident, diagnostic));
        }
    }
}

/// Values that two `set` blocks of a release give.
fn set_twice(release: &Block, report: &mut Report) {
    let mut first: BTreeMap<&str, &Block> = BTreeMap::new();
    for set in release.children("set") {
        let (Some(name), Some(value)) = (set.str("name"), set.get("value")) else { continue };
        let Some(before) = first.insert(name, set) else { continue };
        if before.get("value").is_some_and(|it| it.value == value.value) {
            continue;
        }
        let mut diagnostic = RULE
            .diagnostic(format!("{} sets {name} twice", release.address()))
            .at(set.span.clone(), "this value is in force")
            .see(before.span.clone(), "this one is lost")
            .because("the later `set` wins: what the first one says, the chart never gets")
            .help("give the other value its own name");
        diagnostic.severity = tiphys_diag::Severity::Warning;
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}
