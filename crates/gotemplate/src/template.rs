//! Sets of parsed templates.

use crate::parse::{Draft, Nameless, Parsing, Tree};
use crate::{Context, Env, ExecError, Functions, ParseError, Tracer, Value};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::thread;

/// What reading a key that a map lacks gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value: fields of it are no value either. Go's default.
    #[default]
    NoValue,
    /// The zero value of the element type: nil for `interface {}`, whose fields are an error. Helm's choice.
    Zero,
    /// An error. Helm's choice with `--strict`.
    Error,
}

/// Templates that can call each other, parsed once and executed any number of times, also in parallel.
#[derive(Clone)]
pub struct TemplateSet {
    pub(crate) functions: Arc<Functions>,
    pub(crate) missing_key: MissingKey,
    /// Name of the template that Go calls the associated one, for error texts.
    pub(crate) root_name: SmolStr,
    base: Option<Arc<TemplateSet>>,
    trees: FxHashMap<SmolStr, Arc<Tree>>,
}

impl TemplateSet {
    /// An empty set whose templates may call `functions`.
    pub fn new(functions: Arc<Functions>) -> Self {
        Self {
            functions,
            missing_key: MissingKey::default(),
            root_name: SmolStr::default(),
            base: None,
            trees: FxHashMap::default(),
        }
    }

    /// Whether the set lies on top of another one.
    pub(crate) fn is_layer(&self) -> bool {
        self.base.is_some()
    }

    /// Sets what reading a missing key gives.
    pub fn with_missing_key(mut self, missing_key: MissingKey) -> Self {
        self.missing_key = missing_key;
        self
    }

    /// Sets the name that Go's root template has; it occurs in the text of the error for a missing template.
    pub fn with_root_name(mut self, name: &str) -> Self {
        self.root_name = SmolStr::new(name);
        self
    }

    /// An empty set on top of another one: it sees the templates below and its own definitions win.
    pub fn layer(base: Arc<TemplateSet>) -> Self {
        Self {
            functions: base.functions.clone(),
            missing_key: base.missing_key,
            root_name: base.root_name.clone(),
            base: Some(base),
            trees: FxHashMap::default(),
        }
    }

    /// Parses a text; it becomes the template `name`, and each `define` and `block` in it a template of its
    /// own. As in Go a later definition replaces an earlier one unless it is empty.
    ///
    /// # Errors
    /// Text that Go's parser refuses, with its words. The set is then unchanged.
    pub fn parse(&mut self, name: &str, text: &str) -> Result<(), ParseError> {
        let mut parsing = Parsing::new(self.functions.clone());
        let draft = parsing.parse(name, text.into())?;
        for tree in draft.trees(&parsing.finish()) {
            self.add(Arc::new(tree));
        }
        Ok(())
    }

    /// Parses texts as [`TemplateSet::parse`] does one after the other, on several threads if there is much
    /// to parse.
    ///
    /// # Errors
    /// The error of the first text that Go's parser refuses. The set then holds those before it.
    pub fn parse_all(&mut self, texts: &[Text<'_>]) -> Result<(), ParseError> {
        for trees in parse_each(texts, &self.functions) {
            trees?.into_iter().for_each(|tree| self.add(Arc::new(tree)));
        }
        Ok(())
    }

    fn add(&mut self, tree: Arc<Tree>) {
        if tree.is_empty() && self.get(&tree.name).is_some() {
            return;
        }
        self.trees.insert(tree.name.clone(), tree);
    }

    /// The template of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tree>> {
        match self.trees.get(name) {
            Some(tree) => Some(tree),
            None => self.base.as_ref()?.get(name),
        }
    }

    /// The names of all templates, sorted.
    pub fn names(&self) -> Vec<SmolStr> {
        let mut names = self.base.as_ref().map(|base| base.names()).unwrap_or_default();
        names.extend(self.trees.keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    /// Executes a template.
    ///
    /// # Errors
    /// What Go's `ExecuteTemplate` returns, and limits of `env`.
    pub fn execute<'e>(
        self: &Arc<Self>,
        name: &str,
        data: Value,
        env: &'e Env<'e>,
        tracer: Option<&'e mut (dyn Tracer + 'e)>,
    ) -> Result<String, ExecError> {
        Context::new(self.clone(), env, tracer).execute_whole(name, data)
    }
}

/// A text to parse.
pub struct Text<'t> {
    name: &'t str,
    content: Mutex<Option<TextContent>>,
}

/// What is known of a text.
pub enum TextContent {
    /// The text itself.
    Unparsed(Arc<str>),
    /// What was made of it before its name was known.
    Parsed(Nameless),
}

impl<'t> Text<'t> {
    /// What the template is called, and its text.
    pub fn new(name: &'t str, content: TextContent) -> Self {
        Self { name, content: Mutex::new(Some(content)) }
    }

    fn parse(&self, parsing: &mut Parsing) -> Result<Attempt, ParseError> {
        let content = self.content.lock().take();
        let text = match content {
            Some(TextContent::Parsed(parsed)) => match parsed.into_trees(self.name) {
                Ok(trees) => return Ok(Attempt::Trees(trees)),
                Err(text) => text,
            },
            Some(TextContent::Unparsed(text)) => text,
            None => Arc::default(),
        };
        parsing.parse(self.name, text).map(Attempt::Draft)
    }

    /// Bytes that are still to be parsed.
    fn unparsed(&self) -> usize {
        match &*self.content.lock() {
            Some(TextContent::Unparsed(text)) => text.len(),
            _ => 0,
        }
    }
}

/// What came of a text.
enum Attempt {
    /// The trees that had been made of it before.
    Trees(Vec<Tree>),
    Draft(Draft),
}

/// Bytes of text that are worth a thread.
const WORTH_A_THREAD: usize = 128 << 10;
/// More threads than this wait for each other's memory.
const MAX_THREADS: usize = 4;

type Trees = Result<Vec<Tree>, ParseError>;

/// Parses every text; each thread takes the next one that nobody has taken.
fn parse_each(texts: &[Text<'_>], functions: &Arc<Functions>) -> Vec<Trees> {
    let bytes: usize = texts.iter().map(Text::unparsed).sum();
    let wanted = (bytes / WORTH_A_THREAD).min(MAX_THREADS);
    // The number of processors is asked for only if it matters: the answer takes a few files.
    let threads =
        if wanted < 2 { 1 } else { wanted.min(thread::available_parallelism().map_or(1, usize::from)) };
    let next = AtomicUsize::new(0);
    let take = || {
        let mut parsing = Parsing::new(functions.clone());
        let mut done = Vec::new();
        while let Some((at, text)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, texts.get(at)?)))
        {
            done.push((at, text.parse(&mut parsing)));
        }
        let parts = parsing.finish();
        let trees = |attempt| match attempt {
            Attempt::Trees(trees) => trees,
            Attempt::Draft(draft) => draft.trees(&parts),
        };
        done.into_iter().map(|(at, attempt)| (at, attempt.map(trees))).collect::<Vec<_>>()
    };
    let mut parsed = match threads {
        1 => take(),
        _ => thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, take);
            let others: Vec<_> = (1..threads).map(start).collect();
            let mut parsed = take();
            for other in others.into_iter().flatten() {
                parsed.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            parsed
        }),
    };
    parsed.sort_unstable_by_key(|(at, _)| *at);
    parsed.into_iter().map(|(_, trees)| trees).collect()
}
