//! What doctor says of a cascade, beside what was put in.

use std::collections::BTreeMap;

use tiphys_doctor::{Diagnosis, Root};

use crate::plant::Planted;

/// A root that is asserted.
const ASSERTED: f64 = 0.5;

/// How well one diagnosis is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// The first root is what was put in; of what is healthy, that there is none.
    pub is_first: bool,
    /// Nothing is asserted.
    pub is_silent: bool,
    /// Asserted roots that were not put in.
    pub false_roots: Vec<String>,
}

fn line(root: &Root) -> String {
    format!("{} {} ({:.2}): {}", root.cause, root.object, root.confidence, root.summary)
}

/// Compares.
#[must_use]
pub fn score(diagnosis: &Diagnosis, planted: &Planted) -> Score {
    let asserted: Vec<&Root> = diagnosis.causes.iter().filter(|root| root.confidence >= ASSERTED).collect();
    let is_healthy = planted.expected.causes.is_empty();
    let false_roots =
        asserted.iter().filter(|root| !planted.expected.is_allowed(root)).map(|root| line(root)).collect();
    let is_first = match asserted.first() {
        Some(root) => planted.expected.is_allowed(root),
        None => is_healthy,
    };
    Score { is_first, is_silent: asserted.is_empty(), false_roots }
}

/// Sums of a kind of fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    pub cases: usize,
    pub first: usize,
    pub false_roots: usize,
    pub silent: usize,
    pub without_effect: usize,
}

/// Sums by the kind of fault.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub rows: BTreeMap<&'static str, Sum>,
}

impl Table {
    /// Counts one.
    pub fn add(&mut self, planted: &Planted, score: &Score, has_effect: bool) {
        let row = self.rows.entry(planted.kind).or_default();
        if !has_effect {
            row.without_effect += 1;
            return;
        }
        row.cases += 1;
        row.first += usize::from(score.is_first);
        row.false_roots += score.false_roots.len();
        row.silent += usize::from(score.is_silent);
    }

    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> Sum {
        self.rows.values().fold(Sum::default(), |sum, row| Sum {
            cases: sum.cases + row.cases,
            first: sum.first + row.first,
            false_roots: sum.false_roots + row.false_roots,
            silent: sum.silent + row.silent,
            without_effect: sum.without_effect + row.without_effect,
        })
    }

    /// The table as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<38} {:>5} {:>6} {:>11} {:>6} {:>9}\n",
            "fault", "cases", "top-1", "false roots", "silent", "no effect"
        );
        let total = self.total();
        for (kind, row) in self.rows.iter().map(|(kind, row)| (*kind, *row)).chain([("all", total)]) {
            text += &format!(
                "{kind:<38} {:>5} {:>6} {:>11} {:>6} {:>9}\n",
                row.cases, row.first, row.false_roots, row.silent, row.without_effect
            );
        }
        if total.cases > 0 {
            let cases = total.cases as f64;
            text += &format!(
                "top-1 {:.1} %, {:.3} false roots a case\n",
                100.0 * total.first as f64 / cases,
                total.false_roots as f64 / cases
            );
        }
        text
    }
}
