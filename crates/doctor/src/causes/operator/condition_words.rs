//! What the words of a custom resource and of its operator tell.

use tiphys_cause::{Cause, complaints};
use tiphys_value::{ObjectExt as _, Value};

use crate::cluster::{
    complaint::{complaint, error_of_pods},
    condition_text, items,
};

/// What a resource says of itself: by a condition, or elsewhere in its status.
pub(super) fn own_words(live: &Value) -> String {
    let told = |path: &[&str]| live.str_at(path).filter(|words| !words.is_empty()).map(str::to_owned);
    if let Some(requirement) = unmet_requirement(live) {
        return requirement;
    }
    let condition = complaint(live).map(condition_text);
    let phase = told(&["status", "phaseReason"]);
    // A summary may not tell why, and the reason of the phase does.
    let condition = condition.filter(|words| phase.is_none() || says_why(words));
    if let Some(told) = nested_failure(live.get("status").unwrap_or(&Value::Null), 0)
        && !condition.as_ref().is_some_and(|words| says_why(words))
    {
        return told;
    }
    condition
        .or(phase)
        .or_else(|| health_details(live))
        .or_else(|| told(&["status", "message"]))
        .or_else(|| told(&["status", "error", "message"]))
        .or_else(|| told(&["status", "reason"]))
        .or_else(|| told(&["status", "error"]))
        .or_else(|| told(&["status", "applicationState", "errorMessage"]))
        .or_else(|| items(live, &["status", "validationErrors"]).next()?.as_str().map(str::to_owned))
        .or_else(|| error_of_pods(live).map(str::to_owned))
        .unwrap_or_default()
}

/// What a part of a resource says that has failed: connectors, tasks and members tell it deep in the status.
fn nested_failure(part: &Value, depth: usize) -> Option<String> {
    /// Parts lie near the top.
    const DEEPEST: usize = 5;
    const FAILED: &[&str] = &["FAILED", "Failed", "ERROR", "Error"];
    if depth > DEEPEST {
        return None;
    }
    match part {
        Value::Object(fields) => {
            let state = ["state", "status", "phase"].iter().find_map(|key| part.str_at(&[key]));
            let has_failed = depth > 0 && state.is_some_and(|state| FAILED.contains(&state));
            let told = || {
                let told = ["trace", "message", "error", "reason"].iter().find_map(|key| part.str_at(&[key]));
                told.filter(|text| !text.is_empty()).map(cause_of_trace)
            };
            let own = if has_failed { told() } else { None };
            // Conditions are read as such.
            let parts = fields.iter().filter(|(key, _)| *key != "conditions");
            own.or_else(|| parts.map(|(_, it)| it).find_map(|it| nested_failure(it, depth + 1)))
        }
        Value::Array(items) => items.iter().find_map(|it| nested_failure(it, depth + 1)),
        _ => None,
    }
}

/// The line of a trace that tells why: the last `Caused by`, or the first line.
fn cause_of_trace(text: &str) -> String {
    let caused = text.lines().rev().find_map(|line| line.trim().strip_prefix("Caused by: "));
    caused.or_else(|| text.lines().next()).unwrap_or_default().trim().to_owned()
}

