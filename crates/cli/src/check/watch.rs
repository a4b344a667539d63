//! Checking again after every edit.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use anyhow::Context as _;
use tiphys_graph::Kept;

use super::{Check, Round};

/// Editors write in several steps, which follow each other at once.
const QUIET: Duration = Duration::from_millis(5);

/// Checks, and again whenever files change, until interrupted. Only what depends on those files is read and
/// rendered again.
///
/// # Errors
/// The folder cannot be watched or the first round not be made; what goes wrong later is printed, and the
/// next edit awaited.
pub(super) fn follow(check: &Check<'_>) -> anyhow::Result<()> {
    let root = check.reader.root().context("--watch needs a folder, not an address")?;
    let (sender, edits) = channel();
    let _guard = tiphys_source::watch(root, move |paths| drop(sender.send(paths)))?;
    let mut round = check.round(&Kept::default())?;
    check.finish(&round)?;
    let mut changed = Vec::new();
    while let Some(more) = next(&edits) {
        changed.extend(more);
        match check.round(&kept_results(check, &round, &changed)) {
            Ok(next) => {
                if std::io::stdout().is_terminal() {
                    write!(std::io::stdout(), "\x1b[2J\x1b[H")?;
                }
                check.finish(&next)?;
                round = next;
                changed.clear();
            }
            Err(error) => eprintln!("error: {error:#}"),
        }
    }
    Ok(())
}

/// The paths of the next edits; `None` if nobody watches any more.
fn next(edits: &Receiver<Vec<String>>) -> Option<Vec<String>> {
    let mut changed = edits.recv().ok()?;
    while let Ok(more) = edits.recv_timeout(QUIET) {
        changed.extend(more);
    }
    Some(changed)
}

/// What the last round left that these edits do not concern.
fn kept_results(check: &Check<'_>, last: &Round, changed: &[String]) -> Kept {
    let kept = last.kept.after(&last.survey.files, check.reader.tree().as_ref(), changed);
    if check.args.offline { kept } else { kept.retrying() }
}
