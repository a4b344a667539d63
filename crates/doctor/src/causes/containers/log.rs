//! What the log of an ill workload blames.

use tiphys_cause::{Cause, Complaint};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    address_target::Target,
    calls::{self, Caller},
    causes::admission,
    cluster::{conditions, items, pods},
    finding::Finding,
    log_evidence::Fact,
    pod_addresses::wires,
    search_context::{Ill, Look},
};

/// What a line weighs with which a program ends.
const ENDS: i32 = 105;

/// The surest of what the log tells.
pub(super) fn from_facts<'a>(look: &Look<'a>, ill: &Ill<'a>) -> Option<Finding> {
    let caller = Caller::of_ill(look, ill);
    let mut best: Option<(i32, Finding)> = None;
    let weightiest = ill.facts.first().map_or(0, |fact| fact.weight);
    for fact in &ill.facts {
        // A line far lighter than the weightiest is noise beside it.
        if weightiest - fact.weight > 45 {
            break;
        }
        let found = match &fact.fact {
            Fact::Forbidden(forbidden) => {
                crate::causes::api::forbidden_fault(look, &caller, forbidden, &fact.source)
            }
            Fact::Call(call) => calls::explain(look, &caller, call, &fact.source),
            Fact::Complaint(complaint) => complaint_fault(look, ill, complaint, &fact.source),
            Fact::Refused(_) => {
                let refused = admission::Refused {
                    writer: ill.workload.clone(),
                    written: None,
                    source: fact.source.clone(),
                    message: fact.line.clone(),
                };
                admission::fault(look, &refused)
            }
            // What the cluster's DNS refuses has a cause of its own.
            Fact::Value(_) if crate::causes::dns::is_server(look, &ill.workload) => None,
            // Much is `not supported`: only a value that is quoted, or called one, is a setting.
            Fact::Value(refused) if refused.words.is_empty() && !tells_of_setting(&refused.line) => None,
            Fact::Value(refused) => {
                let finding = crate::causes::config::refused_value(look, ill, refused, &fact.source);
                // Words that lead back to no setting count only where the program ends with them.
                let is_last_word = fact.weight >= LAST && speaks_of_variable(&fact.line);
                Some(finding)
                    .filter(|finding| finding.confidence > 0.7 || fact.weight >= ENDS || is_last_word)
            }
        };
        let Some(finding) = found else { continue };
        // Words that lead back to no setting yield to what a line tells surely.
        let is_weak = |known: &Finding| !known.is_asserted() || known.confidence + 0.2 < finding.confidence;
        let is_better =
            best.as_ref().is_none_or(|(_, known)| is_weak(known) && finding.confidence > known.confidence);
        if is_better {
            best = Some((fact.weight, finding));
        } else if let Some((_, known)) = &mut best
            && !known.is_asserted()
        {
            for object in finding.upstream {
                *known = known.clone().below(object);
            }
        }
    }
    best.map(|(_, finding)| finding)
}

/// A line that weighs as much stands at the end of the log, and is no warning.
const LAST: i32 = 100;

/// Whether a line calls what it misses a variable of the environment.
fn speaks_of_variable(line: &str) -> bool {
    let low = line.to_ascii_lowercase();
    low.contains("environment variable") || low.contains("env var")
}

/// Whether a line speaks of a setting at all.
fn tells_of_setting(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "config",
        "setting",
        "option",
        "parameter",
        "value",
        "env",
        "flag",
        "variable",
        "level",
        "mode",
        "url",
        "format",
        "scheme",
        "driver",
        "type",
        "property",
    ];
    let low = line.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// The nodes under a program that cannot write, of which a problem detector says that nobody can.
fn read_only_nodes(look: &Look<'_>, ill: &Ill<'_>, low: &str) -> Vec<Object> {
    if !low.contains("read-only file system") && !low.contains("erofs") {
        return Vec::new();
    }
    let nodes = ill.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"]));
    let is_read_only = |node: &&str| {
        let live = look.cluster.get("Node", "", node);
        live.into_iter().flat_map(conditions).any(|it| {
            it.str_at(&["status"]) == Some("True")
                && it.str_at(&["type"]).is_some_and(|name| name.to_ascii_lowercase().contains("readonly"))
        })
    };
    nodes.filter(is_read_only).map(|node| Object::new("Node", "", node)).collect()
}

