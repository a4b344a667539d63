//! Writes `cli.md`, the pages of the rules, their lines in `SUMMARY.md`, and the manual pages into a folder:
//! `cargo xtask docs`.

use std::{env, fs, path::PathBuf};

fn main() -> std::io::Result<()> {
    let docs: PathBuf = env::args_os().nth(1).map_or_else(|| "docs".into(), Into::into);
    let man = docs.join("man");
    fs::create_dir_all(&man)?;
    for folder in ["../deploy/install", "../deploy/chart/tiphys/files"] {
        let folder = docs.join(folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("crds.yaml"), tiphys_cli::cli_reference::definitions())?;
    }
    let command = tiphys_cli::command();
    fs::write(docs.join("cli.md"), tiphys_cli::cli_reference::markdown(&command))?;
    let rules = docs.join("rules");
    fs::create_dir_all(&rules)?;
    let pages = tiphys_check::pages();
    for (name, text) in &pages {
        fs::write(rules.join(name), text)?;
    }
    let summary = docs.join("SUMMARY.md");
    let names = pages.iter().map(|(name, _)| name.as_str());
    let contents = tiphys_cli::cli_reference::contents(&fs::read_to_string(&summary)?, names);
    fs::write(summary, contents)?;
    clap_mangen::generate_to(command, man)
}
