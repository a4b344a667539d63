//! Two states of a repository and what every Application renders to in each.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use tiphys_appset::ClusterInfo;
use tiphys_graph::{
    App, DeclaredId, Kept, Object, Options, Outcome, Root, Survey, Unit, UnitKind, bootstrap::Bootstrap,
    survey::unmarked,
};
use tiphys_model::{ArgoSettings, hook};
use tiphys_source::WorkingTree;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value, json};

use crate::{
    exit::WrongUse,
    repository::{Given, Repository, to_run},
};

/// Two states: `None` stands for the files as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Before.
    pub old: String,
    /// After.
    pub new: Option<String>,
    /// Not `old` itself counts, but what it has in common with `new`: what a pull request changes.
    pub from_common: bool,
}

impl Range {
    /// Reads `A..B`, `A...B` (from their common commit), `A..` (to `HEAD`), `..B` (from `HEAD`), or `A` (to
    /// the files as they are).
    ///
    /// # Errors
    /// With what is expected.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let or_head = |part: &str| if part.is_empty() { "HEAD".to_owned() } else { part.to_owned() };
        if let Some((old, new)) = text.split_once("...") {
            return Ok(Self { old: or_head(old), new: Some(or_head(new)), from_common: true });
        }
        match text.split_once("..") {
            Some(("", "")) => Err("write REV..REV, REV.. or REV".into()),
            Some((old, new)) => Ok(Self { old: or_head(old), new: Some(or_head(new)), from_common: false }),
            None if text.is_empty() => Err("write REV..REV, REV.. or REV".into()),
            None => Ok(Self { old: text.to_owned(), new: None, from_common: false }),
        }
    }
}

impl Range {
    /// The commit before: that which both have in common, if that counts.
    ///
    /// # Errors
    /// The place is no folder, or the revisions have nothing in common.
    pub(crate) fn before(&self, place: &str) -> anyhow::Result<String> {
        let Some(new) = self.new.as_deref().filter(|_| self.from_common) else { return Ok(self.old.clone()) };
        let folder = Path::new(place);
        if !folder.is_dir() {
            return Err(WrongUse("three dots need a clone on this machine (--repo FOLDER)".into()).into());
        }
        let tree = WorkingTree::open(folder).map_err(|error| WrongUse(error.to_string()))?;
        Ok(tree.merge_base(&self.old, new).map_err(|error| WrongUse(error.to_string()))?)
    }
}

/// What is known of an Application at a state.
#[derive(Clone, Debug)]
pub(crate) struct Rendering {
    /// The Application itself, if no other one renders it: nobody else would tell of its changes.
    pub own: Option<Value>,
    /// What it renders to: its objects by key, or why it does not render. Of an ApplicationSet, whether what
    /// it generates is known.
    pub objects: Result<BTreeMap<ResourceKey, Value>, String>,
    /// What it renders to in one line; empty for an ApplicationSet.
    pub digest: String,
}

impl Rendering {
    /// Everything that is known, by key, and why that is not everything.
    fn into_known(self) -> (BTreeMap<ResourceKey, Value>, Option<String>) {
        let (mut objects, fault) = match self.objects {
            Ok(objects) => (objects, None),
            Err(fault) => (BTreeMap::new(), Some(fault)),
        };
        objects.extend(self.own.map(|own| (key_of(&own), own)));
        (objects, fault)
    }
}

/// An Application or ApplicationSet, and which environment it is of: several that stand side by side often
/// have Applications of one name, each for its own cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// The folder (or file) of the environment; empty if there are not several.
    pub environment: String,
    /// What it is.
    pub kind: SubjectKind,
    /// Its namespace and name; of a chart or kustomization its folder.
    pub id: (String, String),
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SubjectKind {
    /// An Application.
    Application,
    /// An ApplicationSet.
    ApplicationSet,
    /// A chart that no Application reaches, with its own values.
    Chart,
    /// A kustomization that no Application reaches.
    Kustomization,
}

impl Subject {
    fn in_environment(environment: &str, declared: DeclaredId) -> Self {
        let kind = if declared.is_set { SubjectKind::ApplicationSet } else { SubjectKind::Application };
        Self { environment: environment.to_owned(), kind, id: declared.id }
    }

    /// Whether no Application reaches it.
    pub(crate) fn is_unit(&self) -> bool {
        matches!(self.kind, SubjectKind::Chart | SubjectKind::Kustomization)
    }

