//! Claims and volumes: no class, no volume, a driver that does not work, volumes that hang on another node.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cause::{Address, Cause, absent, mount_fault};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Event, Object,
    address_target::Target,
    causes::{
        admission::{Refused, fault},
        operator::is_custom,
    },
    cluster::{Cluster, items, pods, quantity, selector},
    dependencies::{data_source, drivers},
    finding::Finding,
    search_context::{Ill, Look},
    symptoms::mounts,
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = look
        .cluster
        .all("PersistentVolumeClaim")
        .iter()
        .filter_map(|claim| claim_fault(look, claim))
        .collect();
    let denied = denied_drivers(look, &found);
    found.extend(denied);
    found.extend(look.cluster.all("PersistentVolume").iter().filter_map(|volume| undeleted(look, volume)));
    let mounts: Vec<Finding> = look.ill.iter().filter_map(|ill| mount(look, ill)).collect();
    let nodes = refused_nodes(look, &mounts);
    found.extend(mounts);
    found.extend(nodes);
    found.extend(look.ill.iter().filter_map(|ill| foreign(look, ill)));
    found
}

/// The driver of a claim, and the words by which the cloud does not let it make the volume.
fn denial<'a>(look: &Look<'a>, claim: &Object) -> Option<(String, &'a Event)> {
    let event = look.cluster.events(claim).rfind(|event| event.reason == "ProvisioningFailed")?;
    let class = look.cluster.live(claim)?.str_at(&["spec", "storageClassName"])?;
    let driver = look.cluster.get("StorageClass", "", class)?.str_at(&["provisioner"])?;
    super::service::is_denied_by_cloud(&event.message).then(|| (driver.to_owned(), event))
}

/// The controllers of drivers that may make no volumes: several claims wait for each.
fn denied_drivers(look: &Look<'_>, found: &[Finding]) -> Vec<Finding> {
    let mut waiting: BTreeMap<String, Vec<(Object, &Event)>> = BTreeMap::new();
    for finding in found.iter().filter(|it| it.cause == Cause::VolumeProvisioner) {
        if let Some((driver, event)) = denial(look, &finding.object) {
            waiting.entry(driver).or_default().push((finding.object.clone(), event));
        }
    }
    let several = waiting.into_iter().filter(|(_, claims)| claims.len() > 1);
    let denied = several.filter_map(|(driver, claims)| {
        let mut workloads = drivers(look.cluster, &driver).into_iter();
        let controller = workloads.find(|it| matches!(it.kind.as_str(), "Deployment" | "StatefulSet"))?;
        let summary =
            format!("the cloud does not let {controller} make volumes: its identity lacks the right");
        let remedy =
            "Give its identity (role, trust, workload identity) the rights that the cloud's words name.";
        let finding = Finding::new(Cause::VolumeProvisioner, controller, 0.9, summary).remedy(remedy, &[]);
        Some(claims.into_iter().fold(finding, |finding, (claim, event)| {
            let source = format!("Event of {claim}");
            finding.evidence(source, event.message.clone()).suffers(claim, "gets no volume")
        }))
    });
    denied.collect()
}

/// The words of a failed mount without what differs from one volume to the next.
fn words_of_mount(text: &str) -> String {
    let is_plain = |word: &&str| {
        !word.contains(['/', '"']) && !word.chars().any(|c| c.is_ascii_digit()) || word.starts_with('(')
    };
    text.split_whitespace().filter(is_plain).collect::<Vec<_>>().join(" ")
}

/// Nodes on which several volumes of one driver cannot be mounted, all for the same reason, while the driver
/// serves other nodes: the storage refuses the node, and not a volume.
fn refused_nodes(look: &Look<'_>, mounts: &[Finding]) -> Vec<Finding> {
    let mut groups: BTreeMap<(String, String, String), Vec<&Finding>> = BTreeMap::new();
    let driver_of = |claim: &Object| {
        let volume = look.cluster.live(claim)?.str_at(&["spec", "volumeName"])?;
        look.cluster.get("PersistentVolume", "", volume)?.str_at(&["spec", "csi", "driver"])
    };
    let users = |claim: &Object| {
        let pods = look.cluster.pods_in(&claim.namespace).iter();
        pods.filter(|pod| crate::symptoms::mounts(pod, &claim.name)).copied().collect::<Vec<_>>()
    };
    for finding in mounts.iter().filter(|it| it.cause == Cause::VolumeMount) {
        let Some(driver) = driver_of(&finding.object) else { continue };
        let users = users(&finding.object);
        let nodes: BTreeSet<&str> =
            users.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"])).collect();
        if let (Some(node), 1) = (nodes.first(), nodes.len())
            && let Some(told) = finding.evidence.last()
        {
            let key = ((*node).to_owned(), driver.to_owned(), words_of_mount(&told.text));
            groups.entry(key).or_default().push(finding);
        }
    }
    let serves_others = |node: &str, driver: &str| {
        look.cluster.all("PersistentVolumeClaim").iter().any(|claim| {
            let claim = Object::from_live(claim);
            driver_of(&claim) == Some(driver)
                && users(&claim).iter().any(|pod| {
                    pod.str_at(&["spec", "nodeName"]).is_some_and(|it| it != node) && pods::is_ready(pod)
                })
        })
    };
    let several =
        groups.into_iter().filter(|((node, driver, _), list)| list.len() > 1 && serves_others(node, driver));
    let found = several.map(|((node, driver, _), list)| {
        let object = Object::new("Node", "", &node);
        let summary =
            format!("no volume of {driver} can be mounted on {object}, and on other nodes they can");
        let remedy =
            "See why the storage refuses this node: a block list, its driver, its kernel, its network.";
        let commands = [format!("kubectl get pods -A -o wide --field-selector spec.nodeName={node}")];
        let finding = Finding::new(Cause::VolumeMount, object, 0.92, summary).remedy(remedy, &commands);
        list.into_iter().fold(finding, |finding, it| {
            let told = it.evidence.last().cloned();
            let finding =
                told.into_iter().fold(finding, |finding, told| finding.evidence(told.source, told.text));
            finding.suffers(it.object.clone(), "cannot be mounted there")
        })
    });
    found.collect()
}