/// What a program says of itself.
fn complaint_fault<'a>(
    look: &Look<'a>,
    ill: &Ill<'a>,
    complaint: &Complaint,
    source: &str,
) -> Option<Finding> {
    let subject =
        if complaint.subject.is_empty() { String::new() } else { format!(": {}", complaint.subject) };
    let low = complaint.line.to_ascii_lowercase();
    let new = |summary: String, remedy: &str| {
        Finding::new(complaint.cause, ill.workload.clone(), 0.88, summary)
            .evidence(source, &complaint.line)
            .remedy(remedy, &[])
    };
    let finding = match complaint.cause {
        Cause::ConfigCredentials => crate::causes::config::credentials(look, ill, complaint, source),
        Cause::AppBackendState => backend_state(look, ill, complaint, source),
        Cause::RunCommand => patched(
            look,
            ill,
            new(
                format!(
                    "{} is started with a command or arguments that it does not know{subject}",
                    ill.workload
                ),
                "Correct command and args together: one replaces the entrypoint, the other its arguments.",
            )
            .field("spec.template.spec.containers.command"),
        ),
        Cause::RunPermission
            if !complaint.line.contains('/')
                && !low.contains("bind")
                && !low.contains("socket")
                && !low.contains("chown")
                && !low.contains("open")
                && !low.contains("setting key")
                && !low.contains("must be root")
                && !low.contains("netlink")
                && !low.contains("iptables") =>
        {
            return None;
        }
        Cause::RunPermission => read_only_nodes(look, ill, &low).into_iter().fold(
            new(
                format!("{} may not touch a file or a port{subject}", ill.workload),
                "Set fsGroup or runAsUser to what owns the files, or use a port above 1023.",
            )
            .field("spec.template.spec.securityContext"),
            Finding::below,
        ),
        Cause::RunDiskFull => full_disk(
            look,
            ill,
            new(format!("the disk of {} is full{subject}", ill.workload), "Free space, or grow the claim."),
            complaint,
        ),
        Cause::RunPortConflict => new(
            format!("a port that {} listens on is taken{subject}", ill.workload),
            if ill.spec().at(&["hostNetwork"]).and_then(Value::as_bool) == Some(true) {
                "Free the port on the node, or let the program listen on another one: it is on the node's network."
            } else {
                "Give each container of the pod a port of its own."
            },
        )
        .field("spec.template.spec.containers.ports"),
        Cause::ApiOverload => {
            return crate::causes::api::overload(look, &Caller::of_ill(look, ill), &complaint.line);
        }
        Cause::ControlEtcd => crate::causes::control_plane::etcd_fault(look, source, &complaint.line),
        Cause::OperatorCloudCredentials => with_cloud_identity(
            look,
            ill,
            new(
                format!("the cloud refuses the credentials of {}", ill.workload),
                "Give the program's identity the rights that the line names.",
            ),
        ),
        Cause::NodePressure | Cause::NodeRuntime => node_lacks(look, ill, complaint, source)?,
        Cause::ImagePlatform => new(
            format!("the image of {} is of another platform", ill.workload),
            "Build the image for the platform of the nodes.",
        ),
        _ => return None,
    };
    Some(finding)
}

/// Annotations by which a ServiceAccount names who its pods are in a cloud.
const CLOUD_IDENTITIES: &[&str] =
    &["eks.amazonaws.com/role-arn", "iam.gke.io/gcp-service-account", "azure.workload.identity/client-id"];

/// Addresses at which agents of a node hand out identities of the cloud, and parts of the agents' names.
const AGENTS_OF_IDENTITIES: &[(&str, &str)] = &[
    ("169.254.170.23", "pod-identity-agent"),
    ("169.254.169.254", "gke-metadata-server"),
    ("169.254.169.254", "kube2iam"),
    ("169.254.169.254", "kiam-agent"),
];

/// A finding with who the workload is in its cloud, as its ServiceAccount says.
fn with_cloud_identity(look: &Look<'_>, ill: &Ill<'_>, finding: Finding) -> Finding {
    // Who hands out identities on the node may not answer.
    let told = finding.evidence.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
    let agents = look.cluster.all("DaemonSet").iter().filter(|set| {
        AGENTS_OF_IDENTITIES.iter().any(|(address, name)| told.contains(address) && set.name().contains(name))
    });
    let finding = agents.map(|set| Object::from_live(set)).fold(finding, Finding::below);
    let name = ill.spec().str_at(&["serviceAccountName"]).unwrap_or("default");
    let Some(account) = look.cluster.get("ServiceAccount", ill.namespace(), name) else { return finding };
    let source = Object::from_live(account).to_string();
    CLOUD_IDENTITIES.iter().fold(finding, |finding, key| match account.annotation(key) {
        Some(identity) => finding.evidence(&source, format!("{key}: {identity}")),
        None => finding,
    })
}

