//! `tiphys controller` and `tiphys twin` as processes, and what they use.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use anyhow::{Context, bail};

/// How long a program may take to say that it is ready.
const READY: Duration = Duration::from_secs(600);
/// Ticks of `/proc/PID/stat` in a second: what Linux has on every architecture that it shows them for.
const TICKS: f64 = 100.0;

/// What a process has used.
#[derive(Clone, Copy)]
pub(super) struct Used {
    /// Processor time, user and system.
    pub cpu: Duration,
    /// Largest resident size until then, in bytes.
    pub peak: u64,
    /// Resident size now, in bytes.
    pub resident: u64,
}

/// What a process has used until now.
pub(super) fn process_usage(id: u32) -> anyhow::Result<Used> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).context("needs Linux")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let size = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() * 1024
    };
    let cpu = Duration::from_secs_f64((ticks(11) + ticks(12)) / TICKS);
    Ok(Used { cpu, peak: size("VmHWM:"), resident: size("VmRSS:") })
}

/// A running program whose lines are read as they come; ended when dropped.
pub(super) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Starts it and waits for a line that holds a text; returns that line.
    pub(super) fn start(command: &mut Command, ready: &str) -> anyhow::Result<(Self, String)> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (send, lines) = mpsc::channel();
        let pipes: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().context("piped")?),
            Box::new(child.stderr.take().context("piped")?),
        ];
        for pipe in pipes {
            let send = send.clone();
            std::thread::spawn(move || {
                // Lines that nobody waits for are read all the same, or the program would stop.
                BufReader::new(pipe).lines().map_while(Result::ok).for_each(|line| drop(send.send(line)));
            });
        }
        let running = Self { child, lines };
        let mut said = String::new();
        loop {
            let Ok(line) = running.lines.recv_timeout(READY) else { bail!("{command:?} says only: {said}") };
            if line.contains(ready) {
                return Ok((running, line));
            }
            said.push_str(&line);
        }
    }

    /// Its id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The engine.
pub(super) struct Engine {
    running: Running,
    address: String,
}

impl Engine {
    /// Starts it on a cluster; returns once it has seen what is there.
    pub(super) fn start(tiphys: &Path, kubeconfig: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(tiphys);
        command.arg("controller").arg("--kubeconfig").arg(kubeconfig);
        command.args(["--leader-elect", "false", "--metrics", "127.0.0.1:0"]);
        command.env("XDG_CACHE_HOME", folder.join(".git/cache"));
        let (running, line) = Running::start(&mut command, "serves /metrics")?;
        let address = line.split("address=").nth(1).and_then(|rest| rest.split_whitespace().next());
        Ok(Self { address: address.context("the engine says where it serves")?.to_owned(), running })
    }

    /// What it has used until now.
    pub(super) fn usage(&self) -> anyhow::Result<Used> {
        process_usage(self.running.id())
    }

    /// How many requests it has sent to the cluster.
    pub(super) fn requests(&self) -> anyhow::Result<f64> {
        self.sum("tiphys_cluster_requests_total{")
    }

    /// How many times it has rendered an Application.
    pub(super) fn render_count(&self) -> anyhow::Result<f64> {
        self.sum("tiphys_app_renders_total{how=\"anew\"")
    }

    /// The sum of a metric.
    fn sum(&self, series: &str) -> anyhow::Result<f64> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let lines = text.lines().filter(|line| line.starts_with(series));
        Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}
