//! Events: what controllers tell about objects (core/v1 Event), as `kubectl describe` shows it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tiphys_apiserver::{rfc3339_micros, rfc3339_seconds};
use tiphys_value::ObjectExt;

/// Who tells something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reporter {
    /// A controller, under the name that it signs with.
    Controller(&'static str),
    /// The kubelet of a node.
    Kubelet(String),
    /// The scheduler, which writes Events in the newer form: with an action, and a series when one repeats.
    Scheduler,
}

/// Something worth telling about an object. The same thing told again raises the count of the Event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    about: Value,
    is_warning: bool,
    reason: String,
    message: String,
    reporter: Reporter,
}

impl Event {
    /// Something that is as it should be.
    pub fn normal(about: &Value, reporter: Reporter, reason: &str, message: impl Into<String>) -> Self {
        Self::new(about, reporter, reason, message.into(), false)
    }

    /// Something that is not.
    pub fn warning(about: &Value, reporter: Reporter, reason: &str, message: impl Into<String>) -> Self {
        Self::new(about, reporter, reason, message.into(), true)
    }

    /// The same about one field of the object, such as `spec.containers{web}`.
    #[must_use]
    pub fn at(mut self, field: &str) -> Self {
        self.about["fieldPath"] = field.into();
        self
    }

    fn new(about: &Value, reporter: Reporter, reason: &str, message: String, is_warning: bool) -> Self {
        let mut reference = json!({
            "kind": about.kind(),
            "name": about.name(),
            "uid": about.uid(),
            "apiVersion": about.api_version(),
            "resourceVersion": about.resource_version(),
        });
        if !about.namespace().is_empty() {
            reference["namespace"] = about.namespace().into();
        }
        Self { about: reference, is_warning, reason: reason.to_owned(), message, reporter }
    }

    /// Where it is kept: the namespace of the object, `default` for objects outside of namespaces.
    pub fn namespace(&self) -> &str {
        self.about.str_at(&["namespace"]).unwrap_or("default")
    }

    /// The name of the Event: the same for the same thing told again.
    pub fn name(&self) -> String {
        let mut hash = Sha256::new();
        for field in ["uid", "fieldPath"] {
            hash.update(self.about.str_at(&[field]).unwrap_or_default().as_bytes());
            hash.update([0]);
        }
        hash.update(self.reason.as_bytes());
        hash.update([0]);
        hash.update(self.message.as_bytes());
        let digits: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{digits}", self.about.str_at(&["name"]).unwrap_or_default())
    }

    /// The object to create when it is told for the first time.
    pub fn first(&self, now: jiff::Timestamp) -> Value {
        let kind = if self.is_warning { "Warning" } else { "Normal" };
        let mut event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name(), "namespace": self.namespace()},
            "involvedObject": self.about,
            "reason": self.reason,
            "message": self.message,
            "type": kind,
        });
        let at = rfc3339_seconds(now);
        let (component, instance) = match &self.reporter {
            Reporter::Scheduler => {
                event["source"] = json!({});
                event["eventTime"] = rfc3339_micros(now).into();
                event["action"] = match (self.is_warning, self.reason.as_str()) {
                    (true, _) => "Scheduling".into(),
                    (false, "Preempted") => "Preempting".into(),
                    (false, _) => "Binding".into(),
                };
                ("default-scheduler", "default-scheduler-tiphys")
            }
            Reporter::Controller(name) => {
                event["source"] = json!({"component": name});
                (*name, "")
            }
            Reporter::Kubelet(node) => {
                event["source"] = json!({"component": "kubelet", "host": node});
                ("kubelet", node.as_str())
            }
        };
        event["reportingComponent"] = component.into();
        event["reportingInstance"] = instance.into();
        if self.reporter != Reporter::Scheduler {
            event["firstTimestamp"] = at.clone().into();
            event["lastTimestamp"] = at.into();
            event["count"] = 1.into();
        }
        event
    }

    /// The same Event told once more.
    pub fn repeated(&self, existing: &Value, now: jiff::Timestamp) -> Value {
        let mut event = existing.clone();
        if self.reporter == Reporter::Scheduler {
            let told = existing.int_at(&["series", "count"]).unwrap_or(1);
            event["series"] = json!({"count": told + 1, "lastObservedTime": rfc3339_micros(now)});
        } else {
            event["count"] = (existing.int_at(&["count"]).unwrap_or(1) + 1).into();
            event["lastTimestamp"] = rfc3339_seconds(now).into();
        }
        event
    }
}

/// When an Event was told last.
pub(crate) fn last_told(event: &Value) -> Option<jiff::Timestamp> {
    let series = event.str_at(&["series", "lastObservedTime"]);
    let at = series.or_else(|| event.str_at(&["lastTimestamp"])).or_else(|| event.str_at(&["eventTime"]));
    at.or_else(|| event.str_at(&["metadata", "creationTimestamp"]))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn what_is_told_again_is_counted() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n", "uid": "u"}});
        let event = Event::warning(&pod, Reporter::Kubelet("node-1".into()), "BackOff", "again")
            .at("spec.containers{c}");
        let first = event.first(Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(90).unwrap();
        let second = event.repeated(&first, later);
        assert_eq!(second["count"], 2);
        assert_eq!(second["firstTimestamp"], "1970-01-01T00:00:00Z");
        assert_eq!(last_told(&second), Some(later));
        assert_ne!(event.name(), Event::warning(&pod, Reporter::Scheduler, "BackOff", "other").name());
    }
}
