//! From documents to schemas ready to check with: references followed, keywords read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::OnceLock,
};

use tiphys_gocompat::{regex::Regex, strconv::quote};
use tiphys_value::{Map, Value};

use super::{
    SchemaLoader,
    document::Documents,
    draft::Draft,
    schema_address::{join, join_pointer, location, split_fragment},
};

/// Number of a schema in its compiler.
pub(crate) type Id = usize;

/// How many schemas a chart's schema may consist of.
const MAX_SCHEMAS: usize = 200_000;

/// What keywords of a schema ask for. Numbers and lists are as the document has them.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(super) url: String,
    pub(super) pointer: String,
    pub(super) draft: Draft,
    /// The schema with an address of its own that this one belongs to.
    pub(super) resource: Id,
    /// A schema that is only `true` or `false`.
    pub(super) verdict: Option<bool>,
    /// The keywords that hold no schema.
    pub(super) keywords: Map<String, Value>,
    pub(super) reference: Option<Id>,
    pub(super) recursive_reference: Option<Id>,
    pub(super) dynamic_reference: Option<(Id, String)>,
    /// Schemas by anchor, of a resource only.
    pub(super) dynamic_anchors: BTreeMap<String, Id>,
    /// Keywords that hold one schema.
    pub(super) one: BTreeMap<&'static str, Id>,
    /// Keywords that hold a list of schemas.
    pub(super) lists: BTreeMap<&'static str, Vec<Id>>,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) patterns: Vec<(Pattern, Id)>,
    /// `dependencies` and `dependentSchemas`.
    pub(super) dependencies: BTreeMap<String, Id>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<String>,
}

/// A regular expression that is compiled when first used.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// The expression.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches somewhere; one that is too large matches nothing.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| Regex::compile(&self.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

impl Schema {
    fn new(url: &str, pointer: String) -> Self {
        Self {
            url: url.to_owned(),
            pointer,
            draft: Draft::D2020,
            resource: 0,
            verdict: None,
            keywords: Map::new(),
            reference: None,
            recursive_reference: None,
            dynamic_reference: None,
            dynamic_anchors: BTreeMap::new(),
            one: BTreeMap::new(),
            lists: BTreeMap::new(),
            properties: BTreeMap::new(),
            patterns: Vec::new(),
            dependencies: BTreeMap::new(),
            pattern: None,
            format: None,
        }
    }

    /// Whether a keyword is there and true.
    pub(super) fn is_set(&self, keyword: &str) -> bool {
        self.keywords.get(keyword) == Some(&Value::Bool(true))
    }

    /// The address, as messages print it.
    pub(super) fn location(&self) -> String {
        location(&self.url, &self.pointer)
    }
}

/// Compiles schemas and all they refer to.
pub(super) struct Compiler<'l> {
    documents: Documents<'l>,
    schemas: Vec<Schema>,
    /// Document of each schema.
    places: Vec<usize>,
    ids: HashMap<(usize, String), Id>,
    /// Whether newer drafts check formats too.
    formats: bool,
}

impl<'l> Compiler<'l> {
    /// A compiler of one document.
    pub(super) fn new(url: &str, value: Value, loader: Option<&'l dyn SchemaLoader>) -> Self {
        let mut compiler = Self::for_drafts();
        compiler.documents = Documents::new(loader);
        compiler.documents.register(url, value.into());
        compiler.formats = false;
        compiler
    }

    /// A compiler of the drafts' own schemas.
    pub(super) fn for_drafts() -> Self {
        Self {
            documents: Documents::new(None),
            schemas: Vec::new(),
            places: Vec::new(),
            ids: HashMap::new(),
            formats: true,
        }
    }

    /// All schemas so far.
    pub(super) fn schemas(&self) -> &[Schema] {
        &self.schemas
    }

    /// The schemas, and the URNs that were taken for schemas that allow everything.
    pub(super) fn finish(self) -> (Vec<Schema>, Vec<String>) {
        (self.schemas, self.documents.urns)
    }

    /// Compiles the document of an address.
    ///
    /// # Errors
    /// It, or something that it refers to, cannot be loaded or is no schema.
    pub(super) fn compile(&mut self, url: &str) -> Result<Id, String> {
        let document = self.documents.get(url)?;
        let mut next = self.schemas.len();
        let root = self.id(document, String::new());
        while next < self.schemas.len() {
            if next > MAX_SCHEMAS {
                return Err(format!("more than {MAX_SCHEMAS} schemas"));
            }
            self.compile_one(next)?;
            next += 1;
        }
        Ok(root)
    }

    fn id(&mut self, document: usize, pointer: String) -> Id {
        if let Some(id) = self.ids.get(&(document, pointer.clone())) {
            return *id;
        }
        let id = self.schemas.len();
        self.schemas.push(Schema::new(&self.documents.list[document].url, pointer.clone()));
        self.places.push(document);
        self.ids.insert((document, pointer), id);
        id
    }

