//! What is known of charts that were not seen.

use std::{collections::BTreeSet, sync::LazyLock};

use tiphys_model::ApplicationSource;
use tiphys_value::Value;

use super::{chart_uses::ChartUse, text_values};

const TABLE: &str = include_str!("../../data/known-charts.txt");

static ALL: LazyLock<Vec<KnownChart>> = LazyLock::new(|| read(TABLE));

/// A chart of which is known what it makes with its default values.
#[derive(Debug)]
pub(crate) struct KnownChart {
    /// Its name.
    pub name: &'static str,
    /// Parts of addresses that it is published under.
    owners: Vec<&'static str>,
    /// The oldest and the newest version that was looked at.
    pub versions: (&'static str, &'static str),
    /// The Services that every version between makes.
    pub services: Vec<KnownService>,
}

/// A Service that a known chart makes.
#[derive(Debug)]
pub(crate) struct KnownService {
    /// How it is called.
    pub naming: Naming,
    /// Its ports; empty where they are not known.
    pub ports: Vec<KnownPort>,
    /// The values that decide whether it is there and how, each with its default.
    pub switches: Vec<(&'static str, &'static str)>,
}

/// A port of such a Service.
#[derive(Debug)]
pub(crate) struct KnownPort {
    /// Its name, which may be empty.
    pub name: &'static str,
    /// Its number.
    pub number: i64,
    /// The value that sets it, if one does.
    pub path: Option<&'static str>,
}

/// How a chart names an object; the table's head says how it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The usual full name before a suffix.
    Full {
        /// What the release's name has to contain to stand alone.
        chart: &'static str,
        /// Where the values have its overrides; empty at the top level.
        path: &'static str,
        /// After how many characters the full name is cut.
        most: usize,
        /// What follows.
        suffix: &'static str,
    },
    /// The release's name before a suffix.
    Release(&'static str),
    /// The same name always.
    Fixed(&'static str),
}

impl KnownChart {
    /// What is known of the chart that something takes: the same one, in a version that was looked at, or
    /// between two that were.
    pub(crate) fn of_use(used: &ChartUse) -> Option<&'static Self> {
        ALL.iter().find(|it| it.name == used.chart && is_in_range(used, &it.owners, it.versions))
    }

    /// The chart and the versions that its facts are from, for messages.
    pub(crate) fn evidence(&self) -> String {
        let (oldest, newest) = self.versions;
        format!(
            "this goes by what versions {oldest} to {newest} of chart {} make, the chart itself is out of reach",
            self.name
        )
    }

    /// The paths of values below which names can be overridden.
    pub(crate) fn override_paths(&self) -> BTreeSet<&'static str> {
        let path = |service: &KnownService| match &service.naming {
            Naming::Full { path, .. } => *path,
            _ => "",
        };
        self.services.iter().map(path).collect()
    }
}

impl Naming {
    fn read(text: &'static str) -> Self {
        if let Some(suffix) = text.strip_prefix("{}") {
            return Self::Release(suffix);
        }
        let Some((inner, suffix)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            return Self::Fixed(text);
        };
        let (inner, most) = inner.split_once('|').unwrap_or((inner, "63"));
        let (chart, path) = inner.split_once('@').unwrap_or((inner, ""));
        Self::Full { chart, path, most: most.parse().unwrap_or(63), suffix }
    }
}

impl KnownService {
    fn read(line: &'static str) -> Option<Self> {
        let (line, switches) = line.split_once(" if ").unwrap_or((line, ""));
        let mut words = line.split(' ');
        let naming = Naming::read(words.next()?);
        let port = |word: &'static str| {
            let (name, rest) = word.split_once('=')?;
            let (number, path) = rest.split_once(':').map_or((rest, None), |(it, path)| (it, Some(path)));
            Some(KnownPort { name, number: number.parse().ok()?, path })
        };
        let switches = switches.split(' ').filter_map(|word| word.split_once('=')).collect();
        Some(Self { naming, ports: words.filter_map(port).collect(), switches })
    }
}

