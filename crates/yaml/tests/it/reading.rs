//! What is read: types, keys, merges, limits, and the words for faults.

use serde_json::{Value, json};
use tiphys_yaml::{
    ErrorKind, Events, Profile, Scalar, from_yaml, from_yaml_strict, parse_documents, parse_first, resolve,
    to_value,
};

fn read(text: &str) -> Value {
    from_yaml(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn fault(text: &str) -> String {
    from_yaml(text).expect_err("the text is wrong").to_string()
}

#[test]
fn plain_scalars_have_yaml_1_1_types() {
    let table = [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("y", json!(true)),
        ("0777", json!(511)),
        ("0o17", json!(15)),
        ("0b11", json!(3)),
        ("0b-1", json!(-1)),
        ("-0x1F", json!(-31)),
        ("1_000", json!(1000)),
        ("08", json!(8)),
        ("1e3", json!(1000)),
        ("1.50", json!(1.5)),
        (".5", json!(0.5)),
        ("18446744073709551615", json!(18446744073709551615_u64)),
        ("18446744073709551616", json!(1.8446744073709552e19)),
        ("2001-01-01", json!("2001-01-01")),
        ("190:20:30", json!("190:20:30")),
        ("~", Value::Null),
        ("", Value::Null),
        ("1e999", json!("1e999")),
        ("0x", json!("0x")),
        ("nO", json!("nO")),
    ];
    for (text, value) in table {
        assert_eq!(read(&format!("k: {text}")), json!({ "k": value }), "{text}");
    }
}

#[test]
fn version_3_types_fewer_words() {
    assert_eq!(resolve("yes", Profile::Go3), Scalar::Str("yes"));
    assert_eq!(resolve("True", Profile::Go3), Scalar::Bool(true));
    assert_eq!(resolve("0o-7", Profile::Go3), Scalar::Int(-7));
    assert_eq!(resolve("0o-7", Profile::Go2), Scalar::Str("0o-7"));
    assert_eq!(resolve("2001-2-3 4:5:6.7", Profile::Go3).tag(), "!!timestamp");
    assert_eq!(resolve("2001-02-30", Profile::Go3).tag(), "!!str");
}

#[test]
fn tags_decide_over_looks() {
    assert_eq!(read("a: !!str 1\nb: !!float 3\nc: !!binary aGk=\nd: !local x\ne: '1'"), {
        json!({"a": "1", "b": 3, "c": "hi", "d": "x", "e": "1"})
    });
    assert_eq!(fault("!!int abc"), "yaml: cannot decode !!str `abc` as a !!int");
    assert_eq!(fault("!!binary '?'"), "yaml: !!binary value contains invalid base64 data");
}

#[test]
fn keys_become_strings() {
    assert_eq!(
        read("1: a\n1.50: b\ntrue: c\nno: d"),
        json!({"1": "a", "1.5": "b", "true": "c", "false": "d"})
    );
    assert!(
        fault("null: a").starts_with("unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\"")
    );
    assert_eq!(fault("? [a]\n: b"), "yaml: invalid map key: []interface {}{\"a\"}");
}

#[test]
fn an_empty_flow_collection_is_no_key_to_version_2() {
    assert_eq!(read("[]: x"), json!([]));
    assert_eq!(fault("a:\n  {}: b\n"), "yaml: line 1: did not find expected key");
    assert!(parse_documents("{}: x\n", Profile::Go3).is_ok());
}

#[test]
fn merged_maps_overwrite_keys_before_them_only() {
    let text =
        "base: &b {x: 1, y: 1}\nlater: {<<: *b, x: 2}\nearlier: {x: 2, <<: *b}\nlist: {<<: [{x: 3}, *b]}";
    let value = read(text);
    assert_eq!(value["later"], json!({"x": 2, "true": 1}));
    assert_eq!(value["earlier"], json!({"x": 1, "true": 1}));
    assert_eq!(value["list"], json!({"x": 3, "true": 1}));
    assert_eq!(
        fault("a: &a 1\nb: {<<: *a}"),
        "yaml: map merge requires map or sequence of maps as the value"
    );
}

#[test]
fn version_3_merges_under_what_is_there() {
    let text = "base: &b {x: 1, z: 1}\nearlier: {x: 2, <<: *b}\n";
    let document = parse_first(text, Profile::Go3).expect("is YAML").expect("has a document");
    let value = to_value(&document.root, Profile::Go3).expect("has a value");
    assert_eq!(value["earlier"], json!({"x": 2, "z": 1}));
}

#[test]
fn duplicate_keys_are_a_fault_only_when_strict() {
    let text = "a: 1\nb:\n  c: 1\n  c: 2\na: 3\n";
    assert_eq!(read(text), json!({"a": 3, "b": {"c": 2}}));
    let error = from_yaml_strict(text).expect_err("keys are repeated");
    assert_eq!(
        error.to_string(),
        "yaml: unmarshal errors:\n  line 4: key \"c\" already set in map\n  line 5: key \"a\" already set in map"
    );
}

#[test]
fn numbers_without_json_form_are_refused() {
    assert_eq!(fault("a: .inf"), "json: unsupported value: +Inf");
    assert_eq!(fault("a: .nan"), "json: unsupported value: NaN");
}

#[test]
fn faults_read_as_go_yamls_and_name_the_exact_place() {
    let table = [
        ("a: b: c", "yaml: mapping values are not allowed in this context", (1, 5)),
        ("x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context", (2, 5)),
        ("a:\n  - b\n c: d", "yaml: line 2: did not find expected key", (3, 2)),
        ("a:\n\t- b", "yaml: line 2: found character that cannot start any token", (2, 1)),
        ("a: [1, 2\nb: 3\n", "yaml: line 1: did not find expected ',' or ']'", (2, 2)),
        ("a: 'b\n", "yaml: line 2: found unexpected end of stream", (2, 1)),
        ("a: *x", "yaml: unknown anchor 'x' referenced", (1, 4)),
        ("a: \"\\q\"", "yaml: found unknown escape character", (1, 5)),
        ("- a\nb: c", "yaml: line 1: did not find expected '-' indicator", (2, 1)),
        ("a: b\x01", "yaml: control characters are not allowed", (1, 5)),
        (
            "{{ .Values.x }}: 1",
            "yaml: invalid map key: map[interface {}]interface {}{\".Values.x\":interface {}(nil)}",
            (1, 2),
        ),
    ];
    for (text, message, (line, column)) in table {
        let error = from_yaml(text).expect_err(text);
        assert_eq!(error.to_string(), message, "{text:?}");
        let at = error.position().unwrap_or_else(|| panic!("{text:?} has a place"));
        assert_eq!((at.line, at.column), (line, column), "{text:?}");
    }
}

#[test]
fn only_the_first_document_counts_for_a_value() {
    assert_eq!(read("a: 1\n---\n}{ not read"), json!({"a": 1}));
    assert!(parse_documents("a: 1\n---\n}{", Profile::Go2).is_err());
    assert_eq!(parse_documents("a\n---\n---\nb\n...\n", Profile::Go3).expect("is YAML").len(), 3);
    assert_eq!(parse_documents("# nothing\n", Profile::Go3).expect("is YAML").len(), 0);
}

#[test]
fn alias_bombs_and_loops_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let error = from_yaml(&bomb).expect_err("expands to a billion items");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.to_string(), "yaml: document contains excessive aliasing");
    let mut document = parse_first(&bomb, Profile::Go3).expect("is YAML").expect("has a document");
    assert_eq!(document.root.expand_aliases().expect_err("too many copies").kind(), ErrorKind::Limit);
    assert_eq!(fault("&a [*a]"), "yaml: anchor 'a' value contains itself");
}

