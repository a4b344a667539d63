//! The process that evaluates Jsonnet: this program once more, see [`tiphys_render::serve_evaluator`].

use std::process::ExitCode;

use crate::exit;

/// Evaluates Jsonnet for the process that started this one, if that is what this one was started for, and lets
/// evaluate in the same manner otherwise.
pub fn serve_evaluator() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|argument| argument == tiphys_render::EVALUATOR) {
        let memory = arguments.next();
        let memory = memory.as_ref().and_then(|text| text.to_str());
        return Some(exit::code(tiphys_render::serve_evaluator(memory).map_err(Into::into)));
    }
    // On Linux by the link that stays good when an upgrade replaces the file. A program that does not know itself evaluates
    // in a thread.
    let program =
        if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() };
    if let Ok(program) = program {
        tiphys_render::evaluate_in(program);
    }
    None
}
