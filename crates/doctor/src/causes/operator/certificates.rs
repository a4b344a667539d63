//! Certificates and synchronized secrets, and who should make them.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use super::{
    conditions::{finding_from_condition, rests_on_unseen},
    lookup::operators,
    operator_log::{is_heard, told_by_operator},
};
use crate::{
    Object, calls,
    cluster::{complaint::complaint, condition, condition_text, items, time},
    dependencies,
    finding::Finding,
    search_context::Look,
};

/// The reason of a challenge or an order that does not end.
pub(super) fn challenge(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let state = live.str_at(&["status", "state"]).unwrap_or_default();
    let reason = live.str_at(&["status", "reason"]).unwrap_or_default();
    if matches!(state, "valid" | "ready") || reason.is_empty() || look.cluster.age(live) < 300 {
        return None;
    }
    let object = Object::from_live(live);
    let reference = |key| live.str_at(&["spec", "issuerRef", key]);
    let kind = reference("kind").unwrap_or("Issuer");
    let issuer = Object::new(
        kind,
        if kind == "ClusterIssuer" { "" } else { live.namespace() },
        reference("name").unwrap_or_default(),
    );
    // The request between a certificate and its order fails with them.
    let owners = owners(look, live);
    let certificate = owners.last().unwrap_or(&object).clone();
    // An attempt of long ago does not matter where a later one succeeded.
    if certificate != object && look.cluster.live(&certificate).is_some() && !look.is_red(&certificate) {
        return None;
    }
    if let Some(finding) = absent_login(look, &issuer, reason) {
        let finding = finding.evidence(object.to_string(), reason).suffers(object, "not passed");
        return Some(owners.into_iter().fold(finding, |finding, owner| finding.suffers(owner, "not issued")));
    }
    // What the solver's own credentials do not allow fails for every certificate of the issuer.
    let is_of_issuer = super::condition_words::is_denied(reason) && look.cluster.live(&issuer).is_some();
    let at = if certificate == object || is_of_issuer { issuer.clone() } else { certificate.clone() };
    let first = || items(live, &["spec", "dnsNames"]).next().and_then(Value::as_str);
    let host = live.str_at(&["spec", "dnsName"]).or_else(first).unwrap_or("its names");
    let finding = Finding::new(
        Cause::OperatorIssuer,
        at.clone(),
        0.9,
        format!("{issuer} does not issue {at}: the challenge for {host} is not passed"),
    )
    .evidence(object.to_string(), format!("{state}: {reason}"))
    .suffers(object.clone(), "not passed")
    .remedy(
        "Let the challenge pass: the record of the name, the way to the solver, the solver's credentials.",
        &[format!("kubectl -n {} describe challenge", live.namespace())],
    );
    let finding = if is_of_issuer { finding } else { finding.below(issuer) };
    let solvers = look.cluster.owned(&object).iter().map(|it| Object::from_live(it)).collect::<Vec<_>>();
    let finding = solvers.into_iter().fold(finding, Finding::below);
    // Where the name is not found, who should write its record may be why.
    let is_unknown = tiphys_cause::Failure::read(reason) == Some(tiphys_cause::Failure::NoSuchHost);
    let makers = if is_unknown { calls::record_makers(look.cluster, host) } else { Vec::new() };
    if let Some(resting) = crate::causes::resting::scaled_to_zero_among(look, &makers, &object) {
        return Some(owners.into_iter().fold(resting, |finding, owner| finding.suffers(owner, "not issued")));
    }
    let finding = makers.into_iter().fold(finding, Finding::below);
    let finding = if is_unknown {
        unaddressed_routes(look, host).into_iter().fold(finding, Finding::below)
    } else {
        finding
    };
    Some(owners.into_iter().fold(finding, |finding, owner| finding.suffers(owner, "not issued")))
}

/// What leads to a host and has no address yet: its Ingresses, and the Services of their controllers that
/// wait for a load balancer. No record can be made for it.
fn unaddressed_routes(look: &Look<'_>, host: &str) -> Vec<Object> {
    let has_address = |live: &Value| items(live, &["status", "loadBalancer", "ingress"]).next().is_some();
    let mut found = Vec::new();
    for ingress in look.cluster.all("Ingress").iter().filter(|it| !has_address(it)) {
        let mut hosts = items(ingress, &["spec", "rules"]).filter_map(|rule| rule.str_at(&["host"]));
        if !hosts.any(|it| it == host) {
            continue;
        }
        let class = ingress.str_at(&["spec", "ingressClassName"]).unwrap_or("ingress");
        let waits = look.cluster.all("Service").iter().filter(|service| {
            let is_of_class = |name: &str| name.contains("ingress") || name.contains(class);
            service.str_at(&["spec", "type"]) == Some("LoadBalancer")
                && !has_address(service)
                && (is_of_class(service.name()) || is_of_class(service.namespace()))
        });
        found.extend(waits.map(|service| Object::from_live(service)));
        found.push(Object::from_live(ingress));
    }
    found
}

