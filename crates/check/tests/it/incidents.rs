//! For every incident a repository fragment that has it and one that has not: `incidents/<id>/{bad,good}`.
//! What is found in `bad` is held against `bad.txt`; in `good` nothing of that incident may be found.
//! `TIPHYS_BLESS=1` writes the golden files.

use std::{fmt::Write as _, fs, path::Path, sync::Arc};

use tiphys_check::{Context, check, rules};
use tiphys_vfs::DiskTree;

use crate::common;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/incidents");

/// The findings of one incident in a folder, as text.
fn findings(folder: &Path, base: Option<&Path>, incident: &str) -> String {
    let survey =
        |folder: &Path| common::survey(Arc::new(DiskTree::open(folder).expect("the fragment is there")));
    let (survey, base) = (survey(folder), base.map(survey));
    let checked = check(&Context::new(&survey, base.as_ref()), rules::ALL);
    let map = survey.files.source_map();
    let mut text = String::new();
    for finding in checked.findings.iter().filter(|finding| finding.incident == incident) {
        writeln!(text, "{}", tiphys_diag::render::full(&finding.diagnostic, &map, false))
            .expect("a string takes all");
    }
    text
}

#[test]
fn every_incident_is_found_where_it_is_and_nowhere_else() {
    let mut faults = Vec::new();
    for entry in fs::read_dir(FOLDER).expect("the fragments are there") {
        let folder = entry.expect("readable").path();
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        // `C4-job` is a second fragment of incident C4.
        let incident = name.split('-').next().expect("split yields one").to_owned();
        let base = Some(folder.join("base")).filter(|base| base.is_dir());
        let found = findings(&folder.join("bad"), base.as_deref(), &incident);
        let golden = folder.join("bad.txt");
        if std::env::var_os("TIPHYS_BLESS").is_some() {
            fs::write(&golden, &found).expect("writable");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if found.is_empty() {
            faults.push(format!("{name}: nothing is found in bad/"));
        } else if found != expected {
            faults.push(format!("{name}: bad.txt says\n{expected}\nbut found is\n{found}"));
        }
        let clean = findings(&folder.join("good"), base.as_deref(), &incident);
        if !clean.is_empty() {
            faults.push(format!("{name}: good/ is not clean:\n{clean}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
