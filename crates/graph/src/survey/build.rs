//! Putting a survey together: first everything that declares Applications is followed to its end, then
//! the Applications are sorted into environments.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use tiphys_appset::ClusterInfo;
use tiphys_schema::names::dns1123_subdomain;
use tiphys_value::{ObjectExt, RenderedObject, Value};
use tiphys_vfs::{join, parent};

use super::{
    DeclaredId, Files, Input, Outcome, Survey, Unit, UnitKind, application_sets,
    assemble::Assembly,
    declarations::{Declarations, declares, is_of_concern},
    discover::{self, Manifests},
    flux,
    follow::{Followed, declaring, place},
    found::{Found, Seed},
    notice::Notice,
    render_cache::Memo,
    rendering::Rendering,
    rendering::Renderings,
    types::Unseen,
    units,
    units::UnitFolder,
    used,
    used::Sorted,
};
use crate::unused_folders;

/// Reads a repository whose files are read, with the renderings of earlier readings that still hold. Returns
/// all renderings for the next.
pub(super) fn build(input: &Input<'_>, ground: &Declarations, held: &Renderings) -> (Survey, Renderings) {
    let (files, manifests) = (ground.files.clone(), &ground.manifests);
    let of_flux = manifests.objects.iter().map(|it| &it.value).filter(|it| units::is_of_flux(it));
    let tops = units::tops(&files, of_flux);
    let mut found = Found { input, files, memo: Memo::new(held), sets: HashMap::new(), clusters: Vec::new() };
    let sorted = sorted(input, &found.files, manifests);
    let declared = sorted.used.clone();
    let others = ground.others(input, sorted.leaves_out());
    let (clusters, examples) = clusters(&others, &declared, input.folder);
    found.clusters = clusters;
    let mut renderings = found.follow(declared.clone());
    let mut places = unreached(&tops, &renderings, &found.files);
    found.keep_wanted(&mut places, declared.is_empty());
    let mut applications: Vec<Value> = places.iter().map(units::application).collect();
    let by_environment = found.by_environment(&places);
    applications.extend(by_environment.iter().map(|(_, _, place)| units::application(place)));
    found.memo.render(&applications.iter().collect::<Vec<_>>(), input);
    applications.truncate(places.len());
    let roots = found.roots(&places, &applications);
    let mut inner: Vec<Arc<RenderedObject>> =
        places.iter().flat_map(|place| found.declared_by(place)).collect();
    inner.extend(by_environment.iter().flat_map(|(_, _, place)| found.declared_by(place)));
    renderings.extend(found.follow(inner));
    let units: Vec<(UnitFolder, Arc<Rendering>)> = roots
        .iter()
        .filter_map(|at| Some((places[*at].clone(), found.memo.get(&applications[*at])?.clone())))
        .collect();
    let mut notices = Vec::new();
    let (seeds, inner) = seeds(declared, &renderings, &units);
    let seeds = found.with_circles(seeds, inner, &units);
    let by_environment = by_environment.into_iter().filter(|(at, ..)| roots.contains(at));
    let seeds =
        found.with_environments(seeds, &units, by_environment.collect(), &rendered_places(&renderings));
    let seeds = only_named(seeds, &units, input, &mut notices);
    notices.extend(sorted.notices(|it| renderings.iter().any(|followed| brings(&followed.rendering, it))));
    notices.extend((!examples.is_empty()).then_some(Notice::ExampleClusters(examples)));
    notices.extend(of_units(&seeds, &units, sorted.used.is_empty()));
    let loose = loose(&manifests.objects, &renderings, &units);
    let mut assembly = Assembly::new(&found);
    let faults = manifests.faults.iter().filter(|fault| !was_read(&fault.file, &renderings, &units));
    assembly.faults.extend(faults.cloned());
    assembly.units(&units, loose);
    assembly.grow(seeds);
    let of_sets: usize = found.sets.values().map(|yielded| yielded.left_out).sum();
    let left_out = assembly.left_out + of_sets;
    notices.extend((left_out > 0).then_some(Notice::FurtherApplications(left_out)));
    let apps = assembly.over_limit;
    notices.extend(found.memo.limit().filter(|_| apps > 0).map(|limit| Notice::OverLimit { apps, limit }));
    if let [first, ..] = manifests.left_out.as_slice() {
        let (first, count) = (first.to_string(), manifests.left_out.len());
        notices.push(Notice::FurtherManifests { first, count });
    }
    let parts = assembly.finish();
    let unseen = unseen(&parts.apps, &units, &found);
    let others = with_units(others, &units);
    let settings = ground.settings.clone();
    let mut survey = Survey { unseen, files: found.files.clone(), notices, others, settings, ..parts };
    survey.flux_sources = flux::Sources::from_survey(input, &survey);
    survey.flux = flux::survey(&mut found, &survey).map(Box::new);
    let of_flux = survey.flux.iter().flat_map(|it| it.unseen.iter().cloned());
    survey.unseen.extend(of_flux.collect::<Vec<_>>());
    (survey, found.memo.into_known())
}

