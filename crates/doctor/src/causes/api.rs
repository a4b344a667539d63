//! The API: rights, kinds that are not installed, conversion, aggregated APIs, overload.

use tiphys_cause::{Cause, Failure, Forbidden, Refusal, refusal};
use tiphys_value::{ObjectExt as _, Value, json};

use crate::{
    Object,
    calls::Caller,
    cluster::{
        condition, condition_text, items, pods,
        rights::{Answer, Request, WatchGap},
    },
    finding::Finding,
    log_evidence::{Fact, LogFact},
    search_context::{Ill, Look},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found = aggregated(look);
    found.extend(unreadable(look));
    found.extend(ready_but_forbidden(look));
    found.extend(look.ill.iter().filter_map(|ill| unsynced(look, ill)));
    found.extend(definitions(look));
    found
}

/// The role that lacks what a program asks for, in its log.
pub(crate) fn forbidden_fault(
    look: &Look<'_>,
    caller: &Caller<'_>,
    forbidden: &Forbidden,
    source: &str,
) -> Option<Finding> {
    let finding = rights_fault(look, &caller.workload, forbidden)?;
    Some(caller.suffers(finding.evidence(source, &forbidden.line), "is not allowed to do its work"))
}

/// A change of a role that lets a request pass.
fn with_right(role: &Value, forbidden: &Forbidden) -> Value {
    let rule = if forbidden.resource.starts_with('/') {
        json!({"nonResourceURLs": [forbidden.resource], "verbs": [forbidden.verb]})
    } else {
        json!({"apiGroups": [forbidden.group], "resources": [forbidden.resource], "verbs": [forbidden.verb]})
    };
    let rules: Vec<Value> = items(role, &["rules"]).cloned().chain([rule]).collect();
    json!({"rules": rules})
}

/// The role that lacks a right; `None` if the roles allow it by now.
pub(crate) fn rights_fault(look: &Look<'_>, asker: &Object, forbidden: &Forbidden) -> Option<Finding> {
    let request = Request {
        user: &forbidden.user,
        verb: &forbidden.verb,
        resource: &forbidden.resource,
        group: &forbidden.group,
        namespace: forbidden.namespace.as_deref(),
    };
    let scope = forbidden
        .namespace
        .as_ref()
        .map_or_else(|| "in the whole cluster".to_owned(), |namespace| format!("in namespace {namespace}"));
    let group = if forbidden.group.is_empty() { String::new() } else { format!(".{}", forbidden.group) };
    let what = format!("{} {}{group} {scope}", forbidden.verb, forbidden.resource);
    let check = format!(
        "kubectl auth can-i {} {}{group} --as={}",
        forbidden.verb, forbidden.resource, forbidden.user
    );
    let new = |object: Object, confidence, summary: String| {
        Finding::new(Cause::ApiRbac, object, confidence, summary)
    };
    let finding = match look.cluster.rights(&request) {
        Answer::Allowed => return None,
        Answer::Lacking { role, binding } => {
            new(role.clone(), 0.95, format!("{role} does not let {asker} {what}"))
                .field("rules")
                .evidence(binding.to_string(), format!("binds {} to {role}", forbidden.user))
                .evidence(
                    role.to_string(),
                    look.cluster
                        .live(&role)
                        .and_then(|role| role.get("rules"))
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                )
                .remedy(
                    format!("Add the verb {} on {} to {role}.", forbidden.verb, forbidden.resource),
                    &[check],
                )
                .change(look.cluster.live(&role).map(|role| with_right(role, forbidden)))
        }
        Answer::RoleAbsent { role, binding } => new(
            role.clone(),
            0.93,
            format!("{binding} binds {role}, which does not exist: {asker} may not {what}"),
        )
        .evidence(binding.to_string(), format!("roleRef: {role}"))
        .remedy(format!("Make {role}, or correct {binding}."), &[check]),
        Answer::OtherScope { role, binding } => new(
            binding.clone(),
            0.92,
            format!("{binding} gives {role} in its own namespace only: {asker} may not {what}"),
        )
        .evidence(role.to_string(), "its rules would allow it")
        .remedy("Bind the role where it is needed, or with a ClusterRoleBinding.", &[check]),
        Answer::Unbound => {
            let object = forbidden.service_account().map_or_else(
                || asker.clone(),
                |(namespace, name)| Object::new("ServiceAccount", namespace, name),
            );
            new(object.clone(), 0.9, format!("no role is bound to {object}: {asker} may not {what}"))
                .evidence(object.to_string(), "no binding names it")
                .remedy("Bind a role to it.", &[check])
        }
        Answer::Unknown => {
            let object = forbidden.service_account().map_or_else(
                || asker.clone(),
                |(namespace, name)| Object::new("ServiceAccount", namespace, name),
            );
            // Which role should give it is told by roles and bindings, and they were not saved.
            new(object, 0.45, format!("{asker} may not {what}"))
                .remedy("Add the right to a role that is bound to it.", &[check])
        }
    };
    Some(finding)
}

