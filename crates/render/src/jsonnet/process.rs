//! Evaluation in a process of its own: this very program, started anew with [`EVALUATOR`] as its argument,
//! without environment, under limits of the kernel. It asks for files over its output and gets them over its
//! input.

use std::{
    cell::RefCell,
    io::{self, BufReader, BufWriter, Read as _, StdinLock, StdoutLock},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, OnceLock, mpsc},
    thread,
};

use tiphys_value::RenderLimits;
use tiphys_vfs::FileTree;

use super::{
    STACK_BYTES,
    evaluation::{Reader, Task},
    messages::{Answer, Request, receive, send},
    time, too_slow,
};
use crate::RenderError;

/// The argument that makes a program an evaluator, see [`serve_evaluator`].
pub const EVALUATOR: &str = "jsonnet-evaluator";

/// How much memory an evaluation may take at most, in MiB, see [`memory_mib`].
const MEMORY_MIB: u64 = 1024;
/// What a process takes before it evaluates anything, in MiB: its code, the heaps of its threads.
const OWN_MIB: u64 = 256;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// From now on Jsonnet is evaluated in processes of this program, which has to call [`serve_evaluator`] when
/// its first argument is [`EVALUATOR`]. The first call counts.
pub fn evaluate_in(program: PathBuf) {
    PROGRAM.get_or_init(|| program);
}

pub(super) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// Evaluates in a process and hands it the files that it asks for.
pub(super) fn run(program: &Path, task: &Task, tree: Arc<dyn FileTree>) -> Result<String, RenderError> {
    let broken = |what: &str, error: io::Error| {
        RenderError::new(format!("{}: {what} the process that evaluates it: {error}", task.path))
    };
    let mut command = Command::new(program);
    let memory = memory_mib();
    command
        .args([EVALUATOR, &memory.to_string(), &(time().as_secs() + 5).to_string()])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| broken("cannot start", error))?;
    let (give, take) = mpsc::channel();
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(broken("no pipe to", io::ErrorKind::BrokenPipe.into()));
    };
    // Whatever goes wrong here, the process is waited for below and says more of it.
    let told = send(&mut input, task);
    thread::spawn(move || give.send(told.and_then(|()| serve(&tree, input, BufReader::new(output)))));
    let served = take.recv_timeout(time());
    if served.is_err() {
        // One that has ended by now needs no killing.
        let _ = child.kill();
    }
    let said = last_words(&mut child);
    let status = child.wait().map_err(|error| broken("cannot wait for", error))?;
    match served {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(RenderError::new(format!("{}: {}", task.path, broken_off(status, &said, memory)))),
        Err(_) => Err(too_slow(&task.path)),
    }
}

/// Answers requests until the evaluation has ended.
fn serve(
    tree: &Arc<dyn FileTree>,
    mut input: impl io::Write,
    mut output: impl io::Read,
) -> io::Result<Result<String, RenderError>> {
    let mut last_fault: Option<RenderError> = None;
    loop {
        let answer = match receive(&mut output)? {
            Request::Exists(path) => Ok(Answer::Exists(Reader::exists(tree, &path))),
            Request::Text(path) => tree.text(&path).map(Answer::Text),
            Request::Bytes(path) => tree.bytes(&path).map(Answer::Bytes),
            Request::Yields(text) => return Ok(Ok(text)),
            // The file that could not be read is known better here than by its message.
            Request::Fails(message) => {
                let same = last_fault.filter(|fault| fault.headline() == message);
                return Ok(Err(same.unwrap_or_else(|| RenderError::new(message))));
            }
        };
        let answer = answer.unwrap_or_else(|error| {
            let message = error.headline().to_owned();
            last_fault = Some(error);
            Answer::Fault(message)
        });
        send(&mut input, &answer)?;
    }
}

