//! Putting a survey together: first everything that declares Applications is followed to its end, then
//! the Applications are sorted into environments.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use tiphys_appset::ClusterInfo;
use tiphys_model::names;
use tiphys_value::{ObjectExt, RenderedObject, Value};
use tiphys_vfs::{join, parent};

use super::{
    Files, Input, Outcome, Survey, Unit, UnitKind,
    assemble::Assembly,
    discover,
    discover::Parsed,
    files::Texts,
    flux,
    kept::Renderings,
    memo::{Memo, Rendering},
    sets,
    sets::Yielded,
    types::Unseen,
    units,
    units::Place,
};

/// How many Applications are followed.
const MAX_APPLICATIONS: usize = 20_000;

/// Everything that was found, before it is sorted into environments.
pub struct Found<'a> {
    pub input: &'a Input<'a>,
    pub files: Arc<Files>,
    pub memo: Memo<'a>,
    /// What each ApplicationSet yields, by its text.
    pub sets: HashMap<String, Yielded>,
    clusters: Vec<ClusterInfo>,
}

/// What starts a tree of Applications.
pub struct Seed {
    pub declared: RenderedObject,
    /// The unit that renders it; `None` if it stands in a file.
    pub unit: Option<usize>,
}

/// What is known of a repository before it is read, or after.
pub struct Known<'a> {
    pub texts: Texts,
    pub manifests: &'a HashMap<Arc<str>, Arc<Parsed>>,
    pub renderings: &'a Renderings,
}

/// What one reading leaves to the next.
pub struct Left {
    pub manifests: HashMap<Arc<str>, Arc<Parsed>>,
    pub renderings: Renderings,
}

/// Reads a repository, of which something may be known.
pub fn build(input: &Input<'_>, known: Known<'_>) -> (Survey, Left) {
    let files = Files::list_knowing(input.tree.clone(), input.folder, known.texts);
    let manifests = discover::read(&files, known.manifests);
    let of_flux = manifests.objects.iter().map(|it| &it.value).filter(|it| units::is_of_flux(it));
    let tops = units::tops(&files, of_flux);
    let clusters = sets::clusters(manifests.objects.iter().map(Arc::as_ref));
    let files = Arc::new(files);
    let mut found = Found { input, files, memo: Memo::new(known.renderings), sets: HashMap::new(), clusters };
    let declared: Vec<RenderedObject> = manifests
        .objects
        .iter()
        .filter(|it| declares(&it.value) && !is_template(&found.files, it))
        .map(|it| RenderedObject::clone(it))
        .collect();
    let mut renderings = found.follow(declared.clone());
    let mut places = unreached(&tops, &renderings, &found.files);
    let applications: Vec<Value> = places.iter().map(units::application).collect();
    found.memo.render(&applications.iter().collect::<Vec<_>>(), input);
    let inner: Vec<RenderedObject> =
        applications.iter().filter_map(|it| found.memo.get(it)).flat_map(declaring).collect();
    let roots = found.roots(&places, &applications);
    renderings.extend(found.follow(inner));
    let mut at = 0;
    places.retain(|_| {
        at += 1;
        roots.contains(&(at - 1))
    });
    let units: Vec<(Place, Arc<Rendering>)> = places
        .into_iter()
        .filter_map(|place| Some((place.clone(), found.memo.get(&units::application(&place))?.clone())))
        .collect();
    let (seeds, inner) = seeds(declared, &renderings, &units);
    let seeds = found.with_circles(seeds, inner, &units);
    let loose = loose(manifests.objects, &renderings, &units);
    let mut assembly = Assembly::new(&found);
    assembly
        .faults
        .extend(manifests.faults.into_iter().filter(|fault| !was_read(&fault.file, &renderings, &units)));
    assembly.units(&units, loose);
    assembly.grow(seeds);
    let parts = assembly.finish();
    let unseen = unseen(&parts.apps, &units, &found);
    let mut survey = Survey { unseen, files: found.files.clone(), ..parts };
    survey.flux_sources = flux::Sources::of(input, &survey);
    survey.flux = flux::survey(&mut found, &survey).map(Box::new);
    let of_flux = survey.flux.iter().flat_map(|it| it.unseen.iter().cloned());
    survey.unseen.extend(of_flux.collect::<Vec<_>>());
    let left = Left { manifests: manifests.parsed, renderings: found.memo.into_known() };
    (survey, left)
}

