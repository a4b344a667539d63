//! What somebody applies by hand so that a repository comes up: its root Applications and ApplicationSets,
//! the projects and clusters that no Application can bring, and Argo CD's settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_model::names;
use tiphys_value::{ObjectExt, RenderedObject, Value, json};

use crate::{
    App, Declaration, DeclaredId, Root, Survey,
    survey::{ENGINE_NAMESPACE, is_config_map},
};

/// Namespace and name.
type Id = (String, String);

const PROJECT: &str = "AppProject";
/// The setting that says how kustomizations are built.
const BUILD_OPTIONS: &str = "kustomize.buildOptions";

/// What leads to what in a repository, by name: what runs in a cluster, whichever file it came from.
pub struct Bootstrap<'a> {
    survey: &'a Survey,
    /// Which Applications and sets each Application renders, and each set yields.
    children: BTreeMap<DeclaredId, BTreeSet<DeclaredId>>,
    /// The AppProjects and cluster Secrets that Applications render, by kind and id, and those Applications.
    rendered: BTreeMap<(String, Id), BTreeSet<Id>>,
    /// The project of each Application.
    projects: BTreeMap<Id, String>,
}

impl<'a> Bootstrap<'a> {
    /// That of all that a survey holds.
    pub fn from_survey(survey: &'a Survey) -> Self {
        let mut bootstrap =
            Self { survey, children: BTreeMap::new(), rendered: BTreeMap::new(), projects: BTreeMap::new() };
        for root in &survey.roots {
            bootstrap.children.entry(DeclaredId::from_object(&root.declared.value)).or_default();
        }
        for app in &survey.apps {
            bootstrap.add(app);
        }
        bootstrap
    }

    fn add(&mut self, app: &App) {
        let id = app.declared_id();
        if let Declaration::Set(set) = app.declaration {
            let set = DeclaredId::from_object(&self.survey.sets[set.0].declared.value);
            self.children.entry(set).or_default().insert(id.clone());
        }
        let project = app.application.spec.project.clone();
        self.projects.entry(id.id.clone()).or_insert(project);
        let children = self.children.entry(id.clone()).or_default();
        for object in self.survey.objects_of(app.id).map(crate::Object::value) {
            match object.kind() {
                "Application" | "ApplicationSet" if object.api_version() == names::API_VERSION => {
                    children.insert(DeclaredId::from_object(object));
                }
                PROJECT | "Secret" => {
                    let key = (object.kind().to_owned(), id_of(object));
                    self.rendered.entry(key).or_default().insert(id.id.clone());
                }
                _ => {}
            }
        }
    }