#[test]
fn depth_is_limited_in_every_form() {
    for text in ["[".repeat(5000), "{a: ".repeat(5000), "- ".repeat(5000), "? ".repeat(5000)] {
        let error = from_yaml(&text).expect_err("too deep");
        assert_eq!(error.kind(), ErrorKind::Limit, "{}", &text[..4]);
    }
    let deep: String = (0..400).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(from_yaml(&deep).is_ok());
}

#[test]
fn expanding_aliases_copies_what_was_marked_last() {
    let text = "a: &x {k: 1}\nb: *x\nc: &x 2\nd: [*x]\n";
    let mut document = parse_first(text, Profile::Go3).expect("is YAML").expect("has a document");
    document.root.expand_aliases().expect("all are known");
    let value = to_value(&document.root, Profile::Go3).expect("has a value");
    assert_eq!(value, json!({"a": {"k": 1}, "b": {"k": 1}, "c": 2, "d": [2]}));
}

#[test]
fn spans_cover_the_written_text() {
    let text = "ä: x\nlist:\n- name: \"q\"\n  args: [a, b]\n";
    let document = parse_first(text, Profile::Go3).expect("is YAML").expect("has a document");
    let path = ".list[0].args".parse().expect("is a path");
    let (key, value) = document.root.spans(&path).expect("is there");
    let slice = |span: tiphys_yaml::Span| &text[span.start.offset as usize..span.end.offset as usize];
    assert_eq!(key.map(slice), Some("args"));
    assert_eq!(slice(value), "[a, b]");
    assert_eq!((value.start.line, value.start.column), (4, 9));
    let (_, item) = document.root.spans(&".list[0]".parse().expect("is a path")).expect("is there");
    assert_eq!(slice(item), "name: \"q\"\n  args: [a, b]");
}

#[test]
fn events_end_after_the_first_fault() {
    let events: Vec<_> = Events::new("a: ]", Profile::Go2).collect();
    assert!(events.last().is_some_and(Result::is_err));
    assert_eq!(events.iter().filter(|event| event.is_err()).count(), 1);
}

/// Where each is compared with all others, these are ten thousand million comparisons.
#[test]
fn many_tag_directives_take_linear_time() {
    let directives: String = (0..100_000).map(|at| format!("%TAG !e{at}! tag:x{at},2000:\n")).collect();
    assert_eq!(read(&format!("{directives}---\na: !e99999!str b\n")), json!({"a": "b"}));
    let twice = fault(&format!("{directives}%TAG !e7! tag:y\n---\na: b\n"));
    assert_eq!(twice, "yaml: line 100000: found duplicate %TAG directive");
}
