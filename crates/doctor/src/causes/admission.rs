//! Objects that the API server does not take: quotas, limits, webhooks, policies, rules of the API.

use tiphys_cause::{Cause, Failure, Refusal, refusal, unwrapped};
use tiphys_value::{ObjectExt as _, Value};

use super::closed_ways::{closed_to_api_server, port_of_pod, tunnel_agents};
use crate::{
    Object,
    calls::empty_service,
    cluster::{condition, items, pods, quantity, time},
    finding::Finding,
    search_context::Look,
};

/// A write that was refused: who wrote, what it was about, where it is told.
pub(crate) struct Refused {
    pub(crate) writer: Object,
    /// The object that was written, if it is told.
    pub(crate) written: Option<Object>,
    pub(crate) source: String,
    pub(crate) message: String,
}

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = refused(look).iter().filter_map(|refused| fault(look, refused)).collect();
    found.extend(late_certificates(look));
    found
}

/// Backends of webhooks that wait for their own certificate.
fn late_certificates(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        for config in look.cluster.all(kind) {
            let services = items(config, &["webhooks"]).filter_map(|hook| {
                let service = hook.at(&["clientConfig", "service"])?;
                look.cluster.get("Service", service.str_at(&["namespace"])?, service.str_at(&["name"])?)
            });
            let mut pods = services.flat_map(|service| look.cluster.pods_of(service));
            let told = pods.find_map(|pod| waits_for_certificate(look, pod));
            let Some((workload, source, line)) = told else { continue };
            let object = Object::from_live(config);
            found.push(
                Finding::new(
                    Cause::AdmitWebhookTls,
                    object.clone(),
                    0.88,
                    format!("{workload}, the backend of {object}, waits for its certificate"),
                )
                .field("webhooks.clientConfig.caBundle")
                .evidence(source, line)
                .suffers(workload, "waits for its certificate")
                .remedy("Make the certificate's Secret, or bring back what makes it (certificate controller, cert-manager).", &[]),
            );
        }
    }
    found
}

/// The line by which a red pod says that it has no certificate yet.
fn waits_for_certificate(look: &Look<'_>, pod: &Value) -> Option<(Object, String, String)> {
    const STATES: &[&str] = &[
        "not ready",
        "not yet",
        "invalid cert",
        "no such file",
        "waiting for",
        "missing",
        "not found",
        "is empty",
        "not available",
    ];
    if !look.is_red(&Object::from_live(pod)) {
        return None;
    }
    // A file that its own Secret lacks is not made by another.
    let workload = look.cluster.workload(pod);
    let ill = look.ill.iter().find(|ill| ill.workload == workload);
    if ill.is_some_and(|ill| super::config::missing_file(look, ill).is_some()) {
        return None;
    }
    let logs = look.cluster.logs(pod.namespace(), pod.name()).into_iter();
    logs.flat_map(|log| log.text.lines().rev().take(60).map(move |line| (log, line))).find_map(
        |(log, line)| {
            let low = line.to_ascii_lowercase();
            let is_of_certificate =
                ["cert", "tls.crt", "ca.crt", "ca bundle", "cabundle"].iter().any(|word| low.contains(word));
            (is_of_certificate && STATES.iter().any(|word| low.contains(word)))
                .then(|| (look.cluster.workload(pod), log.source(), line.to_owned()))
        },
    )
}

