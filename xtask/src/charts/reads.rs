//! Which values the templates of a chart read.
//!
//! Templates are followed on all their ways with the paths of values in place of values. What is printed as
//! it is, or goes to a function that nobody follows, counts as read with all that is below it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    rc::Rc,
};

use anyhow::{Context as _, bail};
use tiphys_gotemplate::{BranchKind, Pipeline, Step, TemplateSet, Term};

use super::value_tree::{ANY, ValueTree};

/// What stands for a part of a text that nobody knows.
const UNKNOWN: char = '\0';
/// How many steps the templates of one chart may take.
const MAX_STEPS: usize = 20_000_000;
/// How deep templates may call each other.
const MAX_CALLS: usize = 60;

/// What something in a template may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Abstract {
    /// The values at these paths.
    paths: BTreeSet<Vec<String>>,
    /// A map with these fields.
    fields: BTreeMap<String, Self>,
    /// A list of these.
    items: Option<Box<Self>>,
    /// One of these texts.
    texts: BTreeSet<String>,
    /// Whether changing it leaves the values alone.
    is_copy: bool,
}

impl Abstract {
    /// What templates of a chart see: its values are at a path of those of the chart that it is a part of.
    pub(super) fn context(path: &[String]) -> Self {
        let values = Self { paths: BTreeSet::from([path.to_vec()]), ..Self::default() };
        Self { fields: BTreeMap::from([("Values".to_owned(), values)]), ..Self::default() }
    }

    fn text(text: &str) -> Self {
        Self { texts: BTreeSet::from([text.to_owned()]), ..Self::default() }
    }

    fn list(items: Self) -> Self {
        Self { items: Some(Box::new(items)), ..Self::default() }
    }

    fn or(mut self, other: Self) -> Self {
        self.paths.extend(other.paths);
        self.texts.extend(other.texts);
        for (key, theirs) in other.fields {
            let ours = self.fields.remove(&key).unwrap_or_default();
            self.fields.insert(key, ours.or(theirs));
        }
        self.items = match (self.items, other.items) {
            (Some(ours), Some(theirs)) => Some(Box::new(ours.or(*theirs))),
            (ours, theirs) => ours.or(theirs),
        };
        self.is_copy &= other.is_copy;
        self
    }

    fn union(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().reduce(Self::or).unwrap_or_default()
    }

    /// The texts that it is for sure one of.
    fn known_texts(&self) -> Option<&BTreeSet<String>> {
        let is_known = !self.texts.is_empty() && self.texts.iter().all(|text| !text.contains(UNKNOWN));
        (is_known && self.paths.is_empty()).then_some(&self.texts)
    }

    fn add_at(&mut self, path: &[String], value: Self) {
        match path.split_first() {
            None => *self = std::mem::take(self).or(value),
            Some((first, rest)) => self.fields.entry(first.clone()).or_default().add_at(rest, value),
        }
    }
}

/// Variables, those of inner blocks last.
type Scope = Vec<HashMap<String, Abstract>>;

/// Follows the templates of a chart.
pub(super) struct Reader {
    templates: HashMap<String, Rc<Vec<Step>>>,
    seen: HashSet<(String, Abstract)>,
    steps: usize,
    calls: usize,
    /// What was read.
    pub tree: ValueTree,
}

impl Reader {
    /// A reader of parsed templates.
    pub(super) fn new(set: &TemplateSet) -> Self {
        let outline = |name: &str| set.get(name).map(|tree| Rc::new(tree.outline()));
        let names = set.names();
        let templates = names.iter().filter_map(|name| Some((name.to_string(), outline(name)?))).collect();
        Self { templates, seen: HashSet::new(), steps: 0, calls: 0, tree: ValueTree::default() }
    }

    /// Follows a template.
    ///
    /// # Errors
    /// It takes too many steps.
    pub(super) fn follow(&mut self, name: &str, dot: &Abstract) -> anyhow::Result<()> {
        // What calls a template that is not there renders nothing.
        let Some(steps) = self.templates.get(name).cloned() else { return Ok(()) };
        // A template that calls itself so often has read all that it reads.
        if self.calls >= MAX_CALLS {
            return Ok(());
        }
        if !self.seen.insert((name.to_owned(), dot.clone())) {
            return Ok(());
        }
        self.calls += 1;
        let mut scope = vec![HashMap::from([("$".to_owned(), dot.clone())])];
        self.list(&steps, dot, &mut scope).with_context(|| name.to_owned())?;
        self.calls -= 1;
        Ok(())
    }

