//! The lists of a status that are too long for it. An API server takes no object larger than 1.5 MiB, which
//! some thousand objects of one Application fill: its status could not be written at all. Longer ones are
//! kept compressed in a field of ours, and what needs somebody's attention stays in the lists where others
//! read it.

use std::{
    borrow::Cow,
    io::{Read, Write},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::{Value, json};

/// A status with more bytes than this is written with packed lists.
const MAX_PLAIN: usize = 1 << 20;
/// How many entries of a packed list stay where they were.
const LEFT: usize = 200;
/// A list that is larger than this when it is unpacked was not packed here.
const MAX_UNPACKED: u64 = 256 << 20;
/// Where packed lists are kept in a status.
const PACKED: &str = "/tiphys/packed";

/// A list that can be packed: its name among the packed ones, its place in a status, and which of its entries
/// nobody has to look at.
struct List {
    name: &'static str,
    at: &'static str,
    is_settled: fn(&Value) -> bool,
}

const LISTS: [List; 2] = [
    List { name: "resources", at: "/resources", is_settled: is_in_sync },
    List { name: "results", at: "/operationState/syncResult/resources", is_settled: is_done },
];

fn is_in_sync(resource: &Value) -> bool {
    let text = |at: &str| resource.pointer(at).and_then(Value::as_str);
    text("/status") == Some("Synced") && matches!(text("/health/status"), None | Some("Healthy"))
}

fn is_done(result: &Value) -> bool {
    let text = |field: &str| result.get(field).and_then(Value::as_str);
    matches!(text("status"), Some("Synced" | "Pruned"))
        && matches!(text("hookPhase"), None | Some("Succeeded"))
}

/// An Application whose lists are packed if its status is too large otherwise. Of equal statuses the result
/// is equal.
pub fn pack(app: &Value) -> Cow<'_, Value> {
    let is_large = app.get("status").is_some_and(|status| status.to_string().len() > MAX_PLAIN);
    if !is_large {
        return Cow::Borrowed(app);
    }
    let mut app = app.clone();
    for list in LISTS {
        let found = app.get_mut("status").and_then(|status| status.pointer_mut(list.at));
        let Some(Value::Array(entries)) = found.map(Value::take) else { continue };
        let packed = json!({"count": entries.len(), "gzip": compressed(&entries)});
        let left: Vec<Value> =
            entries.into_iter().filter(|entry| !(list.is_settled)(entry)).take(LEFT).collect();
        if let Some(place) = app["status"].pointer_mut(list.at) {
            *place = left.into();
        }
        app["status"]["tiphys"]["packed"][list.name] = packed;
    }
    Cow::Owned(app)
}

/// An Application with its lists as they were before they were packed.
pub fn unpack(app: Cow<'_, Value>) -> Cow<'_, Value> {
    let is_packed = app.get("status").is_some_and(|status| status.pointer(PACKED).is_some());
    if !is_packed {
        return app;
    }
    let mut app = app.into_owned();
    let status = &mut app["status"];
    let ours = status.get_mut("tiphys").and_then(Value::as_object_mut);
    let packed = ours.and_then(|ours| ours.remove("packed")).unwrap_or_default();
    for list in LISTS {
        let text = packed.get(list.name).and_then(|packed| packed.get("gzip")).and_then(Value::as_str);
        // A list that somebody took away, or another one, is not to come back.
        if let (Some(entries), Some(place)) = (text.and_then(decompressed), status.pointer_mut(list.at)) {
            *place = entries.into();
        }
    }
    if status.get("tiphys").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty)
        && let Some(status) = status.as_object_mut()
    {
        status.remove("tiphys");
    }
    Cow::Owned(app)
}

fn compressed(entries: &[Value]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // In one piece: each write to the encoder costs more than what it compresses.
    let text = serde_json::to_vec(entries).map_err(std::io::Error::from);
    let bytes = text.and_then(|text| encoder.write_all(&text)).and_then(|()| encoder.finish());
    STANDARD.encode(bytes.expect("memory takes what is written to it"))
}

fn decompressed(text: &str) -> Option<Vec<Value>> {
    let bytes = STANDARD.decode(text).ok()?;
    let mut text = String::new();
    GzDecoder::new(bytes.as_slice()).take(MAX_UNPACKED).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(objects: usize) -> Value {
        let resource = |n: usize| json!({"kind": "ConfigMap", "name": format!("name-{n}-{}", "x".repeat(100)), "status": if n == 7 { "OutOfSync" } else { "Synced" }});
        let result = |n: usize| json!({"kind": "ConfigMap", "name": format!("name-{n}"), "status": if n == 9 { "SyncFailed" } else { "Synced" }, "message": "created"});
        json!({"status": {"sync": {"status": "OutOfSync"}, "resources": (0..objects).map(resource).collect::<Vec<_>>(),
            "operationState": {"phase": "Running", "syncResult": {"resources": (0..objects).map(result).collect::<Vec<_>>()}}}})
    }

    #[test]
    fn long_lists_are_packed_and_come_back() {
        let whole = app(10_000);
        let packed = pack(&whole);
        assert!(packed.to_string().len() < whole.to_string().len() / 5, "{}", packed.to_string().len());
        let names = |at: &str| -> Vec<&str> {
            let list = packed.pointer(at).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|entry| entry["name"].as_str()).map(|name| &name[..6]).collect()
        };
        assert_eq!(names("/status/resources"), ["name-7"]);
        assert_eq!(names("/status/operationState/syncResult/resources"), ["name-9"]);
        assert_eq!(packed.pointer("/status/tiphys/packed/resources/count"), Some(&json!(10_000)));
        assert_eq!(*unpack(Cow::Borrowed(&packed)), whole);
        assert_eq!(*pack(&unpack(Cow::Borrowed(&packed))), *packed);
    }

    #[test]
    fn what_is_short_stays_and_what_is_taken_away_does_not_come_back() {
        let short = app(10);
        assert_eq!(*pack(&short), short);
        let mut gone = pack(&app(10_000)).into_owned();
        gone["status"].as_object_mut().unwrap().remove("operationState");
        let back = unpack(Cow::Owned(gone)).into_owned();
        assert_eq!(back.pointer("/status/operationState"), None);
        assert_eq!(back["status"]["resources"].as_array().map(Vec::len), Some(10_000));
        let mut broken = pack(&app(10_000)).into_owned();
        broken["status"]["tiphys"]["packed"]["resources"]["gzip"] = "no base64".into();
        assert_eq!(unpack(Cow::Owned(broken))["status"]["resources"].as_array().map(Vec::len), Some(1));
    }
}
