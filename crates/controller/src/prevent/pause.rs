//! What is on hold: objects that bear a time, and objects that their Application names (incident B5).

use std::collections::BTreeMap;

use jiff::Timestamp;
use tiphys_model::{Application, Time, names};
use tiphys_sync::LiveObject;
use tiphys_value::{ObjectExt, ResourceKey};

/// The objects to which nothing is synced now, with until when.
pub(crate) fn paused(
    app: &Application,
    live: &BTreeMap<ResourceKey, LiveObject>,
    now: Timestamp,
) -> BTreeMap<ResourceKey, Time> {
    let own = live.iter().filter_map(|(key, live)| {
        Some((key.clone(), Time::parse(live.object.annotation(names::PAUSED_UNTIL)?)?))
    });
    let listed = app.annotation(names::PAUSED_RESOURCES).unwrap_or_default().split(',').filter_map(entry);
    own.chain(listed).filter(|(_, until)| now < until.timestamp()).collect()
}

/// `group/Kind/namespace/name=time`.
fn entry(text: &str) -> Option<(ResourceKey, Time)> {
    let (object, until) = text.trim().split_once('=')?;
    let mut parts = object.splitn(4, '/');
    let key = ResourceKey::new(parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some((key, Time::parse(until)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn entries_hold_until_their_time() {
        let app = Application::from_value(&json!({"metadata": {"name": "a", "annotations": {
            "tiphys.dev/paused-resources": "apps/Deployment/n/web=2026-01-02T00:00:00Z, /ConfigMap/n/c=2026-01-01T00:00:00Z, odd"}}}))
        .expect("valid");
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("valid");
        let held = paused(&app, &BTreeMap::new(), now);
        assert_eq!(held.keys().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["web"]);
    }
}
