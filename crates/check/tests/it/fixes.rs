//! Fixes that carry edits: applied, the finding is gone and none has come.

use std::{path::Path, sync::Arc};

use tiphys_check::{Context, Finding, check, patch, rules};
use tiphys_vfs::{DiskTree, FileTree};

use crate::common::survey;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/incidents");
const FIXES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixes");

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

/// A fragment of its own for each way in which a patch is made: what each of them changes, and what is left.
#[test]
fn patches_of_every_kind_mend_what_they_are_for() {
    for (fragment, rule, line) in [
        ("C1-chart", "C1-chart-with-large-crd", "ServerSideApply=true"),
        ("C2-option-value", "C2-option-value", "Prune=false"),
        ("D2-key", "D2-duplicate-key", ""),
        ("E2-misspelt", "E2-misspelt-name", ""),
        ("E6-port", "E6-unknown-port", ""),
        ("G2-refused", "G2-ansible-refused", ""),
        ("Fixes-types", "C2-invalid", "\"8080\""),
        ("Fixes-field", "C2-invalid", "imagePullPolicy: Always"),
        ("Fixes-subject", "C2-invalid", "namespace: shop"),
    ] {
        let folder = [FOLDER, FIXES].map(|root| Path::new(root).join(fragment).join("bad"));
        let folder = folder.iter().find(|folder| folder.is_dir()).expect("the fragment is there");
        let tree: Arc<dyn FileTree> = Arc::new(DiskTree::open(folder).expect("the fragment is there"));
        let before = survey(tree.clone());
        let sources = before.files.source_map();
        let mut found = check(&Context::new(&before, None), rules::ALL).findings;
        let again = |tree: Arc<dyn FileTree>, _: &[String]| findings(tree);
        patch::prove(&mut found, &sources, &tree, &again);
        let of_rule = found.iter().filter(|finding| finding.diagnostic.rule == rule);
        let edits: Vec<&Finding> = of_rule.filter(|finding| finding.patch().is_some()).collect();
        assert!(!edits.is_empty(), "{fragment}: no patch of {rule} is proven");
        let texts = patch::apply(edits.iter().filter_map(|it| it.patch()).flatten(), &sources);
        let texts = texts.expect("they can be applied");
        assert!(texts.values().any(|text| text.contains(line)), "{fragment}: {texts:?}");
    }
}
