//! Schema documents: where they come from, and which addresses and anchors stand in them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tiphys_gocompat::{strconv::quote, url::Url};
use tiphys_value::{Map, Value};

use super::{
    SchemaLoader,
    check::Checker,
    compile::Compiler,
    draft::Draft,
    meta,
    schema_address::{join, join_pointer, location, split, split_fragment},
};

/// How many documents a chart's schema may refer to.
const MAX_DOCUMENTS: usize = 100;

/// How deep a schema may nest.
const MAX_DEPTH: usize = 200;

/// A document, looked through.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) url: String,
    pub(super) value: Arc<Value>,
    /// Schemas with an address of their own, by pointer; the document itself is one.
    pub(super) resources: BTreeMap<String, Resource>,
    /// Pointers of all schemas that were looked through.
    seen: HashSet<String>,
}

/// A schema with an address of its own.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) pointer: String,
    pub(super) id: String,
    pub(super) draft: Draft,
    /// Pointers by anchor.
    pub(super) anchors: BTreeMap<String, String>,
    pub(super) dynamic_anchors: Vec<String>,
}

impl Document {
    /// The resource that a schema belongs to.
    pub(super) fn resource(&self, pointer: &str) -> &Resource {
        let mut pointer = pointer;
        loop {
            if let Some(resource) = self.resources.get(pointer) {
                return resource;
            }
            let Some(slash) = pointer.rfind('/') else { return &self.resources[""] };
            pointer = &pointer[..slash];
        }
    }

    /// The pointer that a fragment means in a resource.
    fn fragment(&self, fragment: &str, resource: &Resource) -> Result<String, String> {
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(format!("{}{fragment}", resource.pointer));
        }
        resource.anchors.get(fragment).cloned().ok_or_else(|| {
            format!(
                "anchor in {} not found in schema {}",
                quote(&location(&resource.id, fragment)),
                quote(&self.url)
            )
        })
    }

    /// The pointer that a reference means, if it leads into this document.
    ///
    /// # Errors
    /// There is no such anchor.
    pub(super) fn resolve(&self, url: &str, fragment: &str) -> Result<Option<String>, String> {
        let resource = if url == self.url {
            self.resources.get("")
        } else {
            self.resources.values().find(|resource| resource.id == url)
        };
        resource.map(|resource| self.fragment(fragment, resource)).transpose()
    }

    /// What stands at a pointer.
    ///
    /// # Errors
    /// Nothing does.
    pub(super) fn lookup(&self, pointer: &str) -> Result<&Value, String> {
        let missing = || format!("json-pointer in {} not found", quote(&location(&self.url, pointer)));
        let mut value = &*self.value;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let found = match value {
                Value::Object(map) => map.get(&token),
                Value::Array(list) => token.parse::<usize>().ok().and_then(|at| list.get(at)),
                _ => None,
            };
            value = found.ok_or_else(missing)?;
        }
        Ok(value)
    }

    fn collect(
        &mut self,
        schema: &Value,
        base: &str,
        pointer: String,
        fallback: Draft,
        drafts: &mut dyn FnMut(&Value, Draft) -> Result<Draft, String>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("{} nests deeper than the limit of {MAX_DEPTH}", self.url));
        }
        if !self.seen.insert(pointer.clone()) {
            return Ok(());
        }
        let Value::Object(object) = schema else {
            if pointer.is_empty() {
                self.add_resource(pointer, base, fallback)?;
            }
            return Ok(());
        };
        let has_schema = object.get("$schema").is_some_and(Value::is_string);
        let mut draft = if has_schema { drafts(schema, fallback)? } else { fallback };
        let mut id = draft.id(object);
        if id.is_empty() && !pointer.is_empty() {
            draft = fallback;
            id = draft.id(object);
        }
        let mut base = base.to_owned();
        if !id.is_empty() {
            let place = || format!("error in parsing id at {}", quote(&location(&self.url, &pointer)));
            base = join(&base, id).map_err(|_| place())?.0;
        }
        if !id.is_empty() || pointer.is_empty() {
            self.add_resource(pointer.clone(), &base, draft)?;
        }
        let owner = self.resources.values().find(|resource| resource.id == base);
        let owner = owner.map_or_else(|| self.resource(&pointer).pointer.clone(), |it| it.pointer.clone());
        self.collect_anchors(object, &pointer, &owner)?;
        let inherited = self.resources[&owner].draft;
        for (keyword, key, value) in draft.subschemas(object) {
            let mut place = join_pointer(&pointer, keyword);
            if let Some(key) = key {
                place = join_pointer(&place, &key);
            }
            self.collect(value, &base, place, inherited, drafts, depth + 1)?;
        }
        Ok(())
    }

    fn add_resource(&mut self, pointer: String, id: &str, draft: Draft) -> Result<(), String> {
        if let Some(other) = self.resources.values().find(|resource| resource.id == id) {
            if other.pointer == pointer {
                return Ok(());
            }
            return Err(format!(
                "duplicate id {} in {} at {} and {}",
                quote(id),
                quote(&self.url),
                quote(&pointer),
                quote(&other.pointer)
            ));
        }
        let resource = Resource {
            pointer: pointer.clone(),
            id: id.to_owned(),
            draft,
            anchors: BTreeMap::new(),
            dynamic_anchors: Vec::new(),
        };
        self.resources.insert(pointer, resource);
        Ok(())
    }

    fn collect_anchors(
        &mut self,
        schema: &Map<String, Value>,
        pointer: &str,
        owner: &str,
    ) -> Result<(), String> {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let draft = self.resources[owner].draft;
        let mut anchors = Vec::new();
        if draft < Draft::D2019 {
            if schema.contains_key("$ref") {
                return Ok(());
            }
            if let Some(id) = text(draft.id_keyword()) {
                let place =
                    |_| format!("error in parsing anchor at {}", quote(&location(&self.url, pointer)));
                let (_, fragment) = split_fragment(id).map_err(place)?;
                if !fragment.is_empty() && !fragment.starts_with('/') {
                    anchors.push(fragment);
                }
            }
        } else {
            anchors.extend(text("$anchor").map(str::to_owned));
        }
        let dynamic = text("$dynamicAnchor").filter(|_| draft >= Draft::D2020).map(str::to_owned);
        anchors.extend(dynamic.clone());
        let url = quote(&self.url);
        let Some(resource) = self.resources.get_mut(owner) else { return Ok(()) };
        for anchor in anchors {
            let first = resource.anchors.entry(anchor.clone()).or_insert_with(|| pointer.to_owned());
            if first != pointer {
                let (first, second) = (quote(first), quote(pointer));
                let anchor = quote(&anchor);
                return Err(format!("duplicate anchor {anchor} in {url} at {first} and {second}"));
            }
        }
        resource.dynamic_anchors.extend(dynamic);
        Ok(())
    }
}

