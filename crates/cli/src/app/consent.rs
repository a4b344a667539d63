//! Asking a person before a cluster is changed that nobody named.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;

use crate::exit::WrongUse;

/// How the cluster of a command was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// `--kubeconfig` or `--context`.
    Flag,
    /// `$KUBECONFIG`.
    Environment,
    /// It is the one that runs for this folder.
    LocalCluster,
    /// Nothing: it is the current context of `~/.kube/config`, whichever that is today.
    Nothing,
}

/// Says which cluster is about to be changed, and asks where nobody named it.
///
/// # Errors
/// Nobody agreed, or nobody can be asked.
pub(crate) fn before_change(address: &str, named_by: NamedBy, agreed: bool) -> anyhow::Result<()> {
    eprintln!("the cluster at {address} is changed");
    if agreed || named_by != NamedBy::Nothing {
        return Ok(());
    }
    let unnamed = "no cluster was named, and this is the current context of ~/.kube/config";
    if !std::io::stdin().is_terminal() {
        return Err(
            WrongUse(format!("{unnamed}; name it with --kubeconfig or --context, or say --yes")).into()
        );
    }
    if ask(&format!("{unnamed}. Go on?"))? { Ok(()) } else { bail!("nothing was changed") }
}

/// Asks a person at the terminal; anything but yes is no.
///
/// # Errors
/// The terminal cannot be read.
pub(crate) fn ask(question: &str) -> anyhow::Result<bool> {
    write!(std::io::stderr(), "{} [y/N] ", tiphys_diag::sanitize::terminal(question))?;
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
