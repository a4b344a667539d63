//! The `tiphys` command: one file per command under `commands/`.
#![allow(clippy::print_stdout, reason = "a command-line program prints")]

/// Values are many small allocations; the C library's allocator takes a fifth longer with them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    if let Some(code) = tiphys_cli::serve_parent() {
        return code;
    }
    tiphys_cli::run(tiphys_cli::Cli::from_args())
}
