//! Running a program with limits.

use std::{
    collections::BTreeMap,
    io::Read,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command as Process, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::declared::Command;

/// How long a program may take: Argo CD's limit.
const TIME: Duration = Duration::from_secs(90);
/// The most that it may print, in bytes.
const MOST_OUTPUT: u64 = 64 << 20;
/// How much of its complaints is told, in bytes.
const MOST_TOLD: u64 = 4 << 10;
/// How often it is looked at whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs a program in a folder; returns what it prints.
pub(super) fn run(
    command: &Command,
    folder: &Path,
    home: &Path,
    env: &BTreeMap<String, String>,
) -> Result<String, String> {
    run_within(command, folder, home, env, TIME)
}

pub(super) fn run_within(
    Command(words): &Command,
    folder: &Path,
    home: &Path,
    env: &BTreeMap<String, String>,
    time: Duration,
) -> Result<String, String> {
    let program = &words[0];
    let spawned = Process::new(program)
        .args(&words[1..])
        .current_dir(folder)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .envs(env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: what it starts ends with it.
        .process_group(0)
        .spawn();
    let mut child = spawned.map_err(|error| format!("cannot start {program:?}: {error}"))?;
    let out = reader(child.stdout.take(), MOST_OUTPUT);
    let complaints = reader(child.stderr.take(), MOST_TOLD);
    let ended = wait(&mut child, Instant::now() + time);
    end_group(&child);
    let Some(status) = ended else {
        // It was killed; this takes its entry off the system's table.
        let _ = child.wait();
        return Err(format!("{program:?} takes longer than {} s", time.as_secs()));
    };
    let told = complaints.recv().unwrap_or_default();
    if !status.success() {
        let told = String::from_utf8_lossy(&told).trim().to_owned();
        return Err(format!(
            "{program:?} failed ({status}){}{told}",
            if told.is_empty() { "" } else { ": " }
        ));
    }
    let out = out.recv().unwrap_or_default();
    if out.len() as u64 > MOST_OUTPUT {
        return Err(format!("{program:?} prints more than {MOST_OUTPUT} bytes"));
    }
    String::from_utf8(out).map_err(|_| format!("what {program:?} prints is not UTF-8"))
}

/// Reads a pipe to its end in a thread of its own; keeps at most one byte more than the limit.
fn reader(pipe: Option<impl Read + Send + 'static>, most: u64) -> mpsc::Receiver<Vec<u8>> {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(pipe) = pipe {
            let mut rest = pipe;
            // What cannot be read is as good as the end.
            let _ = rest.by_ref().take(most + 1).read_to_end(&mut kept);
            let _ = std::io::copy(&mut rest, &mut std::io::sink());
        }
        let _ = give.send(kept);
    });
    take
}

fn wait(child: &mut Child, until: Instant) -> Option<std::process::ExitStatus> {
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
