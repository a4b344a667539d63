//! Jobs and cron jobs.

use serde_json::Value;
use tiphys_gocompat::cron::Schedule;

use super::{faulty, immutable, list, names, not_negative, one_of, pod, selector, text, workloads};
use crate::{ErrorKind, ErrorList, FieldError, FieldRule, Path, quote};

const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;
const MOST_INDEXES: i64 = 100_000;
const MOST_INDEXES_OF_MANY: i64 = 10_000;
const LONGEST_INDEXES: usize = 64 * 1024;
const LONGEST_MANAGER: usize = 63;

/// A job with its selector.
pub(super) fn job(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    let labels = &object["metadata"]["labels"];
    if labels.as_object().is_none_or(serde_json::Map::is_empty) {
        // It has those of its template then.
        super::labels(&spec["template"]["metadata"]["labels"], &Path::new("metadata.labels"), errors);
    }
    generated_selector(object, errors);
    job_spec(spec, &path, errors);
    // What is not created yet has no selector.
    let is_complete = object["metadata"]["uid"].is_string() || spec["manualSelector"] == true;
    if spec["selector"].is_object() {
        selector(&spec["selector"], &path.child("selector"), errors);
    } else if is_complete {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    if is_complete && super::selector_fault(&spec["selector"]).is_none() {
        workloads::matching_labels(&spec["selector"], &spec["template"], &path.child("template"), errors);
    }
    let count = spec["completions"].as_i64().unwrap_or_default();
    if spec["completionMode"] == "Indexed" && count > 0 {
        let name = text(&object["metadata"], "name");
        let host = format!("{name}-{}", count - 1);
        if !names::dns1123_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            errors.push(FieldError::invalid(&Path::new("metadata.name"), name, detail));
        }
    }
}

/// A job selects its pods by labels that the server made up, unless its author knows better.
fn generated_selector(object: &Value, errors: &mut ErrorList) {
    let (spec, metadata) = (&object["spec"], &object["metadata"]);
    let Some(uid) = metadata["uid"].as_str() else { return };
    if spec["manualSelector"] == true || !spec["selector"].is_object() {
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let path = Path::new("spec.template.metadata.labels");
    let name = text(metadata, "name");
    for (key, expected) in [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ] {
        let detail = format!("must be '{expected}'");
        match labels[key].as_str() {
            None => errors.push(FieldError::required(&path.key(key), detail)),
            Some(found) if found != expected => {
                errors.push(FieldError::invalid(&path.key(key), labels.clone(), detail));
            }
            Some(_) => {}
        }
    }
    let own = serde_json::json!({
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    });
    let given = crate::LabelSelector::from_object(&spec["selector"]);
    if given.is_ok_and(|given| given.is_some_and(|given| !given.matches(&own))) {
        let shown = spec["selector"].clone();
        let detail = "`selector` not auto-generated";
        errors.push(FieldError::invalid(&Path::new("spec.selector"), shown, detail));
    }
}

/// What cron jobs make jobs of.
fn job_template(spec: &Value, path: &Path, errors: &mut ErrorList) {
    job_spec(spec, path, errors);
    if !spec["selector"].is_null() {
        let shown = spec["selector"].clone();
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(&path.child("selector"), shown, detail));
    }
    if spec["manualSelector"] == true {
        errors.push(FieldError::not_supported(&path.child("manualSelector"), true, &["nil", "false"]));
    }
}

fn job_spec(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        not_negative(&spec[field], &path.child(field), errors);
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), detail));
    }
    if let Some(manager) = spec["managedBy"].as_str() {
        let path = path.child("managedBy");
        super::domain_path(manager, &path, errors);
        if manager.len() > LONGEST_MANAGER {
            errors.push(FieldError::too_long(&path, LONGEST_MANAGER));
        }
    }
    completion_mode(spec, path, errors);
    if spec["podFailurePolicy"].is_object() {
        failure_policy(spec, &path.child("podFailurePolicy"), errors);
    }
    if spec["successPolicy"].is_object() {
        success_policy(spec, &path.child("successPolicy"), errors);
    }
    if let Some(policy) = spec["podReplacementPolicy"].as_str() {
        let all = ["Failed", "TerminatingOrFailed"];
        let known = if spec["podFailurePolicy"].is_object() { &all[..1] } else { &all[..] };
        if !known.contains(&policy) {
            errors.push(FieldError::not_supported(&path.child("podReplacementPolicy"), policy, known));
        }
    }
    pod::template(&spec["template"], &path.child("template"), errors);
    restart_policy(spec, &path.child("template").child("spec").child("restartPolicy"), errors);
}

