//! Hearing of edits of a working tree.

use std::path::Path;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::SourceError;

/// Keeps a watch alive; dropping it ends the watch.
pub struct WatchGuard {
    _watcher: RecommendedWatcher,
}

/// Calls `changed` with the paths (relative to the folder, `/` between steps) of each batch of edits.
/// An empty path means that the commit changed or that notices were lost: anything may have changed.
///
/// # Errors
/// The operating system refuses to watch the folder, for example for want of inotify watches.
pub fn watch(
    folder: &Path,
    changed: impl Fn(Vec<String>) + Send + 'static,
) -> Result<WatchGuard, SourceError> {
    let root = folder.to_path_buf();
    let fail = |error: notify::Error| SourceError::Read {
        url: folder.display().to_string(),
        reason: format!("cannot watch for changes: {error}"),
    };
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let paths = match event {
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if event.need_rescan() => vec![String::new()],
            Ok(event) => event.paths.iter().filter_map(|path| relevant(&root, path)).collect(),
            Err(_) => vec![String::new()],
        };
        if !paths.is_empty() {
            changed(paths);
        }
    })
    .map_err(fail)?;
    watcher.watch(folder, RecursiveMode::Recursive).map_err(fail)?;
    Ok(WatchGuard { _watcher: watcher })
}

/// The path relative to the root, unless it is of no concern to anybody who renders.
fn relevant(root: &Path, path: &Path) -> Option<String> {
    let relative = path.strip_prefix(root).ok()?.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
    match relative.split_once('/').unwrap_or((&relative, "")) {
        (".tiphys", _) => None,
        (".git", inside) => {
            let is_head = !inside.ends_with(".lock")
                && (inside == "HEAD" || inside == "packed-refs" || inside.starts_with("refs/heads"));
            is_head.then(String::new)
        }
        _ => Some(relative),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, time::Duration};

    #[test]
    fn hears_of_edits_but_not_of_its_own_state_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("apps")).unwrap();
        std::fs::create_dir_all(root.join(".tiphys")).unwrap();
        let (send, receive) = mpsc::channel();
        let _guard = watch(&root, move |paths| send.send(paths).unwrap()).unwrap();
        std::fs::write(root.join(".tiphys/state"), "x").unwrap();
        std::fs::write(root.join("apps/a.yaml"), "x").unwrap();
        let heard = receive.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(heard, ["apps/a.yaml"]);
    }

    #[test]
    fn a_new_commit_may_change_anything() {
        let root = Path::new("/repo");
        let seen = |path: &str| relevant(root, &root.join(path));
        assert_eq!(seen(".git/refs/heads/main"), Some(String::new()));
        assert_eq!(seen(".git/index"), None);
        assert_eq!(seen(".git/refs/heads/main.lock"), None);
        assert_eq!(seen("a/b.yaml"), Some("a/b.yaml".to_owned()));
    }
}
