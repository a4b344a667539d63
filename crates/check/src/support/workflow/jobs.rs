//! What jobs and steps refer to, and what they are called by.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::tools::pipelines;
use tiphys_yaml::Node;

use super::{Effect, Walker, WorkflowFault, declarations, one_or_many};

impl<'n> Walker<'n> {
    pub(super) fn job(&mut self, job: &'n Node) {
        for label in declarations::runners(job) {
            let text = label.as_str().unwrap_or_default();
            if declarations::RETIRED.contains(&text) {
                self.faults.push(WorkflowFault {
                    effect: Effect::NeverRuns,
                    ..WorkflowFault::refusal(
                        label,
                        format!("GitHub has no runner {text} any more"),
                        "a newer one, or one of your own, is needed",
                    )
                });
            }
        }
        if let Some(uses) = job.get("uses") {
            self.reference(uses);
        }
        for step in pipelines::steps(job) {
            if let Some(id) = step.get("id") {
                self.identifier(id);
            }
            if let Some(uses) = step.get("uses") {
                self.reference(uses);
            }
        }
    }

    /// What is used from another repository needs a revision.
    fn reference(&mut self, uses: &'n Node) {
        let Some(text) = uses.as_str() else { return };
        let is_elsewhere = ["./", "docker://"].iter().any(|it| text.starts_with(it)) || text.contains("${{");
        if !is_elsewhere && !text.contains('@') {
            let message = format!("Expected format {{org}}/{{repo}}[/path]@ref. Actual '{text}'");
            self.refuse(uses, message, "the revision is missing");
        }
    }

    /// A name that expressions call something by.
    pub(super) fn identifier(&mut self, node: &'n Node) {
        const LONGEST: usize = 100;
        let Some(text) = node.as_str().filter(|text| *text != "<<" && !text.contains("${{")) else { return };
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !begins || !is_word || text.len() >= LONGEST {
            let message = format!(
                "The identifier '{text}' is invalid. IDs may only contain alphanumeric characters, '_', and '-'. IDs \
                 must start with a letter or '_' and must be less than 100 characters."
            );
            self.refuse(node, message, "this is no identifier");
        }
    }

    /// Jobs that need each other.
    pub(super) fn circle(&mut self, jobs: &'n [(Node, Node)]) {
        let named = jobs.iter().filter_map(|(name, job)| Some((name.as_str()?, job)));
        let needs: BTreeMap<&str, Vec<&Node>> = named
            .map(|(name, job)| (name, job.get("needs").into_iter().flat_map(one_or_many).collect()))
            .collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for start in needs.keys() {
            // The way to a job, each step with how many of its needs have been followed.
            let mut way: Vec<(&str, usize)> = Vec::new();
            let mut on_way: BTreeSet<&str> = BTreeSet::new();
            if seen.insert(start) {
                way.push((start, 0));
                on_way.insert(start);
            }
            while let Some((from, followed)) = way.last_mut() {
                let from = *from;
                let Some(needed) = needs[from].get(*followed) else {
                    on_way.remove(from);
                    way.pop();
                    continue;
                };
                *followed += 1;
                let to = needed.as_str().unwrap_or_default();
                if on_way.contains(to) {
                    let message = format!(
                        "Job '{from}' depends on job '{to}' which creates a cycle in the dependency graph."
                    );
                    return self.refuse(needed, message, "the jobs wait for each other");
                }
                if needs.contains_key(to) && seen.insert(to) {
                    way.push((to, 0));
                    on_way.insert(to);
                }
            }
        }
    }
}
