//! # A custom resource belongs to one that nothing makes
//!
//! Topics, users, connectors, backups and poolers name the cluster that they belong to; a scaler names its
//! credentials, a Workflow the template that it runs, an Ingress or Certificate its issuer. The controller
//! finds nothing of that name and leaves the resource alone, most often silently in its status.
//!
//! People see: nothing at all, or `Cluster shop/db not found`, `triggerauthentications.keda.sh "queue" not
//! found`, `workflowtemplates.argoproj.io "build" not found`, `clusterissuer.cert-manager.io "letsencrpyt"
//! not found`.
//!
//! The rule speaks only where the Applications bring resources of the kind that is named into the same
//! namespace, of issuers only where one is similarly named, or where all others name issuers that are in Git.
//!
//! ## Bad
//! ```yaml
//! kind: KafkaTopic
//! metadata: {labels: {strimzi.io/cluster: events-old}}   # the Kafka is called events
//! ```
//! ## Good
//! ```yaml
//! kind: KafkaTopic
//! metadata: {labels: {strimzi.io/cluster: events}}
//! ```
//! ## When to suppress
//! Where the other resource is made outside of the repository.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{cluster::Cluster, dedup::Once, field_paths::keys, misspelled_names::Misnamed, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-resource",
    incident: "E2",
    severity: Severity::Warning,
    title: "a custom resource belongs to one that nothing makes",
    page: page!("e2_no_resource.rs"),
    check,
};

/// A reference by name to a resource of the same group and namespace.
struct Reference {
    group: &'static str,
    kind: &'static str,
    path: &'static [&'static str],
    to: &'static str,
}

macro_rules! references {
    ($($group:literal $kind:literal $path:expr => $to:literal;)*) => {
        const ALL: &[Reference] = &[$(Reference { group: $group, kind: $kind, path: &$path, to: $to }),*];
    };
}

const CERT_MANAGER: &str = "cert-manager.io";
const STRIMZI: [&str; 3] = ["metadata", "labels", "strimzi.io/cluster"];
const CLUSTER: [&str; 3] = ["spec", "cluster", "name"];
const RABBITMQ: [&str; 3] = ["spec", "rabbitmqClusterReference", "name"];

references! {
    "argoproj.io" "CronWorkflow" ["spec", "workflowSpec", "workflowTemplateRef", "name"] => "WorkflowTemplate";
    "argoproj.io" "Workflow" ["spec", "workflowTemplateRef", "name"] => "WorkflowTemplate";
    "kafka.strimzi.io" "KafkaConnector" STRIMZI => "KafkaConnect";
    "kafka.strimzi.io" "KafkaNodePool" STRIMZI => "Kafka";
    "kafka.strimzi.io" "KafkaTopic" STRIMZI => "Kafka";
    "kafka.strimzi.io" "KafkaUser" STRIMZI => "Kafka";
    "postgresql.cnpg.io" "Backup" CLUSTER => "Cluster";
    "postgresql.cnpg.io" "Database" CLUSTER => "Cluster";
    "postgresql.cnpg.io" "Pooler" CLUSTER => "Cluster";
    "postgresql.cnpg.io" "ScheduledBackup" CLUSTER => "Cluster";
    "rabbitmq.com" "Binding" RABBITMQ => "RabbitmqCluster";
    "rabbitmq.com" "Exchange" RABBITMQ => "RabbitmqCluster";
    "rabbitmq.com" "Permission" RABBITMQ => "RabbitmqCluster";
    "rabbitmq.com" "Policy" RABBITMQ => "RabbitmqCluster";
    "rabbitmq.com" "Queue" RABBITMQ => "RabbitmqCluster";
    "rabbitmq.com" "User" RABBITMQ => "RabbitmqCluster";
    "rabbitmq.com" "Vhost" RABBITMQ => "RabbitmqCluster";
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for object in &cluster.objects {
            for (name, to, field) in references_of(object) {
                check_reference(context, cluster, object, name, to, field, &mut once);
            }
            for (name, to, field) in issuers(object) {
                issuer(context, cluster, object, (name, to), &field, &mut once);
            }
        }
    }
    once.report(report);
}