fn restart_policy(spec: &Value, path: &Path, errors: &mut ErrorList) {
    errors.push(match text(&spec["template"]["spec"], "restartPolicy") {
        "OnFailure" if spec["podFailurePolicy"].is_object() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            FieldError::invalid(path, "OnFailure", detail)
        }
        "OnFailure" | "Never" => return,
        // An unset policy is Always by default: the message does not show it.
        "" | "Always" => FieldError::required(path, "valid values: \"OnFailure\", \"Never\""),
        policy => FieldError::not_supported(path, policy, &["OnFailure", "Never"]),
    });
}

fn completion_mode(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let mode = spec["completionMode"].as_str();
    let known = ["NonIndexed", "Indexed"];
    if let Some(mode) = mode.filter(|mode| !known.contains(mode)) {
        errors.push(FieldError::not_supported(&path.child("completionMode"), mode, &known));
    }
    match mode {
        Some("Indexed") => indexed(spec, path, errors),
        None | Some("NonIndexed") => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(count) = spec[field].as_i64() {
                    let detail = "requires indexed completion mode";
                    errors.push(FieldError::invalid(&path.child(field), count, detail));
                }
            }
        }
        Some(_) => {}
    }
}

fn indexed(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let count = |field: &str| spec[field].as_i64();
    let (completions, parallel, failed) =
        (count("completions"), count("parallelism"), count("maxFailedIndexes"));
    let failed_path = path.child("maxFailedIndexes");
    if completions.is_none() {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    if let Some(count) = parallel.filter(|count| *count > MOST_INDEXES) {
        let detail = format!("must be less than or equal to {MOST_INDEXES} when completion mode is Indexed");
        errors.push(FieldError::invalid(&path.child("parallelism"), count, detail));
    }
    if let (Some(all), Some(count)) = (completions, failed)
        && count > all
    {
        errors.push(FieldError::invalid(&failed_path, count, "must be less than or equal to completions"));
    }
    if let Some(count) = failed.filter(|count| *count > MOST_INDEXES) {
        let detail = format!("must be less than or equal to {MOST_INDEXES}");
        errors.push(FieldError::invalid(&failed_path, count, detail));
    }
    if completions.is_none_or(|count| count <= MOST_INDEXES) || spec["backoffLimitPerIndex"].is_null() {
        return;
    }
    let limit = format!(
        "must be less than or equal to {MOST_INDEXES_OF_MANY} when completions are above {MOST_INDEXES} and used with backoff limit per index"
    );
    if failed.is_none() {
        let detail = format!("must be specified when completions is above {MOST_INDEXES}");
        errors.push(FieldError::required(&failed_path, detail));
    }
    if let Some(count) = parallel.filter(|count| *count > MOST_INDEXES_OF_MANY) {
        errors.push(FieldError::invalid(&path.child("parallelism"), count, limit.clone()));
    }
    if let Some(count) = failed.filter(|count| *count > MOST_INDEXES_OF_MANY) {
        errors.push(FieldError::invalid(&failed_path, count, limit));
    }
}

/// A text that must be one of a few, which the message lists when it is missing.
fn listed(value: &str, known: &[&str], path: &Path, errors: &mut ErrorList) {
    if value.is_empty() {
        let shown: Vec<String> = known.iter().map(|value| quote(value)).collect();
        let detail = format!("valid values: [{}]", shown.join(" "));
        errors.push(FieldError::required(path, detail));
    } else if !known.contains(&value) {
        errors.push(FieldError::not_supported(path, value, known));
    }
}

fn failure_policy(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let rules = list(&spec["podFailurePolicy"], "rules");
    if rules.len() > MOST_RULES {
        errors.push(FieldError::too_many(&path.child("rules"), rules.len(), MOST_RULES));
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = path.child("rules").index(at);
        let (action, place) = (text(rule, "action"), path.child("action"));
        if action == "FailIndex" {
            if spec["backoffLimitPerIndex"].is_null() {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.push(FieldError::invalid(&place, action, detail));
            }
        } else {
            listed(action, &["Count", "FailIndex", "FailJob", "Ignore"], &place, errors);
        }
        let (codes, conditions) = (&rule["onExitCodes"], list(rule, "onPodConditions"));
        if codes.is_object() {
            exit_codes(codes, &spec["template"]["spec"], &path.child("onExitCodes"), errors);
        }
        pod_conditions(conditions, &path.child("onPodConditions"), errors);
        let detail = match (codes.is_object(), !conditions.is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(FieldError::new(ErrorKind::Invalid, &path, None, detail));
    }
}

fn pod_conditions(conditions: &[Value], path: &Path, errors: &mut ErrorList) {
    if conditions.len() > MOST_RULES {
        errors.push(FieldError::too_many(path, conditions.len(), MOST_RULES));
    }
    for (at, condition) in conditions.iter().enumerate() {
        let (kind, path) = (text(condition, "type"), path.index(at));
        faulty(names::qualified_name(kind), kind, &path.child("type"), errors);
        let known = ["False", "True", "Unknown"];
        listed(text(condition, "status"), &known, &path.child("status"), errors);
    }
}

fn exit_codes(codes: &Value, pod: &Value, path: &Path, errors: &mut ErrorList) {
    let operator = text(codes, "operator");
    listed(operator, &["In", "NotIn"], &path.child("operator"), errors);
    if let Some(name) = codes["containerName"].as_str() {
        let mut containers = list(pod, "containers").iter().chain(list(pod, "initContainers"));
        if !containers.any(|container| text(container, "name") == name) {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(&path.child("containerName"), name, detail));
        }
    }
    let (values, path) = (list(codes, "values"), path.child("values"));
    if values.is_empty() {
        errors.push(FieldError::invalid(&path, codes["values"].clone(), "at least one value is required"));
    } else if values.len() > MOST_CODES {
        errors.push(FieldError::too_many(&path, values.len(), MOST_CODES));
    }
    for (at, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            let detail = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(&path.index(at), 0, detail));
        }
        if values[..at].contains(value) {
            errors.push(FieldError::duplicate(&path.index(at), value.clone()));
        }
    }
    if !values.is_sorted_by_key(Value::as_i64) {
        errors.push(FieldError::invalid(&path, codes["values"].clone(), "must be ordered"));
    }
}

