//! Why one custom resource is not ready, by its own conditions.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use super::{
    certificates::{challenge, child},
    condition_words::{
        Named, fits_none, image_fault, is_denied, is_general, is_of_waiting, is_rejected, named_but_absent,
        own_complaint, own_words, quotes_degraded_node, says_why, tells_of_cloud_limit,
    },
    failed_calls::{call_line, failed_call, outward_call, telling_line},
    hidden_references::{absent_behind, lacking_key, services_of_spec},
    links::with_links,
    lookup::operators,
    operator_log::{error_line, is_heard, told_by_operator},
    unattended::unattended,
};
use crate::{
    Object,
    address_target::Target,
    causes::admission,
    cluster::{
        complaint::{complaint, tells_of_failure},
        condition_text, pods, time,
    },
    dependencies,
    finding::Finding,
    search_context::Look,
    symptoms::{failed_phase, ill_health},
};

/// Whether words name an address inside of the cluster, and Services or pods were not saved.
pub(crate) fn rests_on_unseen(look: &Look<'_>, words: &str) -> bool {
    let is_unseen = !look.cluster.has_kind("Pod") || !look.cluster.has_kind("Service");
    // NAME.NAMESPACE is what a Service is called from other namespaces.
    let is_of_namespace = |host: &str| {
        host.split_once('.').is_some_and(|(_, rest)| look.cluster.get("Namespace", "", rest).is_some())
    };
    let is_inside = |address: &tiphys_cause::Address| {
        address.host.contains(".svc")
            || is_of_namespace(&address.host)
            || matches!(look.cluster.target(address, "default"), Target::Service(_))
            || address.is_ip() && !look.cluster.has_kind("Service")
    };
    is_unseen && tiphys_cause::addresses(words).iter().any(is_inside)
}

/// Why one custom resource is not ready.
pub(super) fn fault(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let is_red = look.is_red(&Object::from_live(live));
    match live.kind() {
        "Issuer" | "ClusterIssuer" if is_red => {
            let finding = finding_from_condition(
                live,
                Cause::OperatorIssuer,
                0.92,
                "does not issue certificates",
                "Correct the issuer: account, solver, credentials, reachability.",
            );
            let finding = with_calls(look, live, finding);
            return Some(services_of_spec(look, live).into_iter().fold(finding, Finding::below));
        }
        "SecretStore" | "ClusterSecretStore" if is_red => return Some(store(look, live)),
        "Challenge" | "Order" => return challenge(look, live),
        "Certificate" | "CertificateRequest" | "ExternalSecret" | "ClusterExternalSecret" | "PushSecret"
            if is_red =>
        {
            return child(look, live);
        }
        _ => {}
    }
    let operators = operators(look, live);
    if is_red { unready(look, live, operators) } else { unattended(look, live, &operators) }
}

/// Why a store of secrets does not work.
fn store(look: &Look<'_>, live: &Value) -> Finding {
    let words = complaint(live).map(condition_text).unwrap_or_default();
    if let Some(finding) = failed_call(look, live, &operators(look, live), &words) {
        return finding;
    }
    let finding = finding_from_condition(
        live,
        Cause::OperatorSecretStore,
        0.93,
        "does not work",
        "Correct the store: address, credentials, role.",
    );
    let finding = with_calls(look, live, finding);
    let finding = services_of_spec(look, live).into_iter().fold(finding, Finding::below);
    if rests_on_unseen(look, &words) { finding.not_known() } else { finding }
}

/// What is said about a resource, and where.
struct Said {
    /// The words that tell most.
    words: String,
    /// The warning that they are from, if they are from one.
    warning: Option<String>,
    /// The line of a log that they are from, with its source.
    line: Option<(String, String)>,
    /// The line in which its operator says that a call for it failed, with its source.
    call: Option<(String, String)>,
}

/// Conditions may tell only that something is wrong; events and the operator's log tell what.
fn gather_words(look: &Look<'_>, live: &Value, own: String, operators: &[Object]) -> Said {
    let warning = look.cluster.events(&Object::from_live(live)).rfind(|event| event.is_warning());
    let warning = warning.filter(|event| own.is_empty() || !says_why(&own) && says_why(&event.message));
    let words = warning.map_or(own, |event| event.message.clone());
    let line = if says_why(&words) { None } else { telling_line(look, live, operators) };
    // Words that tell nothing yield to any error of the operator.
    let says_little = words.is_empty() || is_general(&words, live.kind());
    let line = line.or_else(|| error_line(look, live, operators).filter(|_| says_little));
    Said {
        words: line.as_ref().map_or(words, |(_, line)| line.clone()),
        warning: warning.map(|event| event.message.clone()),
        line,
        call: call_line(look, live, operators),
    }
}