/// The grave checks that a storage system lists under its health.
fn health_details(live: &Value) -> Option<String> {
    let parts = live.get("status")?.as_object()?.values();
    let checks = parts.filter_map(|part| part.get("details")?.as_object()).flat_map(|checks| checks.values());
    let grave = checks.filter(|check| check.str_at(&["severity"]).is_some_and(|it| it.ends_with("_ERR")));
    let told: Vec<&str> = grave.filter_map(|check| check.str_at(&["message"])).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// What a version of an operator requires and does not find, as the lifecycle manager lists it.
fn unmet_requirement(live: &Value) -> Option<String> {
    let is_unmet = |it: &&Value| !matches!(it.str_at(&["status"]), Some("Present" | "Satisfied") | None);
    let requirement = items(live, &["status", "requirementStatus"]).find(is_unmet)?;
    let text = |it: &Value, key: &str| it.str_at(&[key]).unwrap_or_default().to_owned();
    let needs = items(requirement, &["dependents"]).find(is_unmet);
    let why = needs.map_or_else(|| text(requirement, "message"), |needs| text(needs, "message"));
    let (kind, name) = (text(requirement, "kind"), text(requirement, "name"));
    Some(format!("requirement not satisfied: {kind} {name}: {why}"))
}

/// Why an image that a condition speaks of cannot be had.
pub(super) fn image_fault(words: &str) -> Option<Cause> {
    let low = words.to_ascii_lowercase();
    let is_of_image = [
        "fetch image",
        "pull image",
        "pulling image",
        "resolve image",
        "image to digest",
        "fetch package",
        "unpack package",
    ];
    let is_told = is_of_image.iter().any(|word| low.contains(word));
    is_told.then(|| tiphys_cause::pull_fault(words).cause).flatten()
}

/// Whether a pool of nodes says how many of them are degraded, and quotes why.
pub(super) fn quotes_degraded_node(live: &Value) -> bool {
    let told = |key: &str| complaint(live).and_then(|it| it.str_at(&[key])).unwrap_or_default();
    told("type") == "NodeDegraded" && told("message").contains(" is reporting: ")
}

/// Whether the words of an operator tell more than that something is wrong.
pub(super) fn says_why(words: &str) -> bool {
    image_fault(words).is_some()
        || is_denied(words)
        || is_rejected(words)
        || named_but_absent(words).is_some()
}

/// Whether a line holds a name, and not only as a part of another.
pub(crate) fn names(line: &str, name: &str) -> bool {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))).any(|word| word == name)
}

/// What a line complains of that lies with the resource, and not with the network or the program.
pub(super) fn own_complaint(line: &str) -> Option<tiphys_cause::Complaint> {
    let is_own =
        |cause| matches!(cause, Cause::ConfigCredentials | Cause::RunDiskFull | Cause::AppBackendState);
    complaints(line).into_iter().find(|complaint| is_own(complaint.cause))
}

/// Whether the cloud refuses the operator.
pub(crate) fn is_denied(words: &str) -> bool {
    const WORDS: &[&str] = &[
        "accessdenied",
        "unauthorizedoperation",
        "unauthorized operation:",
        "is not authorized to perform",
        "error 403",
        "statuscode: 403",
        "httpstatuscode: 403",
        "response 403: 403 forbidden",
        "api error forbidden",
        "permissiondenied desc = permission",
        "expiredtoken",
        "authorizationfailed",
        "authorizationpermissionmismatch",
    ];
    let low = words.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
        || complaints(words).iter().any(|it| it.cause == Cause::OperatorCloudCredentials)
}