/// The documents of one compilation.
pub(super) struct Documents<'l> {
    pub(super) list: Vec<Document>,
    loaded: HashMap<String, Arc<Value>>,
    loader: Option<&'l dyn SchemaLoader>,
    /// URNs that were taken for schemas which allow everything.
    pub(super) urns: Vec<String>,
}

impl<'l> Documents<'l> {
    /// No documents yet.
    pub(super) fn new(loader: Option<&'l dyn SchemaLoader>) -> Self {
        Self { list: Vec::new(), loaded: HashMap::new(), loader, urns: Vec::new() }
    }

    /// Makes a document known under an address.
    pub(super) fn register(&mut self, url: &str, value: Arc<Value>) {
        self.loaded.insert(url.to_owned(), value);
    }

    /// The document of an address, loaded if need be.
    ///
    /// # Errors
    /// It cannot be loaded, or is no schema.
    pub(super) fn get(&mut self, url: &str) -> Result<usize, String> {
        if let Some(known) = self.list.iter().position(|document| document.url == url) {
            return Ok(known);
        }
        let value = self.load(url)?;
        let mut document = Document {
            url: url.to_owned(),
            value: value.clone(),
            resources: BTreeMap::new(),
            seen: HashSet::new(),
        };
        let mut drafts = |schema: &Value, fallback| self.draft(schema, fallback, url, &mut Vec::new());
        document.collect(&value, url, String::new(), Draft::D2020, &mut drafts, 0)?;
        if !url.starts_with("http://json-schema.org/") && !url.starts_with("https://json-schema.org/") {
            validate(&document, &value, "")?;
        }
        self.list.push(document);
        Ok(self.list.len() - 1)
    }

    /// The pointer that a fragment means in a document.
    ///
    /// # Errors
    /// There is no such anchor.
    pub(super) fn fragment(&self, document: usize, fragment: &str) -> Result<String, String> {
        let document = &self.list[document];
        document.fragment(fragment, document.resource(""))
    }