/// The refused writes of controllers that make pods.
fn refused(look: &Look<'_>) -> Vec<Refused> {
    let mut found = Vec::new();
    for kind in ["ReplicaSet", "Job", "StatefulSet", "DaemonSet", "ReplicationController"] {
        for live in look.cluster.all(kind) {
            let object = Object::from_live(live);
            let failure = replica_failure(live);
            let has_failed = failure.is_some();
            found.extend(failure);
            // A controller that has all its pods has got over it.
            if !has_failed && !lacks_pods(look, live) {
                continue;
            }
            for event in look
                .cluster
                .events(&object)
                .filter(|event| matches!(event.reason.as_str(), "FailedCreate" | "FailedUpdate"))
            {
                found.push(Refused {
                    writer: object.clone(),
                    written: None,
                    source: format!("Event of {object}"),
                    message: event.message.clone(),
                });
            }
        }
    }
    found.extend(unsaved_replica_sets(look));
    for cron in look.cluster.all("CronJob") {
        let object = Object::from_live(cron);
        let scheduled = time(cron, &["status", "lastScheduleTime"]);
        // A Job that was made since tells that it is over.
        let still = |event: &&crate::Event| event.reason == "FailedCreate" && event.last > scheduled;
        found.extend(look.cluster.events(&object).filter(still).map(|event| Refused {
            writer: object.clone(),
            written: None,
            source: format!("Event of {object}"),
            message: event.message.clone(),
        }));
    }
    found
}

/// The refused write that a controller's condition tells.
fn replica_failure(live: &Value) -> Option<Refused> {
    let failure = condition(live, "ReplicaFailure").filter(|it| it.str_at(&["status"]) == Some("True"))?;
    let object = Object::from_live(live);
    Some(Refused {
        source: format!("{object}, condition ReplicaFailure"),
        writer: object,
        written: None,
        message: failure.str_at(&["message"])?.to_owned(),
    })
}

/// The refused writes of ReplicaSets that were not saved: their Deployments and their events tell.
fn unsaved_replica_sets(look: &Look<'_>) -> Vec<Refused> {
    if look.cluster.has_kind("ReplicaSet") {
        return Vec::new();
    }
    let mut found = Vec::new();
    found.extend(look.cluster.all("Deployment").iter().filter_map(|live| replica_failure(live)));
    let refusals = look.cluster.case.events.iter().filter(|event| {
        event.object.kind == "ReplicaSet" && event.reason == "FailedCreate" && event.is_warning()
    });
    for event in refusals {
        let set = &event.object;
        let Some((name, _)) = set.name.rsplit_once('-') else { continue };
        let writer = Object::new("Deployment", &set.namespace, name);
        let lacks = look.is_red(&writer) || look.cluster.live(&writer).is_some_and(|it| lacks_pods(look, it));
        if lacks {
            found.push(Refused {
                writer,
                written: None,
                source: format!("Event of {set}"),
                message: event.message.clone(),
            });
        }
    }
    found
}

pub(super) fn lacks_pods(look: &Look<'_>, live: &Value) -> bool {
    let wanted = match live.kind() {
        // A set whose state was left out is for one node at least.
        "DaemonSet" if live.get("status").is_none() => 1,
        "DaemonSet" => live.int_at(&["status", "desiredNumberScheduled"]).unwrap_or(0),
        "Job" => i64::from(live.at(&["status", "completionTime"]).is_none()),
        _ => pods::replicas(live),
    };
    let told = live
        .int_at(&["status", if live.kind() == "DaemonSet" { "currentNumberScheduled" } else { "replicas" }]);
    let made = look.cluster.owned(&Object::from_live(live)).iter().filter(|it| it.kind() == "Pod").count();
    let made = i64::try_from(made).unwrap_or(i64::MAX);
    wanted > told.unwrap_or(made).max(made)
}

