//! Changes of one field at a time, made from the type of every field: wrong texts and numbers, missing and
//! empty values, items that stand twice, and each field that the base leaves out.

use serde_json::{Map, Value, json};
use tiphys_schema::{Catalog, Field, Type, TypeRef};

use super::cases::{Case, Edit};

/// Texts that some rule about names, labels, paths, addresses or sizes refuses.
const TEXTS: [&str; 10] =
    ["", "Not Valid!", "UPPER_case", "-x-", "1.2.3.4", "../up", "/abs", "0", "a=b", "under_score.x"];

/// How deep objects are filled in.
const DEPTH: usize = 2;

/// All cases of a base.
pub(super) fn cases(name: &str, base: &Value, catalog: &Catalog, ty: TypeRef<'_>) -> Vec<Case> {
    let mut maker = Maker { catalog, edits: Vec::new() };
    let fields: Vec<_> = base.as_object().into_iter().flatten().collect();
    for (key, value) in fields {
        let path = format!("/{}", escaped(key));
        match key.as_str() {
            "apiVersion" | "kind" => {}
            // Every kind has it; one base looks at it whole.
            "metadata" if name != "configmap" => {}
            _ => {
                let field = ty.field_info(key).cloned();
                maker.place(value, field.as_ref().map(|field| &field.ty), field.as_ref(), &path);
            }
        }
    }
    maker.absent(base, ty, "");
    let case = |edits| Case { base: name.to_owned(), edits };
    maker.edits.into_iter().map(case).collect()
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

struct Maker<'a> {
    catalog: &'a Catalog,
    edits: Vec<Vec<Edit>>,
}

