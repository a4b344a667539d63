//! What a sequence came to, without what each cluster makes up: uids, times, addresses, generated names.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tiphys_value::ObjectExt;

use super::{cluster::Played, sequence::Sequence};

/// Kubernetes generates names of these letters.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Fields that differ between two clusters by their nature, wherever they stand.
const OWN: [&str; 12] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastHeartbeatTime",
];
/// What the controllers say of a pod; the rest of its status is the kubelet's, which is played.
const POD_CONDITIONS: [&str; 2] = ["PodScheduled", "DisruptionTarget"];
const POD_STATUS: [&str; 4] = ["phase", "qosClass", "nominatedNodeName", "conditions"];
/// Who tells of pods in the kubelet's place.
const KUBELETS: [&str; 2] = ["kubelet", "kwok_controller"];

/// An object to compare.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    /// Its kind.
    pub kind: String,
    /// Its name, the same for objects whose names were generated for the same owner.
    pub class: String,
    /// What is compared of it.
    pub value: Value,
}

/// An Event to compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told {
    /// Its type.
    pub kind: String,
    /// Its reason.
    pub reason: String,
    /// Its message, without what is made up.
    pub message: String,
}

/// What a sequence came to.
pub(super) struct State {
    /// Code and reason of every answer.
    pub answers: Vec<String>,
    /// The objects.
    pub things: Vec<Thing>,
    /// By kind and class of what they are about, the stories of each object: what was told of it, in order.
    pub stories: BTreeMap<(String, String), Vec<Vec<Told>>>,
}

impl State {
    /// What is compared of what was played.
    pub(super) fn from_played(played: &Played, sequence: &Sequence) -> Self {
        let names = Names::from_sequence(sequence);
        let things = played.objects.iter().map(|object| thing(object, &names)).collect();
        let mut by_object = BTreeMap::<(String, String, String), Vec<Told>>::new();
        for event in &played.events {
            let reporter = event.str_at(&["source", "component"]).filter(|it| !it.is_empty());
            let reporter = reporter.or_else(|| event.str_at(&["reportingComponent"])).unwrap_or_default();
            if KUBELETS.contains(&reporter) {
                continue;
            }
            let text = |path: &[&str]| event.str_at(path).unwrap_or_default();
            let about = |field| text(&["involvedObject", field]);
            let told = Told {
                kind: text(&["type"]).to_owned(),
                reason: text(&["reason"]).to_owned(),
                message: names.cleaned(text(&["message"])),
            };
            let key = (about("kind").to_owned(), names.cleaned(about("name")), about("name").to_owned());
            let story = by_object.entry(key).or_default();
            // What is tried again is told again, and how often depends on how long one looks.
            if !story.contains(&told) {
                story.push(told);
            }
        }
        let mut stories = BTreeMap::<(String, String), Vec<Vec<Told>>>::new();
        for ((kind, class, _), story) in by_object {
            stories.entry((kind, class)).or_default().push(story);
        }
        stories.values_mut().for_each(|all| all.sort());
        Self { answers: played.answers.clone(), things, stories }
    }
}

fn thing(object: &Value, names: &Names) -> Thing {
    let kind = object.kind().to_owned();
    let class = names.cleaned(object.name());
    let mut value = object.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    match kind.as_str() {
        "Pod" => only_controllers_part(&mut value),
        "StatefulSet" => name_revisions(&mut value),
        "Node" => only_judgement_of_node(&mut value),
        "ConfigMap" if object.name() == "kube-root-ca.crt" => value["data"] = "<authority>".into(),
        _ => {}
    }
    names.clean(&mut value);
    Thing { kind, class, value }
}

/// Leaves of a pod's status what controllers and scheduler write.
fn only_controllers_part(pod: &mut Value) {
    if let Some(status) = pod.pointer_mut("/status").and_then(Value::as_object_mut) {
        status.retain(|field, _| POD_STATUS.contains(&field.as_str()));
    }
    if let Some(conditions) = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.retain(|it| POD_CONDITIONS.iter().any(|kind| it["type"] == *kind));
        // The kubelet adds it to every condition.
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            condition.remove("observedGeneration");
        }
        if conditions.is_empty()
            && let Some(status) = pod.pointer_mut("/status").and_then(Value::as_object_mut)
        {
            status.remove("conditions");
        }
    }
}

/// Says of the two revisions of a StatefulSet whether they are the same: their names are made up.
fn name_revisions(set: &mut Value) {
    let is_same = set["status"]["currentRevision"] == set["status"]["updateRevision"];
    if set["status"]["currentRevision"].is_string() {
        set["status"]["currentRevision"] = if is_same { "the update" } else { "an older one" }.into();
    }
}

