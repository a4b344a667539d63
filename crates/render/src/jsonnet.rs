//! Jsonnet files of plain directories (Argo CD user guide, "Jsonnet"). Imports are looked for beside the importing
//! file, then in the libraries from last to first, then in the source's folder; none leaves the repository.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use rsjsonnet_lang::{
    arena::Arena,
    interner::InternedStr,
    program::{
        Callbacks, EvalError, EvalErrorKind, EvalStackTraceItem, ImportError, LoadError, NativeError,
        Program, Thunk, Value,
    },
    span::{SpanContextId, SpanId},
};
use tiphys_model::JsonnetVar;
use tiphys_vfs::{FileTree, join};

use crate::{Job, RenderError};

/// How long one file may be evaluated.
const TIME: Duration = Duration::from_secs(60);
/// How many evaluations that took too long may still be at work: there is no way to end one.
const MOST_RUNAWAYS: usize = 4;
/// The stack of the thread that evaluates; the parser recurses into bodies.
const STACK_BYTES: usize = 256 << 20;
/// The largest file, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// How deep a file may be nested, see [`depth`].
const MAX_DEPTH: usize = 2000;
/// The most text that evaluating a file may yield, in bytes.
const MAX_OUTPUT: usize = 64 << 20;

static RUNAWAYS: AtomicUsize = AtomicUsize::new(0);

/// Evaluates a file; returns JSON.
pub(crate) fn evaluate(job: &Job<'_>, path: &str) -> Result<String, RenderError> {
    let options = job.source.directory.clone().unwrap_or_default().jsonnet;
    let expanded = |vars: Vec<JsonnetVar>| -> Vec<JsonnetVar> {
        vars.into_iter().map(|var| JsonnetVar { value: job.env.expand(&var.value), ..var }).collect()
    };
    let mut folders = vec![job.source.path.clone()];
    folders.extend(options.libs);
    let task = Task {
        tree: job.set.tree(job.index).clone(),
        path: path.to_owned(),
        folders,
        ext_vars: expanded(options.ext_vars),
        tlas: expanded(options.tlas),
    };
    task.run_in_time()
}

/// Everything that an evaluation needs.
struct Task {
    tree: Arc<dyn FileTree>,
    path: String,
    /// Where imports are looked for, the last first.
    folders: Vec<String>,
    ext_vars: Vec<JsonnetVar>,
    tlas: Vec<JsonnetVar>,
}

impl Task {
    fn run_in_time(self) -> Result<String, RenderError> {
        let path = self.path.clone();
        let fail = |why: &str| Err(RenderError::new(format!("{path}: {why}")));
        if RUNAWAYS.load(Ordering::Relaxed) >= MOST_RUNAWAYS {
            return fail("not evaluated, because others that took too long are still at work");
        }
        let (give, take) = mpsc::channel();
        let thread = std::thread::Builder::new().name("jsonnet".into()).stack_size(STACK_BYTES);
        let spawned = thread.spawn(move || {
            let done = self.run();
            if give.send(done).is_err() {
                RUNAWAYS.fetch_sub(1, Ordering::Relaxed);
            }
        });
        if let Err(error) = spawned {
            return fail(&format!("no thread to evaluate it: {error}"));
        }
        match take.recv_timeout(TIME) {
            Ok(done) => done,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                RUNAWAYS.fetch_add(1, Ordering::Relaxed);
                fail(&format!("evaluating it takes longer than {} s", TIME.as_secs()))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => fail("evaluating it broke off"),
        }
    }

