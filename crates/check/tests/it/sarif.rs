//! What SARIF 2.1.0 allows, as far as it is written here: every object has only fields that its kind has,
//! those that it must have, and values of their types. Held against the findings of all fragments. (The
//! official schema, which is not part of this repository, takes the same output.)

use std::{fs, sync::Arc};

use serde_json::Value;
use tiphys_check::{
    Config, Context, Options, Severity, judge,
    output::{self, ReportContents, View},
    rules,
};
use tiphys_vfs::DiskTree;

use crate::common;

/// A kind of object: its fields with what they hold, and whether they must be there.
type Kind = (&'static str, &'static [(&'static str, &'static str, bool)]);

const KINDS: &[Kind] = &[
    ("log", &[("$schema", "text", false), ("version", "text", true), ("runs", "[run]", true)]),
    ("run", &[("tool", "tool", true), ("columnKind", "columnKind", false), ("results", "[result]", false)]),
    ("tool", &[("driver", "component", true)]),
    ("component", &[("name", "text", true), ("semanticVersion", "text", false), ("rules", "[rule]", false)]),
    (
        "rule",
        &[
            ("id", "text", true),
            ("shortDescription", "message", false),
            ("help", "message", false),
            ("defaultConfiguration", "configuration", false),
            ("properties", "bag", false),
        ],
    ),
    ("configuration", &[("level", "level", false)]),
    ("message", &[("text", "text", true), ("markdown", "text", false)]),
    (
        "result",
        &[
            ("ruleId", "text", false),
            ("ruleIndex", "count", false),
            ("level", "level", false),
            ("message", "message", true),
            ("locations", "[location]", false),
            ("relatedLocations", "[location]", false),
            ("partialFingerprints", "bag", false),
            ("fixes", "[fix]", false),
            ("properties", "bag", false),
        ],
    ),
    (
        "location",
        &[("id", "count", false), ("physicalLocation", "place", false), ("message", "message", false)],
    ),
    ("place", &[("artifactLocation", "artifact", true), ("region", "region", false)]),
    ("artifact", &[("uri", "uri", true)]),
    (
        "region",
        &[
            ("startLine", "place number", false),
            ("startColumn", "place number", false),
            ("endLine", "place number", false),
            ("endColumn", "place number", false),
        ],
    ),
    ("fix", &[("description", "message", false), ("artifactChanges", "[change]", true)]),
    ("change", &[("artifactLocation", "artifact", true), ("replacements", "[replacement]", true)]),
    ("replacement", &[("deletedRegion", "region", true), ("insertedContent", "content", false)]),
    ("content", &[("text", "text", false)]),
];

fn is_of(value: &Value, what: &str, at: &str, faults: &mut Vec<String>) {
    if let Some(items) = what.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        match value.as_array() {
            Some(all) => {
                all.iter().enumerate().for_each(|(n, it)| is_of(it, items, &format!("{at}[{n}]"), faults))
            }
            None => faults.push(format!("{at}: no list")),
        }
        return;
    }
    if let Some((_, fields)) = KINDS.iter().find(|(name, _)| *name == what) {
        let Some(map) = value.as_object() else { return faults.push(format!("{at}: no object")) };
        for (key, below) in map {
            match fields.iter().find(|(name, ..)| name == key) {
                Some((_, what, _)) => is_of(below, what, &format!("{at}.{key}"), faults),
                None => faults.push(format!("{at}: {what} has no field {key}")),
            }
        }
        let missing = fields.iter().filter(|(name, _, must)| *must && !map.contains_key(*name));
        faults.extend(missing.map(|(name, ..)| format!("{at}: {name} is missing")));
        return;
    }
    let text = value.as_str().unwrap_or_default();
    let is_right = match what {
        "text" => value.is_string(),
        "level" => ["none", "note", "warning", "error"].contains(&text),
        "columnKind" => ["utf16CodeUnits", "unicodeCodePoints"].contains(&text),
        "count" => value.as_u64().is_some(),
        "place number" => value.as_u64().is_some_and(|number| number >= 1),
        "bag" => value.is_object(),
        "uri" => !text.is_empty() && text.is_ascii() && !text.contains([' ', '\\', '"', '<', '>', '{', '}']),
        other => panic!("the test knows no {other}"),
    };
    if !is_right {
        faults.push(format!("{at}: no {what}: {value}"));
    }
}

#[test]
fn every_log_is_as_the_standard_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/incidents");
    let (mut faults, mut results, mut fixes) = (Vec::new(), 0, 0);
    for entry in fs::read_dir(folder).expect("the fragments are there") {
        let bad = entry.expect("readable").path().join("bad");
        let survey = common::survey(Arc::new(DiskTree::open(&bad).expect("the fragment is there")));
        let config = Config::default();
        let options = Options::new(rules::ALL.to_vec(), &config, None);
        let checked = judge(&Context::new(&survey, None), &options);
        let sources = survey.files.source_map();
        let log = output::sarif(&ReportContents {
            checked: &checked,
            survey: &survey,
            sources: &sources,
            threshold: Severity::Info,
            view: View::default(),
        });
        is_of(&log, "log", &bad.display().to_string(), &mut faults);
        for result in log["runs"][0]["results"].as_array().expect("a list") {
            results += 1;
            fixes += usize::from(result.get("fixes").is_some());
            let region = &result["locations"][0]["physicalLocation"]["region"];
            let ends = |line: &str, column: &str| (region[line].as_u64(), region[column].as_u64());
            if ends("endLine", "endColumn") < ends("startLine", "startColumn") {
                faults.push(format!("{}: a region ends before it starts: {region}", bad.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(results > 50 && fixes > 0, "{results} results, {fixes} fixes");
}
