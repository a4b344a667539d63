//! Gives a target mutated inputs for a while, in a process of its own: an input may end that, or never end.
#![allow(clippy::print_stdout, reason = "the process tells its parent what it finds")]

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use tiphys_value::RenderLimits;

use crate::{Target, mutation::input, seeds};

/// How inputs are made, and what is too much.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long inputs are given.
    pub time: Duration,
    /// Draws inputs.
    pub seed: u64,
    /// The number of the first input.
    pub first: u64,
    /// An input that takes longer is a fault.
    pub slow: Duration,
    /// An input that takes more memory is a fault; in MiB.
    pub memory: u64,
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadInput {
    /// The input's number.
    pub number: u64,
    /// In a few words: a panic and where, `slow`, `memory`, the signal that ended the process.
    pub what: String,
}

/// What came of a target.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many inputs it took.
    pub inputs: u64,
    /// How long the slowest took, in milliseconds, and its number.
    pub slowest: (u64, u64),
    /// What the one took that took most memory, in MiB, and its number.
    pub largest: (u64, u64),
    /// What is wrong, each place of a panic once.
    pub faults: Vec<BadInput>,
}

/// Faults of other kinds than those already found are no longer looked for after so many.
const MOST_FAULTS: usize = 20;
/// The words that a process begins its lines with.
const FAULT: &str = "fault";
const DONE: &str = "done";

/// Gives a target inputs, in processes of this program.
///
/// # Errors
/// A process cannot be started.
pub fn run(target: Target, options: Options, progress: &Path) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let mut outcome = Outcome::default();
    let mut first = options.first;
    while outcome.faults.len() < MOST_FAULTS {
        let left = options.time.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--child")
            .arg(progress)
            .arg(target.name)
            .args(["--seconds", &left.as_secs_f64().to_string(), "--seed", &options.seed.to_string()])
            .args(["--first", &first.to_string(), "--slow", &options.slow.as_secs_f64().to_string()])
            .args(["--memory", &options.memory.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let lines = child.stdout.take().context("the process has an output")?;
        let mut is_done = false;
        for line in BufReader::new(lines).lines() {
            is_done |= outcome.add(&line?);
        }
        let status = child.wait()?;
        if is_done {
            break;
        }
        // It died, or ended itself over an input that does not end.
        let last =
            read_number(progress).with_context(|| format!("{} did not begin: {status}", target.name))?;
        if !outcome.faults.iter().any(|fault| fault.number == last) {
            outcome.faults.push(BadInput { number: last, what: format!("the process ended: {status}") });
        }
        outcome.inputs += last + 1 - first;
        first = last + 1;
    }
    Ok(outcome)
}

impl Outcome {
    /// Takes a line of a process. Returns whether it was the last one.
    fn add(&mut self, line: &str) -> bool {
        let mut words = line.splitn(3, ' ');
        let (kind, number, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
        let Some(number) = number.and_then(|number| number.parse().ok()) else { return false };
        match kind {
            Some(FAULT) => self.faults.push(BadInput { number, what: rest.to_owned() }),
            Some(DONE) => {
                let mut rest = rest.split(' ').filter_map(|word| word.parse().ok());
                let mut pair = || (rest.next().unwrap_or(0), rest.next().unwrap_or(0));
                self.inputs += number;
                self.slowest = self.slowest.max(pair());
                self.largest = self.largest.max(pair());
                return true;
            }
            _ => {}
        }
        false
    }
}

/// The process: gives a target inputs until the time is over, and prints what is wrong. What number is under
/// way stands in a file, for the one who looks why this process died.
///
/// # Errors
/// That file cannot be written.
pub fn run_child(root: &Path, target: Target, options: Options, progress: &Path) -> anyhow::Result<()> {
    // A program that is ended by its limit on time is none that takes too long.
    RenderLimits { time: options.slow / 10, ..RenderLimits::DEFAULT }.set();
    let seeds = seeds::read(root, target.name);
    if seeds.is_empty() {
        bail!("{} has no seeds", target.name);
    }
    let mut numbers = OpenOptions::new().create(true).truncate(true).write(true).open(progress)?;
    let memory = PeakMemory::new();
    let under_way = watch(options.slow);
    keep_panics();
    let began = Instant::now();
    let (mut number, mut places) = (options.first, Vec::new());
    let (mut slowest, mut largest) = ((0, 0), (0, 0));
    while began.elapsed() < options.time {
        let bytes = input(&seeds, options.seed, number);
        numbers.seek(SeekFrom::Start(0))?;
        numbers.write_all(&number.to_le_bytes())?;
        memory.reset();
        let before = memory.now();
        let start = Stopwatch::start();
        under_way.store(number + 1, Ordering::Relaxed);
        let panicked = panic_of(target, &bytes);
        under_way.store(0, Ordering::Relaxed);
        let took = start.elapsed();
        slowest = slowest.max((millis(took), number));
        if let Some(panicked) = panicked.filter(|place| !places.contains(place)) {
            println!("{FAULT} {number} {panicked}");
            places.push(panicked);
        }
        if took > options.slow {
            println!("{FAULT} {number} slow: {:.1} s for {} bytes", took.as_secs_f64(), bytes.len());
        }
        // Filling memory takes time: of what is over at once nothing is asked.
        if took > Duration::from_millis(2) {
            let grown = memory.peak().saturating_sub(before) >> 20;
            largest = largest.max((grown, number));
            if grown > options.memory {
                println!("{FAULT} {number} memory: {grown} MiB for {} bytes", bytes.len());
            }
        }
        number += 1;
    }
    let inputs = number - options.first;
    println!("{DONE} {inputs} {} {} {} {}", slowest.0, slowest.1, largest.0, largest.1);
    Ok(())
}

/// Processor time of this thread, so that what else runs on the machine makes nothing slow; where the system
/// does not tell it, time.
struct Stopwatch {
    start: Instant,
    used: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { start: Instant::now(), used: used_by_thread() }
    }

    fn elapsed(&self) -> Duration {
        match (self.used, used_by_thread()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.start.elapsed(),
        }
    }
}

/// What this thread has used of a processor; of Linux alone.
fn used_by_thread() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

thread_local! {
    /// The words of the last panic, and where it was.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has panics kept in place of printed.
fn keep_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
        let words = info.payload_as_str().unwrap_or_default().lines().next().unwrap_or_default();
        let text = format!("a panic at {}: {words}", place.unwrap_or_default());
        PANIC.with(|panic| panic.replace(Some(text)));
    }));
}

