//! What the reader has no right to, and the rules that would give it.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cluster::Resource;
use tiphys_doctor::Unreadable;

/// Resources that were refused, by API group and verb.
#[derive(Debug, Default)]
pub(super) struct Denied(BTreeMap<(String, &'static str), BTreeSet<String>>);

impl Denied {
    /// A kind may not be read.
    pub(super) fn add(&mut self, resource: &Resource, verb: &'static str) {
        self.add_named(&resource.gvk.group, &resource.plural, verb);
    }

    /// A resource of a group may not be read.
    pub(super) fn add_named(&mut self, group: &str, plural: &str, verb: &'static str) {
        self.0.entry((group.to_owned(), verb)).or_default().insert(plural.to_owned());
    }

    /// One entry for each rule that is missing.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = Unreadable> {
        self.0.iter().map(|((group, verb), resources)| {
            let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
            let (shown, named) = (if group.is_empty() { "core" } else { group }, resources.join(", "));
            Unreadable {
                what: format!("{verb} {named} (API group {shown})"),
                why: format!("forbidden; this rule is missing: {{apiGroups: [\"{group}\"], resources: [{named}], verbs: [{verb}]}}"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_that_are_missing_are_grouped() {
        let mut denied = Denied::default();
        for (group, plural, verb) in
            [("apps", "deployments", "list"), ("apps", "daemonsets", "list"), ("", "pods/log", "get")]
        {
            denied.add_named(group, plural, verb);
        }
        let why: Vec<String> = denied.unreadable().map(|unreadable| unreadable.why).collect();
        assert_eq!(
            why,
            [
                "forbidden; this rule is missing: {apiGroups: [\"\"], resources: [pods/log], verbs: [get]}",
                "forbidden; this rule is missing: {apiGroups: [\"apps\"], resources: [daemonsets, deployments], verbs: [list]}",
            ]
        );
    }
}
