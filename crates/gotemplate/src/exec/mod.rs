//! Execution. One [`Context`] lives for one render.

mod call;
mod eval;
mod field;
mod limits;
mod walk;

use crate::memo::{Attempt, Memo};
use crate::parse::{Parts, Quoted, Tree};
use crate::{Clock, Env, ExecError, Functions, Limit, OriginId, Part, Site, TemplateSet, Tracer, Value};
use jiff::Timestamp;
use smol_str::SmolStr;
use std::cell::Cell;
use std::sync::Arc;
use tiphys_gocompat::strconv;

/// Stack left below which a new segment is made, and its size.
const RED_ZONE: usize = 128 << 10;
const STACK: usize = 2 << 20;
/// How deep control structures, parentheses and templates may nest before anybody asks how much stack is
/// left: to answer that for the first time the system reads a file.
const SHALLOW: usize = 10;

type Run<T> = Result<T, Box<ExecError>>;

/// A value where it stands: whether its static type is `interface {}` (which error texts show), and its
/// origin.
#[derive(Clone, Default)]
struct Slot {
    value: Value,
    boxed: bool,
    origin: OriginId,
}

impl Slot {
    fn new(value: Value) -> Self {
        Self { value, boxed: false, origin: 0 }
    }

    /// The name of the static type.
    fn type_name(&self) -> std::borrow::Cow<'static, str> {
        if self.boxed { std::borrow::Cow::Borrowed("interface {}") } else { self.value.type_name() }
    }
}

struct Variable {
    id: u32,
    slot: Slot,
}

/// One execution of one template.
struct Frame<'t> {
    tree: &'t Tree,
    /// What the tree consists of.
    parts: &'t Parts,
    functions: &'t Functions,
    /// Where the frame's variables begin.
    base: usize,
    /// The node that errors point at.
    node: Cell<Quoted<'t>>,
    /// Where the action begins that was evaluated last, in which that node is.
    start: Cell<u32>,
}

impl<'t> Frame<'t> {
    fn set_node(&self, node: Quoted<'t>) {
        self.node.set(node);
    }

    /// Where a node of the current action stands in the text.
    fn pos(&self, node: Quoted<'_>) -> u32 {
        node.pos(&self.tree.source, self.start.get())
    }

    /// The text of a node of the current action as error messages show it.
    fn quote(&self, node: Quoted<'_>) -> String {
        self.tree.quote(node, self.start.get())
    }

    /// Does something whose faults name a node; later ones name what was evaluated last.
    fn meanwhile<R>(&self, node: Quoted<'t>, run: impl FnOnce() -> Run<R>) -> Run<R> {
        let last = self.node.replace(node);
        let result = run()?;
        self.node.set(last);
        Ok(result)
    }
}

/// A running render, as template functions see it.
pub struct Context<'e> {
    set: Arc<TemplateSet>,
    env: &'e Env<'e>,
    tracer: Option<&'e mut (dyn Tracer + 'e)>,
    out: String,
    /// Bytes written so far, in all buffers.
    written: usize,
    variables: Vec<Variable>,
    /// Origins read since the outermost action began; only with a tracer.
    reads: Vec<OriginId>,
    /// Origins of the arguments of the function being called; only with a tracer.
    arg_origins: Vec<OriginId>,
    /// Origin of what the function being called returns, if it says so; only with a tracer.
    result_origin: OriginId,
    /// What that function has read to find it.
    result_reads: Vec<OriginId>,
    /// How much had been read when the pipeline began whose command is about to run.
    pipeline_mark: usize,
    steps: u64,
    calls: u64,
    depth: usize,
    /// Control structures, parentheses and templates that are open.
    nesting: usize,
    /// Identifies the chain of templates being executed.
    chain: u64,
    /// The function call being executed.
    call: Call,
    /// Buffers for output, to be used again.
    spare_buffers: Vec<String>,
    /// Vectors for arguments, to be used again.
    spare: Vec<Vec<Value>>,
}

/// Where a function is being called.
#[derive(Clone, Default)]
struct Call {
    tree: Option<Arc<Tree>>,
    pos: u32,
}