fn read(table: &'static str) -> Vec<KnownChart> {
    let mut found: Vec<KnownChart> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(rest) = line.strip_prefix(" service ") {
            found.last_mut().into_iter().for_each(|chart| chart.services.extend(KnownService::read(rest)));
        } else if let [name, owners, oldest, newest] = line.split(' ').collect::<Vec<_>>()[..] {
            found.push(KnownChart {
                name,
                owners: owners.split(',').collect(),
                versions: (oldest, newest),
                services: Vec::new(),
            });
        }
    }
    found
}

/// Whether a chart that something takes is published under one of some parts of addresses, in a version that
/// lies between two.
pub(crate) fn is_in_range(used: &ChartUse, owners: &[&str], versions: (&str, &str)) -> bool {
    let version = used.version.trim_start_matches('v');
    let is_exact = version.starts_with(|c: char| c.is_ascii_digit())
        && version.split(['.', '-', '+']).all(|part| !matches!(part, "x" | "X" | "*" | ""));
    is_exact && may_be_in_range(used, owners, versions)
}

/// Whether something takes a chart that is published under one of some addresses, in a version between two
/// that were looked at, or in one of a range that begins there.
pub(crate) fn may_be_in_range(used: &ChartUse, owners: &[&str], (oldest, newest): (&str, &str)) -> bool {
    let home = used.repository.strip_suffix(&used.chart).unwrap_or(&used.repository).to_lowercase();
    owners.iter().any(|owner| home.contains(owner))
        && !is_older(&used.version, oldest.trim_start_matches('v'))
        && !is_older(newest.trim_start_matches('v'), &used.version)
}

/// Whether a chart's version, or all versions of a range, come before another.
pub(crate) fn is_older(wanted: &str, first: &str) -> bool {
    let digits = |text: &str| -> Vec<u64> {
        let text = text.trim_start_matches(['v', '^', '~', '=', '>', '<', ' ']);
        text.split(['.', '-', '+', ' ']).map_while(|part| part.parse().ok()).collect()
    };
    let (wanted, first) = (digits(wanted), digits(first));
    let known = wanted.len().min(first.len());
    wanted[..known] < first[..known]
}

/// The values that a source gives its chart in its own text, the weakest first.
pub(crate) fn inline_values(source: &ApplicationSource) -> Vec<Value> {
    source.helm.iter().flat_map(text_values::of_source).collect()
}

/// Whether the source keeps the chart's CRDs out: `skipCrds`, or values that say so in one of the usual ways.
pub(crate) fn leaves_out_crds(source: &ApplicationSource) -> bool {
    source.helm.as_ref().is_some_and(|helm| helm.skip_crds)
        || inline_values(source).iter().any(values_leave_out_crds)
}

/// Whether values keep a chart's CRDs out in one of the usual ways.
pub(crate) fn values_leave_out_crds(values: &Value) -> bool {
    const SWITCHES: [&str; 7] = [
        "/installCRDs",
        "/prometheus-operator-crds/enabled",
        "/crds/enabled",
        "/crds/install",
        "/crds/create",
        "/crd/enabled",
        "/crds/createCRDs",
    ];
    SWITCHES.iter().any(|switch| values.pointer(switch) == Some(&Value::Bool(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let count = |start: &str| TABLE.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(ALL.len(), TABLE.lines().filter(|line| !line.starts_with([' ', '#'])).count());
        assert_eq!(ALL.iter().map(|chart| chart.services.len()).sum::<usize>(), count(" service "));
        let known = ALL.iter().find(|it| it.name == "grafana" && it.owners == ["grafana"]).expect("is known");
        assert_eq!(known.services[0].naming, Naming::read("[grafana]"));
        assert_eq!(known.services[0].ports[0].path, Some("service.port"));
    }
}