impl Maker<'_> {
    fn set(&mut self, path: &str, value: Value) {
        self.edits.push(vec![Edit::Set(path.to_owned(), value)]);
    }

    /// What can be wrong with a value and with all inside it.
    fn place(&mut self, value: &Value, ty: Option<&Type>, field: Option<&Field>, path: &str) {
        self.edits.push(vec![Edit::Remove(path.to_owned())]);
        match value {
            Value::String(text) => self.text(text, ty, field, path),
            Value::Number(number) => self.number(number.as_i64().unwrap_or_default(), ty, path),
            Value::Bool(flag) => self.set(path, json!(!flag)),
            Value::Array(items) => self.items(items, ty, path),
            Value::Object(fields) => self.object(value, fields, ty, path),
            Value::Null => {}
        }
    }

    fn text(&mut self, text: &str, ty: Option<&Type>, field: Option<&Field>, path: &str) {
        let allowed = field.map(|field| field.allowed.as_slice()).unwrap_or_default();
        let is_word = text.chars().next().is_some_and(|c| c.is_ascii_uppercase())
            && text.chars().all(|c| c.is_ascii_alphanumeric());
        match ty {
            Some(Type::Quantity) => {
                for amount in ["-1", "0", "1.5", "100Ti", "x", "1m"] {
                    self.set(path, json!(amount));
                }
            }
            Some(Type::IntOrString) => {
                for value in
                    [json!(-1), json!(0), json!(70_000), json!("150%"), json!("-5%"), json!("x y"), json!("")]
                {
                    self.set(path, value);
                }
            }
            Some(Type::Bytes) => {
                ["%%", "", "e30=", "bm8="].into_iter().for_each(|text| self.set(path, json!(text)))
            }
            Some(Type::Time | Type::MicroTime) => {
                ["", "yesterday"].into_iter().for_each(|text| self.set(path, json!(text)))
            }
            _ if !allowed.is_empty() || is_word => {
                let others = allowed.iter().filter(|other| *other != text);
                let others: Vec<_> = others.cloned().chain([String::new(), "Bogus".to_owned()]).collect();
                others.into_iter().for_each(|text| self.set(path, json!(text)));
            }
            _ => {
                TEXTS.into_iter().filter(|other| *other != text).for_each(|text| self.set(path, json!(text)));
                self.set(path, json!("a".repeat(64)));
                self.set(path, json!("a".repeat(300)));
            }
        }
    }

    fn number(&mut self, number: i64, ty: Option<&Type>, path: &str) {
        for other in [-1, 0, 1, 101, 70_000, i64::from(i32::MAX)] {
            if other != number {
                self.set(path, json!(other));
            }
        }
        if matches!(ty, Some(Type::IntOrString)) {
            ["Not Valid!", "", "150%", "a"].into_iter().for_each(|text| self.set(path, json!(text)));
        }
    }

    fn items(&mut self, items: &[Value], ty: Option<&Type>, path: &str) {
        self.set(path, json!([]));
        if let Some(first) = items.first() {
            self.set(&format!("{path}/-"), first.clone());
        }
        let inner = match ty {
            Some(Type::List(inner, _)) => Some(inner.as_ref()),
            _ => None,
        };
        for (at, item) in items.iter().enumerate() {
            self.place(item, inner, None, &format!("{path}/{at}"));
        }
    }

    fn object(&mut self, value: &Value, fields: &Map<String, Value>, ty: Option<&Type>, path: &str) {
        self.set(path, json!({}));
        match ty {
            Some(Type::Map(inner, _)) => {
                for (key, value) in fields {
                    let place = format!("{path}/{}", escaped(key));
                    self.place(value, Some(inner), None, &place);
                    for other in ["Not Valid!", "", "a/b/c", "x.io/y", "UPPER"] {
                        let renamed = Edit::Set(format!("{path}/{}", escaped(other)), value.clone());
                        self.edits.push(vec![Edit::Remove(place.clone()), renamed]);
                    }
                }
            }
            Some(ty) => {
                let ty = TypeRef::new(self.catalog, ty);
                for (key, value) in fields {
                    let field = ty.field_info(key).cloned();
                    let place = format!("{path}/{}", escaped(key));
                    self.place(value, field.as_ref().map(|field| &field.ty), field.as_ref(), &place);
                }
                self.absent(value, ty, path);
            }
            None => {}
        }
    }

    /// Each field that an object leaves out, with a value of its type.
    fn absent(&mut self, value: &Value, ty: TypeRef<'_>, path: &str) {
        let Some(definition) = ty.definition() else { return };
        for (name, field) in &definition.fields {
            let is_skipped = matches!(name.as_str(), "status" | "apiVersion" | "kind" | "metadata");
            if is_skipped || value.get(name).is_some() {
                continue;
            }
            let path = format!("{path}/{}", escaped(name));
            for value in self.samples(&field.ty, &field.allowed, 0) {
                self.set(&path, value);
            }
        }
    }

    /// Values of a type that say something.
    fn samples(&self, ty: &Type, allowed: &[String], depth: usize) -> Vec<Value> {
        match ty {
            Type::Str if !allowed.is_empty() => {
                allowed.iter().map(|text| json!(text)).chain([json!("Bogus")]).collect()
            }
            Type::Str => vec![json!("x"), json!("Not Valid!")],
            Type::Bool => vec![json!(true), json!(false)],
            Type::I32 | Type::I64 => vec![json!(1), json!(-1)],
            Type::F64 => vec![json!(1.5)],
            Type::Bytes => vec![json!("AAEC")],
            Type::Time | Type::MicroTime => vec![json!("2026-01-02T03:04:05Z")],
            Type::Quantity => vec![json!("1"), json!("-1")],
            Type::IntOrString => vec![json!(1), json!("x")],
            Type::Any | Type::Open => vec![json!({"a": 1})],
            Type::List(inner, _) => {
                let first = self.samples(inner, &[], depth + 1);
                first.into_iter().take(1).map(|item| json!([item])).collect()
            }
            Type::Map(inner, _) => {
                let first = self.samples(inner, &[], depth + 1);
                let of = |value: &Value| [json!({"a": value}), json!({"Not Valid!": value})];
                first.first().map(of).into_iter().flatten().collect()
            }
            // Some types hold themselves.
            Type::Ref(_) | Type::Object(_) if depth > DEPTH => vec![json!({})],
            Type::Ref(_) | Type::Object(_) => vec![json!({}), self.filled(ty, depth)],
        }
    }

    /// An object with all scalars and, near the top, what else there is.
    fn filled(&self, ty: &Type, depth: usize) -> Value {
        let mut object = Map::new();
        let Some(definition) = TypeRef::new(self.catalog, ty).definition() else { return json!({}) };
        for (name, field) in &definition.fields {
            let is_scalar = !matches!(field.ty, Type::Ref(_) | Type::Object(_) | Type::List(..));
            if (is_scalar || depth < DEPTH && field.required)
                && let Some(value) = self.samples(&field.ty, &field.allowed, depth + 1).into_iter().next()
            {
                object.insert(name.clone(), value);
            }
        }
        object.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::ObjectExt;

    #[test]
    fn every_field_is_changed_and_every_absent_one_is_tried() {
        let base = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
        let catalog = Catalog::latest();
        let cases = cases("s", &base, catalog, catalog.type_of(&base.gvk()).unwrap());
        let has = |edit: &Edit| cases.iter().any(|case| case.edits.contains(edit));
        assert!(has(&Edit::Set("/spec/ports/0/port".into(), json!(70_000))));
        assert!(has(&Edit::Set("/spec/type".into(), json!("Bogus"))));
        assert!(has(&Edit::Set("/spec/externalName".into(), json!("Not Valid!"))));
        assert!(has(&Edit::Set("/spec/ports/0/nodePort".into(), json!(-1))));
        assert!(cases.iter().all(|case| case.object(&base).is_ok()));
    }
}
