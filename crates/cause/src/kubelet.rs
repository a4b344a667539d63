//! What kubelets say about the pods that they start: volumes, sandboxes, probes, configuration, containers.

use crate::{
    Cause,
    image::pull_fault,
    network::Failure,
    pattern::{has_any, pattern},
};

pattern!(MISSING, r#"((?i:secret|configmap))s? \\?"?([a-z0-9]([a-z0-9._-]*[a-z0-9])?)\\?"? not found"#);
pattern!(NOT_REGISTERED, r#"object "([^"/]+)"/"([^"]+)" not registered"#);
pattern!(KEY, r"couldn't find key (\S+) in (Secret|ConfigMap) (?:([^/\s]+)/)?(\S+)");
// Programs say it in their own words: `key uri not found in secret jobs/rabbit`.
pattern!(
    KEY_OF_PROGRAM,
    r#"(?ix)
    \b key \s \\*['"]? ([a-z0-9._-]+) \\*['"]? \s (?:was \s)? (?: not \s found | missing ) \s (?:in|from) \s (?:the \s)? (secret|configmap) \s \\*['"]? (?:([a-z0-9-]+)/)? ([a-z0-9.-]+)
    | (secret|configmap) \s \\*['"]? (?:([a-z0-9-]+)/)? ([a-z0-9.-]+) \\*['"]? \s (?: has \s no | does \s not \s (?:have|contain) (?:\s the|\s a)? | is \s missing (?:\s the)? ) \s key \s \\*['"]? ([a-z0-9._-]+)
    | (?: no | missing ) \s key \s \\*['"]? ([a-z0-9._-]+) \\*['"]? \s (?:in|from) \s (?:the \s)? (secret|configmap) \s \\*['"]? (?:([a-z0-9-]+)/)? ([a-z0-9.-]+)
    "#
);
pattern!(
    NO_FILE,
    r#"(?ix)
    (?: open | stat | lstat | read | reading | file | load | loading | find ) (?: \s file )? \s* [:=]? \s* \\*['"`]? (/?[\w.-]+/[^\s'"`:,;()\\]+) .{0,40}? (?: no \s such \s file | does \s not \s exist | doesn't \s exist | not \s found )
    | no \s such \s file \s or \s directory [:,]? \s* (?: open \s)? \\*['"`]? (/[^\s'"`:,;()\\]+)
    "#
);
pattern!(KEY_VOLUME, r"references non-existent (secret|config) key: (\S+)");
pattern!(VOLUME, r#"(?:for volume|volume) \\?"([^"\\]+)\\?""#);
pattern!(CLAIM, r#"persistentvolumeclaim \\?"([^"\\]+)\\?" not found"#);

pattern!(
    CLASS,
    r#"(RuntimeClass|PriorityClass|DeviceClass|ResourceClaimTemplate) (?:with name )?\\?"?([a-z0-9]([a-z0-9.-]*[a-z0-9])?)\\?"? (?:was )?not found"#
);
pattern!(NO_CLASS, r"no (PriorityClass|RuntimeClass) with name ([a-z0-9][a-z0-9.-]*) was found");
pattern!(
    PROVIDER,
    r#"secretproviderclass(?:es)? (?:[a-z0-9-]+/)?\\?"?([a-z0-9]([a-z0-9.-]*[a-z0-9])?)\\?"?.*not found"#
);
pattern!(
    ATTACHMENT,
    r"cannot find a network-attachment-definition \(([a-z0-9.-]+)\) in namespace \(([a-z0-9-]+)\)"
);

/// Something that a pod's configuration names and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// `Secret`, `ConfigMap`, or another kind that pods name.
    pub kind: &'static str,
    /// Its name; empty if it is not told.
    pub name: String,
    /// The key that it lacks, if it is there itself.
    pub key: Option<String>,
}

impl Absent {
    /// Whether its kind lives in no namespace.
    #[must_use]
    pub fn is_cluster_wide(&self) -> bool {
        matches!(self.kind, "RuntimeClass" | "PriorityClass" | "DeviceClass")
    }
}

/// Reads which absent class, or other object beside ConfigMaps and Secrets, a pod names.
fn absent_class(message: &str) -> Option<Absent> {
    const KINDS: &[&str] = &["RuntimeClass", "PriorityClass", "DeviceClass", "ResourceClaimTemplate"];
    let of = |kind, name: &str| Some(Absent { kind, name: name.to_owned(), key: None });
    if let Some(it) = CLASS.captures(message).or_else(|| NO_CLASS.captures(message)) {
        let kind = KINDS.iter().find(|kind| **kind == &it[1])?;
        return of(kind, &it[2]);
    }
    if let Some(it) = PROVIDER.captures(message) {
        return of("SecretProviderClass", &it[1]);
    }
    let it = ATTACHMENT.captures(message)?;
    of("NetworkAttachmentDefinition", &it[1])
}

/// The path of a file that a program does not find.
#[must_use]
pub fn absent_file(line: &str) -> Option<&str> {
    let it = NO_FILE.captures(line)?;
    it.get(1).or_else(|| it.get(2)).map(|path| path.as_str())
}

/// The key that a program says a ConfigMap or Secret lacks, with the object's namespace if it is told.
#[must_use]
pub fn absent_key(line: &str) -> Option<(Absent, Option<String>)> {
    let it = KEY_OF_PROGRAM.captures(line)?;
    let text = |at: usize| it.get(at).map(|group| group.as_str().to_owned());
    let (key, kind, namespace, name) = if it.get(1).is_some() {
        (text(1), text(2), text(3), text(4))
    } else if it.get(5).is_some() {
        (text(8), text(5), text(6), text(7))
    } else {
        (text(9), text(10), text(11), text(12))
    };
    let kind = if kind?.eq_ignore_ascii_case("secret") { "Secret" } else { "ConfigMap" };
    let name = name?.trim_end_matches(['.', '-']).to_owned();
    Some((Absent { kind, name, key: Some(key?.trim_end_matches('.').to_owned()) }, namespace))
}

/// Reads which ConfigMap, Secret, key or class a pod cannot have.
#[must_use]
pub fn absent(message: &str) -> Option<Absent> {
    let kind = |word: &str| if word.eq_ignore_ascii_case("secret") { "Secret" } else { "ConfigMap" };
    if let Some(it) = KEY.captures(message) {
        let key = Some(it[1].to_owned());
        return Some(Absent { kind: kind(&it[2]), name: it[4].trim_end_matches([',', '.']).to_owned(), key });
    }
    if let Some(it) = KEY_VOLUME.captures(message) {
        return Some(Absent { kind: kind(&it[1]), name: String::new(), key: Some(it[2].to_owned()) });
    }
    if let Some(it) = MISSING.captures(message) {
        return Some(Absent { kind: kind(&it[1]), name: it[2].to_owned(), key: None });
    }
    absent_class(message)
}

/// A volume that cannot be attached or mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountFault {
    /// The mechanism.
    pub cause: Cause,
    /// The volume's name, as the pod or the cluster calls it.
    pub volume: String,
    /// Whether it is held by another node or pod.
    pub is_held: bool,
}

/// Reads `FailedMount` and `FailedAttachVolume`; `None` for timeouts that only repeat an earlier word.
#[must_use]
pub fn mount_fault(message: &str) -> Option<MountFault> {
    let low = message.to_ascii_lowercase();
    let volume = VOLUME.captures(message).map(|it| it[1].to_owned()).unwrap_or_default();
    if let Some(it) = CLAIM.captures(message) {
        return Some(MountFault {
            cause: Cause::VolumeClaimMissing,
            volume: it[1].to_owned(),
            is_held: false,
        });
    }
    let is_held = has_any(
        &low,
        &[
            "multi-attach",
            "volume is already exclusively attached",
            "already attached to another node",
            "is in use by another node",
            "volumeinuse",
            "is currently attached to",
        ],
    );
    let cause = if is_held {
        Cause::VolumeAttach
    } else if has_any(
        &low,
        &["does not contain driver", "not found in the list of registered csi drivers", "csinode not found"],
    ) {
        Cause::VolumeMount
    } else if NOT_REGISTERED.is_match(message) || absent(message).is_some() {
        return None;
    } else if has_any(&low, &["no space left"]) {
        Cause::RunDiskFull
    } else if has_any(&low, &["attachvolume.attach failed", "failedattachvolume"]) {
        if has_any(&low, &["unauthorizedoperation", "accessdenied", "403", "not authorized"]) {
            Cause::OperatorCloudCredentials
        } else {
            Cause::VolumeAttach
        }
    } else if low.contains("mountvolume")
        || low.contains("mount failed")
        || low.contains("mapvolume")
        || low.contains("hostpath type check failed")
    {
        Cause::VolumeMount
    } else {
        return None;
    };
    Some(MountFault { cause, volume, is_held })
}

pattern!(PLUGIN, r#"plugin type=\\?"([a-z0-9][a-z0-9._-]*)\\?""#);

/// The type of the network plugin that `FailedCreatePodSandBox` names: the innermost one that failed.
#[must_use]
pub fn sandbox_plugin(message: &str) -> Option<&str> {
    PLUGIN.captures_iter(message).last().and_then(|it| it.get(1)).map(|it| it.as_str())
}

/// Words by which a runtime says that it lacks the image that holds sandboxes open.
const SANDBOX_IMAGE: &[&str] =
    &["failed to get sandbox image", "failed pulling image", "creating pause container"];

/// Reads `FailedCreatePodSandBox`.
#[must_use]
pub fn sandbox_fault(message: &str) -> Option<Cause> {
    let low = message.to_ascii_lowercase();
    // The image that holds a sandbox open is pulled like any other, and the node pulls it for itself.
    if has_any(&low, SANDBOX_IMAGE) {
        return Some(pull_fault(message).cause.unwrap_or(Cause::NodeRuntime));
    }
    if has_any(&low, &["no space left on device"]) {
        return Some(Cause::NodePressure);
    }
    if has_any(
        &low,
        &[
            "no ip addresses available",
            "failed to assign an ip",
            "no available ip",
            "no more free ips",
            "failed to allocate for range",
            "insufficient cidr",
            "all ips are in use",
            "insufficientfreeaddressesinsubnet",
            "pool exhausted",
            "no free addresses",
            "no podcidrs allocated",
            "ipam: no addresses",
            "exhausted",
            "range is full",
            "no ips available",
            "unable to allocate ip",
            "could not allocate ip in range",
            "failed to request ipv4 addresses",
            "assigned 0 out of",
            "no available addresses",
            "insufficient ip",
            "not enough ips",
            "out of ip addresses",
            "subnet is full",
            "no configured calico pools",
        ],
    ) {
        return Some(Cause::NetIpExhausted);
    }
    if has_any(
        &low,
        &[
            "cni",
            "network plugin",
            "networkplugin",
            "plugin type=",
            "calico",
            "cilium",
            "flannel",
            "weave",
            "antrea",
            "ovn",
            "aws-cni",
            "multus",
            "kube-router",
            "subnet.env",
            "setup network for sandbox",
        ],
    ) {
        return Some(Cause::NetCniDown);
    }
    has_any(&low, &["containerd", "crio", "docker", "runc", "shim", "runtime"]).then_some(Cause::NodeRuntime)
}

/// A probe that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFault {
    /// `Liveness`, `Readiness` or `Startup`.
    pub probe: &'static str,
    /// How it failed; `None` for a command.
    pub failure: Option<Failure>,
    /// A command ran, or could not run.
    pub is_command: bool,
}

/// Reads `Unhealthy`.
#[must_use]
pub fn probe_fault(message: &str) -> Option<ProbeFault> {
    let low = message.to_ascii_lowercase();
    let probe = match () {
        () if low.starts_with("liveness") => "Liveness",
        () if low.starts_with("startup") => "Startup",
        () if low.starts_with("readiness") => "Readiness",
        () => return None,
    };
    let code = low.split_once("statuscode: ").and_then(|(_, rest)| {
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u16>().ok()
    });
    let failure = match code {
        Some(code) => Some(Failure::Status(code)),
        None => Failure::read(message),
    };
    let is_grpc = low.contains("grpc") || low.contains("service unhealthy");
    let is_command =
        failure.is_none() && !is_grpc || low.contains("command timed out") || low.contains("exec");
    Some(ProbeFault { probe, failure, is_command })
}

/// Words by which a runtime says that a command cannot be started.
const NO_COMMAND: &[&str] = &[
    "executable file not found",
    "no such file or directory",
    "exec: \"",
    "starterror",
    "containercannotrun",
    "not a directory",
    "error during container init",
    "unable to start container process",
];

/// Words by which a kubelet says that the user of an image is not the one that is demanded.
const AS_ROOT: &[&str] = &["runasnonroot and image", "breaks non-root policy", "image will run as root"];
/// Words by which a runtime says that it did not get over an earlier attempt.
const RUNTIME: &[&str] = &["failed to reserve container name", "failed to reserve sandbox name"];
/// Words by which a file system says that it cannot be written or read.
const BROKEN_DISK: &[&str] = &["read-only file system", "input/output error", "structure needs cleaning"];
/// Folders of a node in which runtimes and kubelets keep what they make.
const OF_NODE: &[&str] =
    &["/var/lib/containerd", "/var/lib/docker", "/var/lib/containers", "/var/lib/kubelet", "/run/containerd"];

/// Reads why a container could not be created or started at all: state `StartError`, `RunContainerError`,
/// `ContainerCannotRun`, `CreateContainerError`, `CreateContainerConfigError`.
#[must_use]
pub fn start_fault(message: &str) -> Option<Cause> {
    let low = message.to_ascii_lowercase();
    if low.contains("exec format error") {
        Some(Cause::ImagePlatform)
    } else if has_any(&low, &["oom-killed", "oom killed", "oomkilled"]) {
        Some(Cause::RunOom)
    } else if has_any(&low, AS_ROOT) {
        Some(Cause::RunPermission)
    } else if has_any(&low, RUNTIME) || has_any(&low, BROKEN_DISK) && has_any(&low, OF_NODE) {
        Some(Cause::NodeRuntime)
    } else if low.contains("subpath") {
        Some(Cause::VolumeMount)
    } else if has_any(&low, &["permission denied", "operation not permitted", "apparmor", "seccomp"]) {
        Some(Cause::RunPermission)
    } else if low.contains("address already in use") || low.contains("port is already allocated") {
        Some(Cause::RunPortConflict)
    } else if low.contains("no space left") {
        Some(Cause::RunDiskFull)
    } else if low.contains("mount")
        && has_any(&low, &["not a directory", "no such file", "are you trying to mount"])
    {
        Some(Cause::VolumeMount)
    } else {
        has_any(&low, NO_COMMAND).then_some(Cause::RunCommand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent() {
        let read = absent("secret \"db-creds\" not found").unwrap();
        assert_eq!((read.kind, read.name.as_str(), read.key), ("Secret", "db-creds", None));
        let read = absent("couldn't find key password in Secret shop/db-creds").unwrap();
        assert_eq!(
            (read.kind, read.name.as_str(), read.key.as_deref()),
            ("Secret", "db-creds", Some("password"))
        );
        let read =
            absent("MountVolume.SetUp failed for volume \"cfg\" : configmap \"web\" not found").unwrap();
        assert_eq!((read.kind, read.name.as_str()), ("ConfigMap", "web"));
        let read = absent("MountVolume.SetUp failed for volume \"x\" : configmap references non-existent config key: app.yaml").unwrap();
        assert_eq!((read.kind, read.key.as_deref()), ("ConfigMap", Some("app.yaml")));
    }

    #[test]
    fn keys_that_programs_miss() {
        let read = |line: &str| {
            absent_key(line).map(|(it, namespace)| (it.kind, it.name, it.key.unwrap_or_default(), namespace))
        };
        let told = |namespace: Option<&str>| {
            Some(("Secret", "queue".to_owned(), "uri".to_owned(), namespace.map(str::to_owned)))
        };
        assert_eq!(read("ERROR key uri not found in secret jobs/queue"), told(Some("jobs")));
        assert_eq!(read(r#"secret \"queue\" does not contain the key \"uri\""#), told(None));
        assert_eq!(read("missing key \"uri\" in Secret \"queue\"."), told(None));
        assert_eq!(read("no secret key was given"), None);
    }

    #[test]
    fn files_that_programs_do_not_find() {
        let lines = [
            "error: open /etc/keys/root.pem: no such file or directory",
            "Error: ENOENT: no such file or directory, open '/etc/keys/root.pem'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/etc/keys/root.pem'",
            "panic: config file \"/etc/keys/root.pem\" not found",
        ];
        for line in lines {
            assert_eq!(absent_file(line), Some("/etc/keys/root.pem"), "{line}");
        }
        assert_eq!(absent_file("opened /etc/keys/root.pem"), None);
        assert_eq!(absent_file("GET /etc/keys 404 not found"), None);
    }

    #[test]
    fn containers_that_are_not_created() {
        let root = "container has runAsNonRoot and image will run as root (pod: \"a_b(1)\", container: a)";
        assert_eq!(start_fault(root), Some(Cause::RunPermission));
        let profile = "failed to generate apparmor spec opts: profile \"local\" not loaded";
        assert_eq!(start_fault(profile), Some(Cause::RunPermission));
        let name = "failed to reserve container name \"a_b_0\": name \"a_b_0\" is reserved for \"12\"";
        assert_eq!(start_fault(name), Some(Cause::NodeRuntime));
    }

    #[test]
    fn what_else_a_pod_names_and_is_absent() {
        for (words, kind, name) in [
            ("pod rejected: RuntimeClass \"sandboxed\" not found", "RuntimeClass", "sandboxed"),
            ("no PriorityClass with name night was found", "PriorityClass", "night"),
            (
                "failed to get secretproviderclass a/b-c, error: SecretProviderClass.x \"b-c\" not found",
                "SecretProviderClass",
                "b-c",
            ),
            (
                "cannot find a network-attachment-definition (lan) in namespace (a): x \"lan\" not found",
                "NetworkAttachmentDefinition",
                "lan",
            ),
        ] {
            let read = absent(words).unwrap();
            assert_eq!((read.kind, read.name.as_str()), (kind, name), "{words}");
        }
        assert_eq!(absent("the RuntimeClass was found"), None);
    }

    #[test]
    fn file_systems_of_nodes() {
        let root = "mkdir /var/lib/containerd/x/snapshots/new-1: read-only file system";
        assert_eq!(start_fault(root), Some(Cause::NodeRuntime));
        let part = "failed to create subPath directory for volumeMount \"d\" of container \"a\"";
        assert_eq!(start_fault(part), Some(Cause::VolumeMount));
    }

    #[test]
    fn the_innermost_plugin_of_a_sandbox() {
        let chained = "plugin type=\"multus-cni\" failed (add): [a/b]: plugin type=\"istio-cni\" failed (add): Unauthorized";
        assert_eq!(sandbox_plugin(chained), Some("istio-cni"));
        assert_eq!(sandbox_plugin("open /run/flannel/subnet.env: no such file"), None);
    }

    #[test]
    fn volumes_sandboxes_and_probes() {
        let multi = "Multi-Attach error for volume \"pvc-1\" Volume is already used by pod(s) db-0";
        assert_eq!(mount_fault(multi).unwrap().cause, Cause::VolumeAttach);
        let nfs = "MountVolume.SetUp failed for volume \"data\" : mount failed: exit status 32";
        assert_eq!(mount_fault(nfs).unwrap().cause, Cause::VolumeMount);
        let full = "plugin type=\"aws-cni\" name=\"aws-cni\" failed (add): add cmd: failed to assign an IP address to container";
        assert_eq!(sandbox_fault(full), Some(Cause::NetIpExhausted));
        let probe = probe_fault("Readiness probe failed: HTTP probe failed with statuscode: 404").unwrap();
        assert_eq!((probe.probe, probe.failure), ("Readiness", Some(Failure::Status(404))));
        let probe = probe_fault("Liveness probe failed: Get \"http://10.1.1.1:80/\": dial tcp 10.1.1.1:80: connect: connection refused").unwrap();
        assert_eq!(probe.failure, Some(Failure::Refused));
    }
}