/// What the node of a program lacks: a limit that all its programs share is reached, or a module of the
/// kernel is not there. Who carries the network of others is told by what no longer works without it.
fn node_lacks(look: &Look<'_>, ill: &Ill<'_>, complaint: &Complaint, source: &str) -> Option<Finding> {
    let says = |pod: &&&Value| {
        let logs = look.cluster.logs(pod.namespace(), pod.name());
        logs.iter().any(|log| log.text.contains(&complaint.line))
    };
    let pod = ill.pods.iter().find(says).or(ill.pods.first())?;
    let node = Object::new("Node", "", pod.str_at(&["spec", "nodeName"])?);
    let is_module = complaint.cause == Cause::NodeRuntime;
    let name = ill.workload.name.as_str();
    let (cause, object) = match () {
        () if is_module && name.contains("kube-proxy") => (Cause::NetProxyDown, ill.workload.clone()),
        () if is_module && crate::causes::pod_network::PLUGINS.contains(&name) => {
            (Cause::NetCniDown, ill.workload.clone())
        }
        () => (complaint.cause, node.clone()),
    };
    let (what, remedy) = if is_module {
        (
            format!("the kernel of {node} lacks a module that {} needs", ill.workload),
            "Load the module on the node (modprobe, /etc/modules-load.d), or install the kernel's extra modules.",
        )
    } else {
        (
            format!("a limit that all programs of {node} share is reached, as {} says", ill.workload),
            "Raise the limit on the node with sysctl (fs.inotify.max_user_instances and max_user_watches, fs.file-max, net.netfilter.nf_conntrack_max).",
        )
    };
    let finding = Finding::new(cause, object, 0.86, what)
        .evidence(source, &complaint.line)
        .evidence(Object::from_live(pod).to_string(), format!("runs on {node}"))
        .remedy(remedy, &[format!("kubectl debug node/{} -it --image=busybox", node.name)]);
    // Others on the node say it in fewer words.
    let says_so = |pod: &&&Value| {
        let logs = look.cluster.logs(pod.namespace(), pod.name());
        pod.str_at(&["spec", "nodeName"]) == Some(&node.name)
            && logs.iter().any(|log| log.text.to_ascii_lowercase().contains("too many open files"))
    };
    let others = look.ill.iter().filter(|other| !is_module && other.workload != ill.workload);
    let finding = others.fold(finding, |finding, other| match other.pods.iter().find(says_so) {
        Some(pod) => finding
            .suffers(other.workload.clone(), "reaches the limit, too")
            .suffers(Object::from_live(pod), "reaches the limit, too"),
        None => finding,
    });
    Some(finding.since(ill.since))
}

/// Whether somebody else than the owner wrote the command, as the managed fields tell.
pub(super) fn patched(look: &Look<'_>, ill: &Ill<'_>, finding: Finding) -> Finding {
    let Some(live) = look.cluster.live(&ill.workload) else { return finding };
    let writers = items(live, &["metadata", "managedFields"]).filter(|entry| {
        let text = entry.get("fieldsV1").map(ToString::to_string).unwrap_or_default();
        text.contains("f:command") || text.contains("f:args")
    });
    let told = writers.map(|entry| {
        format!(
            "{} wrote {} at {}",
            entry.str_at(&["manager"]).unwrap_or_default(),
            if entry.to_string().contains("f:command") { "command" } else { "args" },
            entry.str_at(&["time"]).unwrap_or_default()
        )
    });
    let told: Vec<String> = told.collect();
    let container =
        items(ill.spec(), &["containers"]).find(|it| it.get("command").is_some() || it.get("args").is_some());
    let finding = if told.is_empty() {
        finding
    } else {
        finding.evidence(format!("{}, managedFields", ill.workload), told.join("; "))
    };
    match container {
        Some(container) => {
            let shown = |key: &str| container.get(key).map_or_else(|| "none".to_owned(), ToString::to_string);
            finding.evidence(
                ill.workload.to_string(),
                format!(
                    "image {}, command {}, args {}",
                    container.str_at(&["image"]).unwrap_or_default(),
                    shown("command"),
                    shown("args")
                ),
            )
        }
        None => finding,
    }
}

