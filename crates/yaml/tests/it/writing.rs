//! What is written: quoting, folding, layout, comments.

use serde_json::{Value, json};
use tiphys_yaml::{
    EmitOptions, Node, Profile, Style, emit, emit_documents, from_value, parse_documents, to_yaml,
    try_to_yaml,
};

#[test]
fn strings_are_quoted_where_plain_would_change_them() {
    let table = [
        ("plain", "plain"),
        ("yes", "\"yes\""),
        ("y", "\"y\""),
        ("", "\"\""),
        ("null", "\"null\""),
        ("1e3", "\"1e3\""),
        ("0777", "\"0777\""),
        ("2001-01-01", "\"2001-01-01\""),
        ("1:20", "\"1:20\""),
        ("1.2.3", "1.2.3"),
        ("<<", "<<"),
        ("- a", "'- a'"),
        ("-a", "-a"),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("#b", "'#b'"),
        ("{{ x }}", "'{{ x }}'"),
        (" lead", "' lead'"),
        ("it's", "it's"),
        ("'q'", "'''q'''"),
        ("a\tb", "\"a\\tb\""),
        ("\u{1F600}", "\"\\U0001F600\""),
        ("é", "é"),
        ("---", "'---'"),
        ("%a", "'%a'"),
        ("\u{7}\\\"", "\"\\a\\\\\\\"\""),
    ];
    for (text, written) in table {
        assert_eq!(to_yaml(&json!({ "k": text })), format!("k: {written}\n"), "{text:?}");
    }
}

#[test]
fn lines_become_block_scalars() {
    assert_eq!(to_yaml(&json!({"k": "a\nb\n"})), "k: |\n  a\n  b\n");
    assert_eq!(to_yaml(&json!({"k": "a\nb"})), "k: |-\n  a\n  b\n");
    assert_eq!(to_yaml(&json!({"k": "a\n\n"})), "k: |+\n  a\n\n");
    assert_eq!(to_yaml(&json!({"k": " a\nb"})), "k: |2-\n   a\n  b\n");
    assert_eq!(to_yaml(&json!({"k": "a \nb"})), "k: \"a \\nb\"\n");
    assert_eq!(to_yaml(&json!({"k": "a\tb\nc"})), "k: \"a\\tb\\nc\"\n");
    assert_eq!(to_yaml(&json!({"a\nb": 1})), "? |-\n  a\n  b\n: 1\n");
}

#[test]
fn long_text_folds_behind_column_80() {
    let text = "word ".repeat(20).trim().to_owned();
    let written = to_yaml(&json!({ "k": text }));
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].len(), 82);
    assert!(lines[1].starts_with("  word"));
    assert_eq!(to_yaml(&json!({"k": "x".repeat(200)})), format!("k: {}\n", "x".repeat(200)));
    let key = "x".repeat(129);
    let mut map = serde_json::Map::new();
    map.insert(key.clone(), json!(1));
    assert_eq!(to_yaml(&Value::Object(map)), format!("? {key}\n: 1\n"));
}

#[test]
fn numbers_look_as_after_json() {
    let value = json!({"a": 1.0, "b": 1e6, "c": 1e21, "d": 0.00001, "e": 1234567.5, "f": -3, "g": u64::MAX});
    assert_eq!(
        to_yaml(&value),
        "a: 1\nb: 1000000\nc: 1e+21\nd: 1e-05\ne: 1.2345675e+06\nf: -3\ng: 18446744073709551615\n"
    );
}

#[test]
fn keys_are_sorted_by_number_and_letters_last() {
    let value = json!({"b": 1, "a10": 1, "a2": 1, "a-1": 1, "B": 1, "_x": 1, "1": 1, "a": 1});
    let written = to_yaml(&value);
    let keys: Vec<&str> = written.lines().map(|line| line.trim_end_matches(": 1")).collect();
    assert_eq!(keys, ["_x", "\"1\"", "B", "a", "a-1", "a2", "a10", "b"]);
}

#[test]
fn collections_are_laid_out_as_each_tool_does() {
    let value = json!({"m": {}, "s": [], "l": [{"a": 1, "b": [2, [3]]}, null]});
    let compact = "l:\n- a: 1\n  b:\n  - 2\n  - - 3\n- null\nm: {}\ns: []\n";
    assert_eq!(to_yaml(&value), compact);
    let node = from_value(&value);
    assert_eq!(emit(&node, EmitOptions::KYAML), compact);
    let wide = "l:\n  - a: 1\n    b:\n      - 2\n      - - 3\n  - null\nm: {}\ns: []\n";
    assert_eq!(emit(&node, EmitOptions::KYAML_WIDE), wide);
    let four = "l:\n    - a: 1\n      b:\n        - 2\n        - - 3\n    - null\nm: {}\ns: []\n";
    assert_eq!(emit(&node, EmitOptions::GO3), four);
}

#[test]
fn texts_are_written_by_way_of_json() {
    assert_eq!(try_to_yaml(&json!({"k": "a\u{1}b"})).as_deref(), Ok("k: \"a\\x01b\"\n"));
    assert_eq!(try_to_yaml(&json!(["\u{2028}", "a \u{85} b"])).as_deref(), Ok("- '\u{2028}'\n- a b\n"));
    assert!(try_to_yaml(&json!({"a\u{85}b": 1})).is_err(), "NEL is a line break in a key");
    let error = try_to_yaml(&json!({"k": "a\u{7f}b"})).expect_err("DEL is raw in JSON");
    assert_eq!(error.to_string(), "yaml: control characters are not allowed");
}

#[test]
fn made_nodes_keep_their_meaning() {
    let mut quoted = Node::string("x");
    quoted.style = Style::SingleQuoted;
    let mut tagged = Node::scalar("1");
    tagged.tag = "!!str".into();
    tagged.explicit_tag = true;
    let list =
        Node::sequence(vec![Node::string("1"), Node::scalar("1"), quoted, tagged, Node::string("a\nb")]);
    assert_eq!(emit(&list, EmitOptions::KYAML), "- \"1\"\n- 1\n- 'x'\n- !!str 1\n- |-\n  a\n  b\n");
}

/// Each file is as go-yaml v3 itself writes it, so that it must come back unchanged.
#[test]
fn golden_files_come_back_byte_for_byte() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("can be read").path();
        let text = std::fs::read_to_string(&path).expect("can be read");
        let documents = parse_documents(&text, Profile::Go3).expect("is YAML");
        assert_eq!(emit_documents(&documents, EmitOptions::KYAML), text, "{}", path.display());
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn merge_keys_are_written_with_their_tag() {
    let documents = parse_documents("a: &a {b: 1}\nc:\n  <<: *a\n", Profile::Go3).expect("is YAML");
    assert_eq!(emit_documents(&documents, EmitOptions::KYAML), "a: &a {b: 1}\nc:\n  !!merge <<: *a\n");
}