fn success_policy(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let policy = &spec["successPolicy"];
    if spec["completionMode"] != "Indexed" {
        let shown = super::internal::compact("SuccessPolicy", policy);
        errors.push(FieldError::invalid_as(path, shown, "requires indexed completion mode"));
        return;
    }
    let (rules, place) = (list(policy, "rules"), path.child("rules"));
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&place, detail));
    }
    if rules.len() > MOST_RULES {
        errors.push(FieldError::too_many(&place, rules.len(), MOST_RULES));
    }
    let completions = spec["completions"].as_i64().unwrap_or_default();
    for (at, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &place.index(at), errors);
    }
}

fn success_rule(rule: &Value, completions: i64, path: &Path, errors: &mut ErrorList) {
    let (count, indexes) = (rule["succeededCount"].as_i64(), rule["succeededIndexes"].as_str());
    if count.is_none() && indexes.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut total = 0;
    if let Some(indexes) = indexes {
        let path = path.child("succeededIndexes");
        if indexes.len() > LONGEST_INDEXES {
            errors.push(FieldError::too_long(&path, LONGEST_INDEXES));
        }
        match count_indexes(indexes, completions) {
            Ok(count) => total = count,
            Err(why) => {
                let detail = format!("error parsing succeededIndexes: {why}");
                errors.push(FieldError::invalid(&path, indexes, detail));
            }
        }
    }
    let (Some(count), path) = (count, path.child("succeededCount")) else { return };
    not_negative(&rule["succeededCount"], &path, errors);
    if count > completions {
        let detail =
            format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.push(FieldError::invalid(&path, count, detail));
    }
    if indexes.is_some() && count > total {
        let detail = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(FieldError::invalid(&path, count, detail));
    }
}

