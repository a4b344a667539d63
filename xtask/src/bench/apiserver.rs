//! `cargo xtask bench apiserver`: the embedded API server in process and over HTTPS, beside kube-apiserver.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::publish;
use crate::{oracles::workspace_root, schema::server::Server};

/// Options of the suite.
#[derive(clap::Args)]
pub struct Args {
    /// Objects that are created, read and patched.
    #[arg(long, default_value_t = 10_000)]
    count: usize,
    /// Connections over which that happens.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Leave the real server out.
    #[arg(long)]
    alone: bool,
}

const REPORT: &str = "docs/benchmarks/apiserver-rates.md";
/// How long the embedded server may take to start.
const READY: Duration = Duration::from_secs(30);
const FIGURES: [&str; 3] = ["creates", "gets", "patches"];

/// Creates, gets and patches a second.
type Rates = [String; 3];

/// Measures and writes the report.
///
/// # Errors
/// A program cannot be built or fails.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let programs = build()?;
    let count = args.count.to_string();
    let load = programs.join("load");
    let alone = rates(&load, &["in-process", &count])?;
    let folder = tempfile::tempdir()?;
    let mut embedded = Embedded::start(&programs.join("serve"), folder.path())?;
    let empty = memory(embedded.child.id())?;
    let connections = args.connections.to_string();
    let over_http = rates(&load, &[&embedded.address, &embedded.token, &count, &connections])?;
    let full = memory(embedded.child.id())?;
    embedded.stop();
    let real = match args.alone {
        true => None,
        false => {
            let server = Server::start()?;
            Some(rates(&load, &[server.address(), server.token(), &count, &connections])?)
        }
    };
    publish(REPORT, &report(args, [&alone, &over_http], real.as_ref(), [empty, full])?)
}

fn report(
    args: &Args,
    [alone, over_http]: [&Rates; 2],
    real: Option<&Rates>,
    [empty, full]: [u64; 2],
) -> anyhow::Result<String> {
    let mut text = format!(
        "# Rates of the embedded API server\n\nMade by `cargo xtask bench apiserver`: {} ConfigMaps; over HTTPS on {} connections. A second:\n\n\
         | | in process | over HTTPS | kube-apiserver + etcd |\n|---|--:|--:|--:|\n",
        args.count, args.connections
    );
    for (at, figure) in FIGURES.iter().enumerate() {
        let real = real.map_or("", |real| real[at].as_str());
        writeln!(text, "| {figure} | {} | {} | {real} |", alone[at], over_http[at])?;
    }
    writeln!(text, "\nMemory: {} MB empty, {} MB afterwards.", empty / 1024, full / 1024)?;
    Ok(text)
}

/// Builds the server and the load generator; returns where they are.
fn build() -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .current_dir(workspace_root())
        .args([
            "build",
            "--release",
            "--package",
            "tiphys-apiserver",
            "--example",
            "serve",
            "--example",
            "load",
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the examples cannot be built");
    let artifacts = String::from_utf8(output.stdout)?;
    let found = artifacts.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = found.filter_map(|a| Some(PathBuf::from(a["executable"].as_str()?)));
    let executable = executables.next().context("cargo names no executable")?;
    Ok(executable.parent().context("a program lies in a folder")?.to_owned())
}

fn rates(load: &Path, arguments: &[&str]) -> anyhow::Result<Rates> {
    let output = Command::new(load).args(arguments).output()?;
    ensure!(output.status.success(), "load: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}/s: ")));
        line.map(str::to_owned).with_context(|| format!("load says nothing of {name}"))
    };
    Ok([figure(FIGURES[0])?, figure(FIGURES[1])?, figure(FIGURES[2])?])
}

/// A running server; ended when dropped.
struct Embedded {
    child: Child,
    address: String,
    token: String,
}

impl Embedded {
    fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        let child = Command::new(program).arg("127.0.0.1:0").arg(&kubeconfig).spawn()?;
        let mut server = Self { child, address: String::new(), token: String::new() };
        let start = Instant::now();
        while !kubeconfig.exists() {
            if start.elapsed() > READY {
                bail!("the embedded server is not ready after {READY:?}");
            }
            std::thread::yield_now();
        }
        let config: Value = serde_json::from_str(&fs::read_to_string(&kubeconfig)?)?;
        let of =
            |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        server.address = of("/clusters/0/cluster/server").trim_start_matches("https://").to_owned();
        server.token = of("/users/0/user/token");
        Ok(server)
    }

    fn stop(&mut self) {
        // One that has ended already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Resident memory of a process in KiB.
fn memory(id: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).context("needs Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.context("the process has no resident memory")
}