/// A volume whose claim is gone and that its driver does not delete.
fn undeleted(look: &Look<'_>, volume: &Value) -> Option<Finding> {
    let object = Object::from_live(volume);
    if !look.is_red(&object) || volume.str_at(&["status", "phase"]) != Some("Failed") {
        return None;
    }
    let event = look.cluster.events(&object).rfind(|event| event.reason == "VolumeFailedDelete");
    let words = volume.str_at(&["status", "message"]).or(event.map(|event| event.message.as_str()))?;
    let is_denied = ["UnauthorizedOperation", "AccessDenied", "not authorized", "403"]
        .iter()
        .any(|it| words.contains(it));
    let cause = if is_denied { Cause::OperatorCloudCredentials } else { Cause::VolumeProvisioner };
    let driver = volume.str_at(&["spec", "csi", "driver"]).unwrap_or_default();
    let finding =
        Finding::new(cause, object.clone(), 0.85, format!("the driver {driver} does not delete {object}"))
            .evidence(format!("{object}, status"), words)
            .remedy(
                "Give the driver what the message asks for; then it tries again.",
                &[format!("kubectl describe pv {}", object.name)],
            );
    Some(drivers(look.cluster, driver).into_iter().fold(finding, Finding::below))
}

/// A claim that pods name and that does not exist.
pub(crate) fn missing(look: &Look<'_>, claim: Object, workload: &Object) -> Finding {
    let near = look.cluster.all("PersistentVolumeClaim").iter().filter(|it| {
        it.namespace() == claim.namespace && crate::address_target::is_near(it.name(), &claim.name)
    });
    let near: Vec<&str> = near.map(|it| it.name()).collect();
    let finding = Finding::new(
        Cause::VolumeClaimMissing,
        claim.clone(),
        0.94,
        format!("{claim} does not exist, and {workload} mounts it"),
    )
    .field("spec.template.spec.volumes.persistentVolumeClaim.claimName")
    .remedy("Make the claim, or correct its name.", &[format!("kubectl -n {} get pvc", claim.namespace)]);
    if near.is_empty() { finding } else { finding.evidence("near names", near.join(", ")) }
}

/// Why a claim is not bound, or does not grow.
fn claim_fault(look: &Look<'_>, claim: &Value) -> Option<Finding> {
    let cluster = look.cluster;
    let object = Object::from_live(claim);
    if claim.str_at(&["status", "phase"]) == Some("Bound") {
        return resize(cluster, claim);
    }
    if !look.is_red(&object) || claim.is_terminating() {
        return None;
    }
    let event = |reason: &str| cluster.events(&object).rfind(|event| event.reason == reason);
    let failed = event("ProvisioningFailed");
    let name = claim.str_at(&["spec", "storageClassName"]);
    let class = name.and_then(|name| cluster.get("StorageClass", "", name));
    let users = cluster.pods_in(claim.namespace()).iter().filter(|pod| mounts(pod, claim.name()));
    let with_users = |finding: Finding| {
        users
            .clone()
            .fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "waits for its claim"))
            .suffers(object.clone(), "Pending")
    };
    let told = failed.map(|event| event.message.clone()).unwrap_or_default();
    if let Some(name) = name.filter(|name| {
        !name.is_empty()
            && class.is_none()
            && (cluster.has_kind("StorageClass") || told.contains("not found"))
    }) {
        let has_volumes = cluster
            .all("PersistentVolume")
            .iter()
            .any(|volume| volume.str_at(&["spec", "storageClassName"]) == Some(name));
        if !has_volumes {
            let missing = Object::new("StorageClass", "", name);
            let mut finding = Finding::new(
                Cause::VolumeNoClass,
                missing.clone(),
                0.95,
                format!("the storage class {name} that {object} asks for does not exist"),
            )
            .field("spec.storageClassName")
            .evidence(object.to_string(), format!("storageClassName: {name}"))
            .remedy(
                "Make the storage class, or make the claim anew with one that exists.",
                &["kubectl get storageclass".to_owned()],
            );
            if let Some(event) = failed {
                finding = finding.evidence(format!("Event of {object}"), event.message.clone());
            }
            return Some(with_users(finding));
        }
    }
    // Whose driver was asked for a volume waits for none that is made by hand.
    let is_asked = failed.or(event("ExternalProvisioning")).is_some() && class.is_none();
    if let Some(finding) = by_volumes(look, claim, class).filter(|_| !is_asked) {
        return Some(with_users(finding));
    }
    if name.is_none() && cluster.has_kind("StorageClass") && !has_default(cluster) {
        let finding = Finding::new(
            Cause::VolumeNoClass,
            object.clone(),
            0.93,
            format!("{object} names no storage class, and none is the default"),
        )
        .field("spec.storageClassName")
        .evidence(
            object.to_string(),
            "storageClassName is not set; no StorageClass has the annotation is-default-class",
        )
        .remedy("Mark one class as the default, or name one.", &["kubectl get storageclass".to_owned()]);
        return Some(with_users(finding));
    }
    if let Some(event) = event("FailedBinding") {
        if let Some(volume) = taken_volume(&event.message) {
            let what = format!("{volume} is bound to another claim, or was, and {object} asks for it");
            let finding = Finding::new(Cause::VolumeTaken, volume, 0.88, what)
                .field("spec.claimRef")
                .evidence(format!("Event of {object}"), event.message.clone())
                .remedy("Save what is on it, then take claimRef off.", &["kubectl get pv".to_owned()]);
            return Some(with_users(finding));
        }
        let finding =
            Finding::new(Cause::VolumeNoMatch, object.clone(), 0.88, format!("no volume fits {object}"))
                .evidence(format!("Event of {object}"), event.message.clone())
                .remedy(
                    "Make a volume that fits, or name a storage class that makes one.",
                    &["kubectl get pv".to_owned()],
                );
        return Some(with_users(finding));
    }
    provisioner(look, claim, class, failed, event("ExternalProvisioning")).map(with_users)
}

