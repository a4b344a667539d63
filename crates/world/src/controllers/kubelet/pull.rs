//! Pulling images.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{
    Sync,
    container::{image_id, in_words},
    remaining,
};
use crate::behaviour::reference_fault;

/// From a pull that failed until it is said that the next one waits.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
/// How often a pull is tried in the end.
const RETRY: Duration = Duration::from_secs(300);

impl Sync<'_> {
    /// The waiting state of a container whose image is not there yet; `None` once it is.
    pub(super) fn pull(&mut self, spec: &Value, status: &Value, field: &str) -> Option<Value> {
        let image = spec.str_at(&["image"]).unwrap_or_default();
        if let Some(fault) = reference_fault(image) {
            return Some(self.unreadable(image, &fault, status, field));
        }
        let rule = self.context.behaviours.images.iter().find(|rule| rule.is_about(image));
        let takes = rule.and_then(|rule| rule.takes).map_or(self.context.settings.pod_start, |span| span.0);
        let arrived = self.pod.str_at(&["status", "startTime"]).and_then(|at| at.parse::<Timestamp>().ok());
        let arrived = arrived.unwrap_or(self.context.now);
        if let Some(left) = remaining(arrived, takes, self.context.now) {
            self.look_again(left);
            return Some(status["state"].clone());
        }
        let refusal = rule.and_then(|rule| rule.refusal(image, self.pod, self.context.view));
        let Some(cause) = refusal else {
            // What was pulled is not pulled again because something else held the container up.
            if status.str_at(&["state", "waiting", "reason"]) != Some("CreateContainerConfigError") {
                self.tell_pulled(spec, image, takes, field);
            }
            return None;
        };
        Some(self.refused(image, &cause.to_string(), status, field, arrived, takes))
    }

    /// The waiting state of a container whose image no runtime can read.
    fn unreadable(&mut self, image: &str, fault: &str, status: &Value, field: &str) -> Value {
        let message = format!(
            "Failed to apply default image tag \"{image}\": couldn't parse image name \"{image}\": {fault}"
        );
        let state = json!({"waiting": {"reason": "InvalidImageName", "message": message}});
        if status["state"] != state {
            self.tell(true, "InspectFailed", message, Some(field));
            self.tell(true, "Failed", "Error: InvalidImageName".to_owned(), Some(field));
        }
        state
    }

    fn refused(
        &mut self,
        image: &str,
        why: &str,
        status: &Value,
        field: &str,
        arrived: Timestamp,
        takes: Duration,
    ) -> Value {
        let waiting = &status["state"]["waiting"];
        let is_known = waiting.str_at(&["message"]).is_some_and(|message| message.contains(why));
        if !is_known {
            self.tell(false, "Pulling", format!("Pulling image \"{image}\""), Some(field));
            self.tell(true, "Failed", format!("Failed to pull image \"{image}\": {why}"), Some(field));
            self.tell(true, "Failed", "Error: ErrImagePull".to_owned(), Some(field));
            self.look_again(FIRST_BACK_OFF);
            return json!({"waiting": {"reason": "ErrImagePull", "message": why}});
        }
        if waiting["reason"] == "ErrImagePull" {
            if let Some(left) = remaining(arrived, takes + FIRST_BACK_OFF, self.context.now) {
                self.look_again(left);
                return status["state"].clone();
            }
            self.tell(false, "BackOff", format!("Back-off pulling image \"{image}\""), Some(field));
            self.tell(true, "Failed", "Error: ImagePullBackOff".to_owned(), Some(field));
        }
        self.look_again(RETRY);
        let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {why}");
        json!({"waiting": {"reason": "ImagePullBackOff", "message": message}})
    }

    fn tell_pulled(&mut self, spec: &Value, image: &str, takes: Duration, field: &str) {
        if spec.str_at(&["imagePullPolicy"]) != Some("Always") && self.is_on_node(image) {
            let text = format!(
                "Container image \"{image}\" already present on machine and can be accessed by the pod"
            );
            return self.tell(false, "Pulled", text, Some(field));
        }
        self.tell(false, "Pulling", format!("Pulling image \"{image}\""), Some(field));
        let took = in_words(takes);
        let size =
            20_000_000 + image.bytes().fold(7u64, |sum, byte| (sum * 31 + u64::from(byte)) % 80_000_000);
        let text = format!(
            "Successfully pulled image \"{image}\" in {took} ({took} including waiting). Image size: {size} bytes."
        );
        self.tell(false, "Pulled", text, Some(field));
    }

    /// Whether a container of another pod on the node has the image.
    fn is_on_node(&self, image: &str) -> bool {
        let id = image_id(image);
        let has = |pod: &Value| {
            let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
            let mut statuses = statuses.filter_map(|list| pod.at(&["status", list])?.as_array()).flatten();
            statuses.any(|status| status["imageID"] == id.as_str())
        };
        self.context.view.pods_on(self.node.name()).iter().any(|pod| has(pod))
    }
}