/// What an object names: the name, the kind that is meant, and the field.
fn references_of(object: &Object) -> Vec<(&str, &'static str, FieldPath)> {
    let (group, kind) = (object.key.group.as_str(), object.key.kind.as_str());
    let of_table = ALL.iter().filter(|it| it.group == group && it.kind == kind);
    let mut found: Vec<(&str, &'static str, FieldPath)> =
        of_table.filter_map(|it| Some((object.value().str_at(it.path)?, it.to, keys(it.path)))).collect();
    if group == "rabbitmq.com"
        && object.value().at(&["spec", "rabbitmqClusterReference", "namespace"]).is_some()
    {
        found.clear();
    }
    // A template of the whole cluster has another kind.
    if object.value().at(&["spec", "workflowTemplateRef", "clusterScope"]) == Some(&Value::Bool(true))
        || object.value().at(&["spec", "workflowSpec", "workflowTemplateRef", "clusterScope"])
            == Some(&Value::Bool(true))
    {
        found.clear();
    }
    if group == "keda.sh" {
        let triggers =
            object.value().at(&["spec", "triggers"]).and_then(Value::as_array).into_iter().flatten();
        for (at, trigger) in triggers.enumerate() {
            let reference = trigger.get("authenticationRef");
            let is_plain = reference
                .and_then(|it| it.str_at(&["kind"]))
                .is_none_or(|kind| kind == "TriggerAuthentication");
            if let Some(name) = reference.and_then(|it| it.str_at(&["name"])).filter(|_| is_plain) {
                let field = keys(&["spec", "triggers"]).index(at).key("authenticationRef").key("name");
                found.push((name, "TriggerAuthentication", field));
            }
        }
    }
    found
}

/// The issuers of cert-manager that an object names: the name, the kind, and the field.
fn issuers(object: &Object) -> Vec<(&str, &'static str, FieldPath)> {
    const ANNOTATIONS: [(&str, &str); 2] =
        [("cert-manager.io/cluster-issuer", "ClusterIssuer"), ("cert-manager.io/issuer", "Issuer")];
    let mut found = Vec::new();
    if matches!(object.key.kind.as_str(), "Ingress" | "Gateway") {
        let kind_elsewhere = object.value().annotation("cert-manager.io/issuer-group").is_some();
        for (key, kind) in ANNOTATIONS.into_iter().filter(|_| !kind_elsewhere) {
            let field = keys(&["metadata", "annotations", key]);
            found.extend(object.value().annotation(key).map(|name| (name, kind, field)));
        }
    }
    if object.key.group == CERT_MANAGER && object.key.kind == "Certificate" {
        let reference = &object.value()["spec"]["issuerRef"];
        let kind = match reference.str_at(&["kind"]).unwrap_or("Issuer") {
            "Issuer" => Some("Issuer"),
            "ClusterIssuer" => Some("ClusterIssuer"),
            _ => None,
        };
        let is_own = reference.str_at(&["group"]).is_none_or(|group| group == CERT_MANAGER);
        let name = reference.str_at(&["name"]).filter(|_| is_own);
        found.extend(name.zip(kind).map(|(name, kind)| (name, kind, keys(&["spec", "issuerRef", "name"]))));
    }
    found
}

/// An issuer that is not there, and one is that is similarly named.
fn issuer(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    (name, kind): (&str, &str),
    field: &FieldPath,
    once: &mut Once,
) {
    let namespace = if kind == "Issuer" { object.key.namespace.as_str() } else { "" };
    let all = || {
        let of_kind = |it: &&Object| it.key.group == CERT_MANAGER && it.key.kind == kind;
        context.survey.objects.iter().filter(of_kind)
    };
    if placeholders::is_in(name) || all().any(|it| it.key.name == name) {
        return;
    }
    let of_cluster = cluster.objects.iter().filter(|it| it.key.group == CERT_MANAGER && it.key.kind == kind);
    let mut beside = of_cluster.filter(|it| it.key.namespace == namespace);
    let Some(meant) =
        beside.find(|it| similar_names::nearest_slip(name, [it.key.name.as_str()].into_iter()).is_some())
    else {
        return only_one(context, cluster, object, (name, kind), field, once);
    };
    let misnamed = Misnamed { kind, name, path: field, meant };
    let why = "cert-manager finds no issuer of this name, and makes no certificate";
    once.add(name, misnamed.finding(&RULE, context, object, "nothing makes", why));
}

/// An issuer that one object alone names, and nothing else speaks of, while others name issuers that are in
/// Git.
fn only_one(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    (name, kind): (&str, &str),
    field: &FieldPath,
    once: &mut Once,
) {
    const LEAST: usize = 3;
    let issuers_here =
        || cluster.objects.iter().filter(|it| it.key.group == CERT_MANAGER && it.key.kind == kind);
    let named: Vec<(&&Object, &str)> = cluster
        .objects
        .iter()
        .flat_map(|it| issuers(it).into_iter().map(move |(name, _, _)| (it, name)))
        .filter(|(it, _)| it.id != object.id)
        .collect();
    let known = named.iter().filter(|(_, name)| issuers_here().any(|it| it.key.name == *name)).count();
    let is_alone = known >= LEAST && named.iter().all(|(_, other)| *other != name);
    let says = |text: &str| text.lines().filter(|line| line.contains(name)).count();
    let files = &context.survey.files;
    let mentions: usize = files.paths().filter_map(|path| files.text(path)).map(|text| says(&text)).sum();
    let Some(usual) = issuers_here().next().filter(|_| is_alone && mentions == 1) else { return };
    let diagnostic = RULE
        .diagnostic(format!("{} names {kind}/{name}, which nothing makes", object.title()))
        .at(context.survey.span(object, field), "the only one that names it")
        .see(
            context.survey.start(usual),
            format!("{known} others name issuers that are in Git, such as this one"),
        )
        .because("cert-manager finds no issuer of this name, and makes no certificate");
    once.add(name, RULE.finding(context, object, diagnostic).likely());
}

fn check_reference(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    name: &str,
    to: &str,
    field: FieldPath,
    once: &mut Once,
) {
    let (group, namespace) = (object.key.group.as_str(), object.key.namespace.as_str());
    if name.is_empty() || placeholders::is_in(name) || cluster.is_partly_hidden(namespace) {
        return;
    }
    let key = ResourceKey::new(group, to, namespace, name);
    let mut same = cluster.objects.iter().filter(|it| it.key.group == group && it.key.kind == to);
    let beside: Vec<&str> =
        same.clone().filter(|it| it.key.namespace == namespace).map(|it| it.key.name.as_str()).collect();
    // What the repository holds and no Application applies may be applied by hand.
    let may_be_there = context.survey.objects.iter().any(|it| {
        it.key.group == group && it.key.kind == to && it.key.name == name && it.environment.is_none()
    });
    if cluster.find(&key).is_some() || beside.is_empty() || may_be_there {
        return;
    }
    let elsewhere = same.find(|it| it.key.name == name);
    let nearest = similar_names::nearest_slip(name, beside.iter().copied()).filter(|_| elsewhere.is_none());
    let mut diagnostic = RULE
        .diagnostic(format!("{} names {to}/{name}, which nothing makes in {namespace}", object.title()))
        .at(context.survey.span(object, &field), format!("no {to} of this namespace has the name"))
        .because("its controller finds nothing that it belongs to, and leaves it alone");
    if let Some(elsewhere) = elsewhere {
        diagnostic =
            diagnostic.see(context.survey.start(elsewhere), format!("there is {}", elsewhere.title()));
    } else if nearest.is_none()
        && let [only] = beside[..]
    {
        diagnostic = diagnostic.help(format!("the only {to} in {namespace} is {only}"));
    }
    once.add(name, RULE.finding(context, object, diagnostic).likely().perhaps(name, nearest));
}
