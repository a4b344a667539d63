//! Pod Security Standards: what their levels refuse in pods, in the API server's words (Kubernetes, "Pod
//! Security Standards").

mod baseline;
mod restricted;

use std::fmt;

use tiphys_value::{ObjectExt, Value};

/// A level that refuses something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Refuses known ways out of a pod.
    Baseline,
    /// Asks for the hardening of each pod, too.
    Restricted,
}

impl Level {
    /// The level that a label names; nothing for `privileged` and for what is no level.
    pub fn from_label(label: &str) -> Option<Self> {
        match label {
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }

    /// As a label names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    /// What the level refuses in a pod with this `spec` and these `metadata.annotations` (null if there are
    /// none), in the order in which the API server looks.
    pub fn violations(self, spec: &Value, annotations: &Value) -> Vec<Violation> {
        let pod = Pod { spec, annotations };
        match self {
            Self::Baseline => baseline::violations(&pod, false),
            Self::Restricted => {
                let mut all = baseline::violations(&pod, true);
                all.extend(restricted::violations(&pod));
                all
            }
        }
    }
}

/// What a level refuses in a pod. It is shown as the API server's message has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule: `hostPort`.
    pub reason: &'static str,
    /// Who does what: `container "web" uses hostPort 80`.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.detail)
    }
}

/// The reason and detail of a violation.
type Said = (&'static str, String);

impl From<Said> for Violation {
    fn from((reason, detail): Said) -> Self {
        Self { reason, detail }
    }
}

/// A pod as the rules look at it.
struct Pod<'a> {
    spec: &'a Value,
    annotations: &'a Value,
}

impl<'a> Pod<'a> {
    /// All containers, in the order in which messages name them.
    fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let of = |list| items(self.spec, list);
        of("/initContainers").chain(of("/containers")).chain(of("/ephemeralContainers"))
    }

    /// Names of the containers that something is true of.
    fn names(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        let chosen = self.containers().filter(|container| holds(container));
        chosen.map(|container| container.str_at(&["name"]).unwrap_or_default()).collect()
    }

    fn is_windows(&self) -> bool {
        self.spec.str_at(&["os", "name"]) == Some("windows")
    }

    /// Pods in a user namespace of their own may be more than others.
    fn has_own_users(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

/// The items of a list at a pointer, or none.
fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// `one`, or `many` unless there is one.
fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `"a", "b"`.
fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    names.iter().map(|name| format!("\"{}\"", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `containers "a", "b"`.
fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn violations(level: Level, spec: &Value) -> Vec<String> {
        level.violations(spec, &Value::Null).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_level_says_who_violates_what() {
        let hardened = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
        let mut spec = json!({"containers": [{"name": "a", "securityContext": hardened}, {"name": "b", "securityContext": hardened}]});
        assert_eq!(violations(Level::Restricted, &spec), Vec::<String>::new());
        spec["hostPID"] = true.into();
        spec["containers"][0]["securityContext"]["runAsNonRoot"] = Value::Null;
        spec["containers"][1]["securityContext"]["privileged"] = true.into();
        let of_baseline = [
            "host namespaces (hostPID=true)",
            "privileged (container \"b\" must not set securityContext.privileged=true)",
        ];
        assert_eq!(violations(Level::Baseline, &spec), of_baseline);
        let more = "runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true)";
        assert_eq!(violations(Level::Restricted, &spec), [of_baseline[0], of_baseline[1], more]);
    }
}