impl Found<'_> {
    /// Which of these places no other of them leads to: a chart may well declare an Application of itself. Of
    /// those that only lead to each other, the first.
    fn roots(&mut self, places: &[Place], applications: &[Value]) -> BTreeSet<usize> {
        let reached: Vec<BTreeSet<usize>> = applications
            .iter()
            .map(|application| {
                let inner = self.memo.get(application).map(declaring).unwrap_or_default();
                if inner.is_empty() {
                    return BTreeSet::new();
                }
                let renderings = self.follow(inner);
                let is_reached = |place: &Place| is_reached(place, &renderings, &self.files);
                places.iter().enumerate().filter(|(_, place)| is_reached(place)).map(|(at, _)| at).collect()
            })
            .collect();
        let is_led_to =
            |at: usize| reached.iter().enumerate().any(|(from, reached)| from != at && reached.contains(&at));
        let mut roots: BTreeSet<usize> = (0..places.len()).filter(|at| !is_led_to(*at)).collect();
        let mut known: BTreeSet<usize> = roots.iter().flat_map(|at| &reached[*at]).copied().collect();
        for (at, reached) in reached.iter().enumerate() {
            if !roots.contains(&at) && !known.contains(&at) {
                roots.insert(at);
                known.extend(reached);
            }
        }
        roots
    }

    /// The seeds, and of the declarations that lead back to themselves the first: an Application of Argo CD itself whose
    /// folder declares the root of the tree that it is in. `inner` are those in files that something renders. Where that
    /// leaves nothing, the first of these is a seed.
    fn with_circles(
        &mut self,
        seeds: Vec<Seed>,
        inner: Vec<RenderedObject>,
        units: &[(Place, Arc<Rendering>)],
    ) -> Vec<Seed> {
        let mut seeds = seeds;
        let last_resort = inner.first().cloned();
        let in_files = inner.into_iter().map(|declared| Seed { declared, unit: None });
        let in_units = units.iter().enumerate().flat_map(|(index, (_, rendering))| {
            declaring(rendering).into_iter().map(move |declared| Seed { declared, unit: Some(index) })
        });
        let is_seed: HashSet<_> = seeds.iter().map(|seed| place(&seed.declared)).collect();
        let mut reached: Option<HashSet<(Arc<str>, String)>> = None;
        for candidate in in_files.chain(in_units) {
            let at = place(&candidate.declared);
            if is_seed.contains(&at) {
                continue;
            }
            let known = reached.get_or_insert_with(|| {
                self.declared_from(seeds.iter().map(|seed| seed.declared.clone()).collect())
            });
            if !known.contains(&at) && self.declared_from(vec![candidate.declared.clone()]).contains(&at) {
                seeds.push(candidate);
                reached = None;
            }
        }
        if seeds.is_empty() {
            seeds.extend(last_resort.map(|declared| Seed { declared, unit: None }));
        }
        seeds
    }

    /// Where the Applications stand that these lead to.
    fn declared_from(&mut self, declared: Vec<RenderedObject>) -> HashSet<(Arc<str>, String)> {
        let followed = self.follow(declared);
        followed.iter().flat_map(|(_, rendering)| declaring(rendering)).map(|object| place(&object)).collect()
    }

    /// Renders Applications and what they declare in turn, to the end. Returns what each rendered to.
    fn follow(&mut self, declared: Vec<RenderedObject>) -> Vec<(Value, Arc<Rendering>)> {
        let mut done: Vec<(Value, Arc<Rendering>)> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut open = declared;
        while !open.is_empty() && done.len() < MAX_APPLICATIONS {
            let applications: Vec<Value> = open
                .iter()
                .flat_map(|object| self.applications(&object.value))
                .filter(|application| seen.insert(application.to_string()))
                .collect();
            self.memo.render(&applications.iter().collect::<Vec<_>>(), self.input);
            open = Vec::new();
            for application in applications {
                let Some(rendering) = self.memo.get(&application).cloned() else { continue };
                open.extend(declaring(&rendering));
                done.push((application, rendering));
            }
        }
        done
    }

    /// An Application itself, or those that an ApplicationSet yields.
    pub fn applications(&mut self, declared: &Value) -> Vec<Value> {
        if declared.kind() == "Application" {
            return vec![declared.clone()];
        }
        let (input, clusters) = (self.input, &self.clusters);
        let yielded = self
            .sets
            .entry(declared.to_string())
            .or_insert_with(|| sets::evaluate(declared, input, clusters));
        yielded.apps.iter().map(|app| app.application.clone()).collect()
    }
}