/// The fault behind a refusal; `None` if the words do not tell, or if it no longer holds.
pub(crate) fn fault(look: &Look<'_>, refused: &Refused) -> Option<Finding> {
    let read = refusal(unwrapped(&refused.message));
    let cause = read.cause?;
    if !still_holds(look, refused, &read) {
        return None;
    }
    let owner = look
        .cluster
        .live(&refused.writer)
        .map_or_else(|| refused.writer.clone(), |live| look.cluster.workload(live));
    let target = target_namespace(look, refused);
    let namespace = target.as_str();
    let finding = match cause {
        Cause::AdmitQuota => quota(look, namespace, &read),
        Cause::AdmitWebhookDown => webhook_down(look, &read, &refused.message),
        Cause::AdmitWebhookTls => webhook_tls(look, &read),
        Cause::AdmitPolicy => policy(look, &owner, refused, &read),
        Cause::AdmitServiceAccount => {
            let object = Object::new("ServiceAccount", namespace, &read.subject);
            Finding::new(
                cause,
                object.clone(),
                0.94,
                format!("{object} does not exist, and {owner} runs under it"),
            )
            .remedy(
                format!("Make {object}, or correct serviceAccountName."),
                &[format!("kubectl -n {namespace} create serviceaccount {}", read.subject)],
            )
        }
        Cause::ConfigMissing => {
            let object = Object::new(&read.by, "", &read.subject);
            let summary = format!("{object} does not exist, and the pods of {owner} name it");
            Finding::new(cause, object.clone(), 0.94, summary)
                .remedy(format!("Make {object}, or correct its name in {owner}."), &[])
        }
        Cause::AdmitLimitRange => {
            let range = look.cluster.all("LimitRange").iter().find(|range| range.namespace() == namespace);
            let object = range.map_or_else(|| owner.clone(), |range| Object::from_live(range));
            let who = range.map_or_else(
                || format!("a LimitRange of namespace {namespace}"),
                |range| Object::from_live(range).to_string(),
            );
            let summary = format!("{who} forbids the resources of {owner}: {}", read.subject);
            Finding::new(cause, object, 0.93, summary)
                .remedy("Bring the container's resources into the range, or change the LimitRange.", &[])
        }
        Cause::AdmitRequestsRequired => Finding::new(
            cause,
            owner.clone(),
            0.93,
            format!("the quota {} demands {}, which {owner} does not set", read.by, read.subject),
        )
        .field("spec.template.spec.containers.resources")
        .remedy("Set the requests and limits, or a LimitRange with defaults.", &[]),
        Cause::AdmitPodSecurity => Finding::new(
            cause,
            owner.clone(),
            0.93,
            format!(
                "the Pod Security Standard {} of namespace {namespace} forbids the pods of {owner}: {}",
                read.by, read.subject
            ),
        )
        .field("spec.template.spec.securityContext")
        .remedy(
            "Set the security context that the standard demands, or lower the namespace's label.",
            &[format!("kubectl get namespace {namespace} --show-labels")],
        ),
        Cause::ApiConversionWebhook => crate::causes::api::conversion(look, &read),
        Cause::ApiCrdMissing => {
            let finding = crate::causes::api::crd_missing(&owner, &read);
            let makers = crate::dependencies::upstream(look.cluster, &finding.object);
            makers.into_iter().fold(finding, Finding::below)
        }
        Cause::ApiRbac => {
            let forbidden = tiphys_cause::forbidden(&refused.message).into_iter().next()?;
            crate::causes::api::rights_fault(look, &owner, &forbidden)?
        }
        Cause::GitopsNamespace => {
            let object = refused.writer.clone();
            Finding::new(
                cause,
                object.clone(),
                0.92,
                format!("the namespace {} does not exist", read.subject),
            )
            .remedy(
                "Make the namespace, or let the Application make it (CreateNamespace=true).",
                &[format!("kubectl create namespace {}", read.subject)],
            )
        }
        Cause::AdmitImmutable | Cause::AdmitSchema | Cause::AdmitTooLarge | Cause::AdmitConflict => {
            rule(look, cause, &owner, refused, &read)
        }
        Cause::VolumeResize => {
            let named =
                read.object.as_ref().map(|(_, name)| Object::new("PersistentVolumeClaim", namespace, name));
            let object = refused.written.clone().or(named).unwrap_or_else(|| owner.clone());
            Finding::new(
                cause,
                object.clone(),
                0.9,
                format!("{object} cannot be given the size that is asked for"),
            )
            .field("spec.resources.requests.storage")
            .remedy("Set allowVolumeExpansion: true on its storage class; a claim never gets smaller.", &[])
        }
        _ => return None,
    };
    let finding = finding.evidence(refused.source.clone(), refused.message.clone());
    let finding = finding.suffers(refused.writer.clone(), "its writes are refused");
    Some(finding.suffers(owner, "its writes are refused"))
}