    fn list(&mut self, steps: &[Step], dot: &Abstract, scope: &mut Scope) -> anyhow::Result<()> {
        scope.push(HashMap::new());
        for step in steps {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                bail!("takes too many steps");
            }
            self.step(step, dot, scope)?;
        }
        scope.pop();
        Ok(())
    }

    fn step(&mut self, step: &Step, dot: &Abstract, scope: &mut Scope) -> anyhow::Result<()> {
        match step {
            Step::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot, scope)?;
                if pipeline.variables.is_empty() {
                    self.print(&value);
                }
                bind(pipeline, &[&value], scope);
            }
            Step::Call { name, argument } => {
                let given = match argument {
                    Some(pipeline) => self.pipeline(pipeline, dot, scope)?,
                    None => Abstract::default(),
                };
                self.follow(name, &given)?;
            }
            Step::Branch { kind, pipeline, body, otherwise } => {
                scope.push(HashMap::new());
                let value = self.pipeline(pipeline, dot, scope)?;
                match kind {
                    BranchKind::If => {
                        bind(pipeline, &[&value], scope);
                        self.list(body, dot, scope)?;
                    }
                    BranchKind::With => {
                        bind(pipeline, &[&value], scope);
                        self.list(body, &value, scope)?;
                    }
                    BranchKind::Range => {
                        let (key, element) = (keys_of(&value), self.elements(&value));
                        // What one round assigns, the next one may read.
                        for _ in 0..2 {
                            match pipeline.variables.len() {
                                1 => bind(pipeline, &[&element], scope),
                                _ => bind(pipeline, &[&key, &element], scope),
                            }
                            self.list(body, &element, scope)?;
                        }
                    }
                }
                self.list(otherwise, dot, scope)?;
                scope.pop();
            }
        }
        Ok(())
    }

    fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        dot: &Abstract,
        scope: &mut Scope,
    ) -> anyhow::Result<Abstract> {
        let mut before = None;
        for command in &pipeline.commands {
            before = Some(self.command(command, before, dot, scope)?);
        }
        Ok(before.unwrap_or_default())
    }

    fn command(
        &mut self,
        terms: &[Term],
        before: Option<Abstract>,
        dot: &Abstract,
        scope: &mut Scope,
    ) -> anyhow::Result<Abstract> {
        let Some((first, rest)) = terms.split_first() else { return Ok(Abstract::default()) };
        let mut args = Vec::new();
        for term in rest {
            args.push(self.term(term, dot, scope)?);
        }
        args.extend(before);
        if let Term::Function(name) = first {
            return self.call(name, args, rest, scope);
        }
        let value = self.term(first, dot, scope)?;
        // A method, such as `.Capabilities.APIVersions.Has`.
        args.iter().for_each(|arg| self.print(arg));
        Ok(value)
    }

    fn term(&mut self, term: &Term, dot: &Abstract, scope: &mut Scope) -> anyhow::Result<Abstract> {
        let (base, path) = match term {
            Term::Dot => return Ok(dot.clone()),
            Term::Constant(text) | Term::Text(text) => return Ok(Abstract::text(text)),
            Term::Function(name) => return self.call(name, Vec::new(), &[], scope),
            Term::Field(path) => (dot.clone(), path),
            Term::Variable(name, path) => {
                let found = scope.iter().rev().find_map(|block| block.get(name.as_str()));
                (found.cloned().unwrap_or_default(), path)
            }
            Term::Nested(pipeline, path) => (self.pipeline(pipeline, dot, scope)?, path),
        };
        Ok(path.iter().fold(base, |value, name| self.field(&value, name)))
    }

    fn field(&mut self, value: &Abstract, name: &str) -> Abstract {
        let mut found = value.fields.get(name).cloned().unwrap_or_default();
        // The place in a list.
        let is_place = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_place {
            found = value.items.iter().fold(found, |found, items| found.or((**items).clone()));
        }
        let name = if is_place { ANY } else { name };
        for path in &value.paths {
            let below = [path.as_slice(), &[name.to_owned()]].concat();
            self.tree.read(&below);
            found.paths.insert(below);
        }
        found.is_copy |= value.is_copy;
        found
    }

    /// What a map or list may hold.
    fn elements(&mut self, value: &Abstract) -> Abstract {
        let own = value.fields.values().cloned().chain(value.items.as_deref().cloned());
        let mut found = Abstract::union(own);
        for path in &value.paths {
            if path.is_empty() {
                // A key that is put together: what it may be is read by its name elsewhere.
                continue;
            }
            let below = [path.as_slice(), &[ANY.to_owned()]].concat();
            self.tree.read(&below);
            found.paths.insert(below);
        }
        found
    }

    /// The field that a computed key names.
    fn field_by(&mut self, value: &Abstract, key: &Abstract) -> Abstract {
        match key.known_texts() {
            Some(texts) => {
                let found: Vec<Abstract> = texts.iter().map(|text| self.field(value, text)).collect();
                Abstract::union(found)
            }
            None => self.elements(value),
        }
    }

    /// Notes that something is read with all that is below it.
    fn print(&mut self, value: &Abstract) {
        // All values at once go into checksums, or to helpers that pick from them.
        value.paths.iter().filter(|path| !path.is_empty()).for_each(|path| self.tree.read_whole(path));
        value.fields.values().for_each(|field| self.print(field));
        value.items.iter().for_each(|items| self.print(items));
    }

    /// Notes that nobody knows what is read of something.
    fn lose(&mut self, value: &Abstract) {
        value.paths.iter().for_each(|path| self.tree.read_whole(path));
        value.fields.values().for_each(|field| self.lose(field));
        value.items.iter().for_each(|items| self.lose(items));
    }

    fn call(
        &mut self,
        name: &str,
        args: Vec<Abstract>,
        terms: &[Term],
        scope: &mut Scope,
    ) -> anyhow::Result<Abstract> {
        let plain =
            name.strip_prefix("must").filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        let plain = plain.map_or_else(|| name.to_owned(), |rest| rest[..1].to_ascii_lowercase() + &rest[1..]);
        Ok(match (plain.as_str(), args.as_slice()) {
            ("include", [called, given, ..]) => {
                self.include(called, given)?;
                Abstract::default()
            }
            ("tpl", [text, _]) => {
                self.print(text);
                Abstract::default()
            }
            ("dict", args) => {
                let mut made = Abstract::default();
                for pair in args.chunks(2) {
                    let [key, value] = pair else { continue };
                    match key.known_texts() {
                        Some(texts) => texts
                            .iter()
                            .for_each(|text| made.add_at(std::slice::from_ref(text), value.clone())),
                        None => self.print(value),
                    }
                }
                made
            }
            ("list" | "tuple", _) => {
                let fields = args.into_iter().enumerate().map(|(at, arg)| (at.to_string(), arg)).collect();
                Abstract { fields, ..Abstract::default() }
            }
            ("append" | "prepend" | "push", [list, item]) => {
                let items = self.elements(list);
                Abstract::list(items.or(item.clone()))
            }
            ("concat", lists) => {
                let items: Vec<Abstract> = lists.iter().map(|list| self.elements(list)).collect();
                Abstract::list(Abstract::union(items))
            }
            ("first" | "last", [list]) => self.elements(list),
            (
                "without" | "rest" | "initial" | "slice" | "uniq" | "compact" | "reverse" | "omit" | "pick",
                [list, ..],
            ) => list.clone(),
            ("default" | "coalesce" | "and" | "or" | "ternary", _) => Abstract::union(args),
            ("required", [_, value]) => value.clone(),
            ("deepCopy", [value]) => Abstract { is_copy: true, ..value.clone() },
            ("merge" | "mergeOverwrite", [into, others @ ..]) => {
                // What is changed in place is read elsewhere under its own path.
                if !into.paths.is_empty() && !into.is_copy {
                    others.iter().for_each(|other| self.print(other));
                }
                let merged = Abstract::union(args.clone());
                self.assign(terms.first(), &[], &merged, scope);
                merged
            }
            ("set", [map, key, value]) => {
                let is_variable = matches!(terms.first(), Some(Term::Variable(..)));
                match key.known_texts().filter(|_| is_variable) {
                    Some(texts) => {
                        for text in texts.clone() {
                            self.assign(terms.first(), &[text], value, scope);
                        }
                    }
                    None => self.print(value),
                }
                if !map.paths.is_empty() {
                    self.print(value);
                }
                let mut changed = map.clone();
                for text in key.known_texts().into_iter().flatten() {
                    changed.add_at(std::slice::from_ref(text), value.clone());
                }
                changed
            }
            ("unset", [map, _]) => map.clone(),
            ("get", [map, key]) => self.field_by(map, key),
            ("hasKey", [map, key]) => {
                self.field_by(map, key);
                Abstract::default()
            }
            ("index", [from, keys @ ..]) => {
                keys.iter().fold(from.clone(), |value, key| self.field_by(&value, key))
            }
            ("dig", [keys @ .., default, map]) => {
                let found = keys.iter().fold(map.clone(), |value, key| self.field_by(&value, key));
                found.or(default.clone())
            }
            ("pluck", [key, maps @ ..]) => {
                let found: Vec<Abstract> = maps.iter().map(|map| self.field_by(map, key)).collect();
                Abstract::list(Abstract::union(found))
            }
            ("values", maps) => {
                let found: Vec<Abstract> = maps.iter().map(|map| self.elements(map)).collect();
                Abstract::list(Abstract::union(found))
            }
            ("keys", maps) => {
                let keys = Abstract::union(maps.iter().map(keys_of).collect::<Vec<_>>());
                for map in maps {
                    let below = self.elements(map);
                    self.print(&below);
                }
                Abstract::list(keys)
            }
            ("sortAlpha", [list]) if list.paths.is_empty() => list.clone(),
            ("print" | "printf" | "cat", args) => {
                args.iter().for_each(|arg| self.print(arg));
                Abstract { texts: texts_of(&plain, args), ..Abstract::default() }
            }
            (
                "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "not" | "empty" | "len" | "kindIs" | "typeIs"
                | "kindOf" | "typeOf" | "kindIsLike" | "typeIsLike" | "fail" | "has" | "lookup",
                _,
            ) => Abstract::default(),
            _ => {
                args.iter().for_each(|arg| self.print(arg));
                Abstract::default()
            }
        })
    }

    /// Follows the templates that a name may mean.
    fn include(&mut self, called: &Abstract, given: &Abstract) -> anyhow::Result<()> {
        if called.texts.is_empty() || called.texts.iter().all(|text| text.chars().all(|c| c == UNKNOWN)) {
            self.lose(given);
            return Ok(());
        }
        for text in &called.texts {
            let pieces: Vec<&str> = text.split(UNKNOWN).collect();
            let [start, .., end] = pieces.as_slice() else {
                self.follow(text, given)?;
                continue;
            };
            let is_meant = |name: &&String| name.starts_with(start) && name.ends_with(end);
            let meant: Vec<String> = self.templates.keys().filter(is_meant).cloned().collect();
            for name in meant {
                self.follow(&name, given)?;
            }
        }
        Ok(())
    }

    /// Adds to what a variable may be.
    fn assign(&mut self, target: Option<&Term>, below: &[String], value: &Abstract, scope: &mut Scope) {
        let Some(Term::Variable(name, path)) = target else { return };
        let path: Vec<String> =
            path.iter().map(|step| step.to_string()).chain(below.iter().cloned()).collect();
        if let Some(known) = scope.iter_mut().rev().find_map(|block| block.get_mut(name.as_str())) {
            known.add_at(&path, value.clone());
        }
    }
}

