//! Logins that the user's own Git knows (gitcredentials(7)), so that what a person can clone, a person's
//! commands reach.

use std::{collections::BTreeMap, time::Duration};

use crate::{Access, program::Program};

/// Helpers may ask a keychain, which may ask the person.
const TIME: Duration = Duration::from_secs(60);

/// The access with the login that Git's credential helpers have for an address; `None` if they have none, or
/// Git is not installed. Nobody is asked at the terminal.
pub(crate) fn with_helper_login(url: &str, access: &Access) -> Option<Access> {
    if url.contains(['\n', '\r', '\0']) {
        return None;
    }
    let mut env: BTreeMap<String, String> = std::env::vars().collect();
    env.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
    // Only the person's own configuration names helpers: Git must find no repository whose configuration it
    // would read.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        env.remove(name);
    }
    let folder = tempfile::tempdir().ok()?;
    let above = folder.path().canonicalize().ok()?.parent()?.to_string_lossy().into_owned();
    env.insert("GIT_CEILING_DIRECTORIES".to_owned(), above);
    let home = env.get("HOME").cloned().unwrap_or_default();
    let program = Program {
        words: &["git", "credential", "fill"].map(str::to_owned),
        folder: folder.path(),
        home: home.as_ref(),
        env: &env,
        input: &format!("url={url}\n\n"),
        time: TIME,
    };
    let done = program.run().ok().filter(|done| done.status.success())?;
    let field = |name: &str| {
        let value = done.output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.filter(|value| !value.is_empty()).map(str::to_owned)
    };
    Some(Access { username: field("username"), password: Some(field("password")?), ..access.clone() })
}
