//! The committed pages of the rules say what the rules say. `TIPHYS_BLESS=1` (or `cargo xtask docs`) writes
//! them.

use std::{collections::BTreeSet, fs, path::PathBuf};

#[test]
fn every_rule_has_its_page() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
    let pages = tiphys_check::pages();
    if std::env::var_os("TIPHYS_BLESS").is_some() {
        fs::create_dir_all(&folder).expect("writable");
        for (name, text) in &pages {
            fs::write(folder.join(name), text).expect("writable");
        }
    }
    for (name, text) in &pages {
        let committed = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(committed == *text, "docs/rules/{name} is out of date: run `cargo xtask docs`");
    }
    let wanted: BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let name = entry.expect("readable").file_name();
        let name = name.to_str().expect("UTF-8");
        assert!(wanted.contains(name), "docs/rules/{name} is no rule's page");
    }
}

#[test]
fn every_page_says_what_people_need() {
    for rule in tiphys_check::rules::ALL {
        let page = rule.documentation();
        for heading in ["# ", "## Bad", "## Good", "## When to suppress"] {
            assert!(
                page.lines().any(|line| line.starts_with(heading)),
                "{} has no heading {heading:?}",
                rule.id
            );
        }
        assert!(rule.id.starts_with(&format!("{}-", rule.incident)), "{}", rule.id);
    }
}
