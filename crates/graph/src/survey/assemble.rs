//! Sorting what was found into environments, Applications and objects.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Arc, OnceLock},
};

use tiphys_model::{Application, hook};
use tiphys_render::RenderError;
use tiphys_value::{ObjectExt, RenderedObject, Value};

use super::{
    App, AppId, Declaration, Environment, EnvironmentId, Files, Object, ObjectId, Outcome, Owner, Root, Set,
    SetId, StatedSettings, Survey, Unit, UnitId, UnreadableFile, build, declarations, environment,
    found::{Found, Seed},
    grouping::{self, Groups},
    kinds::key_of,
    names::ENGINE_NAMESPACE,
    render_cache::MAX_APPLICATIONS,
    rendering::Rendering,
    units::UnitFolder,
};

/// A survey in the making.
pub(super) struct Assembly<'a> {
    found: &'a Found<'a>,
    environments: Vec<Environment>,
    roots: Vec<Root>,
    choices: BTreeMap<String, BTreeSet<String>>,
    no_environment: Option<String>,
    apps: Vec<App>,
    /// How many Applications are more than are looked at.
    pub left_out: usize,
    /// How many are not rendered, because those before them have too many objects.
    pub over_limit: usize,
    sets: Vec<Set>,
    units: Vec<Unit>,
    objects: Vec<Object>,
    pub faults: Vec<UnreadableFile>,
    /// The Applications by environment, namespace and name.
    by_name: HashMap<(EnvironmentId, String, String), AppId>,
    /// The ApplicationSets by the place and name of their declaration.
    by_place: HashMap<(Arc<str>, String), SetId>,
    /// What the ApplicationSets of each environment say, so that one that is reached twice yields once.
    yielding: HashSet<(EnvironmentId, SetId, String)>,
}

/// A declaration that waits to be looked at.
struct Pending {
    environment: EnvironmentId,
    declaration: Declaration,
    /// The Application that renders it, or the ApplicationSet that yields it.
    above: Option<AppId>,
    declared: Arc<RenderedObject>,
}

impl<'a> Assembly<'a> {
    /// Nothing yet.
    pub(super) fn new(found: &'a Found<'a>) -> Self {
        Self {
            found,
            environments: Vec::new(),
            roots: Vec::new(),
            choices: BTreeMap::new(),
            no_environment: None,
            apps: Vec::new(),
            left_out: 0,
            over_limit: 0,
            sets: Vec::new(),
            units: Vec::new(),
            objects: Vec::new(),
            faults: Vec::new(),
            by_name: HashMap::new(),
            by_place: HashMap::new(),
            yielding: HashSet::new(),
        }
    }

    /// Adds what no Application reaches.
    pub(super) fn units(
        &mut self,
        units: &[(UnitFolder, Arc<Rendering>)],
        loose: BTreeMap<Arc<str>, Vec<Arc<RenderedObject>>>,
    ) {
        for (place, rendering) in units {
            let id = UnitId(self.units.len());
            let mut unit = build::unit(place, &rendering.outcome);
            unit.objects = self.add_objects(Owner::Unit(id), None, "", &rendering.objects, &rendering.read);
            self.units.push(unit);
        }
        for (file, objects) in loose {
            let id = UnitId(self.units.len());
            let mut unit = build::manifest(&file);
            unit.objects =
                self.add_objects(Owner::Unit(id), None, "", &objects, &Arc::new(BTreeSet::from([file])));
            self.units.push(unit);
        }
    }