/// Why a resource is not ready that no search of its own is for.
fn unready(look: &Look<'_>, live: &Value, operators: Vec<Object>) -> Option<Finding> {
    let object = Object::from_live(live);
    let own = own_words(live);
    let elsewhere =
        failed_call(look, live, &operators, &own).or_else(|| refused_write(look, &object, &own)).or_else(
            || Some(()).filter(|()| !says_why(&own)).and_then(|()| told_by_operator(look, live, &operators)),
        );
    if elsewhere.is_some() {
        return elsewhere;
    }
    let said = gather_words(look, live, own, &operators);
    if let Some(rights) = lacking_right(look, live, &operators, &said.words) {
        return Some(rights);
    }
    let mut finding =
        by_words(look, live, &operators, &said).unwrap_or_else(|| not_ready(look, live, &operators, &said));
    if let Some(warning) = said.warning {
        finding = finding.evidence(format!("Event of {object}"), warning);
    }
    if let Some((source, line)) = said.line {
        finding = finding.evidence(source, line);
    }
    let called = said.call.as_ref().map_or("", |(_, line)| line.as_str());
    Some(with_links(look, live, finding, operators, (&said.words, called)))
}

/// The right that the operator of a resource lacks, by what is said about it.
fn lacking_right(look: &Look<'_>, live: &Value, operators: &[Object], words: &str) -> Option<Finding> {
    let object = Object::from_live(live);
    let told =
        tiphys_cause::forbidden(words).into_iter().chain(finalizers_right(look, live, operators, words));
    let who = operators.first().unwrap_or(&object);
    let rights =
        told.into_iter().find_map(|forbidden| crate::causes::api::rights_fault(look, who, &forbidden))?;
    Some(rights.evidence(object.to_string(), words).suffers(object, "is not cared for"))
}

/// Whether a resource stands for a repository of Git.
fn fetches_from_git(live: &Value) -> bool {
    let address = ["repo", "repoURL", "url"].iter().find_map(|key| live.str_at(&["spec", key]));
    address.is_some_and(|address| {
        address.ends_with(".git") || address.starts_with("ssh://") || address.starts_with("git@")
    }) || live.kind().starts_with("Git") && address.is_some()
}

/// Kinds that stand for machines, and for what orders them.
const MACHINES: &[&str] = &["NodeClaim", "Machine", "MachineSet", "MachineDeployment", "MachinePool"];

/// What the words about a resource mean, from the plainest to the least plain.
fn by_words(look: &Look<'_>, live: &Value, operators: &[Object], said: &Said) -> Option<Finding> {
    let words = said.words.as_str();
    let new = |cause, confidence, what, remedy| finding_from_condition(live, cause, confidence, what, remedy);
    if let Some(cause) = image_fault(words) {
        return Some(new(cause, 0.88, "gets no image", "Correct the image, or the credentials for it."));
    }
    if MACHINES.contains(&live.kind()) && tells_of_cloud_limit(words) {
        let remedy = "Raise the limit of the account, or ask for machines that the cloud has.";
        return Some(new(Cause::ScheduleAutoscaler, 0.9, "gets no machine from the cloud", remedy));
    }
    if fetches_from_git(live) && tiphys_cause::delivery_fault(words) == Some(Cause::GitopsSourceAuth) {
        let remedy = "Correct the login to the repository.";
        return Some(new(Cause::GitopsSourceAuth, 0.9, "is not let in by its repository", remedy));
    }
    if is_denied(words) {
        let remedy = "Give the operator's identity the rights that the condition names.";
        return Some(new(Cause::OperatorCloudCredentials, 0.9, "is refused by the cloud", remedy));
    }
    if let Some(complaint) = own_complaint(words) {
        let (what, remedy) = match &said.line {
            Some(_) => ("does not work, as the log says", "Correct what the line of the log names."),
            None => ("does not work", "Correct what it says of itself."),
        };
        return Some(new(complaint.cause, 0.75, what, remedy));
    }
    if let Some(finding) = outward_call(look, live, operators, words) {
        return Some(finding);
    }
    if let Some(finding) = lacking_key(look, live, words) {
        return Some(finding);
    }
    if let Some(named) = named_but_absent(words).filter(|it| !is_there(look, live, it)) {
        return Some(not_there(look, live, &named));
    }
    if fits_none(words) {
        let remedy = "Make what is selected, or correct the selector.";
        return Some(new(Cause::OperatorReference, 0.8, "selects what does not exist", remedy));
    }
    if is_rejected(words) {
        let remedy = "Correct the specification.";
        return Some(new(Cause::OperatorRejected, 0.88, "is refused by its operator", remedy));
    }
    // Who waits for something else may do without what it names.
    let says_little = words.is_empty() || is_general(words, live.kind()) || !is_of_waiting(words);
    if says_little { absent_behind(look, live) } else { None }
}