/// The claim that is full, if the path tells.
fn full_disk(look: &Look<'_>, ill: &Ill<'_>, mut finding: Finding, complaint: &Complaint) -> Finding {
    for mount in pods::containers(ill.spec()).flat_map(|container| items(container, &["volumeMounts"])) {
        let path = mount.str_at(&["mountPath"]).unwrap_or("/");
        let is_meant = complaint.line.contains(path) && path.len() > 1;
        let volume = items(ill.spec(), &["volumes"]).find(|volume| volume.get("name") == mount.get("name"));
        let claim = volume.and_then(|volume| volume.str_at(&["persistentVolumeClaim", "claimName"]));
        // A claim that is not given its new size is why the disk stays full.
        if let Some(claim) = claim {
            finding = finding.below(Object::new("PersistentVolumeClaim", ill.namespace(), claim));
        }
        if let Some(claim) = claim.filter(|_| is_meant) {
            let object = Object::new("PersistentVolumeClaim", ill.namespace(), claim);
            let size = look
                .cluster
                .live(&object)
                .and_then(|live| live.str_at(&["status", "capacity", "storage"]))
                .unwrap_or("unknown");
            finding = finding.evidence(object.to_string(), format!("mounted at {path}, capacity {size}"));
        }
    }
    finding
}

/// The full disk of a dependency that serves in part only, as its own log says.
fn full_backend(look: &Look<'_>, backend: &Object) -> Option<Finding> {
    let members = pods::of_workload(look.cluster, backend);
    let logs = members.iter().flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
    let (source, line) = logs.into_iter().find_map(|log| {
        let full =
            |line: &&str| tiphys_cause::complaints(line).iter().any(|it| it.cause == Cause::RunDiskFull);
        Some((log.source(), log.last_lines().find(full)?.to_owned()))
    })?;
    let finding =
        Finding::new(Cause::RunDiskFull, backend.clone(), 0.9, format!("the disk of {backend} is full"))
            .evidence(source, line)
            .remedy("Free space, or grow the claim.", &[format!("kubectl -n {} get pvc", backend.namespace)]);
    Some(claims_of(&members).into_iter().fold(finding, Finding::below))
}

/// The claims that pods mount.
fn claims_of(members: &[&Value]) -> Vec<Object> {
    let volumes = members.iter().flat_map(|pod| items(pod, &["spec", "volumes"]).map(move |it| (*pod, it)));
    let claims =
        volumes.filter_map(|(pod, it)| Some((pod, it.str_at(&["persistentVolumeClaim", "claimName"])?)));
    claims.map(|(pod, name)| Object::new("PersistentVolumeClaim", pod.namespace(), name)).collect()
}

/// Words in the values of labels by which operators of databases mark who follows, and who leads.
const FOLLOWS: &[&str] = &["replica", "standby", "secondary", "slave", "follower"];
const LEADS: &[&str] = &["primary", "master", "leader"];

/// A Service that callers write to, and whose selector takes those only that follow.
fn leads_to_replicas(look: &Look<'_>, service: &Value, words: &str) -> Option<Finding> {
    if !["read-only", "read only", "readonly", "not master", "not primary"]
        .iter()
        .any(|it| words.contains(it))
    {
        return None;
    }
    let selector = service.at(&["spec", "selector"])?.as_object()?;
    let (key, value) =
        selector.iter().find(|(_, value)| value.as_str().is_some_and(|it| FOLLOWS.contains(&it)))?;
    let leader = look
        .cluster
        .pods_in(service.namespace())
        .iter()
        .find(|pod| pod.label(key).is_some_and(|role| LEADS.contains(&role)) && pods::is_ready(pod))?;
    let object = Object::from_live(service);
    let value = value.as_str().unwrap_or_default();
    let role = leader.label(key).unwrap_or_default();
    let leader = Object::from_live(leader);
    let patch = tiphys_value::json!({"spec": {"selector": {key.clone(): role}}});
    Some(
        Finding::new(
            Cause::ServiceSelector,
            object.clone(),
            0.85,
            format!("{object} leads to pods with {key}={value} only, which take no writes; {leader} does"),
        )
        .field("spec.selector")
        .evidence(object.to_string(), format!("selector {key}: {value}"))
        .evidence(leader.to_string(), format!("label {key}: {role}"))
        .remedy(
            format!("Let the selector ask for {key}={role}, or call the Service of the one that leads."),
            &[format!("kubectl -n {} get pods -L {key}", object.namespace)],
        )
        .patch(patch),
    )
}