/// The volume of which the cluster says that another claim has it.
fn taken_volume(message: &str) -> Option<Object> {
    let (before, _) = message.split_once("already bound to a different claim")?;
    let name = before.trim_end().trim_end_matches('"').rsplit('"').next()?;
    Some(Object::new("PersistentVolume", "", name)).filter(|volume| !volume.name.is_empty())
}

fn has_default(cluster: &Cluster<'_>) -> bool {
    let keys =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    cluster
        .all("StorageClass")
        .iter()
        .any(|class| keys.iter().any(|key| class.annotation(key) == Some("true")))
}

/// A claim for volumes that somebody makes by hand.
fn by_volumes(look: &Look<'_>, claim: &Value, class: Option<&Value>) -> Option<Finding> {
    let cluster = look.cluster;
    let object = Object::from_live(claim);
    let name = claim.str_at(&["spec", "storageClassName"]);
    let by_hand =
        class.is_none_or(|class| class.str_at(&["provisioner"]) == Some("kubernetes.io/no-provisioner"));
    let named = claim.str_at(&["spec", "volumeName"]);
    if !by_hand && named.is_none()
        || name.is_none() && named.is_none() && has_default(cluster)
        || !cluster.has_kind("PersistentVolume")
        || named.is_none() && is_dynamic(cluster, name)
    {
        return None;
    }
    let has_classless = cluster
        .all("PersistentVolume")
        .iter()
        .any(|volume| volume.str_at(&["spec", "storageClassName"]).unwrap_or_default().is_empty());
    // A claim without a class waits for the default one, unless somebody made volumes without a class.
    if name.is_none() && named.is_none() && !has_classless && cluster.has_kind("StorageClass") {
        return None;
    }
    let of_class = |volume: &&&Value| {
        volume.str_at(&["spec", "storageClassName"]).unwrap_or_default() == name.unwrap_or_default()
    };
    let volumes: Vec<&Value> = cluster
        .all("PersistentVolume")
        .iter()
        .filter(|volume| named.map_or_else(|| of_class(volume), |named| volume.name() == named))
        .copied()
        .collect();
    let reasons: Vec<(&Value, Mismatch)> =
        volumes.iter().filter_map(|volume| Some((*volume, mismatch(volume, claim)?))).collect();
    if reasons.len() < volumes.len() {
        return None;
    }
    let taken = reasons.iter().find_map(|(volume, why)| match why {
        Mismatch::Taken(why) => Some((*volume, why)),
        Mismatch::Unfit(_) => None,
    });
    if let Some((volume, why)) = taken {
        let taken = Object::from_live(volume);
        return Some(
            Finding::new(Cause::VolumeTaken, taken.clone(), 0.92, format!("{taken} would fit {object}, and {why}"))
                .field("spec.claimRef")
                .evidence(taken.to_string(), why.clone())
                .suffers(object.clone(), "Pending")
                .remedy("Save what is on it, then take claimRef off, so that the volume is available again.", &[format!("kubectl patch pv {} --type=json -p '[{{\"op\":\"remove\",\"path\":\"/spec/claimRef\"}}]'", taken.name)]),
        );
    }
    let mut finding =
        Finding::new(Cause::VolumeNoMatch, object.clone(), 0.92, format!("no volume fits {object}"))
            .field("spec")
            .evidence(object.to_string(), claim.get("spec").map(ToString::to_string).unwrap_or_default())
            .remedy("Make a volume that fits, or ask for what is there.", &["kubectl get pv".to_owned()]);
    for (volume, why) in reasons.iter().take(4) {
        finding = finding.evidence(Object::from_live(volume).to_string(), why.text());
    }
    Some(finding)
}

