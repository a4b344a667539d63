//! Where the objects at fault are written in a repository, and what changed there before the fault began.
//!
//! A live object is led back by the mark of who delivers it: Argo CD's and Tiphys' tracking, Flux's labels,
//! Helm's annotations. An object that is missing is led back to the object that names it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use tiphys_doctor::{Case, Change, Diagnosis, Object, Root, Written};
use tiphys_graph::{Object as Declared, Options, Owner, Survey};
use tiphys_model::{TrackingId, names};
use tiphys_value::{FieldPath, ObjectExt as _, Origin, Value};

use crate::repository::{Given, Repository};

/// How many commits are named.
const CHANGES: usize = 3;
/// How long after the first symptom a commit may be dated and still be before it: clocks differ.
const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// A repository that was read.
pub(super) struct Declarations {
    repository: Repository,
    survey: Survey,
}

impl Declarations {
    /// Reads a repository.
    ///
    /// # Errors
    /// It cannot be opened or fetched.
    pub(super) fn open(place: &str) -> anyhow::Result<Self> {
        let given = Given { place, revision: None, path: None, respect_revisions: false, offline: false };
        let repository = Repository::open(&given)?;
        let survey = repository.survey(Options::default(), None, &[]);
        Ok(Self { repository, survey })
    }

    /// Leads every root back to the repository.
    pub(super) fn locate(&self, diagnosis: &mut Diagnosis, case: &Case) {
        let live: BTreeMap<Object, &Value> =
            case.objects.iter().map(|object| (Object::from_live(object), object)).collect();
        let mut not_found = Vec::new();
        for root in &mut diagnosis.causes {
            root.written = self.written(root, &live, diagnosis.now);
            if root.written.is_none() {
                not_found.push(format!("{} is not declared in the repository.", root.object));
            }
        }
        diagnosis.not_seen.extend(not_found);
    }

    fn written(
        &self,
        root: &Root,
        live: &BTreeMap<Object, &Value>,
        now: Option<Timestamp>,
    ) -> Option<Written> {
        let makers = |object: &Object| {
            std::iter::successors(Some(object.clone()), |at| maker(live.get(at)?)).take(4).collect::<Vec<_>>()
        };
        let at_fault = makers(&root.object);
        // What is missing, or made by an operator, is named by what breaks without it.
        let broken = root.consequences.iter().flat_map(|it| makers(&it.object));
        let (object, declared, by) = at_fault.into_iter().chain(broken).find_map(|object| {
            let mark = live.get(&object).and_then(|live| Mark::from_live(live));
            let declared = self.declared(&object, mark.as_ref())?;
            let by = mark.map_or_else(|| self.owner(declared), |mark| mark.to_string());
            Some((object, declared, by))
        })?;
        let field = root.field.as_deref().filter(|_| {
            object == root.object || root.object.kind == "Pod" || root.object.kind == "ReplicaSet"
        });
        let (file, line) = place(declared, field);
        let until = root.since.or(now).and_then(|at| at.checked_add(SLACK).ok());
        Some(Written { object, by, changes: self.changes(declared, &file, until), file, line })
    }

    /// The object of a repository that a live one comes from. Without a mark anybody may have applied it, and
    /// it is told only if one place declares it.
    fn declared(&self, object: &Object, mark: Option<&Mark>) -> Option<&Declared> {
        let surveys = std::iter::once(&self.survey).chain(self.survey.flux.as_deref());
        let is_named =
            |declared: &&Declared| declared.key.kind == object.kind && declared.key.name == object.name;
        let named: Vec<&Declared> = surveys.flat_map(|survey| &survey.objects).filter(is_named).collect();
        let is_at_home = |declared: &&&Declared| {
            let namespace = &declared.key.namespace;
            *namespace == object.namespace || namespace.is_empty() || object.namespace.is_empty()
        };
        let all: Vec<&Declared> = named.iter().filter(is_at_home).copied().collect();
        // Who deploys may say another namespace than the files do; the mark tells whose it is all the same.
        let is_marked = |declared: &&&Declared| mark.is_some_and(|mark| self.owner(declared) == mark.name);
        let marked = all.iter().find(is_marked).or_else(|| named.iter().find(is_marked));
        let first = *marked.or(all.first())?;
        let is_one = all.iter().all(|other| other.rendered.location.file == first.rendered.location.file);
        (marked.is_some() || is_one).then_some(first)
    }

    /// The name of the Application that renders an object.
    fn owner(&self, declared: &Declared) -> String {
        let surveys = std::iter::once(&self.survey).chain(self.survey.flux.as_deref());
        let mut holder = surveys.filter(|survey| {
            survey
                .objects
                .get(declared.id.0)
                .is_some_and(|own| std::sync::Arc::ptr_eq(&own.rendered, &declared.rendered))
        });
        match (&declared.owner, holder.next()) {
            (Owner::App(id), Some(survey)) => survey.apps[id.0].name().to_owned(),
            _ => String::new(),
        }
    }

