//! The `tiphys` command: one file per command under `commands/`.
#![allow(clippy::print_stdout, reason = "a command-line program prints")]

use clap::Parser as _;

fn main() -> std::process::ExitCode {
    tiphys_cli::run(tiphys_cli::Cli::parse())
}
