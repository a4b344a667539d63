//! Why the API server does not take an object, in its own words and those of admission plugins and policies.

use crate::{
    Cause, absent,
    access::forbidden,
    network::Failure,
    pattern::{has_any, pattern},
};

/// A write that was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The mechanism.
    pub cause: Option<Cause>,
    /// The object that refuses: a quota, a LimitRange, a webhook, a policy; empty if it is not told.
    pub by: String,
    /// The Service of the webhook, as namespace and name.
    pub service: Option<(String, String)>,
    /// How the call of the webhook failed.
    pub failure: Option<Failure>,
    /// Kind and name of the object that was refused, if the words name it.
    pub object: Option<(String, String)>,
    /// What was refused about: a resource, a field, a kind, an account, a manager.
    pub subject: String,
}

pattern!(QUOTA, r"exceeded quota: ([^,\s]+)");
pattern!(REQUIRED, r"failed quota: ([^:\s]+): must specify ([^;]+)");
pattern!(LIMITS, r"((?:maximum|minimum|max|min) [a-z/.-]+ (?:usage|limit|ratio)?[^.,;\]]*)");
pattern!(
    ACCOUNT,
    r#"serviceaccounts? \\?"([^"\\]+)\\?" not found|service account ([^:\s]+:?[^:\s]*) was not found|error looking up service account ([^:]+):"#
);
pattern!(WEBHOOK, r#"failed calling (?:admission )?webhook \\?"([^"\\]+)\\?""#);
pattern!(WEBHOOK_URL, r#"https?://([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.[a-z.]+)?(?::\d+)?"#);
pattern!(
    WEBHOOK_SERVICE,
    r#"service \\?"([a-z0-9.-]+)\\?" (?:in namespace|not found)|no endpoints available for service \\?"([a-z0-9.:-]+)\\?""#
);
pattern!(
    DENIED,
    r#"admission webhook \\?"([^"\\]+)\\?" (?:denied the request|does not support dry run)|ValidatingAdmissionPolicy '([^']+)'"#
);
pattern!(
    TAKEN_ROUTE,
    r#"host \\?"([^"\\]+)\\?" and path \\?"([^"\\]+)\\?" is already defined in ingress ([a-z0-9-]+)/([a-z0-9.-]+)"#
);
pattern!(NO_KIND, r#"no matches for kind \\?"([^"\\]+)\\?" in version \\?"([^"\\]+)\\?""#);
pattern!(
    NO_RESOURCE,
    r#"could not find the requested resource(?: \((?:get|list|watch|post|put|patch|delete) ([a-z0-9]+)\.([a-z0-9.-]+))?|[Tt]he Kubernetes API could not find (?:version \\?"([^"\\]*)\\?" of )?([^ ]+) for requested resource"#
);
pattern!(MANAGER, r#"conflicts? with \\?"([^"\\]+)\\?""#);
pattern!(
    IMMUTABLE,
    r"(?:([a-zA-Z.\[\]0-9]+): Invalid value: .{0,4000}?)?(?:field is immutable|updates to statefulset spec for fields other than|may not change once set|cannot be changed|cannot change roleRef|is immutable)"
);
pattern!(PSS, r#"violates PodSecurity \\?"([^"\\]+)\\?": ([^\n]*)"#);
pattern!(CONVERSION, r"conversion webhook for ([^,\s]+(?:, Kind=\w+)?),? failed");
pattern!(NAMESPACE, r#"namespaces \\?"([^"\\]+)\\?" not found"#);
pattern!(WRITTEN, r#"\b([A-Z][A-Za-z]+)(?:\.[a-z0-9.-]+)? \\?"([^"\\]+)\\?" is (?:invalid|forbidden)"#);
pattern!(
    FIELD,
    r#"unknown field:? ?\\?"?([^"\\,\s]+)|([a-zA-Z][a-zA-Z0-9./~_\[\]-]*): (?:field not declared in schema|Required value|Unsupported value|Invalid value|Too many)"#
);
// What is applied on the server's side: `(shop/web; apps/v1, Kind=Deployment)`.
pattern!(APPLIED, r"\((?:[a-z0-9.-]+/)?([a-zA-Z0-9.:-]+); [a-z0-9./-]+, Kind=([A-Za-z]+)\)");

/// Reads why a write was refused; `cause` is empty if the words do not tell.
#[must_use]
pub fn refusal(message: &str) -> Refusal {
    let low = message.to_ascii_lowercase();
    let read = webhook(message, &low).or_else(|| limit(message)).or_else(|| rule(message, &low));
    let written = WRITTEN.captures(message).map(|it| (it[1].to_owned(), it[2].to_owned()));
    let applied = || APPLIED.captures(message).map(|it| (it[2].to_owned(), it[1].to_owned()));
    let object = written.or_else(applied);
    read.map(|read| Refusal { object, ..read }).unwrap_or_default()
}

/// A host and a path that an Ingress has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenRoute {
    /// The host and the path.
    pub route: String,
    /// The namespace of the Ingress that has them.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Which Ingress has the host and the path that another one was refused for.
#[must_use]
pub fn taken_route(message: &str) -> Option<TakenRoute> {
    let it = TAKEN_ROUTE.captures(message)?;
    let route = format!("{}{}", &it[1], &it[2]);
    Some(TakenRoute { route, namespace: it[3].to_owned(), name: it[4].to_owned() })
}

/// A webhook that could not be asked, or that said no.
fn webhook(message: &str, low: &str) -> Option<Refusal> {
    if let Some(it) = CONVERSION.captures(message) {
        let (failure, service) = (Failure::read(message), service(message));
        let cause = Some(Cause::ApiConversionWebhook);
        return Some(Refusal { cause, by: it[1].to_owned(), service, failure, ..Refusal::default() });
    }
    if let Some(it) = WEBHOOK.captures(message) {
        let failure = Failure::read(message);
        let is_tls = low.contains("x509")
            || matches!(failure, Some(Failure::Untrusted | Failure::Expired | Failure::NotYetValid));
        let cause = Some(if is_tls { Cause::AdmitWebhookTls } else { Cause::AdmitWebhookDown });
        return Some(Refusal {
            cause,
            by: it[1].to_owned(),
            service: service(message),
            failure,
            ..Refusal::default()
        });
    }
    if let Some(it) = DENIED.captures(message) {
        let by = it.iter().skip(1).flatten().next().map(|by| by.as_str().to_owned()).unwrap_or_default();
        return Some(Refusal { cause: Some(Cause::AdmitPolicy), by, ..Refusal::default() });
    }
    let words = [
        "denied request: ",
        "blocked due to the following policies",
        "policy violation",
        "conflicts with its namespace",
        "conflict with its namespace",
        "image policy webhook backend denied",
    ];
    has_any(low, &words).then(|| Refusal { cause: Some(Cause::AdmitPolicy), ..Refusal::default() })
}

fn service(message: &str) -> Option<(String, String)> {
    // What was being done may be told before with an address of its own.
    let call = message.find("Post ").and_then(|at| message.get(at..)).unwrap_or(message);
    if let Some(it) = WEBHOOK_URL.captures(call).or_else(|| WEBHOOK_URL.captures(message)) {
        return Some((it[2].to_owned(), it[1].to_owned()));
    }
    let it = WEBHOOK_SERVICE.captures(message)?;
    let name = it.iter().skip(1).flatten().next()?.as_str().split(':').next()?;
    Some((String::new(), name.to_owned()))
}

/// A quota, a LimitRange, a pod security standard.
fn limit(message: &str) -> Option<Refusal> {
    let refusal = |cause, by: &str, subject: &str| {
        Some(Refusal {
            cause: Some(cause),
            by: by.to_owned(),
            subject: subject.to_owned(),
            ..Refusal::default()
        })
    };
    if let Some(it) = REQUIRED.captures(message) {
        return refusal(Cause::AdmitRequestsRequired, &it[1], it[2].trim());
    }
    if let Some(it) = QUOTA.captures(message) {
        return refusal(Cause::AdmitQuota, &it[1], "");
    }
    if let Some(it) = PSS.captures(message) {
        return refusal(Cause::AdmitPodSecurity, &it[1], &it[2]);
    }
    if message.contains("unable to validate against any pod security policy")
        || message.contains("PodSecurityPolicy: ")
    {
        return refusal(Cause::AdmitPodSecurity, "", "no pod security policy allows it");
    }
    if message.contains("unable to validate against any security context constraint") {
        return refusal(Cause::AdmitPodSecurity, "", "no security context constraint allows it");
    }
    if message.contains(" per Container")
        || message.contains(" per Pod")
        || message.contains(" per PersistentVolumeClaim")
    {
        let subject = LIMITS.captures(message).map(|it| it[1].to_owned()).unwrap_or_default();
        return refusal(Cause::AdmitLimitRange, "", &subject);
    }
    if let Some(it) = absent(message).filter(|it| it.is_cluster_wide()) {
        return refusal(Cause::ConfigMissing, it.kind, &it.name);
    }
    if let Some(it) = ACCOUNT.captures(message) {
        let name = it.iter().skip(1).flatten().next().map_or("", |name| name.as_str());
        let name = name.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(name);
        return refusal(Cause::AdmitServiceAccount, "", name);
    }
    None
}

/// A rule of the API itself.
fn rule(message: &str, low: &str) -> Option<Refusal> {
    let refusal = |cause, subject: &str| {
        Some(Refusal { cause: Some(cause), subject: subject.to_owned(), ..Refusal::default() })
    };
    // Before the words of RBAC: the API server says that such a claim is forbidden.
    let is_of_size = low.contains("can not be less than") && low.contains("storage");
    if is_of_size || has_any(low, &["must support resize", "only dynamically provisioned pvc can be resized"])
    {
        return refusal(Cause::VolumeResize, "");
    }
    if let Some(it) = forbidden(message).first() {
        return refusal(Cause::ApiRbac, &format!("{} {}", it.verb, it.resource));
    }
    if let Some(it) = NO_KIND.captures(message) {
        let kind = it.get(1).map_or("", |kind| kind.as_str());
        let version = it.get(2).map_or("", |version| version.as_str());
        return refusal(Cause::ApiCrdMissing, format!("{kind} {version}").trim());
    }
    if low.contains("resource mapping not found") {
        return refusal(Cause::ApiCrdMissing, "");
    }
    if let Some(it) = NO_RESOURCE.captures(message) {
        // GROUP/KIND, as Argo CD names it.
        let text = |at: usize| it.get(at).map_or("", |it| it.as_str());
        if it.get(1).is_some() {
            return refusal(Cause::ApiCrdMissing, &format!("{}.{}", text(1), text(2)));
        }
        let (version, named) = (text(3), text(4));
        let subject = match named.rsplit_once('/') {
            Some((group, kind)) => format!("{kind} {group}/{version}"),
            None => named.to_owned(),
        };
        return refusal(Cause::ApiCrdMissing, subject.trim_end_matches(" /"));
    }
    let is_of_bytes = low.contains("too long") && low.contains(" bytes");
    if is_of_bytes
        || has_any(
            low,
            &[
                "metadata.annotations: too long",
                "request entity too large",
                "etcdserver: request is too large",
                "entity too large",
            ],
        )
    {
        return refusal(Cause::AdmitTooLarge, "");
    }
    if let Some(it) = IMMUTABLE.captures(message) {
        return refusal(Cause::AdmitImmutable, it.get(1).map_or("", |it| it.as_str()));
    }
    if low.contains("conflict with ") || low.contains("conflicts with ") {
        let subject = MANAGER.captures(message).map(|it| it[1].to_owned()).unwrap_or_default();
        return refusal(Cause::AdmitConflict, &subject);
    }
    if let Some(it) = NAMESPACE.captures(message) {
        return refusal(Cause::GitopsNamespace, &it[1]);
    }
    if has_any(
        low,
        &[
            "is invalid: ",
            "must be of type",
            "failed to create typed patch",
            "unknown field",
            "field not declared in schema",
            "strict decoding error",
            "cannot unmarshal",
            "error validating data",
            "is not valid under any",
            "unsupported value",
        ],
    ) {
        let subject = FIELD
            .captures(message)
            .and_then(|it| it.iter().skip(1).flatten().next().map(|it| it.as_str().to_owned()));
        return refusal(Cause::AdmitSchema, &subject.unwrap_or_default());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_api_server() {
        for (words, cause, by, subject) in [
            (
                "pods \"a\" is forbidden: exceeded quota: team, requested: limits.memory=1Gi, used: limits.memory=4Gi, limited: limits.memory=4Gi",
                Cause::AdmitQuota,
                "team",
                "",
            ),
            (
                "pods \"a\" is forbidden: failed quota: team: must specify limits.memory for: app; requests.cpu for: app",
                Cause::AdmitRequestsRequired,
                "team",
                "limits.memory for: app",
            ),
            (
                "pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
                Cause::AdmitPodSecurity,
                "restricted:latest",
                "runAsNonRoot != true",
            ),
            (
                "pods \"a\" is forbidden: error looking up service account shop/web: serviceaccount \"web\" not found",
                Cause::AdmitServiceAccount,
                "",
                "web",
            ),
            (
                "pods \"a\" is forbidden: pod node label selector conflicts with its namespace node label selector",
                Cause::AdmitPolicy,
                "",
                "",
            ),
            (
                "admission webhook \"validate.kyverno.svc-fail\" denied the request: no",
                Cause::AdmitPolicy,
                "validate.kyverno.svc-fail",
                "",
            ),
            (
                "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: v1.LabelSelector{}: field is immutable",
                Cause::AdmitImmutable,
                "",
                "spec.selector",
            ),
            (
                "no matches for kind \"ServiceMonitor\" in version \"monitoring.coreos.com/v1\"",
                Cause::ApiCrdMissing,
                "",
                "ServiceMonitor monitoring.coreos.com/v1",
            ),
            (
                "metadata.annotations: Too long: may not be more than 262144 bytes",
                Cause::AdmitTooLarge,
                "",
                "",
            ),
            (
                "RoleBinding.rbac.authorization.k8s.io \"a\" is invalid: roleRef: Invalid value: rbac.RoleRef{}: cannot change roleRef",
                Cause::AdmitImmutable,
                "",
                "roleRef",
            ),
            (
                "the server could not find the requested resource (patch ledgers.fin.example.org main)",
                Cause::ApiCrdMissing,
                "",
                "ledgers.fin.example.org",
            ),
            (
                "pods \"a\" is forbidden: PodSecurityPolicy: unable to admit pod: [spec.hostNetwork: Invalid value: true]",
                Cause::AdmitPodSecurity,
                "",
                "no pod security policy allows it",
            ),
            (
                "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using apps/v1: .spec.replicas",
                Cause::AdmitConflict,
                "",
                "kubectl-edit",
            ),
            ("namespaces \"shop\" not found", Cause::GitopsNamespace, "", "shop"),
            (
                "failed to create typed patch object (shop/web; /v1, Kind=Service): .spec.nodePort: field not declared in schema",
                Cause::AdmitSchema,
                "",
                "spec.nodePort",
            ),
            (
                "Service in version \"v1\" cannot be handled as a Service: strict decoding error: unknown field \"spec.nodePort\"",
                Cause::AdmitSchema,
                "",
                "spec.nodePort",
            ),
            (
                "Service \"web\" is invalid: spec.ports[0].port: Required value",
                Cause::AdmitSchema,
                "",
                "spec.ports[0].port",
            ),
            (
                "pods \"a\" is forbidden: no PriorityClass with name night was found",
                Cause::ConfigMissing,
                "PriorityClass",
                "night",
            ),
        ] {
            let read = refusal(words);
            assert_eq!(
                (read.cause, read.by.as_str(), read.subject.as_str()),
                (Some(cause), by, subject),
                "{words}"
            );
        }
    }

    #[test]
    fn webhooks() {
        let read = refusal(
            "Internal error occurred: failed calling webhook \"m.example.io\": failed to call webhook: Post \"https://hook.sys.svc:443/m?timeout=10s\": dial tcp 10.1.1.1:443: connect: connection refused",
        );
        assert_eq!(read.cause, Some(Cause::AdmitWebhookDown));
        assert_eq!(read.service, Some(("sys".into(), "hook".into())));
        let read = refusal(
            "failed calling webhook \"m.example.io\": failed to call webhook: Post \"https://hook.sys.svc:443/m\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
        );
        assert_eq!(read.cause, Some(Cause::AdmitWebhookTls));
        let read = refusal(
            "conversion webhook for example.io/v1, Kind=Widget failed: Post \"https://conv.sys.svc:443/convert\": no endpoints available for service \"conv\"",
        );
        assert_eq!(read.cause, Some(Cause::ApiConversionWebhook));
        let read = refusal(
            "failed to sync cluster \"https://kubernetes.default.svc\": conversion webhook for example.io/v1, Kind=Widget failed: Post \"https://conv.sys.svc:443/convert\": EOF",
        );
        assert_eq!(read.service, Some(("sys".to_owned(), "conv".to_owned())));
    }

    #[test]
    fn what_is_applied_on_the_servers_side_is_named() {
        let object = |words: &str| refusal(words).object;
        let named = |kind: &str, name: &str| Some((kind.to_owned(), name.to_owned()));
        let words = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.x: field not declared in schema";
        assert_eq!(object(words), named("Deployment", "web"));
        assert_eq!(object("Service \"web\" is invalid: spec.ports: Required value"), named("Service", "web"));
        assert_eq!(object("etcdserver: request is too large"), None);
    }
}
