//! `cargo xtask release`: the files of a release, as `.github/workflows/release.yml` makes them on every
//! platform.

pub(crate) mod archive;
pub(crate) mod executable;
mod manifests;
mod sbom;

#[cfg(test)]
#[cfg(unix)]
mod ci_scripts;
#[cfg(test)]
#[cfg(unix)]
mod installer;
#[cfg(test)]
#[cfg(unix)]
mod loopback;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};
use archive::{Entries, gzip, sha256, source_date};
use clap::ValueEnum;

use crate::oracles::workspace_root;

/// Version of the workspace, which is that of the release.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What to make, and where.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Target to build for; by default that of this machine, on Linux with musl, so that the program runs on
    /// any distribution. Rust's standard library and a C compiler for it have to be here.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Pack this program in place of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Folder of the release.
    #[arg(long, value_name = "DIR", default_value = "target/release-files")]
    out: PathBuf,
    /// Make only a part: the archive of one target, or what is said of all archives that are in the folder.
    #[arg(long, value_enum)]
    only: Option<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The archive of one target.
    Archive,
    /// Checksums, bill of materials, installer, manifests of package managers.
    Index,
}

/// Makes the files of a release.
///
/// # Errors
/// The program cannot be built, or a file not be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    if args.only != Some(Part::Index) {
        let target = args.target.clone().map_or_else(default_target, Ok)?;
        let program = match &args.binary {
            Some(file) => file.clone(),
            None => build(&target)?,
        };
        let file = write_archive(&program, &target, &args.out)?;
        println!("{} ({} bytes)", file.display(), fs::metadata(&file)?.len());
    }
    if args.only != Some(Part::Archive) {
        write_bill(&args.out)?;
        for file in write_index(&args.out)? {
            println!("{}", args.out.join(file).display());
        }
    }
    Ok(())
}

/// The name of an archive without its ending, and of the folder in it.
pub(crate) fn archive_name(target: &str) -> String {
    format!("tiphys-{VERSION}-{target}")
}

fn default_target() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say its host")?.replace("-linux-gnu", "-linux-musl"))
}

/// Builds the program with the profile for distribution, if the workspace has one.
fn build(target: &str) -> anyhow::Result<PathBuf> {
    let root = workspace_root();
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let profile = match manifest.lines().any(|line| line.trim() == "[profile.dist]") {
        true => "dist",
        false => "release",
    };
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).args(["rustc", "--locked", "--package", "tiphys-cli", "--bin", "tiphys"]);
    command.args(["--profile", profile, "--target", target]);
    if target.contains("-linux-") {
        // A twelfth of the file; as .ci/release does.
        command.args(["--", "-C", "link-arg=-Wl,-z,pack-relative-relocs"]);
    }
    ensure!(command.status().context("cannot run cargo")?.success(), "tiphys cannot be built for {target}");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(folder.join(target).join(profile).join(program_name(target)))
}

fn program_name(target: &str) -> &'static str {
    if target.contains("windows") { "tiphys.exe" } else { "tiphys" }
}

/// Packs a program with everything that belongs beside it; returns the archive.
fn write_archive(program: &Path, target: &str, out: &Path) -> anyhow::Result<PathBuf> {
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join(program_name(target));
    fs::copy(program, &stripped).with_context(|| format!("cannot read {}", program.display()))?;
    let content = fs::read(&stripped)?;
    if target.contains("-linux-") {
        let machine = executable::static_machine(&content);
        let machine = machine.with_context(|| program.display().to_string())?;
        ensure!(target.starts_with(machine.rust), "{} is for {}", program.display(), machine.rust);
    }
    if !target.contains("windows") {
        strip(&stripped, target)?;
    }
    let entries = entries(&stripped, target, folder.path())?;
    let file = out.join(format!("{}.tar.gz", archive_name(target)));
    fs::write(&file, gzip(&entries.to_tar(source_date()?)?)?)?;
    Ok(file)
}

/// Takes out what only debuggers read.
fn strip(program: &Path, target: &str) -> anyhow::Result<()> {
    let mut command = Command::new("strip");
    if target.contains("apple") {
        // Symbols that the loader needs stay.
        command.arg("-x");
    }
    let status = command.arg(program).status().context("cannot run strip: install binutils")?;
    ensure!(status.success(), "strip cannot read the program: is it for {target}?");
    Ok(())
}

/// What an archive holds. The program itself writes its manual pages and completions.
fn entries(program: &Path, target: &str, scratch: &Path) -> anyhow::Result<Entries> {
    const SHELLS: [(&str, &str); 4] =
        [("bash", "tiphys.bash"), ("zsh", "_tiphys"), ("fish", "tiphys.fish"), ("powershell", "_tiphys.ps1")];
    let top = archive_name(target);
    let mut entries = Entries::default();
    entries.add_file(&format!("{top}/{}", program_name(target)), 0o755, fs::read(program)?);
    for name in ["LICENSE", "README.md"] {
        entries.add_file(&format!("{top}/{name}"), 0o644, fs::read(workspace_root().join(name))?);
    }
    let pages = scratch.join("man");
    output_of(Command::new(program).args(["man", "--dir"]).arg(&pages))?;
    entries.add_files_of(&format!("{top}/man/man1"), &pages)?;
    for (shell, file) in SHELLS {
        let script = output_of(Command::new(program).args(["completion", shell]))?;
        entries.add_file(&format!("{top}/completions/{file}"), 0o644, script);
    }
    Ok(entries)
}

fn output_of(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", said.trim());
    Ok(output.stdout)
}

fn write_bill(out: &Path) -> anyhow::Result<()> {
    let bill = serde_json::to_string_pretty(&sbom::of_workspace()?)?;
    Ok(fs::write(out.join(format!("tiphys-{VERSION}.cdx.json")), bill + "\n")?)
}

