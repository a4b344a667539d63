//! # A policy asks for labels that an object does not have
//!
//! A policy of Kyverno that is enforced, or a constraint of Gatekeeper, refuses objects without the labels
//! that it asks for. The policy and what it refuses are often of two Applications: each is right by itself,
//! and the sync of the second one fails.
//!
//! People see: `admission webhook "validate.kyverno.svc-fail" denied the request: … validation error: label
//! team is required`, `[require-team] you must provide labels: {"team"}`.
//!
//! ## Bad
//! ```yaml
//! kind: ClusterPolicy
//! spec: {rules: [{match: {any: [{resources: {kinds: [Deployment]}}]}, validate: {failureAction: Enforce, pattern: {metadata: {labels: {team: "?*"}}}}}]}
//! ---
//! kind: Deployment
//! metadata: {name: web, labels: {app: web}}
//! ```
//! ## Good
//! ```yaml
//! metadata: {name: web, labels: {app: web, team: shop}}
//! ```
//! ## When to suppress
//! Where an exception that the repository does not show lets the object pass.

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, Survey};
use tiphys_model::glob;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{self, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-label-policy",
    incident: "C2",
    severity: Severity::Warning,
    title: "a policy asks for labels that an object does not have",
    page: page!("c2_label_policy.rs"),
    check,
};

/// Namespaces that engines of policies leave alone, or that are left alone by custom.
const LEFT_ALONE: [&str; 6] =
    ["kube-system", "kube-public", "kube-node-lease", "kyverno", "gatekeeper-system", "argocd"];

/// Labels that a policy asks for.
struct Demand<'a> {
    policy: &'a Object,
    field: FieldPath,
    kinds: Vec<&'a str>,
    namespaces: Vec<&'a str>,
    left_out: Vec<&'a str>,
    labels: Vec<(&'a str, &'a str)>,
    /// Whether it is about the pods of workloads, too.
    is_of_pods: bool,
}

/// An object that an enforced policy refuses for the labels that it lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelRefusal {
    /// What is refused.
    pub object: ResourceKey,
    /// The policy.
    pub policy: ResourceKey,
    /// The labels.
    pub missing: Vec<String>,
}

/// The objects of a repository that its enforced policies refuse for the labels that they lack.
pub fn label_refusals(survey: &Survey) -> Vec<LabelRefusal> {
    let mut found = Vec::new();
    // Nearly all repositories have no such policy, and need no clusters for that.
    if !survey.objects.iter().any(is_policy) {
        return found;
    }
    each_refusal(&Context::new(survey, None), |object, demand, (_, missing)| {
        found.push(LabelRefusal {
            object: object.key.clone(),
            policy: demand.policy.key.clone(),
            missing: missing.into_iter().map(str::to_owned).collect(),
        });
    });
    found
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    each_refusal(context, |object, demand, missing| add(context, object, demand, missing, &mut once));
    once.report(report);
}

fn each_refusal<'a>(
    context: &'a Context<'_>,
    mut take: impl FnMut(&'a Object, &Demand<'a>, (FieldPath, Vec<&'a str>)),
) {
    for cluster in context.clusters() {
        let demands: Vec<Demand<'_>> = cluster
            .objects
            .iter()
            .filter(|it| !gives_labels(cluster, it))
            .flat_map(|it| demands(it))
            .collect();
        for demand in &demands {
            for object in cluster.objects.iter().filter(|it| it.id != demand.policy.id) {
                if let Some(missing) = missing(object, demand) {
                    take(object, demand, missing);
                }
            }
        }
    }
}

fn is_policy(object: &Object) -> bool {
    matches!(object.key.group.as_str(), "kyverno.io" | "constraints.gatekeeper.sh")
}

/// Whether another policy of the cluster may add the labels, or make exceptions.
fn gives_labels(cluster: &Cluster<'_>, policy: &Object) -> bool {
    is_policy(policy)
        && cluster.objects.iter().any(|it| match it.key.kind.as_str() {
            "PolicyException" | "Assign" | "AssignMetadata" => true,
            "ClusterPolicy" | "Policy" => list(&it.value()["spec"], "rules")
                .iter()
                .any(|rule| rule.get("mutate").is_some_and(|it| it.to_string().contains("labels"))),
            _ => false,
        })
}

fn demands(policy: &Object) -> Vec<Demand<'_>> {
    match (policy.key.group.as_str(), policy.key.kind.as_str()) {
        ("kyverno.io", "ClusterPolicy" | "Policy") => of_kyverno(policy),
        ("constraints.gatekeeper.sh", "K8sRequiredLabels") => of_gatekeeper(policy).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    list(value, field).iter().filter_map(Value::as_str).collect()
}

fn of_kyverno(policy: &Object) -> Vec<Demand<'_>> {
    const CONTROLLERS: &str = "pod-policies.kyverno.io/autogen-controllers";
    let spec = &policy.value()["spec"];
    let general = text(spec, "validationFailureAction");
    let mut found = Vec::new();
    if !list(spec, "validationFailureActionOverrides").is_empty() {
        return found;
    }
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        let Some(validate) = rule.get("validate") else { continue };
        let action = validate.str_at(&["failureAction"]).unwrap_or(general);
        let is_plain = rule.get("preconditions").is_none() && rule.get("celPreconditions").is_none();
        let Some(filter) =
            resources(&rule["match"]).filter(|_| action.eq_ignore_ascii_case("enforce") && is_plain)
        else {
            continue;
        };
        let Some(left_out) = left_out(rule.get("exclude")) else { continue };
        let labels = validate.at(&["pattern", "metadata", "labels"]).and_then(Value::as_object);
        let labels: Vec<(&str, &str)> = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect();
        // Anchors and wildcards make a condition of a label.
        if labels.is_empty() || labels.iter().any(|(key, _)| key.contains(['(', '*', '?'])) {
            continue;
        }
        let kinds: Vec<&str> =
            texts(filter, "kinds").iter().map(|it| it.rsplit('/').next().unwrap_or(it)).collect();
        let is_of_pods = kinds.contains(&"Pod") && policy.value().annotation(CONTROLLERS) != Some("none");
        let mut namespaces = texts(filter, "namespaces");
        if policy.key.kind == "Policy" {
            namespaces = vec![policy.key.namespace.as_str()];
        }
        let field =
            keys(&["spec", "rules"]).index(at).key("validate").key("pattern").key("metadata").key("labels");
        found.push(Demand { policy, field, kinds, namespaces, left_out, labels, is_of_pods });
    }
    found
}

