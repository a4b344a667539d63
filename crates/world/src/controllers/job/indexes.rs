//! Completion indexes of an Indexed Job, and what they failed.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde_json::Value;
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{pod_counts::has_failed, policy};
use crate::controllers::workload::is_active;

/// Where a pod says which index it is for.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Where a pod says how often its index has failed before.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// Where a pod says how many failures of its index before did not count.
pub(super) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// The largest number of indexes that a Job may have.
const MOST: i64 = 1_000_000_000;

/// A set of completion indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<i64>);

impl Indexes {
    /// Reads `0-2,5`; what cannot be read is left out.
    pub(super) fn parse(text: &str) -> Self {
        let bound = |text: &str| text.parse::<i64>().ok().filter(|index| (0..MOST).contains(index));
        let range = |part: &str| match part.split_once('-') {
            Some((first, last)) => Some(bound(first)?..=bound(last)?),
            None => bound(part).map(|index| index..=index),
        };
        Self(text.split(',').filter_map(range).flatten().collect())
    }

    /// Adds indexes.
    pub(super) fn extend(&mut self, more: impl Iterator<Item = i64>) {
        self.0.extend(more);
    }

    /// Forgets indexes that the Job does not have.
    pub(super) fn keep_below(&mut self, completions: i64) {
        self.0.retain(|index| *index < completions);
    }

    /// How many they are.
    pub(super) fn count(&self) -> i64 {
        self.0.len() as i64
    }

    /// Whether an index is among them.
    pub(super) fn has(&self, index: i64) -> bool {
        self.0.contains(&index)
    }

    /// How many of them are among others.
    pub(super) fn common(&self, others: &Self) -> i64 {
        self.0.intersection(&others.0).count() as i64
    }
}

/// `0-2,5`.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for index in &self.0 {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == *index => *end = *index,
                _ => ranges.push((*index, *index)),
            }
        }
        let range = |(first, last): &(i64, i64)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        };
        f.write_str(&ranges.iter().map(range).collect::<Vec<_>>().join(","))
    }
}

/// The index of a pod.
pub(super) fn index(pod: &Value) -> Option<i64> {
    pod.annotation(INDEX)?.parse().ok().filter(|index| *index >= 0)
}

fn number(pod: &Value, annotation: &str) -> i64 {
    pod.annotation(annotation).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// How often the index of a pod failed before it: what counts, and what does not.
pub(super) fn failures_before(pod: &Value) -> (i64, i64) {
    (number(pod, FAILURES), number(pod, IGNORED_FAILURES))
}

/// How often the index of a failed pod has failed, the pod included.
pub(super) fn failures_after(job: &Value, pod: &Value) -> (i64, i64) {
    let (counted, ignored) = failures_before(pod);
    if policy::is_counted(job, pod) { (counted + 1, ignored) } else { (counted, ignored + 1) }
}

/// The indexes that have failed for good (`backoffLimitPerIndex`); `None` if no index can by itself.
pub(super) fn failed(job: &Value, pods: &[Arc<Object>]) -> Option<Indexes> {
    let limit = job.int_at(&["spec", "backoffLimitPerIndex"])?;
    let mut indexes = Indexes::parse(job.str_at(&["status", "failedIndexes"]).unwrap_or_default());
    let is_final = |pod: &Value| {
        let action = policy::action(job, pod);
        action == Some("FailIndex") || (action != Some("Ignore") && failures_before(pod).0 >= limit)
    };
    let pods = pods.iter().filter(|pod| has_failed(job, pod) && is_final(pod));
    indexes.extend(pods.filter_map(|pod| index(pod)));
    indexes.keep_below(job.int_at(&["spec", "completions"]).unwrap_or(0));
    Some(indexes)
}

/// Of an index that is to be tried again, the pod that failed last: it is counted once its successor knows
/// how often the index has failed.
pub(super) fn to_replace<'a>(
    job: &Value,
    pods: &'a [Arc<Object>],
    succeeded: &Indexes,
    failed: &Indexes,
) -> Vec<&'a Arc<Object>> {
    let active: BTreeSet<_> = pods.iter().filter(|pod| is_active(pod)).filter_map(|pod| index(pod)).collect();
    let mut last = std::collections::BTreeMap::<i64, &Arc<Object>>::new();
    for pod in pods.iter().filter(|pod| super::pod_counts::is_tracked(pod) && has_failed(job, pod)) {
        let Some(index) = index(pod) else { continue };
        if succeeded.has(index) || failed.has(index) || active.contains(&index) {
            continue;
        }
        let tries = |pod: &Value| failures_before(pod).0 + failures_before(pod).1;
        let known = last.entry(index).or_insert(pod);
        if tries(known) <= tries(pod) {
            *known = pod;
        }
    }
    last.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges_and_read_again() {
        let text = |indexes: &[i64]| Indexes(indexes.iter().copied().collect()).to_string();
        assert_eq!(text(&[0, 1, 2, 5, 7, 8]), "0-2,5,7,8");
        assert_eq!(text(&[]), "");
        assert_eq!(Indexes::parse("0-2,5,7,8,x,9-"), Indexes([0, 1, 2, 5, 7, 8].into()));
    }
}