/// The panic that an input leads to. One that the code under test catches itself is none.
fn panic_of(target: Target, bytes: &[u8]) -> Option<String> {
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    let text = PANIC.with(RefCell::take);
    result.err().map(|_| text.unwrap_or_else(|| "a panic".to_owned()))
}

/// Ends this process if an input takes four times as long as it may. Returns where the number of the input
/// that is under way, and one more, has to stand; 0 for none.
fn watch(slow: Duration) -> Arc<AtomicU64> {
    let under_way = Arc::new(AtomicU64::new(0));
    let watched = under_way.clone();
    std::thread::spawn(move || {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = watched.load(Ordering::Relaxed);
            if now != seen || now == 0 {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > slow * 4 {
                println!("{FAULT} {} it does not end: over {} s", now - 1, (slow * 4).as_secs());
                std::process::exit(1);
            }
        }
    });
    under_way
}

/// The most memory that this process took since it was last asked; of Linux alone.
struct PeakMemory(Option<File>);

impl PeakMemory {
    fn new() -> Self {
        Self(OpenOptions::new().write(true).open("/proc/self/clear_refs").ok())
    }

    /// Lets the peak be what is taken now.
    fn reset(&self) {
        const PEAK: &[u8] = b"5";
        if let Some(mut file) = self.0.as_ref() {
            let _ = file.write_all(PEAK);
        }
    }

    fn now(&self) -> u64 {
        self.field("VmRSS:")
    }

    fn peak(&self) -> u64 {
        self.field("VmHWM:")
    }

    fn field(&self, name: &str) -> u64 {
        if self.0.is_none() {
            return 0;
        }
        let mut text = String::new();
        let read = File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut text));
        let line = text.lines().find_map(|line| line.strip_prefix(name)).filter(|_| read.is_ok());
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or_default() << 10
    }
}

/// The number that a process worked on last.
fn read_number(progress: &Path) -> Option<u64> {
    let bytes = std::fs::read(progress).ok()?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Writes the input of a number to a file of its own.
///
/// # Errors
/// The folder cannot be written.
pub fn save(root: &Path, target: Target, seed: u64, number: u64) -> anyhow::Result<PathBuf> {
    let folder = std::path::absolute(root.join("target/fuzz"))?;
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}-{seed}-{number}", target.name));
    std::fs::write(&path, input(&seeds::read(root, target.name), seed, number))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_process_add_up() {
        let mut outcome = Outcome::default();
        assert!(!outcome.add("fault 7 a panic at a.rs:1: no"));
        assert!(!outcome.add("what a library prints"));
        assert!(outcome.add("done 100 30 5 2 9"));
        assert_eq!((outcome.inputs, outcome.slowest, outcome.largest), (100, (30, 5), (2, 9)));
        assert_eq!(outcome.faults, [BadInput { number: 7, what: "a panic at a.rs:1: no".into() }]);
    }

    #[test]
    fn a_panic_is_kept_with_its_place() {
        let panics = Target { name: "x", run: |bytes| assert!(bytes.is_empty(), "not empty") };
        keep_panics();
        let found = panic_of(panics, b"x");
        let none = panic_of(panics, b"");
        let _ = std::panic::take_hook();
        assert!(found.unwrap().contains("runner.rs"));
        assert_eq!(none, None);
    }
}
