//! A site from what was read of a real cluster: it stands still until something concerns it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tiphys_apiserver::{ApiServer, ApiServerOptions, Imported, Outbound};
use tiphys_cause::{Cause, pull_fault};
use tiphys_value::{ObjectExt, Value};
use tiphys_world::{
    Behaviours, Start,
    behaviour::{ContainerRule, Exit, ImageRule, Pods, Pull, Readiness, Span},
};

use crate::{
    Site, SiteError, SiteOptions,
    site::{STARTS_AT, clock_from},
};

/// Fields that hold a time that has passed when somebody reads them. Others (the end of a certificate) lie
/// ahead.
const TIMES: [&str; 17] = [
    "acquireTime",
    "completionTime",
    "creationTimestamp",
    "deployedAt",
    "eventTime",
    "finishedAt",
    "firstTimestamp",
    "lastHeartbeatTime",
    "lastProbeTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "observedAt",
    "reconciledAt",
    "renewTime",
    "startTime",
    "startedAt",
];
/// How deep objects are read.
const MAX_DEPTH: usize = 64;

impl Site {
    /// A cluster as it was found: uids, times, statuses and owners stay. The clock goes on from when it was
    /// saved, or else from the newest time in it. Nothing of it moves by itself. Must be called inside a
    /// Tokio runtime.
    ///
    /// # Errors
    /// The API server does not start.
    pub fn found(
        objects: Vec<Value>,
        saved_at: Option<Timestamp>,
        mut options: SiteOptions,
    ) -> Result<(Self, Imported), SiteError> {
        let now = saved_at.max(newest_time(&objects)).or_else(|| Timestamp::from_second(STARTS_AT).ok());
        let mut rules = observed(&objects);
        rules.extend(options.world.behaviours);
        options.world.behaviours = rules;
        options.world.start = Start::Found;
        let server = ApiServer::new(ApiServerOptions {
            seed: Some(options.seed),
            clock: Some(clock_from(now.unwrap_or_default())),
            service_network: options.service_network,
            // What was found is somebody else's: it may name any address.
            outbound: if options.is_isolated { Outbound::Assume } else { Outbound::Refuse },
            ..ApiServerOptions::default()
        })?;
        let imported = server.import(objects);
        Ok((Self::start(server, options.world)?, imported))
    }
}

/// The newest time in any object, of those that have passed.
pub fn newest_time(objects: &[Value]) -> Option<Timestamp> {
    objects.iter().filter_map(|object| newest_in(object, 0)).max()
}

fn newest_in(value: &Value, depth: usize) -> Option<Timestamp> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter_map(|(name, value)| match value {
                Value::String(text) if is_time_field(name) => text.parse().ok(),
                other => newest_in(other, depth + 1),
            })
            .max(),
        Value::Array(items) => items.iter().filter_map(|item| newest_in(item, depth + 1)).max(),
        _ => None,
    }
}

fn is_time_field(name: &str) -> bool {
    // `time` is that of managed fields.
    name == "time" || TIMES.binary_search(&name).is_ok()
}

/// What did not work in a cluster, as rules by which it goes on not working: of the pods there and of those
/// made from the same template.
pub fn observed(objects: &[Value]) -> Behaviours {
    let mut rules = Behaviours::default();
    let pods = objects.iter().filter(|object| object.kind() == "Pod" && object.api_version() == "v1");
    for pod in pods.filter(|pod| !pod.is_terminating()) {
        for (name, status) in crate::object_state::containers(pod) {
            let Some(image) = image_of(pod, name) else { continue };
            let reason = status.str_at(&["state", "waiting", "reason"]).unwrap_or_default();
            match reason {
                "ErrImagePull" | "ImagePullBackOff" => rules.images.extend(refused_image(image, status)),
                _ => rules.containers.extend(observed_container(pod, name, status)),
            }
        }
    }
    rules
}

fn image_of<'a>(pod: &'a Value, container: &str) -> Option<&'a str> {
    let lists = ["initContainers", "containers"].into_iter();
    let mut all = lists.filter_map(|list| pod.at(&["spec", list])?.as_array()).flatten();
    all.find(|it| it.str_at(&["name"]) == Some(container))?.str_at(&["image"])
}

