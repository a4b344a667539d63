//! Checking a value against a compiled schema.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use tiphys_gocompat::strconv::quote;
use tiphys_value::{Budget, Map, Value, pointer_step};

use super::{
    compile::{Id, Schema},
    draft::Draft,
    error::{FaultKind, SchemaFault},
    format, number,
    schema_address::single_quoted,
};

/// How deep schemas and references may lead.
const MAX_DEPTH: usize = 400;
/// How many steps one check may take: references multiply. The largest schema of a chart in use takes some
/// 20,000.
const MAX_STEPS: u64 = 10_000_000;
/// What the faults of one check may take, in bytes, and each of them beside its texts.
const MAX_FAULTS: u64 = 64 << 20;
const FAULT: u64 = 256;
/// What a step of a path takes beside its text.
const TOKEN: u64 = 32;

/// Checks values against compiled schemas.
pub(super) struct Checker<'a> {
    schemas: &'a [Schema],
    /// For schemas that are checked themselves: the draft's schema for each part with an address of its own.
    metas: Option<&'a BTreeMap<String, Id>>,
    meta: Id,
    steps: Cell<u64>,
    faults: Budget,
}

/// Where the checked value stands.
#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Name(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl Path<'_> {
    fn tokens(&self) -> Vec<String> {
        match self {
            Self::Root => Vec::new(),
            Self::Name(above, name) => {
                let mut tokens = above.tokens();
                tokens.push((*name).to_owned());
                tokens
            }
            Self::Index(above, index) => {
                let mut tokens = above.tokens();
                tokens.push(index.to_string());
                tokens
            }
        }
    }
}

/// The schemas at work, innermost first.
#[derive(Clone, Copy)]
struct SchemaFrame<'s> {
    schema: Id,
    /// The keyword that led here by reference, or empty.
    keyword: &'static str,
    /// Changes with the value.
    value: usize,
    depth: usize,
    above: Option<&'s SchemaFrame<'s>>,
}

/// What of a value no schema has judged yet, as far as somebody wants to know.
#[derive(Debug, Default)]
struct Open {
    properties: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.items.is_empty()
    }

    /// Leaves what another schema has left, too.
    fn merge(&mut self, other: &Open) {
        self.properties.retain(|name| other.properties.contains(name));
        self.items.retain(|index| other.items.contains(index));
    }
}

/// One schema at work on one value.
struct Visit<'a, 's> {
    checker: &'s Checker<'a>,
    schema: &'a Schema,
    meta: Id,
    value: &'s Value,
    path: &'s Path<'s>,
    scope: &'s SchemaFrame<'s>,
    open: Open,
    faults: Vec<SchemaFault>,
    /// Whether only the verdict matters.
    quiet: bool,
}

/// The name that JSON Schema gives to the type of a value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Types in the order in which they are printed.
const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