/// Whether an object declares Applications.
pub fn declares(object: &Value) -> bool {
    object.api_version() == names::API_VERSION && matches!(object.kind(), "Application" | "ApplicationSet")
}

/// Whether a declaration is a template of a chart that happens to be YAML before Helm has read it.
fn is_template(files: &Files, declared: &RenderedObject) -> bool {
    const OF_HELM: [&str; 4] = [".Values", ".Release.", ".Chart.", "include "];
    const FOLDER: &str = "templates/";
    let path = declared.location.file.as_ref();
    let mut charts = path.match_indices(FOLDER).map(|(at, _)| format!("{}Chart.yaml", &path[..at]));
    if !charts.any(|chart| files.contains(&chart)) {
        return false;
    }
    let text = declared.value.to_string();
    text.split("{{").skip(1).any(|action| {
        let action = action.split("}}").next().unwrap_or_default();
        OF_HELM.iter().any(|mark| action.contains(mark))
    })
}

fn declaring(rendering: &Arc<Rendering>) -> Vec<RenderedObject> {
    rendering
        .objects
        .iter()
        .filter(|object| declares(&object.value))
        .map(|it| RenderedObject::clone(it))
        .collect()
}

fn unreached(tops: &[Place], renderings: &[(Value, Arc<Rendering>)], files: &Files) -> Vec<Place> {
    tops.iter().filter(|place| !is_reached(place, renderings, files)).cloned().collect()
}

/// Whether an Application's rendering read the file that makes a folder a chart or kustomization.
fn is_reached(place: &Place, renderings: &[(Value, Arc<Rendering>)], files: &Files) -> bool {
    let marks = units::marks(place);
    let mark = marks.iter().find(|mark| files.contains(mark)).map(String::as_str).unwrap_or_default();
    renderings.iter().any(|(_, rendering)| rendering.read.contains(mark))
}

/// Whether a file was read, or lies in a chart that was: what its templates may ask for and did not is no manifest.
fn was_read(file: &str, renderings: &[(Value, Arc<Rendering>)], units: &[(Place, Arc<Rendering>)]) -> bool {
    all(renderings, units).any(|it| it.read.contains(file) || lies_in_chart(file, &it.read))
}

fn all<'a>(
    renderings: &'a [(Value, Arc<Rendering>)],
    units: &'a [(Place, Arc<Rendering>)],
) -> impl Iterator<Item = &'a Arc<Rendering>> {
    renderings.iter().map(|(_, it)| it).chain(units.iter().map(|(_, it)| it))
}

/// Whether a folder above a file is a chart of which some were read.
fn lies_in_chart(file: &str, read: &BTreeSet<Arc<str>>) -> bool {
    let mut folders = std::iter::successors(parent(file), |folder| parent(folder));
    folders.any(|folder| join(folder, "Chart.yaml").is_ok_and(|chart| read.contains(chart.as_str())))
}

