//! `cargo xtask pictures`: the pictures of the README, made from what the program does: a recording of `tiphys
//! up` as it runs, and a drawing of the waves of the same repository.

mod recording;
mod waves;

use std::{fs, path::PathBuf};

use anyhow::Context as _;

use crate::oracles::workspace_root;

/// The repository that is shown.
const REPOSITORY: &str = "examples/storefront";

/// Where the program is.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program to record, built with `cargo build --release`.
    #[arg(long, value_name = "FILE", default_value = "target/release/tiphys")]
    tiphys: PathBuf,
}

/// Writes `docs/images/up.svg` and `docs/images/waves.svg`.
///
/// # Errors
/// The program cannot be run, or a file cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = workspace_root();
    let tiphys = fs::canonicalize(&args.tiphys)
        .with_context(|| format!("{}: build it with cargo build --release", args.tiphys.display()))?;
    let folder = root.join("docs/images");
    fs::create_dir_all(&folder)?;
    let shown = recording::record(&tiphys, root, &["up", REPOSITORY, "--once", "--offline"])?;
    fs::write(folder.join("up.svg"), recording::draw(&format!("tiphys up {REPOSITORY} --once"), &shown))?;
    fs::write(folder.join("waves.svg"), waves::draw(&waves::read(&tiphys, root, REPOSITORY)?))?;
    println!("wrote docs/images/up.svg and docs/images/waves.svg");
    Ok(())
}

/// Text in SVG.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
