//! Exit codes, and how an error reaches the user.

use std::{io::ErrorKind, process::ExitCode};

/// It did not work; the reason is on stderr.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const WRONG_USE: u8 = 2;

/// Prints an error as `Error: …` on stderr and chooses the exit code.
pub fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    // `tiphys render … | head` closes the pipe: nothing is wrong, nobody listens any more.
    let io = error.downcast_ref::<std::io::Error>();
    if io.is_some_and(|io| io.kind() == ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    eprintln!("Error: {error:#}");
    ExitCode::from(FAILED)
}