/// The Secret with the login of a solver, if a challenge says that it does not exist. Those of issuers for
/// the whole cluster lie where the certificate controller runs.
fn absent_login(look: &Look<'_>, issuer: &Object, reason: &str) -> Option<Finding> {
    const CONTROLLER: &str = "cert-manager";
    let absent = tiphys_cause::absent(reason).filter(|it| it.kind == "Secret" && it.key.is_none())?;
    let controllers = look.cluster.running(|workload| workload.name == CONTROLLER);
    let home = controllers.first().map_or(CONTROLLER, |it| it.namespace.as_str());
    let namespace = if issuer.namespace.is_empty() { home } else { &issuer.namespace };
    let secret = Object::new("Secret", namespace, &absent.name);
    if absent.name.is_empty() || look.cluster.live(&secret).is_some() {
        return None;
    }
    let summary =
        format!("{secret} does not exist, and {issuer} logs in with it where challenges are solved");
    let finding = Finding::new(Cause::ConfigMissing, secret.clone(), 0.92, summary)
        .remedy(format!("Make {secret}, or correct the solver of {issuer}."), &[])
        .suffers(issuer.clone(), "cannot solve challenges");
    Some(dependencies::upstream(look.cluster, &secret).into_iter().fold(finding, Finding::below))
}

/// What a resource belongs to, the nearest first.
fn owners(look: &Look<'_>, live: &Value) -> Vec<Object> {
    let mut owners: Vec<Object> = Vec::new();
    let mut object = Object::from_live(live);
    while owners.len() < 4 {
        let Some(owner) = look.cluster.live(&object).and_then(crate::cluster::controller) else { break };
        object = owner;
        owners.push(object.clone());
    }
    owners
}

/// A certificate whose request an approver has denied: it asks for what no policy allows.
fn not_approved(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let denied = condition(live, "Denied").filter(|it| it.str_at(&["status"]) == Some("True"))?;
    let request = Object::from_live(live);
    let certificate = owners(look, live).pop().unwrap_or_else(|| request.clone());
    let told = condition_text(denied);
    let summary = format!("no policy approves what {certificate} asks for: {told}");
    let policies = look.cluster.all("CertificateRequestPolicy").iter().map(|it| Object::from_live(it));
    let mut named = policies.filter(|policy| super::condition_words::names(&told, &policy.name));
    let finding = Finding::new(Cause::AdmitPolicy, certificate.clone(), 0.9, summary)
        .field("spec.dnsNames")
        .since(time(denied, &["lastTransitionTime"]))
        .evidence(format!("{request}, condition Denied"), told.clone())
        .remedy("Ask for what a policy allows, or change the policy.", &[request.kubectl("describe")])
        .suffers(request, "is denied");
    Some(match named.next() {
        Some(policy) => finding.evidence(policy.to_string(), "it does not allow the request"),
        None => finding,
    })
}

/// Whether words about one secret tell that its whole store cannot be used.
fn tells_of_store(words: &str) -> bool {
    let low = words.to_ascii_lowercase();
    let is_of_client =
        ["provider client", "create session", "is sealed", "store is not ready", "iam role must be"]
            .iter()
            .any(|word| low.contains(word));
    let is_of_store = low.contains("secretstore") && low.contains("is not ready");
    let is_unreachable = tiphys_cause::failed_calls(words)
        .iter()
        .any(|call| !matches!(call.failure, tiphys_cause::Failure::Status(400..=499)));
    is_of_client || is_of_store || is_unreachable
}

/// Whether words about one secret tell that the store answers, and has no such entry.
fn tells_of_entry(low: &str) -> bool {
    [
        "resourcenotfoundexception",
        "secretnotfound",
        "secret does not exist",
        "can't find the specified secret",
        "nosuchkey",
        "parameternotfound",
    ]
    .iter()
    .any(|word| low.contains(word))
}

/// Whether a store of secrets is there, and several secrets want something from it which are all red.
fn serves_nobody(look: &Look<'_>, store: &Object) -> bool {
    if look.cluster.live(store).is_none() {
        return false;
    }
    let is_wide = store.namespace.is_empty();
    let uses = |live: &Value| {
        let told = |key: &str| live.str_at(&["spec", "secretStoreRef", key]);
        let kind = told("kind").unwrap_or("SecretStore");
        told("name") == Some(store.name.as_str())
            && kind == store.kind
            && (is_wide || live.namespace() == store.namespace)
    };
    let mut users = 0;
    for live in ["ExternalSecret", "ClusterExternalSecret"].iter().flat_map(|kind| look.cluster.all(kind)) {
        if !uses(live) {
            continue;
        }
        users += 1;
        if !look.is_red(&Object::from_live(live)) {
            return false;
        }
    }
    users > 1
}