/// A dependency that says that it is in a bad state.
fn backend_state<'a>(look: &Look<'a>, ill: &Ill<'a>, complaint: &Complaint, source: &str) -> Finding {
    let caller = Caller::of_ill(look, ill);
    let mut named: Vec<_> = tiphys_cause::addresses(&complaint.line);
    named.extend(wires(&caller.settings).into_iter().map(|(address, _)| address));
    let words = complaint.line.to_ascii_lowercase();
    let services: Vec<&Value> = named
        .iter()
        .filter_map(|address| match look.cluster.target(address, ill.namespace()) {
            Target::Service(service) => Some(service),
            _ => None,
        })
        .collect();
    let targets = || named.iter().map(|address| look.cluster.target(address, ill.namespace()));
    let is_of = |service: &&&Value| {
        let kinds: [(&str, &[&str]); 8] = [
            (
                "postgres",
                &["clients already", "connection slots", "database system", "read-only transaction"],
            ),
            ("mysql", &["too many connections", "--read-only"]),
            (
                "redis",
                &[
                    "redis",
                    "oom command",
                    "readonly you",
                    "clusterdown",
                    "masterdown",
                    "max number of clients",
                ],
            ),
            ("vault", &["sealed"]),
            ("kafka", &["leader", "replicas"]),
            ("mongo", &["primary", "master"]),
            ("elastic", &["cluster_block", "index read-only", "flood"]),
            ("rabbit", &["alarm"]),
        ];
        kinds.iter().any(|(name, said)| {
            service.to_string().to_ascii_lowercase().contains(name)
                && said.iter().any(|word| words.contains(word))
        })
    };
    let service = services.iter().find(is_of).or(services.first());
    let backend = service.map(|service| {
        let pods = look.cluster.pods_of(service);
        pods.first().map_or_else(|| Object::from_live(service), |pod| look.cluster.workload(pod))
    });
    // A member may be called by its own name.
    let member = || {
        targets().find_map(|target| match target {
            Target::Pod(pod) => Some(look.cluster.workload(pod)),
            _ => None,
        })
    };
    let backend = backend.or_else(member);
    if let Some(full) = backend.as_ref().and_then(|backend| full_backend(look, backend)) {
        return caller.suffers(full.evidence(source, &complaint.line), "is not served");
    }
    if let Some(finding) = service.and_then(|service| leads_to_replicas(look, service, &words)) {
        return caller.suffers(finding.evidence(source, &complaint.line), "may not write there");
    }
    let object = backend.clone().unwrap_or_else(|| ill.workload.clone());
    let summary = match &backend {
        Some(_) => format!("{object} is in a state in which it does not serve {}", ill.workload),
        None => format!("{} or what it depends on is in a state in which it does not serve", ill.workload),
    };
    // Whom the program calls is known only where it was saved.
    let calls_unseen = || targets().any(|target| matches!(target, Target::Unknown | Target::Absent { .. }));
    let is_unseen = backend.is_none() && (!look.cluster.knows_services() || calls_unseen());
    let finding = Finding::new(Cause::AppBackendState, object.clone(), 0.85, summary)
        .evidence(source, &complaint.line)
        .remedy("Bring the dependency back: free its connections, unseal it, or give it a leader.", &[]);
    let finding = if is_unseen { finding.not_known() } else { finding };
    // Members that wait for one which never came tell only that it is not there.
    let lacks_member = object == ill.workload
        && ill
            .pods
            .iter()
            .any(|pod| pods::statuses(pod).all(|it| pods::ended(it).is_none() && !has_begun(it)));
    let finding = if lacks_member { finding.shallow() } else { finding };
    let finding = match service {
        Some(service) if look.is_ill_behind(service) => finding.below(Object::from_live(service)),
        _ => finding,
    };
    caller.suffers(finding, "is not served")
}

/// Whether a container runs, or did.
fn has_begun(status: &Value) -> bool {
    status.at(&["state", "running"]).is_some() || status.at(&["lastState", "terminated"]).is_some()
}
