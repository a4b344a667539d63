//! Images that cannot be pulled. Faults of one registry that several workloads share are one.

use std::collections::BTreeMap;

use tiphys_cause::{Address, Cause, Failure, PullFault, image_parts, pull_fault};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    address_target::Target,
    cluster::{condition, condition_text, items, pods},
    finding::Finding,
    search_context::{Ill, Look},
};

/// Reasons by which a container waits for its image.
const REASONS: &[&str] = &[
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut shared: BTreeMap<(Cause, String), Finding> = BTreeMap::new();
    let mut found = Vec::new();
    for ill in &look.ill {
        if crate::causes::containers::mutated(look, ill).is_some() {
            continue;
        }
        let Some(Pull { finding, registry, image }) = pull(look, ill) else { continue };
        let what_is_shared = match finding.cause {
            Cause::ImageUnauthorized
            | Cause::ImageForbidden
            | Cause::ImageRegistryUnreachable
            | Cause::ImageRateLimited => registry,
            Cause::ImageNotFound | Cause::ImageInvalid | Cause::ImagePlatform => image,
            _ => {
                found.push(finding);
                continue;
            }
        };
        match shared.get_mut(&(finding.cause, what_is_shared.clone())) {
            Some(known) => {
                let summary = finding.summary.clone();
                known.absorb(finding, summary);
            }
            None => {
                shared.insert((finding.cause, what_is_shared), finding);
            }
        }
    }
    found.extend(shared.into_values());
    found
}

/// An image that cannot be pulled.
struct Pull {
    /// Why.
    finding: Finding,
    /// The host that it is pulled from.
    registry: String,
    /// The reference as it is written.
    image: String,
}

/// Why the image of a workload cannot be pulled.
fn pull(look: &Look<'_>, ill: &Ill<'_>) -> Option<Pull> {
    let waits = |pod: &Value| -> Option<(String, String, String)> {
        pods::statuses(pod).find_map(|status| {
            let (reason, message) = pods::waiting(status)?;
            let name = status.str_at(&["name"]).unwrap_or_default().to_owned();
            REASONS.contains(&reason).then(|| (name, reason.to_owned(), message.to_owned()))
        })
    };
    let (pod, (container, reason, message)) = ill.pods.iter().find_map(|pod| Some((*pod, waits(pod)?)))?;
    let image = pod
        .get("spec")
        .into_iter()
        .flat_map(pods::containers)
        .find(|it| it.str_at(&["name"]) == Some(container.as_str()))?
        .str_at(&["image"])?;
    let (registry, repository, tag) = image_parts(image);
    let mut words = vec![(format!("{}, container {container}", Object::from_live(pod)), message)];
    for pod in &ill.pods {
        let object = Object::from_live(pod);
        let events = look.cluster.events(&object).rev().filter(|event| {
            matches!(
                event.reason.as_str(),
                "Failed" | "FailedPull" | "InspectFailed" | "ErrImageNeverPull" | "BackOff"
            )
        });
        words.extend(events.map(|event| (format!("Event of {object}"), event.message.clone())));
    }
    let read: Option<(PullFault, &(String, String))> =
        words.iter().map(|told| (pull_fault(&told.1), told)).find(|(fault, _)| fault.cause.is_some());
    let (fault, told) = match &read {
        Some((fault, told)) => (fault.clone(), (*told).clone()),
        None => (PullFault { cause: None, is_ambiguous: false, status: None }, words[0].clone()),
    };
    let message = told.1;
    let by_reason = match reason.as_str() {
        "InvalidImageName" | "ErrImageNeverPull" => Some(Cause::ImageInvalid),
        _ => None,
    };
    let cause = by_reason.or(fault.cause);
    let confidence = match cause {
        Some(_) if fault.is_ambiguous => 0.7,
        Some(_) => 0.95,
        None => 0.4,
    };
    let cause = cause.unwrap_or(Cause::ImageNotFound);
    let is_untrusted = Failure::read(&message) == Some(Failure::Untrusted);
    let what = match cause {
        Cause::ImageNotFound => format!("{registry} has no {repository}:{tag}"),
        Cause::ImageUnauthorized if fault.is_ambiguous => {
            format!("{registry} has no {repository}, or serves it with credentials only")
        }
        Cause::ImageUnauthorized => {
            format!("{registry} does not serve {repository} without valid credentials (401)")
        }
        Cause::ImageForbidden => format!("{registry} refuses {repository} to these credentials (403)"),
        Cause::ImageRegistryUnreachable if is_untrusted => {
            format!("the nodes do not trust the certificate of {registry}")
        }
        Cause::ImageRegistryUnreachable => format!("{registry} cannot be reached"),
        Cause::ImageRateLimited => format!("{registry} limits the rate of pulls (429)"),
        Cause::ImagePlatform => format!("{image} is not built for the node's platform"),
        Cause::NodePressure => format!("the node of {} has no room for the image {image}", ill.workload),
        Cause::NodeRuntime => format!("the node of {} cannot unpack the image {image}", ill.workload),
        Cause::AdmitPolicy => {
            format!("the node runs signed images only, and {image} has no signature it trusts")
        }
        _ => format!("{image} is no image reference that can be used"),
    };
    let is_of_node = matches!(cause, Cause::NodePressure | Cause::NodeRuntime);
    let node = pod.str_at(&["spec", "nodeName"]).filter(|_| is_of_node);
    let object = node.map_or_else(|| ill.workload.clone(), |node| Object::new("Node", "", node));
    let mut finding = Finding::new(cause, object, confidence, what)
        .field(format!("spec.template.spec.containers[{container}].image"))
        .since(ill.since)
        .evidence(told.0, message.clone())
        .evidence(ill.workload.to_string(), format!("image: {image}"));
    for pod in &ill.pods {
        finding = finding.suffers(Object::from_live(pod), reason.clone());
    }
    if matches!(cause, Cause::ImageUnauthorized | Cause::ImageForbidden) {
        finding = secrets(look, pod, finding, &registry);
    }
    if cause == Cause::ImageRegistryUnreachable {
        finding = one_node(look, ill, finding);
        if crate::causes::operator::rests_on_unseen(look, &format!("https://{registry}/v2/")) {
            finding = finding.not_known();
        }
        // A registry may run in the cluster.
        let (host, port) = registry.split_once(':').unwrap_or((&registry, ""));
        let own = Address { scheme: String::new(), host: host.to_owned(), port: port.parse().ok() };
        let named = tiphys_cause::addresses(image).into_iter().chain(tiphys_cause::addresses(&message));
        for address in named.chain([own]) {
            if let Target::Service(service) = look.cluster.target(&address, ill.namespace()) {
                finding = finding.below(Object::from_live(service));
            }
            // Or behind a route of the cluster.
            let routes = crate::calls::routes_of(look.cluster, &address.host);
            if !routes.is_empty() && !look.cluster.knows_services() {
                finding = finding.not_known();
            }
            finding = routes.into_iter().fold(finding, Finding::below);
        }
    }
    let text = match cause {
        Cause::ImageNotFound => "Push the tag, or correct the image's name and tag.",
        Cause::ImageUnauthorized | Cause::ImageForbidden => {
            "Give the pod a pull secret for this registry that may read the repository."
        }
        Cause::ImageRegistryUnreachable if is_untrusted => {
            "Let the runtime of every node trust the CA of the registry (for containerd a file under /etc/containerd/certs.d)."
        }
        Cause::ImageRegistryUnreachable => {
            "Check the name, the proxy and the way from the nodes to the registry."
        }
        Cause::ImageRateLimited => "Pull with credentials, or through a cache.",
        Cause::AdmitPolicy => "Sign the image, or except its registry from the node's signature policy.",
        Cause::NodePressure => "Free the node's disk of unused images, or give it a larger one.",
        Cause::NodeRuntime => "Drain the node, and let its runtime make its store of images anew.",
        Cause::ImagePlatform => {
            "Build the image for the platform of the nodes, or select nodes of its platform."
        }
        _ => "Correct the image reference.",
    };
    let commands = [format!("kubectl -n {} describe pod {}", pod.namespace(), pod.name())];
    Some(Pull { finding: finding.remedy(text, &commands), registry, image: image.to_owned() })
}

