//! `cargo xtask merge-keys SWAGGER`: the table of lists that a strategic merge merges.

use std::{fs, path::PathBuf};

use anyhow::Context;
use tiphys_kustomize::Schemas;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `api/openapi-spec/swagger.json` of Kubernetes 1.21.2, the version that kustomize embeds.
    swagger: PathBuf,
}

const TABLE: &str = "crates/kustomize/data/merge_keys.txt";

const HEADER: &str = "\
# Lists that a strategic merge merges, by kind: Kubernetes 1.21.2, the version kustomize embeds.
# Made by `cargo xtask merge-keys SWAGGER.json`; the notation is described in src/schema/table.rs.
";

/// Writes the table.
///
/// # Errors
/// The file cannot be read, or is no OpenAPI document.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let text = fs::read(&args.swagger).with_context(|| args.swagger.display().to_string())?;
    let schemas = Schemas::from_openapi(&serde_json::from_slice(&text)?)?;
    fs::write(TABLE, format!("{HEADER}{}", schemas.to_table()))?;
    Ok(())
}
