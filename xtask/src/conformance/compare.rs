//! Comparing two answers.

use serde_json::Value;

use super::api_client::Answer;

/// Fields that differ between two servers by their nature.
const OWN: [&str; 13] = [
    "serverAddress",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "time",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "continue",
    "deletionTimestamp",
    "storageVersionHash",
    "lastUpdateTime",
];

/// In what two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The code, or the reason.
    Code {
        /// Of the real server.
        real: String,
        /// Of ours.
        ours: String,
    },
    /// The message, or its details.
    Message {
        /// Of the real server.
        real: String,
        /// Of ours.
        ours: String,
    },
    /// The object.
    Object {
        /// The first path that differs, without indexes.
        path: String,
        /// What stands there at the real server, and at ours.
        values: String,
    },
}

/// What to count: whether the answer was an error, and the difference if there is one.
pub(super) fn compare(real: &Answer, ours: &Answer) -> (bool, Option<Difference>) {
    let is_error = real.code >= 400;
    let reason = |answer: &Answer| {
        let reason = answer.body["reason"].as_str().filter(|_| answer.code >= 400).unwrap_or_default();
        format!("{} {reason}", answer.code).trim_end().to_owned()
    };
    if reason(real) != reason(ours) {
        let why = |answer: &Answer| match answer.body["message"].as_str() {
            Some(message) => format!("{}: {}", reason(answer), shortened(message)),
            None => reason(answer),
        };
        return (is_error, Some(Difference::Code { real: why(real), ours: why(ours) }));
    }
    if is_error {
        let text = |answer: &Answer| match answer.body["message"].as_str() {
            Some(message) => without_own(message),
            None => answer.body.to_string(),
        };
        // Conflicts are named in no order.
        let details = |answer: &Answer| {
            let mut details = answer.body["details"].clone();
            if let Some(causes) = details["causes"].as_array_mut() {
                causes.iter_mut().for_each(strip);
                causes.sort_by_key(Value::to_string);
            }
            without_own(&details.to_string())
        };
        let (mut expected, mut found) = (text(real), text(ours));
        if expected == found {
            (expected, found) = (details(real), details(ours));
        }
        let (real, ours) = (expected, found);
        let difference =
            (real != ours).then(|| Difference::Message { real: shortened(&real), ours: shortened(&ours) });
        return (true, difference);
    }
    let (mut expected, mut found) = (real.body.clone(), ours.body.clone());
    strip(&mut expected);
    strip(&mut found);
    let warnings = |answer: &Answer| Value::from(answer.warnings.clone());
    let differs = first_difference(&expected, &found, "")
        .or_else(|| first_difference(&warnings(real), &warnings(ours), "Warning header"));
    (false, differs.map(|(path, values)| Difference::Object { path, values }))
}

/// A message without uids and times.
fn without_own(message: &str) -> String {
    let is_uid = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
    let is_time = |word: &str| word.len() == 20 && word.ends_with('Z') && word.contains('T');
    const ENDS: [char; 8] = [' ', '(', ')', ',', '"', '\n', '=', '\\'];
    let words = message.split_inclusive(ENDS);
    let kept = words.map(|word| {
        let bare = word.trim_end_matches(ENDS).trim_end_matches(':');
        if is_uid(bare) || is_time(bare) { word.replace(bare, "…") } else { word.to_owned() }
    });
    let kept: String = kept.collect();
    [
        ", current: ",
        "match the ResourceVersion in record (",
        "\"resourceVersion\\\":\\\"",
        "\\\"resourceVersion\\\\\\\":\\\\\\\"",
    ]
    .into_iter()
    .fold(kept, |text, start| without_number(&text, start))
}

/// A text without the digits that follow some words.
fn without_number(text: &str, start: &str) -> String {
    let mut parts = text.split(start);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(start);
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !OWN.contains(&key.as_str()));
            // The end of a generated name is made up.
            if let Some(prefix) = map.get("generateName").and_then(Value::as_str).map(str::to_owned)
                && map.get("name").and_then(Value::as_str).is_some_and(|name| name.starts_with(&prefix))
            {
                map.insert("name".into(), prefix.into());
            }
            if let Some(cells) = map.get_mut("cells").and_then(Value::as_array_mut) {
                cells.iter_mut().for_each(strip_cell);
            }
            // The words that describe a column are those of another project and are not taken over.
            if map.contains_key("priority") && map.contains_key("format") {
                map.remove("description");
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::String(text) => *text = without_own(text),
        _ => {}
    }
}

/// Ages and allocated addresses in the row of a table.
fn strip_cell(cell: &mut Value) {
    let Some(text) = cell.as_str() else { return };
    let is_age = text.len() > 1
        && text.ends_with(['s', 'm', 'h', 'd'])
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b's' | b'm' | b'h' | b'd'));
    if is_age || text.starts_with("10.96.") {
        *cell = "…".into();
    }
}

/// The first path at which two values differ, and both values.
fn first_difference(real: &Value, ours: &Value, path: &str) -> Option<(String, String)> {
    match (real, ours) {
        (Value::Object(x), Value::Object(y)) => {
            let mut keys: Vec<_> = x.keys().chain(y.keys().filter(|key| !x.contains_key(*key))).collect();
            keys.sort();
            let at = |key: &str| first_difference(&real[key], &ours[key], &format!("{path}.{key}"));
            keys.into_iter().find_map(|key| at(key))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            x.iter().zip(y).find_map(|(x, y)| first_difference(x, y, &format!("{path}[]")))
        }
        _ if real == ours => None,
        _ => Some((
            path.to_owned(),
            format!("real {}, ours {}", shortened(&real.to_string()), shortened(&ours.to_string())),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(code: u16, body: Value) -> Answer {
        Answer { code, body, warnings: Vec::new() }
    }

    #[test]
    fn what_each_server_makes_up_itself_is_no_difference() {
        let object = |uid: &str| answer(200, json!({"metadata": {"uid": uid, "name": "a"}}));
        assert_eq!(compare(&object("1"), &object("2")), (false, None));
        let error = |uid: &str| {
            answer(409, json!({"reason": "Conflict", "message": format!("the UID ({uid}) differs")}))
        };
        let uid = |digit: char| {
            format!(
                "{0}-{1}-{1}-{1}-{2}",
                digit.to_string().repeat(8),
                digit.to_string().repeat(4),
                digit.to_string().repeat(12)
            )
        };
        assert_eq!(compare(&error(&uid('1')), &error(&uid('2'))), (true, None));
        let other = answer(404, json!({"reason": "NotFound"}));
        assert!(matches!(compare(&error("x"), &other).1, Some(Difference::Code { .. })));
        let named = |name: &str| answer(200, json!({"items": [{"name": name}]}));
        assert!(
            matches!(compare(&named("a"), &named("b")).1, Some(Difference::Object { path, .. }) if path == ".items[].name")
        );
    }
}
