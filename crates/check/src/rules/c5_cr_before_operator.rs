//! # A custom resource in one sync with what installs its operator
//!
//! A Subscription of the Operator Lifecycle Manager installs an operator, which brings the definitions of its
//! kinds. An Application that holds a Subscription and resources of those kinds asks the API server about all
//! of them before it applies anything: the kinds are not known yet, the operation fails, and so the
//! Subscription is never applied either. `SkipDryRunOnMissingResource=true` leaves such a resource out until
//! its turn comes. So it is with a Provider of Crossplane beside its ProviderConfig, and with a HelmChart
//! that K3s installs.
//!
//! People see: `The Kubernetes API could not find operator.example.com/Widget for requested resource
//! shop/web. Make sure the "Widget" CRD is installed on the destination cluster.`, `one or more
//! synchronization tasks are not valid`.
//!
//! ## Bad
//! ```yaml
//! # one Application: Subscription loki-operator, and LokiStack logs
//! ```
//! ## Good
//! ```yaml
//! kind: LokiStack
//! metadata: {annotations: {argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true}}
//! ```
//! ## When to suppress
//! When the operator is there before the Application.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_schema::Catalog;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{chart_crds::Defining, dedup::Once, pods::text, sync_options},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-cr-before-operator",
    incident: "C5",
    severity: Severity::Warning,
    title: "a custom resource in one sync with what installs the operator that defines it",
    page: page!("c5_cr_before_operator.rs"),
    check,
};

/// Packages of widely used catalogues, with the groups that their operators define.
const PACKAGES: [(&str, &[&str]); 63] = [
    ("3scale-operator", &["apps.3scale.net"]),
    ("advanced-cluster-management", &["operator.open-cluster-management.io"]),
    ("amq-broker-rhel8", &["broker.amq.io"]),
    ("amq-streams", &["kafka.strimzi.io"]),
    ("ansible-automation-platform-operator", &["aap.ansible.com", "automationcontroller.ansible.com"]),
    ("authorino-operator", &["operator.authorino.kuadrant.io"]),
    ("cincinnati-operator", &["updateservice.operator.openshift.io"]),
    ("cloudnative-pg", &["postgresql.cnpg.io"]),
    ("cluster-logging", &["logging.openshift.io", "observability.openshift.io"]),
    ("cluster-observability-operator", &["monitoring.rhobs"]),
    ("compliance-operator", &["compliance.openshift.io"]),
    ("datagrid", &["infinispan.org"]),
    ("devspaces", &["org.eclipse.che"]),
    ("devworkspace-operator", &["workspace.devfile.io", "controller.devfile.io"]),
    ("elasticsearch-operator", &["logging.openshift.io"]),
    ("external-secrets-operator", &["external-secrets.io", "operator.external-secrets.io"]),
    ("file-integrity-operator", &["fileintegrity.openshift.io"]),
    ("gpu-operator-certified", &["nvidia.com"]),
    ("grafana-operator", &["grafana.integreatly.org", "integreatly.org"]),
    ("group-sync-operator", &["redhatcop.redhat.io"]),
    ("jaeger-product", &["jaegertracing.io"]),
    ("keycloak-operator", &["k8s.keycloak.org"]),
    ("kiali-ossm", &["kiali.io"]),
    ("kubernetes-nmstate-operator", &["nmstate.io"]),
    ("kubevirt-hyperconverged", &["hco.kubevirt.io"]),
    ("local-storage-operator", &["local.storage.openshift.io"]),
    ("loki-operator", &["loki.grafana.com"]),
    ("lvms-operator", &["lvm.topolvm.io"]),
    ("metallb-operator", &["metallb.io"]),
    ("mtv-operator", &["forklift.konveyor.io"]),
    ("multicluster-engine", &["multicluster.openshift.io"]),
    ("namespace-configuration-operator", &["redhatcop.redhat.io"]),
    ("nfd", &["nfd.openshift.io"]),
    ("node-healthcheck-operator", &["remediation.medik8s.io"]),
    ("ocs-operator", &["ocs.openshift.io", "noobaa.io"]),
    ("odf-operator", &["ocs.openshift.io", "odf.openshift.io", "noobaa.io"]),
    ("opendatahub-operator", &["datasciencecluster.opendatahub.io", "dscinitialization.opendatahub.io"]),
    ("openshift-cert-manager-operator", &["cert-manager.io", "acme.cert-manager.io"]),
    ("openshift-custom-metrics-autoscaler-operator", &["keda.sh"]),
    ("openshift-external-secrets-operator", &["external-secrets.io"]),
    ("openshift-pipelines-operator-rh", &["operator.tekton.dev"]),
    ("opentelemetry-product", &["opentelemetry.io"]),
    ("patch-operator", &["redhatcop.redhat.io"]),
    ("ptp-operator", &["ptp.openshift.io"]),
    ("quay-operator", &["quay.redhat.com"]),
    ("redhat-oadp-operator", &["oadp.openshift.io", "velero.io"]),
    ("rhacs-operator", &["platform.stackrox.io"]),
    ("rhbk-operator", &["k8s.keycloak.org"]),
    ("rhcl-operator", &["kuadrant.io"]),
    ("rhdh", &["rhdh.redhat.com"]),
    ("rhods-operator", &["datasciencecluster.opendatahub.io", "dscinitialization.opendatahub.io"]),
    ("rhsso-operator", &["keycloak.org"]),
    ("sailoperator", &["sailoperator.io"]),
    ("sealed-secrets-operator-helm", &["bitnami.com"]),
    ("self-node-remediation", &["self-node-remediation.medik8s.io"]),
    ("serverless-operator", &["operator.knative.dev"]),
    ("servicemeshoperator", &["maistra.io"]),
    ("servicemeshoperator3", &["sailoperator.io"]),
    ("sriov-network-operator", &["sriovnetwork.openshift.io"]),
    ("strimzi-kafka-operator", &["kafka.strimzi.io"]),
    ("tempo-product", &["tempo.grafana.com"]),
    ("vault-config-operator", &["redhatcop.redhat.io"]),
    ("vault-secrets-operator", &["secrets.hashicorp.com"]),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        let objects: Vec<&Object> = context.survey.objects_of(app.id).collect();
        for (subscription, brought) in objects.iter().filter_map(|it| Some((it, Brought::for_object(it)?))) {
            for object in objects.iter().filter(|it| brought.covers(it)) {
                if !is_refused(context, object) {
                    continue;
                }
                let kind = object.key.group_kind();
                let diagnostic = RULE
                    .diagnostic(format!(
                        "{} is synced with {}, which brings the definition of {kind} only later",
                        object.title(),
                        subscription.title()
                    ))
                    .at(context.survey.start(object), "this kind is not known yet")
                    .see(context.survey.start(subscription), "its operator is installed by this")
                    .because("the engine asks the API server about every object before it applies the first: the operation fails, and installs nothing")
                    .help("add the annotation `argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true`");
                // Each object of the kind wants the annotation: one of them is enough to know.
                let cause = format!("{}\n{kind}", context.survey.start(subscription));
                once.add_by(cause, RULE.finding(context, object, diagnostic).likely());
            }
        }
    }
    once.report(report);
}