/// Why a claim does not get a volume.
enum Mismatch {
    /// The volume is not what the claim asks for.
    Unfit(String),
    /// It fits, and another claim has or had it.
    Taken(String),
}

impl Mismatch {
    fn text(&self) -> String {
        match self {
            Self::Unfit(why) | Self::Taken(why) => why.clone(),
        }
    }
}

fn mismatch(volume: &Value, claim: &Value) -> Option<Mismatch> {
    unfit(volume, claim).map(Mismatch::Unfit).or_else(|| taken_by(volume, claim).map(Mismatch::Taken))
}

fn unfit(volume: &Value, claim: &Value) -> Option<String> {
    let size = |value: Option<&Value>| value.and_then(quantity::milli).unwrap_or(0);
    let (has, wants) = (
        size(volume.at(&["spec", "capacity", "storage"])),
        size(claim.at(&["spec", "resources", "requests", "storage"])),
    );
    if has < wants {
        let text = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
        return Some(format!(
            "too small: {} of {}",
            text(volume.at(&["spec", "capacity", "storage"])),
            text(claim.at(&["spec", "resources", "requests", "storage"]))
        ));
    }
    let modes: Vec<&Value> = items(volume, &["spec", "accessModes"]).collect();
    if let Some(mode) = items(claim, &["spec", "accessModes"]).find(|mode| !modes.contains(mode)) {
        return Some(format!("lacks the access mode {mode}"));
    }
    let mode = |value: &Value| value.str_at(&["spec", "volumeMode"]).unwrap_or("Filesystem").to_owned();
    if mode(volume) != mode(claim) {
        return Some(format!("volumeMode {}", mode(volume)));
    }
    if let Some(wanted) = claim.at(&["spec", "selector"])
        && !selector::matches(wanted, selector::labels(volume))
    {
        return Some("its labels do not match the selector".to_owned());
    }
    None
}

fn taken_by(volume: &Value, claim: &Value) -> Option<String> {
    let owner = volume.at(&["spec", "claimRef"]).map(|it| {
        (
            it.str_at(&["namespace"]).unwrap_or_default(),
            it.str_at(&["name"]).unwrap_or_default(),
            it.str_at(&["uid"]).unwrap_or_default(),
        )
    });
    match (volume.str_at(&["status", "phase"]), owner) {
        (Some("Released"), owner) => {
            let (namespace, name, _) = owner.unwrap_or_default();
            Some(format!("it is Released: it belonged to {namespace}/{name}"))
        }
        (_, Some((namespace, name, _))) if (namespace, name) != (claim.namespace(), claim.name()) => {
            Some(format!("it is claimed by {namespace}/{name}"))
        }
        _ => None,
    }
}

/// The parameter of a class whose value a driver says that it does not know, with its key and value.
fn refused_parameter(class: &Value, message: &str) -> Option<(Object, String, String)> {
    const WORDS: &[&str] = &["not found", "does not exist", "no such", "invalid"];
    /// A shorter value may be any word.
    const SHORTEST: usize = 4;
    let low = message.to_ascii_lowercase();
    let parameters = class.get("parameters")?.as_object()?;
    let is_named = |value: &str| {
        let mut words = message.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
        value.len() >= SHORTEST && words.any(|word| word == value)
    };
    let told = parameters.iter().filter(|(key, _)| !key.starts_with("csi.storage.k8s.io/"));
    let mut told = told.filter_map(|(key, value)| Some((key, value.as_str()?)));
    let (key, value) = told.find(|(_, value)| is_named(value))?;
    WORDS
        .iter()
        .any(|word| low.contains(word))
        .then(|| (Object::from_live(class), key.clone(), value.to_owned()))
}