    fn compile_one(&mut self, id: Id) -> Result<(), String> {
        let document = self.places[id];
        let pointer = self.schemas[id].pointer.clone();
        self.documents.ensure(document, &pointer)?;
        let known = &self.documents.list[document];
        let resource = known.resource(&pointer).clone();
        let whole = known.value.clone();
        // The document is shared: what it holds can be read while other documents are added.
        let value = lookup(&whole, &pointer);
        let mut schema = Schema::new(&known.url, pointer);
        schema.draft = resource.draft;
        schema.resource = self.id(document, resource.pointer.clone());
        if schema.draft >= Draft::D2020 && schema.resource == id {
            for anchor in &resource.dynamic_anchors {
                if let Some(pointer) = resource.anchors.get(anchor) {
                    let target = self.id(document, pointer.clone());
                    schema.dynamic_anchors.insert(anchor.clone(), target);
                }
            }
        }
        match value {
            Some(Value::Bool(verdict)) => schema.verdict = Some(*verdict),
            Some(Value::Object(object)) if object.is_empty() => schema.verdict = Some(true),
            Some(Value::Object(object)) => {
                Object { compiler: self, object, document, base: &resource.id }.read(&mut schema)?;
            }
            _ => {}
        }
        self.schemas[id] = schema;
        Ok(())
    }
}

fn lookup<'v>(whole: &'v Value, pointer: &str) -> Option<&'v Value> {
    whole.pointer(pointer)
}

/// A schema being read.
struct Object<'c, 'l, 'v> {
    compiler: &'c mut Compiler<'l>,
    object: &'v Map<String, Value>,
    document: usize,
    base: &'v str,
}