/// The one filter of a match, if it goes by kinds and namespaces alone.
fn resources(matching: &Value) -> Option<&Value> {
    let entry = match (list(matching, "any"), list(matching, "all")) {
        ([only], []) | ([], [only]) => only,
        ([], []) => matching,
        _ => return None,
    };
    let filter = entry.get("resources")?;
    let is_plain = |map: &Value, known: &[&str]| {
        map.as_object().is_some_and(|map| map.keys().all(|key| known.contains(&key.as_str())))
    };
    (is_plain(entry, &["resources"]) && is_plain(filter, &["kinds", "namespaces"])).then_some(filter)
}

/// The namespaces that a rule leaves out; `None` if it leaves out by more.
fn left_out(exclude: Option<&Value>) -> Option<Vec<&str>> {
    let Some(exclude) = exclude else { return Some(Vec::new()) };
    let entries: Vec<&Value> = match list(exclude, "any") {
        [] => vec![exclude],
        many => many.iter().collect(),
    };
    let mut found = Vec::new();
    for entry in entries {
        let filter = entry.get("resources")?;
        let is_plain = filter.as_object()?.keys().all(|key| key == "namespaces");
        found.extend(texts(filter, "namespaces"));
        if !is_plain {
            return None;
        }
    }
    Some(found)
}

fn of_gatekeeper(policy: &Object) -> Option<Demand<'_>> {
    let spec = &policy.value()["spec"];
    let matching = &spec["match"];
    let known = ["kinds", "namespaces", "excludedNamespaces"];
    let is_plain =
        matching.as_object().is_some_and(|map| map.keys().all(|key| known.contains(&key.as_str())));
    if !matches!(text(spec, "enforcementAction"), "" | "deny") || !is_plain {
        return None;
    }
    let labels: Vec<(&str, &str)> = spec
        .at(&["parameters", "labels"])
        .and_then(Value::as_array)?
        .iter()
        .filter_map(|it| it.as_str().or_else(|| it.str_at(&["key"])))
        .map(|key| (key, "*"))
        .collect();
    let kinds = list(matching, "kinds").iter().flat_map(|it| texts(it, "kinds")).collect();
    let (namespaces, left_out) = (texts(matching, "namespaces"), texts(matching, "excludedNamespaces"));
    let field = keys(&["spec", "parameters", "labels"]);
    Some(Demand { policy, field, kinds, namespaces, left_out, labels, is_of_pods: false })
}

/// The labels that a policy asks for and an object does not have, and where they belong.
fn missing<'d>(object: &Object, demand: &Demand<'d>) -> Option<(FieldPath, Vec<&'d str>)> {
    let covers = |patterns: &[&str]| patterns.iter().any(|it| glob::matches(it, &object.key.namespace));
    let is_left_alone =
        LEFT_ALONE.contains(&object.key.namespace.as_str()) || LEFT_ALONE.contains(&object.key.name.as_str());
    if is_left_alone
        || covers(&demand.left_out)
        || !(demand.namespaces.is_empty() || covers(&demand.namespaces))
    {
        return None;
    }
    let own = keys(&["metadata"]);
    let pod = pods::pod_of(object).filter(|_| demand.is_of_pods);
    let place = match pod {
        Some(pod) => pod.path.key("metadata"),
        None if demand.kinds.contains(&object.key.kind.as_str()) => own,
        None => return None,
    };
    let labels = place.get(object.value()).and_then(|it| it.get("labels")).unwrap_or(&Value::Null);
    if placeholders::has_placeholder(labels) {
        return None;
    }
    let lacks = |(key, pattern): &(&'d str, &str)| {
        let value = labels.get(key).and_then(Value::as_str);
        match *pattern {
            "?*" => value.is_none_or(str::is_empty),
            "*" => value.is_none(),
            plain if !plain.contains(['?', '*', '|', '!', '>', '<', '&', '{']) => value != Some(plain),
            _ => value.is_none(),
        }
    };
    let missing: Vec<&str> = demand.labels.iter().filter(|it| lacks(it)).map(|(key, _)| *key).collect();
    (!missing.is_empty()).then(|| (place.key("labels"), missing))
}

fn add(
    context: &Context<'_>,
    object: &Object,
    demand: &Demand<'_>,
    (place, missing): (FieldPath, Vec<&str>),
    once: &mut Once,
) {
    let policy = demand.policy;
    let shown = missing.join(", ");
    let diagnostic = RULE
        .diagnostic(format!("{} has not the label {shown} that {} asks for", object.title(), policy.title()))
        .at(context.survey.span(object, &place), "is missing here")
        .see(context.survey.span(policy, &demand.field), "asked for here, and enforced")
        .because("admission refuses what breaks an enforced policy, and the sync fails at this object")
        .help(format!("add {shown}, or except the Application from the policy"));
    let app = context.survey.app_of(object).map(App::name).unwrap_or_default();
    once.add_by(
        format!("{app} {} {shown}", policy.key.name),
        RULE.finding(context, object, diagnostic).likely(),
    );
}
