//! What the logs of ill pods say, the weightiest line first: how late it stands, how grave it is, how often
//! it comes.

use tiphys_cause::{
    Address, Cause, Complaint, FailedCall, Failure, Forbidden, Refusal, RefusedValue, addresses, complaints,
    forbidden, proxy_answer, refusal, refused_values,
};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    case::Log,
    cluster::{Cluster, pods},
};

/// Something that a line tells.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    Call(FailedCall),
    Forbidden(Forbidden),
    Complaint(Complaint),
    Value(RefusedValue),
    /// A write or a read that the API server refused.
    Refused(Refusal),
}

/// A fact, where it stands, and how much it weighs.
#[derive(Clone, Debug)]
pub(crate) struct LogFact {
    pub(crate) fact: Fact,
    pub(crate) source: String,
    pub(crate) line: String,
    pub(crate) weight: i32,
}

/// Lines before a failure that may name its address.
const BEFORE: usize = 12;

/// The facts of the logs of some pods, the weightiest first; of equal facts the first counts.
pub(crate) fn log_facts<'a>(cluster: &Cluster<'a>, pods: &[&'a Value]) -> Vec<LogFact> {
    let mut facts: Vec<LogFact> = Vec::new();
    for pod in pods {
        for log in cluster.logs(pod.namespace(), pod.name()) {
            read(&log.text, &log.source(), &mut facts);
        }
        for (source, text) in last_words(cluster, pod) {
            read(text, &source, &mut facts);
        }
    }
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.weight));
    facts
}

/// The ends of logs that kubelets keep of containers that failed, where the logs themselves were not saved.
fn last_words<'a>(
    cluster: &Cluster<'a>,
    pod: &'a Value,
) -> impl Iterator<Item = (String, &'a str)> + use<'a> {
    let logs = cluster.logs(pod.namespace(), pod.name());
    pods::statuses(pod).filter_map(move |status| {
        let name = status.str_at(&["name"]).unwrap_or_default();
        if logs.iter().any(|log| log.container == name || log.container.is_empty()) {
            return None;
        }
        let ended = ["state", "lastState"].iter().find_map(|key| status.at(&[key, "terminated"]))?;
        let has_failed = ended.int_at(&["exitCode"]).unwrap_or(0) != 0;
        let text = ended.str_at(&["message"]).filter(|text| has_failed && !text.is_empty())?;
        Some((format!("last message of container {name} of Pod {}/{}", pod.namespace(), pod.name()), text))
    })
}

/// Refusals of the API server that stop a program.
const REFUSALS: &[Cause] = &[
    Cause::ApiCrdMissing,
    Cause::ApiConversionWebhook,
    Cause::AdmitWebhookDown,
    Cause::AdmitWebhookTls,
    Cause::AdmitQuota,
    Cause::AdmitPolicy,
];

/// Reads one log.
fn read(text: &str, source: &str, facts: &mut Vec<LogFact>) {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let lines = &lines[lines.len().saturating_sub(Log::LINES)..];
    for (at, line) in lines.iter().enumerate() {
        let Some(fact) = fact_of(lines, at) else { continue };
        let behind = i32::try_from(lines.len() - 1 - at).unwrap_or(i32::MAX).min(60);
        let weight = 100 - behind + gravity(line);
        let same = facts.iter_mut().find(|known| is_same(&known.fact, &fact));
        match same {
            Some(known) => {
                // What is said again and again is what hinders.
                known.weight = (known.weight + 1).max(weight + 1);
            }
            None => facts.push(LogFact { fact, source: source.to_owned(), line: (*line).to_owned(), weight }),
        }
    }
}

fn is_same(one: &Fact, two: &Fact) -> bool {
    match (one, two) {
        (Fact::Call(one), Fact::Call(two)) => one.failure == two.failure && one.targets == two.targets,
        (Fact::Forbidden(one), Fact::Forbidden(two)) => {
            (&one.user, &one.verb, &one.resource, &one.namespace)
                == (&two.user, &two.verb, &two.resource, &two.namespace)
        }
        (Fact::Complaint(one), Fact::Complaint(two)) => one.cause == two.cause && one.subject == two.subject,
        (Fact::Value(one), Fact::Value(two)) => one.words == two.words,
        (Fact::Refused(one), Fact::Refused(two)) => one.cause == two.cause && one.by == two.by,
        _ => false,
    }
}

fn fact_of(lines: &[&str], at: usize) -> Option<Fact> {
    let line = lines[at];
    if let Some(forbidden) = forbidden(line).into_iter().next() {
        return Some(Fact::Forbidden(forbidden));
    }
    let refused = refusal(line);
    if refused.cause.is_some_and(|cause| REFUSALS.contains(&cause)) {
        return Some(Fact::Refused(refused));
    }
    if let Some(answer) = proxy_answer(line) {
        let target = Address { scheme: String::new(), host: answer.host.clone(), port: Some(answer.port) };
        let call = |failure| FailedCall {
            failure,
            targets: vec![target],
            context: Vec::new(),
            line: line.to_owned(),
        };
        return answer.failure().map(call).map(Fact::Call);
    }
    let complaint = complaints(line).into_iter().next();
    let is_of_the_network =
        complaint.as_ref().is_none_or(|it| it.cause == tiphys_cause::Cause::RunPermission);
    if is_of_the_network && let Some(failure) = Failure::read(line) {
        let mut targets = addresses(line);
        if matches!(failure, Failure::NoSuchHost | Failure::LookupTimeout) {
            targets.retain(|target| target.port != Some(53));
        }
        let near = lines[at.saturating_sub(BEFORE)..at].iter().rev();
        let context: Vec<_> = near.flat_map(|line| addresses(line)).collect();
        // A status without an address is what the program answers to its own callers.
        let is_own = matches!(failure, Failure::Status(_)) && (targets.is_empty() || !complains(line));
        if !is_own {
            return Some(Fact::Call(FailedCall { failure, targets, context, line: line.to_owned() }));
        }
    }
    if let Some(complaint) = complaint {
        return Some(Fact::Complaint(complaint));
    }
    refused_values(line).into_iter().next().map(Fact::Value)
}

/// Whether a line complains: an access log has a status and addresses too.
fn complains(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "error",
        "fail",
        "exception",
        "unexpected",
        "unable",
        "cannot",
        "could not",
        "giving up",
        "retry",
        "upstream",
    ];
    let low = line.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// How grave a line is by its level, and by whether it is of something that a program can do without.
fn gravity(line: &str) -> i32 {
    let low = line.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| low.contains(word));
    let mut weight = 0;
    if has(&[
        "fatal",
        "panic",
        "exiting",
        "cannot start",
        "failed to start",
        "shutting down",
        "unable to start",
        "critical",
        "giving up",
        "aborting",
    ]) {
        weight += 30;
    } else if has(&["error", "exception", "failed", "err "]) {
        weight += 10;
    }
    if has(&["warn", "\"level\":\"warn"]) {
        weight -= 20;
    }
    // Some programs tell of every failure as information, and put it into a field of its own.
    let has_error = has(&["\"error\":\"", "\"err\":\"", " error=\"", " err=\""]);
    let is_info =
        has(&["level=info", "\"level\":\"info\"", " info ", "[info]", " debug ", "level=debug", "[debug]"]);
    if is_info && !has_error {
        weight -= 15;
    }
    if has(&[
        "otel",
        "opentelemetry",
        "telemetry",
        "tracing",
        "jaeger",
        "zipkin",
        "exporter",
        "statsd",
        "sentry",
        "datadog",
        "newrelic",
        "analytics",
        "optional",
    ]) {
        weight -= 50;
    }
    weight
}