impl Object<'_, '_, '_> {
    fn read(&mut self, schema: &mut Schema) -> Result<(), String> {
        let draft = schema.draft;
        schema.reference = self.target("$ref")?;
        self.read_assertions(schema)?;
        if draft < Draft::D2019 && schema.reference.is_some() {
            return Ok(());
        }
        self.read_lists(schema);
        self.read_single(schema);
        self.read_maps(schema)?;
        if draft >= Draft::D2019 {
            schema.recursive_reference = self.target("$recursiveRef")?;
        }
        if draft >= Draft::D2020
            && let Some(target) = self.target("$dynamicRef")?
        {
            let text = self.object.get("$dynamicRef").and_then(Value::as_str).unwrap_or_default();
            let (_, fragment) = split_fragment(text)?;
            let anchor = if fragment.starts_with('/') { String::new() } else { fragment };
            schema.dynamic_reference = Some((target, anchor));
        }
        Ok(())
    }

    fn read_assertions(&mut self, schema: &mut Schema) -> Result<(), String> {
        const KEYWORDS: [&str; 24] = [
            "type",
            "enum",
            "const",
            "multipleOf",
            "maximum",
            "minimum",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "uniqueItems",
            "minProperties",
            "maxProperties",
            "required",
            "minContains",
            "maxContains",
            "dependentRequired",
            "$recursiveAnchor",
            "$dynamicAnchor",
            "additionalProperties",
            "additionalItems",
            "dependencies",
        ];
        // An old schema with a reference has only that, but its anchors stay.
        let only_reference = schema.draft < Draft::D2019 && schema.reference.is_some();
        for keyword in KEYWORDS {
            if let Some(value) =
                self.object.get(keyword).filter(|_| !only_reference && since(keyword) <= schema.draft)
            {
                schema.keywords.insert(keyword.to_owned(), assertion(keyword, value));
            }
        }
        if only_reference {
            return Ok(());
        }
        if let Some(Value::String(pattern)) = self.object.get("pattern") {
            self.check_pattern(schema, "pattern", pattern)?;
            schema.pattern = Some(Pattern::new(pattern));
        }
        if self.compiler.formats || schema.draft < Draft::D2019 {
            schema.format = self.object.get("format").and_then(Value::as_str).map(str::to_owned);
        }
        Ok(())
    }

    fn check_pattern(&self, schema: &Schema, keyword: &str, pattern: &str) -> Result<(), String> {
        Regex::check(pattern).map_err(|error| {
            let place = quote(&location(&schema.url, &join_pointer(&schema.pointer, keyword)));
            format!("invalid regex {} at {place}: {error}", quote(pattern))
        })
    }

    fn read_lists(&mut self, schema: &mut Schema) {
        let items = if schema.draft < Draft::D2020 { "items" } else { "prefixItems" };
        for keyword in ["allOf", "anyOf", "oneOf", items] {
            if let Some(Value::Array(list)) = self.object.get(keyword) {
                let below_keyword = join_pointer(&schema.pointer, keyword);
                let ids = (0..list.len())
                    .map(|at| self.compiler.id(self.document, format!("{below_keyword}/{at}")))
                    .collect();
                schema.lists.insert(keyword, ids);
            }
        }
    }

    fn read_single(&mut self, schema: &mut Schema) {
        const KEYWORDS: [&str; 10] = [
            "not",
            "items",
            "additionalItems",
            "additionalProperties",
            "contains",
            "propertyNames",
            "if",
            "unevaluatedItems",
            "unevaluatedProperties",
            "else",
        ];
        for keyword in KEYWORDS.into_iter().chain(["then"]) {
            let Some(value) = self.object.get(keyword).filter(|_| since(keyword) <= schema.draft) else {
                continue;
            };
            let skipped = match keyword {
                "items" => value.is_array() && schema.draft < Draft::D2020,
                "additionalItems" => schema.draft >= Draft::D2020 || value.is_boolean(),
                "additionalProperties" => value.is_boolean(),
                "then" => {
                    !schema.one.contains_key("if") || self.object.get("if") == Some(&Value::Bool(false))
                }
                "else" => {
                    !self.object.contains_key("if") || self.object.get("if") == Some(&Value::Bool(true))
                }
                _ => false,
            };
            // Beside items that are one schema, additional items mean nothing.
            let idle = keyword == "additionalItems" && !self.object.get("items").is_some_and(Value::is_array);
            if !skipped && !idle {
                let id = self.compiler.id(self.document, join_pointer(&schema.pointer, keyword));
                schema.one.insert(keyword, id);
            }
        }
        if !self.object.get("items").is_some_and(Value::is_array) {
            schema.keywords.remove("additionalItems");
        }
    }

    fn read_maps(&mut self, schema: &mut Schema) -> Result<(), String> {
        let map = |keyword: &str| self.object.get(keyword).and_then(Value::as_object);
        for key in map("properties").into_iter().flat_map(Map::keys) {
            let place = join_pointer(&join_pointer(&schema.pointer, "properties"), key);
            let id = self.compiler.id(self.document, place);
            schema.properties.insert(key.clone(), id);
        }
        for pattern in map("patternProperties").into_iter().flat_map(Map::keys) {
            self.check_pattern(schema, "patternProperties", pattern)?;
            let place = join_pointer(&join_pointer(&schema.pointer, "patternProperties"), pattern);
            schema.patterns.push((Pattern::new(pattern), self.compiler.id(self.document, place)));
        }
        for keyword in ["dependencies", "dependentSchemas"] {
            let entries = map(keyword).filter(|_| since(keyword) <= schema.draft).into_iter().flatten();
            for (key, value) in entries {
                if keyword == "dependentSchemas" || !value.is_array() {
                    let place = join_pointer(&join_pointer(&schema.pointer, keyword), key);
                    let id = self.compiler.id(self.document, place);
                    schema.dependencies.insert(key.clone(), id);
                }
            }
        }
        Ok(())
    }

    /// The schema that a reference means.
    fn target(&mut self, keyword: &str) -> Result<Option<Id>, String> {
        let Some(reference) = self.object.get(keyword).and_then(Value::as_str) else { return Ok(None) };
        let (url, fragment) = join(self.base, reference)?;
        let documents = &mut self.compiler.documents;
        if let Some(pointer) = documents.list[self.document].resolve(&url, &fragment)? {
            return Ok(Some(self.compiler.id(self.document, pointer)));
        }
        let document = documents.get(&url)?;
        let pointer = documents.fragment(document, &fragment)?;
        Ok(Some(self.compiler.id(document, pointer)))
    }
}

/// The part of a keyword's value that is no schema: those are compiled by themselves, and copies would
/// multiply with depth.
fn assertion(keyword: &str, value: &Value) -> Value {
    match (keyword, value) {
        ("additionalProperties" | "additionalItems", Value::Object(_)) => Value::Bool(true),
        ("dependencies", Value::Object(entries)) => {
            let lists = entries.iter().filter(|(_, wanted)| wanted.is_array());
            Value::Object(lists.map(|(name, wanted)| (name.clone(), wanted.clone())).collect())
        }
        _ => value.clone(),
    }
}

/// The draft that brought a keyword.
fn since(keyword: &str) -> Draft {
    match keyword {
        "const" | "contains" | "propertyNames" => Draft::D6,
        "if" | "then" | "else" => Draft::D7,
        "minContains"
        | "maxContains"
        | "dependentRequired"
        | "dependentSchemas"
        | "$recursiveAnchor"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Draft::D2019,
        "$dynamicAnchor" => Draft::D2020,
        _ => Draft::D4,
    }
}
