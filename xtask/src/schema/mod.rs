//! `cargo xtask schema`: derives `crates/schema/data/vMINOR.txt` from a real API server's discovery
//! and OpenAPI documents, and from the field tags of the Go module that the same server is built of
//! (OpenAPI does not say which fields are pointers). Facts only; no descriptions are taken over.

mod bootstrap;
mod gotypes;
mod internal;
pub(crate) mod server;
mod write;

use std::{fs, path::PathBuf};

use anyhow::Context;

pub(crate) use server::Server;

/// Derive the table of built-in kinds from the real kube-apiserver.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of the Go module cache that holds `k8s.io/api@VERSION` and its siblings.
    #[arg(long, env = "GOMODCACHE")]
    modules: Option<PathBuf>,
    /// Where to write; the default is `crates/schema/data/vMINOR.txt`.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let server = Server::start()?;
    let documents = server.documents()?;
    let modules = match &args.modules {
        Some(dir) => dir.clone(),
        None => server::module_cache()?,
    };
    let own = "crates/apiserver/data/bootstrap.txt";
    fs::write(own, bootstrap::objects(&server)?).with_context(|| own.to_owned())?;
    let structs = "crates/schema/data/internal.txt";
    fs::write(structs, internal::table(&modules, &documents.version)?).with_context(|| structs.to_owned())?;
    let go = gotypes::read(&modules, &documents.version)?;
    let table = write::table(&documents, &go)?;
    let minor: Vec<_> = documents.version.split('.').take(2).collect();
    let default = || PathBuf::from(format!("crates/schema/data/{}.txt", minor.join(".")));
    let output = args.output.clone().unwrap_or_else(default);
    fs::write(&output, &table).with_context(|| format!("write {}", output.display()))?;
    println!("{}: {} lines, {} KiB", output.display(), table.lines().count(), table.len() / 1024);
    Ok(())
}
