//! Charts that are known to bring definitions of custom resources, for where they were not seen.

use std::sync::LazyLock;

use tiphys_value::Value;
use tiphys_vfs::base_name;

const KNOWN: &str = include_str!("../../data/charts-with-crds.txt");

/// A chart that is known to bring definitions unless it is told not to.
#[derive(Debug)]
pub(crate) struct Defining {
    /// Its name.
    pub chart: &'static str,
    groups: Vec<Group>,
    /// What addresses of the same definitions contain.
    pub address: &'static str,
    /// Whether it brings them only if its values ask for them.
    is_asked: bool,
}

/// An API group of which a chart defines all kinds, or those that are named.
#[derive(Debug)]
struct Group {
    name: &'static str,
    kinds: Vec<&'static str>,
}

static ALL: LazyLock<Vec<Defining>> = LazyLock::new(|| KNOWN.lines().filter_map(Defining::read).collect());

impl Defining {
    /// What is known of a chart.
    pub(crate) fn find(chart: &str) -> Option<&'static Self> {
        ALL.iter().find(|known| known.chart == chart)
    }

    /// What is known of the chart that a command names: `jetstack/cert-manager`, or an address.
    pub(crate) fn find_named(reference: &str) -> Option<&'static Self> {
        Self::find(base_name(reference))
    }

    /// The charts that define a kind.
    pub(crate) fn defining<'k>(group: &'k str, kind: &'k str) -> impl Iterator<Item = &'static Self> + 'k {
        ALL.iter().filter(move |known| known.defines(group, kind))
    }

    fn read(line: &'static str) -> Option<Self> {
        let mut words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
        let (chart, groups, address) = (words.next()?, words.next()?, words.next()?);
        let group = |text: &'static str| {
            let (name, kinds) = text.split_once('=').unwrap_or((text, ""));
            Group { name, kinds: kinds.split('|').filter(|kind| !kind.is_empty()).collect() }
        };
        let groups = groups.split(',').map(group).collect();
        Some(Self { chart, groups, address, is_asked: words.next() == Some("asked") })
    }

    /// The group that is named for all of them.
    pub(crate) fn group(&self) -> &'static str {
        self.groups.first().map_or("", |group| group.name)
    }

    /// Whether it defines a kind.
    pub(crate) fn defines(&self, group: &str, kind: &str) -> bool {
        let mut groups = self.groups.iter().filter(|it| it.name == group);
        groups.any(|it| it.kinds.is_empty() || it.kinds.contains(&kind))
    }

    /// Whether it brings its definitions with these values, the weakest first.
    pub(crate) fn brings(&self, values: &[Value]) -> bool {
        let said = switch_values(values);
        if self.is_asked { said.contains(&true) } else { !said.contains(&false) }
    }

    /// Whether values say anything about its definitions.
    pub(crate) fn is_told(&self, values: &[Value]) -> bool {
        !switch_values(values).is_empty()
    }
}

/// What values, the weakest first, say about definitions.
fn switch_values(values: &[Value]) -> Vec<bool> {
    const SWITCHES: [&str; 8] = [
        "/installCRDs",
        "/prometheus-operator-crds/enabled",
        "/crds/enabled",
        "/crds/install",
        "/crds/create",
        "/crds/createCRDs",
        "/crd/enabled",
        "/crd/install",
    ];
    let said = |switch: &str| {
        let set = values.iter().rev().find_map(|it| it.pointer(switch))?;
        set.as_bool().or_else(|| set.as_str()?.parse().ok())
    };
    SWITCHES.iter().filter_map(|switch| said(switch)).collect()
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::{ALL, Defining, KNOWN};

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(ALL.len(), lines.count());
        assert!(ALL.iter().all(|it| it.groups.iter().all(|group| group.name.contains('.'))));
    }

    #[test]
    fn values_say_whether_definitions_come_along() {
        let chart = |name| Defining::find(name).expect("is known");
        assert!(chart("keda").brings(&[]) && !chart("keda").brings(&[json!({"crds": {"install": false}})]));
        assert!(!chart("cert-manager").brings(&[json!({})]));
        assert!(chart("cert-manager").brings(&[json!({"installCRDs": "true"})]));
        assert!(
            !chart("keda").brings(&[json!({"crds": {"install": true}}), json!({"crds": {"install": false}})])
        );
    }

    #[test]
    fn a_group_that_several_charts_share_is_told_by_its_kinds() {
        let chart = Defining::find("argo-rollouts").expect("is known");
        assert!(chart.defines("argoproj.io", "Rollout") && !chart.defines("argoproj.io", "Application"));
    }
}