/// A controller that waits without effect for what it watches, and whose roles do not let it watch.
fn unsynced(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let tells_more = |fact: &LogFact| match &fact.fact {
        Fact::Forbidden(_) | Fact::Refused(_) => true,
        Fact::Call(call) => !call.targets.is_empty(),
        _ => false,
    };
    if ill.facts.iter().any(tells_more) {
        return None;
    }
    let (source, line) = ill.pods.iter().find_map(|pod| {
        look.cluster.logs(pod.namespace(), pod.name()).into_iter().find_map(|log| {
            let line = log.last_lines().find(|line| tiphys_cause::caches_unsynced(line))?;
            Some((log.source(), line.to_owned()))
        })
    })?;
    let account = ill.spec().str_at(&["serviceAccountName"]).unwrap_or("default");
    let account = Object::new("ServiceAccount", ill.namespace(), account);
    let user = format!("system:serviceaccount:{}:{}", account.namespace, account.name);
    let workload = &ill.workload;
    let (gap, is_complete) = look.cluster.watch_gap(&user)?;
    let (object, summary, remedy) = match gap {
        WatchGap::NoWatch { role, resources } => (
            role.clone(),
            format!("{role} lets {workload} list {resources}, and not watch them"),
            format!("Add the verb watch on {resources} to {role}."),
        ),
        WatchGap::OneNamespace { role, binding } => (
            binding.clone(),
            format!("{binding} gives {role} in its own namespace only, and {workload} watches more"),
            format!("Bind a ClusterRole, or let {workload} watch one namespace."),
        ),
        WatchGap::Unbound => (
            account.clone(),
            format!("no role is bound to {account}, under which {workload} runs"),
            "Bind a role to it, or let the workload run under the account that has one.".to_owned(),
        ),
    };
    let finding = Finding::new(Cause::ApiRbac, object, 0.75, summary)
        .evidence(source, line)
        .since(ill.since)
        .remedy(remedy, &[format!("kubectl auth can-i --list --as={user}")])
        .suffers(workload.clone(), "waits in vain for what it watches");
    let finding = ill
        .pods
        .iter()
        .fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "does not start"));
    Some(if is_complete { finding } else { Finding { confidence: 0.46, ..finding } })
}

