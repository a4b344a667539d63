//! Jsonnet files of plain directories (Argo CD user guide, "Jsonnet"). Imports are looked for beside the
//! importing file, then in the libraries from last to first, then in the source's folder; none leaves the
//! repository.
//!
//! The library that evaluates can be told neither to end nor to take less memory. So a program that has named
//! itself with [`evaluate_in`] evaluates each file in a process of its own, which is given its limits by the
//! kernel; any other (a test, a library's user) evaluates in a thread, whose time alone is limited.

mod error_messages;
mod evaluation;
mod messages;
mod nesting_limits;
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what cannot be limited here is evaluated in a process"
)]
mod process;
mod thread;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tiphys_model::JsonnetVar;
use tiphys_value::RenderLimits;
use tiphys_vfs::FileTree;

use crate::{Job, RenderError, manifest};
use evaluation::{Reader, Task};

pub use process::{EVALUATOR, container_memory, evaluate_in, serve_evaluator};

/// The stack of the thread that evaluates; the parser recurses into bodies.
const STACK_BYTES: usize = 256 << 20;

/// How long one file may be evaluated.
fn time() -> Duration {
    RenderLimits::current().time
}

/// Evaluates a file; returns JSON.
pub(crate) fn evaluate(job: &Job<'_>, path: &str) -> Result<String, RenderError> {
    let options = job.source.directory.clone().unwrap_or_default().jsonnet;
    let expanded = |vars: Vec<JsonnetVar>| -> Vec<JsonnetVar> {
        vars.into_iter().map(|var| JsonnetVar { value: job.env.expand(&var.value), ..var }).collect()
    };
    let mut folders = vec![job.source.path.clone()];
    folders.extend(options.libs);
    let task = Task {
        path: path.to_owned(),
        folders,
        ext_vars: expanded(options.ext_vars),
        tlas: expanded(options.tlas),
    };
    let tree = job.set.tree(job.index).clone();
    match process::program() {
        Some(program) => process::run(program, &task, tree),
        None => thread::run(task, tree),
    }
}

fn too_slow(path: &str) -> RenderError {
    let [_, flag, _] = RenderLimits::FLAGS;
    let seconds = time().as_secs();
    RenderError::new(format!("{path}: evaluating it takes longer than {seconds} s; {flag} raises the limit"))
}

impl Reader for Arc<dyn FileTree> {
    fn exists(&self, path: &str) -> bool {
        (**self).exists(path)
    }

    fn text(&self, path: &str) -> Result<String, RenderError> {
        manifest::read_text(&**self, path)
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, RenderError> {
        self.read(path).map(|bytes| bytes.to_vec()).map_err(|error| RenderError::new(error.to_string()))
    }
}
