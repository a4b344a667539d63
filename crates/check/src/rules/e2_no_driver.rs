//! # A storage class whose driver nothing installs
//!
//! A StorageClass names the driver that makes its volumes. Amazon's is no part of the cluster: since
//! Kubernetes 1.23 also the class of the old name, `kubernetes.io/aws-ebs`, goes to the CSI driver, which an
//! add-on or a chart brings. Without it every claim of the class stays Pending.
//!
//! People see: `waiting for a volume to be created, either by external provisioner "ebs.csi.aws.com" or
//! manually created by system administrator`.
//!
//! ## Bad
//! ```yaml
//! # Terraform makes the cluster, and lists no add-on aws-ebs-csi-driver
//! kind: StorageClass
//! provisioner: ebs.csi.aws.com
//! ```
//! ## Good
//! ```hcl
//! resource "aws_eks_addon" "ebs" {
//!   cluster_name = module.eks.cluster_name
//!   addon_name   = "aws-ebs-csi-driver"
//! }
//! ```
//! ## When to suppress
//! Where the driver is installed from another repository.

use tiphys_diag::{Severity, Span};
use tiphys_graph::Object;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{cloud_facts::is_example, dedup::Once, field_paths::keys},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-driver",
    incident: "E2",
    severity: Severity::Warning,
    title: "a storage class whose driver nothing installs",
    page: page!("e2_no_driver.rs"),
    check,
};

/// Drivers of Amazon: the provisioner, and words of which every file that installs it has one.
const DRIVERS: [(&[&str], &[&str]); 3] = [
    (&["ebs.csi.aws.com", "kubernetes.io/aws-ebs"], &["ebs-csi", "ebs_csi"]),
    (&["efs.csi.aws.com"], &["efs-csi", "efs_csi"]),
    (&["fsx.csi.aws.com"], &["fsx-csi", "fsx_csi"]),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let Some(maker) = survey.tools().terraform.blocks().find(|block| {
        let source = block.str("source").unwrap_or_default();
        block.is_resource("aws_eks_cluster")
            || block.kind == "module"
                && source.starts_with("terraform-aws-modules/eks/aws")
                && !source.contains("//")
    }) else {
        return;
    };
    // A cluster that Amazon runs whole has drivers of its own.
    const AUTOMATIC: [&str; 3] = ["compute_config", "auto_mode", "eks.amazonaws.com/compute-type"];
    if is_example(&maker.span.file) || says(context, &AUTOMATIC) {
        return;
    }
    let mut once = Once::default();
    for cluster in context.clusters() {
        for class in cluster.objects.iter().filter(|it| it.key.kind == "StorageClass") {
            let provisioner = class.value().str_at(&["provisioner"]).unwrap_or_default();
            let Some((_, words)) = DRIVERS.iter().find(|(names, _)| names.contains(&provisioner)) else {
                continue;
            };
            if !says(context, words) {
                add(context, class, provisioner, maker.span.clone(), &mut once);
            }
        }
    }
    once.report(report);
}

/// Whether any file has one of some words.
fn says(context: &Context<'_>, words: &[&str]) -> bool {
    context.survey.files.any_text(|text| words.iter().any(|word| text.contains(word)))
}

fn add(context: &Context<'_>, class: &Object, provisioner: &str, maker: Span, once: &mut Once) {
    let diagnostic = RULE
        .diagnostic(format!("{} is for the driver {provisioner}, which nothing installs", class.title()))
        .at(context.survey.span(class, &keys(&["provisioner"])), "no driver answers to this")
        .see(maker, "the cluster is made here, without the driver")
        .because("a claim of the class waits for the driver, and the pods with it")
        .help("add the driver's add-on to the cluster, or install its chart");
    once.add(provisioner, RULE.finding(context, class, diagnostic).likely());
}