/// Whether what a refusal names is still so.
pub(crate) fn still_holds(look: &Look<'_>, refused: &Refused, read: &Refusal) -> bool {
    let cluster = look.cluster;
    let target = target_namespace(look, refused);
    let namespace = target.as_str();
    match read.cause {
        Some(Cause::ConfigMissing) => cluster.get(&read.by, "", &read.subject).is_none(),
        Some(Cause::AdmitServiceAccount) => cluster.get("ServiceAccount", namespace, &read.subject).is_none(),
        Some(Cause::GitopsNamespace) => {
            let is_used = cluster.case.objects.iter().any(|object| object.namespace() == read.subject);
            !is_used && cluster.get("Namespace", "", &read.subject).is_none()
        }
        Some(Cause::ApiCrdMissing) => {
            let (kind, version) = read.subject.split_once(' ').unwrap_or((&read.subject, ""));
            let version = version.rsplit_once('/').map_or(version, |(_, version)| version);
            let serves = |it: &Value| {
                let mut versions = items(it, &["spec", "versions"]).filter_map(|it| it.str_at(&["name"]));
                version.is_empty() || versions.any(|known| known == version)
            };
            let mut definitions = cluster.all("CustomResourceDefinition").iter();
            let is_named =
                |it: &Value| it.str_at(&["spec", "names", "kind"]) == Some(kind) || it.name() == kind;
            let is_there = definitions.any(|it| is_named(it) && serves(it));
            !is_there || kind.is_empty()
        }
        Some(Cause::AdmitQuota) => cluster
            .get("ResourceQuota", namespace, &read.by)
            .is_none_or(|quota| is_full(quota, &refused.message)),
        Some(Cause::AdmitWebhookDown) => {
            let service = webhook_service(look, read).and_then(|service| cluster.live(&service));
            let is_gone = cluster.has_kind("MutatingWebhookConfiguration")
                || cluster.has_kind("ValidatingWebhookConfiguration");
            let config = configuration(look, &read.by);
            if is_gone && config.is_none() {
                return false;
            }
            match service {
                Some(service) => {
                    !cluster.is_served(service)
                        || !matches!(read.failure, Some(Failure::Refused | Failure::NoEndpoint))
                        || look.is_ill_behind(service)
                        || crate::causes::service::has_wrong_target(look, service)
                }
                None => true,
            }
        }
        _ => true,
    }
}

/// Whether a quota has no room for what a refusal says was asked for.
fn is_full(quota: &Value, message: &str) -> bool {
    let hard =
        quota.at(&["status", "hard"]).or_else(|| quota.at(&["spec", "hard"])).and_then(Value::as_object);
    let Some(asked) = message.split("requested: ").nth(1).and_then(|rest| rest.split(", used:").next())
    else {
        return true;
    };
    let is_short = |pair: &str| -> Option<bool> {
        let (resource, amount) = pair.trim().split_once('=')?;
        let hard = quantity::milli(hard?.get(resource)?)?;
        let used = quantity::milli(quota.at(&["status", "used", resource])?)?;
        Some(used + quantity::from_text(amount)? > hard)
    };
    let judged: Vec<bool> = asked.split(',').filter_map(is_short).collect();
    judged.is_empty() || judged.contains(&true)
}

fn quota(look: &Look<'_>, namespace: &str, read: &Refusal) -> Finding {
    let here = Object::new("ResourceQuota", namespace, &read.by);
    // The writer may write to several namespaces, and a quota of the name may be in one only.
    let mut named = look.cluster.all("ResourceQuota").iter().filter(|quota| quota.name() == read.by);
    let object = match (look.cluster.live(&here), named.next(), named.next()) {
        (None, Some(only), None) => Object::from_live(only),
        _ => here,
    };
    let namespace = object.namespace.as_str();
    let finding = Finding::new(Cause::AdmitQuota, object.clone(), 0.95, format!("{object} is used up"))
        .field("spec.hard")
        .remedy(
            "Raise the quota, or free what uses it.",
            &[format!("kubectl -n {namespace} describe resourcequota {}", read.by)],
        );
    match look.cluster.live(&object) {
        Some(live) => finding.evidence(
            object.to_string(),
            format!(
                "hard {}, used {}",
                live.at(&["status", "hard"]).unwrap_or(&Value::Null),
                live.at(&["status", "used"]).unwrap_or(&Value::Null)
            ),
        ),
        None => finding,
    }
}