/// Leaves of a node what the node lifecycle controller judges.
fn only_judgement_of_node(node: &mut Value) {
    let conditions = node["status"]["conditions"].take();
    node["status"] = Value::Object(Map::from_iter([("conditions".to_owned(), conditions)]));
    if let Some(metadata) = node.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
        metadata.remove("labels");
    }
    if let Some(spec) = node.pointer_mut("/spec").and_then(Value::as_object_mut) {
        spec.remove("podCIDR");
        spec.remove("podCIDRs");
    }
}

/// The names that the sequence gives: what follows them was made up.
struct Names(Vec<String>);

impl Names {
    fn from_sequence(sequence: &Sequence) -> Self {
        let mut names: Vec<_> = sequence.names.clone();
        names.push("kube-api-access".to_owned());
        // The longest first: one name may begin with another.
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Self(names)
    }

    fn clean(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !OWN.contains(&key.as_str()));
                for (key, value) in map {
                    match key.as_str() {
                        "pod-template-hash"
                        | "controller-revision-hash"
                        | "controller.kubernetes.io/hash"
                        | "controller-uid"
                        | "batch.kubernetes.io/controller-uid"
                            if value.is_string() =>
                        {
                            *value = "*".into();
                        }
                        "nodeName" if value.is_string() => *value = "<node>".into(),
                        _ => self.clean(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::String(text) => *text = self.cleaned(text),
            _ => {}
        }
    }

    /// A text without what is made up.
    fn cleaned(&self, text: &str) -> String {
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
        let mut out = String::new();
        let mut word = String::new();
        for c in text.chars() {
            if is_of_word(c) {
                word.push(c);
                continue;
            }
            out.push_str(&self.cleaned_word(&word));
            word.clear();
            out.push(c);
        }
        out.push_str(&self.cleaned_word(&word));
        out
    }

    fn cleaned_word(&self, word: &str) -> String {
        let bare = word.trim_end_matches(['.', ':']);
        let end = &word[bare.len()..];
        if bare.parse::<jiff::Timestamp>().is_ok() {
            return format!("<time>{end}");
        }
        if bare.parse::<std::net::IpAddr>().is_ok() {
            return format!("<ip>{end}");
        }
        if let Some(number) = bare.strip_prefix("node-")
            && number.parse::<u32>().is_ok()
        {
            return format!("<node>{end}");
        }
        if let Some(at) = uid_at(bare) {
            return format!("{}<uid>{}{end}", &bare[..at], &bare[at + 36..]);
        }
        let base = self
            .0
            .iter()
            .find(|base| bare.strip_prefix(base.as_str()).is_some_and(|rest| rest.starts_with('-')));
        let Some(base) = base else { return word.to_owned() };
        let parts = bare[base.len() + 1..].split('-');
        let parts: Vec<_> = parts.map(|part| if is_made_up(part) { "*" } else { part }).collect();
        format!("{base}-{}{end}", parts.join("-"))
    }
}

/// Whether a part of a name is a generated one, a hash, or the minute of a CronJob's Job.
fn is_made_up(part: &str) -> bool {
    let is_minute = part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_suffix = matches!(part.len(), 5 | 8..=10) && part.chars().all(|c| ALPHABET.contains(c));
    is_minute || is_suffix
}

/// Where a uid stands in a word.
fn uid_at(word: &str) -> Option<usize> {
    let is_uid = |text: &str| {
        text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
    };
    (0..=word.len().checked_sub(36)?).find(|at| word.get(*at..at + 36).is_some_and(is_uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_up_is_hidden_and_nothing_else() {
        let names = Names(vec!["web-ready".to_owned(), "web".to_owned(), "tick".to_owned()]);
        for (text, cleaned) in [
            ("Created pod: web-7c5ddbdf54-x2k9q", "Created pod: web-*-*"),
            ("pods \"web-ready-x2k9q\" is forbidden", "pods \"web-ready-*\" is forbidden"),
            ("create Pod web-0 in StatefulSet web", "create Pod web-0 in StatefulSet web"),
            ("Created job tick-29384756", "Created job tick-*"),
            ("assigned a/web-x2k9q to node-2.", "assigned a/web-* to <node>."),
            ("at 2026-01-02T03:04:05Z from 10.1.2.3", "at <time> from <ip>"),
            ("pvc-0f0f0f0f-1111-2222-3333-444444444444", "pvc-<uid>"),
        ] {
            assert_eq!(names.cleaned(text), cleaned);
        }
    }
}
