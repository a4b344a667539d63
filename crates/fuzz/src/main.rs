//! `fuzz`: mutated inputs for what reads untrusted input. `cargo xtask fuzz` runs it.
#![allow(clippy::print_stdout, reason = "a command-line program prints")]

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Parser;
use tiphys_fuzz::{
    ALL, Target,
    runner::{Options, Outcome, run, run_child, save},
    target,
};

/// Give what reads untrusted input mutated inputs, and report panics, slow ones, and those that fill the
/// memory.
#[derive(Parser)]
struct Args {
    /// Targets; all if none is named.
    target: Vec<String>,
    /// How long each target is given inputs.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Draws the inputs: the same seed makes the same ones.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first input.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// An input that takes longer, in seconds, is a fault.
    #[arg(long, default_value_t = 5.0)]
    slow: f64,
    /// An input that takes more memory, in MiB, is a fault.
    #[arg(long, default_value_t = 1024)]
    memory: u64,
    /// Give the target this input alone.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The process that runs one target; it notes here how far it is.
    #[arg(long, value_name = "FILE", hide = true)]
    child: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("this crate lies in a workspace")?;
    let targets = chosen(&args.target)?;
    if let Some(file) = &args.input {
        let [target] = targets[..] else { bail!("name one target for --input") };
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let began = std::time::Instant::now();
        (target.run)(&bytes);
        println!("{}: {} bytes took {:.3} s", target.name, bytes.len(), began.elapsed().as_secs_f64());
        return Ok(());
    }
    let options = Options {
        time: Duration::from_secs_f64(args.seconds),
        seed: args.seed,
        first: args.first,
        slow: Duration::from_secs_f64(args.slow),
        memory: args.memory,
    };
    if let (Some(progress), [target]) = (&args.child, &targets[..]) {
        return run_child(root, *target, options, progress);
    }
    let mut faults = 0;
    for target in targets {
        let progress = tempfile::NamedTempFile::new()?;
        let outcome = run(target, options, progress.path())?;
        faults += outcome.faults.len();
        print(root, target, options.seed, &outcome)?;
    }
    if faults > 0 {
        bail!("{faults} inputs are wrong");
    }
    Ok(())
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<Target>> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    let one = |name: &String| {
        let all = || ALL.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
        target(name).with_context(|| format!("there is no target {name}; there are {}", all()))
    };
    names.iter().map(one).collect()
}

fn print(root: &Path, target: Target, seed: u64, outcome: &Outcome) -> anyhow::Result<()> {
    let (slowest, largest) = (outcome.slowest, outcome.largest);
    println!(
        "{:<15} {:>8} inputs; slowest {} ms (number {}); most memory {} MiB (number {})",
        target.name, outcome.inputs, slowest.0, slowest.1, largest.0, largest.1
    );
    // Where time grows faster than the input, the slowest one tells.
    save(root, target, seed, slowest.1)?;
    for fault in &outcome.faults {
        let file = save(root, target, seed, fault.number)?;
        println!("  {}", fault.what);
        println!("    cargo xtask fuzz {} --input {}", target.name, file.display());
    }
    Ok(())
}