    /// Whether an object is what this stands for.
    fn is(&self, object: &Value) -> bool {
        let declared = DeclaredId { is_set: self.kind == SubjectKind::ApplicationSet, id: self.id.clone() };
        !self.is_unit() && declared.is(object)
    }
}

/// Everything that a repository renders to at a state.
pub(crate) type State = BTreeMap<Subject, Rendering>;

/// Opens a repository at a revision, or as its files are, with clusters that its own files may not declare.
/// What it says alike in another state, of which this was kept, is there once.
///
/// # Errors
/// The repository cannot be read, or has no such revision.
pub(crate) fn open(
    given: &Given<'_>,
    clusters: &[ClusterInfo],
    environment: Option<&str>,
    other: &Kept,
) -> anyhow::Result<(Survey, Kept)> {
    let repository = Repository::open(given).map_err(|error| WrongUse(format!("{error:#}")))?;
    // A change may well be one of what no Application reaches.
    let options = Options { all_units: true, ..to_run() };
    Ok(repository.survey_beside(options, environment, clusters, other))
}

/// What the Applications of a state render to, each in one line.
pub(crate) type Digests = BTreeMap<Subject, String>;

/// What every Application renders to in one line, each environment by itself if there are several.
pub(crate) fn digests_of(survey: &Survey, are_several: bool) -> Digests {
    let rendered = survey.apps.iter().filter(|app| matches!(app.outcome, Outcome::Rendered));
    let mut found = Digests::new();
    for app in rendered {
        found.entry(subject_of(survey, app, are_several)).or_insert_with(|| survey.digest(app));
    }
    found
}

fn subject_of(survey: &Survey, app: &App, are_several: bool) -> Subject {
    let environment = &survey.environments[app.environment.0].name;
    Subject::in_environment(if are_several { environment } else { "" }, app.declared_id())
}

/// What every Application renders to, each environment by itself if there are several. Of those that render
/// to the same in another state the objects are left out.
pub(crate) fn state_of(survey: &Survey, are_several: bool, (own, other): (&Digests, &Digests)) -> State {
    let mut state = State::new();
    let bootstrap = Bootstrap::from_survey(survey);
    let subject = |environment: &str, declared: DeclaredId| {
        Subject::in_environment(if are_several { environment } else { "" }, declared)
    };
    for app in &survey.apps {
        let id = app.declared_id();
        let declared = (!bootstrap.is_rendered(&id)).then(|| written(&app.declared.value));
        let subject = subject_of(survey, app, are_several);
        let digest = own.get(&subject);
        let objects = match &app.outcome {
            Outcome::Duplicate(_) => continue,
            Outcome::Failed(error) => Err(format!("{error:#}")),
            Outcome::Unseen(why) => Err(why.clone()),
            Outcome::Rendered if digest.is_some() && digest == other.get(&subject) => Ok(BTreeMap::new()),
            Outcome::Rendered => {
                let objects = survey.objects_of(app.id).map(|object| unmarked(object.value().clone()));
                Ok(objects.map(|object| (key_of(&object), object)).collect())
            }
        };
        let digest = digest.cloned().unwrap_or_else(|| survey.digest(app));
        state.entry(subject).or_insert(Rendering { own: declared, objects, digest });
    }
    for set in &survey.sets {
        let fault = set.fault.clone().or_else(|| set.partly.clone());
        let objects = fault.map_or_else(|| Ok(BTreeMap::new()), Err);
        let declared = DeclaredId::from_object(&set.declared.value);
        let own = (!bootstrap.is_rendered(&declared)).then(|| written(&set.declared.value));
        let rendering = Rendering { own, objects, digest: String::new() };
        for environment in &set.environments {
            let environment = &survey.environments[environment.0].name;
            state.entry(subject(environment, declared.clone())).or_insert_with(|| rendering.clone());
        }
    }
    state.extend(survey.units.iter().filter_map(|unit| unit_state(survey, unit)));
    state
}