    /// Looks through a part of a document that was not known to be a schema.
    ///
    /// # Errors
    /// It does not exist, or is none.
    pub(super) fn ensure(&mut self, document: usize, pointer: &str) -> Result<(), String> {
        if self.list[document].seen.contains(pointer) {
            return Ok(());
        }
        let mut changed = self.list[document].clone();
        let whole = changed.value.clone();
        let url = changed.url.clone();
        let probe = Document { value: whole, ..changed.clone() };
        let value = probe.lookup(pointer)?;
        let (base, draft) = {
            let resource = changed.resource(pointer);
            (resource.id.clone(), resource.draft)
        };
        let mut drafts = |schema: &Value, fallback| self.draft(schema, fallback, &url, &mut Vec::new());
        changed.collect(value, &base, pointer.to_owned(), draft, &mut drafts, 0)?;
        validate(&changed, value, pointer)?;
        self.list[document] = changed;
        Ok(())
    }

    /// The draft that a schema is written in.
    fn draft(
        &mut self,
        schema: &Value,
        fallback: Draft,
        url: &str,
        cycle: &mut Vec<String>,
    ) -> Result<Draft, String> {
        let Some(named) = schema.get("$schema").and_then(Value::as_str) else { return Ok(fallback) };
        if let Some(draft) = Draft::from_url(named) {
            return Ok(draft);
        }
        let (named, _) = split(named);
        if let Err(error) = Url::parse(named) {
            return Err(format!("invalid $schema in {}: {error}", quote(&location(url, ""))));
        }
        if named == url {
            return Err(format!("draft {} is not supported", quote(named)));
        }
        if cycle.iter().any(|known| known == named) {
            return Err(format!("cycle in resolving $schema in {}", quote(named)));
        }
        cycle.push(named.to_owned());
        let meta = self.load(named)?;
        if meta.get("$vocabulary").is_some() {
            return Err(format!("schemas of vocabularies of their own are not supported: {}", quote(named)));
        }
        self.draft(&meta, fallback, named, cycle)
    }

    fn load(&mut self, url: &str) -> Result<Arc<Value>, String> {
        if let Some(value) = self.loaded.get(url) {
            return Ok(value.clone());
        }
        if self.loaded.len() >= MAX_DOCUMENTS {
            return Err(format!(
                "more than {MAX_DOCUMENTS} schemas are referred to, the last is {}",
                quote(url)
            ));
        }
        let value = match meta::document(url) {
            Some(value) => value,
            None => {
                self.load_text(url).map_err(|error| format!("failing loading {}: {error}", quote(url)))?
            }
        };
        let value = Arc::new(value);
        self.loaded.insert(url.to_owned(), value.clone());
        Ok(value)
    }

    fn load_text(&mut self, url: &str) -> Result<Value, String> {
        let parsed = Url::parse(url).map_err(|error| error.to_string())?;
        let text = match parsed.scheme.as_str() {
            "http" | "https" => match self.loader {
                Some(loader) => loader.load(url)?,
                None => return Err(format!("HTTP request failed for {url}: schemas are not fetched here")),
            },
            // Nothing outside the chart is read, and Helm does not look inside it.
            "file" => return Err(format!("open {}: no such file or directory", parsed.path)),
            "urn" => {
                self.urns.push(url.to_owned());
                return Ok(Value::Bool(true));
            }
            _ => return Err(format!("no URLLoader registered for {}", quote(&parsed.to_string()))),
        };
        super::decode(&text)
    }
}

/// Holds a schema against the schema of its draft.
fn validate(document: &Document, value: &Value, pointer: &str) -> Result<(), String> {
    let draft = document.resource(pointer).draft;
    if document.resources.values().all(|resource| resource.draft == draft)
        && meta::is_valid_quick(value, draft, 0)
    {
        return Ok(());
    }
    let mut compiler = Compiler::for_drafts();
    let mut metas = BTreeMap::new();
    for resource in document.resources.values() {
        metas.insert(resource.pointer.clone(), compiler.compile(resource.draft.url())?);
    }
    let root = compiler.compile(draft.url())?;
    let checker = Checker::for_schemas(compiler.schemas(), &metas, root);
    checker.check(root, value).map_err(|fault| {
        format!(
            "{} is not valid against metaschema: jsonschema validation failed with '{}#'\n{}",
            quote(&location(&document.url, pointer)),
            draft.url(),
            fault.print()
        )
    })
}