/// That a resource is not ready, and nothing says why.
fn not_ready(look: &Look<'_>, live: &Value, operators: &[Object], said: &Said) -> Finding {
    // A grade that is bad tells of the state of what was made, and of no refusal.
    let is_state = ill_health(live).is_some();
    let is_failure = tells_of_failure(live) || failed_phase(live).is_some() || quotes_degraded_node(live);
    let is_told = !is_general(&said.words, live.kind()) || is_heard(look, operators) && said.call.is_none();
    finding_from_condition(
        live,
        if is_state { Cause::AppBackendState } else { Cause::OperatorRejected },
        if is_failure && !is_of_waiting(&said.words) && is_told { 0.55 } else { 0.35 },
        "is not ready",
        "Read its conditions and its operator's log.",
    )
    .shallow()
}

/// The right that an operator lacks which may not own what it makes for a resource.
fn finalizers_right(
    look: &Look<'_>,
    live: &Value,
    operators: &[Object],
    words: &str,
) -> Option<tiphys_cause::Forbidden> {
    if !tiphys_cause::cannot_own(words) {
        return None;
    }
    // An operator whose name tells nothing is known by its log.
    let says = |log: &&crate::Log| log.last_lines().any(tiphys_cause::cannot_own);
    let by_log = || {
        let log = look.cluster.case.logs.iter().find(says)?;
        Some(look.cluster.workload(look.cluster.get("Pod", &log.namespace, &log.pod)?))
    };
    let operator = operators.first().cloned().or_else(by_log)?;
    let operator = &operator;
    let spec = look.cluster.live(operator).and_then(pods::spec)?;
    let account = spec.str_at(&["serviceAccountName"]).unwrap_or("default");
    let group = live.gvk().group;
    let mut definitions = look.cluster.all("CustomResourceDefinition").iter();
    let named = definitions.find(|it| {
        it.str_at(&["spec", "names", "kind"]) == Some(live.kind())
            && it.str_at(&["spec", "group"]) == Some(group.as_str())
    });
    let plural = named.and_then(|it| it.str_at(&["spec", "names", "plural"])).map(str::to_owned);
    let plural = plural.unwrap_or_else(|| format!("{}s", live.kind().to_ascii_lowercase()));
    Some(tiphys_cause::Forbidden {
        user: format!("system:serviceaccount:{}:{account}", operator.namespace),
        verb: "update".to_owned(),
        resource: format!("{plural}/finalizers"),
        group,
        namespace: Some(live.namespace().to_owned()).filter(|it| !it.is_empty()),
        line: words.to_owned(),
    })
}

/// A write for a resource that the API server refused, for a reason that lies with another object.
pub(super) fn refused_write(look: &Look<'_>, object: &Object, words: &str) -> Option<Finding> {
    const CAUSES: &[Cause] = &[
        Cause::AdmitServiceAccount,
        Cause::AdmitQuota,
        Cause::AdmitLimitRange,
        Cause::AdmitPolicy,
        Cause::AdmitPodSecurity,
        Cause::AdmitWebhookDown,
        Cause::AdmitWebhookTls,
        Cause::ApiCrdMissing,
    ];
    let read = tiphys_cause::refusal(words);
    read.cause.filter(|cause| CAUSES.contains(cause))?;
    let source = format!("{object}, status");
    let refused =
        admission::Refused { writer: object.clone(), written: None, source, message: words.to_owned() };
    admission::fault(look, &refused)
}

/// Whether what words say is not there is there: they are about its state.
fn is_there(look: &Look<'_>, live: &Value, named: &Named) -> bool {
    let is_known = |namespace: &str| look.cluster.get(&named.kind, namespace, &named.name).is_some();
    !named.kind.is_empty() && (is_known(live.namespace()) || is_known(""))
}

