//! The process that evaluates Jsonnet: this program once more, see [`tiphys_render::serve_evaluator`].

use std::process::ExitCode;

use crate::exit;

/// Evaluates Jsonnet for the process that started this one, if that is what this one was started for, and lets
/// evaluate in the same manner otherwise.
pub fn serve_evaluator() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == tiphys_render::EVALUATOR) {
        return Some(exit::code(tiphys_render::serve_evaluator().map_err(Into::into)));
    }
    // A program that does not know itself evaluates in a thread.
    if let Ok(path) = std::env::current_exe() {
        // On Linux by the link that stays good when an upgrade replaces the file.
        let link = cfg!(target_os = "linux").then(|| "/proc/self/exe".into());
        tiphys_render::evaluate_in(link.unwrap_or(path));
    }
    None
}