/// What the files declare that somebody means to run, or all of it.
fn sorted(input: &Input<'_>, files: &Files, manifests: &Manifests) -> Sorted {
    let is_plain = |it: &&Arc<RenderedObject>| declares(&it.value) && !is_template(files, it);
    let declared = manifests.objects.iter().filter(is_plain).cloned();
    if !input.options.only_used {
        return Sorted::all(declared.collect());
    }
    let patches = units::patches(files);
    let declared = declared.filter(|it| !patches.contains(it.location.file.as_ref()));
    Sorted::among(declared.collect(), input.folder)
}

/// The clusters that Secrets in files declare, and the names of those that are examples or of tests: these
/// are no clusters of a repository whose Applications stand elsewhere.
fn clusters(
    others: &[Arc<RenderedObject>],
    declared: &[Arc<RenderedObject>],
    folder: &str,
) -> (Vec<ClusterInfo>, Vec<String>) {
    let is_example = |it: &RenderedObject| {
        let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
        it.location.file.get(start..).is_some_and(unused_folders::is_example)
    };
    let all = || others.iter().map(Arc::as_ref);
    if !declared.is_empty() && declared.iter().all(|it| is_example(it)) {
        return (application_sets::clusters(all()), Vec::new());
    }
    let examples = application_sets::clusters(all().filter(|it| is_example(it)));
    let names = examples.into_iter().map(|cluster| cluster.name).collect();
    (application_sets::clusters(all().filter(|it| !is_example(it))), names)
}

/// Whether a rendering has a declaration of a file.
fn brings(rendering: &Rendering, declared: &RenderedObject) -> bool {
    rendering.objects.iter().any(|object| place(object) == place(declared))
}

/// The objects of concern in files, and those that charts and kustomizations render which are not among them.
fn with_units(
    mut others: Vec<Arc<RenderedObject>>,
    units: &[(UnitFolder, Arc<Rendering>)],
) -> Vec<Arc<RenderedObject>> {
    let key = |it: &RenderedObject| (it.value.kind().to_owned(), DeclaredId::from_object(&it.value).id);
    let known: HashSet<_> = others.iter().map(|it| key(it)).collect();
    for (unit, rendering) in units {
        let of_concern = rendering.objects.iter().filter(|it| is_of_concern(&it.value));
        let applied = of_concern.map(|it| units::as_applied(unit, RenderedObject::clone(it)));
        others.extend(applied.filter(|it| !known.contains(&key(it))).map(Arc::new));
    }
    others
}

/// Of what units declare, that which has a name that a cluster takes, where somebody is to run it. What has
/// none is told.
fn only_named(
    seeds: Vec<Seed>,
    units: &[(UnitFolder, Arc<Rendering>)],
    input: &Input<'_>,
    notices: &mut Vec<Notice>,
) -> Vec<Seed> {
    let (seeds, unnamed): (Vec<Seed>, Vec<Seed>) = seeds.into_iter().partition(|seed| {
        let is_name = || dns1123_subdomain(seed.declared.value.name()).is_empty();
        seed.unit.is_none() || !input.options.only_used || is_name()
    });
    notices.extend(unnamed.into_iter().filter_map(|seed| {
        let (unit, _) = units.get(seed.unit?)?;
        Some(Notice::NoName {
            unit: unit.kind,
            folder: unit.folder.clone(),
            kind: seed.declared.value.kind().to_owned(),
            name: seed.declared.value.name().to_owned(),
        })
    }));
    seeds
}

