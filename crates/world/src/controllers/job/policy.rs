//! What the end of a pod, or of an index, means for the Job (`podFailurePolicy`, `successPolicy`).

use serde_json::Value;
use tiphys_value::ObjectExt;

use super::{indexes::Indexes, pods::container_statuses};

/// The rule that a failed pod meets: its place among the rules, its action, and in words what met it.
fn rule<'a>(job: &'a Value, pod: &Value) -> Option<(usize, &'a str, String)> {
    let rules = job.at(&["spec", "podFailurePolicy", "rules"]).and_then(Value::as_array)?;
    rules.iter().enumerate().find_map(|(number, rule)| {
        let met = match rule.get("onExitCodes").filter(|codes| !codes.is_null()) {
            Some(codes) => exit_code(codes, pod)?,
            None => condition(rule, pod)?,
        };
        Some((number, rule.str_at(&["action"])?, met))
    })
}

fn exit_code(codes: &Value, pod: &Value) -> Option<String> {
    let wanted = codes.str_at(&["containerName"]);
    let values: Vec<_> = codes["values"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    container_statuses(pod).find_map(|status| {
        let name = status.str_at(&["name"])?;
        let code = status.int_at(&["state", "terminated", "exitCode"]).filter(|code| *code != 0)?;
        let is_meant = wanted.is_none_or(|wanted| wanted == name);
        (is_meant && values.contains(&code) == (codes["operator"] == "In")).then(|| {
            format!(
                "Container {name} for pod {}/{} failed with exit code {code}",
                pod.namespace(),
                pod.name()
            )
        })
    })
}

fn condition(rule: &Value, pod: &Value) -> Option<String> {
    let patterns = rule.get("onPodConditions").and_then(Value::as_array)?;
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array)?;
    let meets = |condition: &Value, pattern: &Value| {
        condition["type"] == pattern["type"] && condition["status"] == pattern["status"]
    };
    let met = conditions.iter().find(|condition| patterns.iter().any(|pattern| meets(condition, pattern)))?;
    let kind = met.str_at(&["type"])?;
    Some(format!("Pod {}/{} has condition {kind}", pod.namespace(), pod.name()))
}

/// What the Job's rules have done about a failed pod.
pub(super) fn action<'a>(job: &'a Value, pod: &Value) -> Option<&'a str> {
    rule(job, pod).map(|(_, action, _)| action)
}

/// Whether a failed pod counts as a failure of the Job.
pub(super) fn is_counted(job: &Value, pod: &Value) -> bool {
    action(job, pod) != Some("Ignore")
}

/// Why a failed pod fails the whole Job, if a rule says so.
pub(super) fn fails_job(job: &Value, pod: &Value) -> Option<String> {
    let (number, action, met) = rule(job, pod)?;
    (action == "FailJob").then(|| format!("{met} matching FailJob rule at index {number}"))
}

/// The place of the first rule by which the Job has succeeded already.
pub(super) fn success(job: &Value, succeeded: &Indexes) -> Option<usize> {
    let rules = job.at(&["spec", "successPolicy", "rules"]).and_then(Value::as_array)?;
    let is_met = |rule: &Value| {
        let count = rule.int_at(&["succeededCount"]);
        match rule.str_at(&["succeededIndexes"]).map(Indexes::parse) {
            Some(wanted) if wanted.count() == 0 => false,
            Some(wanted) => {
                let common = wanted.common(succeeded);
                common == wanted.count() || count.is_some_and(|count| common >= count)
            }
            None => count.is_some_and(|count| succeeded.count() >= count),
        }
    };
    (succeeded.count() > 0).then(|| rules.iter().position(is_met)).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_rule_that_is_met_decides() {
        let job = json!({"spec": {"podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [3]}}]}}});
        let pod = |status: Value| json!({"metadata": {"name": "p", "namespace": "n"}, "status": status});
        let ended = json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3}}}]});
        assert_eq!(
            fails_job(&job, &pod(ended.clone())).unwrap(),
            "Container c for pod n/p failed with exit code 3 matching FailJob rule at index 1"
        );
        let mut disturbed = ended;
        disturbed["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        assert_eq!(action(&job, &pod(disturbed)), Some("Ignore"));
        assert!(is_counted(&job, &pod(json!({}))));
    }

    #[test]
    fn a_job_may_succeed_before_all_indexes_do() {
        let job = |rule: Value| json!({"spec": {"successPolicy": {"rules": [rule]}}});
        let done = Indexes::parse("0,2-3");
        assert_eq!(success(&job(json!({"succeededIndexes": "2-3"})), &done), Some(0));
        assert_eq!(success(&job(json!({"succeededIndexes": "1-3"})), &done), None);
        assert_eq!(success(&job(json!({"succeededIndexes": "1-3", "succeededCount": 2})), &done), Some(0));
        assert_eq!(success(&job(json!({"succeededCount": 4})), &done), None);
    }
}
