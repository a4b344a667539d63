//! Events of both groups, in the form of core/v1 in which they are stored.

use serde_json::Value;

use super::{faulty, names, text};
use crate::{ErrorList, FieldError, Path};

/// Most characters of an action, a reason and the name of a reporting instance.
const SHORT: usize = 128;
/// Most characters of a message.
const LONG: usize = 1024;

/// What holds for events of both groups.
pub(super) fn common(event: &Value, modern: bool, errors: &mut ErrorList) {
    let namespace = text(&event["metadata"], "namespace");
    let about = text(&event["involvedObject"], "namespace");
    let place = Path::new("involvedObject.namespace");
    let has_time = event["eventTime"].is_string();
    let agrees = match (about, has_time) {
        ("", false) => matches!(namespace, "" | "default"),
        ("", true) => matches!(namespace, "default" | "kube-system"),
        (about, false) => about == namespace,
        (_, true) => true,
    };
    if !agrees {
        errors.push(FieldError::invalid(&place, about, "does not match event.namespace"));
    }
    if has_time {
        let controller = Path::new(if modern { "reportingController" } else { "reportingComponent" });
        let reporter = text(event, "reportingComponent");
        if reporter.is_empty() {
            errors.push(FieldError::required(&controller, ""));
        }
        faulty(names::qualified_name(reporter), reporter, &controller, errors);
        for (key, needed, most) in [
            ("reportingInstance", true, SHORT),
            ("action", true, SHORT),
            ("reason", true, SHORT),
            ("message", false, LONG),
        ] {
            let (value, path) = (text(event, key), Path::new(key));
            if value.is_empty() && needed {
                errors.push(FieldError::required(&path, ""));
            }
            if value.len() > most {
                errors.push(FieldError::invalid(&path, "", format!("can have at most {most} characters")));
            }
        }
    }
    faulty(names::dns1123_subdomain(namespace), namespace, &Path::new("namespace"), errors);
}

fn series(event: &Value, errors: &mut ErrorList) {
    let series = &event["series"];
    if !series.is_object() {
        return;
    }
    if series["count"].as_i64().unwrap_or_default() < 2 {
        errors.push(FieldError::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if !series["lastObservedTime"].is_string() {
        errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
    }
}

/// What holds beside that for a new event of `events.k8s.io/v1`.
pub(super) fn modern(event: &Value, errors: &mut ErrorList) {
    series(event, errors);
    if !event["eventTime"].is_string() {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    let source = &event["source"];
    let is_set = [
        ("firstTimestamp", event["firstTimestamp"].is_string()),
        ("lastTimestamp", event["lastTimestamp"].is_string()),
        ("count", event["count"].as_i64().unwrap_or_default() != 0),
        ("source", !text(source, "component").is_empty() || !text(source, "host").is_empty()),
    ];
    for (key, _) in is_set.into_iter().filter(|(_, set)| *set) {
        errors.push(FieldError::invalid(&Path::new(key), "", "needs to be unset"));
    }
}

/// What holds beside that for a change through `events.k8s.io/v1`.
pub(super) fn modern_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    if new["series"] != old["series"] {
        series(new, errors);
    }
    const FIXED: [(&str, &str); 13] = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    let is_empty = |value: &Value| {
        value.is_null() || value == "" || value == 0 || value.as_object().is_some_and(|map| map.is_empty())
    };
    for (key, shown) in FIXED {
        if new[key] != old[key] && !(is_empty(&new[key]) && is_empty(&old[key])) {
            errors.push(FieldError::invalid(&Path::new(shown), new[key].clone(), "field is immutable"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newer_group_asks_for_more() {
        let event = json!({"metadata": {"namespace": "a"}, "involvedObject": {"namespace": "a"}, "count": 1, "type": "Odd"});
        let mut errors = ErrorList::new();
        common(&event, true, &mut errors);
        assert!(errors.is_empty());
        modern(&event, &mut errors);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["eventTime", "type", "count"]);
    }
}