    /// Adds the Applications that seeds declare, and what those declare in turn.
    pub(super) fn grow(&mut self, seeds: Vec<Seed>) {
        let mut open: VecDeque<Pending> = VecDeque::new();
        let folders: Vec<String> = self.units.iter().map(|unit| unit.path.clone()).collect();
        let groups = grouping::groups(&seeds, &folders, self.found);
        let wanted = self.chosen(&groups);
        for (seed, name) in seeds.into_iter().zip(groups.names) {
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&name)) {
                continue;
            }
            let environment = self.environment(&name);
            let unit = seed.unit.map(UnitId);
            let declaration = unit.map_or(Declaration::File, Declaration::Unit);
            self.roots.push(Root { environment, unit, declared: seed.declared.clone() });
            open.push_back(Pending { environment, declaration, above: None, declared: seed.declared });
        }
        while let Some(pending) = open.pop_front() {
            if pending.declared.value.kind() == "ApplicationSet" {
                self.add_set(pending, &mut open);
            } else {
                self.add_app(pending, &mut open);
            }
        }
    }

    /// Notes which environments may be chosen. Returns those that are, if not all of them are.
    fn chosen(&mut self, groups: &Groups) -> Option<BTreeSet<String>> {
        let choices = &groups.choices;
        self.choices.clone_from(choices);
        match environment::find_by_name(self.found.input.environment?, choices.keys()) {
            Ok(name) if choices.len() > 1 => choices.get(name).cloned(),
            Ok(_) => None,
            Err(why) => {
                self.no_environment = Some(why);
                Some(BTreeSet::new())
            }
        }
    }

    /// The survey, but for its files and what is unseen.
    pub(super) fn finish(self) -> Survey {
        Survey {
            files: Arc::new(Files::list(Arc::new(tiphys_vfs::MemTree::default()), "")),
            environments: self.environments,
            apps: self.apps,
            sets: self.sets,
            units: self.units,
            objects: self.objects,
            faults: self.faults,
            unseen: Vec::new(),
            roots: self.roots,
            choices: self.choices,
            no_environment: self.no_environment,
            others: Vec::new(),
            settings: StatedSettings::default(),
            notices: Vec::new(),
            adopted: BTreeSet::new(),
            revisions: std::collections::BTreeMap::new(),
            branch: None,
            tools: Arc::new(OnceLock::new()),
            kube_version: self.found.input.kube_version.to_owned(),
            flux: None,
            flux_sources: Default::default(),
            is_of_flux: false,
            unset_variables: Vec::new(),
            unreadable_expressions: Vec::new(),
            index: std::sync::OnceLock::new(),
        }
    }

    fn environment(&mut self, name: &str) -> EnvironmentId {
        let known = self.environments.iter().position(|environment| environment.name == name);
        EnvironmentId(known.unwrap_or_else(|| {
            self.environments.push(Environment { name: name.to_owned(), roots: Vec::new() });
            self.environments.len() - 1
        }))
    }

    fn add_set(&mut self, pending: Pending, open: &mut VecDeque<Pending>) {
        let Pending { environment, above, declared, .. } = pending;
        let place = (declared.location.file.clone(), declared.value.name().to_owned());
        let yielded = self.found.sets.get(&declared.value.to_string());
        let id = *self.by_place.entry(place).or_insert_with(|| {
            self.sets.push(Set {
                declared: declared.clone(),
                environments: BTreeSet::new(),
                apps: Vec::new(),
                fault: yielded.and_then(|it| it.fault.clone()),
                partly: yielded.and_then(|it| it.partly.clone()),
                unseen: yielded.is_some_and(|it| !it.missed.is_empty()),
                symbolic: false,
            });
            SetId(self.sets.len() - 1)
        });
        self.sets[id.0].environments.insert(environment);
        // One declaration may be rendered in several ways, by overlays.
        self.sets[id.0].symbolic |= yielded.is_some_and(|it| it.symbolic);
        let spec = declared.value.get("spec").map(Value::to_string).unwrap_or_default();
        if !self.yielding.insert((environment, id, spec)) {
            return;
        }
        for generated in yielded.map(|it| it.apps.as_slice()).unwrap_or_default() {
            let declared = Arc::new(RenderedObject {
                value: generated.application.clone(),
                location: declared.location.clone(),
                origins: below_template(&declared),
            });
            open.push_back(Pending { environment, declaration: Declaration::Set(id), above, declared });
        }
    }

    fn add_app(&mut self, pending: Pending, open: &mut VecDeque<Pending>) {
        let Pending { environment, declaration, above, declared } = pending;
        let application = match Application::from_value(&declared.value) {
            Ok(application) => application,
            Err(error) => return self.refuse(&declared, &error.to_string()),
        };
        let id = AppId(self.apps.len());
        let name = (environment, namespace_of(&declared.value), declared.value.name().to_owned());
        let first = self.by_name.get(&name).copied();
        if let Some(first) = first
            && self.is_same(first, &declared, declaration)
        {
            return;
        }
        if self.apps.len() >= MAX_APPLICATIONS {
            self.left_out += 1;
            return;
        }
        let rendering = self.found.memo.get(&declared.value).cloned();
        let mut app = App {
            id,
            environment,
            declaration,
            above,
            declared,
            application,
            outcome: Outcome::Unseen("it is one of too many Applications".into()),
            objects: Vec::new(),
            tools: Vec::new(),
            read: Arc::default(),
        };
        match (first, rendering) {
            (Some(first), _) => app.outcome = Outcome::Duplicate(first),
            (None, Some(rendering)) => {
                self.over_limit += usize::from(rendering.is_over_limit);
                self.render(&mut app, &rendering, open);
            }
            (None, None) => {}
        }
        if first.is_none() {
            self.by_name.insert(name, id);
        }
        match declaration {
            Declaration::Set(set) => self.sets[set.0].apps.push(id),
            Declaration::File | Declaration::Unit(_) => self.environments[environment.0].roots.push(id),
            Declaration::App(_) => {}
        }
        self.apps.push(app);
    }

    fn render(&mut self, app: &mut App, rendering: &Rendering, open: &mut VecDeque<Pending>) {
        app.outcome = rendering.outcome.clone();
        app.tools.clone_from(&rendering.tools);
        app.read = rendering.read.clone();
        let cluster = app.cluster().to_owned();
        app.objects = self.add_objects(
            Owner::App(app.id),
            Some(app.environment),
            &cluster,
            &rendering.objects,
            &rendering.read,
        );
        let inner = rendering.objects.iter().filter(|object| declarations::declares(&object.value));
        open.extend(inner.map(|declared| Pending {
            environment: app.environment,
            declaration: Declaration::App(app.id),
            above: Some(app.id),
            declared: declared.clone(),
        }));
    }

    /// Whether a declaration is the one that an Application was made from: reached twice, or by itself.
    fn is_same(&self, first: AppId, declared: &RenderedObject, declaration: Declaration) -> bool {
        let first = &self.apps[first.0];
        first.declared.location == declared.location && !matches!(declaration, Declaration::Set(_))
    }

    fn refuse(&mut self, declared: &RenderedObject, why: &str) {
        let text = format!("{}: Application {}: {why}", declared.location, declared.value.name());
        self.faults.push(UnreadableFile {
            file: declared.location.file.to_string(),
            error: RenderError::new(text),
            // It is read well, and judged as an object.
            is_manifest: false,
        });
    }

    fn add_objects(
        &mut self,
        owner: Owner,
        environment: Option<EnvironmentId>,
        cluster: &str,
        objects: &[Arc<RenderedObject>],
        read: &Arc<BTreeSet<Arc<str>>>,
    ) -> Vec<ObjectId> {
        let cluster: Arc<str> = cluster.into();
        let start = self.objects.len();
        for rendered in objects {
            self.objects.push(Object {
                id: ObjectId(self.objects.len()),
                owner,
                environment,
                cluster: cluster.clone(),
                key: key_of(&rendered.value),
                rendered: rendered.clone(),
                wave: hook::wave(&rendered.value),
                hooks: hook::hook_types(&rendered.value),
                read: read.clone(),
            });
        }
        (start..self.objects.len()).map(ObjectId).collect()
    }
}

fn namespace_of(declared: &Value) -> String {
    let namespace = declared.namespace();
    (if namespace.is_empty() { ENGINE_NAMESPACE } else { namespace }).to_owned()
}

/// The origins of an ApplicationSet's template as those of the Application that it yields.
fn below_template(set: &RenderedObject) -> tiphys_value::Origins {
    let template = tiphys_value::FieldPath::default().key("spec").key("template");
    set.origins.find(&template).cloned().unwrap_or_default()
}
