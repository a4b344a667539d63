//! # Values mount a volume that they do not have
//!
//! Charts take volumes and their mounts in two lists. Where values mount a volume that no list has, and list
//! one of nearly that name which nothing mounts, one of the two names is wrong: the API server refuses the
//! pod.
//!
//! People see: `spec.template.spec.containers[0].volumeMounts[1].name: Not found: "config"`, a release that
//! fails.
//!
//! ## Bad
//! ```yaml
//! volumes: [{name: config-main, emptyDir: {}}]
//! volumeMounts: [{name: config, mountPath: /config}]
//! ```
//! ## Good
//! ```yaml
//! volumes: [{name: config-main, emptyDir: {}}]
//! volumeMounts: [{name: config-main, mountPath: /config}]
//! ```
//! ## When to suppress
//! Where the chart itself has a volume of that name.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_value::Value;

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, placeholders, pods::text, value_steps::Step},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-values-volume",
    incident: "E2",
    severity: Severity::Warning,
    title: "values mount a volume that they do not have",
    page: page!("e2_values_volume.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for used in context.chart_uses() {
        for (index, values) in used.values.iter().enumerate() {
            let mut names = Names::default();
            names.gather(values, &mut Vec::new());
            for (mounted, steps) in &names.mounts {
                let Some(meant) = names.meant(mounted) else { continue };
                let span = place_of(context, used, index, steps).unwrap_or_else(|| used.span.clone());
                let diagnostic = RULE
                    .diagnostic(format!(
                        "the values of {} mount the volume {mounted}, which they do not have",
                        used.by
                    ))
                    .at(span, "no volume is called so")
                    .because("the API server refuses a pod that mounts a volume which it does not have")
                    .help(format!("there is {meant}"));
                let finding = Finding::new(RULE.incident, diagnostic).likely().with_spelling(*mounted, meant);
                once.add(mounted, finding);
            }
        }
    }
    once.report(report);
}

/// The names of volumes and mounts among values.
#[derive(Default)]
struct Names<'a> {
    volumes: Vec<&'a str>,
    /// Keys of maps of volumes.
    of_keys: BTreeSet<&'a str>,
    mounts: BTreeMap<&'a str, Vec<Step<'a>>>,
    /// What whole containers mount that stand among the values.
    of_containers: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn gather(&mut self, value: &'a Value, steps: &mut Vec<Step<'a>>) {
        const MAX_DEPTH: usize = 32;
        let Value::Object(map) = value else {
            for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                steps.push(Step::Index(at));
                self.gather(item, steps);
                steps.pop();
            }
            return;
        };
        if steps.len() > MAX_DEPTH {
            return;
        }
        for (key, below) in map {
            steps.push(Step::Key(key));
            let small = key.to_ascii_lowercase();
            // `persistence: {config: {…}}`: the chart calls the volume as the key.
            if small.ends_with("persistence") || small.ends_with("volumes") {
                self.of_keys
                    .extend(below.as_object().into_iter().flat_map(|map| map.keys()).map(String::as_str));
            }
            for (at, item) in below.as_array().into_iter().flatten().enumerate() {
                let name = text(item, "name");
                if name.is_empty() || placeholders::is_in(name) {
                    continue;
                }
                if small.ends_with("volumes") || small.ends_with("volumeclaimtemplates") {
                    self.volumes.push(name);
                } else if small.ends_with("volumemounts") {
                    if map.contains_key("image") {
                        self.of_containers.insert(name);
                    }
                    let place = steps.iter().copied().chain([Step::Index(at), Step::Key("name")]).collect();
                    self.mounts.entry(name).or_insert(place);
                }
            }
            self.gather(below, steps);
            steps.pop();
        }
    }

    /// The volume that a mount means which has none: one that nothing mounts, and that is called nearly so.
    fn meant(&self, mounted: &str) -> Option<&'a str> {
        if self.volumes.contains(&mounted) || self.of_keys.contains(mounted) {
            return None;
        }
        let mut free: Vec<&'a str> =
            self.volumes.iter().copied().filter(|name| !self.mounts.contains_key(name)).collect();
        free.dedup();
        let begins = |name: &&str| {
            let (short, long) = if name.len() < mounted.len() { (*name, mounted) } else { (mounted, *name) };
            long.strip_prefix(short).is_some_and(|rest| rest.starts_with('-'))
        };
        let near = similar_names::nearest_slip(mounted, free.iter().copied());
        // A container that somebody wrote mounts what the same values have.
        let of_container = || {
            let begun = self.volumes.iter().copied().filter(|_| self.of_containers.contains(mounted));
            begun
                .into_iter()
                .find(|name| name.strip_prefix(mounted).is_some_and(|rest| rest.starts_with('-')))
        };
        near.or_else(|| free.iter().copied().find(begins)).or_else(of_container)
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn only_a_mount_beside_a_volume_that_nothing_mounts_is_told() {
        let meant = |values: &Value| {
            let mut names = Names::default();
            names.gather(values, &mut Vec::new());
            names.mounts.keys().find_map(|name| names.meant(name)).map(str::to_owned)
        };
        let volumes = json!([{"name": "config-main", "emptyDir": {}}]);
        let wrong =
            json!({"volumes": volumes, "init": [{"volumeMounts": [{"name": "config", "mountPath": "/c"}]}]});
        assert_eq!(meant(&wrong).as_deref(), Some("config-main"));
        let right =
            json!({"volumes": volumes, "volumeMounts": [{"name": "config-main"}, {"name": "config"}]});
        assert_eq!(meant(&right), None);
        assert_eq!(meant(&json!({"volumeMounts": [{"name": "tmp"}]})), None);
    }
}
