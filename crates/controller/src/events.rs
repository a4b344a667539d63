//! Events of Applications, for people and other tools.

use jiff::Timestamp;
use tiphys_cluster::LiveCache;
use tiphys_model::{Application, Time, names};
use tiphys_value::json;

/// Who reports.
const COMPONENT: &str = "tiphys-controller";
/// The API server takes no longer messages.
const MAX_MESSAGE: usize = 1024;

/// Records an Event. That it cannot be written is no fault of the Application.
pub(crate) async fn record(
    cache: &LiveCache,
    app: &Application,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let metadata = &app.metadata;
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let time = Time::from(now);
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{}.{:x}", metadata.name, now.as_nanosecond()), "namespace": metadata.namespace},
        "involvedObject": {"apiVersion": names::API_VERSION, "kind": "Application", "name": metadata.name,
            "namespace": metadata.namespace, "uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "reason": reason, "message": message, "type": "Normal", "count": 1,
        "source": {"component": COMPONENT}, "reportingComponent": COMPONENT, "reportingInstance": "",
        "firstTimestamp": time, "lastTimestamp": time,
    });
    if let Err(error) = cache.cluster().create(&event, COMPONENT, false).await {
        tracing::debug!(app = %metadata.name, %error, "cannot record an event");
    }
}