/// All webhooks, with the configurations that hold them.
pub(super) fn webhooks<'a>(look: &Look<'a>) -> impl Iterator<Item = (&'a Value, &'a Value)> + use<'a> {
    let cluster = look.cluster;
    let kinds = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let all = kinds.into_iter().flat_map(|kind| cluster.all(kind).iter().copied());
    all.flat_map(|config| items(config, &["webhooks"]).map(move |hook| (config, hook)))
}

/// The configuration that holds a webhook.
fn configuration<'a>(look: &Look<'a>, webhook: &str) -> Option<(&'a Value, &'a Value)> {
    webhooks(look).find(|(_, hook)| hook.str_at(&["name"]) == Some(webhook))
}

/// The Service behind a webhook, by its configuration or by the URL that was called.
fn webhook_service(look: &Look<'_>, read: &Refusal) -> Option<Object> {
    let by_config = configuration(look, &read.by).and_then(|(_, hook)| hook.at(&["clientConfig", "service"]));
    let named = by_config
        .and_then(|it| Some(Object::new("Service", it.str_at(&["namespace"])?, it.str_at(&["name"])?)));
    named.or_else(|| {
        let (namespace, name) = read.service.as_ref()?;
        (!namespace.is_empty()).then(|| Object::new("Service", namespace, name))
    })
}

/// Whether anything says why a controller's pods are not made.
pub(super) fn is_told_refused(look: &Look<'_>, live: &Value) -> bool {
    let object = Object::from_live(live);
    let is_refusal = |event: &crate::Event| matches!(event.reason.as_str(), "FailedCreate" | "FailedUpdate");
    replica_failure(live).is_some() || look.cluster.events(&object).any(is_refusal)
}

/// The fault of a webhook of which nothing but the objects tells: nobody serves it, the API server does not
/// trust what serves it, or a policy lies between.
pub(super) fn webhook_without_words(look: &Look<'_>, config: &Value, hook: &Value) -> Option<Finding> {
    let reference = hook.at(&["clientConfig", "service"])?;
    let service = Object::new("Service", reference.str_at(&["namespace"])?, reference.str_at(&["name"])?);
    let name = hook.str_at(&["name"]).unwrap_or_default();
    let read = Refusal { cause: Some(Cause::AdmitWebhookDown), by: name.to_owned(), ..Refusal::default() };
    let is_served = match look.cluster.live(&service) {
        Some(live) => look.cluster.is_served(live),
        None => !look.cluster.knows_services(),
    };
    if !is_served {
        return Some(webhook_down(look, &read, ""));
    }
    let live = look.cluster.live(&service)?;
    let object = Object::from_live(config);
    let expired = crate::causes::control_plane::certificate_of_service(look, live);
    if let Some(expired) = expired.filter(|finding| finding.object.kind == "Secret") {
        return Some(expired.suffers(object, "shows an expired certificate"));
    }
    // Without a CA the API server trusts public authorities alone, and none of them signs for a Service.
    let has_bundle =
        |hook: &Value| hook.str_at(&["clientConfig", "caBundle"]).is_some_and(|it| !it.is_empty());
    if !has_bundle(hook) && webhooks(look).any(|(_, other)| has_bundle(other)) {
        return Some(webhook_tls(look, &read));
    }
    let pod = look.cluster.pods_of(live).into_iter().find(|pod| pods::is_ready(pod))?;
    let number = reference.int_at(&["port"]).unwrap_or(443);
    let port = items(live, &["spec", "ports"]).find(|port| port.int_at(&["port"]) == Some(number));
    closed_to_api_server(look, pod, port_of_pod(pod, port), &object)
}

