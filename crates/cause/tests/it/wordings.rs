//! One line for each way in which a component says a thing, over its versions.

use tiphys_cause::{
    Cause, Failure, Obstacle, complaints, delivery_fault, mount_fault, placement, probe_fault, pull_fault,
    refusal, sandbox_fault, start_fault,
};

fn check<T: PartialEq + std::fmt::Debug + Copy>(
    read: impl Fn(&str) -> Option<T>,
    lines: &[(&str, Option<T>)],
) {
    let wrong: Vec<String> = lines
        .iter()
        .filter(|(line, meant)| read(line) != *meant)
        .map(|(line, meant)| format!("{line}\n    means {meant:?}, read as {:?}", read(line)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pulls() {
    check(
        |line| pull_fault(line).cause,
        &[
            (
                "Requesting bearer token: invalid status code from registry 403 (Forbidden)",
                Some(Cause::ImageForbidden),
            ),
            (
                "initializing source docker://quay.io/acme/web:2: reading manifest 2 in quay.io/acme/web: manifest unknown",
                Some(Cause::ImageNotFound),
            ),
            (
                "initializing source docker://quay.io/acme/web:2: reading manifest 2 in quay.io/acme/web: unauthorized: access to the requested resource is not authorized",
                Some(Cause::ImageUnauthorized),
            ),
            (
                "reading manifest v3 in docker.io/acme/web: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required\n",
                Some(Cause::ImageUnauthorized),
            ),
            (
                "failed to resolve reference \"eu.gcr.io/acme/web:1\": failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://eu.gcr.io/v2/token?scope=x: 403 Forbidden",
                Some(Cause::ImageForbidden),
            ),
            (
                "failed to resolve reference \"r.example.com/web:1\": pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials",
                Some(Cause::ImageUnauthorized),
            ),
            (
                "failed to resolve reference \"r.example.com/web:1\": unexpected status from HEAD request to https://r.example.com/v2/web/manifests/1: 503 Service Unavailable",
                Some(Cause::ImageRegistryUnreachable),
            ),
            (
                "failed to do request: Head \"https://r.example.com/v2/web/manifests/1\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
                Some(Cause::ImageRegistryUnreachable),
            ),
            (
                "failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/library/redis/manifests/sha256:0a1b: 429 Too Many Requests - Server message: toomanyrequests: You have reached your unauthenticated pull rate limit.",
                Some(Cause::ImageRateLimited),
            ),
            (
                "no matching manifest for linux/arm64/v8 in the manifest list entries",
                Some(Cause::ImagePlatform),
            ),
            (
                "failed to pull and unpack image \"r.example.com/web:1\": no match for platform in manifest: not found",
                Some(Cause::ImagePlatform),
            ),
            (
                "Failed to apply default image tag \"R.example.com/Web\": couldn't parse image name \"R.example.com/Web\": invalid reference format: repository name (Web) must be lowercase",
                Some(Cause::ImageInvalid),
            ),
            ("Container image \"web:1\" is not present with pull policy of Never", Some(Cause::ImageInvalid)),
            (
                "failed to pull and unpack image \"r.example.com/web:1\": failed to extract layer sha256:ab: write /var/lib/containerd/tmp: no space left on device: unknown",
                Some(Cause::NodePressure),
            ),
            ("Back-off pulling image \"r.example.com/web:1\"", None),
        ],
    );
}

#[test]
fn sandboxes_and_starts() {
    check(
        sandbox_fault,
        &[
            (
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"0a1b\": plugin type=\"calico\" failed (add): stat /var/lib/calico/nodename: no such file or directory: check that the calico/node container is running and has mounted /var/lib/calico/",
                Some(Cause::NetCniDown),
            ),
            (
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"0a1b\": plugin type=\"flannel\" failed (add): loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or directory",
                Some(Cause::NetCniDown),
            ),
            (
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"0a1b\": plugin type=\"cilium-cni\" failed (add): unable to connect to Cilium agent: failed to create cilium agent client after 30.000000 seconds timeout",
                Some(Cause::NetCniDown),
            ),
            (
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"0a1b\": plugin type=\"host-local\" failed (add): failed to allocate for range 0: no IP addresses available in range set: 10.244.1.1-10.244.1.254",
                Some(Cause::NetIpExhausted),
            ),
            (
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to start sandbox container task \"0a1b\": failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process",
                Some(Cause::NodeRuntime),
            ),
            (
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for \"gvisor\" is configured",
                Some(Cause::NodeRuntime),
            ),
        ],
    );
    check(
        start_fault,
        &[
            (
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: \"serve\": executable file not found in $PATH: unknown",
                Some(Cause::RunCommand),
            ),
            (
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"/app/run.sh\": permission denied: unknown",
                Some(Cause::RunPermission),
            ),
            (
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error mounting \"/var/lib/kubelet/pods/x/volume-subpaths/c/web/0\" to rootfs at \"/etc/app.yaml\": mount /var/lib: not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)?",
                Some(Cause::VolumeMount),
            ),
            (
                "container create failed: time=\"2026-01-01T00:00:00Z\" level=error msg=\"runc create failed: unable to start container process: exec: \\\"sh\\\": executable file not found in $PATH\"",
                Some(Cause::RunCommand),
            ),
            (
                "failed to start container \"0a1b\": Error response from daemon: driver failed programming external connectivity: Bind for 0.0.0.0:8080 failed: port is already allocated",
                Some(Cause::RunPortConflict),
            ),
        ],
    );
}

#[test]
fn mounts() {
    check(
        |line| mount_fault(line).map(|fault| fault.cause),
        &[
            (
                "Multi-Attach error for volume \"pvc-1\" Volume is already exclusively attached to one node and can't be attached to another",
                Some(Cause::VolumeAttach),
            ),
            (
                "AttachVolume.Attach failed for volume \"pvc-1\" : rpc error: code = Internal desc = Could not attach volume \"vol-1\" to node \"i-1\": VolumeInUse: vol-1 is already attached to an instance",
                Some(Cause::VolumeAttach),
            ),
            (
                "AttachVolume.Attach failed for volume \"pvc-1\" : rpc error: code = Internal desc = UnauthorizedOperation: You are not authorized to perform this operation",
                Some(Cause::OperatorCloudCredentials),
            ),
            (
                "MountVolume.MountDevice failed for volume \"pvc-1\" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name ebs.csi.aws.com not found in the list of registered CSI drivers",
                Some(Cause::VolumeMount),
            ),
            (
                "MountVolume.SetUp failed for volume \"data\" : mount failed: exit status 32\nMounting command: mount\nOutput: mount.nfs: Connection timed out",
                Some(Cause::VolumeMount),
            ),
            (
                "MountVolume.SetUp failed for volume \"sock\" : hostPath type check failed: /run/x.sock is not a socket file",
                Some(Cause::VolumeMount),
            ),
            (
                "MountVolume.SetUp failed for volume \"kube-api-access-x\" : object \"shop\"/\"kube-root-ca.crt\" not registered",
                None,
            ),
            ("MountVolume.SetUp failed for volume \"cfg\" : configmap \"web\" not found", None),
            (
                "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition",
                None,
            ),
        ],
    );
}

#[test]
fn probes() {
    let failure = |line: &str| probe_fault(line).and_then(|fault| fault.failure);
    check(
        failure,
        &[
            (
                "Readiness probe failed: Get \"http://10.244.1.7:8080/healthz\": dial tcp 10.244.1.7:8080: connect: connection refused",
                Some(Failure::Refused),
            ),
            (
                "Readiness probe failed: Get \"http://10.244.1.7:8080/healthz\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
                Some(Failure::Timeout),
            ),
            (
                "Startup probe failed: dial tcp 10.244.1.7:8080: connect: connection refused",
                Some(Failure::Refused),
            ),
            ("Readiness probe failed: HTTP probe failed with statuscode: 503", Some(Failure::Status(503))),
            (
                "Liveness probe failed: Get \"https://10.244.1.7:8443/\": http: server gave HTTP response to HTTPS client",
                Some(Failure::Plaintext),
            ),
            (
                "Readiness probe failed: timeout: failed to connect service \"10.244.1.7:9090\" within 1s: context deadline exceeded",
                Some(Failure::Timeout),
            ),
        ],
    );
    let read =
        probe_fault("Readiness probe failed: command timed out: \"pg_isready\" timed out after 1s").unwrap();
    assert!(read.is_command);
}

#[test]
fn placements() {
    let first =
        |line: &str| placement(line).obstacles.into_iter().map(|(_, obstacle)| obstacle).collect::<Vec<_>>();
    for (line, meant) in [
        (
            "0/3 nodes are available: 3 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            vec![Obstacle::Taint(String::new())],
        ),
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }, 2 node(s) were unschedulable.",
            vec![Obstacle::Taint("node.kubernetes.io/disk-pressure".into()), Obstacle::Cordoned],
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
            vec![Obstacle::Spread],
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints (missing required label).",
            vec![Obstacle::Spread],
        ),
        (
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
            vec![Obstacle::Insufficient("nvidia.com/gpu".into())],
        ),
        (
            "0/2 nodes are available: 2 Too many pods. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
            vec![Obstacle::Insufficient("pods".into())],
        ),
        (
            "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.",
            vec![Obstacle::HostPort],
        ),
        (
            "0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 node(s) didn't find available persistent volumes to bind.",
            vec![Obstacle::VolumeZone, Obstacle::NoVolume],
        ),
        (
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            vec![Obstacle::ClaimUnbound],
        ),
        (
            "running PreBind plugin \"VolumeBinding\": binding volumes: context deadline exceeded",
            vec![Obstacle::Other(
                "running PreBind plugin \"VolumeBinding\": binding volumes: context deadline exceeded".into(),
            )],
        ),
    ] {
        assert_eq!(first(line), meant, "{line}");
    }
}

#[test]
fn refusals() {
    check(
        |line| refusal(line).cause,
        &[
            (
                "pods \"web-1\" is forbidden: exceeded quota: team, requested: limits.memory=2Gi, used: limits.memory=7Gi, limited: limits.memory=8Gi",
                Some(Cause::AdmitQuota),
            ),
            (
                "pods \"web-1\" is forbidden: failed quota: team: must specify limits.memory for: web; requests.cpu for: web",
                Some(Cause::AdmitRequestsRequired),
            ),
            (
                "pods \"web-1\" is forbidden: [maximum memory usage per Container is 1Gi, but limit is 2Gi, maximum cpu usage per Pod is 2, but limit is 4]",
                Some(Cause::AdmitLimitRange),
            ),
            (
                "pods \"web-1\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"web\" must set securityContext.allowPrivilegeEscalation=false)",
                Some(Cause::AdmitPodSecurity),
            ),
            (
                "pods \"web-1\" is forbidden: error looking up service account shop/runner: serviceaccount \"runner\" not found",
                Some(Cause::AdmitServiceAccount),
            ),
            (
                "Internal error occurred: failed calling webhook \"validate.kyverno.svc-fail\": failed to call webhook: Post \"https://kyverno-svc.kyverno.svc:443/validate/fail?timeout=10s\": dial tcp 10.96.14.2:443: connect: connection refused",
                Some(Cause::AdmitWebhookDown),
            ),
            (
                "Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post \"https://hook.ops.svc:443/v?timeout=10s\": no endpoints available for service \"hook\"",
                Some(Cause::AdmitWebhookDown),
            ),
            (
                "Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post \"https://hook.ops.svc:443/v?timeout=10s\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
                Some(Cause::AdmitWebhookTls),
            ),
            (
                "admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/shop/web was blocked due to the following policies",
                Some(Cause::AdmitPolicy),
            ),
            (
                "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: failed expression: object.spec.replicas <= 5",
                Some(Cause::AdmitPolicy),
            ),
            (
                "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{\"app\":\"web\"}}: field is immutable",
                Some(Cause::AdmitImmutable),
            ),
            (
                "StatefulSet.apps \"db\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
                Some(Cause::AdmitImmutable),
            ),
            (
                "Service \"web\" is invalid: spec.clusterIPs[0]: Invalid value: []string{\"None\"}: may not change once set",
                Some(Cause::AdmitImmutable),
            ),
            (
                "CustomResourceDefinition.apiextensions.k8s.io \"x.example.com\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes",
                Some(Cause::AdmitTooLarge),
            ),
            (
                "error validating data: [unknown object type \"nil\" in ConfigMap.data.A]",
                Some(Cause::AdmitSchema),
            ),
            (
                "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name=\"web\"].enviroment: field not declared in schema",
                Some(Cause::AdmitSchema),
            ),
            (
                "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas",
                Some(Cause::AdmitConflict),
            ),
            (
                "The Kubernetes API could not find acme.example.com/Widget for requested resource shop/one. Make sure the \"Widget\" CRD is installed on the destination cluster.",
                Some(Cause::ApiCrdMissing),
            ),
            (
                "no matches for kind \"ServiceMonitor\" in version \"monitoring.coreos.com/v1\"",
                Some(Cause::ApiCrdMissing),
            ),
            (
                "conversion webhook for acme.example.com/v1, Kind=Widget failed: Post \"https://hook.ops.svc:443/convert?timeout=30s\": service \"hook\" not found",
                Some(Cause::ApiConversionWebhook),
            ),
            ("namespaces \"shop\" not found", Some(Cause::GitopsNamespace)),
            (
                "deployments.apps is forbidden: User \"system:serviceaccount:argocd:argocd-application-controller\" cannot create resource \"deployments\" in API group \"apps\" in the namespace \"shop\"",
                Some(Cause::ApiRbac),
            ),
        ],
    );
    let read = refusal(
        "The Kubernetes API could not find acme.example.com/Widget for requested resource shop/one. Make sure the \"Widget\" CRD is installed on the destination cluster.",
    );
    assert_eq!(read.subject, "Widget acme.example.com/");
}

#[test]
fn deliveries() {
    check(
        delivery_fault,
        &[
            (
                "unable to find destination server: there are no clusters with this name: prod",
                Some(Cause::GitopsNamespace),
            ),
            ("application referencing project payments which does not exist", Some(Cause::GitopsProject)),
            (
                "application repo https://git.example.com/a.git is not permitted in project 'default'",
                Some(Cause::GitopsProject),
            ),
            (
                "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = deploy/none: app path does not exist",
                Some(Cause::GitopsRender),
            ),
            (
                "failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = failed to list refs: authentication required",
                Some(Cause::GitopsSourceAuth),
            ),
            (
                "rpc error: code = Unknown desc = unable to resolve git revision : unable to resolve 'v9' to a commit SHA",
                Some(Cause::GitopsRevision),
            ),
            (
                "failed to checkout and determine revision: unable to clone 'ssh://git@git.example.com/a.git': ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey], no supported methods remain",
                Some(Cause::GitopsSourceAuth),
            ),
            (
                "kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'web.yaml': open /tmp/x/web.yaml: no such file or directory'",
                Some(Cause::GitopsRender),
            ),
            (
                "chart pull error: failed to get chart version for remote reference: no 'postgresql' chart with version matching '99.*' found",
                Some(Cause::GitopsRevision),
            ),
            (
                "invalid chart reference: failed to get chart version for remote reference: no chart name found",
                Some(Cause::GitopsRevision),
            ),
            (
                "Helm upgrade failed for release shop/web with chart web@1.0.0: another operation (install/upgrade/rollback) is in progress",
                Some(Cause::GitopsHelmRelease),
            ),
            (
                "Helm install failed for release shop/web with chart web@1.0.0: YAML parse error on web/templates/d.yaml: error converting YAML to JSON: yaml: line 12: did not find expected key",
                Some(Cause::GitopsRender),
            ),
        ],
    );
}

#[test]
fn programs() {
    check(
        |line| complaints(line).first().map(|it| it.cause),
        &[
            ("Error: Cannot find module '/app/dist/main.js'", Some(Cause::RunCommand)),
            ("sh: 1: serve: not found", Some(Cause::RunCommand)),
            ("Error: Could not find or load main class com.acme.Main", Some(Cause::RunCommand)),
            ("npm error Missing script: \"start:prod\"", Some(Cause::RunCommand)),
            (
                "nginx: [emerg] bind() to 0.0.0.0:80 failed (13: Permission denied)",
                Some(Cause::RunPermission),
            ),
            (
                "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
                Some(Cause::RunPortConflict),
            ),
            (
                "initdb: error: could not change permissions of directory \"/var/lib/postgresql/data\": Operation not permitted",
                Some(Cause::RunPermission),
            ),
            ("FATAL:  password authentication failed for user \"app\"", Some(Cause::ConfigCredentials)),
            (
                "ERROR 1045 (28000): Access denied for user 'app'@'10.244.1.9' (using password: YES)",
                Some(Cause::ConfigCredentials),
            ),
            (
                "ReplyError: WRONGPASS invalid username-password pair or user is disabled.",
                Some(Cause::ConfigCredentials),
            ),
            (
                "com.mongodb.MongoSecurityException: Exception authenticating MongoCredential: Command failed with error 18 (AuthenticationFailed)",
                Some(Cause::ConfigCredentials),
            ),
            (
                "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
                Some(Cause::AppBackendState),
            ),
            ("READONLY You can't write against a read only replica.", Some(Cause::AppBackendState)),
            (
                "Error writing to database: ERROR 1290 (HY000): The MySQL server is running with the --read-only option",
                Some(Cause::AppBackendState),
            ),
            ("Code: 503. Errors: * Vault is sealed", Some(Cause::AppBackendState)),
            ("level=info msg=started", None),
        ],
    );
}
