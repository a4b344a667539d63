//! Tests of checking values.

use tiphys_value::json;

use super::*;
use crate::schema::compile::Compiler;

const ADDRESS: &str = "file:///values.schema.json";

fn compile(schema: Value) -> Result<Vec<Schema>, String> {
    let mut compiler = Compiler::new(ADDRESS, schema, None);
    compiler.compile(ADDRESS)?;
    Ok(compiler.finish().0)
}

fn faults(schema: Value, value: Value) -> String {
    let schemas = compile(schema).unwrap();
    Checker::new(&schemas).check(0, &value).err().map(|fault| fault.print()).unwrap_or_default()
}

#[test]
fn several_faults_of_a_keyword_that_the_draft_defines_once_stand_together() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "oneOf": [{ "minLength": -1 }, { "title": 1 }],
    });
    let error = compile(schema).unwrap_err();
    let expected = "- at '/oneOf': validation failed\n  \
                    - at '/oneOf/0/minLength': 'allOf' failed\n    \
                    - at '/oneOf/0/minLength': minimum: got -1, want 0\n  \
                    - at '/oneOf/1/title': got number, want string";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn prints_places_and_reasons_as_helm() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "required": ["image"],
        "properties": {
            "age": { "type": "integer", "minimum": 0 },
            "port": { "type": ["string", "integer"] },
            "mode": { "enum": ["a", "b"] },
        },
        "additionalProperties": false,
    });
    let text = faults(schema, json!({ "age": -5, "port": true, "mode": "c", "x": 1 }));
    assert_eq!(
        text,
        "- at '': missing property 'image'\n\
         - at '/age': minimum: got -5, want 0\n\
         - at '/mode': value must be one of 'a', 'b'\n\
         - at '/port': got boolean, want integer or string\n\
         - at '': additional properties 'x' not allowed"
    );
}

#[test]
fn combined_schemas_nest_their_causes() {
    let schema = json!({ "properties": { "a": { "oneOf": [{ "type": "string" }, { "type": "null" }] } } });
    assert_eq!(
        faults(schema, json!({ "a": 1 })),
        "- at '/a': 'oneOf' failed, none matched\n  - at '/a': got number, want string\n  - at '/a': got number, want null"
    );
    let schema = json!({ "properties": { "data": { "type": "array", "contains": { "type": "string" } } } });
    assert_eq!(
        faults(schema, json!({ "data": [12] })),
        "- at '/data': no items match contains schema\n  - at '/data/0': got number, want string"
    );
}

#[test]
fn references_conditions_and_unevaluated() {
    let schema = json!({
        "$defs": { "p": { "type": "integer", "maximum": 65535 } },
        "properties": { "port": { "$ref": "#/$defs/p" } },
        "if": { "required": ["tls"] },
        "then": { "required": ["cert"] },
        "unevaluatedProperties": false,
    });
    assert_eq!(
        faults(schema.clone(), json!({ "port": 70000 })),
        "- at '/port': maximum: got 70,000, want 65,535"
    );
    assert_eq!(
        faults(schema, json!({ "tls": 1 })),
        "- at '': missing property 'cert'\n- at '/tls': false schema"
    );
}

#[test]
fn reference_cycles_end() {
    let schema = json!({ "$ref": "#" });
    assert_eq!(
        faults(schema, json!({})),
        "- at '': both /$ref and  resolve to \"file:///values.schema.json#\" causing reference cycle"
    );
}

#[test]
fn schemas_are_held_against_their_draft() {
    let schema = json!({ "properties": { "a": { "$id": "#/properties/a", "minLength": -1 } } });
    assert_eq!(
        compile(schema).unwrap_err(),
        "\"file:///values.schema.json#\" is not valid against metaschema: \
         jsonschema validation failed with 'https://json-schema.org/draft/2020-12/schema#'\n\
         - at '': 'allOf' failed\n  \
           - at '/properties/a': 'allOf' failed\n    \
             - at '/properties/a/$id': '#/properties/a' does not match pattern '^[^#]*#?$'\n    \
             - at '/properties/a/minLength': minimum: got -1, want 0"
    );
    let old = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "type": "objekt" });
    assert!(compile(old).unwrap_err().contains("- at '/type': 'anyOf' failed\n"));
}

#[test]
fn references_to_other_documents_need_a_loader() {
    let schema = json!({ "$ref": "https://example.com/a.json#/b" });
    assert_eq!(
        compile(schema).unwrap_err(),
        "failing loading \"https://example.com/a.json\": HTTP request failed for https://example.com/a.json: \
         schemas are not fetched here"
    );
    let schema = json!({ "$ref": "other.json" });
    assert_eq!(
        compile(schema).unwrap_err(),
        "failing loading \"file:///other.json\": open /other.json: no such file or directory"
    );
    assert_eq!(faults(json!({ "$ref": "urn:some:thing" }), json!({})), "");
    let own = json!({ "$id": "https://example.com/a/b.json", "$defs": { "c": { "$id": "c.json", "type": "null" } }, "$ref": "c.json" });
    assert_eq!(faults(own, json!({})), "- at '': got object, want null");
    let draft = json!({ "$ref": "http://json-schema.org/draft-07/schema#" });
    assert_eq!(faults(draft, json!({ "title": 1 })), "- at '/title': got number, want string");
}

#[test]
fn references_that_multiply_end_at_a_limit() {
    let next = |at: usize| json!({"anyOf": [{"$ref": format!("#/definitions/d{}", at + 1)}, {"$ref": format!("#/definitions/d{}", at + 1)}]});
    let mut definitions: Map<String, Value> = (0..30).map(|at| (format!("d{at}"), next(at))).collect();
    definitions.insert("d30".to_owned(), json!({"type": "string"}));
    let schema = json!({"definitions": definitions, "properties": {"a": {"$ref": "#/definitions/d0"}}});
    let told = faults(schema, json!({"a": 1}));
    assert!(told.contains("a limit of Tiphys: its references or combinations multiply"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn many_items_that_must_differ_are_compared_once() {
    let items: Vec<Value> = (0..100_000).map(|at| json!({"k": at})).collect();
    let schema = json!({"properties": {"a": {"uniqueItems": true}}});
    assert_eq!(faults(schema.clone(), json!({"a": items})), "");
    let mut items = items;
    items.push(json!({"k": 7}));
    assert_eq!(faults(schema, json!({"a": items})), "- at '/a': items at 7 and 100,000 are equal");
}

#[test]
fn a_schema_in_additional_properties_still_counts_as_one() {
    let schema = json!({"additionalProperties": {"type": "string"}, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}});
    assert_eq!(faults(schema.clone(), json!({"x": 1})), "- at '/x': got number, want string");
    assert_eq!(faults(schema.clone(), json!({"a": "1"})), "- at '': properties 'b' required, if 'a' exists");
    assert_eq!(faults(schema, json!({"c": "1"})), "- at '': missing property 'd'");
}