/// What is told of Applications that are taken from units.
fn of_units(seeds: &[Seed], units: &[(UnitFolder, Arc<Rendering>)], is_all: bool) -> Vec<Notice> {
    let from: BTreeSet<usize> = seeds.iter().filter_map(|seed| seed.unit).collect();
    let from: Vec<_> = from.into_iter().filter_map(|at| units.get(at)).collect();
    let of_parts = from.iter().filter_map(|(place, rendering)| {
        let (kind, folder) = (place.kind, place.folder.clone());
        match &rendering.outcome {
            Outcome::Unseen(why) if kind == UnitKind::Kustomization => {
                Some(Notice::Partly { folder, why: why.clone() })
            }
            _ => None,
        }
    });
    let mut notices: Vec<Notice> = of_parts.collect();
    if is_all {
        let folders: Vec<String> = from.iter().map(|(place, _)| place.folder.clone()).collect();
        notices.extend((!folders.is_empty()).then_some(Notice::OnlyUnits(folders)));
        return notices;
    }
    let charts = from.iter().filter(|(place, _)| place.kind == UnitKind::Chart);
    notices.extend(charts.map(|(place, _)| Notice::Chart(place.folder.clone())));
    notices
}

impl Found<'_> {
    /// Of charts and kustomizations that nothing reaches, keeps those that are asked for: where somebody is
    /// to run the repository, those that may declare Applications, and that are not put away beside others.
    fn keep_wanted(&self, places: &mut Vec<UnitFolder>, is_all: bool) {
        let (options, folder) = (self.input.options, self.input.folder);
        let is_aside =
            |place: &UnitFolder| used::folder_aside(&format!("{}/", place.folder), folder).is_some();
        if options.only_used && !is_all {
            places.retain(|place| !is_aside(place));
        }
        if !options.all_units && !is_all {
            places.retain(|place| units::may_declare(&self.files, place));
        }
    }

    /// The charts that declare Applications with the values of environments beside them: the position of the
    /// chart, the environment, and the chart with its values.
    fn by_environment(&self, places: &[UnitFolder]) -> Vec<(usize, String, UnitFolder)> {
        let charts = places.iter().enumerate().filter(|(_, place)| place.kind == UnitKind::Chart);
        let charts = charts.filter(|(_, place)| units::may_declare(&self.files, place));
        let with_values = charts.flat_map(|(at, place)| {
            let all = units::values_of_environments(&self.files, place).into_iter();
            all.map(move |(environment, values)| (at, environment, UnitFolder { values, ..place.clone() }))
        });
        with_values.collect()
    }

    /// What a chart or kustomization declares, as somebody would apply it.
    fn declared_by(&self, place: &UnitFolder) -> Vec<Arc<RenderedObject>> {
        let rendering = self.memo.get(&units::application(place));
        rendering.map(|it| declared_of(place, it)).unwrap_or_default()
    }

    /// The seeds, with those of each environment in the place of what a chart declares with its own values
    /// alone.
    fn with_environments(
        &self,
        mut seeds: Vec<Seed>,
        units: &[(UnitFolder, Arc<Rendering>)],
        by_environment: Vec<(usize, String, UnitFolder)>,
        rendered: &HashSet<(Arc<str>, String)>,
    ) -> Vec<Seed> {
        let unit_of = |place: &UnitFolder| {
            units.iter().position(|(unit, _)| unit.kind == place.kind && unit.folder == place.folder)
        };
        let of_environments: Vec<Seed> = by_environment
            .iter()
            .flat_map(|(_, environment, place)| {
                let seed = |declared| Seed {
                    declared,
                    unit: unit_of(place),
                    environment: Some(environment.clone()),
                };
                let declared = self.declared_by(place).into_iter();
                declared.filter(|it| !rendered.contains(&self::place(it))).map(seed)
            })
            .collect();
        let replaced: HashSet<usize> = of_environments.iter().filter_map(|seed| seed.unit).collect();
        seeds.retain(|seed| seed.unit.is_none_or(|unit| !replaced.contains(&unit)));
        seeds.extend(of_environments);
        seeds
    }

    /// Which of these places no other of them leads to: a chart may well declare an Application of itself. Of
    /// those that only lead to each other, the first.
    fn roots(&mut self, places: &[UnitFolder], applications: &[Value]) -> BTreeSet<usize> {
        let reached: Vec<BTreeSet<usize>> = applications
            .iter()
            .map(|application| {
                let inner = self.memo.get(application).map(|it| declaring(it)).unwrap_or_default();
                if inner.is_empty() {
                    return BTreeSet::new();
                }
                let renderings = self.follow(inner);
                let is_reached = |place: &UnitFolder| is_reached(place, &renderings, &self.files);
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

    /// The seeds, and of the declarations that lead back to themselves the first: an Application of Argo CD
    /// itself whose folder declares the root of the tree that it is in. `inner` are those in files that
    /// something renders. Where that leaves nothing, the first of these is a seed.
    fn with_circles(
        &mut self,
        seeds: Vec<Seed>,
        inner: Vec<Arc<RenderedObject>>,
        units: &[(UnitFolder, Arc<Rendering>)],
    ) -> Vec<Seed> {
        let mut seeds = seeds;
        let last_resort = inner.first().cloned();
        let in_files = inner.into_iter().map(|declared| Seed { declared, unit: None, environment: None });
        let in_units = units.iter().enumerate().flat_map(|(index, (place, rendering))| {
            let seed = move |declared| Seed { declared, unit: Some(index), environment: None };
            declared_of(place, rendering).into_iter().map(seed)
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
            if known.contains(&at) {
                continue;
            }
            let reached_from = self.declared_from(vec![candidate.declared.clone()]);
            if reached_from.contains(&at) {
                known.extend(reached_from);
                seeds.push(candidate);
            }
        }
        if seeds.is_empty() {
            seeds.extend(last_resort.map(|declared| Seed { declared, unit: None, environment: None }));
        }
        seeds
    }
}

/// Whether a declaration is a template of a chart that happens to be YAML before Helm has read it.
fn is_template(files: &Files, declared: &RenderedObject) -> bool {
    const OF_HELM: [&str; 4] = [".Values", ".Release.", ".Chart.", "include "];
    if !discover::is_chart_template(files, &declared.location.file) {
        return false;
    }
    let text = declared.value.to_string();
    text.split("{{").skip(1).any(|action| {
        let action = action.split("}}").next().unwrap_or_default();
        OF_HELM.iter().any(|mark| action.contains(mark))
    })
}

/// What a chart or kustomization declares, as somebody would apply it.
fn declared_of(place: &UnitFolder, rendering: &Rendering) -> Vec<Arc<RenderedObject>> {
    let applied =
        |object: Arc<RenderedObject>| Arc::new(units::as_applied(place, Arc::unwrap_or_clone(object)));
    declaring(rendering).into_iter().map(applied).collect()
}

fn unreached(tops: &[UnitFolder], renderings: &[Followed], files: &Files) -> Vec<UnitFolder> {
    tops.iter().filter(|place| !is_reached(place, renderings, files)).cloned().collect()
}

/// Whether an Application's rendering read the file that makes a folder a chart or kustomization.
fn is_reached(place: &UnitFolder, renderings: &[Followed], files: &Files) -> bool {
    let marks = units::marks(place);
    let mark = marks.iter().find(|mark| files.contains(mark)).map(String::as_str).unwrap_or_default();
    renderings.iter().any(|followed| followed.rendering.read.contains(mark))
}

/// Whether a file was read, or lies in a chart that was: what its templates may ask for and did not is no
/// manifest.
fn was_read(file: &str, renderings: &[Followed], units: &[(UnitFolder, Arc<Rendering>)]) -> bool {
    all(renderings, units).any(|it| it.read.contains(file) || lies_in_chart(file, &it.read))
}

fn all<'a>(
    renderings: &'a [Followed],
    units: &'a [(UnitFolder, Arc<Rendering>)],
) -> impl Iterator<Item = &'a Arc<Rendering>> {
    renderings.iter().map(|it| &it.rendering).chain(units.iter().map(|(_, it)| it))
}

/// Whether a folder above a file is a chart of which some were read.
fn lies_in_chart(file: &str, read: &BTreeSet<Arc<str>>) -> bool {
    let mut folders = std::iter::successors(parent(file), |folder| parent(folder));
    folders.any(|folder| join(folder, "Chart.yaml").is_ok_and(|chart| read.contains(chart.as_str())))
}

/// The declarations that nothing renders, and those in files that something does.
fn seeds(
    declared: Vec<Arc<RenderedObject>>,
    renderings: &[Followed],
    units: &[(UnitFolder, Arc<Rendering>)],
) -> (Vec<Seed>, Vec<Arc<RenderedObject>>) {
    let mut rendered = rendered_places(renderings);
    let mut from_units: Vec<Seed> = Vec::new();
    for (index, (unit, rendering)) in units.iter().enumerate() {
        let declared = declared_of(unit, rendering).into_iter();
        for declared in declared.filter(|object| !rendered.contains(&place(object))) {
            from_units.push(Seed { declared, unit: Some(index), environment: None });
        }
    }
    rendered.extend(from_units.iter().map(|seed| place(&seed.declared)));
    let (roots, inner): (Vec<_>, Vec<_>) = declared
        .into_iter()
        .partition(|object| !rendered.contains(&place(object)) && !is_consumed(object, renderings, units));
    let seed = |declared| Seed { declared, unit: None, environment: None };
    let mut seeds: Vec<Seed> = roots.into_iter().map(seed).collect();
    seeds.extend(from_units);
    (seeds, inner)
}

/// Where the declarations stand that other Applications render.
fn rendered_places(renderings: &[Followed]) -> HashSet<(Arc<str>, String)> {
    let declared = renderings.iter().flat_map(|followed| {
        let all = followed.rendering.objects.iter().filter(|object| declares(&object.value));
        all.filter(|object| !followed.is_from(&object.value))
    });
    declared.map(|object| place(object)).collect()
}

/// Whether a declaration is only the raw material of another: a base whose name an overlay changes, or a
/// patch.
fn is_consumed(
    object: &RenderedObject,
    renderings: &[Followed],
    units: &[(UnitFolder, Arc<Rendering>)],
) -> bool {
    let by_apps = renderings.iter().filter(|followed| !followed.is_from(&object.value));
    let all = by_apps.map(|it| &it.rendering).chain(units.iter().map(|(_, it)| it));
    all.into_iter().any(|it| it.seen.contains(&object.location.file))
}

/// The objects in manifest files that nothing renders, by file. What was read by a rendering that came to
/// nothing, such as one that needs a chart out of reach, is looked at as it stands.
fn loose(
    objects: &[Arc<RenderedObject>],
    renderings: &[Followed],
    units: &[(UnitFolder, Arc<Rendering>)],
) -> BTreeMap<Arc<str>, Vec<Arc<RenderedObject>>> {
    let read: BTreeSet<Arc<str>> = all(renderings, units).flat_map(|it| it.seen.iter().cloned()).collect();
    let mut loose: BTreeMap<Arc<str>, Vec<Arc<RenderedObject>>> = BTreeMap::new();
    for object in objects {
        let file = &object.location.file;
        if !read.contains(file) && !lies_in_chart(file, &read) {
            loose.entry(file.clone()).or_default().push(object.clone());
        }
    }
    loose
}

/// What the Applications and what they do not reach miss, each named once.
fn unseen(apps: &[super::App], units: &[(UnitFolder, Arc<Rendering>)], found: &Found<'_>) -> Vec<Unseen> {
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
pub(super) fn unit(place: &UnitFolder, outcome: &Outcome) -> Unit {
    Unit { kind: place.kind, path: place.folder.clone(), outcome: outcome.clone(), objects: Vec::new() }
}

/// A manifest file as a unit.
pub(super) fn manifest(file: &str) -> Unit {
    Unit { kind: UnitKind::Manifest, path: file.to_owned(), outcome: Outcome::Rendered, objects: Vec::new() }
}