/// Programs that are ready and may not do their work, while what they should care for is red.
fn ready_but_forbidden(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (pod, facts) in look.green() {
        for fact in facts {
            let Fact::Forbidden(forbidden) = &fact.fact else { continue };
            let base = forbidden.resource.split('/').next().unwrap_or_default();
            let is_missed = look.red.keys().any(|object| {
                let kind = object.kind.to_ascii_lowercase();
                base == format!("{kind}s")
                    || base == format!("{kind}es")
                    || kind.strip_suffix('y').is_some_and(|stem| base == format!("{stem}ies"))
            });
            let workload = look.cluster.workload(pod);
            let mut served: Vec<Object> = look
                .red
                .keys()
                .filter(|object| crate::causes::operator::is_cared_for_by(look, object, &workload))
                .cloned()
                .collect();
            // Resources may have no word for it; what should come of them is missed where they are.
            if let Some(namespace) = forbidden.namespace.as_ref().filter(|_| !is_missed && served.is_empty())
                && look.red.keys().any(|red| red.namespace == *namespace)
            {
                let here = look.cluster.case.objects.iter().filter(|it| it.namespace() == namespace);
                let cared = here.map(Object::from_live);
                served
                    .extend(cared.filter(|it| crate::causes::operator::is_cared_for_by(look, it, &workload)));
            }
            if forbidden.namespace.is_none() && !is_missed && served.is_empty() {
                served = crate::causes::operator::neglected_by(look, &workload);
            }
            if super::autoscalers::is_autoscaler(&workload) {
                served.extend(without_node(look));
            }
            let refused = refused_logins(look, pod, forbidden);
            let is_alone = !is_missed && served.is_empty() && refused.is_empty();
            if is_alone && !writes_in_vain(forbidden, &fact.line) && !cannot_lead(forbidden, &fact.line) {
                continue;
            }
            if let Some(finding) = rights_fault(look, &workload, forbidden) {
                // Nobody else suffers: what it could not write is all that is missed.
                let most = if is_alone { 0.6 } else { 1.0 };
                let finding = Finding { confidence: finding.confidence.min(most), ..finding };
                let finding = finding
                    .evidence(fact.source.clone(), fact.line.clone())
                    .suffers(workload.clone(), "is not allowed to do its work");
                let finding = refused
                    .into_iter()
                    .fold(finding, |finding, caller| finding.suffers(caller, "its logins are refused"));
                found.push(
                    served
                        .into_iter()
                        .fold(finding, |finding, object| finding.suffers(object, "is not cared for")),
                );
            }
        }
    }
    found
}

/// The workloads whose pods find no node.
fn without_node<'a>(look: &'a Look<'_>) -> impl Iterator<Item = Object> + use<'a> {
    let open = look.ill.iter().filter(|ill| ill.pods.iter().any(|pod| pods::unscheduled(pod).is_some()));
    open.map(|ill| ill.workload.clone())
}

/// Whether a program that has to lead before it works cannot take its lease: it does nothing at all.
fn cannot_lead(forbidden: &Forbidden, line: &str) -> bool {
    forbidden.resource == "leases" && line.to_ascii_lowercase().contains("leaderelection")
}

/// The red callers of a program that may not have their tokens reviewed: their logins are refused.
fn refused_logins(look: &Look<'_>, pod: &Value, forbidden: &Forbidden) -> Vec<Object> {
    const REVIEWS: &[&str] = &["tokenreviews", "subjectaccessreviews"];
    if !REVIEWS.contains(&forbidden.resource.as_str()) {
        return Vec::new();
    }
    let services = look.cluster.all("Service").iter();
    let own = services
        .filter(|service| look.cluster.pods_of(service).iter().any(|it| std::ptr::eq(*it, pod)))
        .map(|service| Object::from_live(service));
    let callers = own.flat_map(|service| look.callers_of(&service).to_vec());
    callers.filter(|caller| look.is_red(caller)).collect()
}

/// Whether a program says that it failed at writing what is its work, and not at what it can do without.
fn writes_in_vain(forbidden: &Forbidden, line: &str) -> bool {
    const OPTIONAL: &[&str] = &["events", "leases", "subjectaccessreviews", "tokenreviews"];
    let is_write = matches!(forbidden.verb.as_str(), "create" | "update" | "patch" | "delete");
    let low = line.to_ascii_lowercase();
    is_write
        && !OPTIONAL.contains(&forbidden.resource.as_str())
        && low.contains("fail")
        && low.contains("error")
}