impl<'e> Context<'e> {
    pub(crate) fn new(
        set: Arc<TemplateSet>,
        env: &'e Env<'e>,
        tracer: Option<&'e mut (dyn Tracer + 'e)>,
    ) -> Self {
        Self {
            set,
            env,
            tracer,
            out: String::new(),
            written: 0,
            variables: Vec::new(),
            reads: Vec::new(),
            arg_origins: Vec::new(),
            result_origin: 0,
            result_reads: Vec::new(),
            pipeline_mark: 0,
            steps: 0,
            calls: 0,
            depth: 0,
            nesting: 0,
            chain: 0,
            call: Call::default(),
            spare_buffers: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Executes a template of the current set and returns its output, as Helm's `include` does.
    ///
    /// # Errors
    /// What Go's `ExecuteTemplate` returns, and limits.
    pub fn execute(&mut self, name: &str, data: Value) -> Result<SmolStr, ExecError> {
        let tree = self.template(name)?;
        let attempt = match self.recall(&tree, &data) {
            Ok(output) => return Ok(output),
            Err(attempt) => attempt,
        };
        let buffer = self.spare_buffers.pop().unwrap_or_default();
        let outer = std::mem::replace(&mut self.out, buffer);
        let result = self.run(&tree, data);
        let mut buffer = std::mem::replace(&mut self.out, outer);
        let output = result.map(|()| SmolStr::new(&buffer));
        buffer.clear();
        self.spare_buffers.push(buffer);
        if let (Some(attempt), Ok(output)) = (attempt, &output) {
            self.env.memo.keep(attempt, output);
        }
        output
    }

    /// What a template has written for the same data, or else what is needed to keep what it is going to
    /// write, if that may be kept.
    fn recall(&self, tree: &Arc<Tree>, data: &Value) -> Result<SmolStr, Option<Attempt>> {
        let Value::Map(map) = data else { return Err(None) };
        // A layer's templates end before others may be given their address.
        if self.depth == 0 || self.tracer.is_some() || self.set.is_layer() || !map.is_shared() {
            return Err(None);
        }
        self.env.memo.recall(Arc::as_ptr(tree) as usize, map).map_err(Some)
    }

    /// What was found out in these surroundings before.
    pub(crate) fn memo(&self) -> &'e Memo {
        &self.env.memo
    }

    /// Builds a text in a buffer that is used again.
    pub(crate) fn build(&mut self, write: impl FnOnce(&mut String)) -> SmolStr {
        let mut buffer = self.spare_buffers.pop().unwrap_or_default();
        write(&mut buffer);
        let text = SmolStr::new(&buffer);
        buffer.clear();
        self.spare_buffers.push(buffer);
        text
    }

    /// Executes the outermost template.
    pub(crate) fn execute_whole(mut self, name: &str, data: Value) -> Result<String, ExecError> {
        // Most templates are about as long as what they render to.
        let tree = self.template(name)?;
        self.out.reserve(tree.text().len());
        self.run(&tree, data)?;
        Ok(self.out)
    }

    /// The template of that name.
    fn template(&self, name: &str) -> Result<Arc<Tree>, ExecError> {
        self.set.get(name).cloned().ok_or_else(|| {
            let (name, root) = (strconv::quote(name), strconv::quote(&self.set.root_name));
            ExecError::new(format!("template: no template {name} associated with template {root}"))
        })
    }

    /// Executes a template into the current buffer, which is empty.
    fn run(&mut self, tree: &Arc<Tree>, data: Value) -> Result<(), ExecError> {
        if self.depth >= self.env.limits.depth {
            let (name, depth) = (tree.name(), self.env.limits.depth);
            let message = format!("template: {name}: exceeded maximum template depth ({depth})");
            return Err(ExecError { limit: Some(Limit::Depth), ..ExecError::new(message) });
        }
        self.execute_tree(tree, Slot::new(data), true).map_err(|error| *error)
    }

    /// Executes a text as a template in another set, as Helm's `tpl` does with a layer over
    /// [`Context::templates`]. The text is the first argument of the function being called.
    ///
    /// # Errors
    /// See [`Context::execute`].
    pub fn execute_text(
        &mut self,
        set: Arc<TemplateSet>,
        name: &str,
        text: &str,
        data: Value,
    ) -> Result<SmolStr, ExecError> {
        let (mut parts, whole) = (self.text_parts(text, 0), self.arg_origin(0));
        if parts.is_empty() && whole != 0 {
            parts.push((0..text.len(), whole));
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.enter_text(name, parts);
        }
        let outer = std::mem::replace(&mut self.set, set);
        let result = self.execute(name, data);
        self.set = outer;
        if let Some(tracer) = &mut self.tracer {
            tracer.leave_text();
        }
        result
    }

    /// The set of templates being executed.
    pub fn templates(&self) -> &Arc<TemplateSet> {
        &self.set
    }

    /// The caller's data, if it is of that type.
    pub fn user<T: 'static>(&self) -> Option<&'e T> {
        self.env.user.downcast_ref()
    }

    /// What the monotonic clock shows, in nanoseconds, if the time is a real one.
    pub(crate) fn monotonic(&self) -> Option<i64> {
        self.env.memo.unsteady();
        self.env.clock.monotonic()
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.env.memo.unsteady();
        self.env.clock.now()
    }

    /// The clock of the render, for methods of values.
    fn clock(&self) -> &'e dyn Clock {
        self.env.clock
    }

    /// The zone that Go calls `Local`.
    pub fn zone(&self) -> jiff::tz::TimeZone {
        self.env.clock.zone()
    }

    /// Fills a buffer with random bytes for the call being executed.
    pub fn random(&self, buffer: &mut [u8]) {
        self.env.memo.unsteady();
        let here = self.call.tree.as_ref().map_or(0, |tree| tree.hash);
        self.env.entropy.fill(mix(mix(self.chain, here), u64::from(self.call.pos)), buffer);
    }

    /// Whether [`Context::random`] gives the same bytes again in the next render.
    pub fn deterministic(&self) -> bool {
        self.env.entropy.deterministic()
    }

    /// Whether keys and hashes of passwords only have to be of the right form.
    pub fn mocks_secrets(&self) -> bool {
        self.env.entropy.mocks_secrets()
    }

    /// Where the function being executed was called, if it was called from a template.
    pub fn call_site(&self) -> Option<Site<'_>> {
        self.call.tree.as_ref().map(|tree| site(tree, self.call.pos))
    }

    /// Whether origins are being traced.
    pub fn is_traced(&self) -> bool {
        self.tracer.is_some()
    }

    /// Where the argument at an index came from; `0` if unknown.
    pub fn arg_origin(&self, index: usize) -> OriginId {
        self.arg_origins.get(index).copied().unwrap_or(0)
    }

    /// Says that the result of the function being called is an item of an argument. What the other arguments
    /// named was read to find it. Nothing is said if the item's origin is unknown.
    pub(crate) fn returns(&mut self, item: OriginId, of: usize) {
        if self.tracer.is_none() || item == 0 {
            return;
        }
        let others = self.arg_origins.iter().enumerate().filter(|(at, origin)| *at != of && **origin != 0);
        self.result_reads = others.map(|(_, origin)| *origin).collect();
        self.result_origin = item;
    }

    /// Says that those arguments made the result of the function being called, and no others.
    pub(crate) fn decided_by(&mut self, arguments: impl IntoIterator<Item = usize>) {
        if self.tracer.is_some() {
            let ids: Vec<OriginId> = arguments.into_iter().map(|at| self.arg_origin(at)).collect();
            self.result_origin = self.union(&ids);
        }
    }

    /// The origin of a key that a table does not have.
    fn missing(&mut self, table: OriginId, key: &str) -> OriginId {
        match &mut self.tracer {
            Some(tracer) if table != 0 => tracer.missing(table, key),
            _ => table,
        }
    }

    /// The origin of an argument as one that what is made of it can keep: unlike `0` that of what no value
    /// made does not give way to the origin of what it is put into.
    pub(crate) fn kept_origin(&mut self, index: usize) -> OriginId {
        let origin = self.arg_origin(index);
        self.union(&[origin])
    }

    /// One origin for several, some of which may be unknown; of none at all it is that of what no value made.
    /// `0` if nothing is traced.
    pub fn union(&mut self, ids: &[OriginId]) -> OriginId {
        let Some(tracer) = &mut self.tracer else { return 0 };
        let known: Vec<OriginId> = ids.iter().copied().filter(|id| *id != 0).collect();
        match known.as_slice() {
            [only] => *only,
            many => tracer.union(many),
        }
    }

    /// The origin of a table that was read from a text, of the origins of its values; `0` if nothing is
    /// traced.
    pub fn table_origin(&mut self, entries: &[(&str, OriginId)]) -> OriginId {
        self.tracer.as_mut().map_or(0, |tracer| tracer.table(entries))
    }

    /// The origin of a list that was read from a text, of the origins of its items; `0` if nothing is traced.
    pub fn list_origin(&mut self, items: &[OriginId]) -> OriginId {
        self.tracer.as_mut().map_or(0, |tracer| tracer.list(items))
    }

    /// Notes where the parts of a text came from that the function being called has made.
    pub fn record_origins(&mut self, text: &str, parts: &[Part]) {
        if let (Some(tracer), Some(tree)) = (&mut self.tracer, &self.call.tree) {
            tracer.text_made(site(tree, self.call.pos), text, parts);
        }
    }

    /// Whether an origin is one step below another one.
    pub fn is_step(&self, below: OriginId, above: OriginId) -> bool {
        self.tracer.as_ref().is_some_and(|tracer| tracer.is_step(below, above))
    }

    /// Where the parts of a text came from that is the argument at an index; empty if no more is known than
    /// of the whole.
    pub fn text_parts(&mut self, text: &str, index: usize) -> Vec<Part> {
        let whole = self.arg_origin(index);
        self.tracer.as_mut().map(|tracer| tracer.parts(text, whole)).unwrap_or_default()
    }

    /// Runs something one level deeper, on more stack if little is left.
    fn deeper<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> R {
        self.nesting += 1;
        let result = if self.nesting < SHALLOW {
            run(self)
        } else {
            stacker::maybe_grow(RED_ZONE, STACK, || run(self))
        };
        self.nesting -= 1;
        result
    }

    /// Executes a tree into the current buffer.
    fn execute_tree(&mut self, tree: &Arc<Tree>, data: Slot, own_buffer: bool) -> Run<()> {
        let base = self.variables.len();
        let (chain, call) = (self.chain, std::mem::take(&mut self.call));
        self.chain =
            mix(mix(self.chain, call.tree.as_ref().map_or(0, |tree| tree.hash)), u64::from(call.pos));
        self.depth += 1;
        if let Some(tracer) = &mut self.tracer {
            let from = call.tree.as_ref().map(|tree| site(tree, call.pos));
            tracer.enter_template(tree.name(), from, own_buffer);
        }
        self.call = Call { tree: Some(tree.clone()), pos: 0 };
        self.variables.push(Variable { id: 0, slot: data.clone() });
        let functions = self.set.functions.clone();
        let parts = &tree.source.parts;
        let (node, start) = (Cell::new(Quoted::None), Cell::new(0));
        let frame = Frame { tree, parts, functions: &functions, base, node, start };
        let result = self.deeper(|context| context.walk_list(&frame, &data, tree.root));
        self.variables.truncate(base);
        self.depth -= 1;
        self.chain = chain;
        self.call = call;
        if let Some(tracer) = &mut self.tracer {
            tracer.leave_template(own_buffer.then_some(self.out.as_str()));
        }
        result.map(|_| ())
    }

    /// An error at the frame's current node.
    #[cold]
    fn error<T>(&self, frame: &Frame<'_>, message: impl AsRef<str>) -> Run<T> {
        self.error_with_limit(frame, message.as_ref(), None)
    }

    #[cold]
    fn error_with_limit<T>(&self, frame: &Frame<'_>, message: &str, limit: Option<Limit>) -> Run<T> {
        let tree = frame.tree;
        let node = frame.node.get();
        let (line, column) = tree.line_column(frame.pos(node));
        let (file, name) = (tree.file(), strconv::quote(tree.name()));
        let context = frame.quote(node);
        Err(Box::new(ExecError {
            message: format!("template: {file}:{line}:{column}: executing {name} at <{context}>: {message}"),
            template: tree.name().to_owned(),
            file: tree.file().to_owned(),
            line,
            column,
            limit,
            is_missing_field: false,
        }))
    }

    /// The error of a field or key that is not there.
    #[cold]
    fn missing_field_error<T>(&self, frame: &Frame<'_>, message: &str) -> Run<T> {
        self.error(frame, message).map_err(|error| Box::new(ExecError { is_missing_field: true, ..*error }))
    }

    #[cold]
    fn limit_error<T>(&self, frame: &Frame<'_>, limit: Limit, value: impl std::fmt::Display) -> Run<T> {
        if limit == Limit::Time {
            tiphys_value::RenderLimits::note_expired();
        }
        self.error_with_limit(frame, &format!("limit of {limit} exceeded ({value})"), Some(limit))
    }

    /// Notes that a value with an origin was read.
    fn read(&mut self, origin: OriginId) {
        if self.tracer.is_some() && origin != 0 {
            self.reads.push(origin);
        }
    }

    /// One origin for everything read since `mark`.
    fn origin_since(&mut self, mark: usize) -> OriginId {
        match (&mut self.tracer, &self.reads[mark..]) {
            (Some(_), [only]) => *only,
            (Some(tracer), reads) if !reads.is_empty() => tracer.union(reads),
            _ => 0,
        }
    }
}

fn site(tree: &Tree, pos: u32) -> Site<'_> {
    Site { template: tree.name(), file: tree.file(), offset: pos as usize }
}

fn mix(a: u64, b: u64) -> u64 {
    (a.rotate_left(26) ^ b).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