    fn run(&self) -> Result<String, RenderError> {
        let arena = Arena::new();
        let mut program = Program::new(&arena);
        let mut files = Files { task: self, texts: Vec::new(), thunks: HashMap::new(), fault: None };
        for var in &self.ext_vars {
            let thunk = files.variable(&mut program, "external variable", var)?;
            let name = program.intern_str(&var.name);
            program.add_ext_var(name, &thunk);
        }
        let thunk = files.load(&mut program, &self.path)?;
        let mut value = files.eval(&mut program, &thunk)?;
        if value.is_function() {
            let mut named = Vec::new();
            for var in &self.tlas {
                let argument = files.variable(&mut program, "top-level argument", var)?;
                named.push((program.intern_str(&var.name), argument));
            }
            let function = program.value_to_thunk(&value);
            let called = program.eval_call(&function, &[], &named, &mut files);
            value = called.map_err(|error| files.told(&program, &error))?;
        }
        // Values are evaluated when they are shown: imports may come up then.
        let text = match program.manifest_json(&value, false) {
            Ok(text) => text,
            Err(error) => return Err(files.told(&program, &error)),
        };
        match text.len() > MAX_OUTPUT {
            true => Err(RenderError::new(format!("{}: it yields more than {MAX_OUTPUT} bytes", self.path))),
            false => Ok(text),
        }
    }
}

/// The files that an evaluation reads.
struct Files<'t, 'p> {
    task: &'t Task,
    /// What was loaded, for places in messages.
    texts: Vec<(SpanContextId, String, String)>,
    thunks: HashMap<String, Thunk<'p>>,
    /// Why the last import failed.
    fault: Option<RenderError>,
}

