//! AppProjects and cluster Secrets that no Application can bring, so that somebody has to have made them by hand.

use std::collections::BTreeSet;

use tiphys_value::ObjectExt;

use super::{
    Found, Scan,
    catalogue::{Catalogue, Id, Node},
};
use crate::ENGINE_NAMESPACE;

const PROJECT: &str = "AppProject";

impl Catalogue {
    /// Whether an Application renders an AppProject or cluster Secret, and can: not one that belongs to that project
    /// itself, which somebody has to have made first.
    pub fn renders(&self, found: &Found) -> bool {
        let by = self.others.get(&(found.object.kind().to_owned(), found.id()));
        let is_project = found.object.kind() == PROJECT;
        by.is_some_and(|apps| {
            !is_project || apps.iter().any(|app| self.project_of(app) != found.object.name())
        })
    }

    /// The found AppProjects and cluster Secrets that no Application renders, and the projects that the Applications
    /// need which would lead to those that render them.
    pub fn unrendered_others(&self, scan: &Scan) -> Vec<Found> {
        let needed = self.needed_first(scan);
        let all = scan.projects.iter().chain(&scan.clusters);
        let is_by_hand = |found: &&Found| {
            !self.renders(found) || found.object.kind() == PROJECT && needed.contains(&found.id())
        };
        all.filter(is_by_hand).cloned().collect()
    }

    /// The found projects without which nothing brings them: one after the other, until all that is led to can run.
    fn needed_first(&self, scan: &Scan) -> BTreeSet<Id> {
        let found: BTreeSet<Id> = scan.projects.iter().map(Found::id).collect();
        let roots: Vec<Node> = self.roots(scan).into_iter().map(Found::node).collect();
        let mut by_hand: BTreeSet<Id> =
            scan.projects.iter().filter(|found| !self.renders(found)).map(Found::id).collect();
        loop {
            let held = self.held_by_projects(&roots, &by_hand);
            let Some(first) = held.into_iter().find(|project| found.contains(project)) else {
                return by_hand;
            };
            by_hand.insert(first);
        }
    }

    /// The projects that Applications wait for which are led to from the roots, though other Applications render them:
    /// what does not wait, brings what it renders.
    fn held_by_projects(&self, roots: &[Node], by_hand: &BTreeSet<Id>) -> BTreeSet<Id> {
        let mut brought = by_hand.clone();
        let mut reached: BTreeSet<&Node> = BTreeSet::new();
        let mut open: Vec<&Node> = roots.iter().collect();
        let mut held: BTreeSet<(Id, &Node)> = BTreeSet::new();
        while let Some(node) = open.pop() {
            if !reached.insert(node) {
                continue;
            }
            let project = (ENGINE_NAMESPACE.to_owned(), self.project_of(&node.id).to_owned());
            let is_rendered = self.others.contains_key(&(PROJECT.to_owned(), project.clone()));
            if !node.is_set && is_rendered && !brought.contains(&project) {
                reached.remove(node);
                held.insert((project, node));
                continue;
            }
            open.extend(self.children.get(node).into_iter().flatten());
            if node.is_set {
                continue;
            }
            for ((_, project), _) in
                self.others.iter().filter(|((kind, _), apps)| kind == PROJECT && apps.contains(&node.id))
            {
                brought.insert(project.clone());
                open.extend(held.iter().filter(|(held, _)| held == project).map(|(_, node)| *node));
                held.retain(|(held, _)| held != project);
            }
        }
        held.into_iter().map(|(project, _)| project).collect()
    }

    /// The project of an Application.
    fn project_of(&self, app: &Id) -> &str {
        let named = self.entries.get(app).and_then(|entry| entry.object.str_at(&["spec", "project"]));
        named.filter(|name| !name.is_empty()).unwrap_or("default")
    }
}
