//! Why one custom resource is not ready, by its own conditions.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use super::{
    certificates::{challenge, child},
    condition_words::{
        Named, QUOTES, fits_none, image_fault, is_denied, is_general, is_of_waiting, is_rejected,
        kind_of_title, named_but_absent, names, own_complaint, own_words, says_why,
    },
    lookup::{has_no_status, is_waiting, operators},
    operator_log::{is_heard, speaks_of, told_by_operator},
};
use crate::{
    Object,
    address_target::Target,
    calls::{self, Caller},
    causes::admission,
    cluster::{
        complaint::{complaint, tells_of_failure},
        condition_text, pods, time,
    },
    dependencies,
    finding::Finding,
    log_evidence::Fact,
    search_context::Look,
    symptoms::{failed_phase, ill_health},
};

/// From here on a call is explained by objects, and not by words alone.
const SURE: f64 = 0.8;

/// Workloads of a namespace that may be why a resource is not ready: more of them tell nothing.
const MOST_BESIDE: usize = 16;

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
    let object = Object::from_live(live);
    let is_red = look.is_red(&object);
    match object.kind.as_str() {
        "Issuer" | "ClusterIssuer" if is_red => {
            return Some(finding_from_condition(
                live,
                Cause::OperatorIssuer,
                0.92,
                "does not issue certificates",
                "Correct the issuer: account, solver, credentials, reachability.",
            ));
        }
        "SecretStore" | "ClusterSecretStore" if is_red => {
            let words = complaint(live).map(condition_text).unwrap_or_default();
            if let Some(finding) = failed_call(look, live, &operators(look, live), &words) {
                return Some(finding);
            }
            let finding = finding_from_condition(
                live,
                Cause::OperatorSecretStore,
                0.93,
                "does not work",
                "Correct the store: address, credentials, role.",
            );
            let finding = with_calls(look, live, finding);
            return Some(if rests_on_unseen(look, &words) { finding.not_known() } else { finding });
        }
        "Challenge" | "Order" => return challenge(look, live),
        "Certificate" | "CertificateRequest" | "ExternalSecret" | "ClusterExternalSecret" | "PushSecret"
            if is_red =>
        {
            return child(look, live);
        }
        _ => {}
    }
    let operators = operators(look, live);
    if !is_red {
        return unattended(look, live, &operators);
    }
    let words = own_words(live);
    if let Some(finding) = failed_call(look, live, &operators, &words) {
        return Some(finding);
    }
    if let Some(finding) = refused_write(look, &object, &words) {
        return Some(finding);
    }
    if !says_why(&words)
        && let Some(finding) = told_by_operator(look, live, &operators)
    {
        return Some(finding);
    }
    // Conditions may tell only that something is wrong, and the operator's events what.
    let warning = look.cluster.events(&object).rfind(|event| event.is_warning());
    let warning = warning.filter(|event| words.is_empty() || !says_why(&words) && says_why(&event.message));
    let words = warning.map_or(words, |event| event.message.clone());
    let line = Some(look).filter(|_| !says_why(&words)).and_then(|look| telling_line(look, live, &operators));
    let words = line.as_ref().map_or(words, |(_, line)| line.clone());
    let call = call_line(look, live, &operators);
    let mut finding = if let Some(cause) = image_fault(&words) {
        finding_from_condition(
            live,
            cause,
            0.88,
            "gets no image",
            "Correct the image, or the credentials for it.",
        )
    } else if is_denied(&words) {
        finding_from_condition(
            live,
            Cause::OperatorCloudCredentials,
            0.9,
            "is refused by the cloud",
            "Give the operator's identity the rights that the condition names.",
        )
    } else if let Some(complaint) = own_complaint(&words) {
        let (what, remedy) = match &line {
            Some(_) => ("does not work, as the log says", "Correct what the line of the log names."),
            None => ("does not work", "Correct what it says of itself."),
        };
        finding_from_condition(live, complaint.cause, 0.75, what, remedy)
    } else if let Some(finding) = outward_call(look, live, &operators, &words) {
        finding
    } else if let Some(named) = named_but_absent(&words).filter(|it| !is_there(look, live, it)) {
        not_there(look, live, &named)
    } else if fits_none(&words) {
        finding_from_condition(
            live,
            Cause::OperatorReference,
            0.8,
            "selects what does not exist",
            "Make what is selected, or correct the selector.",
        )
    } else if is_rejected(&words) {
        finding_from_condition(
            live,
            Cause::OperatorRejected,
            0.88,
            "is refused by its operator",
            "Correct the specification.",
        )
    } else {
        // A grade that is bad tells of the state of what was made, and of no refusal.
        let is_state = ill_health(live).is_some();
        finding_from_condition(
            live,
            if is_state { Cause::AppBackendState } else { Cause::OperatorRejected },
            if (tells_of_failure(live) || failed_phase(live).is_some())
                && !is_of_waiting(&words)
                && (!is_general(&words, live.kind()) || is_heard(look, &operators) && call.is_none())
            {
                0.55
            } else {
                0.35
            },
            "is not ready",
            "Read its conditions and its operator's log.",
        )
        .shallow()
    };
    if let Some(event) = warning {
        finding = finding.evidence(format!("Event of {object}"), event.message.clone());
    }
    if let Some((source, line)) = line {
        finding = finding.evidence(source, line);
    }
    for forbidden in
        tiphys_cause::forbidden(&words).into_iter().chain(finalizers_right(look, live, &operators, &words))
    {
        if let Some(rights) =
            crate::causes::api::rights_fault(look, operators.first().unwrap_or(&object), &forbidden)
        {
            return Some(
                rights.evidence(object.to_string(), words.clone()).suffers(object, "is not cared for"),
            );
        }
    }
    for child in look.cluster.owned(&object) {
        finding = finding.below(Object::from_live(child));
    }
    for pod in pods::of_workload(look.cluster, &object) {
        finding = finding.below(Object::from_live(pod));
    }
    for operator in operators {
        finding = finding.below(operator);
    }
    for reference in dependencies::upstream(look.cluster, &object) {
        finding = red_namesakes(look, &reference).into_iter().fold(finding.below(reference), Finding::below);
    }
    finding = mentioned(look, live, &words).into_iter().fold(finding, Finding::below);
    // Where the words do not tell why, what fails beside it is the likeliest.
    if finding.is_shallow {
        let beside = look.ill.iter().map(|ill| &ill.workload).filter(|it| it.namespace == object.namespace);
        finding = beside.take(MOST_BESIDE).cloned().fold(finding, Finding::below);
    }
    // What its operator calls for it may be why.
    let told = look.cluster.events(&object).rfind(|event| event.is_warning());
    let told = told.map_or("", |event| event.message.as_str());
    let called = call.as_ref().map_or("", |(_, line)| line.as_str());
    for address in [&words, told, called].into_iter().flat_map(tiphys_cause::addresses) {
        if let Target::Service(service) = look.cluster.target(&address, live.namespace()) {
            finding = finding.below(Object::from_live(service));
        }
    }
    Some(finding)
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

