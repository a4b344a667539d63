//! Nodes that have lost the network of pods.

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, mechanism::Mechanism, story::Story};
use tiphys_value::{ObjectExt, Value};

use crate::rehearse::strict_world::networks_in;

/// Nodes that had a network before a change and have none at the end. Pods that run go on, so no Application
/// need be red; the next pod finds no network.
pub(super) fn nodes_without(story: &Story, before: &Snapshot, end: &Snapshot) -> Option<Cause> {
    let is_shown =
        story.causes.iter().any(|cause| cause.mechanism.as_ref().is_some_and(|it| it.id == Id::NetCniDown));
    let nodes = |snapshot: &Snapshot| -> Vec<Value> {
        let all = snapshot.list(&ResourceId::new("", "nodes"), None).map(|object| object.value());
        all.filter(|node| has_no_network(node)).cloned().collect()
    };
    let known = nodes(before);
    let is_known = |node: &Value| known.iter().any(|old| old.name() == node.name());
    let lost: Vec<_> =
        nodes(end).iter().filter(|node| !is_known(node)).map(ObjectExt::resource_key).collect();
    if is_shown || lost.is_empty() {
        return None;
    }
    let text = "no pod that gives pods a network runs there any more; those that run go on, and no further one starts";
    let gone = networks_in(before)
        .filter(|set| end.get(&ResourceId::new("apps", "daemonsets"), set.namespace(), set.name()).is_none());
    let objects = gone.map(ObjectExt::resource_key).collect();
    let first = Cause::of_object(
        lost[0].clone(),
        Some(Mechanism { id: Id::NetCniDown, objects }),
        text.to_owned(),
        "has no network for pods",
    );
    Some(Cause { objects: lost, ..first })
}

fn has_no_network(node: &Value) -> bool {
    let conditions = node.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.str_at(&["type"]) == Some("NetworkUnavailable")
            && condition.str_at(&["status"]) == Some("True")
    })
}
