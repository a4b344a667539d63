//! Events, of `v1` and of `events.k8s.io/v1`, in one form.

use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value};

use crate::Object;

/// What a component said about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The object that it is about.
    pub object: Object,
    /// The version of the object's kind, with its group; empty if it is not told.
    pub version: String,
    /// The object's uid; empty if it is not told.
    pub uid: String,
    /// `Warning` or `Normal`.
    pub kind: String,
    /// `FailedScheduling`, `BackOff`, …
    pub reason: String,
    /// The words.
    pub message: String,
    /// How often it was said.
    pub count: u64,
    /// When it was said first.
    pub first: Option<Timestamp>,
    /// When it was said last.
    pub last: Option<Timestamp>,
    /// The component that said it.
    pub source: String,
}

impl Event {
    /// Whether it was said of late: a warning that is not said again is history. Where a time is not known,
    /// it may have been.
    pub(super) fn is_recent(&self, now: Option<Timestamp>) -> bool {
        const OLD_SECONDS: i64 = 15 * 60;
        match (self.last, now) {
            (Some(last), Some(now)) => now.as_second() - last.as_second() < OLD_SECONDS,
            _ => true,
        }
    }

    /// Reads an event object; `None` if it is of another kind.
    #[must_use]
    pub fn from_live(live: &Value) -> Option<Self> {
        if live.kind() != "Event" {
            return None;
        }
        let about = live.get("involvedObject").or_else(|| live.get("regarding"));
        let text = |keys: &[&str]| live.str_at(keys).unwrap_or_default().to_owned();
        let time = |keys: &[&[&str]]| keys.iter().find_map(|keys| live.str_at(keys)?.parse().ok());
        let named = |key: &str| about.and_then(|about| about.str_at(&[key])).unwrap_or_default();
        let message = [text(&["message"]), text(&["note"])].into_iter().find(|text| !text.is_empty());
        let source =
            [text(&["source", "component"]), text(&["reportingController"]), text(&["reportingComponent"])];
        let count = [&["count"][..], &["series", "count"], &["deprecatedCount"]];
        Some(Self {
            object: Object::new(named("kind"), named("namespace"), named("name")),
            version: named("apiVersion").to_owned(),
            uid: named("uid").to_owned(),
            kind: text(&["type"]),
            reason: text(&["reason"]),
            message: message.unwrap_or_default(),
            count: count.iter().find_map(|keys| live.at(keys)?.as_u64()).unwrap_or(1),
            first: time(&[
                &["firstTimestamp"],
                &["deprecatedFirstTimestamp"],
                &["eventTime"],
                &["metadata", "creationTimestamp"],
            ]),
            last: time(&[
                &["series", "lastObservedTime"],
                &["lastTimestamp"],
                &["deprecatedLastTimestamp"],
                &["eventTime"],
                &["metadata", "creationTimestamp"],
            ]),
            source: source.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
        })
    }

    /// Whether it reports a problem.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.kind == "Warning"
    }
}