/// Gives variables their values.
fn bind(pipeline: &Pipeline, values: &[&Abstract], scope: &mut Scope) {
    for (name, value) in pipeline.variables.iter().zip(values) {
        let known = scope.iter_mut().rev().find_map(|block| block.get_mut(name.as_str()));
        match known.filter(|_| pipeline.is_assignment) {
            Some(known) => *known = std::mem::take(known).or((*value).clone()),
            None => {
                scope.last_mut().map(|block| block.insert(name.to_string(), (*value).clone()));
            }
        }
    }
}

/// The keys of a map, if it has no others than those that a template gave it.
fn keys_of(value: &Abstract) -> Abstract {
    let texts = match value.paths.is_empty() && value.items.is_none() {
        true => value.fields.keys().cloned().collect(),
        false => BTreeSet::new(),
    };
    Abstract { texts, ..Abstract::default() }
}

/// The texts that a call makes, with a mark for what is not known of them.
fn texts_of(name: &str, args: &[Abstract]) -> BTreeSet<String> {
    const MOST: usize = 64;
    let unknown = || BTreeSet::from([UNKNOWN.to_string()]);
    let texts = |arg: &Abstract| arg.known_texts().cloned().unwrap_or_else(unknown);
    let mut found = BTreeSet::from([String::new()]);
    let add = |found: &BTreeSet<String>, more: &BTreeSet<String>| -> BTreeSet<String> {
        found
            .iter()
            .flat_map(|start| more.iter().map(move |end| format!("{start}{end}")))
            .take(MOST)
            .collect()
    };
    if name != "printf" {
        let glue = BTreeSet::from([if name == "cat" { " ".to_owned() } else { String::new() }]);
        for (at, arg) in args.iter().enumerate() {
            found = if at > 0 { add(&found, &glue) } else { found };
            found = add(&found, &texts(arg));
        }
        return found;
    }
    let Some((format, rest)) = args.split_first() else { return unknown() };
    let Some(formats) = format.known_texts() else { return unknown() };
    let mut rest = rest.iter();
    for format in formats {
        let mut pieces = format.split('%');
        found = add(&found, &BTreeSet::from([pieces.next().unwrap_or_default().to_owned()]));
        for piece in pieces {
            let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(piece.len(), |at| at + 1);
            let verb = &piece[..end];
            let filled = match rest.next() {
                Some(arg) if matches!(verb, "s" | "v") => texts(arg),
                _ => unknown(),
            };
            found = add(&found, &filled);
            found = add(&found, &BTreeSet::from([piece[end..].to_owned()]));
        }
    }
    found
}