impl<'p> Files<'_, 'p> {
    fn eval(&mut self, program: &mut Program<'p>, thunk: &Thunk<'p>) -> Result<Value<'p>, RenderError> {
        program.eval_value(thunk, self).map_err(|error| self.told(program, &error))
    }

    fn variable(
        &mut self,
        program: &mut Program<'p>,
        what: &str,
        var: &JsonnetVar,
    ) -> Result<Thunk<'p>, RenderError> {
        if var.code {
            return self.source(program, &format!("{what} {:?}", var.name), var.value.clone());
        }
        Ok(program.value_to_thunk(&Value::string(&var.value)))
    }

    fn load(&mut self, program: &mut Program<'p>, path: &str) -> Result<Thunk<'p>, RenderError> {
        if let Some(known) = self.thunks.get(path) {
            return Ok(known.clone());
        }
        let text = crate::manifest::read_text(&*self.task.tree, path)?;
        let thunk = self.source(program, path, text)?;
        self.thunks.insert(path.to_owned(), thunk.clone());
        Ok(thunk)
    }

    fn source(
        &mut self,
        program: &mut Program<'p>,
        name: &str,
        text: String,
    ) -> Result<Thunk<'p>, RenderError> {
        check_size(name, &text)?;
        let (context, _) = program.span_manager_mut().insert_source_context(text.len());
        let loaded = program.load_source(context, text.as_bytes(), true, name);
        self.texts.push((context, name.to_owned(), text));
        loaded.map_err(|error| self.not_parsed(program, &error))
    }

    /// The path that an import means.
    fn find(&mut self, program: &Program<'p>, from: SpanId, path: &str) -> Result<String, RenderError> {
        let (context, ..) = program.span_manager().get_span(from);
        let importer = self.texts.iter().find(|(known, ..)| *known == context);
        let beside = importer.map(|(_, name, _)| name.rsplit_once('/').map_or("", |(folder, _)| folder));
        let folders = beside.into_iter().chain(self.task.folders.iter().rev().map(String::as_str));
        let candidates =
            folders.filter(|_| !path.starts_with('/')).filter_map(|folder| join(folder, path).ok());
        let tree = &self.task.tree;
        candidates.into_iter().find(|candidate| tree.exists(candidate)).ok_or_else(|| {
            RenderError::new(format!(
                "{}: import {path:?} is neither beside it nor in a library; nothing outside the repository is read",
                self.place(program, Some(from))
            ))
        })
    }

    fn import_text(
        &mut self,
        program: &Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Arc<[u8]>, ImportError> {
        let found = self.find(program, from, path);
        let read = found.and_then(|found| {
            self.task.tree.read(&found).map_err(|error| RenderError::new(error.to_string()))
        });
        self.kept(read)
    }

    fn kept<T>(&mut self, result: Result<T, RenderError>) -> Result<T, ImportError> {
        result.map_err(|error| {
            self.fault = Some(error);
            ImportError
        })
    }

    /// `file:line:column` of a span.
    fn place(&self, program: &Program<'p>, span: Option<SpanId>) -> String {
        let known = span.and_then(|span| {
            let (context, start, _) = program.span_manager().get_span(span);
            let (_, name, text) = self.texts.iter().find(|(known, ..)| *known == context)?;
            let before = text.get(..start)?;
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
            Some(format!("{name}:{line}:{column}"))
        });
        known.unwrap_or_else(|| self.task.path.clone())
    }

    fn not_parsed(&self, program: &Program<'p>, error: &LoadError) -> RenderError {
        let debug = format!("{error:?}");
        let span = first_span(&self.texts, program, error);
        RenderError::new(format!("{}: {}", self.place(program, span), in_words(&debug)))
    }

    fn told(&mut self, program: &Program<'p>, error: &EvalError) -> RenderError {
        if let (EvalErrorKind::ImportFailed { .. }, Some(fault)) = (&error.kind, self.fault.take()) {
            return fault;
        }
        let own = match &error.kind {
            EvalErrorKind::ExplicitError { span, .. }
            | EvalErrorKind::AssertFailed { span, .. }
            | EvalErrorKind::UnknownObjectField { span, .. } => Some(*span),
            EvalErrorKind::Other { span, .. } => *span,
            _ => None,
        };
        let spans = error.stack_trace.iter().rev().filter_map(|item| match item {
            EvalStackTraceItem::Expr { span } | EvalStackTraceItem::Variable { span, .. } => Some(*span),
            EvalStackTraceItem::Call { span, .. }
            | EvalStackTraceItem::ArrayItem { span, .. }
            | EvalStackTraceItem::ObjectField { span, .. } => *span,
            _ => None,
        });
        let ours = |span: &SpanId| {
            let (context, ..) = program.span_manager().get_span(*span);
            self.texts.iter().any(|(known, ..)| *known == context)
        };
        let place = self.place(program, own.into_iter().chain(spans).find(ours));
        let text = match &error.kind {
            EvalErrorKind::ExplicitError { message, .. } | EvalErrorKind::Other { message, .. } => {
                message.clone()
            }
            EvalErrorKind::AssertFailed { message, .. } => {
                message.clone().unwrap_or_else(|| "an assertion failed".into())
            }
            EvalErrorKind::UnknownExtVar { name } => format!("external variable {name:?} is not set"),
            EvalErrorKind::UnknownObjectField { field_name, .. } => {
                format!("there is no field {field_name:?}")
            }
            EvalErrorKind::CallParamNotBound { .. } => {
                format!(
                    "{}: set it among the tlas of source.directory.jsonnet",
                    in_words(&format!("{:?}", error.kind))
                )
            }
            other => in_words(&format!("{other:?}")),
        };
        RenderError::new(format!("{place}: {text}"))
    }
}

impl<'p> Callbacks<'p> for Files<'_, 'p> {
    fn import(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Thunk<'p>, ImportError> {
        let loaded = self.find(program, from, path).and_then(|found| self.load(program, &found));
        self.kept(loaded)
    }

