//! A repository stalls if and only if the analysis of waits says so: the planner of the engine, with Argo
//! CD's rules, syncs generated repositories to an empty cluster in virtual time.

mod cluster;
mod repository;

use std::sync::Arc;

use proptest::prelude::*;
use repository::{Repository, repository};
use tiphys_graph::{
    Input, Survey,
    edges::Edges,
    order::Order,
    waits::{Events, HealthFacts, Settings, cycles, unmet},
};

/// What the analysis says.
struct Verdict {
    stalls: bool,
    /// Why, as the rules tell it one by one.
    reasons: usize,
    circles: usize,
}

fn analyse(repository: &Repository) -> Verdict {
    let survey = Survey::read(&Input::alone(Arc::new(repository.tree())));
    let (edges, order) = (Edges::from_survey(&survey), Order::from_survey(&survey));
    let facts = HealthFacts::from_survey(&survey, &Settings::from_survey(&survey));
    let events = Events::from_survey(&survey, &edges, &order, &facts);
    let reasons = cycles(&survey, &order, &facts).len()
        + unmet(&survey, &edges, &order, &facts).iter().filter(|unmet| unmet.stall.is_some()).count();
    Verdict { stalls: events.stalled().next().is_some(), reasons, circles: events.circles().len() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_repository_stalls_iff_the_analysis_says_so(repository in repository()) {
        let verdict = analyse(&repository);
        let stalled = cluster::sync(&repository);
        prop_assert!(!verdict.stalls || !stalled.is_empty(), "the engine is through\n{}", repository.text());
        // Of an Application that renders Applications it is not told which of them are there when, nor of a
        // webhook whether it is in force before what it is asked about comes beside it.
        let told = verdict.stalls || repository.is_nested() || repository.has_webhook();
        prop_assert!(told || stalled.is_empty(), "the engine: {:?}\n{}", stalled, repository.text());
        // Every stall has a circle to show, and every reason that a rule tells is a stall.
        prop_assert_eq!(verdict.stalls, verdict.circles > 0, "{}", repository.text());
        prop_assert!(verdict.reasons == 0 || verdict.stalls, "{} reasons\n{}", verdict.reasons, repository.text());
    }
}

#[test]
fn both_verdicts_are_generated() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut stalls = 0;
    for _ in 0..100 {
        let tree = repository().new_tree(&mut runner).expect("generates");
        stalls += usize::from(analyse(&tree.current()).stalls);
    }
    assert!((10..=90).contains(&stalls), "{stalls} of 100 stall");
}
