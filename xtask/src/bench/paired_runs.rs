//! Measuring whole processes in turn: A B A B …, so that a drift of the machine's speed hits both.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use wait4::Wait4 as _;

/// What one run of a program took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// From start to end, as a person waits.
    pub wall: Duration,
    /// Processor time, user and system together, of the process itself.
    pub cpu: Duration,
    /// Largest resident size, in bytes.
    pub peak_memory: u64,
}

/// The runs of one program.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// How the program is called in the table.
    pub name: String,
    /// One entry per counted run.
    pub samples: Vec<Sample>,
}

impl Measured {
    /// The median of one figure, in seconds or bytes.
    pub(crate) fn median(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.samples.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Median wall time in seconds.
    pub(crate) fn wall(&self) -> f64 {
        self.median(|sample| sample.wall.as_secs_f64())
    }

    /// Median peak memory in bytes.
    pub(crate) fn memory(&self) -> f64 {
        self.median(|sample| sample.peak_memory as f64)
    }
}

/// How many times `peer` takes what `ours` takes.
pub(crate) fn ratio(peer: f64, ours: f64) -> f64 {
    peer / ours.max(f64::MIN_POSITIVE)
}

/// A program with its arguments, the last of which is a folder.
pub(crate) fn call(program: &Path, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(folder);
    command
}

/// Writes a report to its file and to stdout.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn publish(file: &str, report: &str) -> anyhow::Result<()> {
    fs::create_dir_all(Path::new(file).parent().context("the report stands in a folder")?)?;
    fs::write(file, report)?;
    println!("{report}");
    Ok(())
}

/// Runs the named commands in turn, once unmeasured and then `runs` times.
///
/// # Errors
/// A command cannot be started, or does not succeed: a failed run measures nothing.
pub(crate) fn take_turns(
    runs: usize,
    commands: &[(&str, &dyn Fn() -> Command)],
) -> anyhow::Result<Vec<Measured>> {
    take_turns_ending(runs, &[0], commands)
}

/// As [`take_turns`], of commands that end with one of the given exit codes.
///
/// # Errors
/// A command cannot be started, or ends otherwise.
pub(crate) fn take_turns_ending(
    runs: usize,
    codes: &[i32],
    commands: &[(&str, &dyn Fn() -> Command)],
) -> anyhow::Result<Vec<Measured>> {
    let mut measured: Vec<_> = commands
        .iter()
        .map(|(name, _)| Measured { name: (*name).to_owned(), samples: Vec::with_capacity(runs) })
        .collect();
    for round in 0..=runs {
        for ((name, command), into) in commands.iter().zip(&mut measured) {
            let sample = sample(command(), codes).with_context(|| format!("cannot measure {name}"))?;
            if round > 0 {
                into.samples.push(sample);
            }
        }
    }
    Ok(measured)
}

/// Runs a command that ends with one of the exit codes.
///
/// # Errors
/// It cannot be started, or ends otherwise.
pub(crate) fn sample(mut command: Command, codes: &[i32]) -> anyhow::Result<Sample> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let used = command.spawn()?.wait4()?;
    let wall = start.elapsed();
    let is_expected = used.status.code().is_some_and(|code| codes.contains(&code));
    ensure!(is_expected, "{command:?} ended with {}", used.status);
    Ok(Sample { wall, cpu: used.rusage.utime + used.rusage.stime, peak_memory: used.rusage.maxrss })
}

/// A Markdown table of medians, and of the first program's advantage over each other one.
pub(crate) fn table(measured: &[Measured]) -> String {
    let mut out = String::from(
        "| program | wall ms | cpu ms | peak MiB | wall ratio | memory ratio |\n|---|--:|--:|--:|--:|--:|\n",
    );
    let Some(ours) = measured.first() else { return out };
    for program in measured {
        let cpu = program.median(|sample| sample.cpu.as_secs_f64());
        let _ = writeln!(
            out,
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            program.name,
            program.wall() * 1e3,
            cpu * 1e3,
            program.memory() / f64::from(1 << 20),
            ratio(program.wall(), ours.wall()),
            ratio(program.memory(), ours.memory()),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_in_turn_and_refuses_failures() {
        let yes: &dyn Fn() -> Command = &|| Command::new("true");
        let measured = take_turns(3, &[("a", yes), ("b", yes)]).unwrap();
        assert_eq!(measured.iter().map(|m| m.samples.len()).collect::<Vec<_>>(), [3, 3]);
        assert!(measured[0].memory() > 0.0);
        assert_eq!(table(&measured).lines().count(), 4);
        assert!(take_turns(1, &[("no", &|| Command::new("false"))]).is_err());
    }
}
