//! `tiphys man`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Command;

use crate::exit::WrongUse;

/// Print a manual page, or write all of them into a folder
///
/// Examples:
///   tiphys man app sync | man -l -
///   tiphys man --dir ~/.local/share/man/man1
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The command whose page is printed, such as `app sync`; by default tiphys itself.
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands into this folder; it is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints one page on stdout, or writes all into the folder.
///
/// # Errors
/// No command has that name, or the output cannot be written.
pub(crate) fn run(args: &Args, root: Command) -> anyhow::Result<()> {
    if let Some(dir) = &args.dir {
        let place = || format!("cannot write manual pages into {}", dir.display());
        std::fs::create_dir_all(dir).with_context(place)?;
        return clap_mangen::generate_to(root, dir).with_context(place);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(find_command(root, &args.command)?).render(&mut page)?;
    Ok(crate::output::write(&page)?)
}

/// The definition of a command below the root, with the name that it has in the folder of pages.
fn find_command(root: Command, path: &[String]) -> Result<Command, WrongUse> {
    let mut found = root.disable_help_subcommand(true);
    found.build();
    for (depth, name) in path.iter().enumerate() {
        let sub = found.find_subcommand(name).filter(|sub| !sub.is_hide_set()).cloned();
        found = sub.ok_or_else(|| {
            let above: String = path[..depth].iter().map(|name| format!("{name} ")).collect();
            WrongUse(format!(
                "tiphys has no command `{above}{name}`: tiphys {above}--help lists the commands"
            ))
        })?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &[&str]) -> String {
        let path: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
        let mut page = Vec::new();
        let command = find_command(crate::command(), &path).unwrap();
        clap_mangen::Man::new(command).render(&mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn a_page_is_named_for_the_whole_command() {
        assert!(page(&[]).contains(".TH tiphys 1"), "{}", page(&[]));
        assert!(page(&["app", "sync"]).contains(".TH tiphys-app-sync 1"), "{}", page(&["app", "sync"]));
    }

    #[test]
    fn a_command_that_is_not_there_is_named() {
        let path = ["app".to_owned(), "sing".to_owned()];
        let error = find_command(crate::command(), &path).unwrap_err();
        assert!(error.0.contains("`app sing`"), "{}", error.0);
    }
}