/// A driver that does not make the volume.
fn provisioner(
    look: &Look<'_>,
    claim: &Value,
    class: Option<&Value>,
    failed: Option<&Event>,
    waits: Option<&Event>,
) -> Option<Finding> {
    let object = Object::from_live(claim);
    let driver = class.and_then(|class| class.str_at(&["provisioner"])).unwrap_or_default();
    let event = failed.or(waits)?;
    // A claim that waits for its pod has said so before.
    let low = event.message.to_ascii_lowercase();
    let workloads = drivers(look.cluster, driver);
    let quota = tiphys_cause::refusal(&event.message);
    if quota.cause == Some(Cause::AdmitQuota) {
        return None;
    }
    let denied = ["403", "accessdenied", "unauthorizedoperation", "not authorized", "permission", "401"]
        .iter()
        .any(|word| low.contains(word));
    let what = match (failed.is_some(), denied) {
        (true, true) => format!("the driver {driver} may not make volumes"),
        (true, false) => format!("the driver {driver} fails to make the volume"),
        _ => format!("the driver {driver} does not answer"),
    };
    let mut finding =
        Finding::new(Cause::VolumeProvisioner, object.clone(), 0.9, format!("{object} is not bound: {what}"))
            .evidence(format!("Event of {object}"), event.message.clone())
            .remedy(
                "Look at the driver's controller and its rights.",
                &["kubectl get pods -A | grep csi".to_owned()],
            );
    if let Some(class) = class {
        finding = finding.evidence(Object::from_live(class).to_string(), format!("provisioner: {driver}"));
    }
    for workload in &workloads {
        let live = look.cluster.live(workload);
        if live.is_some_and(|live| pods::replicas(live) == 0 && live.kind() != "DaemonSet") {
            finding = finding.evidence(workload.to_string(), "spec.replicas: 0");
            finding.object = workload.clone();
        }
        finding = finding.below(workload.clone());
    }
    if let Some((class, key, value)) = failed.and_then(|event| refused_parameter(class?, &event.message)) {
        finding.summary = format!("{class} asks {driver} for {key}: {value}, which it does not have");
        finding =
            finding.field(format!("parameters.{key}")).evidence(class.to_string(), format!("{key}: {value}"));
        finding.object = class;
        finding = finding.suffers(object.clone(), "gets no volume");
    }
    if let Some(source) = data_source(claim) {
        finding = finding.below(source);
    }
    finding = storage_systems(look, driver, &workloads).into_iter().fold(finding, Finding::below);
    finding = helpers(look, &event.message).into_iter().fold(finding, Finding::below);
    finding.upstream.retain(|below| *below != finding.object);
    // Why a driver does not answer is told by its pods.
    let has_workloads = look.cluster.has_kind("Deployment") || look.cluster.has_kind("DaemonSet");
    let knows_driver = class.is_some() && has_workloads && look.cluster.has_kind("Pod");
    Some(if knows_driver { finding } else { finding.not_known() })
}

/// The storage systems behind a driver that say of themselves that they are not well: resources of a group
/// that the driver is named after, where the driver runs.
fn storage_systems(look: &Look<'_>, driver: &str, workloads: &[Object]) -> Vec<Object> {
    const SHORTEST: usize = 4;
    let parts: Vec<&str> = driver.split(['.', '/', '-']).filter(|part| part.len() >= SHORTEST).collect();
    let is_of_driver = |object: &&Object| {
        let Some(live) = look.cluster.live(object).filter(|live| is_custom(live)) else { return false };
        live.gvk().group.split('.').any(|part| parts.contains(&part))
            && (object.namespace.is_empty() || workloads.iter().any(|it| it.namespace == object.namespace))
    };
    look.red.keys().filter(is_of_driver).cloned().collect()
}

/// Who serves the files of a pod's volumes: a server of files may run in the cluster.
fn file_servers<'a>(look: &Look<'a>, pod: &Value, claim: Option<&Object>) -> Vec<Target<'a>> {
    let claim = claim.and_then(|claim| look.cluster.live(claim));
    let name = claim.and_then(|claim| claim.str_at(&["spec", "volumeName"])).unwrap_or_default();
    let volume = look.cluster.get("PersistentVolume", "", name).and_then(|volume| volume.get("spec"));
    let own = items(pod, &["spec", "volumes"]).filter(|_| claim.is_none());
    let paths: [&[&str]; 3] =
        [&["nfs", "server"], &["csi", "volumeAttributes", "server"], &["glusterfs", "endpoints"]];
    let named = volume.into_iter().chain(own).flat_map(|it| paths.iter().filter_map(|path| it.str_at(path)));
    let address = |host: &str| Address { scheme: String::new(), host: host.to_owned(), port: None };
    named.map(|host| look.cluster.target(&address(host), pod.namespace())).collect()
}

/// The pods that a driver runs on a node for a volume: its words name them, or the volume after which they
/// are named.
fn helpers(look: &Look<'_>, message: &str) -> Vec<Object> {
    let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let words: Vec<&str> = words.filter(|word| word.contains('-')).collect();
    let is_meant = |pod: &Object| {
        words.iter().any(|word| *word == pod.name || word.starts_with("pvc-") && pod.name.contains(word))
    };
    let pods = look.ill.iter().flat_map(|ill| &ill.pods).map(|pod| Object::from_live(pod));
    pods.filter(is_meant).collect()
}

/// Whether a class was not saved, and its volumes were made on demand by a driver.
fn is_dynamic(cluster: &Cluster<'_>, class: Option<&str>) -> bool {
    let of_class = |volume: &&&Value| volume.str_at(&["spec", "storageClassName"]) == class;
    let mut volumes = cluster.all("PersistentVolume").iter().filter(of_class).peekable();
    class.is_some()
        && !cluster.has_kind("StorageClass")
        && volumes.peek().is_some()
        && volumes
            .all(|volume| volume.at(&["spec", "csi"]).is_some() && volume.at(&["spec", "claimRef"]).is_some())
}

