//! The closed list of causes. An id is the machine's name of a cause, in JSON, tests and documentation, and
//! never changes.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! causes {
    ($($variant:ident $id:literal $summary:literal;)*) => {
        /// A mechanism that breaks something in a cluster.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $(#[doc = $summary] $variant,)*
        }

        impl Cause {
            /// Every cause, in the order of the documentation.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant,)*];

            /// The stable id, `area/what`.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self {
                    $(Cause::$variant => $id,)*
                }
            }

            /// What it means, in one clause.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self {
                    $(Cause::$variant => $summary,)*
                }
            }
        }
    };
}

causes! {
    ScheduleNodeSelector "schedule/node-selector" "no node has the labels that the pod asks for";
    ScheduleTaint "schedule/taint" "the pod tolerates no taint of the nodes that fit";
    ScheduleCapacity "schedule/capacity" "the pod requests more than any matching node has free";
    ScheduleSpread "schedule/spread" "spread or anti-affinity rules leave no node";
    ScheduleCordoned "schedule/cordoned" "the nodes that fit are cordoned";
    ScheduleHostPort "schedule/host-port" "another pod holds the host port";
    SchedulePreempted "schedule/preempted" "pods of a higher priority took the place";
    ScheduleSchedulerDown "schedule/scheduler-down" "the scheduler does not work";
    ScheduleGated "schedule/gated" "a scheduling gate or a queue holds the pod";
    ScheduleAutoscaler "schedule/autoscaler" "the autoscaler cannot add a node";
    ImageNotFound "image/not-found" "the registry has no such image";
    ImageUnauthorized "image/unauthorized" "the registry refuses to serve without valid credentials";
    ImageForbidden "image/forbidden" "the registry refuses these credentials";
    ImageRegistryUnreachable "image/registry-unreachable" "the registry cannot be reached";
    ImageRateLimited "image/rate-limited" "the registry limits the rate of pulls";
    ImagePlatform "image/platform" "the image is of another platform";
    ImageInvalid "image/invalid" "the image reference cannot be used";
    RunExits "run/exits" "the program ends with an error of its own";
    RunCommand "run/command" "the command or its arguments cannot be run";
    RunOom "run/oom" "the container uses more memory than its limit";
    RunLiveness "run/liveness" "the liveness probe asks for what is not served";
    RunLivenessStrict "run/liveness-strict" "the liveness probe does not wait for the start";
    RunReadiness "run/readiness" "the readiness probe asks for what is not served";
    RunInitWait "run/init-wait" "an init container waits for ever";
    RunPortConflict "run/port-conflict" "another process listens on the port";
    RunPermission "run/permission" "the file system or the kernel refuses the container's user";
    RunDiskFull "run/disk-full" "the volume is full";
    RunHook "run/hook" "a lifecycle hook fails";
    RunCompletion "run/completion" "a container ends or stays where it must not";
    RunScaledZero "run/scaled-zero" "what others need is scaled to zero";
    RunSaturated "run/saturated" "the container is at its limit of processor time";
    ConfigMissing "config/missing" "a ConfigMap or Secret is absent";
    ConfigKeyMissing "config/key-missing" "a ConfigMap or Secret lacks a key";
    ConfigWrongValue "config/wrong-value" "a value of the configuration is wrong";
    ConfigCredentials "config/credentials" "the program sends credentials that are refused";
    ConfigStale "config/stale" "the pod runs with an older configuration";
    AppBackendState "app/backend-state" "the program that is depended on is in a bad state";
    ExternalDown "external/down" "something outside of the cluster does not answer";
    AdmitQuota "admit/quota" "a quota is used up";
    AdmitLimitRange "admit/limit-range" "a LimitRange forbids these resources";
    AdmitRequestsRequired "admit/requests-required" "a quota demands requests or limits that are not set";
    AdmitPodSecurity "admit/pod-security" "the Pod Security Standard of the namespace forbids the pod";
    AdmitWebhookDown "admit/webhook-down" "an admission webhook does not answer";
    AdmitWebhookTls "admit/webhook-tls" "the API server does not trust a webhook's certificate";
    AdmitPolicy "admit/policy" "an admission policy refuses the object";
    AdmitMutated "admit/mutated" "a webhook or controller changes the object";
    AdmitServiceAccount "admit/service-account" "the service account is absent";
    AdmitImmutable "admit/immutable" "a field that cannot change was changed";
    AdmitSchema "admit/schema" "the object does not fit its schema";
    AdmitTooLarge "admit/too-large" "the object is too large";
    AdmitConflict "admit/conflict" "another field manager owns the field";
    ApiRbac "api/rbac" "a role lacks a verb";
    ApiCrdMissing "api/crd-missing" "the kind is not installed";
    ApiConversionWebhook "api/conversion-webhook" "the conversion webhook of a kind does not answer";
    ApiAggregatedDown "api/aggregated-down" "an aggregated API does not answer";
    ApiOverload "api/overload" "the API server is overloaded";
    ControlControllerDown "control/controller-down" "the controller manager does not work";
    ControlCertificateExpired "control/certificate-expired" "a certificate of the control plane or of a component has expired";
    ControlClock "control/clock" "a clock is wrong";
    ControlEtcd "control/etcd" "etcd is full or slow";
    DeleteFinalizer "delete/finalizer" "a finalizer is never taken off";
    DeleteNamespace "delete/namespace" "a namespace cannot be emptied";
    DeleteVolumeInUse "delete/volume-in-use" "a claim that is being deleted is still mounted";
    DeletePodOnDeadNode "delete/pod-on-dead-node" "the node that should end the pod is gone";
    VolumeClaimMissing "volume/claim-missing" "the claim is absent";
    VolumeClaimWrong "volume/claim-wrong" "the pod mounts a claim that is not its own";
    VolumeNoClass "volume/no-class" "the storage class is absent";
    VolumeNoMatch "volume/no-match" "no volume fits the claim";
    VolumeTaken "volume/taken" "the volume belongs to another claim";
    VolumeProvisioner "volume/provisioner" "the driver does not create the volume";
    VolumeAttach "volume/attach" "the volume is attached to another node";
    VolumeZone "volume/zone" "the volume is in another zone";
    VolumeMount "volume/mount" "the volume cannot be mounted";
    VolumeResize "volume/resize" "the volume cannot grow";
    ServiceSelector "service/selector" "the Service selects no pod";
    ServicePort "service/port" "the Service leads to a port that no container opens";
    ServiceProtocol "service/protocol" "the Service speaks another protocol";
    ServiceMissing "service/missing" "the address names no Service";
    ServiceTrafficPolicy "service/traffic-policy" "a traffic policy leaves the caller's node without endpoints";
    ServiceIdentity "service/identity" "the Service selects pods of two programs";
    ServiceLoadBalancer "service/load-balancer" "the load balancer is not made";
    NetPolicyIngress "net/policy-ingress" "a network policy does not let the caller in";
    NetPolicyEgress "net/policy-egress" "a network policy does not let the caller out";
    NetPolicyDns "net/policy-dns" "a network policy cuts off DNS";
    NetPolicyApiServer "net/policy-api-server" "a network policy cuts off the API server";
    NetPolicyProbe "net/policy-probe" "a network policy cuts off the kubelet's probes";
    NetPolicyWebhook "net/policy-webhook" "a network policy keeps the API server from a webhook";
    NetCniDown "net/cni-down" "the network plugin does not work";
    NetIpExhausted "net/ip-exhausted" "no address is left for pods";
    NetProxyDown "net/proxy-down" "kube-proxy does not work on a node";
    NetNodePorts "net/node-ports" "a port between nodes is closed";
    NetNodeRouting "net/node-routing" "a node's routes to pods are missing";
    NetDegraded "net/degraded" "the network loses or delays packets";
    DnsDown "dns/down" "the cluster's DNS does not answer";
    DnsConfig "dns/config" "the configuration of the cluster's DNS is wrong";
    DnsPolicy "dns/policy" "the pod asks a wrong name server";
    EdgeClass "edge/class" "no controller serves the class";
    EdgeBackend "edge/backend" "the route leads to a Service or port that is absent";
    EdgeTlsSecret "edge/tls-secret" "the certificate's Secret is absent";
    EdgeCertificateExpired "edge/certificate-expired" "the certificate has expired";
    EdgeRedirectLoop "edge/redirect-loop" "the route and its server redirect to each other";
    EdgeRouteRefused "edge/route-refused" "the gateway refuses the route";
    EdgeControllerDown "edge/controller-down" "the ingress controller does not work";
    MeshMtls "mesh/mtls" "one side demands mutual TLS, the other does not speak it";
    MeshAuthorization "mesh/authorization" "an authorization policy of the mesh refuses the caller";
    NodeNotReady "node/not-ready" "the node does not answer";
    NodeRuntime "node/runtime" "the node's container runtime does not work";
    NodePressure "node/pressure" "the node runs out of disk, memory or processes";
    NodeUninitialized "node/uninitialized" "the cloud controller has not initialized the node";
    NodeCsr "node/csr" "certificate requests of nodes are not approved";
    ScaleMetricsDown "scale/metrics-down" "the metrics that the autoscaler needs are absent";
    ScaleNoRequests "scale/no-requests" "the autoscaler's target has no requests";
    ScaleTarget "scale/target" "the autoscaler's target is absent";
    ScaleMax "scale/max" "the autoscaler is at its maximum";
    ScaleBudget "scale/budget" "a disruption budget forbids the eviction";
    ScaleRollout "scale/rollout" "the rollout cannot go on";
    OperatorDown "operator/down" "the operator does not work";
    OperatorReference "operator/reference" "the custom resource names what is absent";
    OperatorRejected "operator/rejected" "the operator refuses the custom resource";
    OperatorIssuer "operator/issuer" "the issuer of certificates does not issue";
    OperatorSecretStore "operator/secret-store" "the secret store does not work";
    OperatorCloudCredentials "operator/cloud-credentials" "the cloud refuses the operator's credentials";
    OperatorTwoOwners "operator/two-owners" "two installations own one component";
    GitopsSelfWait "gitops/self-wait" "the operation waits for itself";
    GitopsRender "gitops/render" "the manifests cannot be rendered";
    GitopsSourceAuth "gitops/source-auth" "the source refuses the credentials";
    GitopsRevision "gitops/revision" "the revision cannot be resolved";
    GitopsProject "gitops/project" "the project does not permit it";
    GitopsHookFailed "gitops/hook-failed" "a hook fails or never ends";
    GitopsStaleOperation "gitops/stale-operation" "a failed operation is not tried again";
    GitopsTwoOwners "gitops/two-owners" "two applications own one object";
    GitopsStillNeeded "gitops/still-needed" "what left Git is not pruned, because something still needs it";
    GitopsDriftFight "gitops/drift-fight" "self-heal and another writer change a field in turn";
    GitopsDependency "gitops/dependency" "a dependency is not ready";
    GitopsHelmRelease "gitops/helm-release" "the Helm release is stuck";
    GitopsNamespace "gitops/namespace" "the destination namespace is absent";
    GitopsPruneFight "gitops/prune-fight" "an object is made and pruned in turn";
}

impl Cause {
    /// The cause with this id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.id() == id)
    }

    /// The part of the id before the slash.
    #[must_use]
    pub fn area(self) -> &'static str {
        self.id().split_once('/').map_or("", |(area, _)| area)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.id())
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_lead_back() {
        let ids: BTreeSet<_> = Cause::ALL.iter().map(|cause| cause.id()).collect();
        assert_eq!(ids.len(), Cause::ALL.len());
        for cause in Cause::ALL {
            assert_eq!(Cause::from_id(cause.id()), Some(*cause));
            assert!(!cause.area().is_empty() && !cause.summary().is_empty());
        }
        assert_eq!(Cause::from_id("run/unheard-of"), None);
    }
}
