//! # An autoscaler measures by a request that the pods do not have
//!
//! `Utilization` is a share of what the containers request. A HorizontalPodAutoscaler gets no value where one
//! container of the pods requests nothing of the resource, and does not scale; its Application stays Degraded
//! or Progressing.
//!
//! People see: `FailedGetResourceMetric: failed to get cpu utilization: missing request for cpu in container
//! web of Pod web-…`, `cpu: <unknown>/80%`, `invalid metrics (1 invalid out of 1)`.
//!
//! ## Bad
//! ```yaml
//! kind: HorizontalPodAutoscaler
//! spec: {metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}
//! # and a Deployment whose containers have no resources.requests.cpu
//! ```
//! ## Good
//! ```yaml
//! resources: {requests: {cpu: 100m}}
//! ```
//! ## When to suppress
//! Where a LimitRange or a webhook that is not in the repository gives the requests.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{self, Container, list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-request",
    incident: "E2",
    severity: Severity::Warning,
    title: "an autoscaler measures by a request that the pods do not have",
    page: page!("e2_no_request.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    // The namespaces in which something gives requests to containers that have none.
    let given: BTreeSet<&str> = survey
        .objects
        .iter()
        .filter(|it| it.key.kind == "LimitRange")
        .map(|it| it.key.namespace.as_str())
        .collect();
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|it| it.key.kind == "HorizontalPodAutoscaler") {
        if unrendered_files::is_from_unused_chart(survey, object)
            || given.contains(object.key.namespace.as_str())
        {
            continue;
        }
        let target = &object.value()["spec"]["scaleTargetRef"];
        let workload = survey.neighbours(object).find(|it| {
            it.key.kind == text(target, "kind")
                && it.key.name == text(target, "name")
                && it.key.namespace == object.key.namespace
        });
        let Some(workload) = workload.filter(|it| !unrendered_files::is_loose(survey, it)) else { continue };
        if is_given_some(context, workload) {
            continue;
        }
        for (resource, path) in measured(object.value()) {
            check_workload(context, object, workload, &resource, &path, &mut once);
        }
    }
    once.report(report);
}

/// Whether a policy, or an autoscaler of another kind, gives the pods of a workload requests that they do not
/// ask for.
fn is_given_some(context: &Context<'_>, workload: &Object) -> bool {
    context.survey.neighbours(workload).any(|it| match it.key.kind.as_str() {
        "VerticalPodAutoscaler" => {
            let target = &it.value()["spec"]["targetRef"];
            it.key.namespace == workload.key.namespace
                && text(target, "name") == workload.key.name
                && it.value().str_at(&["spec", "updatePolicy", "updateMode"]) != Some("Off")
        }
        "ClusterPolicy" | "Policy" | "MutatingPolicy" | "MutatingAdmissionPolicy" | "Assign" => {
            it.value().to_string().contains("requests")
        }
        _ => false,
    })
}

/// The resources of which an autoscaler wants a share, each with the field that says so.
fn measured(autoscaler: &Value) -> Vec<(String, FieldPath)> {
    let spec = &autoscaler["spec"];
    let old = keys(&["spec", "targetCPUUtilizationPercentage"]);
    if old.get(autoscaler).is_some() {
        return vec![("cpu".to_owned(), old)];
    }
    let of = |(at, metric): (usize, &Value)| {
        let resource = metric.get("resource").filter(|_| text(metric, "type") == "Resource")?;
        let is_share = resource.str_at(&["target", "type"]) == Some("Utilization")
            || resource.get("targetAverageUtilization").is_some();
        let path = keys(&["spec", "metrics"]).index(at).key("resource").key("name");
        is_share.then(|| (text(resource, "name").to_owned(), path))
    };
    list(spec, "metrics").iter().enumerate().filter_map(of).collect()
}

fn check_workload(
    context: &Context<'_>,
    object: &Object,
    workload: &Object,
    resource: &str,
    path: &FieldPath,
    once: &mut Once,
) {
    let Some(pod) = pods::pod_of(workload) else { return };
    // What is asked for the pod as a whole counts for all of it.
    if pod.spec().get("resources").is_some_and(|it| !it.is_null()) {
        return;
    }
    let requests = |container: &Container<'_>| {
        ["requests", "limits"]
            .iter()
            .any(|field| container.value.at(&["resources", field, resource]).is_some_and(|it| !it.is_null()))
    };
    // Init containers that go on running count, too; the others have ended when something is measured.
    let counts = |container: &Container<'_>| {
        !container.path.to_string().contains("initContainers")
            || text(container.value, "restartPolicy") == "Always"
    };
    let Some(container) = pod.containers().find(|it| counts(it) && !requests(it)) else { return };
    let what = format!(
        "failed to get {resource} utilization: missing request for {resource} in container {} of {}",
        container.name(),
        workload.title()
    );
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(context.survey.span(object, path), format!("{} measures by it", object.title()))
        .see(context.survey.span(workload, &container.path), "this container requests nothing of it")
        .because("a share of nothing cannot be told: the autoscaler leaves the number of pods as it is")
        .help(format!("give the container resources.requests.{resource}"));
    once.add(&what, RULE.finding(context, object, diagnostic).likely());
}
