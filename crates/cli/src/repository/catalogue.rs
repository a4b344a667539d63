//! All Applications that a repository leads to, and which of them nothing else renders.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_controller::Checkouts;
use tiphys_model::{Application, Tracking, names};
use tiphys_render::{Context, RenderError, Rendered, render};
use tiphys_source::Repositories;
use tiphys_value::{ObjectExt, Value};

use super::{Found, Scan};
use crate::ENGINE_NAMESPACE;

/// How many Applications may lead to one another.
const MAX_APPLICATIONS: usize = 20_000;

/// Namespace and name of an Application.
pub type Id = (String, String);

/// An Application and what it renders to.
pub struct Entry {
    /// What it renders to, or why not.
    pub rendered: Result<Rendered, RenderError>,
}

/// All Applications that a repository leads to.
#[derive(Default)]
pub struct Catalogue {
    /// The Applications by namespace and name. Of two of one name in files, the first.
    pub entries: BTreeMap<Id, Entry>,
    /// Which Applications each Application renders.
    children: BTreeMap<Id, BTreeSet<Id>>,
    /// The AppProjects that Applications render.
    projects: BTreeSet<Id>,
}

impl Catalogue {
    /// Renders what was found, and what that renders, and so on. Applications of other repositories
    /// are taken as they stand.
    pub fn build(scan: &Scan, repositories: &Repositories, origins: bool) -> Self {
        let mut catalogue = Self::default();
        let mut open: Vec<Value> = scan.applications.iter().rev().map(|found| found.object.clone()).collect();
        while let Some(object) = open.pop() {
            let Ok(app) = Application::from_value(&object) else { continue };
            let id = id_of(&object);
            if catalogue.entries.contains_key(&id) || catalogue.entries.len() >= MAX_APPLICATIONS {
                continue;
            }
            let is_ours =
                app.spec.effective_sources().iter().any(|source| repositories.is_given(&source.repo_url));
            let rendered = if is_ours || origins {
                render_one(&app, repositories, origins)
            } else {
                Ok(Rendered::default())
            };
            if let Ok(rendered) = &rendered {
                catalogue.projects.extend(of_kind(rendered, "AppProject").map(id_of));
            }
            let children = rendered.as_ref().map(applications).unwrap_or_default();
            catalogue.children.insert(id.clone(), children.iter().map(id_of).collect());
            open.extend(children);
            catalogue.entries.insert(id, Entry { rendered });
        }
        catalogue
    }

    /// The found Applications that no other Application renders. Of Applications that only render
    /// each other, the first.
    pub fn roots<'a>(&self, scan: &'a Scan) -> Vec<&'a Found> {
        let rendered: BTreeSet<&Id> = self
            .children
            .iter()
            .flat_map(|(parent, all)| all.iter().filter(move |child| *child != parent))
            .collect();
        let mut roots: Vec<&Found> =
            scan.applications.iter().filter(|found| !rendered.contains(&found.id())).collect();
        let mut reached = BTreeSet::new();
        roots.iter().for_each(|found| self.reach(found.id(), &mut reached));
        for found in &scan.applications {
            if !reached.contains(&found.id()) {
                roots.push(found);
                self.reach(found.id(), &mut reached);
            }
        }
        roots
    }

    /// The found AppProjects that no Application renders.
    pub fn unrendered_projects(&self, scan: &Scan) -> Vec<Found> {
        scan.projects.iter().filter(|found| !self.projects.contains(&found.id())).cloned().collect()
    }

    /// Everything that an Application leads to, itself included.
    pub fn reach(&self, from: Id, reached: &mut BTreeSet<Id>) {
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if reached.insert(id.clone()) {
                open.extend(self.children.get(&id).into_iter().flatten().cloned());
            }
        }
    }
}

fn id_of(object: &Value) -> Id {
    let namespace = object.namespace();
    let namespace = if namespace.is_empty() { ENGINE_NAMESPACE } else { namespace };
    (namespace.to_owned(), object.name().to_owned())
}

fn applications(rendered: &Rendered) -> Vec<Value> {
    of_kind(rendered, "Application").cloned().collect()
}

fn of_kind<'a>(rendered: &'a Rendered, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let objects = rendered.objects.iter().map(|object| &object.value);
    objects.filter(move |object| object.api_version() == names::API_VERSION && object.kind() == kind)
}

/// Renders one Application without a cluster.
pub fn render_one(
    app: &Application,
    repositories: &Repositories,
    origins: bool,
) -> Result<Rendered, RenderError> {
    let checkouts = Checkouts::new(repositories);
    let tracking = Arc::new(Tracking::default());
    render(
        app,
        &Context {
            sources: &checkouts,
            kube_version: "",
            api_versions: &[],
            tracking: &tracking,
            engine_namespace: ENGINE_NAMESPACE,
            is_namespaced: &crate::scope::is_namespaced,
            origins,
        },
    )
}