/// Writes what is said of the archives of a folder; returns the names of the files.
fn write_index(out: &Path) -> anyhow::Result<Vec<String>> {
    let root = workspace_root();
    let packaging = root.join("packaging");
    let archives = archive_checksums(out)?;
    if archives.is_empty() {
        bail!("{} has no archive of version {VERSION}", out.display());
    }
    let mut written = Vec::new();
    for (folder, name) in SCRIPTS {
        fs::copy(root.join(folder).join(name), out.join(name))?;
        written.push(name.to_owned());
    }
    for (template, name) in [("homebrew.rb", "tiphys.rb"), ("krew.yaml", "krew.yaml")] {
        let text = fs::read_to_string(packaging.join(template))?;
        let filled = manifests::fill(&text, VERSION, &archives);
        fs::write(out.join(name), filled.with_context(|| format!("packaging/{template}"))?)?;
        written.push(name.to_owned());
    }
    fs::write(out.join(SUMS), checksum_lines(out)?)?;
    written.push(SUMS.to_owned());
    Ok(written)
}

/// Scripts that are parts of a release: jobs of CI fetch and verify them as they do the program.
const SCRIPTS: [(&str, &str); 3] = [
    ("packaging", "install.sh"),
    ("integrations/scripts", "check.sh"),
    ("integrations/scripts", "comment.sh"),
];

const SUMS: &str = "SHA256SUMS";

/// The checksums of the archives of this version, by target.
fn archive_checksums(out: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let prefix = archive_name("");
    let mut found = BTreeMap::new();
    for name in file_names(out)? {
        let target = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".tar.gz"));
        if let Some(target) = target {
            found.insert(target.to_owned(), sha256(&fs::read(out.join(&name))?));
        }
    }
    Ok(found)
}

/// The checksums of all files, as `sha256sum --check` takes them. Signatures sign this file, and are not in
/// it.
fn checksum_lines(out: &Path) -> anyhow::Result<String> {
    let mut lines = String::new();
    for name in file_names(out)? {
        if !name.starts_with(SUMS) {
            lines += &format!("{}  {name}\n", sha256(&fs::read(out.join(&name))?));
        }
    }
    Ok(lines)
}

fn file_names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = entry.file_name().into_string();
            names.push(name.map_err(|name| anyhow::anyhow!("{} is no UTF-8", name.display()))?);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_names_every_file_and_fills_the_manifests() {
        let folder = tempfile::tempdir().unwrap();
        for target in ["x86_64-unknown-linux-musl", "aarch64-apple-darwin"] {
            fs::write(folder.path().join(format!("{}.tar.gz", archive_name(target))), target).unwrap();
        }
        write_index(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let sum = sha256(b"x86_64-unknown-linux-musl");
        let lines = read(SUMS);
        assert_eq!(lines.lines().count(), 7, "{lines}");
        assert!(lines.contains(&format!("{sum}  tiphys-{VERSION}-x86_64-unknown-linux-musl.tar.gz\n")));
        for manifest in ["tiphys.rb", "krew.yaml"] {
            let text = read(manifest);
            assert!(text.contains(&sum), "{text}");
            assert!(text.contains(&format!("v{VERSION}/{}.tar.gz", archive_name("aarch64-apple-darwin"))));
            assert!(!text.contains('@') && !text.contains("x86_64-apple-darwin"), "{text}");
        }
        tiphys_yaml::from_yaml(&read("krew.yaml")).unwrap();
    }

    #[test]
    fn a_folder_without_archives_has_no_index() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_index(folder.path()).is_err());
    }

    #[test]
    fn binstall_knows_the_names_of_archives() {
        let manifest = fs::read_to_string(workspace_root().join("crates/cli/Cargo.toml")).unwrap();
        let named = archive_name("{ target }").replace(VERSION, "{ version }");
        assert!(manifest.contains(&format!("/v{{ version }}/{named}.tar.gz\"")), "{named}");
        assert!(manifest.contains(&format!("bin-dir = \"{named}/{{ bin }}{{ binary-ext }}\"")), "{named}");
    }

    #[test]
    fn what_installs_a_pinned_release_pins_this_one() {
        let pins = [
            ("integrations/github-action/action.yml", format!("    default: {VERSION}\n")),
            ("integrations/github-action/rehearse/action.yml", format!("    default: {VERSION}\n")),
            ("integrations/gitlab/tiphys-check.yml", format!("      default: \"{VERSION}\"\n")),
            ("integrations/pre-commit/run.sh", format!("\nversion={VERSION}\n")),
            ("deploy/chart/tiphys/Chart.yaml", format!("\nversion: {VERSION}\n")),
        ];
        for (file, pin) in pins {
            let text = fs::read_to_string(workspace_root().join(file)).unwrap();
            assert!(text.contains(&pin), "{file} does not pin {VERSION}");
            let is_yaml = !file.ends_with(".sh");
            for document in text.split("\n---\n").filter(|_| is_yaml) {
                tiphys_yaml::from_yaml_strict(document).unwrap_or_else(|error| panic!("{file}: {error}"));
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_for_another_machine_or_with_a_loader_is_not_packed() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tiphys");
        let refused = |content: Vec<u8>| {
            fs::write(&program, content).unwrap();
            let error = write_archive(&program, "x86_64-unknown-linux-musl", folder.path()).unwrap_err();
            format!("{error:#}")
        };
        assert!(refused(executable::empty_elf(183, 1)).contains("is for aarch64"));
        assert!(refused(executable::empty_elf(62, 3)).contains("linked dynamically"));
    }
}