    /// The commits that changed the file, or else anything that the object is rendered from.
    fn changes(&self, declared: &Declared, file: &str, until: Option<Timestamp>) -> Vec<Change> {
        let Some(tree) = self.repository.repositories.working_tree() else { return Vec::new() };
        let mut files: Vec<&str> = declared.read.iter().map(|file| &**file).collect();
        if !files.contains(&file) {
            files.push(file);
        }
        let changes = tree.changes(&files, until.map(Timestamp::as_second), CHANGES).into_iter();
        changes
            .map(|it| Change {
                commit: it.commit,
                at: Timestamp::from_second(it.at).ok(),
                author: it.author,
                subject: it.subject,
            })
            .collect()
    }
}

/// The object that made another one.
fn maker(live: &Value) -> Option<Object> {
    let owner = live.controller_reference()?;
    Some(Object::new(owner.str_at(&["kind"])?, live.namespace(), owner.str_at(&["name"])?))
}

/// The file and line of a field, or of its object.
fn place(declared: &Declared, field: Option<&str>) -> (String, u32) {
    let rendered = &declared.rendered;
    let path = field.map(|field| path_of(field, &rendered.value));
    let origin: Option<&Origin> = path.as_ref().and_then(|path| {
        rendered.origins.lookup(path).iter().find(|origin| !origin.location.file.is_empty())
    });
    let location = origin.map_or(&rendered.location, |origin| &origin.location);
    (location.file.to_string(), location.line)
}

/// The path of a field, in which an item of a list may be told by its name: `spec.containers[web].image`. It
/// ends where the object does.
fn path_of(field: &str, object: &Value) -> FieldPath {
    let mut path = FieldPath::default();
    let mut at = object;
    for part in field.split(['.', '[']).map(|part| part.trim_end_matches(']')).filter(|part| !part.is_empty())
    {
        let next = match at {
            Value::Array(items) => {
                let named = items.iter().position(|item| item.str_at(&["name"]) == Some(part));
                let index = named.or_else(|| part.parse().ok());
                index.and_then(|index| Some((path.index(index), items.get(index)?)))
            }
            _ => at.get(part).map(|value| (path.key(part), value)),
        };
        let Some((longer, value)) = next else { break };
        (path, at) = (longer, value);
    }
    path
}

/// Who says that it delivers an object.
struct Mark {
    /// The kind of what delivers: `Application`, `Kustomization`, `HelmRelease`, `Helm release`.
    kind: &'static str,
    name: String,
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Mark {
    fn from_live(live: &Value) -> Option<Self> {
        let new = |kind, name: &str| Some(Self { kind, name: name.to_owned() });
        let tracked = live.annotation(names::TRACKING_ID).and_then(TrackingId::parse);
        if let Some(tracked) = tracked {
            return new("Application", &tracked.app);
        }
        for (label, kind) in [
            ("kustomize.toolkit.fluxcd.io/name", "Kustomization"),
            ("helm.toolkit.fluxcd.io/name", "HelmRelease"),
            ("argocd.argoproj.io/instance", "Application"),
        ] {
            if let Some(name) = live.label(label) {
                return new(kind, name);
            }
        }
        if let Some(name) = live.annotation("meta.helm.sh/release-name") {
            return new("Helm release", name);
        }
        live.label(names::DEFAULT_INSTANCE_LABEL).and_then(|name| new("Application", name))
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn fields_are_found_by_the_names_of_items() {
        let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "web", "image": "x", "env": [{"name": "KEY"}]}]}});
        let path = |field: &str| path_of(field, &object).to_string();
        assert_eq!(path("spec.containers[web].image"), ".spec.containers[1].image");
        assert_eq!(path("spec.containers[1].env[KEY].value"), ".spec.containers[1].env[0]");
        assert_eq!(path("status.phase"), ".");
    }

    #[test]
    fn marks_of_deliverers() {
        let mark =
            |metadata: Value| Mark::from_live(&json!({"metadata": metadata})).map(|mark| mark.to_string());
        let tracked =
            json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}});
        assert_eq!(mark(tracked).as_deref(), Some("Application shop"));
        let flux = json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}});
        assert_eq!(mark(flux).as_deref(), Some("Kustomization apps"));
        let helm = json!({"labels": {"app.kubernetes.io/instance": "web"}, "annotations": {"meta.helm.sh/release-name": "web"}});
        assert_eq!(mark(helm).as_deref(), Some("Helm release web"));
        assert_eq!(mark(json!({})), None);
    }
}
