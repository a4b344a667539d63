use super::*;
use serde_json::json;

fn schema() -> StructuralSchema {
    StructuralSchema::new(&json!({"type": "object", "properties": {"spec": {"type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "size": {"type": "integer", "minimum": 1, "default": 3},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "port": {"x-kubernetes-int-or-string": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "images": {"type": "array", "items": {"type": "string"}},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
    }}}}))
}

#[test]
fn faults_read_as_the_api_server_writes_them() {
    for (spec, expected) in [
        (json!({}), "spec.name: Required value"),
        (
            json!({"name": "a", "images": [{}]}),
            "spec.images[0]: Invalid value: \"object\": spec.images[0] in body must be of type string: \"object\"",
        ),
        (json!({"name": "A"}), "spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]+$'"),
        (json!({"name": "abcdef"}), "spec.name: Too long: may not be more than 5 bytes"),
        (
            json!({"name": "a", "size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({"name": "a", "mode": "c"}),
            "spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ),
        (
            json!({"name": "a", "list": [{"k": "x"}, {"k": "x"}]}),
            "spec.list[1]: Duplicate value: {\"k\":\"x\"}",
        ),
    ] {
        assert_eq!(schema().validate(&json!({"spec": spec}), None).message(), expected);
    }
    let good = json!({"spec": {"name": "a", "port": "http", "free": {"x": [1]}, "labels": {"a": "b"}}});
    assert!(schema().validate(&good, None).is_empty());
}

#[test]
fn what_was_stored_before_is_forgiven() {
    let old = json!({"spec": {"name": "TOO", "size": 2}});
    let new = json!({"spec": {"name": "TOO", "size": 0}});
    let errors = schema().validate(&new, Some(&old));
    assert_eq!(errors.0.len(), 1, "{errors}");
    assert_eq!(errors.0[0].field, "spec.size");
}

#[test]
fn unknown_fields_go_and_defaults_come() {
    let mut object = json!({"apiVersion": "g/v1", "kind": "X", "metadata": {"name": "x"}, "extra": 1,
        "spec": {"foo": 1, "free": {"y": 1}, "labels": {"a": "b"}, "list": [{"k": "x", "z": 1}]}});
    let mut gone = schema().prune(&mut object);
    gone.sort();
    assert_eq!(gone, ["extra", "spec.foo", "spec.list[0].z"]);
    schema().apply_defaults(&mut object);
    let spec = json!({"free": {"y": 1}, "labels": {"a": "b"}, "list": [{"k": "x"}], "size": 3});
    assert_eq!(object["spec"], spec);
}

#[test]
fn defaults_of_a_long_list_end_before_memory_does() {
    let field = json!({"type": "string", "default": "x".repeat(10_000)});
    let item = json!({"type": "object", "properties": {"a": field}});
    let schema = StructuralSchema::new(&json!({"type": "array", "items": item}));
    let mut list = json!(vec![json!({}); 5_000]);
    schema.apply_defaults(&mut list);
    let filled = list.as_array().unwrap().iter().filter(|item| item["a"].is_string()).count();
    assert_eq!(filled, (16 << 20) / 10_003);
    assert_eq!(list[5_000 - 1], json!({}));
}

#[test]
fn a_definition_is_checked() {
    let crd = json!({"metadata": {"name": "x.g.io"}, "spec": {"group": "g.io", "scope": "Namespaced",
        "names": {"plural": "xs", "singular": "x", "kind": "X", "listKind": "XList"},
        "versions": [{"name": "v1", "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {}}}}}]}});
    let expected = "[metadata.name: Invalid value: \"x.g.io\": must be spec.names.plural+\".\"+spec.group, \
        spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields]";
    assert_eq!(validate_crd(&crd, None).message(), expected);
}

#[test]
fn patterns_are_those_of_go() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "pattern": r#"^[^()<>@,;\\"\/[\]?={} \t\x7f]+$"#}}});
    let structural = StructuralSchema::new(&schema);
    assert!(structural.validate(&json!({"name": "cookie"}), None).is_empty());
    assert_eq!(structural.validate(&json!({"name": "a[b"}), None).0.len(), 1);
    let definition = |pattern: &str| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        json!({"metadata": {"name": "as.x.io"}, "spec": {"group": "x.io", "scope": "Cluster",
            "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
    };
    let faults = |pattern: &str| validate_crd(&definition(pattern), None).0;
    assert!(faults(r"^[a[b]\/$").is_empty());
    assert!(faults("(").first().is_some_and(|fault| fault.detail.ends_with("missing closing ): `(`")));
}
