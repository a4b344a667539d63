//! Processes that this program starts of itself, so that the kernel holds them to limits: one evaluates
//! Jsonnet ([`tiphys_render::serve_evaluator`]), others render whole Applications ([`tiphys_worker`]).

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context as _;
use tiphys_value::RenderLimits;
use tiphys_worker::{Limits, Workers};

use crate::exit;

/// The argument that makes this program a worker. Five numbers follow: the kernel's limits in bytes and
/// seconds, and those that are counted, in bytes, milliseconds and objects ([`RenderLimits`]).
const WORKER: &str = "render-worker";

/// Does what this process was started for by another one of this program, if it was; otherwise lets evaluate
/// in such processes from now on.
pub fn serve_parent() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|argument| argument == tiphys_render::EVALUATOR) {
        let given: Vec<OsString> = arguments.collect();
        let number = |at: usize| given.get(at).and_then(|text| text.to_str());
        return Some(exit::code(tiphys_render::serve_evaluator(number(0), number(1)).map_err(Into::into)));
    }
    if first.is_some_and(|argument| argument == WORKER) {
        return Some(exit::code(serve_worker(arguments)));
    }
    // A program that does not know itself evaluates in a thread.
    if let Some(program) = own_program() {
        tiphys_render::evaluate_in(program);
    }
    None
}

/// The file of this program, on Linux by the link that stays good when an upgrade replaces the file.
fn own_program() -> Option<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Some("/proc/self/exe".into()),
        false => std::env::current_exe().ok(),
    }
}

fn serve_worker(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let numbers: Vec<u64> =
        arguments.filter_map(|argument| argument.to_str().and_then(|text| text.parse().ok())).collect();
    let [memory, seconds, of_values, milliseconds, objects] = numbers[..] else {
        anyhow::bail!("{WORKER} is started by `tiphys controller`, with the limits of a rendering");
    };
    let time = Duration::from_millis(milliseconds);
    RenderLimits { memory: of_values, time, objects: objects.try_into().unwrap_or(usize::MAX) }.set();
    let limits = Limits { memory, cpu: Duration::from_secs(seconds) };
    Ok(tiphys_worker::serve(std::io::stdin(), std::io::stdout(), &limits)?)
}

/// Workers of this program.
///
/// # Errors
/// The program does not know where it stands.
pub(crate) fn workers(limits: Limits, most: usize) -> anyhow::Result<Workers> {
    let program =
        own_program().context("cannot find the file of this program, to render in processes of it")?;
    let counted = RenderLimits::current();
    let numbers = [
        limits.memory.to_string(),
        limits.cpu.as_secs().to_string(),
        counted.memory.to_string(),
        counted.time.as_millis().to_string(),
        counted.objects.to_string(),
    ];
    let args = std::iter::once(WORKER.to_owned()).chain(numbers);
    Ok(Workers::new(program, args.map(OsString::from).collect(), limits, most))
}