/// What a chart or kustomization renders to that no Application reaches, and that declares none.
fn unit_state(survey: &Survey, unit: &Unit) -> Option<(Subject, Rendering)> {
    let kind = match unit.kind {
        UnitKind::Chart => SubjectKind::Chart,
        UnitKind::Kustomization => SubjectKind::Kustomization,
        UnitKind::Manifest => return None,
    };
    let is_this = |root: &Root| root.unit.is_some_and(|id| survey.units[id.0].path == unit.path);
    if survey.roots.iter().any(is_this) {
        return None;
    }
    let objects = match &unit.outcome {
        Outcome::Rendered => {
            let all = unit.objects.iter().map(|id| unmarked(survey.object(*id).value().clone()));
            Ok(all.map(|object| (key_of(&object), object)).collect())
        }
        Outcome::Failed(error) => Err(format!("{error:#}")),
        Outcome::Unseen(why) => Err(why.clone()),
        Outcome::Duplicate(_) => return None,
    };
    let folder = tiphys_vfs::shown_path(&unit.path);
    let subject = Subject { environment: String::new(), kind, id: (String::new(), folder.to_owned()) };
    Some((subject, Rendering { own: None, objects, digest: String::new() }))
}

/// The changed manifests and files of charts that nothing reads which is compared. What lies in folders with
/// a dot in front is of other tools.
pub(crate) fn changed_beside(old: &Survey, new: &Survey) -> Vec<String> {
    const ENDINGS: [&str; 4] = [".yaml", ".yml", ".json", ".tpl"];
    let (known_old, known_new) = (old.files_read(), new.files_read());
    let listed = old.files.ending(&ENDINGS).chain(new.files.ending(&ENDINGS));
    let listed: BTreeSet<&str> = listed.map(AsRef::as_ref).collect();
    let is_hidden = |path: &str| path.split('/').any(|step| step.starts_with('.'));
    let is_changed = |path: &str| old.files.text(path) != new.files.text(path);
    let beside = listed.into_iter().filter(|path| {
        !is_hidden(path) && !known_old.contains(path) && !known_new.contains(path) && is_changed(path)
    });
    beside.map(str::to_owned).collect()
}

/// The annotations that an `argocd-cm` masks.
pub(crate) fn masked_by(settings: &Value) -> Vec<String> {
    ArgoSettings::from_objects(Some(settings), None).masked_annotations
}

/// The annotations that any `argocd-cm` masks which is declared or rendered at a state.
pub(crate) fn masked_annotations(survey: &Survey) -> BTreeSet<String> {
    let is_settings =
        |key: &ResourceKey| key.kind == "ConfigMap" && key.name == tiphys_model::settings::CONFIG_MAP;
    let rendered = survey.objects.iter().filter(|object| is_settings(&object.key)).map(Object::value);
    let declared = survey.settings.config_maps.iter().map(|it| &it.value);
    rendered.chain(declared).flat_map(masked_by).collect()
}

/// What somebody wrote of an Application.
fn written(app: &Value) -> Value {
    let mut own = json!({"apiVersion": app["apiVersion"], "kind": app["kind"], "spec": app["spec"],
        "metadata": {"name": app.name(), "namespace": app.namespace()}});
    for field in ["annotations", "labels", "finalizers"] {
        if let Some(value) = app.at(&["metadata", field]) {
            own["metadata"][field] = value.clone();
        }
    }
    own
}

/// The key of an object; hooks without a name go by the beginning of it.
fn key_of(object: &Value) -> ResourceKey {
    let mut key = object.resource_key();
    if key.name.is_empty() && hook::is_hook(object) {
        key.name = object.str_at(&["metadata", "generateName"]).unwrap_or_default().to_owned();
    }
    key
}

/// What became of an object.
pub(crate) struct Change {
    /// Which object.
    pub key: ResourceKey,
    /// As it was; under another name if nothing but the hash of its content at the end of that changed.
    pub old: Option<Value>,
    /// As it is.
    pub new: Option<Value>,
    /// Nothing but the marks of a chart's version changed, which no controller reads.
    pub is_noise: bool,
}

/// What became of an Application or ApplicationSet.
pub(crate) struct AppChange {
    /// Which one.
    pub subject: Subject,
    /// Whether it is there before and after.
    pub sides: (bool, bool),
    /// Why it does not render before and after.
    pub faults: (Option<String>, Option<String>),
    /// What it renders to before and after, each in one line.
    pub digests: (Option<String>, Option<String>),
    /// Its objects that differ.
    pub changes: Vec<Change>,
}

impl AppChange {
    /// Whether nothing is known of what became of it, for the same reason before and after.
    pub(crate) fn is_unknown(&self) -> bool {
        self.sides == (true, true) && self.fails_alike() && self.changes.is_empty()
    }

