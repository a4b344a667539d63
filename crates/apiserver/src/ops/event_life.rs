//! How long events are kept.

use std::sync::atomic::Ordering;

use tiphys_value::ObjectExt;

use super::At;
use crate::{
    ApiServer, Object,
    store::{Expect, Write},
};

/// Seconds that an event is kept.
const EVENT_LIFE: i64 = 3600;
/// Old events are looked for when an event gets a revision divisible by this,
const EVENT_SWEEP: u64 = 64;
/// and no more often than after so many seconds: all events are read then, and thousands may come at once.
const SWEEP_PAUSE: i64 = 60;

/// Now and then, after an event was written, forgets the old ones.
pub(super) fn after_commit(server: &ApiServer, at: &At, object: &Object, removed: bool) {
    if at.is("", "events") && !removed && object.revision().is_multiple_of(EVENT_SWEEP) {
        let now = server.now().as_second();
        let next = &server.inner.next_event_sweep;
        if now >= next.load(Ordering::Relaxed) {
            next.store(now.saturating_add(SWEEP_PAUSE), Ordering::Relaxed);
            forget_events(server, at);
        }
    }
}

/// Events are for an hour only (the API server's `--event-ttl`).
fn forget_events(server: &ApiServer, at: &At) {
    let now = server.now();
    let seen = |event: &Object| {
        let times = [
            event.str_at(&["series", "lastObservedTime"]),
            event.str_at(&["lastTimestamp"]),
            event.str_at(&["eventTime"]),
            event.str_at(&["metadata", "creationTimestamp"]),
        ];
        times.into_iter().flatten().filter_map(|text| text.parse::<jiff::Timestamp>().ok()).max()
    };
    let limit = jiff::SignedDuration::from_secs(EVENT_LIFE);
    let snapshot = server.snapshot();
    for event in snapshot.list(&at.resource.id, None) {
        if seen(event).is_some_and(|seen| now.duration_since(seen) > limit) {
            let key = crate::store::key(event.namespace(), event.name());
            let expect = Expect::Revision(event.revision());
            let write = Write {
                resource: &at.resource.id,
                key: &key,
                expect,
                value: event.value().clone(),
                remove: true,
            };
            // An event that was written meanwhile lives on.
            drop(server.inner.store.commit(write));
        }
    }
}
