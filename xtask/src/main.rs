//! Developer commands, run as `cargo xtask <command>`. One file or folder per command.
#![allow(clippy::print_stdout, reason = "a command-line program prints")]

mod bench;
mod charts;
mod circles;
mod conformance;
mod custom_kinds;
mod docs;
mod fidelity;
mod git_files;
mod hostile;
mod https;
mod image;
mod links;
mod merge_keys;
mod named_paths;
mod oracles;
mod own_programs;
mod own_texts;
mod pages;
mod pictures;
mod release;
mod schema;
mod tidy;
mod wording;

use clap::{Parser, Subcommand};

/// Developer commands of Tiphys.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure beside the real tools, in one run.
    #[command(subcommand)]
    Bench(bench::Suite),
    /// Play generated cascades, and have doctor name what was put into each.
    Cascades(own_programs::Args),
    /// The table of what known charts make, from their sources.
    #[command(subcommand)]
    Charts(charts::Action),
    /// The embedded cluster beside the real one and under the official tests.
    #[command(subcommand)]
    Conformance(conformance::Suite),
    /// The tables of what custom kinds have, from their definitions.
    #[command(subcommand)]
    CustomKinds(custom_kinds::Action),
    /// Write docs/cli.md and the manual pages.
    Docs,
    /// Compare with the real tools on many inputs.
    #[command(subcommand)]
    Fidelity(fidelity::Suite),
    /// Give what reads untrusted input mutated inputs.
    Fuzz(own_programs::Args),
    /// Run hostile inputs, or measure how time grows with the size of inputs.
    Hostile(hostile::Args),
    /// Make a container image from static programs, as an OCI image layout.
    Image(image::Args),
    /// Write the table of lists that a strategic merge merges, for kustomize.
    MergeKeys(merge_keys::Args),
    /// Install the pinned real helm, kustomize, kubectl, etcd and kube-apiserver.
    Oracles(oracles::Args),
    /// Make the pictures of the README from what the program does.
    Pictures(pictures::Args),
    /// Make the files of a release: archive, checksums, bill of materials, manifests of package managers.
    Release(release::Args),
    /// Derive the table of built-in kinds from the real kube-apiserver.
    Schema(schema::Args),
    /// Check what the compiler does not: which crate may depend on which.
    Tidy,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Bench(suite) => bench::run(&suite),
        Command::Cascades(args) => own_programs::run("tiphys-cascades", "cascades", &args),
        Command::Charts(action) => charts::run(&action),
        Command::Conformance(suite) => conformance::run(&suite),
        Command::CustomKinds(action) => custom_kinds::run(&action),
        Command::Docs => docs::run(),
        Command::Fidelity(suite) => fidelity::run(&suite),
        Command::Fuzz(args) => own_programs::run("tiphys-fuzz", "fuzz", &args),
        Command::Hostile(args) => hostile::run(&args),
        Command::Image(args) => image::run(&args),
        Command::MergeKeys(args) => merge_keys::run(&args),
        Command::Oracles(args) => oracles::run(&args),
        Command::Pictures(args) => pictures::run(&args),
        Command::Release(args) => release::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Tidy => tidy::run()
            .and_then(|()| wording::run())
            .and_then(|()| own_texts::run())
            .and_then(|()| circles::run())
            .and_then(|()| named_paths::run())
            .and_then(|()| links::run())
            .and_then(|()| pages::run()),
    }
}
