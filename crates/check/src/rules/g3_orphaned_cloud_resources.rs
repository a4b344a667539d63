//! # Controllers make cloud resources that Terraform does not know
//!
//! An Ingress or a Service of type LoadBalancer makes a controller create load balancers, target groups and
//! security groups in the cloud. Terraform, which made the network, knows none of them: once the cluster is
//! gone, nobody deletes them, and the network cannot be deleted either.
//!
//! People see: `VPC has dependencies and cannot be deleted`, `DependencyViolation`.
//!
//! ## Bad
//! A script that runs `terraform destroy` and nothing before it.
//! ## Good
//! ```sh
//! kubectl delete ingress --all --all-namespaces --wait
//! kubectl delete svc --all-namespaces --field-selector spec.type=LoadBalancer --wait
//! terraform destroy
//! ```
//! ## When to suppress
//! Where the cluster is never taken down.

use std::collections::BTreeMap;

use tiphys_diag::{Severity, Span};
use tiphys_graph::{Object, Survey, tools::Action};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G3-orphaned-cloud-resources",
    incident: "G3",
    severity: Severity::Info,
    title: "controllers make cloud resources that Terraform does not know",
    page: page!("g3_orphaned_cloud_resources.rs"),
    check,
};

/// Resources that cannot be deleted while something is in them.
const NETWORKS: [&str; 3] = ["aws_vpc", "google_compute_network", "azurerm_virtual_network"];
/// Words of scripts that delete what controllers made.
const DELETIONS: [&str; 9] = [
    "delete-load-balancer",
    "delete ingress",
    "delete ing ",
    "delete svc",
    "delete service",
    "argocd app delete",
    "delete application",
    "delete ns",
    "delete namespace",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let Some(network) = network(survey) else { return };
    if deletes(survey) {
        return;
    }
    let mut left: BTreeMap<usize, Vec<&Object>> = BTreeMap::new();
    for object in survey.objects.iter().filter(|object| makes_resources(object)) {
        if let Some(environment) = object.environment {
            left.entry(environment.0).or_default().push(object);
        }
    }
    for objects in left.into_values() {
        let message = format!(
            "{} make{} load balancers that are left when Terraform deletes the network",
            if objects.len() == 1 { objects[0].title() } else { format!("{} objects", objects.len()) },
            if objects.len() == 1 { "s" } else { "" },
        );
        let mut diagnostic = RULE
            .diagnostic(message)
            .at(network.clone(), "this network cannot be deleted while they are in it");
        for object in objects.iter().take(5) {
            diagnostic =
                diagnostic.see(survey.span(object, &FieldPath::default().key("kind")), object.title());
        }
        let diagnostic = diagnostic
            .because("a controller in the cluster creates them, with their target groups and security groups; Terraform's state has none of them, and no script of the repository deletes the objects first")
            .help("delete these objects and wait, before `terraform destroy`");
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}

/// The network that Terraform makes.
fn network(survey: &Survey) -> Option<Span> {
    let terraform = &survey.tools().terraform;
    let resource = NETWORKS.iter().find_map(|kind| terraform.resources(kind).next());
    let module = || {
        terraform.blocks().find(|block| {
            block.kind == "module"
                && block
                    .str("source")
                    .is_some_and(|source| source.contains("/vpc/") || source.ends_with("/vpc"))
        })
    };
    resource.or_else(module).map(|block| block.span.clone())
}

/// Whether something in the repository deletes such objects or what was made for them.
fn deletes(survey: &Survey) -> bool {
    let by_writer = survey.tools().writers.iter().any(|writer| {
        writer.action == Action::Delete
            && writer.objects().iter().any(|key| {
                matches!(
                    key.kind.to_lowercase().as_str(),
                    "ingress" | "ing" | "svc" | "service" | "application" | "app"
                )
            })
    });
    let files = &survey.files;
    by_writer
        || files.ending(&[".sh", ".tf", ".yml", ".yaml", "Makefile", ".py"]).any(|path| {
            let is_script = !path.ends_with(".yaml") || path.starts_with(".github/");
            is_script && files.text(path).is_some_and(|text| DELETIONS.iter().any(|word| text.contains(word)))
        })
}

/// Whether a controller makes a load balancer of the cloud's for an object.
fn makes_resources(object: &Object) -> bool {
    let value = object.value();
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("", "Service") => value.str_at(&["spec", "type"]) == Some("LoadBalancer"),
        ("networking.k8s.io", "Ingress") => {
            let class = value
                .str_at(&["spec", "ingressClassName"])
                .or(value.annotation("kubernetes.io/ingress.class"));
            let annotations = value.at(&["metadata", "annotations"]).and_then(Value::as_object);
            let is_of_cloud = annotations
                .is_some_and(|all| all.keys().any(|key| key.starts_with("alb.ingress.kubernetes.io/")));
            is_of_cloud
                || class.is_some_and(|class| {
                    ["alb", "gce", "gce-internal", "azure-application-gateway"].contains(&class)
                })
        }
        _ => false,
    }
}
