//! `cascades`: plays generated cascades, and prints how well doctor names what was put in.
#![allow(clippy::print_stdout, reason = "a command-line program prints")]

use std::path::{Path, PathBuf};

use clap::Parser;
use tiphys_cascades::run::{Options, run};

/// Play generated cascades and have doctor name what was put in.
#[derive(Parser)]
struct Args {
    /// About how many.
    #[arg(default_value_t = 500)]
    count: usize,
    /// Draws repositories and faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many repositories are made beside the examples.
    #[arg(long, default_value_t = 12)]
    repositories: usize,
    /// Where misses are written.
    #[arg(long, value_name = "FOLDER")]
    misses: Option<PathBuf>,
    /// Only kinds of faults with this in their name.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// How many copies of each dump are tried with parts left out.
    #[arg(long, default_value_t = 0)]
    thin: usize,
    /// Try each dump as Flux would have delivered it, too.
    #[arg(long)]
    flux: bool,
    /// Only repositories that are made.
    #[arg(long)]
    made_only: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![];
    if !args.made_only {
        folders
            .extend(["storefront", "fleet"].map(|name| (name.to_owned(), root.join("examples").join(name))));
        let incidents = root.join("crates/cli/tests/incidents");
        let mut names: Vec<String> = std::fs::read_dir(&incidents)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        folders.extend(
            names.into_iter().map(|name| (format!("incident-{name}"), incidents.join(name).join("good"))),
        );
    }
    let outcome = run(&Options {
        count: args.count,
        seed: args.seed,
        folders,
        made: args.repositories,
        misses: args.misses,
        only: args.only,
        thin: args.thin,
        flux: args.flux,
    });
    outcome.misses.iter().for_each(|miss| print!("{miss}"));
    outcome.troubles.iter().for_each(|trouble| println!("trouble: {trouble}"));
    print!("{}", outcome.table.text());
    if args.flux {
        print!("delivered by Flux:\n{}", outcome.by_flux.text());
    }
    if args.thin > 0 {
        print!("with parts left out:\n{}", outcome.thinned.text());
    }
    Ok(())
}
