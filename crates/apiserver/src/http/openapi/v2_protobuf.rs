//! The OpenAPI v2 document in protobuf, as `proto-openapi.spec.v2` numbers its fields: the form in which
//! client-go asks for it.

use tiphys_value::Value;

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn texts(&mut self, field: u64, values: &Value) {
        for text in values.as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn flag(&mut self, field: u64, value: &Value) {
        if *value == true {
            self.key(field, 0);
            self.varint(1);
        }
    }

    fn double(&mut self, field: u64, value: &Value) {
        if let Some(number) = value.as_f64().filter(|number| *number != 0.0) {
            self.key(field, 1);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn integer(&mut self, field: u64, value: &Value) {
        if let Some(number) = value.as_i64().filter(|number| *number != 0) {
            self.key(field, 0);
            self.varint(number as u64);
        }
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }
}

/// The whole document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    out.message(2, &info);
    let mut paths = Message::default();
    for (name, item) in document["paths"].as_object().into_iter().flatten() {
        paths.message(2, &named_message(name, &path_item(item)));
    }
    out.message(8, &paths);
    let mut definitions = Message::default();
    for (name, definition) in document["definitions"].as_object().into_iter().flatten() {
        definitions.message(1, &named_message(name, &schema(definition, 0)));
    }
    out.message(9, &definitions);
    out.0
}

fn named_message(name: &str, value: &Message) -> Message {
    let mut out = Message::default();
    out.bytes(1, name.as_bytes());
    out.message(2, value);
    out
}

fn any(value: &Value) -> Message {
    let mut out = Message::default();
    // JSON is YAML.
    out.bytes(2, format!("{value}\n").as_bytes());
    out
}

fn extensions(out: &mut Message, field: u64, holder: &Value) {
    for (name, value) in holder.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        out.message(field, &named_message(name, &any(value)));
    }
}

fn path_item(item: &Value) -> Message {
    let mut out = Message::default();
    for (method, field) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if let Some(found) = item.get(method) {
            out.message(field, &operation(found));
        }
    }
    out
}

fn operation(operation: &Value) -> Message {
    let mut out = Message::default();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let mut query = Message::default();
        query.text(2, &parameter["in"]);
        query.text(4, &parameter["name"]);
        query.text(6, &parameter["type"]);
        // A query parameter, which is no body parameter, which is a parameter.
        let nested = [3, 2, 1].iter().fold(query, |inner, field| {
            let mut outer = Message::default();
            outer.message(*field, &inner);
            outer
        });
        out.message(8, &nested);
    }
    let mut responses = Message::default();
    for (code, response) in operation["responses"].as_object().into_iter().flatten() {
        let mut body = Message::default();
        body.text(1, &response["description"]);
        let mut item = Message::default();
        item.message(1, &schema(&response["schema"], 0));
        body.message(2, &item);
        let mut value = Message::default();
        value.message(1, &body);
        responses.message(1, &named_message(code, &value));
    }
    out.message(9, &responses);
    extensions(&mut out, 13, operation);
    out
}

/// A schema; documents are as deep as definitions may be.
fn schema(schema_of: &Value, depth: usize) -> Message {
    let mut out = Message::default();
    if depth > 200 {
        return out;
    }
    out.text(1, &schema_of["$ref"]);
    out.text(2, &schema_of["format"]);
    out.text(3, &schema_of["title"]);
    out.text(4, &schema_of["description"]);
    if let Some(default) = schema_of.get("default") {
        out.message(5, &any(default));
    }
    limits(&mut out, schema_of);
    out.texts(19, &schema_of["required"]);
    for value in schema_of["enum"].as_array().into_iter().flatten() {
        out.message(20, &any(value));
    }
    if schema_of["additionalProperties"].is_object() {
        let mut item = Message::default();
        item.message(1, &schema(&schema_of["additionalProperties"], depth + 1));
        out.message(21, &item);
    }
    if let Some(kind) = schema_of["type"].as_str() {
        let mut item = Message::default();
        item.bytes(1, kind.as_bytes());
        out.message(22, &item);
    }
    if schema_of["items"].is_object() {
        let mut item = Message::default();
        item.message(1, &schema(&schema_of["items"], depth + 1));
        out.message(23, &item);
    }
    if let Some(properties) = schema_of["properties"].as_object() {
        let mut all = Message::default();
        for (name, property) in properties {
            all.message(1, &named_message(name, &schema(property, depth + 1)));
        }
        out.message(25, &all);
    }
    extensions(&mut out, 31, schema_of);
    out
}

fn limits(out: &mut Message, schema: &Value) {
    for (key, field) in [("multipleOf", 6), ("maximum", 7), ("minimum", 9)] {
        out.double(field, &schema[key]);
    }
    out.flag(8, &schema["exclusiveMaximum"]);
    out.flag(10, &schema["exclusiveMinimum"]);
    for (key, field) in [("maxLength", 11), ("minLength", 12), ("maxItems", 14), ("minItems", 15)] {
        out.integer(field, &schema[key]);
    }
    out.text(13, &schema["pattern"]);
}