/// Aggregated APIs that do not answer.
fn aggregated(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for live in look.cluster.all("APIService") {
        let object = Object::from_live(live);
        let Some(available) =
            condition(live, "Available").filter(|it| it.str_at(&["status"]) == Some("False"))
        else {
            continue;
        };
        let reference = |key| live.str_at(&["spec", "service", key]).unwrap_or_default();
        let service = Object::new("Service", reference("namespace"), reference("name"));
        let is_metrics = object.name.ends_with("metrics.k8s.io");
        let scalers: Vec<&Object> =
            look.red.keys().filter(|it| it.kind == "HorizontalPodAutoscaler").collect();
        let is_expired = Failure::read(&condition_text(available)) == Some(Failure::Expired);
        let cause = if is_expired {
            Cause::ControlCertificateExpired
        } else if is_metrics && !scalers.is_empty() {
            Cause::ScaleMetricsDown
        } else {
            Cause::ApiAggregatedDown
        };
        let mut finding = Finding::new(
            cause,
            object.clone(),
            0.9,
            if is_expired {
                format!("the server of the aggregated API {} shows an expired certificate", object.name)
            } else {
                format!("the aggregated API {} does not answer", object.name)
            },
        )
        .evidence(object.to_string(), condition_text(available))
        .since(crate::cluster::time(available, &["lastTransitionTime"]))
        .remedy(
            format!("Bring {service} back, or delete the APIService if its server is gone for good."),
            &[format!("kubectl get apiservice {}", object.name)],
        );
        let agents = super::closed_ways::tunnel_agents(look, &condition_text(available));
        finding = agents.into_iter().fold(finding, Finding::below);
        if let Some(live) = look.cluster.live(&service) {
            finding = finding.below(service.clone());
            // Why its server is ill is the cause; while that is not known, little is.
            if look.is_ill_behind(live) {
                finding.confidence = 0.6;
            }
            if let Some(below) = crate::calls::empty_service(look.cluster, live) {
                finding = below.suffers(object.clone(), "does not answer");
            } else if let Some(below) = closed_way(look, live, available, &object) {
                finding = below;
            }
        } else if look.cluster.knows_services() {
            finding = finding.evidence(service.to_string(), "it does not exist");
        } else if available.str_at(&["reason"]) != Some("ServiceNotFound") && look.cluster.has_kind("Pod") {
            // Who serves it is told by its Service, which was not saved.
            finding = finding.not_known();
        }
        for object in scalers.into_iter().filter(|_| is_metrics) {
            finding = finding.suffers(object.clone(), "has no metrics");
        }
        found.push(finding);
    }
    found
}

/// The policy that keeps the API server from the ready pods of an aggregated API that does not answer.
fn closed_way(look: &Look<'_>, service: &Value, available: &Value, object: &Object) -> Option<Finding> {
    let failure = Failure::read(&condition_text(available));
    if !matches!(failure, Some(Failure::Timeout | Failure::Unreachable)) {
        return None;
    }
    let ready = look.cluster.pods_of(service).into_iter().find(|pod| crate::cluster::pods::is_ready(pod))?;
    let number = super::closed_ways::port_of_pod(ready, items(service, &["spec", "ports"]).next());
    super::closed_ways::closed_to_api_server(look, ready, number, object)
}

/// A kind whose objects cannot be converted.
pub(crate) fn conversion(look: &Look<'_>, read: &Refusal) -> Finding {
    let kind = read.by.split("Kind=").nth(1).unwrap_or_default();
    let group = read.by.split('/').next().unwrap_or_default();
    let live = look.cluster.all("CustomResourceDefinition").iter().find(|it| {
        it.str_at(&["spec", "names", "kind"]) == Some(kind)
            && (group.is_empty() || it.str_at(&["spec", "group"]) == Some(group))
    });
    let object = live.map_or_else(
        || Object::new("CustomResourceDefinition", "", &definition_name(kind, group)),
        |live| Object::from_live(live),
    );
    let (what, remedy) = match read.failure {
        Some(Failure::Untrusted) => (
            "is not trusted",
            "Write the CA that signed the webhook's certificate into spec.conversion.webhook.clientConfig.caBundle, or let the injector do it.",
        ),
        Some(Failure::Expired) => {
            ("shows an expired certificate", "Renew the webhook's certificate and restart its pods.")
        }
        _ => ("does not answer", "Bring the webhook's Service back."),
    };
    let finding = Finding::new(
        Cause::ApiConversionWebhook,
        object.clone(),
        0.9,
        format!("the conversion webhook of {} {what}: no object of the kind can be read", object.name),
    )
    .field("spec.conversion.webhook")
    .remedy(remedy, &[]);
    // Why it does not answer is told by its Service and its pods.
    let is_seen = ["Service", "Pod"].iter().all(|kind| look.cluster.has_kind(kind));
    let finding = if is_seen { finding } else { finding.not_known() };
    match &read.service {
        Some((namespace, name)) if !namespace.is_empty() => {
            let service = Object::new("Service", namespace, name);
            match look.cluster.live(&service).and_then(|live| crate::calls::empty_service(look.cluster, live))
            {
                Some(below) => below.suffers(object, "cannot be converted"),
                None => finding.below(service),
            }
        }
        _ => finding,
    }
}

