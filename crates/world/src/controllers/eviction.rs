//! Pods leave nodes with a `NoExecute` taint that they do not tolerate, or no longer ("Taint based
//! Evictions").

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_value::{ObjectExt, taint::toleration};

use super::workload::{delete_pod, is_finished};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{resources, set_condition, status_of, with_status},
};

/// Takes pods off tainted nodes.
pub(super) struct TaintEviction;

impl Controller for TaintEviction {
    fn name(&self) -> &'static str {
        "taint-eviction"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::nodes() && !change.is_deleted {
            let is_tainted = no_execute(&change.object).next().is_some();
            let pods = if is_tainted { view.pods_on(change.object.name()) } else { Vec::new() };
            return pods.iter().map(|pod| Key::from_object(pod)).collect();
        }
        if change.resource != resources::pods() || change.is_deleted {
            return Vec::new();
        }
        let node = change.object.str_at(&["spec", "nodeName"]).filter(|node| !node.is_empty());
        let node = node.and_then(|name| {
            view.get(&resources::nodes(), &Key { namespace: String::new(), name: name.to_owned() })
        });
        let is_tainted = node.is_some_and(|node| no_execute(&node).next().is_some());
        is_tainted.then(|| Key::from_object(&change.object)).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(pod) = context.view.get(&resources::pods(), key) else { return Outcome::done() };
        let name = pod.str_at(&["spec", "nodeName"]).unwrap_or_default().to_owned();
        let node = context.view.get(&resources::nodes(), &Key { namespace: String::new(), name });
        let Some(node) = node.filter(|_| !pod.is_terminating() && !is_finished(&pod)) else {
            return Outcome::done();
        };
        let mut soonest: Option<Duration> = None;
        for taint in no_execute(&node) {
            let left = match toleration(&pod, taint) {
                None => Duration::ZERO,
                Some(toleration) => match toleration.int_at(&["tolerationSeconds"]) {
                    None => continue,
                    Some(seconds) => remaining(taint, seconds, context.now),
                },
            };
            soonest = Some(soonest.map_or(left, |soonest| soonest.min(left)));
        }
        match soonest {
            None => Outcome::done(),
            Some(left) if !left.is_zero() => Outcome::after(left),
            Some(_) => {
                let message = format!("Marking for deletion Pod {}/{}", pod.namespace(), pod.name());
                let reporter = Reporter::Controller("taint-eviction-controller");
                let told: Write = Event::normal(&pod, reporter, "TaintManagerEviction", message).into();
                let mut status = status_of(&pod);
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
                    "message": "Taint manager: deleting due to NoExecute taint",
                });
                set_condition(&mut status, condition, context.now);
                let marked = with_status(&pod, status.into());
                let marked = marked.map(|object| Write::UpdateStatus { resource: resources::pods(), object });
                [told].into_iter().chain(marked).chain([delete_pod(&pod)]).collect::<Vec<_>>().into()
            }
        }
    }
}

fn no_execute(node: &Value) -> impl Iterator<Item = &Value> {
    let taints = node.at(&["spec", "taints"]).and_then(Value::as_array);
    taints.into_iter().flatten().filter(|taint| taint.str_at(&["effect"]) == Some("NoExecute"))
}

fn remaining(taint: &Value, seconds: i64, now: Timestamp) -> Duration {
    let since = taint.str_at(&["timeAdded"]).and_then(|at| at.parse::<Timestamp>().ok()).unwrap_or(now);
    let left = since.as_second().saturating_add(seconds).saturating_sub(now.as_second());
    Duration::from_secs(left.max(0).unsigned_abs())
}
