//! Exit codes, and how an error reaches the user.

use std::{io::ErrorKind, process::ExitCode};

/// It did not work; the reason is on stderr.
pub const FAILED: u8 = 1;
/// The command line, or what it points at, cannot be used.
pub const WRONG_USE: u8 = 2;

/// What was asked for makes no sense: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUse(pub String);

/// It did not work, and everything about it has been said: exit code 1.
#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub(crate) struct Reported;

/// Prints an error as `Error: …` on stderr and chooses the exit code.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    // `tiphys render … | head` closes the pipe: nothing is wrong, nobody listens any more.
    let io = error.downcast_ref::<std::io::Error>();
    if io.is_some_and(|io| io.kind() == ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Reported>() {
        return ExitCode::from(FAILED);
    }
    eprintln!("Error: {error:#}");
    ExitCode::from(if error.is::<WrongUse>() { WRONG_USE } else { FAILED })
}