/// The usual name of a definition.
fn definition_name(kind: &str, group: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    // Constraints have no plural.
    if group == "constraints.gatekeeper.sh" {
        return format!("{kind}.{group}");
    }
    let plural = match kind.strip_suffix('y') {
        Some(stem) if !kind.ends_with("ay") && !kind.ends_with("ey") => format!("{stem}ies"),
        _ if kind.ends_with('s') || kind.ends_with('x') => format!("{kind}es"),
        _ => format!("{kind}s"),
    };
    if group.is_empty() { plural } else { format!("{plural}.{group}") }
}

/// Groups of Kubernetes itself: versions of their kinds come and go with the API server, and no definition
/// brings them back.
fn is_built_in(group: &str) -> bool {
    const OF_OTHERS: &[&str] = &["gateway.networking.k8s.io", "snapshot.storage.k8s.io", "metrics.k8s.io"];
    let is_own = !group.contains('.') || group.ends_with(".k8s.io");
    !group.is_empty() && is_own && !OF_OTHERS.contains(&group) && !group.contains("x-k8s.io")
}

/// A kind that is not installed, or a version of it that is not served.
pub(crate) fn crd_missing(writer: &Object, read: &Refusal) -> Finding {
    let (kind, version) = read.subject.split_once(' ').unwrap_or((&read.subject, ""));
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    if kind.is_empty() {
        return Finding::new(
            Cause::ApiCrdMissing,
            writer.clone(),
            0.85,
            format!("{writer} uses a kind that is not installed"),
        )
        .remedy("Install its CustomResourceDefinition first.", &[]);
    }
    // What is written by its plural is told as the definition is called: PLURAL.GROUP.
    if kind.contains('.') && group.is_empty() {
        let object = Object::new("CustomResourceDefinition", "", kind);
        let summary = format!("the resource {kind} is not served, and {writer} uses it");
        let remedy = format!("Install the CustomResourceDefinition {kind} before what uses it.");
        return Finding::new(Cause::ApiCrdMissing, object, 0.9, summary)
            .remedy(remedy, &["kubectl get crd".to_owned()]);
    }
    if is_built_in(group) {
        let summary =
            format!("the API server does not serve {kind} of {group}/{version}, which {writer} uses");
        return Finding::new(Cause::ApiCrdMissing, writer.clone(), 0.92, summary).remedy(
            format!("Use a version of {kind} that the API server serves."),
            &["kubectl api-resources".to_owned(), format!("kubectl explain {}", kind.to_lowercase())],
        );
    }
    let object = Object::new("CustomResourceDefinition", "", &definition_name(kind, group));
    Finding::new(
        Cause::ApiCrdMissing,
        object,
        0.92,
        format!(
            "the kind {kind} ({}) is not installed, and {writer} uses it",
            format!("{group}/{version}").trim_matches('/')
        ),
    )
    .remedy(
        format!("Install the CustomResourceDefinition of {kind} before what uses it."),
        &["kubectl get crd".to_owned()],
    )
}

/// Requests that failed while the state was saved.
fn unreadable(look: &Look<'_>) -> Vec<Finding> {
    let told = look.cluster.case.unreadable.iter().filter_map(|it| {
        let read = refusal(&it.why);
        (read.cause == Some(Cause::ApiConversionWebhook))
            .then(|| conversion(look, &read).evidence(it.what.clone(), it.why.clone()))
    });
    told.collect()
}

