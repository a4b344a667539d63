//! How a Job ends: what is decided at once, and what is said when the last pod is gone and counted.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_value::ObjectExt;

use super::SIGNATURE;
use crate::{
    Event, Reporter, Write,
    object::{condition, set_condition, time},
};

/// A decided end of a Job.
pub(super) struct Finish {
    is_success: bool,
    reason: String,
    message: String,
}

impl Finish {
    /// The Job has failed.
    pub(super) fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self { is_success: false, reason: reason.to_owned(), message: message.into() }
    }

    /// All has succeeded that was to.
    pub(super) fn complete() -> Self {
        Self::success("CompletionsReached", "Reached expected number of succeeded pods".to_owned())
    }

    /// A rule of the success policy is met.
    pub(super) fn by_policy(rule: usize) -> Self {
        Self::success("SuccessPolicy", format!("Matched rules at index {rule}"))
    }

    fn success(reason: &str, message: String) -> Self {
        Self { is_success: true, reason: reason.to_owned(), message }
    }

    /// What was decided before.
    pub(super) fn decided(job: &Value) -> Option<Self> {
        [("SuccessCriteriaMet", true), ("FailureTarget", false)].into_iter().find_map(|(kind, is_success)| {
            let met = condition(job, kind).filter(|condition| condition["status"] == "True")?;
            let text = |field: &str| met.str_at(&[field]).unwrap_or_default().to_owned();
            Some(Self { is_success, reason: text("reason"), message: text("message") })
        })
    }

    /// Whether the Job succeeds.
    pub(super) fn is_success(&self) -> bool {
        self.is_success
    }

    /// Says in the status what is decided.
    pub(super) fn announce(&self, status: &mut Map<String, Value>, now: Timestamp) {
        self.set(status, if self.is_success { "SuccessCriteriaMet" } else { "FailureTarget" }, now);
    }

    /// Says in the status that the Job has ended.
    pub(super) fn conclude(&self, status: &mut Map<String, Value>, now: Timestamp) {
        self.set(status, if self.is_success { "Complete" } else { "Failed" }, now);
        if self.is_success {
            status.insert("completionTime".into(), time(now));
        }
    }

    fn set(&self, status: &mut Map<String, Value>, kind: &str, now: Timestamp) {
        let known = status.get("conditions").and_then(Value::as_array);
        if known.is_some_and(|all| all.iter().any(|known| known["type"] == kind && known["status"] == "True"))
        {
            return;
        }
        let condition = json!({
            "type": kind, "status": "True", "lastProbeTime": time(now),
            "reason": self.reason, "message": self.message,
        });
        set_condition(status, condition, now);
    }

    /// What is told about it.
    pub(super) fn event(&self, job: &Value) -> Write {
        let reporter = Reporter::Controller(SIGNATURE);
        match self.is_success {
            true => Event::normal(job, reporter, "Completed", "Job completed").into(),
            false => Event::warning(job, reporter, &self.reason, self.message.clone()).into(),
        }
    }
}
