//! Running programs of others with limits: none is started by a shell, none gets this process's environment,
//! and what is left of one when its time is over is ended with everything that it started.

mod copy;

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

pub(crate) use copy::{unpack, walk};

/// How long a program may take: Argo CD's limit.
pub(crate) const TIME: Duration = Duration::from_secs(90);
/// The most that it may print, in bytes.
const MOST_OUTPUT: u64 = 64 << 20;
/// How much of its complaints is told, in bytes.
const MOST_TOLD: u64 = 4 << 10;
/// How often it is looked at whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// How often a program is tried that somebody seems to be writing: a process that was started at the same
/// moment holds what this one has just written open for an instant.
const BUSY_TRIES: usize = 400;

/// A program to run.
pub(crate) struct Program<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// Where it runs.
    pub folder: &'a Path,
    /// Its home folder.
    pub home: &'a Path,
    /// Its variables, beside `PATH` and `HOME`.
    pub env: &'a BTreeMap<String, String>,
    /// What it reads.
    pub input: &'a str,
    /// How long it may take.
    pub time: Duration,
}

/// What a program did.
pub(crate) struct Done {
    pub status: ExitStatus,
    pub output: String,
    /// The beginning of what it printed on stderr.
    pub complaints: String,
}

/// Why there is nothing that a program did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It could not be started.
    #[error("cannot start {program:?}: {why}")]
    Start {
        program: String,
        #[source]
        why: std::io::Error,
    },
    /// It exceeded a limit, or printed what is no text.
    #[error("{0}")]
    Limit(String),
}

impl Program<'_> {
    /// Runs the program and waits for it.
    ///
    /// # Errors
    /// It cannot be started, takes too long or prints too much.
    pub(crate) fn run(&self) -> Result<Done, Failure> {
        let program = &self.words[0];
        let mut child = self.start().map_err(|why| Failure::Start { program: program.clone(), why })?;
        feed(child.stdin.take(), self.input);
        let out = reader(child.stdout.take(), MOST_OUTPUT);
        let complaints = reader(child.stderr.take(), MOST_TOLD);
        let ended = wait(&mut child, Instant::now() + self.time);
        end_group(&child);
        let Some(status) = ended else {
            // It was killed; this takes its entry off the system's table.
            let _ = child.wait();
            let text = format!("{program:?} takes longer than {} s", self.time.as_secs());
            return Err(Failure::Limit(text));
        };
        let complaints = complaints.recv().unwrap_or_default();
        let out = out.recv().unwrap_or_default();
        if out.len() as u64 > MOST_OUTPUT {
            return Err(Failure::Limit(format!("{program:?} prints more than {MOST_OUTPUT} bytes")));
        }
        let output = String::from_utf8(out)
            .map_err(|_| Failure::Limit(format!("what {program:?} prints is not UTF-8")))?;
        let complaints = String::from_utf8_lossy(&complaints).into_owned();
        Ok(Done { status, output, complaints })
    }

    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .current_dir(self.folder)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.home)
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: what it starts ends with it.
            .process_group(0);
        let mut tries = 0;
        loop {
            match command.spawn() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                    tries += 1;
                    std::thread::sleep(LOOK);
                }
                result => return result,
            }
        }
    }
}

/// How a program ended that did not succeed, as Go says it.
pub(crate) fn go_status(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit status {code}")),
        (None, Some(9)) => Some("signal: killed".to_owned()),
        (None, Some(signal)) => Some(format!("signal: {signal}")),
        (None, None) => Some(status.to_string()),
    }
}

/// Writes what a program reads, in a thread of its own: it may print before it has read everything.
fn feed(pipe: Option<ChildStdin>, input: &str) {
    let Some(mut pipe) = pipe.filter(|_| !input.is_empty()) else { return };
    let input = input.to_owned();
    // A program that does not want to read on closes the pipe.
    std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
}

/// Reads a pipe to its end in a thread of its own; keeps at most one byte more than the limit.
fn reader(pipe: Option<impl Read + Send + 'static>, most: u64) -> mpsc::Receiver<Vec<u8>> {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(pipe) = pipe {
            let mut rest = pipe;
            // What cannot be read is equivalent to the end.
            let _ = rest.by_ref().take(most + 1).read_to_end(&mut kept);
            let _ = std::io::copy(&mut rest, &mut std::io::sink());
        }
        let _ = give.send(kept);
    });
    take
}

fn wait(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Ends what is left of a program and of what it started.
fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Nothing is left of most.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
