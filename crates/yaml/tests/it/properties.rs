//! What holds for every input.

use proptest::prelude::*;
use serde_json::Value;
use tiphys_yaml::{
    EmitOptions, Events, Profile, emit, emit_documents, from_value, from_yaml, from_yaml_strict,
    parse_documents, split_helm_manifests, split_helm3_manifests, split_kubernetes_documents, to_value,
    to_yaml,
};

/// Text rich in what has meaning in YAML.
fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "- ",
            "? ",
            ": ",
            ":",
            "a",
            "b: c",
            "\n",
            "\n\n",
            "  ",
            " ",
            "\t",
            "#",
            "# c\n",
            "&a ",
            "*a",
            "!!str ",
            "!t ",
            "{",
            "}",
            "[",
            "]",
            ",",
            "|\n",
            ">-\n",
            "|2\n",
            "'",
            "\"",
            "\\",
            "\\x4",
            "---\n",
            "...\n",
            "<<: ",
            "%YAML 1.1\n",
            "%TAG ! x\n",
            "\r\n",
            "\u{85}",
            "\u{2028}",
            "\u{FEFF}",
            "é",
            "\u{1F600}",
            "1",
            "0x1",
            ".5",
            "2001-01-01",
            "yes",
            "~",
            "@",
            "`",
            "\u{0}",
            "\u{7f}",
            "=",
            "- - ",
            "k:\n",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    // NEL folds in go-yaml's way through JSON; forbidden characters cannot come back.
    "[ -~\\n\\t\u{A0}-\u{17F}\u{2028}\u{1F600}]{0,40}"
}

/// Not the merge key, which go-yaml writes without quotes.
fn key() -> impl Strategy<Value = String> {
    text().prop_map(|key| if key == "<<" { "<".to_owned() } else { key })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e15..1e15).prop_map(Value::from),
        text().prop_map(Value::from),
        noise().prop_map(|text| Value::from(text.replace(|c: char| !(' '..'\u{7f}').contains(&c), ""))),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Integral floats are integers behind JSON.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => Value::from(float as i64),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), normalized(v))).collect()),
        _ => value.clone(),
    }
}

fn without_tabs(value: &Value) -> Value {
    let clean = |text: &str| text.replace('\t', "_");
    match value {
        Value::String(text) => Value::from(clean(text)),
        Value::Array(items) => items.iter().map(without_tabs).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (clean(k), without_tabs(v))).collect()),
        _ => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(text in noise()) {
        for profile in [Profile::Go2, Profile::Go3] {
            Events::new(&text, profile).for_each(drop);
            if let Ok(documents) = parse_documents(&text, profile) {
                emit_documents(&documents, EmitOptions::KYAML);
                for mut document in documents {
                    to_value(&document.root, profile).ok();
                    document.root.expand_aliases().ok();
                }
            }
        }
        from_yaml(&text).ok();
        from_yaml_strict(&text).ok();
        split_kubernetes_documents(&text).ok();
        split_helm_manifests(&text);
        split_helm3_manifests(&text);
    }

    #[test]
    fn values_come_back(value in value()) {
        let written = to_yaml(&value);
        let back = from_yaml(&written);
        prop_assert_eq!(back.as_ref(), Ok(&normalized(&value)), "{}", written);
    }

    #[test]
    fn nodes_of_values_come_back(value in value()) {
        // go-yaml v3 writes block scalars that begin with a tab, which it cannot read.
        let value = without_tabs(&value);
        for options in [EmitOptions::KYAML, EmitOptions::KYAML_WIDE] {
            let written = emit(&from_value(&value), options);
            let documents = parse_documents(&written, Profile::Go3);
            let back = documents.ok().and_then(|all| to_value(&all.first()?.root, Profile::Go3).ok());
            prop_assert_eq!(back.as_ref(), Some(&normalized(&value)), "{}", written);
        }
    }

    #[test]
    fn events_are_balanced_and_inside_the_text(text in noise()) {
        let mut depth = 0i32;
        for event in Events::new(&text, Profile::Go2) {
            let Ok(event) = event else { return Ok(()) };
            prop_assert!(event.span.start.offset <= event.span.end.offset);
            prop_assert!(event.span.end.offset as usize <= text.len());
            prop_assert!(text.is_char_boundary(event.span.start.offset as usize));
            depth += match event.kind {
                tiphys_yaml::EventKind::MappingStart(_) | tiphys_yaml::EventKind::SequenceStart(_) => 1,
                tiphys_yaml::EventKind::MappingEnd | tiphys_yaml::EventKind::SequenceEnd => -1,
                _ => 0,
            };
            prop_assert!(depth >= 0);
        }
        prop_assert_eq!(depth, 0);
    }
}