    fn import_str(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<String, ImportError> {
        let bytes = self.import_text(program, from, path)?;
        let text = String::from_utf8(bytes.to_vec());
        self.kept(text.map_err(|_| RenderError::new(format!("{path} is not UTF-8"))))
    }

    fn import_bin(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Vec<u8>, ImportError> {
        self.import_text(program, from, path).map(|bytes| bytes.to_vec())
    }

    fn trace(&mut self, _: &mut Program<'p>, _: &str, _: &[EvalStackTraceItem]) {}

    fn native_call(
        &mut self,
        _: &mut Program<'p>,
        _: InternedStr<'p>,
        _: &[Value<'p>],
    ) -> Result<Value<'p>, NativeError> {
        // None is registered.
        Err(NativeError)
    }
}

/// Refuses what would use up the stack of the parser, which recurses into brackets and bodies.
fn check_size(name: &str, text: &str) -> Result<(), RenderError> {
    let fault = match text.len() > MAX_BYTES {
        true => format!("it is larger than {MAX_BYTES} bytes"),
        false if depth(text.as_bytes()) > MAX_DEPTH => format!("it is nested deeper than {MAX_DEPTH}"),
        false => return Ok(()),
    };
    Err(RenderError::new(format!("{name}: {fault}")))
}

/// How deep a text is nested at most: brackets, and words that open a body, which ends with the next comma or
/// bracket of its level.
fn depth(text: &[u8]) -> usize {
    let (mut deepest, mut depth, mut bodies) = (0, 0, vec![0_usize]);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let step = passed_over(rest);
        if step > 0 {
            at += step;
            continue;
        }
        let word = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        match rest[0] {
            b'{' | b'[' | b'(' => {
                bodies.push(0);
                depth += 1;
            }
            b'}' | b']' | b')' => depth -= bodies.pop().map_or(0, |open| (open + 1).min(depth)),
            b',' => depth -= bodies.last_mut().map_or(0, std::mem::take).min(depth),
            _ if BODIES.contains(&&rest[..word]) => {
                depth += 1;
                bodies.last_mut().into_iter().for_each(|open| *open += 1);
            }
            _ => {}
        }
        deepest = deepest.max(depth);
        at += word.max(1);
    }
    deepest
}

/// Words after which an expression follows inside the one that they stand in.
const BODIES: [&[u8]; 8] = [b"local", b"function", b"if", b"then", b"else", b"assert", b"error", b"for"];

/// The length of the comment or string that a text begins with.
fn passed_over(text: &[u8]) -> usize {
    let until = |start: usize, end: &[u8]| {
        let found = text[start.min(text.len())..].windows(end.len()).position(|window| window == end);
        found.map_or(text.len(), |at| start + at + end.len())
    };
    match text {
        [b'#', ..] | [b'/', b'/', ..] => until(1, b"\n"),
        [b'/', b'*', ..] => until(2, b"*/"),
        [b'|', b'|', b'|', ..] => until(3, b"|||"),
        [b'@', quote @ (b'"' | b'\''), ..] => until(2, &[*quote]),
        [quote @ (b'"' | b'\''), rest @ ..] => {
            let mut escaped = false;
            let end = rest.iter().position(|byte| {
                let is_end = byte == quote && !escaped;
                escaped = *byte == b'\\' && !escaped;
                is_end
            });
            end.map_or(text.len(), |end| end + 2)
        }
        _ => 0,
    }
}

/// The place of an error that has no other: the library's errors name their spans in fields of their own, and the
/// first of them is the place.
fn first_span(
    texts: &[(SpanContextId, String, String)],
    program: &Program<'_>,
    error: &LoadError,
) -> Option<SpanId> {
    use rsjsonnet_lang::{lexer::LexError, parser::ParseError, program::AnalyzeError};
    let span = match error {
        LoadError::Parse(ParseError::Expected { span, .. }) => *span,
        LoadError::Lex(
            LexError::InvalidChar { span, .. }
            | LexError::InvalidUtf8 { span, .. }
            | LexError::UnfinishedMultilineComment { span }
            | LexError::LeadingZeroInNumber { span },
        ) => *span,
        LoadError::Analyze(AnalyzeError::UnknownVariable { span, .. }) => *span,
        _ => return None,
    };
    let (context, ..) = program.span_manager().get_span(span);
    texts.iter().any(|(known, ..)| *known == context).then_some(span)
}

/// The innermost name of an error of the library, in words: `Analyze(UnknownVariable { .. name: "x" })` is
/// `unknown variable "x"`.
fn in_words(debug: &str) -> String {
    let inner =
        ["Lex(", "Parse(", "Analyze("].iter().find_map(|outer| debug.strip_prefix(outer)).unwrap_or(debug);
    let name: String = inner.chars().take_while(char::is_ascii_alphanumeric).collect();
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    let quoted = inner.split_once("name: ").and_then(|(_, rest)| rest.split([',', ' ', '}']).next());
    match quoted {
        Some(quoted) => format!("{words} {quoted}"),
        None if words == "expected" => "it does not parse".into(),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_vfs::MemTree;

    fn task(files: &[(&str, &str)]) -> Task {
        Task {
            tree: Arc::new(MemTree::from_files(files.iter().copied())),
            path: "app/main.jsonnet".into(),
            folders: vec!["app".into(), "vendor".into(), "lib".into()],
            ext_vars: vec![JsonnetVar { name: "env".into(), value: "prod".into(), code: false }],
            tlas: vec![JsonnetVar { name: "n".into(), value: "1 + 1".into(), code: true }],
        }
    }

    fn text(files: &[(&str, &str)]) -> Result<String, String> {
        task(files).run_in_time().map_err(|error| error.to_string())
    }

    #[test]
    fn variables_arguments_and_imports_count() {
        let main = "local l = import 'l.libsonnet'; function(n) [{n: n, env: std.extVar('env'), l: l, s: importstr 's.txt'}]";
        let files = [
            ("app/main.jsonnet", main),
            ("app/s.txt", "text"),
            ("vendor/l.libsonnet", "'vendor'"),
            ("lib/l.libsonnet", "import 'inner/x.libsonnet'"),
            ("lib/inner/x.libsonnet", "{from: 'the last library'}"),
        ];
        assert_eq!(
            text(&files).expect("evaluates"),
            r#"[{"env": "prod", "l": {"from": "the last library"}, "n": 2, "s": "text"}]"#
        );
    }

    #[test]
    fn faults_name_their_place() {
        let rows = [
            ("{a: b}", "app/main.jsonnet:1:5: unknown variable \"b\""),
            ("{\n  a: ", "app/main.jsonnet:2:"),
            ("error 'no ' + 'way'", "app/main.jsonnet:1:1: no way"),
            ("std.extVar('other')", "external variable \"other\" is not set"),
            ("import '../../etc/passwd'", "nothing outside the repository is read"),
            ("import '/etc/passwd'", "nothing outside the repository is read"),
            ("local f(x) = 1 + f(x); f(1)", "stack overflow"),
            ("local a = a; a", "infinite recursion"),
        ];
        for (main, expected) in rows {
            let fault = text(&[("app/main.jsonnet", main)]).expect_err(main);
            assert!(fault.contains(expected), "{main}: {fault}");
        }
    }

    #[test]
    fn what_would_use_up_the_stack_is_refused() {
        let bodies = |count: usize| format!("{}a", "local a = 1;\n".repeat(count));
        let deep = ["{a:".repeat(100_000), "[".repeat(100_000), bodies(50_000), "if 1 then ".repeat(50_000)];
        for main in deep.into_iter().chain([" ".repeat(MAX_BYTES + 1)]) {
            assert!(text(&[("app/main.jsonnet", &main)]).is_err());
        }
        let wide = format!("[{} 1]", "(local a = ')'; function(x) x)(1), # {{{\n".repeat(20_000));
        assert!(text(&[("app/main.jsonnet", &wide)]).is_ok());
        assert_eq!(text(&[("app/main.jsonnet", &bodies(MAX_DEPTH - 1))]).as_deref(), Ok("1"));
        let sum = format!("{}1", "1 + ".repeat(100_000));
        assert_eq!(text(&[("app/main.jsonnet", &sum)]).as_deref(), Ok("100001"));
        let nested = "std.foldl(function(a, i) [a], std.range(1, 100000), [])";
        let fault = text(&[("app/main.jsonnet", nested)]).expect_err("too deep");
        assert!(fault.contains("stack overflow"), "{fault}");
        let minus = format!("{}1", "- ".repeat(2000));
        assert_eq!(text(&[("app/main.jsonnet", &minus)]).as_deref(), Ok("1"));
    }
}