fn display(value: &Value) -> String {
    match value {
        Value::String(text) => single_quoted(text),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn join_quoted(names: &[&str]) -> String {
    names.iter().map(|name| single_quoted(name)).collect::<Vec<_>>().join(", ")
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn missing<'v>(map: &Map<String, Value>, wanted: Option<&'v Value>) -> Vec<&'v str> {
    texts(wanted).filter(|name| !map.contains_key(*name)).collect()
}

static NONE: BTreeMap<String, Id> = BTreeMap::new();

impl<'a> Checker<'a> {
    /// A checker of values.
    pub(super) fn new(schemas: &'a [Schema]) -> Self {
        Self { metas: None, ..Self::for_schemas(schemas, &NONE, usize::MAX) }
    }

    /// A checker of schemas: `metas` are the drafts' schemas by pointer, `root` is that of the whole.
    pub(super) fn for_schemas(schemas: &'a [Schema], metas: &'a BTreeMap<String, Id>, root: Id) -> Self {
        Self { schemas, metas: Some(metas), meta: root, steps: Cell::new(0), faults: Budget::new(MAX_FAULTS) }
    }

    /// Checks a whole value.
    ///
    /// # Errors
    /// Why it does not fit.
    pub(super) fn check(&self, schema: Id, value: &Value) -> Result<(), SchemaFault> {
        let scope = SchemaFrame { schema, keyword: "", value: 0, depth: 0, above: None };
        let checked = self.visit(&scope, value, &Path::Root, self.meta, false, false).map(drop);
        match self.exhausted() {
            Some(text) => {
                Err(SchemaFault { at: Vec::new(), kind: FaultKind::Text(text), causes: Vec::new() })
            }
            None => checked,
        }
    }

    /// Counts steps. Past the limit every visit fails at once, so that the check ends.
    fn count(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps as u64));
    }

    /// The limit that the check has run into.
    fn exhausted(&self) -> Option<String> {
        let limit = if self.steps.get() > MAX_STEPS {
            format!("takes more than {MAX_STEPS} steps to check")
        } else if self.faults.remaining_bytes() == 0 {
            format!("finds faults of more than {} MiB", MAX_FAULTS >> 20)
        } else {
            return None;
        };
        Some(format!("the schema {limit}, a limit of Tiphys: its references or combinations multiply"))
    }

    fn visit<'s>(
        &'s self,
        scope: &'s SchemaFrame<'s>,
        value: &'s Value,
        path: &'s Path<'s>,
        meta: Id,
        wanted: bool,
        quiet: bool,
    ) -> Result<Open, SchemaFault> {
        let (mut meta, mut scope) = (meta, *scope);
        if let Some(metas) = self.metas.filter(|_| scope.schema == meta && scope.above.is_some()) {
            let pointer: String = path.tokens().iter().map(|it| format!("/{}", pointer_step(it))).collect();
            if let Some(other) = metas.get(&pointer) {
                (meta, scope.schema) = (*other, *other);
            }
        }
        self.count(1);
        if self.exhausted().is_some() {
            return Err(SchemaFault { at: Vec::new(), kind: FaultKind::Group, causes: Vec::new() });
        }
        let schema = &self.schemas[scope.schema];
        let open = schema.open(value, wanted);
        self.count(open.properties.len() + open.items.len());
        let visit = Visit {
            checker: self,
            schema,
            meta,
            value,
            path,
            scope: &scope,
            open,
            faults: Vec::new(),
            quiet,
        };
        visit.run()
    }
}

impl Schema {
    /// What this schema has to leave to others.
    fn open(&self, value: &Value, wanted: bool) -> Open {
        let has = |keyword: &str| self.one.contains_key(keyword) || self.keywords.contains_key(keyword);
        let mut open = Open::default();
        match value {
            Value::Object(map)
                if !has("additionalProperties") && (wanted || has("unevaluatedProperties")) =>
            {
                open.properties = map.keys().cloned().collect();
            }
            Value::Array(items)
                if !has("additionalItems")
                    && !self.one.contains_key("items")
                    && (wanted || has("unevaluatedItems")) =>
            {
                let first = self.lists.get("items").or_else(|| self.lists.get("prefixItems"));
                open.items = (first.map_or(0, Vec::len)..items.len()).collect();
            }
            _ => {}
        }
        open
    }

    fn count(&self, keyword: &str) -> Option<usize> {
        let value = self.keywords.get(keyword).filter(|value| number::is_integer(value))?;
        // Larger counts than memory holds compare the same; negative ones are nought.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        value.as_f64().map(|number| number as usize)
    }

    fn has_type(&self, value: &Value) -> Result<(), Vec<&'static str>> {
        let wanted: Vec<&str> = match self.keywords.get("type") {
            Some(Value::String(name)) => vec![name],
            several => texts(several).collect(),
        };
        let wanted: Vec<&'static str> = TYPES.into_iter().filter(|name| wanted.contains(name)).collect();
        let is = |name: &&str| {
            *name == type_name(value)
                || (*name == "integer" && value.is_number() && number::is_integer(value))
        };
        if wanted.is_empty() || wanted.iter().any(is) { Ok(()) } else { Err(wanted) }
    }
}