fn webhook_down(look: &Look<'_>, read: &Refusal, message: &str) -> Finding {
    let config = configuration(look, &read.by);
    let service = webhook_service(look, read);
    let object = config.map_or_else(
        || service.clone().unwrap_or_else(|| Object::new("ValidatingWebhookConfiguration", "", &read.by)),
        |(config, _)| Object::from_live(config),
    );
    let what = service.as_ref().map_or_else(String::new, |service| format!(" ({service})"));
    let mut finding = Finding::new(
        Cause::AdmitWebhookDown,
        object.clone(),
        0.85,
        format!("the webhook {}{what} does not answer, and it fails closed", read.by),
    )
    .remedy("Bring its backend back; until then failurePolicy: Ignore lets writes pass.", &[]);
    finding = tunnel_agents(look, message).into_iter().fold(finding, Finding::below);
    let Some(service) = service else { return finding };
    let Some(live) = look.cluster.live(&service) else {
        return if look.cluster.knows_services() {
            finding.evidence(service.to_string(), "it does not exist")
        } else {
            // Without its backend nobody knows why a webhook does not answer.
            Finding { confidence: 0.45, ..finding }
        };
    };
    finding = finding.below(service.clone());
    // Why its backend is ill is the cause; while that is not known, nothing is.
    if look.is_ill_behind(live) || !look.cluster.has_kind("Pod") {
        finding.confidence = 0.45;
    }
    if let Some(below) = empty_service(look.cluster, live) {
        return below.suffers(object, "does not answer").suffers(service, "has no endpoints");
    }
    let number =
        config.and_then(|(_, hook)| hook.int_at(&["clientConfig", "service", "port"])).unwrap_or(443);
    let port = items(live, &["spec", "ports"])
        .find(|port| port.int_at(&["port"]) == Some(number))
        .or_else(|| items(live, &["spec", "ports"]).next());
    let ready: Vec<&Value> =
        look.cluster.pods_of(live).into_iter().filter(|pod| pods::is_ready(pod)).collect();
    if let (Some(port), false) = (port, ready.is_empty())
        && let Some(below) = crate::causes::service::wrong_target(live, port, &ready)
    {
        return below.suffers(object, "does not answer");
    }
    // Whoever waits for headers was connected: the program takes too long.
    let is_connected = message.contains("awaiting headers");
    if let (Some(Failure::Timeout | Failure::Unreachable), Some(pod), false) =
        (read.failure, ready.first(), is_connected)
    {
        return silent_webhook(look, finding, pod, port, &object);
    }
    finding
}

/// A webhook whose pods are ready, and that does not answer the API server.
fn silent_webhook(
    look: &Look<'_>,
    finding: Finding,
    pod: &Value,
    port: Option<&Value>,
    object: &Object,
) -> Finding {
    let number = port_of_pod(pod, port);
    if let Some(policy) = closed_to_api_server(look, pod, number, object) {
        return policy;
    }
    Finding {
        cause: Cause::NetNodePorts,
        confidence: if look.cluster.has_kind("NetworkPolicy") || look.cluster.is_whole() {
            0.6
        } else {
            0.45
        },
        summary: format!(
            "the API server does not reach the webhook's pods on port {number}, which are ready: a port between control plane and nodes is closed"
        ),
        ..finding
    }
}

