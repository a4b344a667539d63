//! `resource.exclusions` and `resource.inclusions`: kinds that the engine does not look at.

use serde::Deserialize;

use super::Reader;
use crate::glob;

/// Kinds by group, kind and cluster; an empty list means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceFilter {
    /// Globs of groups.
    pub api_groups: Vec<String>,
    /// Kinds; `*` is any.
    pub kinds: Vec<String>,
    /// Globs of addresses of clusters.
    pub clusters: Vec<String>,
}

impl ResourceFilter {
    fn is_for(&self, cluster: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|pattern| glob::matches(pattern, cluster))
    }

    fn matches(&self, group: &str, kind: &str, cluster: &str) -> bool {
        let by_group = self.api_groups.is_empty() || self.api_groups.iter().any(|p| glob::matches(p, group));
        let by_kind = self.kinds.is_empty() || self.kinds.iter().any(|known| known == "*" || known == kind);
        by_group && by_kind && self.is_for(cluster)
    }
}

/// Which kinds are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceFilters {
    /// Kinds that are not.
    pub exclusions: Vec<ResourceFilter>,
    /// If there are any for a cluster, the only kinds that are.
    pub inclusions: Vec<ResourceFilter>,
}

impl ResourceFilters {
    /// Whether a kind is left alone in a cluster. Events, Leases and metrics always are.
    pub fn excludes(&self, group: &str, kind: &str, cluster: &str) -> bool {
        let never = matches!(group, "events.k8s.io" | "metrics.k8s.io")
            || matches!((group, kind), ("", "Event") | ("coordination.k8s.io", "Lease"));
        if never || self.exclusions.iter().any(|filter| filter.matches(group, kind, cluster)) {
            return true;
        }
        if self.inclusions.iter().any(|filter| filter.matches(group, kind, cluster)) {
            return false;
        }
        self.inclusions.iter().any(|filter| filter.is_for(cluster))
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> ResourceFilters {
    ResourceFilters {
        exclusions: reader.yaml("resource.exclusions").unwrap_or_default(),
        inclusions: reader.yaml("resource.inclusions").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(groups: &[&str], kinds: &[&str], clusters: &[&str]) -> ResourceFilter {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        ResourceFilter { api_groups: owned(groups), kinds: owned(kinds), clusters: owned(clusters) }
    }

    #[test]
    fn exclusions_come_before_inclusions_and_inclusions_exclude_the_rest() {
        let filters = ResourceFilters {
            exclusions: vec![filter(&["*.cilium.io"], &["CiliumIdentity"], &[])],
            inclusions: vec![filter(&["", "apps", "*.cilium.io"], &[], &["https://a"])],
        };
        assert!(filters.excludes("x.cilium.io", "CiliumIdentity", "https://a"));
        assert!(!filters.excludes("apps", "Deployment", "https://a"));
        assert!(filters.excludes("batch", "Job", "https://a"), "a has inclusions and this is none of them");
        assert!(!filters.excludes("batch", "Job", "https://b"), "b has none");
    }

    #[test]
    fn some_kinds_are_never_looked_at() {
        let filters = ResourceFilters::default();
        assert!(filters.excludes("coordination.k8s.io", "Lease", "x") && filters.excludes("", "Event", "x"));
        assert!(!filters.excludes("", "ConfigMap", "x"));
    }
}
