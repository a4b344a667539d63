//! The committed reference says what the program says.

use std::{fs, path::Path};

#[test]
fn the_reference_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let committed = fs::read_to_string(page).expect("docs/cli.md is committed");
    let current = tiphys_cli::cli_reference::markdown(&tiphys_cli::command());
    assert!(committed == current, "docs/cli.md is out of date: run `cargo xtask docs`");
}

#[test]
fn the_definitions_to_install_are_up_to_date() {
    for folder in ["install", "chart/tiphys/files"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(folder).join("crds.yaml");
        let committed = fs::read_to_string(file).expect("crds.yaml is committed");
        assert!(committed == tiphys_cli::cli_reference::definitions(), "run `cargo xtask docs`");
    }
}

#[test]
fn the_book_has_a_page_for_every_rule() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SUMMARY.md");
    let committed = fs::read_to_string(page).expect("docs/SUMMARY.md is committed");
    let pages = tiphys_check::pages();
    let current =
        tiphys_cli::cli_reference::contents(&committed, pages.iter().map(|(name, _)| name.as_str()));
    assert!(committed == current, "docs/SUMMARY.md is out of date: run `cargo xtask docs`");
}
