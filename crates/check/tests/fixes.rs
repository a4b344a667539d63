//! Fixes that carry edits: applied, the finding is gone and none has come.

mod common;

use std::{path::Path, sync::Arc};

use common::survey;
use tiphys_check::{Context, Finding, check, patch, rules};
use tiphys_vfs::{DiskTree, FileTree};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/incidents");

fn findings(tree: Arc<dyn FileTree>) -> Vec<Finding> {
    check(&Context::new(&survey(tree), None), rules::ALL).findings
}

#[test]
fn fixes_remove_their_finding_and_add_none() {
    for (fragment, rule) in [
        ("C1", "C1-last-applied-too-long"),
        ("C2", "C2-invalid"),
        ("C2-removed", "C2-removed-api"),
        ("D2", "D2-cannot-render"),
    ] {
        let folder = Path::new(FOLDER).join(fragment).join("bad");
        let tree: Arc<dyn FileTree> = Arc::new(DiskTree::open(&folder).expect("the fragment is there"));
        let before = survey(tree.clone());
        let found = check(&Context::new(&before, None), rules::ALL).findings;
        let finding = found.iter().find(|finding| finding.diagnostic.rule == rule).expect("it is found");
        let fix = finding.fix.as_ref().expect("it has a fix");
        let texts = patch::apply(fix.patch.iter(), &before.files.source_map()).expect("it can be applied");
        assert!(!texts.is_empty(), "{fragment}: the fix has edits");
        let after = findings(Arc::new(patch::Patched::new(tree, &texts)));
        let remaining: Vec<&str> = after
            .iter()
            .filter(|finding| finding.diagnostic.rule == rule)
            .map(|finding| finding.diagnostic.message.as_str())
            .collect();
        assert!(remaining.is_empty(), "{fragment}: {remaining:?} in {texts:?}");
        assert!(after.len() < found.len(), "{fragment}: no finding is added");
    }
}