/// Definitions whose own status tells that they do not work.
fn definitions(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for live in look.cluster.all("CustomResourceDefinition") {
        if live.str_at(&["spec", "conversion", "strategy"]) != Some("Webhook") {
            continue;
        }
        let reference = |key| {
            live.str_at(&["spec", "conversion", "webhook", "clientConfig", "service", key])
                .unwrap_or_default()
        };
        let service = Object::new("Service", reference("namespace"), reference("name"));
        let group = live.str_at(&["spec", "group"]).unwrap_or_default();
        let kind = live.str_at(&["spec", "names", "kind"]).unwrap_or_default();
        let words = format!("conversion webhook for {group}/");
        let teller = look
            .cluster
            .case
            .events
            .iter()
            .find(|event| event.message.contains(&words))
            .map(|event| (event.object.clone(), event.message.clone()));
        let teller = teller.or_else(|| {
            look.red
                .iter()
                .find(|(_, symptom)| symptom.contains(&words))
                .map(|(object, symptom)| (object.clone(), symptom.clone()))
        });
        let Some((object, message)) = teller.filter(|(_, message)| message.contains(kind)) else { continue };
        let read = Refusal {
            cause: Some(Cause::ApiConversionWebhook),
            by: format!("{group}/v1, Kind={kind}"),
            service: Some((service.namespace, service.name)),
            ..Refusal::default()
        };
        found.push(
            conversion(look, &read)
                .evidence(object.to_string(), message)
                .suffers(object, "cannot read the kind"),
        );
    }
    found
}

/// What names of the API server's pods begin with.
const API_SERVER: &str = "kube-apiserver";

/// An API server that cannot keep up.
pub(crate) fn overload(look: &Look<'_>, caller: &Caller<'_>, line: &str) -> Option<Finding> {
    let mut sufferers = Vec::new();
    for ill in &look.ill {
        let is_hit = ill.facts.iter().any(|fact| {
            let low = fact.line.to_ascii_lowercase();
            low.contains("429 too many")
                || low.contains("status code 429")
                || low.contains("too many requests")
                || low.contains("leader election lost")
                || low.contains("leaderelection lost")
        });
        if is_hit {
            sufferers.push(ill.workload.clone());
        }
    }
    let chatty = chatty_client(look);
    // One client that is turned away proves nothing about the API server.
    if chatty.is_none() && sufferers.len() < 2 {
        return None;
    }
    // Who is turned away is not who asks too much. The log of the API server would tell, where there is one.
    let is_server = |pod: &&Value| pod.namespace() == "kube-system" && pod.name().starts_with(API_SERVER);
    let confidence = match chatty {
        Some(_) => 0.85,
        None if look.cluster.all("Pod").iter().any(is_server) => 0.45,
        None => 0.6,
    };
    let first = sufferers.iter().min().unwrap_or(&caller.workload);
    let object = chatty.unwrap_or_else(|| first.clone());
    let finding = Finding::new(
        Cause::ApiOverload,
        object,
        confidence,
        "the API server is overloaded: it turns requests away",
    )
    .evidence(caller.workload.to_string(), line)
    .remedy(
        "Slow the client down that asks most, or give it a FlowSchema of its own.",
        &["kubectl get --raw /metrics | grep apiserver_request_total".to_owned()],
    );
    // What etcd does not write, the API server cannot answer.
    let is_etcd = |pod: &&&Value| pod.namespace() == "kube-system" && pod.name().starts_with("etcd");
    let etcd = look.cluster.all("Pod").iter().filter(is_etcd);
    let finding = etcd.fold(finding, |finding, pod| finding.below(Object::from_live(pod)));
    Some(sufferers.into_iter().fold(finding, |finding, object| finding.suffers(object, "is turned away")))
}

/// The client that the API server's own log names most often.
fn chatty_client(look: &Look<'_>) -> Option<Object> {
    let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    let logs = look.cluster.case.logs.iter().filter(|log| log.pod.starts_with(API_SERVER));
    for line in logs.flat_map(|log| log.text.lines()) {
        for word in ["userAgent=\"", "user-agent:", "userAgent:"] {
            if let Some(agent) = line.split(word).nth(1) {
                let agent = agent.split(['/', '"', ' ', ',']).next().unwrap_or_default();
                *counts.entry(agent).or_default() += 1;
            }
        }
    }
    let (agent, _) = counts
        .into_iter()
        .filter(|(agent, count)| *count >= 2 && !agent.starts_with("kube-"))
        .max_by_key(|(_, count)| *count)?;
    let kinds = ["Deployment", "DaemonSet", "StatefulSet"];
    let workload = kinds
        .iter()
        .flat_map(|kind| look.cluster.all(kind).iter())
        .find(|it| it.name() == agent || it.name().contains(agent));
    workload.map(|it: &&Value| Object::from_live(it))
}