fn last_words(child: &mut Child) -> String {
    let mut said = Vec::new();
    if let Some(errors) = child.stderr.take() {
        // What was said until then is enough.
        let _ = errors.take(64 << 10).read_to_end(&mut said);
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}

fn broken_off(status: ExitStatus, said: &str, memory: u64) -> String {
    // The words of Rust's standard library for an allocation that was refused.
    if said.contains("memory allocation of") {
        return format!("evaluating it takes more than {memory} MiB of memory");
    }
    match said.lines().last() {
        Some(last) => format!("evaluating it broke off ({status}): {last}"),
        None => format!("evaluating it broke off ({status})"),
    }
}

/// How much memory an evaluation may take, in MiB: a quarter of what this process's container has, because
/// whoever goes over that ends all processes in it (Linux kernel, "cgroup-v2", `memory.oom.group`, which
/// Kubernetes sets).
fn memory_mib() -> u64 {
    share_of(container_memory())
}

fn share_of(limit: Option<u64>) -> u64 {
    limit.map_or(MEMORY_MIB, |bytes| (bytes >> 22).clamp(64, MEMORY_MIB))
}

/// How much memory this process's container may take, in bytes; `None` where nothing limits it.
pub fn container_memory() -> Option<u64> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    // A container without a limit says `max`.
    files.iter().find_map(|file| std::fs::read_to_string(file).ok())?.trim().parse().ok()
}

/// Evaluates the file that the input names: the whole life of a process that was started with [`EVALUATOR`]
/// the memory that it may take, in MiB, and its processor time in seconds.
///
/// # Errors
/// The limits cannot be set, or nobody listens any longer.
pub fn serve_evaluator(memory_mib: Option<&str>, seconds: Option<&str>) -> io::Result<()> {
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    let memory_mib = number(memory_mib).map_or(MEMORY_MIB, |mib| mib.min(MEMORY_MIB));
    limit(memory_mib, number(seconds).unwrap_or(RenderLimits::DEFAULT.time.as_secs()))?;
    let evaluator = thread::Builder::new().name("jsonnet".into()).stack_size(STACK_BYTES).spawn(|| {
        let files = Elsewhere {
            pipes: RefCell::new((BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock()))),
        };
        let task: Task = receive(&mut files.pipes.borrow_mut().0)?;
        let end = match task.run(&files) {
            Ok(text) => Request::Yields(text),
            Err(error) => Request::Fails(error.headline().to_owned()),
        };
        send(&mut files.pipes.borrow_mut().1, &end)
    })?;
    evaluator.join().unwrap_or_else(|_| Err(io::Error::other("the evaluation panicked")))
}

/// Limits memory and, should nobody be left to end this process, its time; there is nothing in a core dump of
/// it.
#[cfg(unix)]
fn limit(memory_mib: u64, seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limits = [
        (Resource::As, ((memory_mib + OWN_MIB) << 20) + STACK_BYTES as u64),
        (Resource::Cpu, seconds),
        (Resource::Core, 0),
    ];
    for (resource, most) in limits {
        let most = getrlimit(resource).maximum.map_or(most, |allowed| allowed.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn limit(_: u64, _: u64) -> io::Result<()> {
    Ok(())
}

/// The files, which the process at the other end of the pipes has.
struct Elsewhere {
    pipes: RefCell<(BufReader<StdinLock<'static>>, BufWriter<StdoutLock<'static>>)>,
}

impl Elsewhere {
    fn ask(&self, request: &Request) -> io::Result<Answer> {
        let (input, output) = &mut *self.pipes.borrow_mut();
        send(output, request)?;
        receive(input)
    }

    fn read<T>(&self, request: &Request, wanted: impl Fn(Answer) -> Option<T>) -> Result<T, RenderError> {
        match self.ask(request) {
            Ok(Answer::Fault(message)) => Err(RenderError::new(message)),
            Ok(answer) => wanted(answer).ok_or_else(|| RenderError::new("an answer to another question")),
            Err(error) => Err(RenderError::new(format!("nobody hands out files: {error}"))),
        }
    }
}

impl Reader for Elsewhere {
    fn exists(&self, path: &str) -> bool {
        matches!(self.ask(&Request::Exists(path.to_owned())), Ok(Answer::Exists(true)))
    }

    fn text(&self, path: &str) -> Result<String, RenderError> {
        self.read(&Request::Text(path.to_owned()), |answer| match answer {
            Answer::Text(text) => Some(text),
            _ => None,
        })
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, RenderError> {
        self.read(&Request::Bytes(path.to_owned()), |answer| match answer {
            Answer::Bytes(bytes) => Some(bytes),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_shares_its_memory() {
        assert_eq!(share_of(None), MEMORY_MIB);
        assert_eq!(share_of(Some(2_147_483_648)), 512);
        assert_eq!(share_of(Some(9_223_372_036_854_771_712)), MEMORY_MIB, "no limit of an older kernel");
        assert_eq!(share_of(Some(1_048_576)), 64);
    }
}
