//! Events of Applications, for people and other tools.

use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use tiphys_cluster::LiveCache;
use tiphys_model::{Application, Time, names};
use tiphys_value::json;

/// Who reports.
const COMPONENT: &str = "tiphys-controller";
/// The API server takes no longer messages.
const MAX_MESSAGE: usize = 1024;

/// A number that no other Event of this process has: several may be recorded at one time.
fn serial(now: Timestamp) -> i128 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    now.as_nanosecond() + i128::from(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Types of Events.
pub(crate) const NORMAL: &str = "Normal";
pub(crate) const WARNING: &str = "Warning";

/// Records an Event. That it cannot be written is no fault of the Application.
pub(crate) async fn record(
    cache: &LiveCache,
    app: &Application,
    kind: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let metadata = &app.metadata;
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let time = Time::from(now);
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{}.{:x}", metadata.name, serial(now)), "namespace": metadata.namespace},
        "involvedObject": {"apiVersion": names::API_VERSION, "kind": "Application", "name": metadata.name,
            "namespace": metadata.namespace, "uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "reason": reason, "message": message, "type": kind, "count": 1,
        "source": {"component": COMPONENT}, "reportingComponent": COMPONENT, "reportingInstance": "",
        "firstTimestamp": time, "lastTimestamp": time,
    });
    if let Err(error) = cache.cluster().create(&event, COMPONENT, false).await {
        tracing::debug!(app = %metadata.name, %error, "cannot record an event");
    }
}