/// A certificate or a synchronized secret: who should make it comes first.
pub(super) fn child(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    if let Some(finding) = not_approved(look, live) {
        return Some(finding);
    }
    let references = dependencies::upstream(look.cluster, &object);
    let maker = references.iter().find(|it| it.kind.ends_with("Issuer") || it.kind.ends_with("SecretStore"));
    let words = complaint(live).map(condition_text).unwrap_or_default();
    let low = words.to_ascii_lowercase();
    if !object.kind.ends_with("Secret")
        && let Some(finding) = told_by_operator(look, live, &operators(look, live))
    {
        return Some(finding);
    }
    if let Some(maker) = maker
        && look.cluster.live(maker).is_none()
        && (look.cluster.has_kind(&maker.kind) || low.contains("not found"))
        && !look.cluster.case.objects.iter().any(|it| it.kind() == maker.kind && it.name() == maker.name)
    {
        let mut finding = finding_from_condition(
            live,
            Cause::OperatorReference,
            0.92,
            &format!("names {maker}, which does not exist"),
            "Make it, or correct the reference.",
        );
        // A request copies the reference of the certificate that it is for.
        if let Some(certificate) = owners(look, live).pop() {
            finding.summary = format!("{certificate} names {maker}, which does not exist");
            finding.object = certificate;
        }
        return Some(finding.suffers(object, "is not issued").suffers(maker.clone(), "does not exist"));
    }
    let is_secret = object.kind.ends_with("Secret");
    if ["owned by another", "already owned", "conflicting certificates"].iter().any(|word| low.contains(word))
    {
        return Some(finding_from_condition(
            live,
            Cause::OperatorTwoOwners,
            0.88,
            "is not the only one that makes its Secret",
            "Let one resource make the Secret.",
        ));
    }
    let denied =
        ["accessdenied", "403", "not authorized", "permission denied"].iter().any(|word| low.contains(word))
            || super::condition_words::is_denied(&words);
    let is_of_store = is_secret && maker.is_some() && tells_of_store(&words) && !tells_of_entry(&low);
    let has_maker = maker.is_some_and(|it| look.cluster.live(it).is_some());
    // Why an order does not end is told by the order.
    let is_order_known = !low.contains("from order") || look.cluster.has_kind("Order");
    // Why a certificate is not issued is told by its request, or by the log of who should make one.
    let is_request_known = look.cluster.has_kind("CertificateRequest")
        || object.kind != "Certificate"
        || is_heard(look, &operators(look, live));
    let store_words = maker.and_then(|it| look.cluster.live(it)).and_then(complaint).map(condition_text);
    let is_store_unseen = store_words.is_some_and(|words| rests_on_unseen(look, &words));
    let finding = if let Some(maker) = maker.filter(|_| is_of_store) {
        let mut finding = finding_from_condition(
            live,
            Cause::OperatorSecretStore,
            0.8,
            "cannot be read: its store does not work",
            "Correct the store: address, credentials, role, state.",
        );
        finding.object = maker.clone();
        finding.summary = format!("{maker} does not work: {words}");
        let finding = finding.suffers(object.clone(), "cannot be read from it");
        if is_store_unseen || rests_on_unseen(look, &words) { finding.not_known() } else { finding }
    } else if let Some(store) = maker.filter(|it| is_secret && denied && serves_nobody(look, it)) {
        let mut finding = finding_from_condition(
            live,
            Cause::OperatorCloudCredentials,
            0.85,
            "may not be read by the store's identity",
            "Give the store's identity the right to read its secrets.",
        );
        finding.object = store.clone();
        finding.summary = format!("the identity of {store} may read nothing from it: {words}");
        finding.suffers(object.clone(), "may not be read")
    } else if is_secret && denied {
        finding_from_condition(
            live,
            Cause::OperatorCloudCredentials,
            0.75,
            "may not be read by the store's identity",
            "Give the store's identity the right to read this secret.",
        )
    } else if is_secret {
        // That nothing was got from a store which is red, or that nobody heard, tells nothing of the entry.
        let is_told = ["not found", "does not exist", "no such", "not exist", "cannot find", "no secret"]
            .iter()
            .any(|word| low.contains(word));
        let is_store_red = maker.is_some_and(|it| look.is_red(it));
        let is_sure = (is_told || tells_of_entry(&low)) && !is_store_red;
        finding_from_condition(
            live,
            Cause::OperatorReference,
            if is_sure { 0.7 } else { 0.45 },
            "cannot be read from its store",
            "Make the entry in the store, or correct remoteRef.",
        )
    } else {
        finding_from_condition(
            live,
            Cause::OperatorIssuer,
            if has_maker && is_order_known && is_request_known { 0.6 } else { 0.45 },
            "is not issued",
            "Read its CertificateRequest, Order and Challenge.",
        )
        .shallow()
    };
    let finding = references.into_iter().fold(finding, Finding::below);
    let finding = look
        .cluster
        .owned(&object)
        .iter()
        .fold(finding, |finding, child| finding.below(Object::from_live(child)));
    Some(operators(look, live).into_iter().fold(finding, Finding::below))
}
