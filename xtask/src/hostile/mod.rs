//! `cargo xtask hostile`: inputs that are meant to end the program, fill the memory, hang, or write on the terminal.
//! Every command that reads a repository runs on every one of them, in a process with a limit on addresses.

mod counts;
mod dumps;
mod expressions;
mod growth;
mod readers;
mod repository;
mod templates;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use repository::Case;
use wait4::Wait4 as _;

/// Longest run. Some inputs stop at a limit of ten seconds, and commands render them more than once.
const TIME: Duration = Duration::from_secs(30);
/// Most memory that a run may take, in KiB.
const MEMORY: u64 = 1 << 20;

/// Run hostile inputs through the commands that read repositories.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program; by default the optimised one of this workspace, which has to be built.
    #[arg(long, value_name = "FILE")]
    tiphys: Option<PathBuf>,
    /// Only inputs whose names begin so. May be repeated.
    #[arg(long, value_name = "PREFIX")]
    only: Vec<String>,
    /// Measure how time and memory grow with the size of inputs instead.
    #[arg(long)]
    growth: bool,
    /// Print every run, not only those with a fault.
    #[arg(long)]
    all: bool,
}

/// One run of the program.
struct Run {
    code: Option<i32>,
    time: Duration,
    /// In KiB; at least what this program itself took when it started the other.
    memory: u64,
    out: Vec<u8>,
    err: Vec<u8>,
}

/// Runs all inputs, and prints what is wrong.
///
/// # Errors
/// A run ended otherwise than by an exit code of the program, took too long or too much, or wrote what a
/// terminal obeys.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = args.tiphys.clone().unwrap_or_else(|| PathBuf::from("target/release/tiphys"));
    let program = program.canonicalize().with_context(|| format!("no program at {}", program.display()))?;
    if args.growth {
        return growth::run(&program, &args.only);
    }
    let (mut runs, mut faults) = (0, 0);
    for case in all().iter().filter(|case| is_meant(&case.name, &args.only)) {
        let folder = case.write()?;
        for command in commands(case) {
            let run = start(&program, &command, folder.path())?;
            let wrong = wrong(&run);
            runs += 1;
            faults += usize::from(!wrong.is_empty());
            if args.all || !wrong.is_empty() {
                let last = String::from_utf8_lossy(&run.err);
                let last: String = last
                    .lines()
                    .rfind(|line| !line.is_empty())
                    .unwrap_or_default()
                    .chars()
                    .take(120)
                    .collect();
                println!(
                    "{:<16} {:<28} exit {:?}, {:.1} s, {} MiB{}{}: {}",
                    case.name,
                    command.join(" "),
                    run.code,
                    run.time.as_secs_f64(),
                    run.memory >> 10,
                    if wrong.is_empty() { "" } else { ", WRONG: " },
                    wrong.join(", "),
                    last.escape_debug()
                );
            }
        }
    }
    println!("hostile: {runs} runs, {faults} of them wrong");
    if faults > 0 {
        bail!("{faults} of {runs} runs are wrong");
    }
    Ok(())
}

fn is_meant(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|prefix| name.starts_with(prefix.as_str()))
}

fn all() -> Vec<Case> {
    [counts::cases(), templates::cases(), readers::cases(), expressions::cases(), dumps::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// The commands that are run on an input.
fn commands(case: &Case) -> Vec<Vec<&'static str>> {
    if case.has("d/pod.json") {
        return vec![
            vec!["doctor", "--from", "d"],
            vec!["doctor", "--from", "d", "--no-prove", "--output", "html"],
            vec!["rehearse", "--offline", "--from", "d"],
            vec!["health", "d"],
        ];
    }
    let mut all = vec![
        vec!["check", "--offline"],
        vec!["up", "--once", "--offline", "--timeout", "20s"],
        vec!["diff", "HEAD", "--offline"],
        vec!["graph", "--offline"],
    ];
    if case.has("w/Chart.yaml") {
        all.push(vec!["render", "helm", "x", "w"]);
    }
    if case.has("w/kustomization.yaml") {
        all.push(vec!["render", "kustomize", "w"]);
    }
    if case.name.starts_with("count-") {
        all.push(vec!["rehearse", "--offline"]);
    }
    if case.name.starts_with("name-") {
        all.extend(
            ["json", "github", "sarif", "junit", "markdown", "html"]
                .map(|form| vec!["check", "--offline", "--output", form]),
        );
        all.push(vec!["rehearse", "--offline"]);
    }
    all
}

/// Runs a command in a folder, with a limit on its addresses and on its time.
fn start(program: &Path, command: &[&str], folder: &Path) -> anyhow::Result<Run> {
    const ADDRESSES: u64 = 6 << 30;
    let files = tempfile::tempdir()?;
    let (out, err) = (files.path().join("out"), files.path().join("err"));
    let began = std::time::Instant::now();
    let used = Command::new("timeout")
        .args(["-k", "2", "60", "prlimit", &format!("--as={ADDRESSES}"), "--"])
        .arg(program)
        .args(command)
        .current_dir(folder)
        .env("XDG_STATE_HOME", files.path())
        .env("XDG_RUNTIME_DIR", files.path())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out)?)
        .stderr(std::fs::File::create(&err)?)
        .spawn()
        .context("needs `timeout` of coreutils and `prlimit` of util-linux")?
        .wait4()?;
    Ok(Run {
        code: used.status.code(),
        time: began.elapsed(),
        memory: used.rusage.maxrss / 1024,
        out: std::fs::read(out)?,
        err: std::fs::read(err)?,
    })
}

/// What is wrong with a run.
fn wrong(run: &Run) -> Vec<&'static str> {
    let has = |text: &str| String::from_utf8_lossy(&run.err).contains(text);
    [
        (!matches!(run.code, Some(0..=2)), "it ended by a signal, a panic or the clock"),
        (run.time > TIME, "slow"),
        (run.memory > MEMORY, "memory"),
        (has("panicked at"), "a panic"),
        (is_obeyed(&run.out) || is_obeyed(&run.err), "raw control characters"),
    ]
    .into_iter()
    .filter_map(|(is_wrong, what)| is_wrong.then_some(what))
    .collect()
}

/// Whether a terminal or a log of CI would obey a part of an output.
fn is_obeyed(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let is_control = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}')
    };
    text.contains(is_control)
        || text.lines().any(|line| line.starts_with("::error::x") || line.starts_with("::add-mask"))
}