/// Whether a resource selects others by labels, and none of them fits.
pub(super) fn fits_none(words: &str) -> bool {
    const WORDS: &[&str] = &["no compatible ", "no matching ", "none matched"];
    let low = words.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// Whether the words name nothing but the kind itself, so that what fails stands in the operator's log at
/// most.
pub(super) fn is_general(words: &str, kind: &str) -> bool {
    let said = words.split_once(": ").map_or(words, |(_, said)| said);
    said.contains(kind) && !said.contains(['"', '\'', '`', '/', ':', '=', '[', '('])
}

/// Whether the words are of something that is not over: what is waited for tells more.
pub(super) fn is_of_waiting(words: &str) -> bool {
    const WORDS: &[&str] = &[
        "wait",
        "timeout",
        "timed out",
        "deadline",
        "not ready",
        "progress",
        "pending",
        "retry",
        "retries",
        "unavailable",
        "connect",
        "dial",
    ];
    let low = words.to_ascii_lowercase();
    words.split_whitespace().count() < 4 || WORDS.iter().any(|word| low.contains(word))
}

/// Whether the operator refuses the resource as it is.
pub(super) fn is_rejected(words: &str) -> bool {
    const WORDS: &[&str] = &[
        "invalid",
        "not satisfiable",
        "not satisfied",
        "parse_error",
        "could decrypt",
        "could not decrypt",
        "failed to decrypt",
        "no operators found",
        "unsupported",
        "not supported",
        "must be",
        "must not",
        "validation failed",
        "validation error",
        "failed validation",
        "fails validation",
        "failed: validation",
        "not allowed",
        "rejected",
        "unknown field",
        "cannot parse",
        "malformed",
        "misconfigur",
        "not permitted",
        "forbidden value",
        "did not match any",
        "limitexceeded",
        "limit exceeded",
        "quotaexceeded",
        "quota exceeded",
        "exceeds quota",
        "insufficientinstancecapacity",
        "skunotavailable",
    ];
    let low = words.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// Whether the cloud gives no machine: a limit of the account, or nothing left of what is asked for.
pub(super) fn tells_of_cloud_limit(words: &str) -> bool {
    const WORDS: &[&str] = &[
        "limitexceeded",
        "limit exceeded",
        "quotaexceeded",
        "quota exceeded",
        "exceeds quota",
        "exceeding approved",
        "insufficientinstancecapacity",
        "insufficient capacity",
        "unfulfillablecapacity",
        "zone_resource_pool_exhausted",
        "skunotavailable",
        "skus not available",
        "allocationfailed",
    ];
    let low = words.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// Something that a condition says is not there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Its kind; empty if it is not told.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What a condition says is not there.
pub(super) fn named_but_absent(words: &str) -> Option<Named> {
    let is_name = |named: &Named| {
        named.name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && !named.name.contains(char::is_whitespace)
            // Names of objects have small letters; a word with a large one begins a sentence.
            && !named.name.contains(|letter: char| letter.is_ascii_uppercase())
    };
    // Words that others quote have their own quotes marked.
    read_absent(&words.replace("\\\"", "\"")).filter(is_name)
}

fn read_absent(words: &str) -> Option<Named> {
    const ABSENT: &[&str] = &[
        "not found",
        "does not exist",
        "doesn't exist",
        "no such",
        "cannot find",
        "could not find",
        "could not be found",
        "cannot be found",
        "missing",
    ];
    let low = words.to_ascii_lowercase();
    let (at, word) = ABSENT.iter().find_map(|word| Some((low.find(word)?, *word)))?;
    if low.contains("host not found") || low.contains("page not found") || low.contains("missing required") {
        return None;
    }
    let (before, after) = (words.get(..at)?, words.get(at + word.len()..)?);
    let told = last_quoted(before).or_else(|| first_quoted(after));
    if let Some((title, name)) = told {
        let name = name.rsplit('/').next().unwrap_or(name);
        return Some(Named { kind: kind_of_title(title), name: name.to_owned() });
    }
    let plain = |word: &str| word.trim_matches(['"', '\'', ':', ',', '.', '(', ')', '[', ']']).to_owned();
    if word == "missing" {
        // `missing ResourceFlavor(s): spot`
        let (title, names) = after.split_once(':')?;
        let name = plain(names.split([',', ' ']).find(|name| !name.is_empty())?);
        return Some(Named { kind: kind_of_title(title), name }).filter(|named| !named.name.is_empty());
    }
    let mut last = before.split_whitespace().rev();
    let name = plain(last.next()?);
    Some(Named {
        kind: kind_of_title(last.next().unwrap_or_default()),
        name: name.rsplit('/').next()?.to_owned(),
    })
}

/// What words are quoted with.
pub(super) const QUOTES: &[char] = &['"', '\'', '`', '“', '”'];

/// The last quoted words of a text, with the text before them.
fn last_quoted(text: &str) -> Option<(&str, &str)> {
    let end = text.rfind(QUOTES)?;
    let start = text.get(..end)?.rfind(QUOTES)?;
    let quoted = text.get(start..end)?.trim_start_matches(QUOTES);
    (!quoted.is_empty() && quoted.len() < 120).then_some((text.get(..start)?, quoted))
}

/// The first quoted words of a text, with the text before them.
fn first_quoted(text: &str) -> Option<(&str, &str)> {
    let (title, rest) = text.split_once(QUOTES)?;
    let quoted = rest.split(QUOTES).next()?;
    (!quoted.is_empty() && quoted.len() < 120).then_some((title, quoted))
}

/// The kind that the last word before a name means: `ProviderConfig.aws.upbound.io`, `secrets`, `queue`.
pub(super) fn kind_of_title(title: &str) -> String {
    let word = title.split_whitespace().next_back().unwrap_or_default();
    let word = word.trim_end_matches([':', '=']).trim_end_matches("(s)");
    let word = word.split('.').next().unwrap_or_default();
    let is_kind = word.chars().next().is_some_and(|first| first.is_ascii_uppercase());
    match word {
        "secret" | "secrets" => "Secret".to_owned(),
        "configmap" | "configmaps" => "ConfigMap".to_owned(),
        "serviceaccount" | "serviceaccounts" => "ServiceAccount".to_owned(),
        _ if is_kind => word.to_owned(),
        _ => String::new(),
    }
}
