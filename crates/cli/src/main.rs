//! The `tiphys` command: one file per command under `commands/`.
#![allow(clippy::print_stdout, reason = "a command-line program prints")]

fn main() -> std::process::ExitCode {
    #[cfg(static_libc)]
    tiphys_system::look_up_names_alone();
    match tiphys_cli::serve_evaluator() {
        Some(code) => code,
        None => tiphys_cli::run(tiphys_cli::Cli::from_args()),
    }
}