/// The objects that words name by kind and name, as in `Configuration "web"`.
fn mentioned(look: &Look<'_>, live: &Value, words: &str) -> Vec<Object> {
    let parts: Vec<&str> = words.split(QUOTES).collect();
    let pairs = parts.windows(2).map(|pair| (kind_of_title(pair[0]), pair[1]));
    let named = pairs.filter(|(kind, name)| !kind.is_empty() && !name.contains(char::is_whitespace));
    let own = Object::from_live(live);
    let found = named.flat_map(|(kind, name)| {
        [live.namespace(), ""]
            .into_iter()
            .filter_map(move |namespace| look.cluster.get(&kind, namespace, name))
    });
    found.map(Object::from_live).filter(|it| *it != own).collect()
}

/// The red resources that a reference means whose field tells more than the kind: `policyArnRef` is a Policy.
fn red_namesakes(look: &Look<'_>, reference: &Object) -> Vec<Object> {
    if look.cluster.live(reference).is_some() {
        return Vec::new();
    }
    let is_meant = |it: &&Object| it.name == reference.name && reference.kind.starts_with(&it.kind);
    look.red.keys().filter(is_meant).cloned().collect()
}

/// A call of the operator that fails outside of the cluster, where nothing else tells more.
fn outward_call(look: &Look<'_>, live: &Value, operators: &[Object], words: &str) -> Option<Finding> {
    const LIKELY: f64 = 0.6;
    // What the platform's own operators call from outside are its own routes.
    if live.kind() == "ClusterOperator" {
        return None;
    }
    failed_calls(look, live, operators, words)
        .into_iter()
        .find(|finding| finding.cause == Cause::ExternalDown && finding.confidence >= LIKELY)
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

/// The line by which a resource's own pods, or its operator speaking of it, say what is wrong.
fn telling_line(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<(String, String)> {
    let of_pods = |owner: &Object| pods::of_workload(look.cluster, owner);
    let owned = of_pods(&Object::from_live(live));
    // Some operators own nothing, and name what they make after the resource.
    let prefix = format!("{}-", live.name());
    let is_namesake = |pod: &&&Value| owned.is_empty() && pod.name().starts_with(&prefix);
    let namesakes = look.cluster.pods_in(live.namespace()).iter().filter(is_namesake).copied();
    let own: Vec<(&Value, bool)> = owned.iter().copied().chain(namesakes).map(|pod| (pod, false)).collect();
    let others = operators.iter().flat_map(of_pods).map(|pod| (pod, true));
    let complains = |line: &str| own_complaint(line).is_some() || is_denied(line);
    // An operator whose name tells nothing is known by what it says.
    let unknown = || {
        let green = look.green().into_iter().flat_map(|(_, facts)| facts);
        let mut facts = green.chain(look.ill.iter().flat_map(|ill| &ill.facts));
        let fact = facts.find(|fact| {
            operators.is_empty()
                && matches!(fact.fact, Fact::Complaint(_))
                && names(&fact.line, live.name())
                && names(&fact.line, live.namespace())
                && speaks_of(&fact.line, live.kind())
                && complains(&fact.line)
        })?;
        Some((fact.source.clone(), fact.line.clone()))
    };
    let known = own.into_iter().chain(others).find_map(|(pod, is_operator)| {
        look.cluster.logs(pod.namespace(), pod.name()).into_iter().find_map(|log| {
            let line = log
                .last_lines()
                .find(|line| (!is_operator || names(line, live.name())) && complains(line))?;
            Some((log.source(), line.to_owned()))
        })
    });
    known.or_else(unknown)
}

/// The last line in which the operator of a resource says that a call for it failed.
fn call_line(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<(String, String)> {
    let pods = operators.iter().flat_map(|it| pods::of_workload(look.cluster, it));
    let mut logs = pods.flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
    logs.find_map(|log| {
        let line = log.last_lines().find(|line| {
            names(line, live.name())
                && tiphys_cause::failed_calls(line).iter().any(|call| !call.targets.is_empty())
        })?;
        Some((log.source(), line.to_owned()))
    })
}

/// The call of an operator that fails, as the condition or the last warning about the resource tells it.
fn failed_call(look: &Look<'_>, live: &Value, operators: &[Object], words: &str) -> Option<Finding> {
    failed_calls(look, live, operators, words).into_iter().find(|finding| finding.confidence >= SURE)
}

/// What explains the calls of an operator that fail.
fn failed_calls(look: &Look<'_>, live: &Value, operators: &[Object], words: &str) -> Vec<Finding> {
    let object = Object::from_live(live);
    let warning = look.cluster.events(&object).rfind(|event| event.is_warning());
    let told = [(format!("{object}, status"), words)]
        .into_iter()
        .chain(warning.map(|event| (format!("Event of {object}"), event.message.as_str())));
    let operator = operators.first().cloned().unwrap_or_else(|| object.clone());
    let caller = Caller::of_workload(look.cluster, operator);
    let sufferer = (&object, "its operator calls in vain");
    let line = call_line(look, live, operators);
    let line = line.iter().map(|(source, line)| (source.clone(), line.as_str()));
    let told = told.chain(line);
    told.flat_map(|(source, text)| calls::explain_text(look, &caller, (&source, text), sufferer)).collect()
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
        .remedy(
            remedy,
            &[format!(
                "kubectl describe {} {} {}",
                object.kind.to_lowercase(),
                object.name,
                if object.namespace.is_empty() { String::new() } else { format!("-n {}", object.namespace) }
            )
            .trim()
            .to_owned()],
        )
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

/// Whether somebody calls a Service that is not there and would be named after a resource.
fn is_called(look: &Look<'_>, object: &Object) -> bool {
    let calls = look.ill.iter().flat_map(|ill| ill.facts.iter().map(move |fact| (ill, fact)));
    let mut calls = calls.filter_map(|(ill, fact)| match &fact.fact {
        Fact::Call(call) => Some((ill, call)),
        _ => None,
    });
    calls.any(|(ill, call)| {
        call.targets.iter().any(|address| match look.cluster.target(address, ill.namespace()) {
            Target::Absent { namespace, name } => {
                namespace == object.namespace && name.starts_with(&object.name)
            }
            _ => false,
        })
    })
}

/// A resource that its operator never looked at, or not since it was changed.
fn unattended(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<Finding> {
    if !is_waiting(look, live) || look.cluster.age(live) < 600 {
        return None;
    }
    let object = Object::from_live(live);
    let ill: Vec<&Object> = operators
        .iter()
        .filter(|it| look.is_red(it) || look.ill.iter().any(|ill| ill.workload == **it))
        .collect();
    let never = has_no_status(live);
    // Whoever rests needs no status: while nothing is red beside it, nobody misses it.
    let is_missed = look
        .red
        .keys()
        .any(|red| red.namespace == object.namespace && *red != object || object.namespace.is_empty());
    let told = || telling_line(look, live, operators);
    if let Some((source, line)) = never.then(told).flatten().filter(|_| ill.is_empty()) {
        let own = own_complaint(&line).map(|it| it.cause).unwrap_or(Cause::OperatorCloudCredentials);
        let cause = if is_denied(&line) { Cause::OperatorCloudCredentials } else { own };
        let what = format!("{object} has no status: its operator fails, as its log says");
        let finding = Finding::new(cause, object.clone(), 0.75, what)
            .evidence(source, line)
            .remedy("Correct what the line of the log names.", &[]);
        return Some(dependencies::upstream(look.cluster, &object).into_iter().fold(finding, Finding::below));
    }
    if ill.is_empty() && !is_missed && !is_called(look, &object) {
        return None;
    }
    if ill.is_empty() {
        // An operator that works may leave a kind alone.
        let is_absent = operators.is_empty()
            && never
            && look.cluster.has_kind("Deployment")
            && look.cluster.all("Deployment").len() > 2
            && !hides_operator(look);
        let confidence = match (is_absent, is_called(look, &object)) {
            (true, true) => 0.8,
            (true, false) => 0.45,
            _ => 0.3,
        };
        let what =
            if is_absent { "no operator for it was found" } else { "its operator does not look at it" };
        return never.then(|| {
            Finding::new(
                Cause::OperatorDown,
                object.clone(),
                confidence,
                format!("{object} has no status: {what}"),
            )
            .evidence(object.to_string(), "it has no status")
            .remedy("Install the operator of its kind, or let it watch this namespace.", &[])
            .shallow()
        });
    }
    // Why an operator does not work is told by its pods.
    let confidence = if look.cluster.has_kind("Pod") { 0.6 } else { 0.45 };
    let finding = Finding::new(
        Cause::OperatorDown,
        ill[0].clone(),
        confidence,
        format!("{} does not work, and {object} waits for it", ill[0]),
    )
    .shallow()
    .suffers(object, "waits for its operator");
    Some(
        ill.into_iter()
            .flat_map(|it| pods::of_workload(look.cluster, it))
            .fold(finding, |finding, pod| finding.below(Object::from_live(pod))),
    )
}

/// Whether an operator runs here whose kinds only roles would tell, and none was saved.
fn hides_operator(look: &Look<'_>) -> bool {
    let has_roles = look.cluster.has_kind("ClusterRole") || look.cluster.has_kind("Role");
    let is_operator =
        |live: &&Value| ["operator", "controller-manager"].iter().any(|word| live.name().contains(word));
    !has_roles && look.cluster.all("Deployment").iter().any(is_operator)
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