    /// Whether it renders neither before nor after, for the same reason.
    pub(crate) fn fails_alike(&self) -> bool {
        let (Some(before), Some(after)) = (&self.faults.0, &self.faults.1) else { return false };
        before == after || without_versions(before) == without_versions(after)
    }

    /// What people want to see first: what breaks, then what goes, changes, comes, and is not known.
    pub(crate) fn weight(&self) -> (u8, std::cmp::Reverse<usize>) {
        let class = match (self.sides, &self.faults) {
            (_, (None, Some(_))) => 0,
            ((true, false), _) => 1,
            ((true, true), (_, None)) => 2,
            ((false, true), _) => 3,
            _ => 4,
        };
        (class, std::cmp::Reverse(self.changes.iter().filter(|change| !change.is_noise).count()))
    }
}

/// A reason without the versions in it: another one of what is out of reach is out of reach for the same
/// reason.
fn without_versions(why: &str) -> Vec<&str> {
    let is_version = |word: &&str| {
        let word = word.trim_start_matches('v');
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
    };
    let words =
        why.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ':' | ',' | '/' | '?' | '=' | '-'));
    words.filter(|word| !is_version(word)).collect()
}

/// Every Application that differs, and those of which nothing is known.
pub(crate) fn compare(old: State, mut new: State) -> Vec<AppChange> {
    let mut all = Vec::new();
    for (subject, before) in old {
        let after = new.remove(&subject);
        all.extend(app_change(subject, Some(before), after));
    }
    all.extend(new.into_iter().filter_map(|(subject, after)| app_change(subject, None, Some(after))));
    all.sort_by(|a, b| a.subject.cmp(&b.subject));
    all
}

fn app_change(subject: Subject, old: Option<Rendering>, new: Option<Rendering>) -> Option<AppChange> {
    let sides = (old.is_some(), new.is_some());
    let digest = |side: &Option<Rendering>| {
        side.as_ref().map(|it| it.digest.clone()).filter(|digest| !digest.is_empty())
    };
    let digests = (digest(&old), digest(&new));
    // Where the objects of one state are unknown, those of the other are neither new nor gone.
    let is_comparable = [&old, &new].into_iter().flatten().all(|side| side.objects.is_ok());
    let known = |side: Option<Rendering>| {
        let (mut objects, fault) = side.map(Rendering::into_known).unwrap_or_default();
        objects.retain(|_, object| is_comparable || subject.is(object));
        (objects, fault)
    };
    let ((old, old_fault), (new, new_fault)) = (known(old), known(new));
    let changes = changes(old, new);
    let differs = !changes.is_empty() || sides.0 != sides.1 || old_fault.is_some() || new_fault.is_some();
    differs.then_some(AppChange { subject, sides, faults: (old_fault, new_fault), digests, changes })
}

fn changes(old: BTreeMap<ResourceKey, Value>, mut new: BTreeMap<ResourceKey, Value>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut gone = BTreeMap::new();
    for (key, before) in old {
        match new.remove(&key) {
            Some(after) if after == before => {}
            Some(after) => {
                let is_noise = is_noise(&before, &after);
                changes.push(Change { key, old: Some(before), new: Some(after), is_noise });
            }
            None => drop(gone.insert(key, before)),
        }
    }
    for (key, after) in new {
        let same = |known: &ResourceKey| is_renamed(known, &key);
        let before = gone.keys().find(|known| same(known)).cloned().and_then(|known| gone.remove(&known));
        changes.push(Change { key, old: before, new: Some(after), is_noise: false });
    }
    changes.extend(gone.into_iter().map(|(key, before)| Change {
        key,
        old: Some(before),
        new: None,
        is_noise: false,
    }));
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    changes
}

/// Whether two objects differ in the hash of their content that Kustomize puts at the end of names.
fn is_renamed(old: &ResourceKey, new: &ResourceKey) -> bool {
    fn stem(name: &str) -> Option<&str> {
        let (stem, hash) = name.rsplit_once('-')?;
        let is_hash = hash.len() == 10 && hash.bytes().all(|byte| b"gh2k456789mbcdtf".contains(&byte));
        is_hash.then_some(stem)
    }
    let place = |key: &ResourceKey| (key.group.clone(), key.kind.clone(), key.namespace.clone());
    stem(&old.name).is_some() && stem(&old.name) == stem(&new.name) && place(old) == place(new)
}