/// The pull secrets that a pod has or has not.
fn secrets(look: &Look<'_>, pod: &Value, mut finding: Finding, registry: &str) -> Finding {
    let account = pod.str_at(&["spec", "serviceAccountName"]).unwrap_or("default");
    let account = look.cluster.get("ServiceAccount", pod.namespace(), account);
    let own = items(pod, &["spec", "imagePullSecrets"]);
    let names: Vec<&str> = own
        .chain(account.into_iter().flat_map(|it| items(it, &["imagePullSecrets"])))
        .filter_map(|it| it.str_at(&["name"]))
        .collect();
    if names.is_empty() {
        return finding.evidence(
            Object::from_live(pod).to_string(),
            "neither the pod nor its service account has a pull secret",
        );
    }
    for name in names {
        let object = Object::new("Secret", pod.namespace(), name);
        finding = finding.below(object.clone());
        match look.cluster.live(&object) {
            None if look.cluster.has_kind("Secret") => {
                finding = finding.evidence(object.to_string(), "the pull secret does not exist");
            }
            None => {}
            Some(secret) => {
                let hosts = hosts(secret);
                if !hosts.is_empty() {
                    let fits = hosts.iter().any(|host| {
                        host.contains(registry) || registry == "docker.io" && host.contains("docker.io")
                    });
                    let text = if fits { "it is for this registry" } else { "it is for another registry" };
                    finding =
                        finding.evidence(object.to_string(), format!("hosts: {}; {text}", hosts.join(", ")));
                }
            }
        }
    }
    finding
}

/// The registries that a pull secret is for; its credentials are not looked at.
fn hosts(secret: &Value) -> Vec<String> {
    use base64::Engine as _;
    let Some(text) = secret.str_at(&["data", ".dockerconfigjson"]) else { return Vec::new() };
    let decoded = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    let config: Value = serde_json::from_slice(&decoded).unwrap_or_default();
    config
        .get("auths")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(host, _)| host.clone())
        .collect()
}

/// If only the pods of one node cannot reach any registry, the node is to blame.
fn one_node(look: &Look<'_>, ill: &Ill<'_>, finding: Finding) -> Finding {
    // Kubelets pull without the network of pods: its plugin may wait for the very image.
    let lacks_plugin = |node: &str| {
        let ready = look.cluster.get("Node", "", node).and_then(|node| condition(node, "Ready"));
        ready.is_some_and(|ready| super::node::is_of_network(&condition_text(ready)))
    };
    let nodes: std::collections::BTreeSet<&str> =
        ill.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"])).collect();
    match nodes.len() {
        1 => nodes.iter().filter(|node| !lacks_plugin(node)).fold(finding, |finding, node| {
            finding
                .below(Object::new("Node", "", node))
                .evidence(format!("Node {node}"), "all pods that cannot pull run here")
        }),
        _ => finding,
    }
}
