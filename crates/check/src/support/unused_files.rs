//! What was put away: folders whose files nobody applies as they are, and files that are made when they are
//! needed.

use tiphys_diag::Severity;
pub(crate) use tiphys_graph::survey::is_git_ignored;
use tiphys_graph::{
    App, Declaration, Files, Owner, Set, Survey,
    unused_folders::{lies_below, put_away},
};

use crate::Finding;

/// Folder names that often say that something is kept and not used, beside those that say nothing else.
const OFTEN_PUT_AWAY: [&str; 4] = ["backup", "backups", "old", "vendor"];
/// Folder names that say: this is to be read, or copied.
const SHOWN: [&str; 8] =
    ["doc", "docs", "example", "examples", "samples", "skeleton", "skeletons", "website"];

/// Where Maven and Gradle keep what the tests of a program read, and where tests keep what they expect.
const READ_BY_TESTS: [&str; 2] = ["src/test/resources/", "/golden/"];

/// Whether a file lies where things were put away: what it needs went with it.
pub(crate) fn is_in_unused_folder(path: &str) -> bool {
    put_away(path).is_some()
        || lies_below(path, &OFTEN_PUT_AWAY)
        || READ_BY_TESTS.iter().any(|folder| path.contains(folder))
}

/// Files that say that what lies beside them and below is test data: of Kyverno's command line, Chainsaw and
/// KUTTL.
const OF_TESTS: [&str; 4] =
    ["chainsaw-test.yaml", "chainsaw-test.yml", "kyverno-test.yaml", "kuttl-test.yaml"];

/// What was put away in one repository.
struct Aside<'a> {
    /// Folders of test data, each with its slash.
    tests: Vec<&'a str>,
}

impl<'a> Aside<'a> {
    fn from_files(files: &'a Files) -> Self {
        let folder = |path: &'a std::sync::Arc<str>| {
            let at = path.rfind('/')? + 1;
            OF_TESTS.contains(&&path[at..]).then_some(&path[..at])
        };
        // Gatekeeper's own tests call their list `suite.yaml`, which others do too.
        let is_suite = |path: &std::sync::Arc<str>| {
            path.ends_with("/suite.yaml")
                && files.text(path).is_some_and(|text| text.contains("test.gatekeeper.sh/"))
        };
        let suite =
            |path: &'a std::sync::Arc<str>| Some(&path[..path.rfind('/')? + 1]).filter(|_| is_suite(path));
        Self { tests: files.paths().filter_map(|path| folder(path).or_else(|| suite(path))).collect() }
    }

    fn holds(&self, path: &str) -> bool {
        is_in_unused_folder(path) || self.tests.iter().any(|folder| path.starts_with(folder))
    }
}

/// Findings about what was put away, and that no Application in use leads to, count as information.
pub(crate) fn weigh(survey: &Survey, findings: &mut [Finding]) {
    let aside = Aside::from_files(&survey.files);
    let is_aside = |path: &str| aside.holds(path) || lies_below(path, &SHOWN);
    // Who looks at nothing but examples wants to know of them.
    if survey.files.paths().all(|path| is_aside(path)) {
        return;
    }
    for finding in findings {
        let Some(label) = &finding.diagnostic.primary else { continue };
        let is_unused = match finding.app.as_deref() {
            None => is_aside(&label.span.file),
            Some(app) => {
                aside.holds(&label.span.file) && is_left_alone(survey, &aside, app, &label.span.file)
            }
        };
        if is_unused {
            finding.diagnostic.severity = Severity::Info;
        }
    }
}

/// Whether all Applications of a name stand where things were put away, and nothing renders them; of several,
/// that which a file declares counts.
fn is_left_alone(survey: &Survey, aside: &Aside<'_>, name: &str, file: &str) -> bool {
    let named = || survey.apps.iter().filter(|app| app.name() == name);
    let is_own = |app: &&App| app.declared.location.file.as_ref() == file;
    let is_declared_here = named().any(|app| is_own(&app));
    named().filter(|app| !is_declared_here || is_own(app)).all(|app| {
        let is_unused = match app.declaration {
            Declaration::File | Declaration::Unit(_) => true,
            Declaration::Set(set) => !is_rendered(survey, &survey.sets[set.0]),
            Declaration::App(_) => false,
        };
        is_unused && aside.holds(&app.declared.location.file)
    })
}

/// Whether an Application renders an ApplicationSet.
fn is_rendered(survey: &Survey, set: &Set) -> bool {
    survey.objects.iter().any(|object| {
        matches!(object.owner, Owner::App(_))
            && object.key.kind == "ApplicationSet"
            && object.rendered.location == set.declared.location
    })
}

#[cfg(test)]
mod tests {
    use super::is_in_unused_folder;

    #[test]
    fn folders_that_were_put_away_are_known() {
        assert!(is_in_unused_folder(".archive/web/app.yaml"));
        assert!(is_in_unused_folder("argocd/disabled/app.yaml"));
        assert!(!is_in_unused_folder("apps/old.yaml"));
        assert!(is_in_unused_folder("apps/old/app.yaml") && !is_in_unused_folder("apps/older/app.yaml"));
    }
}
