//! Why one custom resource is not ready, by its own conditions.

use tiphys_cause::{Cause, complaints};
use tiphys_value::{ObjectExt as _, Value};

use super::{
    certificates::{challenge, child},
    lookup::{is_waiting, operators},
};
use crate::{
    Object,
    calls::{self, Caller},
    cluster::{conditions, pods, said, time},
    dependencies,
    finding::Finding,
    search_context::Look,
};

/// From here on a call is explained by objects, and not by words alone.
const SURE: f64 = 0.8;

/// The condition by which a resource says that it is not well.
pub(super) fn complaint(live: &Value) -> Option<&Value> {
    conditions(live).find(|it| {
        let (name, status) =
            (it.str_at(&["type"]).unwrap_or_default(), it.str_at(&["status"]).unwrap_or_default());
        match name {
            "NotReady" | "Degraded" | "Stalled" | "Failed" | "InvalidRequest" | "InvalidSpec"
            | "ResolutionFailed" | "ReconcileError" | "Failure" => status == "True",
            _ => {
                status == "False"
                    && matches!(
                        name,
                        "Ready"
                            | "Available"
                            | "Synced"
                            | "Accepted"
                            | "Healthy"
                            | "Reconciled"
                            | "Succeeded"
                            | "Programmed"
                            | "Active"
                    )
            }
        }
    })
}

/// Why one custom resource is not ready.
pub(super) fn fault(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let is_red = look.is_red(&object);
    match object.kind.as_str() {
        "Issuer" | "ClusterIssuer" if is_red => {
            return Some(finding_from_condition(
                live,
                Cause::OperatorIssuer,
                0.92,
                "does not issue certificates",
                "Correct the issuer: account, solver, credentials, reachability.",
            ));
        }
        "SecretStore" | "ClusterSecretStore" if is_red => {
            let words = complaint(live).map(said).unwrap_or_default();
            if let Some(finding) = vain_call(look, live, &operators(look, live), &words) {
                return Some(finding);
            }
            let finding = finding_from_condition(
                live,
                Cause::OperatorSecretStore,
                0.93,
                "does not work",
                "Correct the store: address, credentials, role.",
            );
            let finding = with_calls(look, live, finding);
            let is_inside = finding.upstream.iter().any(|it| it.kind == "Service")
                || words.contains(".svc") && !look.cluster.has_kind("Service");
            let is_unseen = !look.cluster.has_kind("Pod") || !look.cluster.has_kind("Service");
            return Some(if is_inside && is_unseen { finding.not_known() } else { finding });
        }
        "Challenge" | "Order" => return challenge(look, live),
        "Certificate" | "CertificateRequest" | "ExternalSecret" | "ClusterExternalSecret" | "PushSecret"
            if is_red =>
        {
            return child(look, live);
        }
        _ => {}
    }
    let operators = operators(look, live);
    if !is_red {
        return unattended(look, live, &operators);
    }
    let condition = complaint(live);
    let words = condition
        .map(said)
        .or_else(|| live.str_at(&["status", "message"]).map(str::to_owned))
        .or_else(|| live.str_at(&["status", "reason"]).map(str::to_owned))
        .unwrap_or_default();
    if let Some(finding) = vain_call(look, live, &operators, &words) {
        return Some(finding);
    }
    // Conditions may tell only that something is wrong, and the operator's events what.
    let warning = look.cluster.events(&object).rfind(|event| event.is_warning());
    let warning = warning.filter(|event| !says_why(&words) && says_why(&event.message));
    let words = warning.map_or(words, |event| event.message.clone());
    let mut finding = if is_denied(&words) {
        finding_from_condition(
            live,
            Cause::OperatorCloudCredentials,
            0.9,
            "is refused by the cloud",
            "Give the operator's identity the rights that the condition names.",
        )
    } else if let Some(name) = named_but_absent(&words) {
        let finding = finding_from_condition(
            live,
            Cause::OperatorReference,
            0.88,
            &format!("names {name}, which does not exist"),
            "Make what is named, or correct the reference.",
        );
        let kinds = ["Secret", "ConfigMap", "StorageClass", "Service"];
        kinds.iter().fold(finding, |finding, kind| {
            finding.below(Object::new(
                kind,
                if *kind == "StorageClass" { "" } else { &object.namespace },
                &name,
            ))
        })
    } else if is_rejected(&words) {
        finding_from_condition(
            live,
            Cause::OperatorRejected,
            0.88,
            "is refused by its operator",
            "Correct the specification.",
        )
    } else {
        finding_from_condition(
            live,
            Cause::OperatorRejected,
            0.35,
            "is not ready",
            "Read its conditions and its operator's log.",
        )
        .shallow()
    };
    if let Some(event) = warning {
        finding = finding.evidence(format!("Event of {object}"), event.message.clone());
    }
    for forbidden in tiphys_cause::forbidden(&words) {
        if let Some(operator) = operators.first()
            && let Some(rights) = crate::causes::api::rights_fault(look, operator, &forbidden)
        {
            return Some(
                rights.evidence(object.to_string(), words.clone()).suffers(object, "is not cared for"),
            );
        }
    }
    for child in look.cluster.owned(&object) {
        finding = finding.below(Object::from_live(child));
    }
    for operator in operators {
        finding = finding.below(operator);
    }
    for reference in dependencies::upstream(look.cluster, &object) {
        finding = finding.below(reference);
    }
    Some(finding)
}

