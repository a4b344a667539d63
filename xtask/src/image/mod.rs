//! `cargo xtask image`: a container image as an OCI image layout (OCI image specification 1.1, "Image
//! Layout"), made from static programs without any daemon.

mod content;
mod layout;

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};
use content::{base_files, program_files};
use layout::{Image, Layout};

use crate::release::{
    VERSION,
    archive::{file_of, source_date},
    executable::{is_elf, static_machine},
};

/// The name by which `deploy/` knows the image.
#[cfg(test)]
const NAME: &str = "ghcr.io/tiphys/tiphys";

/// The user that the image runs as: no system has one of this number, and Kubernetes can tell that it is not
/// root.
const USER: u32 = 65532;

/// What to put into the image.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Static programs for Linux, or archives of a release with one in them; one per machine. Several make
    /// one image for several machines.
    #[arg(required = true, value_name = "FILE")]
    programs: Vec<PathBuf>,
    /// Folder to write the layout into; it must not exist.
    #[arg(long, value_name = "DIR", default_value = "target/image")]
    out: PathBuf,
    /// The certificates of authorities that the image trusts.
    #[arg(long, value_name = "FILE", default_value = "/etc/ssl/certs/ca-certificates.crt")]
    ca_bundle: PathBuf,
}

/// Writes the layout.
///
/// # Errors
/// A program is not static, two are for one machine, or a file cannot be read or written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(!args.out.exists(), "{} exists: remove it, or say another --out", args.out.display());
    let read = |file: &PathBuf| fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    let certificates = read(&args.ca_bundle)?;
    let mut programs = Vec::new();
    for file in &args.programs {
        let content = read(file)?;
        let program = if is_elf(&content) { content } else { file_of(&content, "tiphys")? };
        programs.push(program);
    }
    let layout = layout(&programs, &certificates, source_date()?)?;
    layout.write(&args.out)?;
    println!("{}: {} of {} bytes", args.out.display(), layout.digest(), layout.size());
    Ok(())
}

/// The layout for some programs.
fn layout(programs: &[Vec<u8>], certificates: &[u8], time: u64) -> anyhow::Result<Layout> {
    ensure!(
        certificates.windows(27).any(|part| part == b"-----BEGIN CERTIFICATE-----"),
        "the bundle of authorities has no certificate in PEM form"
    );
    let license = fs::read(crate::oracles::workspace_root().join("LICENSE"))?;
    let base = base_files(certificates).to_tar(time)?;
    let mut images: Vec<Image> = Vec::new();
    for program in programs {
        let machine = static_machine(program)?;
        let is_new = images.iter().all(|image| image.machine != machine.oci);
        ensure!(is_new, "two programs are for {}", machine.oci);
        let layers = vec![base.clone(), program_files(program, &license).to_tar(time)?];
        images.push(Image { machine: machine.oci, layers });
    }
    Layout::new(&images, VERSION, time)
}

#[cfg(test)]
mod tests;
