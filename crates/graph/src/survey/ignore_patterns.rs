//! Files that lists of patterns leave out: `.gitignore` (gitignore(5)), and `.sourceignore` with what Flux's
//! source controller leaves out by itself (Flux docs, "Excluding files").

use tiphys_gocompat::glob::doublestar;

use super::Files;

/// What the source controller puts into no artifact, unless the source has patterns of its own.
const OF_FLUX: &str = "
.git/
.gitignore
.gitmodules
.gitattributes
*.jpg
*.jpeg
*.gif
*.png
*.wmv
*.flv
*.tar.gz
*.zip
.github/
.circleci/
.travis.yml
.gitlab-ci.yml
appveyor.yml
.drone.yml
cloudbuild.yaml
codeship-services.yml
codeship-steps.yml
**/.goreleaser.yml
**/.sops.yaml
**/.flux.yaml
";

/// Whether Git is told to ignore a file: something makes it when it is needed.
pub fn is_git_ignored(files: &Files, path: &str) -> bool {
    listed(files, path, ".gitignore").unwrap_or(false)
}

/// Whether Flux's source controller leaves a file out of what it fetches. `own` are the patterns of the source
/// itself: they replace those that are left out by default, and come after those of the repository.
pub(super) fn is_left_out_by_flux(files: &Files, path: &str, own: Option<&str>) -> bool {
    let by_default = || verdict(OF_FLUX, path);
    let by_source = own.and_then(|own| verdict(own, path));
    by_source
        .or_else(|| listed(files, path, ".sourceignore"))
        .or_else(|| by_default().filter(|_| own.is_none()))
        .unwrap_or(false)
}

/// What the lists of a name say of a file, those in the folders above it; the nearest decides.
fn listed(files: &Files, path: &str, list: &str) -> Option<bool> {
    let folders = std::iter::once("").chain(path.match_indices('/').map(|(at, _)| &path[..at]));
    folders.fold(None, |said, folder| {
        let list = if folder.is_empty() { list.to_owned() } else { format!("{folder}/{list}") };
        let text = files.contains(&list).then(|| files.text(&list)).flatten();
        text.and_then(|text| verdict(&text, path[folder.len()..].trim_start_matches('/'))).or(said)
    })
}

/// What the last pattern says that covers a path; nothing if none does.
fn verdict(patterns: &str, path: &str) -> Option<bool> {
    let lines = patterns.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.strip_prefix('!').map_or((line, true), |pattern| (pattern, false)))
        .rfind(|(pattern, _)| covers(pattern, path))
        .map(|(_, is_ignored)| is_ignored)
}

/// Whether a pattern covers a path or a folder above it.
fn covers(pattern: &str, path: &str) -> bool {
    let is_anchored = pattern.trim_end_matches('/').contains('/');
    let pattern = pattern.trim_end_matches('/').trim_start_matches('/');
    let ends = path.match_indices('/').map(|(at, _)| at).chain(std::iter::once(path.len()));
    ends.map(|end| &path[..end]).any(|path| {
        let tried = if is_anchored { path } else { path.rsplit('/').next().unwrap_or(path) };
        doublestar(pattern, tried) == Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_vfs::MemTree;

    use super::{covers, is_git_ignored, is_left_out_by_flux};
    use crate::survey::Files;

    #[test]
    fn patterns_cover_as_in_git() {
        for (pattern, path) in [
            ("rendered.yaml", "a/b/rendered.yaml"),
            ("vendor/", "a/vendor/x/install.yaml"),
            ("/build", "build/x"),
            ("a/*.yaml", "a/b.yaml"),
            ("**/gen", "x/gen/y"),
        ] {
            assert!(covers(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [("/build", "a/build"), ("a/*.yaml", "a/b/c.yaml"), ("ven", "vendor/x")] {
            assert!(!covers(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn the_last_pattern_of_the_nearest_list_decides() {
        let files = [(".gitignore", "*.yaml\n!kept.yaml\n"), ("apps/.gitignore", "kept.yaml\n")];
        let files = Files::list(Arc::new(MemTree::from_files(files)), "");
        assert!(is_git_ignored(&files, "made.yaml") && is_git_ignored(&files, "apps/kept.yaml"));
        assert!(!is_git_ignored(&files, "kept.yaml") && !is_git_ignored(&files, "made.txt"));
    }

    #[test]
    fn patterns_of_a_source_replace_the_usual_ones() {
        let files = [(".sourceignore", "docs/\n")];
        let files = Files::list(Arc::new(MemTree::from_files(files)), "");
        let is_out = |path: &str, own: Option<&str>| is_left_out_by_flux(&files, path, own);
        assert!(is_out("clusters/home/.sops.yaml", None) && is_out("docs/app.yaml", None));
        assert!(!is_out("clusters/home/app.yaml", None));
        let own = Some("/*\n!/clusters\n");
        assert!(is_out("apps/app.yaml", own));
        assert!(!is_out("clusters/home/.sops.yaml", own));
    }
}