fn refused_image(image: &str, status: &Value) -> Option<ImageRule> {
    let message = status.str_at(&["state", "waiting", "message"]).unwrap_or_default();
    let pull = match pull_fault(message).cause? {
        Cause::ImageNotFound => Pull::NotFound,
        Cause::ImageUnauthorized => Pull::Unauthorized,
        Cause::ImageForbidden => Pull::Forbidden,
        Cause::ImageRateLimited => Pull::RateLimited,
        Cause::ImageRegistryUnreachable => Pull::Timeout,
        _ => return None,
    };
    Some(ImageRule::new(image, pull))
}

/// A container that ends again and again, or runs and is not ready.
fn observed_container(pod: &Value, name: &str, status: &Value) -> Option<ContainerRule> {
    let ended = ["lastState", "state"].iter().find_map(|state| status.at(&[state, "terminated"]));
    let waits = status.str_at(&["state", "waiting", "reason"]) == Some("CrashLoopBackOff");
    let exits = ended.filter(|_| waits).map(exit);
    let runs = status.at(&["state", "running"]).is_some();
    let is_ready = status.get("ready").and_then(Value::as_bool).unwrap_or_default();
    let is_never_ready = runs && !is_ready && ended.is_none();
    if exits.is_none() && !is_never_ready {
        return None;
    }
    let never = is_never_ready.then(|| "it was not ready when the cluster was read".to_owned());
    Some(ContainerRule {
        container: name.into(),
        pods: of_one_template(pod),
        exits,
        ready: Readiness { never, ..Readiness::default() },
        ..ContainerRule::default()
    })
}

fn exit(ended: &Value) -> Exit {
    let time = |field: &str| ended.str_at(&[field]).and_then(|at| at.parse::<Timestamp>().ok());
    let ran = time("startedAt").zip(time("finishedAt")).map(|(from, to)| to.duration_since(from));
    Exit {
        code: ended.int_at(&["exitCode"]).and_then(|code| i32::try_from(code).ok()).unwrap_or(1),
        after: Span(ran.and_then(|ran| ran.try_into().ok()).unwrap_or_default()),
        reason: ended.str_at(&["reason"]).filter(|reason| *reason != "Error").map(str::to_owned),
        message: ended.str_at(&["message"]).map(str::to_owned),
    }
}

/// The pods that were made from the same template; without its mark, the pod alone.
fn of_one_template(pod: &Value) -> Pods {
    const MARKS: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];
    let mark = MARKS.iter().find_map(|mark| Some(((*mark).to_owned(), pod.label(mark)?.to_owned())));
    let namespace = pod.namespace().into();
    match mark {
        Some(mark) => Pods { namespace, labels: BTreeMap::from([mark]), ..Pods::default() },
        None => Pods { namespace, name: pod.name().into(), ..Pods::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn the_clock_goes_on_from_the_newest_time_that_has_passed() {
        let objects = [json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"notAfter": "2036-01-01T00:00:00Z", "conditions": [{"lastTransitionTime": "2026-03-01T10:00:00Z"}]}})];
        assert_eq!(newest_time(&objects).unwrap().to_string(), "2026-03-01T10:00:00Z");
        assert!(TIMES.is_sorted());
    }

    #[test]
    fn what_did_not_work_goes_on_not_working() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a-1", "namespace": "shop", "labels": {"pod-template-hash": "5d"}},
            "spec": {"containers": [{"name": "c", "image": "r.io/a:1"}, {"name": "d", "image": "r.io/d:1"}, {"name": "e", "image": "r.io/e:1"}]},
            "status": {"containerStatuses": [
                {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated":
                    {"exitCode": 3, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:07Z"}}},
                {"name": "d", "state": {"waiting": {"reason": "ErrImagePull", "message": "r.io/d:1: not found"}}},
                {"name": "e", "ready": true, "state": {"running": {}}}]}});
        let rules = observed(&[pod]);
        assert_eq!((rules.containers.len(), rules.images.len()), (1, 1));
        let exits = rules.containers[0].exits.as_ref().unwrap();
        assert_eq!((exits.code, exits.after.0.as_secs()), (3, 7));
        assert_eq!(rules.containers[0].pods.labels["pod-template-hash"], "5d");
    }
}
