//! `cargo xtask bench apiserver`: the embedded API server in process and over HTTPS, beside kube-apiserver.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{
    embedded_server::EmbeddedServer,
    load::{self, FIGURES, Load, Rates},
    publish,
};
use crate::{oracles::workspace_root, schema::server::Server};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
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

/// Measures and writes the report.
///
/// # Errors
/// A program cannot be built or fails.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let serve = build()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let over_https = |address: &str, token: &str| {
        let load = Load { address, token, count: args.count, connections: args.connections };
        runtime.block_on(load.rates())
    };
    let alone = load::in_process(args.count)?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let mut command = Command::new(&serve);
    command.arg("127.0.0.1:0").arg(&kubeconfig);
    let embedded = EmbeddedServer::start(command, &kubeconfig)?;
    let empty = memory(embedded.id())?;
    let ours = over_https(&embedded.address, &embedded.token)?;
    let full = memory(embedded.id())?;
    drop(embedded);
    let real = match args.alone {
        true => None,
        false => {
            let server = Server::start()?;
            Some(over_https(server.address(), server.token())?)
        }
    };
    publish(REPORT, &report(args, [&alone, &ours], real.as_ref(), [empty, full])?)
}

fn report(
    args: &Args,
    [alone, ours]: [&Rates; 2],
    real: Option<&Rates>,
    [empty, full]: [u64; 2],
) -> anyhow::Result<String> {
    let mut text = format!(
        "# Rates of the embedded API server\n\nMade by `cargo xtask bench apiserver`: {} ConfigMaps; over HTTPS on {} connections. A second:\n\n\
         | | in process | over HTTPS | kube-apiserver + etcd |\n|---|--:|--:|--:|\n",
        args.count, args.connections
    );
    for (at, figure) in FIGURES.iter().enumerate() {
        let real = real.map_or(String::new(), |real| format!("{:.0}", real[at]));
        writeln!(text, "| {figure} | {:.0} | {:.0} | {real} |", alone[at], ours[at])?;
    }
    writeln!(text, "\nMemory: {} MB empty, {} MB afterwards.", empty / 1024, full / 1024)?;
    Ok(text)
}

/// Builds the server that is measured as a process of its own, and says where it is.
fn build() -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .current_dir(workspace_root())
        .args(["build", "--release", "--package", "tiphys-apiserver", "--example", "serve"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the example `serve` cannot be built");
    let artifacts = String::from_utf8(output.stdout)?;
    let found = artifacts.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = found.filter_map(|a| Some(PathBuf::from(a["executable"].as_str()?)));
    executables.next().context("cargo names no executable")
}

/// Resident memory of a process in KiB.
fn memory(id: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).context("needs Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.context("the process has no resident memory")
}