    /// The roots that nothing else renders or yields, by name. Of those that only lead to each other, the
    /// first.
    pub fn roots(&self) -> Vec<&'a Root> {
        let led_to: BTreeSet<&DeclaredId> = self
            .children
            .iter()
            .flat_map(|(parent, all)| all.iter().filter(move |child| *child != parent))
            .collect();
        let id = |root: &&Root| DeclaredId::from_object(&root.declared.value);
        let all = &self.survey.roots;
        let mut roots: Vec<&Root> = all.iter().filter(|root| !led_to.contains(&id(root))).collect();
        let mut reached = BTreeSet::new();
        roots.iter().for_each(|root| self.reach(id(root), &mut reached));
        let mut again = reached.clone();
        let circular = self.unreached(all.iter(), &mut reached);
        // A later one may lead to an earlier one, never the other way round.
        let mut last = self.unreached(circular.into_iter().rev(), &mut again);
        last.reverse();
        roots.extend(last);
        roots
    }

    /// The namespace of a root that names none and renders itself: the one into which it does, in which
    /// its Argo CD looks for Applications, or there would be two of it.
    pub fn own_namespace(&self, root: &Root) -> Option<&'a str> {
        let declared = &root.declared.value;
        let id = DeclaredId::from_object(declared);
        let app = self.survey.apps.iter().find(|app| app.declared_id() == id)?;
        let namespace = app.application.spec.destination.namespace.as_str();
        let is_itself = |object: &Value| {
            object.kind() == declared.kind()
                && object.name() == declared.name()
                && object.namespace() == namespace
        };
        let renders_itself = self.survey.objects_of(app.id).map(crate::Object::value).any(is_itself);
        (declared.namespace().is_empty() && renders_itself && !namespace.is_empty()).then_some(namespace)
    }

    /// One after the other, those that are not reached yet, each with what it leads to.
    fn unreached(
        &self,
        all: impl Iterator<Item = &'a Root>,
        reached: &mut BTreeSet<DeclaredId>,
    ) -> Vec<&'a Root> {
        let mut begun = Vec::new();
        for root in all {
            let id = DeclaredId::from_object(&root.declared.value);
            if !reached.contains(&id) {
                begun.push(root);
                self.reach(id, reached);
            }
        }
        begun
    }

    /// Everything that an Application or set leads to, itself included.
    fn reach(&self, from: DeclaredId, reached: &mut BTreeSet<DeclaredId>) {
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if reached.insert(id.clone()) {
                open.extend(self.children.get(&id).into_iter().flatten().cloned());
            }
        }
    }

    /// Whether an Application or set is known, whoever leads to it.
    pub fn knows(&self, id: &DeclaredId) -> bool {
        self.children.contains_key(id) || self.children.values().any(|all| all.contains(id))
    }

    /// Whether an Application renders an Application or set that is no other's, itself included.
    pub fn is_rendered(&self, id: &DeclaredId) -> bool {
        let mut parents = self.children.iter().filter(|(parent, _)| !parent.is_set);
        parents.any(|(_, all)| all.contains(id))
    }

    /// Whether an Application renders an AppProject or cluster Secret, and can: not one that belongs to that
    /// project itself, which somebody has to have made first.
    pub fn renders(&self, object: &Value) -> bool {
        let by = self.rendered.get(&(object.kind().to_owned(), id_of(object)));
        let is_project = object.kind() == PROJECT;
        by.is_some_and(|apps| !is_project || apps.iter().any(|app| self.project_of(app) != object.name()))
    }

    /// The AppProjects and cluster Secrets that no Application renders, and the projects that the
    /// Applications need which would lead to those that render them.
    pub fn by_hand(&self) -> Vec<Arc<RenderedObject>> {
        let needed = self.needed_first();
        let is_by_hand = |it: &&Arc<RenderedObject>| {
            let object = &it.value;
            !self.renders(object) || object.kind() == PROJECT && needed.contains(&id_of(object))
        };
        self.survey.others.iter().filter(is_by_hand).cloned().collect()
    }

    /// The projects without which nothing brings them: one after the other, until all that is led to can run.
    fn needed_first(&self) -> BTreeSet<Id> {
        let projects = || self.survey.others.iter().map(|it| &it.value).filter(|it| it.kind() == PROJECT);
        let found: BTreeSet<Id> = projects().map(id_of).collect();
        let roots: Vec<DeclaredId> =
            self.roots().into_iter().map(|root| DeclaredId::from_object(&root.declared.value)).collect();
        let mut by_hand: BTreeSet<Id> = projects().filter(|it| !self.renders(it)).map(id_of).collect();
        loop {
            let held = self.held_by_projects(&roots, &by_hand);
            let Some(first) = held.into_iter().find(|project| found.contains(project)) else {
                return by_hand;
            };
            by_hand.insert(first);
        }
    }

    /// The projects that Applications wait for which are led to from the roots, though other Applications
    /// render them: what does not wait, brings what it renders.
    fn held_by_projects(&self, roots: &[DeclaredId], by_hand: &BTreeSet<Id>) -> BTreeSet<Id> {
        let mut brought = by_hand.clone();
        let mut reached: BTreeSet<&DeclaredId> = BTreeSet::new();
        let mut open: Vec<&DeclaredId> = roots.iter().collect();
        let mut held: BTreeSet<(Id, &DeclaredId)> = BTreeSet::new();
        while let Some(declared) = open.pop() {
            if !reached.insert(declared) {
                continue;
            }
            let project = (ENGINE_NAMESPACE.to_owned(), self.project_of(&declared.id).to_owned());
            let is_rendered = self.rendered.contains_key(&(PROJECT.to_owned(), project.clone()));
            if !declared.is_set && is_rendered && !brought.contains(&project) {
                reached.remove(declared);
                held.insert((project, declared));
                continue;
            }
            open.extend(self.children.get(declared).into_iter().flatten());
            if declared.is_set {
                continue;
            }
            let renders = |(kind, _): &(String, Id), apps: &BTreeSet<Id>| {
                kind == PROJECT && apps.contains(&declared.id)
            };
            for ((_, project), _) in self.rendered.iter().filter(|(key, apps)| renders(key, apps)) {
                brought.insert(project.clone());
                open.extend(held.iter().filter(|(held, _)| held == project).map(|(_, declared)| *declared));
                held.retain(|(held, _)| held != project);
            }
        }
        held.into_iter().map(|(project, _)| project).collect()
    }

    /// The project of an Application.
    fn project_of(&self, app: &Id) -> &str {
        let named = self.projects.get(app).map(String::as_str);
        named.filter(|name| !name.is_empty()).unwrap_or("default")
    }

    /// The projects that Applications name, where none at all is declared: somebody made them by other means.
    /// Where some are declared, a missing one is a mistake.
    pub fn undeclared_projects(&self) -> BTreeSet<&str> {
        let is_rendered = self.rendered.keys().any(|(kind, _)| kind == PROJECT);
        if is_rendered || self.survey.others.iter().any(|it| it.value.kind() == PROJECT) {
            return BTreeSet::new();
        }
        let names = self.projects.values().map(String::as_str);
        names.filter(|name| !matches!(*name, "" | "default")).collect()
    }

    /// Whether an Application renders Argo CD's settings.
    pub fn brings_settings(&self) -> bool {
        self.survey.rendered_config_maps().next().is_some()
    }

    /// Argo CD's settings as the repository states them, or as it presupposes them; `None` if there are none,
    /// or an Application brings them.
    pub fn settings(&self) -> Option<Value> {
        if self.brings_settings() {
            return None;
        }
        let stated = &self.survey.settings;
        let data = stated.own().filter(|it| is_config_map(it)).and_then(|it| it.get("data")).cloned();
        let mut data = data.unwrap_or_else(|| json!({}));
        if let (Some(options), None) = (stated.build_options(), data.get(BUILD_OPTIONS)) {
            data[BUILD_OPTIONS] = options.into();
        }
        let is_empty = data.as_object().is_none_or(tiphys_value::Map::is_empty);
        (!is_empty).then(|| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"name": tiphys_model::settings::CONFIG_MAP, "namespace": ENGINE_NAMESPACE}})
        })
    }
}

/// Namespace (the engine's if it names none) and name of an object.
fn id_of(object: &Value) -> Id {
    DeclaredId::from_object(object).id
}