/// A resource that names what is not there.
fn not_there(look: &Look<'_>, live: &Value, named: &Named) -> Finding {
    let object = Object::from_live(live);
    let name = &named.name;
    let finding = finding_from_condition(
        live,
        Cause::OperatorReference,
        0.88,
        &format!("names {name}, which does not exist"),
        "Make what is named, or correct the reference.",
    );
    let absent = referred(look, &object, named).filter(|it| look.cluster.live(it).is_none());
    if let Some(absent) = absent {
        let is_data = matches!(absent.kind.as_str(), "Secret" | "ConfigMap");
        // What a resource names itself is its own fault; what is behind another one, or shared, is not.
        let is_far = !dependencies::upstream(look.cluster, &object).contains(&absent);
        let is_shared = look
            .red
            .keys()
            .filter(|it| it.kind == object.kind && **it != object)
            .any(|it| dependencies::upstream(look.cluster, it).contains(&absent));
        if is_far || is_shared {
            let cause = if is_data { Cause::ConfigMissing } else { Cause::OperatorReference };
            let mut finding = finding;
            finding.cause = cause;
            finding.summary = format!("{absent} does not exist, and {object} needs it");
            finding.object = absent;
            return finding.suffers(object, "names what does not exist");
        }
    }
    let kinds = ["Secret", "ConfigMap", "StorageClass", "Service"];
    kinds.iter().fold(finding, |finding, kind| {
        let namespace = if *kind == "StorageClass" { "" } else { &object.namespace };
        finding.below(Object::new(kind, namespace, name))
    })
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
    let words = own_words(live);
    let text = if words.is_empty() { String::new() } else { format!(": {words}") };
    let source = condition
        .and_then(|it| it.str_at(&["type"]))
        .map_or_else(|| format!("{object}, status"), |name| format!("{object}, condition {name}"));
    Finding::new(cause, object.clone(), confidence, format!("{object} {what}{text}"))
        .since(condition.and_then(|it| time(it, &["lastTransitionTime"])))
        .evidence(source, words)
        .remedy(remedy, &[object.kubectl("describe")])
}

/// What a condition calls without effect, as what may lie below.
fn with_calls(look: &Look<'_>, live: &Value, finding: Finding) -> Finding {
    let words = complaint(live).map(condition_text).unwrap_or_default();
    let namespace = if live.namespace().is_empty() { "default" } else { live.namespace() };
    let mut finding = finding;
    for address in tiphys_cause::addresses(&words) {
        if let Target::Service(service) = look.cluster.target(&address, namespace) {
            finding = finding.below(Object::from_live(service));
        }
    }
    if let Some(absent) = tiphys_cause::absent(&words) {
        finding = finding.evidence(format!("{} {}", absent.kind, absent.name), "does not exist");
    }
    finding
}

/// The object of that kind and name that a resource refers to, over what it refers to.
fn referred(look: &Look<'_>, object: &Object, named: &Named) -> Option<Object> {
    let near = dependencies::upstream(look.cluster, object);
    let far = near.iter().flat_map(|it| dependencies::upstream(look.cluster, it)).collect::<Vec<_>>();
    near.into_iter().chain(far).find(|it| it.kind == named.kind && it.name == named.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_and_of_which_kind() {
        let read = |words: &str| named_but_absent(words).map(|it| (it.kind, it.name));
        let named = |kind: &str, name: &str| Some((kind.to_owned(), name.to_owned()));
        assert_eq!(
            read(
                "cannot get referenced ProviderConfig: \"a\": ProviderConfig.aws.example.org \"a\" not found"
            ),
            named("ProviderConfig", "a")
        );
        assert_eq!(read("references missing ResourceFlavor(s): spot,gpu."), named("ResourceFlavor", "spot"));
        assert_eq!(read("LocalQueue gpu doesn't exist"), named("LocalQueue", "gpu"));
        assert_eq!(read("secrets \"db/creds\" not found"), named("Secret", "creds"));
        assert_eq!(read("could not find queue 'night'"), named("", "night"));
        assert_eq!(read("secret more-rules could not be found"), named("Secret", "more-rules"));
        assert_eq!(read("Missing required configuration \"url\" which has no default"), None);
        assert_eq!(read("all is well"), None);
    }
}
