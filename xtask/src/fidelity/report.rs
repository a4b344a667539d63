//! What came out of a suite.

use std::collections::BTreeMap;

/// How one case compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The same bytes.
    Bytes,
    /// The same bytes once random places are hidden.
    BytesButRandom,
    /// The same documents in the same order.
    Meaning,
    /// The same documents once random places are hidden.
    MeaningButRandom,
    /// Both fail with the same text.
    SameError,
    /// A difference: its cause in a few words, and the first place.
    Different { cause: String, first: String },
}

/// Outcomes of all cases.
#[derive(Default)]
pub(super) struct Report {
    cases: Vec<(String, Outcome)>,
}

impl Report {
    /// Adds a case.
    pub(super) fn add(&mut self, name: String, outcome: Outcome) {
        self.cases.push((name, outcome));
    }

    /// Prints differences, then counts, then causes with their numbers.
    pub(super) fn print(&mut self) {
        self.cases.sort_by(|a, b| a.0.cmp(&b.0));
        let mut causes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, outcome) in &self.cases {
            if let Outcome::Different { cause, first } = outcome {
                println!("--- {name}\n{first}\n");
                causes.entry(cause).or_default().push(name);
            }
        }
        let count = |wanted: fn(&Outcome) -> bool| self.cases.iter().filter(|(_, it)| wanted(it)).count();
        println!("{} cases", self.cases.len());
        println!("  {:5} equal byte by byte", count(|it| *it == Outcome::Bytes));
        println!(
            "  {:5} equal byte by byte, random places hidden",
            count(|it| *it == Outcome::BytesButRandom)
        );
        println!("  {:5} equal in meaning", count(|it| *it == Outcome::Meaning));
        println!(
            "  {:5} equal in meaning, random places hidden",
            count(|it| *it == Outcome::MeaningButRandom)
        );
        println!("  {:5} fail with the same text", count(|it| *it == Outcome::SameError));
        println!("  {:5} differ", count(|it| matches!(it, Outcome::Different { .. })));
        let mut causes: Vec<_> = causes.into_iter().collect();
        causes.sort_by_key(|(_, cases)| std::cmp::Reverse(cases.len()));
        for (cause, cases) in causes {
            println!("{:6} {cause} (such as {})", cases.len(), cases[0]);
        }
    }
}