/// Labels of an object's own metadata that name the chart's version. Those of a Pod template are no noise:
/// they make every Pod new.
const MARKS: [&str; 2] = ["helm.sh/chart", "chart"];

fn is_noise(old: &Value, new: &Value) -> bool {
    let marks = MARKS.map(|mark| FieldPath::default().key("metadata").key("labels").key(mark));
    let paths = tiphys_diff::difference(old, new);
    !paths.is_empty() && paths.iter().all(|path| marks.contains(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ranges() {
        let range = |old: &str, new: Option<&str>| {
            Ok(Range { old: old.into(), new: new.map(str::to_owned), from_common: false })
        };
        assert_eq!(Range::parse("a..b"), range("a", Some("b")));
        assert_eq!(Range::parse("a.."), range("a", Some("HEAD")));
        assert_eq!(Range::parse("..b"), range("HEAD", Some("b")));
        assert_eq!(Range::parse("main"), range("main", None));
        let common = Range { old: "a".into(), new: Some("b".into()), from_common: true };
        assert_eq!(Range::parse("a...b"), Ok(common));
        assert!(Range::parse("..").is_err() && Range::parse("").is_err());
    }

    #[test]
    fn the_version_of_a_chart_is_noise_on_an_object_but_not_in_its_pods() {
        let deployment = |own: &str, pods: &str| {
            json!({"metadata": {"labels": {"helm.sh/chart": own}},
            "spec": {"template": {"metadata": {"labels": {"helm.sh/chart": pods}}}}})
        };
        assert!(is_noise(&deployment("a-1", "x"), &deployment("a-2", "x")));
        assert!(!is_noise(&deployment("a-1", "x"), &deployment("a-2", "y")));
    }

    #[test]
    fn applications_come_go_and_break() {
        let object = |value: &str| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
            BTreeMap::from([(object.resource_key(), object)])
        };
        let id = |name: &str| {
            let id = ("argocd".to_owned(), name.to_owned());
            Subject { environment: String::new(), kind: SubjectKind::Application, id }
        };
        let ok = |value: &str| Rendering { own: None, objects: Ok(object(value)), digest: String::new() };
        let no = |own: Option<Value>| Rendering { own, objects: Err("no".into()), digest: String::new() };
        let own = |revision: &str| {
            Some(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": "bumped", "namespace": "argocd"}, "spec": {"source": {"targetRevision": revision}}}))
        };
        let old = State::from([
            (id("same"), ok("1")),
            (id("gone"), ok("1")),
            (id("changed"), ok("1")),
            (id("broken"), ok("1")),
            (id("bumped"), no(own("1"))),
            (id("unknown"), no(None)),
        ]);
        let new = State::from([
            (id("same"), ok("1")),
            (id("changed"), ok("2")),
            (id("broken"), no(None)),
            (id("bumped"), no(own("2"))),
            (id("added"), ok("1")),
            (id("unknown"), no(None)),
        ]);
        let all = compare(old, new);
        let names: Vec<(&str, usize)> =
            all.iter().map(|app| (app.subject.id.1.as_str(), app.changes.len())).collect();
        assert_eq!(
            names,
            [("added", 1), ("broken", 0), ("bumped", 1), ("changed", 1), ("gone", 1), ("unknown", 0)]
        );
        assert_eq!(all.iter().filter(|app| app.is_unknown()).count(), 1);
    }

    #[test]
    fn a_name_with_another_hash_is_the_same_object() {
        let key = |kind: &str, name: &str| ResourceKey::new("", kind, "ns", name);
        let is_same = |a: &str, b: &str| is_renamed(&key("ConfigMap", a), &key("ConfigMap", b));
        assert!(is_same("env-6c4f554mtk", "env-gmm527mhht"));
        assert!(!is_same("env-6c4f554mtk", "other-gmm527mhht"));
        assert!(!is_same("env-first", "env-second"));
        assert!(!is_renamed(&key("ConfigMap", "env-6c4f554mtk"), &key("Secret", "env-gmm527mhht")));
        let object = |name: &str| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            BTreeMap::from([(object.resource_key(), object)])
        };
        let one = changes(object("env-6c4f554mtk"), object("env-gmm527mhht"));
        assert!(one.len() == 1 && one[0].old.is_some() && one[0].new.is_some());
    }
}
