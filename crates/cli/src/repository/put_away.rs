//! Applications among the files of tests, and among those that are no longer in use: nobody means to run them.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::put_away::put_away;
use tiphys_value::ObjectExt;

use super::{Found, Repository};

/// Of one folder, so many are named.
const NAMED: usize = 5;

impl Repository {
    /// Leaves out what lies in folders whose names say that it is put away (the same that `tiphys check` tells of as
    /// information only), unless Applications that stay render it, or there is nothing else. What lies above the
    /// folder that was asked for does not count.
    pub(super) fn leave_put_away(&mut self) {
        self.left_out.clear();
        let start = if self.folder.is_empty() { 0 } else { self.folder.len() + 1 };
        let folder_of = |found: &Found| {
            let below = put_away(found.file.get(start..)?)?;
            Some(found.file[..start + below.len()].to_owned())
        };
        if !self.scan.declared().any(|found| folder_of(found).is_none()) {
            return;
        }
        let put_away: BTreeSet<String> = self
            .scan
            .declared()
            .filter(|found| folder_of(found).is_some())
            .map(|found| found.file.clone())
            .collect();
        let rendered = self.folders_of_applications();
        let is_rendered = |file: &str| {
            let mut above = file.match_indices('/').map(|(at, _)| &file[..at]).chain([""]);
            above.any(|folder| {
                rendered.get(folder).is_some_and(|by| by.iter().any(|file| !put_away.contains(file)))
            })
        };
        let goes = |found: &Found| folder_of(found).filter(|_| !is_rendered(&found.file));
        let mut left_out: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for found in self.scan.declared() {
            if let Some(folder) = goes(found) {
                left_out.entry(folder).or_default().push(found.object.name().to_owned());
            }
        }
        let files: BTreeSet<String> = self
            .scan
            .declared()
            .filter(|found| goes(found).is_some())
            .map(|found| found.file.clone())
            .collect();
        self.scan.retain(|found| !files.contains(&found.file));
        // Clusters and projects of a test would be known to all others, too.
        let stays = |found: &Found| folder_of(found).is_none();
        self.scan.clusters.retain(stays);
        self.scan.projects.retain(stays);
        self.scan.settings.retain(stays);
        self.left_out = left_out;
    }

    /// Leaves out what is a template for another tool (Terraform, envsubst, Jinja): an Application, set or project whose
    /// name or namespace is still to be filled in. Nothing of it can be applied as it stands.
    pub(super) fn leave_templates(&mut self) {
        let is_template = |found: &Found| {
            let own = [found.object.name(), found.object.namespace()];
            own.iter().any(|text| ["${", "{{", "<"].iter().any(|mark| text.contains(mark)))
        };
        let all = self.scan.declared().chain(&self.scan.projects).filter(|found| is_template(found));
        let told = |found: &Found| {
            format!(
                "{}: {} {:?} in namespace {:?} is a template for another tool; it is left out",
                found.place(),
                found.object.kind(),
                found.object.name(),
                found.object.namespace()
            )
        };
        let told: Vec<String> = all.map(told).collect();
        if self.scan.declared().all(is_template) {
            // There is nothing else: the API server says what is wrong with it.
            return;
        }
        self.notices.retain(|known| !told.contains(known));
        self.notices.extend(told);
        self.scan.retain(|found| !is_template(found));
        self.scan.projects.retain(|found| !is_template(found));
    }

    /// Why an Application or set is left out, if it is.
    pub fn why_left_out(&self, name: &str) -> Option<String> {
        let (folder, _) = self.left_out.iter().find(|(_, names)| names.iter().any(|left| left == name))?;
        Some(format!(
            "{name:?} lies in {folder}, which is left out: by its name it is of tests or put away; `tiphys up --path {folder}` runs it"
        ))
    }

    /// What is left out, in a sentence for each folder.
    pub fn told_left_out(&self) -> Vec<String> {
        let sentence = |(folder, names): (&String, &Vec<String>)| {
            let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!(
                "{folder} is left out ({shown}{more}): by its name it is of tests or put away; --path {folder} runs it"
            )
        };
        self.left_out.iter().map(sentence).collect()
    }
}