fn webhook_tls(look: &Look<'_>, read: &Refusal) -> Finding {
    let config = configuration(look, &read.by);
    let service = webhook_service(look, read);
    let object = config.map_or_else(
        || service.clone().unwrap_or_else(|| Object::new("ValidatingWebhookConfiguration", "", &read.by)),
        |(config, _)| Object::from_live(config),
    );
    let (why, remedy) = match read.failure {
        Some(Failure::Expired) => (
            "the certificate of its backend has expired",
            "Renew the backend's certificate and restart its pods; write a new CA into caBundle if that changed.",
        ),
        Some(Failure::NotYetValid) => (
            "the certificate of its backend is not valid yet",
            "Compare the clocks of the control plane and of what made the certificate.",
        ),
        _ => (
            "its caBundle does not sign the certificate of its backend",
            "Write the CA that signed the backend's certificate into caBundle, or let the injector do it.",
        ),
    };
    let mut finding = Finding::new(
        Cause::AdmitWebhookTls,
        object.clone(),
        0.92,
        format!("the API server does not trust the webhook {}: {why}", read.by),
    )
    .field("webhooks.clientConfig.caBundle")
    .remedy(remedy, &[]);
    if let Some((config, hook)) = config {
        let bundle = hook.str_at(&["clientConfig", "caBundle"]).unwrap_or_default();
        let certificates = crate::cluster::certificate::Certificate::all_from_base64(bundle);
        let text = match certificates.first() {
            Some(ca) => format!("caBundle: valid from {} to {}", ca.not_before, ca.not_after),
            None if bundle.is_empty() => "caBundle is empty".to_owned(),
            None => "caBundle is set".to_owned(),
        };
        finding = finding.evidence(object.to_string(), text);
        if let Some(certificate) =
            config.annotation("cert-manager.io/inject-ca-from").and_then(|it| it.split_once('/'))
        {
            finding = finding.below(Object::new("Certificate", certificate.0, certificate.1));
        }
        let injectors = if asks_for_ca(config) { injectors(look) } else { Vec::new() };
        if let Some(resting) = super::resting::scaled_to_zero_among(look, &injectors, &object) {
            return resting;
        }
        if asks_for_ca(config) {
            finding = injectors.into_iter().fold(finding, Finding::below);
            // Whether the injector works is not known.
            finding = if look.cluster.has_kind("Deployment") { finding } else { finding.not_known() };
        }
    }
    finding
}

/// Whether a configuration asks cert-manager to write the CA into it.
fn asks_for_ca(config: &Value) -> bool {
    const ASKS: &[&str] = &[
        "cert-manager.io/inject-ca-from",
        "cert-manager.io/inject-ca-from-secret",
        "cert-manager.io/inject-apiserver-ca",
    ];
    ASKS.iter().any(|key| config.annotation(key).is_some())
}

/// The workloads of cert-manager that write CAs into configurations.
fn injectors(look: &Look<'_>) -> Vec<Object> {
    let all = look.cluster.all("Deployment").iter().filter(|it| it.name().contains("cainjector"));
    all.map(|it| Object::from_live(it)).collect()
}

/// Kinds of policies whose names may stand in a refusal.
const POLICIES: &[&str] = &[
    "ClusterPolicy",
    "Policy",
    "ValidatingAdmissionPolicy",
    "ValidatingPolicy",
    "ImageValidatingPolicy",
    "AdmissionPolicy",
    "ClusterAdmissionPolicy",
];

/// An Ingress that is refused since another one has its host and path.
fn taken_route(owner: &Object, refused: &Refused) -> Option<Finding> {
    let taken = tiphys_cause::taken_route(&refused.message)?;
    let object = refused.written.clone().unwrap_or_else(|| owner.clone());
    let other = Object::new("Ingress", &taken.namespace, &taken.name);
    let summary = format!("{object} wants {}, which {other} has already", taken.route);
    Some(
        Finding::new(Cause::AdmitPolicy, object, 0.93, summary)
            .field("spec.rules")
            .evidence(other.to_string(), format!("it has {}", taken.route))
            .remedy(format!("Give one of them another host or path, or delete {other}."), &[]),
    )
}

fn policy(look: &Look<'_>, owner: &Object, refused: &Refused, read: &Refusal) -> Finding {
    if let Some(finding) = taken_route(owner, refused) {
        return finding;
    }
    let is_word = |name: &str| {
        refused
            .message
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')))
            .any(|word| word.trim_end_matches('.') == name)
    };
    let named =
        POLICIES.iter().flat_map(|kind| look.cluster.all(kind).iter()).find(|policy| is_word(policy.name()));
    let constraint = || {
        look.cluster.case.objects.iter().find(|object| {
            object.api_version().starts_with("constraints.gatekeeper.sh/") && is_word(object.name())
        })
    };
    let config = || configuration(look, &read.by).map(|(config, _)| config);
    let object =
        named.copied().or_else(constraint).or_else(config).map_or_else(|| owner.clone(), Object::from_live);
    let summary = match read.by.as_str() {
        "" if object == *owner => format!("a policy refuses what {owner} writes"),
        by if object == *owner => format!("a policy of {by} refuses what {owner} writes"),
        "" => format!("{object} refuses what {owner} writes"),
        by => format!("{object} refuses what {owner} writes through {by}"),
    };
    Finding::new(Cause::AdmitPolicy, object, 0.93, summary)
        .remedy("Make the object fit the policy, or except it.", &[])
}