/// The declarations that nothing renders, and those in files that something does.
fn seeds(
    declared: Vec<RenderedObject>,
    renderings: &[(Value, Arc<Rendering>)],
    units: &[(Place, Arc<Rendering>)],
) -> (Vec<Seed>, Vec<RenderedObject>) {
    let mut rendered: HashSet<(Arc<str>, String)> = HashSet::new();
    for (application, rendering) in renderings {
        for object in declaring(rendering) {
            if !is_itself(application, &object.value) {
                rendered.insert((object.location.file.clone(), object.value.name().to_owned()));
            }
        }
    }
    let mut from_units: Vec<Seed> = Vec::new();
    for (index, (_, rendering)) in units.iter().enumerate() {
        for object in declaring(rendering).into_iter().filter(|object| !rendered.contains(&place(object))) {
            from_units.push(Seed { declared: object, unit: Some(index) });
        }
    }
    rendered.extend(from_units.iter().map(|seed| place(&seed.declared)));
    let (roots, inner): (Vec<_>, Vec<_>) = declared
        .into_iter()
        .partition(|object| !rendered.contains(&place(object)) && !is_consumed(object, renderings, units));
    let mut seeds: Vec<Seed> = roots.into_iter().map(|declared| Seed { declared, unit: None }).collect();
    seeds.extend(from_units);
    (seeds, inner)
}

/// Whether what an Application leads to is that Application. An ApplicationSet may well have the name of the Application
/// that renders it.
fn is_itself(application: &Value, declared: &Value) -> bool {
    declared.kind() == application.kind() && declared.name() == application.name()
}

/// What a declaration is told apart by.
fn place(declared: &RenderedObject) -> (Arc<str>, String) {
    (declared.location.file.clone(), declared.value.name().to_owned())
}

/// Whether a declaration is only the raw material of another: a base whose name an overlay changes, or a
/// patch.
fn is_consumed(
    object: &RenderedObject,
    renderings: &[(Value, Arc<Rendering>)],
    units: &[(Place, Arc<Rendering>)],
) -> bool {
    let by_apps = renderings.iter().filter(|(application, _)| !is_itself(application, &object.value));
    let all = by_apps.map(|(_, it)| it).chain(units.iter().map(|(_, it)| it));
    all.into_iter().any(|it| it.seen.contains(&object.location.file))
}

/// The objects in manifest files that nothing renders, by file. What was read by a rendering that came to nothing, such as
/// one that needs a chart out of reach, is looked at as it stands.
fn loose(
    objects: Vec<Arc<RenderedObject>>,
    renderings: &[(Value, Arc<Rendering>)],
    units: &[(Place, Arc<Rendering>)],
) -> BTreeMap<Arc<str>, Vec<Arc<RenderedObject>>> {
    let read: BTreeSet<Arc<str>> = all(renderings, units).flat_map(|it| it.seen.iter().cloned()).collect();
    let mut loose: BTreeMap<Arc<str>, Vec<Arc<RenderedObject>>> = BTreeMap::new();
    for object in objects {
        let file = &object.location.file;
        if !read.contains(file) && !lies_in_chart(file, &read) {
            loose.entry(file.clone()).or_default().push(object);
        }
    }
    loose
}

/// What the Applications and what they do not reach miss, each named once.
fn unseen(apps: &[super::App], units: &[(Place, Arc<Rendering>)], found: &Found<'_>) -> Vec<Unseen> {
    let mut all: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for app in apps {
        let Some(rendering) = found.memo.get(&app.declared.value) else { continue };
        for missed in &rendering.missed {
            all.entry(missed.clone()).or_default().insert(app.name().to_owned());
        }
    }
    let of_sets = found.sets.values().flat_map(|yielded| &yielded.missed);
    for missed in units.iter().flat_map(|(_, rendering)| &rendering.missed).chain(of_sets) {
        all.entry(missed.clone()).or_default();
    }
    all.into_iter().map(|((what, why), apps)| Unseen { what, why, apps }).collect()
}

/// A unit as a survey shows it.
pub fn unit(place: &Place, outcome: &Outcome) -> Unit {
    Unit { kind: place.kind, path: place.folder.clone(), outcome: outcome.clone(), objects: Vec::new() }
}

/// A manifest file as a unit.
pub fn manifest(file: &str) -> Unit {
    Unit { kind: UnitKind::Manifest, path: file.to_owned(), outcome: Outcome::Rendered, objects: Vec::new() }
}