/// Whether the words of an operator tell more than that something is wrong.
fn says_why(words: &str) -> bool {
    is_denied(words) || is_rejected(words) || named_but_absent(words).is_some()
}

/// Whether the cloud refuses the operator.
fn is_denied(words: &str) -> bool {
    const WORDS: &[&str] = &[
        "accessdenied",
        "unauthorizedoperation",
        "is not authorized to perform",
        "error 403",
        "expiredtoken",
        "authorizationfailed",
    ];
    let low = words.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
        || complaints(words).iter().any(|it| it.cause == Cause::OperatorCloudCredentials)
}

/// Whether the operator refuses the resource as it is.
fn is_rejected(words: &str) -> bool {
    const WORDS: &[&str] = &[
        "invalid",
        "not satisfiable",
        "could decrypt",
        "could not decrypt",
        "failed to decrypt",
        "no operators found",
        "unsupported",
        "not supported",
        "must be",
        "must not",
        "validation",
        "not allowed",
        "rejected",
        "unknown field",
        "cannot parse",
        "malformed",
        "misconfigur",
        "not permitted",
        "forbidden value",
        "did not match any",
    ];
    let low = words.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// The call of an operator that fails, as the condition or the last warning about the resource tells it.
fn vain_call(look: &Look<'_>, live: &Value, operators: &[Object], words: &str) -> Option<Finding> {
    let object = Object::from_live(live);
    let warning = look.cluster.events(&object).rfind(|event| event.is_warning());
    let told = [(format!("{object}, status"), words)]
        .into_iter()
        .chain(warning.map(|event| (format!("Event of {object}"), event.message.as_str())));
    let operator = operators.first().cloned().unwrap_or_else(|| object.clone());
    let caller =
        Caller { pods: pods::of_workload(look.cluster, &operator), workload: operator, settings: Vec::new() };
    told.flat_map(|(source, text)| {
        tiphys_cause::failed_calls(text).into_iter().map(move |call| (source.clone(), call))
    })
    .filter(|(_, call)| !call.targets.is_empty())
    .filter_map(|(source, call)| calls::explain(look, &caller, &call, &source))
    .filter(|finding| finding.confidence >= SURE)
    .map(|mut finding| {
        // The operator works: the resource is who suffers.
        finding.suffers.clear();
        finding.suffers(object.clone(), "its operator calls in vain")
    })
    .next()
}

/// A finding in the words of a resource's condition.
pub(super) fn finding_from_condition(
    live: &Value,
    cause: Cause,
    confidence: f64,
    what: &str,
    remedy: &str,
) -> Finding {
    let object = Object::from_live(live);
    let condition = complaint(live);
    let words = condition.map(said).unwrap_or_default();
    let text = if words.is_empty() { String::new() } else { format!(": {words}") };
    let name = condition.and_then(|it| it.str_at(&["type"])).unwrap_or("status");
    Finding::new(cause, object.clone(), confidence, format!("{object} {what}{text}"))
        .since(condition.and_then(|it| time(it, &["lastTransitionTime"])))
        .evidence(format!("{object}, condition {name}"), words)
        .remedy(
            remedy,
            &[format!(
                "kubectl describe {} {} {}",
                object.kind.to_lowercase(),
                object.name,
                if object.namespace.is_empty() { String::new() } else { format!("-n {}", object.namespace) }
            )
            .trim()
            .to_owned()],
        )
}

/// What a condition calls without effect, as what may lie below.
fn with_calls(look: &Look<'_>, live: &Value, finding: Finding) -> Finding {
    let words = complaint(live).map(said).unwrap_or_default();
    let namespace = if live.namespace().is_empty() { "default" } else { live.namespace() };
    let mut finding = finding;
    for address in tiphys_cause::addresses(&words) {
        if let crate::address_target::Target::Service(service) = look.cluster.target(&address, namespace) {
            finding = finding.below(Object::from_live(service));
        }
    }
    if let Some(absent) = tiphys_cause::absent(&words) {
        finding = finding.evidence(format!("{} {}", absent.kind, absent.name), "does not exist");
    }
    finding
}

/// The name of something that a condition says is not there.
fn named_but_absent(words: &str) -> Option<String> {
    let low = words.to_ascii_lowercase();
    let at = [
        "not found",
        "does not exist",
        "doesn't exist",
        "no such",
        "cannot find",
        "could not find",
        "missing",
    ]
    .iter()
    .find_map(|word| low.find(word))?;
    if low.contains("host not found") || low.contains("page not found") {
        return None;
    }
    let quoted = |text: &str| -> Vec<String> {
        text.split(['"', '\'', '`', '“', '”'])
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .filter(|it| !it.is_empty() && it.len() < 120)
            .collect()
    };
    let before = quoted(words.get(..at).unwrap_or_default());
    let after = quoted(words.get(at..).unwrap_or_default());
    let plain = || {
        words
            .get(..at)?
            .split_whitespace()
            .next_back()
            .map(|word| word.trim_matches(['"', '\'', ':', ',']).to_owned())
    };
    let name = before.last().cloned().or_else(|| after.first().cloned()).or_else(plain)?;
    Some(name.rsplit('/').next().unwrap_or(&name).to_owned())
}

/// A resource that its operator never looked at, or not since it was changed.
fn unattended(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<Finding> {
    if !is_waiting(look, live) || look.cluster.age(live) < 600 {
        return None;
    }
    let object = Object::from_live(live);
    let ill: Vec<&Object> = operators
        .iter()
        .filter(|it| look.is_red(it) || look.ill.iter().any(|ill| ill.workload == **it))
        .collect();
    let never = live.get("status").is_none();
    // Whoever rests needs no status: while nothing is red beside it, nobody misses it.
    let is_missed = look
        .red
        .keys()
        .any(|red| red.namespace == object.namespace && *red != object || object.namespace.is_empty());
    if ill.is_empty() && !is_missed {
        return None;
    }
    if ill.is_empty() {
        // An operator that works may leave a kind alone.
        let is_absent = operators.is_empty()
            && never
            && look.cluster.has_kind("Deployment")
            && look.cluster.all("Deployment").len() > 2;
        let confidence = if is_absent { 0.45 } else { 0.3 };
        let what =
            if is_absent { "no operator for it was found" } else { "its operator does not look at it" };
        return never.then(|| {
            Finding::new(
                Cause::OperatorDown,
                object.clone(),
                confidence,
                format!("{object} has no status: {what}"),
            )
            .shallow()
        });
    }
    let finding = Finding::new(
        Cause::OperatorDown,
        ill[0].clone(),
        0.6,
        format!("{} does not work, and {object} waits for it", ill[0]),
    )
    .shallow()
    .suffers(object, "waits for its operator");
    Some(
        ill.into_iter()
            .flat_map(|it| pods::of_workload(look.cluster, it))
            .fold(finding, |finding, pod| finding.below(Object::from_live(pod))),
    )
}
