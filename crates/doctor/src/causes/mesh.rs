//! Service meshes: mutual TLS that one side does not speak, and policies that refuse the caller.

use tiphys_cause::{Cause, FailedCall, Failure};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    calls::Caller,
    cluster::{items, pods, selector},
    finding::Finding,
    search_context::Look,
};

/// What a mesh does to a call of a Service.
pub(crate) fn call_fault<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    service: &Value,
    ready: &[&Value],
) -> Option<Finding> {
    match call.failure {
        Failure::Reset | Failure::Plaintext | Failure::Untrusted | Failure::Status(503) => {
            mutual(look, caller, call, service, ready)
        }
        Failure::MeshDenied | Failure::Status(403) => authorization(look, caller, service, ready),
        _ => None,
    }
}

/// Whether a pod has the mesh's proxy, or its node does the same for it.
fn has_proxy(look: &Look<'_>, pod: &Value) -> bool {
    let namespace = look.cluster.get("Namespace", "", pod.namespace());
    let is_ambient = namespace.and_then(|it| it.label("istio.io/dataplane-mode")) == Some("ambient")
        && pod.label("istio.io/dataplane-mode") != Some("none");
    let mut containers = pod.get("spec").into_iter().flat_map(pods::containers);
    is_ambient || containers.any(|it| matches!(it.str_at(&["name"]), Some("istio-proxy" | "linkerd-proxy")))
}

/// The policy that demands mutual TLS of a pod: its own, its namespace's, or the mesh's.
fn strict<'a>(look: &Look<'a>, pod: &Value) -> Option<&'a Value> {
    let all = look.cluster.all("PeerAuthentication");
    let own = all.iter().find(|it| {
        it.namespace() == pod.namespace()
            && it
                .at(&["spec", "selector"])
                .is_some_and(|wanted| selector::matches(wanted, selector::labels(pod)))
    });
    let of_namespace =
        all.iter().find(|it| it.namespace() == pod.namespace() && it.at(&["spec", "selector"]).is_none());
    let of_mesh =
        all.iter().find(|it| it.namespace() == "istio-system" && it.at(&["spec", "selector"]).is_none());
    let found = own.or(of_namespace).or(of_mesh)?;
    (found.str_at(&["spec", "mtls", "mode"]) == Some("STRICT")).then_some(*found)
}

fn mutual<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    service: &Value,
    ready: &[&Value],
) -> Option<Finding> {
    let (pod, client) = (ready.first()?, caller.pods.first()?);
    let host = |rule: &&&Value| {
        let host = rule.str_at(&["spec", "host"]).unwrap_or_default();
        host == service.name()
            || host.starts_with(&format!("{}.{}", service.name(), service.namespace()))
            || host.starts_with(&format!("*.{}.", service.namespace()))
    };
    let rule = look.cluster.all("DestinationRule").iter().find(host);
    let mode = rule.and_then(|rule| rule.str_at(&["spec", "trafficPolicy", "tls", "mode"]));
    let policy = strict(look, pod);
    let target = Object::from_live(service);
    if let (Some(rule), Some("DISABLE" | "SIMPLE"), Some(policy)) = (rule, mode, policy) {
        let object = Object::from_live(rule);
        return Some(
            Finding::new(
                Cause::MeshMtls,
                object.clone(),
                0.92,
                format!(
                    "{object} calls {target} without mutual TLS, which {} demands",
                    Object::from_live(policy)
                ),
            )
            .field("spec.trafficPolicy.tls.mode")
            .remedy("Set tls.mode: ISTIO_MUTUAL.", &[]),
        );
    }
    let is_refused = matches!(call.failure, Failure::Untrusted | Failure::Plaintext);
    if let (Some(rule), Some("SIMPLE" | "MUTUAL")) = (rule, mode)
        && is_refused
        && has_proxy(look, pod)
    {
        let object = Object::from_live(rule);
        return Some(
            Finding::new(
                Cause::MeshMtls,
                object.clone(),
                0.85,
                format!("{object} calls {target} with TLS of its own, and the mesh's proxy answers there"),
            )
            .field("spec.trafficPolicy.tls.mode")
            .evidence(object.to_string(), format!("tls.mode: {}", mode.unwrap_or_default()))
            .remedy("Set tls.mode: ISTIO_MUTUAL, or take the rule away.", &[]),
        );
    }
    if mode == Some("ISTIO_MUTUAL") && !has_proxy(look, pod) {
        let object = Object::from_live(rule?);
        return Some(
            Finding::new(
                Cause::MeshMtls,
                object.clone(),
                0.9,
                format!("{object} calls {target} with mutual TLS, and its pods have no proxy"),
            )
            .remedy("Inject the proxy into the server, or take the rule away.", &[]),
        );
    }
    let policy = policy.filter(|_| !has_proxy(look, client))?;
    let object = Object::from_live(policy);
    Some(
        Finding::new(
            Cause::MeshMtls,
            object.clone(),
            0.93,
            format!(
                "{object} demands mutual TLS of {target}, and {} has no proxy that speaks it",
                caller.workload
            ),
        )
        .field("spec.mtls.mode")
        .evidence(object.to_string(), "mode: STRICT")
        .evidence(caller.workload.to_string(), "no sidecar, and its namespace is not ambient")
        .remedy("Inject the proxy into the caller, or set mode: PERMISSIVE for this port.", &[]),
    )
}

fn authorization<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    service: &Value,
    ready: &[&Value],
) -> Option<Finding> {
    let pod = ready.first()?;
    let selects = |policy: &&&Value| {
        let is_near = policy.namespace() == pod.namespace() || policy.namespace() == "istio-system";
        let by_label = policy
            .at(&["spec", "selector"])
            .is_none_or(|wanted| selector::matches(wanted, selector::labels(pod)));
        let by_reference = items(policy, &["spec", "targetRefs"]).next().is_none()
            || items(policy, &["spec", "targetRefs"]).any(|it| it.str_at(&["name"]) == Some(service.name()));
        is_near && by_label && by_reference
    };
    let mut policies: Vec<&Value> =
        look.cluster.all("AuthorizationPolicy").iter().filter(selects).copied().collect();
    policies.sort_by_key(|policy| {
        let denies = policy.str_at(&["spec", "action"]) == Some("DENY");
        (
            std::cmp::Reverse(denies),
            std::cmp::Reverse(policy.namespace() == pod.namespace()),
            std::cmp::Reverse(crate::policy::newest_change(policy)),
        )
    });
    // A policy that names the caller does not refuse it.
    let client = caller.pods.first()?;
    let account = format!(
        "ns/{}/sa/{}",
        client.namespace(),
        client.str_at(&["spec", "serviceAccountName"]).unwrap_or("default")
    );
    let policy = policies.iter().find(|policy| {
        let text = policy.get("spec").map(ToString::to_string).unwrap_or_default();
        let denies = policy.str_at(&["spec", "action"]) == Some("DENY");
        denies || !text.contains(&account)
    })?;
    let object = Object::from_live(policy);
    Some(
        Finding::new(
            Cause::MeshAuthorization,
            object.clone(),
            0.92,
            format!("{object} does not let {} call {}", caller.workload, Object::from_live(service)),
        )
        .field("spec.rules")
        .evidence(object.to_string(), policy.get("spec").map(ToString::to_string).unwrap_or_default())
        .evidence(caller.workload.to_string(), format!("its identity is {account}"))
        .remedy(format!("Add a rule with the principal cluster.local/{account}."), &[]),
    )
}
