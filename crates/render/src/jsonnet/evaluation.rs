//! One evaluation: a file, what it imports, its variables. It reads files through [`Reader`] alone, so that
//! it runs where the files are as well as in a process of its own.

use std::collections::HashMap;

use rsjsonnet_lang::{
    arena::Arena,
    interner::InternedStr,
    program::{
        Callbacks, EvalError, EvalErrorKind, EvalStackTraceItem, ImportError, LoadError, NativeError,
        Program, Thunk, Value,
    },
    span::{SpanContextId, SpanId},
};
use serde::{Deserialize, Serialize};
use tiphys_model::JsonnetVar;
use tiphys_vfs::join;

use super::{
    error_messages::{first_span, in_words},
    nesting_limits::check_size,
};
use crate::RenderError;

/// The most text that evaluating a file may yield, in bytes.
const MAX_OUTPUT: usize = 64 << 20;

/// The files of the repository.
pub(super) trait Reader {
    /// Whether a file or folder stands at a path.
    fn exists(&self, path: &str) -> bool;
    /// A text file.
    fn text(&self, path: &str) -> Result<String, RenderError>;
    /// Any file.
    fn bytes(&self, path: &str) -> Result<Vec<u8>, RenderError>;
}

/// Everything that an evaluation needs but the files.
#[derive(Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) path: String,
    /// Where imports are looked for, the last first.
    pub(super) folders: Vec<String>,
    pub(super) ext_vars: Vec<JsonnetVar>,
    pub(super) tlas: Vec<JsonnetVar>,
}

impl Task {
    /// Evaluates the file; returns JSON.
    pub(super) fn run(&self, reader: &dyn Reader) -> Result<String, RenderError> {
        let arena = Arena::new();
        let mut program = Program::new(&arena);
        let mut files = Files { task: self, reader, texts: Vec::new(), thunks: HashMap::new(), fault: None };
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
            value = called.map_err(|error| files.render_error(&program, &error))?;
        }
        // Values are evaluated when they are shown: imports may come up then.
        let text = match program.manifest_json(&value, false) {
            Ok(text) => text,
            Err(error) => return Err(files.render_error(&program, &error)),
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
    reader: &'t dyn Reader,
    /// What was loaded, for places in messages.
    texts: Vec<(SpanContextId, String, String)>,
    thunks: HashMap<String, Thunk<'p>>,
    /// Why the last import failed.
    fault: Option<RenderError>,
}

impl<'p> Files<'_, 'p> {
    fn eval(&mut self, program: &mut Program<'p>, thunk: &Thunk<'p>) -> Result<Value<'p>, RenderError> {
        program.eval_value(thunk, self).map_err(|error| self.render_error(program, &error))
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
        let text = self.reader.text(path)?;
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
        candidates.into_iter().find(|candidate| self.reader.exists(candidate)).ok_or_else(|| {
            RenderError::new(format!(
                "{}: import {path:?} is neither beside it nor in a library; nothing outside the repository is read",
                self.place(program, Some(from))
            ))
        })
    }

    fn keep_fault<T>(&mut self, result: Result<T, RenderError>) -> Result<T, ImportError> {
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

    fn render_error(&mut self, program: &Program<'p>, error: &EvalError) -> RenderError {
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
        self.keep_fault(loaded)
    }

    fn import_str(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<String, ImportError> {
        let read = self.find(program, from, path).and_then(|found| self.reader.bytes(&found));
        let text = read.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| RenderError::new(format!("{path} is not UTF-8")))
        });
        self.keep_fault(text)
    }

    fn import_bin(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Vec<u8>, ImportError> {
        let read = self.find(program, from, path).and_then(|found| self.reader.bytes(&found));
        self.keep_fault(read)
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