/// How many indexes a text like `0,2-4` names, in increasing order and below `end`.
fn count_indexes(text: &str, end: i64) -> Result<i64, String> {
    let number = |text: &str| {
        let number = text.parse::<i64>();
        let number =
            number.map_err(|_| format!("cannot convert string to integer for index: {}", quote(text)))?;
        if number >= end { Err(format!("too large index: {}", quote(text))) } else { Ok(number) }
    };
    let (mut total, mut last) = (0, None);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let ends: Vec<&str> = part.split('-').collect();
        let (first, end) = match ends.as_slice() {
            [one] => (number(one)?, number(one)?),
            [first, end] => {
                let (first, end) = (number(first)?, number(end)?);
                if first >= end {
                    return Err(format!("non-increasing order, previous: {first}, current: {end}"));
                }
                (first, end)
            }
            _ => {
                return Err(format!(
                    "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
                    quote(part)
                ));
            }
        };
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

pub(super) fn job_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    if new["spec"]["selector"].is_null() {
        errors.push(FieldError::required(&Path::new("spec.selector"), ""));
        let labels = new["spec"]["template"]["metadata"]["labels"].clone();
        let path = Path::new("spec.template.metadata.labels");
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path, labels, detail).by_rule(FieldRule::SelectorMatchesTemplate));
    }
    let indexed = new["spec"]["completionMode"] == "Indexed";
    if !indexed {
        immutable(new, old, "/spec/completions", errors);
    }
    immutable(new, old, "/spec/selector", errors);
    if old["spec"]["suspend"] != true {
        let (template, before) = (&new["spec"]["template"], &old["spec"]["template"]);
        if template != before {
            let shown = super::internal::compact("PodTemplateSpec", template);
            let path = Path::new("spec.template");
            errors.push(FieldError::invalid_as(&path, shown, "field is immutable"));
        }
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        immutable(new, old, &format!("/spec/{field}"), errors);
    }
}

pub(super) fn cron_job(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        errors.push(FieldError::required(&path.child("schedule"), ""));
    } else {
        let path = path.child("schedule");
        if let Err(error) = Schedule::parse(schedule) {
            errors.push(FieldError::invalid(&path, schedule, error.to_string()));
        }
        if schedule.contains("TZ") {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid(&path, schedule, detail));
        }
    }
    not_negative(&spec["startingDeadlineSeconds"], &path.child("startingDeadlineSeconds"), errors);
    if let Some(zone) = spec["timeZone"].as_str() {
        time_zone(zone, &path.child("timeZone"), errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    one_of(text(spec, "concurrencyPolicy"), &policies, &path.child("concurrencyPolicy"), errors);
    job_template(&spec["jobTemplate"]["spec"], &path.child("jobTemplate").child("spec"), errors);
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(&spec[field], &path.child(field), errors);
    }
}

/// The first number of a schedule that its field does not have.
/// The zone of a schedule has to be in the zone database, under just this name.
fn time_zone(name: &str, path: &Path, errors: &mut ErrorList) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, name, detail));
    if name.is_empty() {
        return refuse("timeZone must be nil or non-empty string".to_owned());
    }
    let is_part = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.chars().all(allowed)
    };
    let unknown = format!("unknown time zone {name}");
    if !name.split('/').all(is_part) {
        return refuse(unknown);
    }
    if name.eq_ignore_ascii_case("Local") {
        refuse(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned(),
        );
    }
    if name != "Local" && tiphys_gocompat::time::zone(name).is_none() {
        refuse(unknown);
    }
}
