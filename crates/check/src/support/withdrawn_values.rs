//! Values that a chart out of reach no longer reads in the version that is named, though earlier ones did.

use tiphys_value::Value;

use super::{
    chart_uses::ChartUse,
    known_charts::{is_in_range, is_older},
    known_values::Unread,
    value_steps::Step,
};

const TABLE: &str = include_str!("../../data/withdrawn-values.txt");
/// No release of a chart comes after it.
const LAST: &str = "99999.0.0";

/// A line of the table.
struct Release {
    chart: &'static str,
    owners: Vec<&'static str>,
    /// The first release without the values.
    first: &'static str,
    /// The paths of the values, each with what is read in its place.
    values: Vec<(&'static str, Vec<&'static str>)>,
}

impl Release {
    fn read(line: &'static str) -> Option<Self> {
        let mut words = line.split(' ');
        let (chart, owners, first) = (words.next()?, words.next()?, words.next()?);
        let value = |word: &'static str| match word.split_once('>') {
            Some((path, others)) => (path, others.split(',').collect()),
            None => (word, Vec::new()),
        };
        let values = words.map(value).collect();
        Some(Self { chart, owners: owners.split(',').collect(), first, values })
    }

    /// Whether a chart that something takes is this release or a later one.
    fn has_come(&self, used: &ChartUse) -> bool {
        used.chart == self.chart
            && is_in_range(used, &self.owners, (self.first, LAST))
            && !is_older(used.version.trim_start_matches('v'), self.first)
    }
}

/// The values that the chart of this version does not read any more.
pub(crate) fn find<'a>(used: &ChartUse, values: &'a Value) -> Vec<Unread<'a>> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#') && line.starts_with(&used.chart));
    let releases = lines.filter_map(Release::read).filter(|it| it.has_come(used));
    let mut found = Vec::new();
    for (path, others) in releases.flat_map(|it| it.values) {
        let steps: Vec<&str> = path.split('.').collect();
        let given = steps.iter().try_fold(values, |value, step| value.get(step));
        if given.is_some_and(says_something) {
            found.push(Unread {
                path: steps.into_iter().map(Step::Key).collect(),
                is_refused: false,
                meant: others.iter().map(|it| (*it).to_owned()).collect(),
                known: others,
            });
        }
    }
    found
}

/// Whether a value is more than the empty one that a copy of the chart's own values has.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => map.values().any(says_something),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let release = Release::read(line).expect("three words and more");
            assert!(!release.values.is_empty(), "{line}");
            assert!(release.first.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        }
    }
}