/// A claim that asks for more than it has.
fn resize(cluster: &Cluster<'_>, claim: &Value) -> Option<Finding> {
    let size = |path: &[&str]| claim.at(path).and_then(quantity::milli);
    let (wants, has) =
        (size(&["spec", "resources", "requests", "storage"])?, size(&["status", "capacity", "storage"])?);
    if wants <= has {
        return None;
    }
    let object = Object::from_live(claim);
    let event = cluster
        .events(&object)
        .rfind(|event| event.reason.contains("Resize") || event.reason.contains("Expan"));
    let condition = crate::cluster::conditions(claim)
        .find(|it| it.str_at(&["type"]).is_some_and(|name| name.contains("Resiz")));
    let class =
        claim.str_at(&["spec", "storageClassName"]).and_then(|name| cluster.get("StorageClass", "", name));
    let forbids =
        class.is_some_and(|class| class.get("allowVolumeExpansion").and_then(Value::as_bool) != Some(true));
    if event.is_none() && condition.is_none() && !forbids {
        return None;
    }
    // The file system grows when a pod mounts the volume the next time: nobody misses it until then.
    let waits_for_pod = condition.is_some_and(|it| it.str_at(&["type"]) == Some("FileSystemResizePending"));
    let is_mounted = cluster.pods_in(claim.namespace()).iter().any(|pod| mounts(pod, claim.name()));
    if waits_for_pod && event.is_none() && !is_mounted && !forbids {
        return None;
    }
    let what = if forbids { "its storage class does not allow it" } else { "the driver has not done it" };
    let mut finding = Finding::new(
        Cause::VolumeResize,
        object.clone(),
        0.9,
        format!("{object} does not grow: {what}"),
    )
    .field("spec.resources.requests.storage")
    .evidence(
        object.to_string(),
        format!(
            "asks for {}, has {}",
            claim.at(&["spec", "resources", "requests", "storage"]).unwrap_or(&Value::Null),
            claim.at(&["status", "capacity", "storage"]).unwrap_or(&Value::Null)
        ),
    )
    .remedy(
        "Set allowVolumeExpansion: true on the class, or restart the pod so that the file system grows.",
        &[],
    );
    if let Some(event) = event {
        finding = finding.evidence(format!("Event of {object}"), event.message.clone());
    }
    if let Some(condition) = condition {
        finding = finding.evidence(object.to_string(), crate::cluster::condition_text(condition));
    }
    Some(finding)
}

/// Volumes that cannot be attached or mounted.
fn mount(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    for pod in &ill.pods {
        let object = Object::from_live(pod);
        // A container that waits for its image, or ended, has its volumes.
        let is_past = pods::statuses(pod).any(|status| {
            pods::waiting(status)
                .is_some_and(|(reason, _)| !matches!(reason, "" | "ContainerCreating" | "PodInitializing"))
        });
        let is_waiting = pod.str_at(&["status", "phase"]) != Some("Running") && !is_past;
        let events = look.cluster.events(&object).rev().filter(|event| {
            is_waiting
                && matches!(event.reason.as_str(), "FailedMount" | "FailedAttachVolume" | "FailedMapVolume")
        });
        for event in events {
            if absent(&event.message).is_some() || is_start_noise(look.cluster, event) {
                continue;
            }
            // The token of an account that is not there is mounted as any volume.
            if tiphys_cause::refusal(&event.message).cause == Some(Cause::AdmitServiceAccount) {
                let refused = Refused {
                    writer: ill.workload.clone(),
                    written: None,
                    source: format!("Event of {object}"),
                    message: event.message.clone(),
                };
                return fault(look, &refused)
                    .map(|finding| finding.suffers(object.clone(), "has no account"));
            }
            let Some(fault) = mount_fault(&event.message) else { continue };
            let claim = claim_of(look.cluster, pod, &fault.volume);
            let at = claim.clone().unwrap_or_else(|| ill.workload.clone());
            let mut finding = match fault.cause {
                Cause::VolumeClaimMissing => missing(
                    look,
                    Object::new("PersistentVolumeClaim", pod.namespace(), &fault.volume),
                    &ill.workload,
                ),
                Cause::VolumeAttach => attach(look, pod, &at, fault.is_held),
                Cause::OperatorCloudCredentials => Finding::new(
                    fault.cause,
                    at,
                    0.85,
                    format!("the cloud does not let the driver attach the volume of {}", ill.workload),
                )
                .remedy("Give the driver's identity the right.", &[]),
                Cause::RunDiskFull => Finding::new(
                    fault.cause,
                    at,
                    0.85,
                    format!("there is no space for the volumes of {}", ill.workload),
                )
                .remedy("Free space on the node.", &[]),
                _ => Finding::new(
                    Cause::VolumeMount,
                    at,
                    0.9,
                    format!("a volume of {} cannot be mounted", ill.workload),
                )
                .remedy("Check the driver on the node, the file system, the path and the options.", &[]),
            };
            if matches!(fault.cause, Cause::VolumeMount | Cause::VolumeAttach)
                && let Some(claim) = claim.as_ref().and_then(|claim| look.cluster.live(claim))
            {
                let class = claim
                    .str_at(&["spec", "storageClassName"])
                    .and_then(|name| look.cluster.get("StorageClass", "", name));
                let volume = claim.str_at(&["spec", "volumeName"]).unwrap_or_default();
                let volume = look.cluster.get("PersistentVolume", "", volume);
                let driver = class
                    .and_then(|class| class.str_at(&["provisioner"]))
                    .or_else(|| volume?.str_at(&["spec", "csi", "driver"]))
                    .unwrap_or_default();
                finding = of_driver(look, volume).into_iter().fold(finding, |finding, (object, told)| {
                    finding.evidence(object.to_string(), told).suffers(object, "is not whole")
                });
                finding = drivers(look.cluster, driver).into_iter().fold(finding, Finding::below);
                // Without the class or the workloads nobody knows whose pods would tell why.
                let is_seen = look.cluster.has_kind("DaemonSet") && !driver.is_empty();
                finding = if is_seen || driver_told(event) { finding } else { finding.not_known() };
                finding = drivers_pods(look, pod, driver).into_iter().fold(finding, Finding::below);
            }
            finding = secret_providers(look, &event.message).into_iter().fold(finding, Finding::below);
            finding = helpers(look, &event.message).into_iter().fold(finding, Finding::below);
            for server in file_servers(look, pod, claim.as_ref()) {
                finding = match server {
                    Target::Service(service) => finding.below(Object::from_live(service)),
                    // An address of the cluster of which nobody knows whose it is.
                    Target::Unknown if !look.cluster.knows_services() => finding.not_known(),
                    _ => finding,
                };
            }
            if let Some(node) = pod.str_at(&["spec", "nodeName"]) {
                finding = finding.below(Object::new("Node", "", node));
            }
            let finding =
                finding.evidence(format!("Event of {object}"), event.message.clone()).since(event.first);
            return Some(
                finding
                    .suffers(object.clone(), "waits for its volume")
                    .suffers(ill.workload.clone(), "its pods wait for a volume"),
            );
        }
    }
    None
}