/// The namespace of a refused write.
fn target_namespace(look: &Look<'_>, refused: &Refused) -> String {
    match &refused.written {
        Some(written) => written.namespace.clone(),
        None => told_object(&refused.message)
            .map(|object| object.namespace)
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or_else(|| home(look, &refused.writer)),
    }
}

/// The object that Flux could not apply: `Deployment/shop/cart dry-run failed`.
fn told_object(message: &str) -> Option<Object> {
    let (path, _) = message.split_once(" dry-run failed")?;
    let parts: Vec<&str> = path.split_whitespace().next_back()?.split('/').collect();
    match parts[..] {
        [kind, namespace, name] => Some(Object::new(kind, namespace, name)),
        [kind, name] => Some(Object::new(kind, "", name)),
        _ => None,
    }
}

/// Kinds that live in no namespace and that repositories deliver.
const CLUSTER_WIDE: &[&str] = &[
    "Namespace",
    "CustomResourceDefinition",
    "PersistentVolume",
    "StorageClass",
    "PriorityClass",
    "APIService",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "IngressClass",
    "GatewayClass",
    "RuntimeClass",
    "CSIDriver",
];

fn is_cluster_wide(kind: &str) -> bool {
    kind.starts_with("Cluster") || CLUSTER_WIDE.contains(&kind)
}

/// The namespace that a writer writes to where an object names none.
fn home(look: &Look<'_>, writer: &Object) -> String {
    let live = look.cluster.live(writer);
    let paths: [&[&str]; 2] = [&["spec", "destination", "namespace"], &["spec", "targetNamespace"]];
    let told = live.and_then(|live| paths.iter().find_map(|path| live.str_at(path)));
    told.unwrap_or(&writer.namespace).to_owned()
}

/// A rule of the API that an object breaks.
fn rule(look: &Look<'_>, cause: Cause, owner: &Object, refused: &Refused, read: &Refusal) -> Finding {
    let told = read.object.as_ref().map(|(kind, name)| {
        let named = look.cluster.all(kind).iter().filter(|live| live.name() == *name);
        let named: Vec<&Value> = named.copied().collect();
        let home = target_namespace(look, refused);
        // Of several with the name, the one where the writer writes.
        match named.iter().find(|live| live.namespace() == home).or(named.first()) {
            Some(live) => Object::from_live(live),
            None if is_cluster_wide(kind) => Object::new(kind, "", name),
            None => Object::new(kind, &home, name),
        }
    });
    let object = refused.written.clone().or(told).or_else(|| told_object(&refused.message));
    let object = object.unwrap_or_else(|| owner.clone());
    let subject = if read.subject.is_empty() { String::new() } else { format!(": {}", read.subject) };
    let (what, text) = match cause {
        Cause::AdmitImmutable => (
            format!("a field of {object} that cannot change was changed{subject}"),
            "Delete and make the object anew (Replace=true), or take the change back.",
        ),
        Cause::AdmitTooLarge => (
            format!("{object} is too large to be applied by the client"),
            "Apply it on the server's side (ServerSideApply=true).",
        ),
        Cause::AdmitConflict => (
            format!("another manager owns a field of {object}{subject}"),
            "Let one of both write the field, or force the conflict.",
        ),
        _ if read.subject.contains("status.storedVersions") => (
            format!("{object} loses a version that objects are still stored in{subject}"),
            "Keep the version; write all objects anew, take it out of status.storedVersions, and remove it then.",
        ),
        _ => (format!("{object} does not fit its schema{subject}"), "Correct the manifest."),
    };
    let finding = Finding::new(cause, object, 0.9, what).remedy(text, &[]);
    if read.subject.is_empty() { finding } else { finding.field(read.subject.clone()) }
}