impl<'a> Visit<'a, '_> {
    fn run(mut self) -> Result<Open, SchemaFault> {
        match self.schema.verdict {
            Some(true) => return Ok(self.open),
            Some(false) => return Err(self.fault("false schema")),
            None => {}
        }
        if let Some(text) = self.cycle() {
            return Err(self.fault(text));
        }
        if self.scope.depth > MAX_DEPTH {
            return Err(self.fault(format!("schemas nest deeper than the limit of {MAX_DEPTH}")));
        }
        if let Some(text) = self.basic() {
            return Err(self.fault(text));
        }
        if let Some(target) = self.schema.reference {
            let done = self.reference(target, "$ref");
            if self.schema.draft < Draft::D2019 {
                return done.map(|()| self.open);
            }
            self.take(done);
        }
        match self.value {
            Value::Object(map) => self.object(map),
            Value::Array(items) => self.array(items),
            Value::String(text) => self.string(text),
            Value::Number(_) => self.number(),
            _ => {}
        }
        if self.faults.is_empty() || !self.quiet {
            if self.schema.draft >= Draft::D2019 {
                self.references();
            }
            self.combined();
            if self.schema.draft >= Draft::D2019 {
                self.unevaluated();
            }
        }
        match self.faults.len() {
            0 => Ok(self.open),
            1 => Err(self.faults.remove(0)),
            _ => {
                let at = self.path.tokens();
                Err(SchemaFault { at, kind: FaultKind::Group, causes: self.faults })
            }
        }
    }

    /// What must hold before anything else is looked at.
    fn basic(&self) -> Option<String> {
        let (schema, value) = (self.schema, self.value);
        if let Err(wanted) = schema.has_type(value) {
            return Some(format!("got {}, want {}", type_name(value), wanted.join(" or ")));
        }
        if let Some(wanted) = schema.keywords.get("const").filter(|wanted| !number::equal(value, wanted)) {
            return Some(match wanted {
                Value::Array(_) | Value::Object(_) => "'const' failed".to_owned(),
                wanted => format!("value must be {}", display(wanted)),
            });
        }
        if let Some(Value::Array(wanted)) = schema.keywords.get("enum") {
            self.checker.count(wanted.len());
        }
        if let Some(Value::Array(wanted)) = schema.keywords.get("enum")
            && !wanted.iter().any(|wanted| number::equal(value, wanted))
        {
            if wanted.iter().any(|it| it.is_array() || it.is_object()) {
                return Some("'enum' failed".to_owned());
            }
            let shown: Vec<_> = wanted.iter().map(display).collect();
            let one_of = if shown.len() == 1 { "" } else { "one of " };
            return Some(format!("value must be {one_of}{}", shown.join(", ")));
        }
        if let (Some(name), Value::String(text)) = (&schema.format, value) {
            let fault = format::fault(name, text)?;
            return Some(format!("{} is not valid {name}: {fault}", single_quoted(text)));
        }
        None
    }

    fn object(&mut self, map: &Map<String, Value>) {
        let schema = self.schema;
        let got = map.len();
        if let Some(want) = schema.count("minProperties").filter(|want| got < *want) {
            self.fail(format!("minProperties: got {}, want {}", number::count(got), number::count(want)));
        }
        if let Some(want) = schema.count("maxProperties").filter(|want| got > *want) {
            self.fail(format!("maxProperties: got {}, want {}", number::count(got), number::count(want)));
        }
        self.checker.count(schema.keywords.get("required").and_then(Value::as_array).map_or(0, Vec::len));
        match missing(map, schema.keywords.get("required"))[..] {
            [] => {}
            [one] => self.fail(format!("missing property {}", single_quoted(one))),
            ref several => self.fail(format!("missing properties {}", join_quoted(several))),
        }
        if self.quiet && !self.faults.is_empty() {
            return;
        }
        self.dependencies("dependencies", map);
        self.properties(map);
        if let Some(names) = schema.one.get("propertyNames") {
            self.property_names(*names, map);
        }
        self.dependencies("dependentRequired", map);
        for (name, target) in &schema.dependencies {
            if map.contains_key(name) {
                let done = self.check_same_value(*target, "", false);
                self.take(done);
            }
        }
    }

    /// Names that must stand beside others.
    fn dependencies(&mut self, keyword: &str, map: &Map<String, Value>) {
        let entries = self.schema.keywords.get(keyword).and_then(Value::as_object).into_iter().flatten();
        for (name, wanted) in entries.filter(|(name, _)| map.contains_key(*name)) {
            let missing = missing(map, Some(wanted));
            if !missing.is_empty() {
                let names = join_quoted(&missing);
                self.fail(format!("properties {names} required, if {} exists", single_quoted(name)));
            }
        }
    }

    fn properties(&mut self, map: &Map<String, Value>) {
        let schema = self.schema;
        let forbidden = schema.keywords.get("additionalProperties") == Some(&Value::Bool(false));
        let allowed = schema.keywords.contains_key("additionalProperties");
        let mut additional = Vec::new();
        for (name, value) in map {
            if self.quiet && !self.faults.is_empty() {
                return;
            }
            self.checker.count(1 + schema.patterns.len());
            let mut judged = false;
            if let Some(target) = schema.properties.get(name) {
                judged = true;
                self.check_child(*target, value, &Path::Name(self.path, name));
            }
            for (_, target) in schema.patterns.iter().filter(|(pattern, _)| pattern.is_match(name)) {
                judged = true;
                self.check_child(*target, value, &Path::Name(self.path, name));
            }
            if !judged {
                if let Some(target) = schema.one.get("additionalProperties") {
                    self.check_child(*target, value, &Path::Name(self.path, name));
                } else if forbidden {
                    additional.push(name.as_str());
                }
                judged = allowed;
            }
            if judged {
                self.open.properties.remove(name);
            }
        }
        if !additional.is_empty() {
            self.fail(format!("additional properties {} not allowed", join_quoted(&additional)));
        }
    }

    fn property_names(&mut self, target: Id, map: &Map<String, Value>) {
        for name in map.keys() {
            let value = Value::String(name.clone());
            let depth = self.scope.depth + 1;
            let scope = SchemaFrame { schema: target, keyword: "", value: 0, depth, above: None };
            // The name is checked as a document of its own, so its place is the root.
            if let Err(fault) = self.checker.visit(&scope, &value, &Path::Root, self.meta, false, self.quiet)
            {
                let text = format!("invalid propertyName {}", single_quoted(name));
                let causes = match fault.kind {
                    FaultKind::Group => fault.causes,
                    _ => vec![fault],
                };
                self.faults.push(SchemaFault { at: Vec::new(), kind: FaultKind::Text(text), causes });
            }
        }
    }

    fn array(&mut self, items: &[Value]) {
        let schema = self.schema;
        let got = items.len();
        if let Some(want) = schema.count("minItems").filter(|want| got < *want) {
            self.fail(format!("minItems: got {}, want {}", number::count(got), number::count(want)));
        }
        if let Some(want) = schema.count("maxItems").filter(|want| got > *want) {
            self.fail(format!("maxItems: got {}, want {}", number::count(got), number::count(want)));
        }
        if schema.is_set("uniqueItems")
            && let Some((i, j)) = number::first_equal(items)
        {
            self.fail(format!("items at {} and {} are equal", number::count(i), number::count(j)));
        }
        let first = schema.lists.get("items").or_else(|| schema.lists.get("prefixItems"));
        let first: &[Id] = first.map_or(&[], Vec::as_slice);
        for (index, (target, item)) in first.iter().zip(items).enumerate() {
            self.check_child(*target, item, &Path::Index(self.path, index));
        }
        let rest = &items[first.len().min(got)..];
        let each = schema.one.get("items").or_else(|| schema.one.get("additionalItems"));
        if let Some(target) = each {
            // The validator counts these from nought again.
            for (index, item) in rest.iter().enumerate() {
                self.check_child(*target, item, &Path::Index(self.path, index));
            }
        } else if schema.keywords.get("additionalItems") == Some(&Value::Bool(false)) && !rest.is_empty() {
            self.fail(format!("last {} additionalItem(s) not allowed", number::count(rest.len())));
        }
        if let Some(target) = schema.one.get("contains") {
            self.contains(*target, items);
        }
    }

    fn contains(&mut self, target: Id, items: &[Value]) {
        let (mut causes, mut matched) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match self.inner(target, item, &Path::Index(self.path, index)) {
                Ok(()) => matched.push(index),
                Err(fault) => causes.push(fault),
            }
        }
        if self.schema.draft >= Draft::D2020 {
            self.open.items.retain(|index| matched.binary_search(index).is_err());
        }
        let shown: Vec<_> = matched.iter().map(ToString::to_string).collect();
        let shown = format!("matched {} items at {}", number::count(matched.len()), shown.join(" "));
        const REQUIRED: &str = "items required to match contains schema, but";
        match self.schema.count("minContains") {
            None if matched.is_empty() => self.fail_with("no items match contains schema".to_owned(), causes),
            Some(want) if matched.len() < want => {
                let got = if matched.is_empty() { "none matched" } else { &shown };
                self.fail_with(format!("min {} {REQUIRED} {got}", number::count(want)), causes);
            }
            _ => {}
        }
        if let Some(want) = self.schema.count("maxContains").filter(|want| matched.len() > *want) {
            self.fail(format!("max {} {REQUIRED} {shown}", number::count(want)));
        }
    }

    fn string(&mut self, text: &str) {
        let schema = self.schema;
        let got = text.chars().count();
        if let Some(want) = schema.count("minLength").filter(|want| got < *want) {
            self.fail(format!("minLength: got {}, want {}", number::count(got), number::count(want)));
        }
        if let Some(want) = schema.count("maxLength").filter(|want| got > *want) {
            self.fail(format!("maxLength: got {}, want {}", number::count(got), number::count(want)));
        }
        if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            let (got, want) = (single_quoted(text), single_quoted(pattern.text()));
            self.fail(format!("{got} does not match pattern {want}"));
        }
    }

    fn number(&mut self) {
        // In draft 4 the exclusive keywords are flags beside the bounds.
        let bounds = [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)];
        for (keyword, exclusive, lower) in bounds {
            let flag = self.schema.is_set(exclusive);
            let outside = |want: &Value| {
                let order = number::compare(self.value, want);
                if lower { order.is_lt() } else { order.is_gt() }
            };
            let edge = |want: &Value| outside(want) || number::compare(self.value, want).is_eq();
            let bound = |keyword: &str| self.schema.keywords.get(keyword).filter(|it| it.is_number());
            let mut texts = Vec::new();
            let mut fail = |keyword: &str, want: &Value| texts.push(self.bound_text(keyword, want));
            match bound(keyword) {
                Some(want) if flag && edge(want) => fail(exclusive, want),
                Some(want) if !flag && outside(want) => fail(keyword, want),
                _ => {}
            }
            if let Some(want) = bound(exclusive).filter(|want| edge(want)) {
                fail(exclusive, want);
            }
            texts.into_iter().for_each(|text| self.fail(text));
        }
        let of = self.schema.keywords.get("multipleOf").filter(|it| it.as_f64().is_some_and(|of| of > 0.0));
        if let Some(of) = of.filter(|of| !number::is_multiple(self.value, of)) {
            self.fail(self.bound_text("multipleOf", of));
        }
    }

    fn bound_text(&self, keyword: &str, want: &Value) -> String {
        let shown = |value: &Value| number::format_number(value.as_f64().unwrap_or_default());
        format!("{keyword}: got {}, want {}", shown(self.value), shown(want))
    }

    fn references(&mut self) {
        let schemas = self.checker.schemas;
        if let Some(target) = self.schema.recursive_reference {
            let mut found = target;
            if schemas[target].is_set("$recursiveAnchor") {
                for scope in self.scope.chain() {
                    if schemas[schemas[scope.schema].resource].is_set("$recursiveAnchor") {
                        found = scope.schema;
                    }
                }
            }
            let done = self.reference(found, "$recursiveRef");
            self.take(done);
        }
        if let Some((target, anchor)) = &self.schema.dynamic_reference {
            let mut found = *target;
            let named = schemas[found].keywords.get("$dynamicAnchor").and_then(Value::as_str);
            if !anchor.is_empty() && named == Some(anchor) {
                for scope in self.scope.chain() {
                    let anchors = &schemas[schemas[scope.schema].resource].dynamic_anchors;
                    found = anchors.get(anchor).copied().unwrap_or(found);
                }
            }
            let done = self.reference(found, "$dynamicRef");
            self.take(done);
        }
    }

    fn combined(&mut self) {
        let schema = self.schema;
        if let Some(target) = schema.one.get("not")
            && self.check_same_value(*target, "", true).is_ok()
        {
            self.fail("'not' failed".to_owned());
        }
        let list = |keyword: &str| schema.lists.get(keyword).filter(|list| !list.is_empty());
        if let Some(all) = list("allOf") {
            let causes: Vec<_> =
                all.iter().filter_map(|target| self.check_same_value(*target, "", false).err()).collect();
            if !causes.is_empty() {
                self.fail_with("'allOf' failed".to_owned(), causes);
            }
        }
        if let Some(any) = list("anyOf") {
            let (mut causes, mut matched) = (Vec::new(), false);
            for target in any {
                match self.check_same_value(*target, "", false) {
                    Ok(()) => matched = true,
                    Err(fault) => causes.push(fault),
                }
                if matched && self.open.is_empty() {
                    break;
                }
            }
            if !matched {
                self.fail_with("'anyOf' failed".to_owned(), causes);
            }
        }
        if let Some(one) = list("oneOf") {
            self.one_of(one);
        }
        if let Some(condition) = schema.one.get("if") {
            let branch = if self.check_same_value(*condition, "", true).is_ok() { "then" } else { "else" };
            if let Some(target) = schema.one.get(branch) {
                let done = self.check_same_value(*target, "", false);
                self.take(done);
            }
        }
    }

    fn one_of(&mut self, one: &[Id]) {
        let (mut causes, mut first) = (Vec::new(), None);
        for (index, target) in one.iter().enumerate() {
            match (self.check_same_value(*target, "", first.is_some()), first) {
                (Ok(()), None) => first = Some(index),
                (Ok(()), Some(first)) => {
                    let (a, b) = (number::count(first), number::count(index));
                    self.fail(format!("'oneOf' failed, subschemas {a}, {b} matched"));
                    break;
                }
                (Err(fault), None) => causes.push(fault),
                (Err(_), Some(_)) => {}
            }
        }
        if first.is_none() {
            self.fail_with("'oneOf' failed, none matched".to_owned(), causes);
        }
    }

    fn unevaluated(&mut self) {
        if let (Some(target), Value::Object(map)) = (self.schema.one.get("unevaluatedProperties"), self.value)
        {
            for name in std::mem::take(&mut self.open.properties) {
                if let Some(value) = map.get(&name) {
                    self.check_child(*target, value, &Path::Name(self.path, &name));
                }
            }
        }
        if let (Some(target), Value::Array(items)) = (self.schema.one.get("unevaluatedItems"), self.value) {
            for index in std::mem::take(&mut self.open.items) {
                self.check_child(*target, &items[index], &Path::Index(self.path, index));
            }
        }
    }

    /// Checks the same value against another schema.
    fn check_same_value(
        &mut self,
        target: Id,
        keyword: &'static str,
        quiet: bool,
    ) -> Result<(), SchemaFault> {
        let SchemaFrame { value, depth, .. } = *self.scope;
        let scope = SchemaFrame { schema: target, keyword, value, depth: depth + 1, above: Some(self.scope) };
        let (wanted, quiet) = (!self.open.is_empty(), self.quiet || quiet);
        let open = self.checker.visit(&scope, self.value, self.path, self.meta, wanted, quiet)?;
        self.open.merge(&open);
        Ok(())
    }

    fn reference(&mut self, target: Id, keyword: &'static str) -> Result<(), SchemaFault> {
        self.check_same_value(target, keyword, false).map_err(|fault| {
            let causes = match fault.kind {
                FaultKind::Group => fault.causes,
                _ => vec![fault],
            };
            SchemaFault { at: self.path.tokens(), kind: FaultKind::Reference, causes }
        })
    }

    /// Checks a value below this one.
    fn inner(&self, target: Id, value: &Value, path: &Path<'_>) -> Result<(), SchemaFault> {
        let SchemaFrame { value: number, depth, .. } = *self.scope;
        let (value_number, depth) = (number + 1, depth + 1);
        let scope =
            SchemaFrame { schema: target, keyword: "", value: value_number, depth, above: Some(self.scope) };
        self.checker.visit(&scope, value, path, self.meta, false, self.quiet).map(drop)
    }

    fn check_child(&mut self, target: Id, value: &Value, path: &Path<'_>) {
        let done = self.inner(target, value, path);
        self.take(done);
    }

    /// Why a schema must not be followed again.
    fn cycle(&self) -> Option<String> {
        let here = self.scope;
        let same = here.chain().skip(1).take_while(|scope| scope.value == here.value);
        let first = same.into_iter().find(|scope| scope.schema == here.schema)?;
        let schemas = self.checker.schemas;
        let (a, b) = (here.location(schemas), first.location(schemas));
        let url = quote(&self.schema.location());
        Some(format!("both {a} and {b} resolve to {url} causing reference cycle"))
    }

    fn fault(&self, text: impl Into<String>) -> SchemaFault {
        let text = text.into();
        let at = if self.quiet { Vec::new() } else { self.path.tokens() };
        let path: usize = at.iter().map(String::len).sum();
        let bytes = FAULT + at.len() as u64 * TOKEN + (path + text.len()) as u64;
        // What is over the budget ends the check, see `exhausted`.
        self.checker.faults.take(bytes).ok();
        SchemaFault { at, kind: FaultKind::Text(text), causes: Vec::new() }
    }

    fn fail(&mut self, text: String) {
        self.fail_with(text, Vec::new());
    }

    fn fail_with(&mut self, text: String, causes: Vec<SchemaFault>) {
        let fault = SchemaFault { causes, ..self.fault(text) };
        self.faults.push(fault);
    }

    fn take(&mut self, done: Result<(), SchemaFault>) {
        self.faults.extend(done.err());
    }
}

impl<'s> SchemaFrame<'s> {
    /// This scope and those above it.
    fn chain(&'s self) -> impl Iterator<Item = &'s Self> {
        std::iter::successors(Some(self), |scope| scope.above)
    }

    /// The keywords that led here.
    fn location(&self, schemas: &[Schema]) -> String {
        let mut parts = Vec::new();
        let mut scope = self;
        while let Some(above) = scope.above {
            if scope.keyword.is_empty() {
                let (here, before) = (schemas[scope.schema].location(), schemas[above.schema].location());
                parts.push(here.get(before.len()..).unwrap_or_default().to_owned());
            } else {
                parts.push(format!("/{}", pointer_step(scope.keyword)));
            }
            scope = above;
        }
        parts.reverse();
        parts.concat()
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