/// What an object installs when its own controller has seen it.
enum Brought {
    /// An operator of a catalogue defines these groups.
    Groups(&'static [&'static str]),
    /// A provider of Crossplane defines the kinds of what it is for: `provider-aws-s3` those of AWS.
    Provider(String),
    /// A chart that a controller in the cluster installs is known for its definitions.
    Chart(&'static Defining),
}

impl Brought {
    fn for_object(object: &Object) -> Option<Self> {
        let spec = &object.value()["spec"];
        match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("operators.coreos.com", "Subscription") => {
                let package = text(spec, "name");
                PACKAGES.iter().find(|(name, _)| *name == package).map(|(_, groups)| Self::Groups(groups))
            }
            ("pkg.crossplane.io", "Provider") => {
                let package = text(spec, "package").split([':', '@']).next()?.rsplit('/').next()?;
                let of = package.strip_prefix("provider-")?;
                let of = of.strip_prefix("family-").unwrap_or(of).split('-').next()?;
                Some(Self::Provider(of.to_owned()))
            }
            ("helm.cattle.io", "HelmChart") => {
                let chart = text(spec, "chart").rsplit('/').next()?;
                let values = tiphys_yaml::from_yaml(text(spec, "valuesContent")).unwrap_or_default();
                Defining::find(chart).filter(|it| it.brings(&[values])).map(Self::Chart)
            }
            _ => None,
        }
    }

    fn covers(&self, object: &Object) -> bool {
        let (group, kind) = (object.key.group.as_str(), object.key.kind.as_str());
        match self {
            Self::Groups(groups) => groups.contains(&group),
            Self::Provider(of) => {
                (group.ends_with(".upbound.io") || group.ends_with(".crossplane.io"))
                    && group.split('.').any(|step| step == of)
            }
            Self::Chart(chart) => chart.defines(group, kind),
        }
    }
}

/// Whether the API server does not know an object's kind, and the engine does not pass over that.
fn is_refused(context: &Context<'_>, object: &Object) -> bool {
    let survey = context.survey;
    let is_defined = || {
        survey.objects.iter().any(|it| {
            it.key.kind == "CustomResourceDefinition"
                && it.value().str_at(&["spec", "group"]) == Some(&object.key.group)
        })
    };
    object.hooks.is_empty()
        && Catalog::latest().kind(&object.value().gvk()).is_none()
        && !sync_options::is_on(survey, object, "SkipDryRunOnMissingResource")
        && !is_defined()
}