/// The workloads of the provider that the driver of external secrets does not find: they run beside it, on
/// every node.
fn secret_providers(look: &Look<'_>, message: &str) -> Vec<Object> {
    let mut told = message.split("provider \"").skip(1);
    let Some(provider) = told.find_map(|rest| rest.split_once('"')).map(|(name, _)| name) else {
        return Vec::new();
    };
    let is_meant = |live: &&&Value| {
        let name = live.name();
        name.contains(provider) && ["csi", "provider"].iter().any(|word| name.contains(word))
    };
    ["DaemonSet", "Deployment"]
        .iter()
        .flat_map(|kind| look.cluster.all(kind).iter().filter(is_meant))
        .map(|live| Object::from_live(live))
        .collect()
}

/// Whether the words of a mount tell more than that a driver is not there.
fn driver_told(event: &Event) -> bool {
    let low = event.message.to_ascii_lowercase();
    !low.contains("does not contain driver") && !low.contains("list of registered csi drivers")
}

/// The red pods of a driver on the node of a pod.
fn drivers_pods(look: &Look<'_>, pod: &Value, driver: &str) -> Vec<Object> {
    let node = pod.str_at(&["spec", "nodeName"]);
    let all = drivers(look.cluster, driver);
    let all = all.iter().flat_map(|workload| pods::of_workload(look.cluster, workload));
    let here = all.filter(|it| node.is_some() && it.str_at(&["spec", "nodeName"]) == node);
    here.map(Object::from_live).filter(|it| look.is_red(it)).collect()
}

/// Whether an event tells only that a kubelet had not read a ConfigMap or Secret yet, and not again since.
fn is_start_noise(cluster: &Cluster<'_>, event: &Event) -> bool {
    const OLD: i64 = 300;
    event.message.contains("failed to sync")
        && event.message.contains("cache")
        && event.last.and_then(|last| cluster.seconds_since(last)).is_none_or(|age| age > OLD)
}

/// The claim behind a volume that a kubelet or the cluster names.
fn claim_of(cluster: &Cluster<'_>, pod: &Value, volume: &str) -> Option<Object> {
    let claims: Vec<(&str, &str)> = items(pod, &["spec", "volumes"])
        .filter_map(|it| Some((it.str_at(&["name"])?, it.str_at(&["persistentVolumeClaim", "claimName"])?)))
        .collect();
    let by_name = claims.iter().find(|(name, _)| *name == volume);
    let by_volume = claims.iter().find(|(_, claim)| {
        let live = cluster.get("PersistentVolumeClaim", pod.namespace(), claim);
        live.is_some_and(|live| {
            live.str_at(&["spec", "volumeName"]) == Some(volume)
                || volume.ends_with(live.uid()) && !live.uid().is_empty()
        })
    });
    let alone =
        claims.first().filter(|_| claims.len() == 1 && (volume.starts_with("pvc-") || volume.is_empty()));
    by_name
        .or(by_volume)
        .or(alone)
        .map(|(_, claim)| Object::new("PersistentVolumeClaim", pod.namespace(), claim))
}

/// What storage drivers keep of a volume themselves, in objects that bear its name.
const OF_DRIVERS: &[&str] =
    &["Volume", "LogicalVolume", "LVMVolume", "ZFSVolume", "JivaVolume", "CStorVolume"];

