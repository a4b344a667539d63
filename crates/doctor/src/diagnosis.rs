//! What a diagnosis says. Serialized, it is the JSON that `tiphys doctor --output json` prints.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

/// The object that something is about; it may be missing from the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Object {
    /// Its kind, as in manifests.
    pub kind: String,
    /// Its namespace; empty for what has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Object {
    /// An object by its names.
    #[must_use]
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The command by which kubectl shows it: `kubectl -n shop describe pod web`.
    pub(crate) fn kubectl(&self, verb: &str) -> String {
        let scope = if self.namespace.is_empty() { String::new() } else { format!("-n {} ", self.namespace) };
        format!("kubectl {scope}{verb} {} {}", self.kind.to_lowercase(), self.name)
    }

    /// The names of a live object.
    #[must_use]
    pub fn from_live(live: &Value) -> Self {
        Self::new(live.kind(), live.namespace(), live.name())
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(formatter, "{} {}", self.kind, self.name),
            namespace => write!(formatter, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// What is wrong, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The roots, the surest first; empty if nothing is wrong.
    pub causes: Vec<Root>,
    /// What was considered and is not a root.
    pub ruled_out: Vec<RuledOut>,
    /// Red facts that no root explains.
    pub unexplained: Vec<Unexplained>,
    /// What could not be looked at, one sentence each.
    pub not_seen: Vec<String>,
    /// The time that ages are counted from.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub now: Option<Timestamp>,
}

/// One root cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Root {
    /// The mechanism.
    pub cause: Cause,
    /// The object that is at fault, or the missing one.
    pub object: Object,
    /// From 0 to 1; 0.5 and more is an assertion.
    pub confidence: f64,
    /// What is wrong, in one sentence.
    pub summary: String,
    /// The field that is at fault, as `spec.selector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// When the fault began.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub since: Option<Timestamp>,
    /// What proves it.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub remedy: Remedy,
    /// What is broken because of it.
    pub consequences: Vec<Consequence>,
    /// The consequences that it breaks itself, and not by way of others.
    #[serde(skip)]
    pub sufferers: Vec<Object>,
    /// Whether the remedy was tried out on a copy of the cluster, and what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Where the object is written in Git, if a repository was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
}

/// What came of trying out a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Whether everything that broke became well, and nothing else broke.
    #[serde(rename = "proved")]
    pub is_proved: bool,
    /// What was seen, or why it is not proved.
    pub text: String,
}

/// Where an object is written in Git, and what changed there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Written {
    /// The object that is written there: the one at fault, or the one that names it.
    pub object: Object,
    /// What delivers it: an Application, a Kustomization, a HelmRelease; empty if nothing is known to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The file.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The commits that changed it last before the fault began, the newest first.
    pub changes: Vec<Change>,
}

/// A commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its id.
    pub commit: String,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub at: Option<Timestamp>,
    /// Who wrote it.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
}

/// One proving fact: a quoted text and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where it stands: `Pod shop/web, status.conditions`, `log shop/web/app`, `Event of Pod shop/web`.
    pub source: String,
    /// The words, or the fact.
    pub text: String,
}

/// What to do about a root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What to do, in a sentence.
    pub text: String,
    /// Commands that do it or show more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// A merge patch of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
}

/// Something that is red because of a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Consequence {
    /// What is red.
    pub object: Object,
    /// What is red about it, in a clause.
    pub symptom: String,
}

/// Something that looks like a root and is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuledOut {
    /// What it would have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The object that was considered.
    pub object: Object,
    /// Why it is not a root.
    pub why: String,
}

/// A red fact that no root explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unexplained {
    /// What is red.
    pub object: Object,
    /// What is red about it.
    pub symptom: String,
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn as_text<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.to_string()).serialize(serializer)
}

impl Diagnosis {
    /// Keeps the roots that are in a namespace or an Application, or break something in it.
    #[must_use]
    pub fn narrowed_to(mut self, namespace: Option<&str>, application: Option<&str>) -> Self {
        let is_in = |object: &Object| {
            namespace.is_some_and(|namespace| {
                object.namespace == namespace || object.kind == "Namespace" && object.name == namespace
            }) || application.is_some_and(|name| object.kind == "Application" && object.name == name)
        };
        if namespace.is_some() || application.is_some() {
            self.causes.retain(|root| {
                is_in(&root.object) || root.consequences.iter().any(|consequence| is_in(&consequence.object))
            });
            self.ruled_out.retain(|ruled_out| is_in(&ruled_out.object));
            self.unexplained.retain(|unexplained| is_in(&unexplained.object));
        }
        self
    }
}
