//! A few cascades: doctor names what was put in. `cargo xtask cascades` plays hundreds.
#![allow(missing_docs, reason = "tests")]

use tiphys_cascades::run::{Options, run};

#[test]
fn what_was_put_in_is_named_and_nothing_else() {
    let options = Options {
        count: 12,
        seed: 3,
        folders: Vec::new(),
        made: 2,
        misses: None,
        only: None,
        thin: 1,
        flux: true,
    };
    let outcome = run(&options);
    assert!(outcome.troubles.is_empty(), "{:#?}", outcome.troubles);
    let (whole, thinned) = (outcome.table.total(), outcome.thinned.total());
    let told = || format!("{}\n{}", outcome.misses.join("\n"), outcome.table.text());
    assert!(whole.cases >= 10, "{}", told());
    assert!(whole.first * 100 >= whole.cases * 95, "{}", told());
    assert!(whole.false_roots * 10 <= whole.cases, "{}", told());
    // Dumps that lack something may name nothing, and hardly ever something wrong.
    assert!(thinned.false_roots * 10 <= thinned.cases, "{}", told());
}