/// The red objects that a driver keeps of a volume, and what they tell.
fn of_driver(look: &Look<'_>, volume: Option<&Value>) -> Vec<(Object, String)> {
    let Some(volume) = volume else { return Vec::new() };
    let handle = volume.str_at(&["spec", "csi", "volumeHandle"]);
    let all = OF_DRIVERS.iter().flat_map(|kind| look.cluster.all(kind).iter());
    let own = all.filter(|it| it.name() == volume.name() || Some(it.name()) == handle);
    let red = own.map(|it| (Object::from_live(it), it)).filter(|(object, _)| look.is_red(object));
    red.map(|(object, it)| {
        let refused = crate::cluster::conditions(it).filter(|it| it.str_at(&["status"]) == Some("False"));
        let state = it.str_at(&["status", "robustness"]).or_else(|| it.str_at(&["status", "state"]));
        let told = state.map(str::to_owned).into_iter().chain(refused.map(crate::cluster::condition_text));
        (object, told.collect::<Vec<_>>().join("; "))
    })
    .collect()
}

/// A volume that hangs on another node, and who holds it there; or one that its driver does not attach.
pub(super) fn attach(look: &Look<'_>, pod: &Value, at: &Object, is_held: bool) -> Finding {
    let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
    let holders = look.cluster.pods_in(pod.namespace()).iter().filter(|other| {
        other.name() != pod.name() && at.kind == "PersistentVolumeClaim" && mounts(other, &at.name)
    });
    let holder =
        holders.clone().find(|other| other.str_at(&["spec", "nodeName"]).is_some_and(|other| other != node));
    let volume = look.cluster.live(at).and_then(|claim| claim.str_at(&["spec", "volumeName"]));
    let attachment = look.cluster.all("VolumeAttachment").iter().find(|it| {
        volume.is_some()
            && it.str_at(&["spec", "source", "persistentVolumeName"]) == volume
            && it.str_at(&["spec", "nodeName"]) != Some(node)
    });
    if !is_held && holder.is_none() && attachment.is_none() {
        let what = format!("the driver does not attach the volume of {at}");
        let finding = Finding::new(Cause::VolumeAttach, at.clone(), 0.9, what);
        // Where the engine keeps the volume may be why.
        let volume = volume.map(|name| Object::new("PersistentVolume", "", name));
        return volume
            .into_iter()
            .fold(finding, Finding::below)
            .remedy("Look at the volume in its own system, and at the driver's log.", &[]);
    }
    let mut finding = Finding::new(
        Cause::VolumeAttach,
        at.clone(),
        0.93,
        format!("the volume of {at} is attached to another node, and may be on one only"),
    )
    .remedy(
        "End the pod that holds it; for a Deployment on such a volume use strategy Recreate.",
        &["kubectl get volumeattachments".to_owned()],
    );
    // Whether the node of who holds it is alive is not known.
    if !look.cluster.has_kind("Node") && holder.is_none_or(|holder| !pods::is_ready(holder)) {
        finding = finding.not_known();
    }
    if let Some(holder) = holder {
        let other = holder.str_at(&["spec", "nodeName"]).unwrap_or_default();
        finding = finding
            .evidence(Object::from_live(holder).to_string(), format!("holds it on {other}"))
            .below(Object::new("Node", "", other));
    }
    if let Some(attachment) = attachment {
        let other = attachment.str_at(&["spec", "nodeName"]).unwrap_or_default();
        finding = finding
            .evidence(Object::from_live(attachment).to_string(), format!("attached to {other}"))
            .below(Object::new("Node", "", other));
    }
    finding
}

/// A pod that mounts a claim made for another workload.
fn foreign(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let names: Vec<&str> = items(ill.spec(), &["volumes"])
        .filter_map(|it| it.str_at(&["persistentVolumeClaim", "claimName"]))
        .collect();
    for name in names {
        let claim = look.cluster.get("PersistentVolumeClaim", ill.namespace(), name)?;
        let other = look.cluster.pods_in(ill.namespace()).iter().find(|pod| {
            mounts(pod, name) && look.cluster.workload(pod) != ill.workload && pods::is_ready(pod)
        })?;
        let owner = look.cluster.workload(other);
        let own = look.cluster.all("PersistentVolumeClaim").iter().find(|it| {
            it.namespace() == ill.namespace()
                && it.name().contains(&ill.workload.name)
                && !look.cluster.pods_in(ill.namespace()).iter().any(|pod| mounts(pod, it.name()))
        });
        let is_other = name.contains(&owner.name) && !name.contains(&ill.workload.name)
            || claim.label("app") == Some(owner.name.as_str());
        if is_other && let Some(own) = own {
            return Some(
                Finding::new(
                    Cause::VolumeClaimWrong,
                    ill.workload.clone(),
                    0.75,
                    format!(
                        "{} mounts {name}, which is {owner}'s; {} is its own and not mounted",
                        ill.workload,
                        own.name()
                    ),
                )
                .field("spec.template.spec.volumes.persistentVolumeClaim.claimName")
                .evidence(Object::from_live(claim).to_string(), format!("mounted by {owner}"))
                .remedy(format!("Mount {}.", own.name()), &[]),
            );
        }
    }
    None
}
