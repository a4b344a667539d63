//! What an object needs before it can be stored or become healthy, and does not have yet when its turn
//! comes.

use std::collections::{BTreeMap, HashSet};

use tiphys_model::names;
use tiphys_value::{FieldPath, ObjectExt};

use super::{ApplicationHealth, HealthFacts};
use crate::{
    AppId, Object, ObjectId, Owner, Survey,
    edges::{Edge, EdgeKind, Edges, Target},
    order::{Meeting, Order, Relation, step_of},
    survey::is_namespaced,
};

/// What is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// The definition of its kind: without it, it cannot be stored.
    Definition,
    /// Its namespace: without it, it cannot be stored.
    Namespace,
    /// A ConfigMap, Secret or claim: without it, its pods do not start.
    Config,
    /// A service account: without it, its pods are not created.
    ServiceAccount,
    /// A secret store or issuer: without it, its controller does not finish.
    Store,
    /// The project of an Application: without it, it is not synced.
    Project,
    /// A pod that mounts it: a claim of this storage class is bound only then.
    Consumer,
}

impl Need {
    /// Whether the API server refuses the object without it.
    pub fn refuses(self) -> bool {
        matches!(self, Self::Definition | Self::Namespace)
    }
}

/// Why it can never come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stall {
    /// The operation that would bring it waits for, or fails at, the object itself.
    Own,
    /// The operation that would bring it waits for the health of the Application that renders the object.
    Child(Box<ApplicationHealth>),
}

/// A need that is not met in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What is needed.
    pub need: Need,
    /// The object that needs it.
    pub object: ObjectId,
    /// The field that says so.
    pub field: FieldPath,
    /// What would bring it: the thing itself, or what a controller makes it from.
    pub provider: ObjectId,
    /// How the two stand to each other: the same step, or the object before the provider.
    pub meeting: Meeting,
    /// Whether both come in the same step.
    pub same_step: bool,
    /// Why it never comes; `None` if it does, after a failed attempt or two.
    pub stall: Option<Stall>,
    /// How many objects of the Application need it too.
    pub others: usize,
}

/// All needs that are not met in time: for each Application and provider the first object that needs it.
pub fn unmet(survey: &Survey, edges: &Edges<'_>, order: &Order<'_>, facts: &HealthFacts) -> Vec<Unmet> {
    let judge = Judge::new(survey, edges, order, facts);
    let mut found: BTreeMap<(AppId, Need, ObjectId), Unmet> = BTreeMap::new();
    for edge in edges.all() {
        let object = survey.object(edge.from);
        let Owner::App(app) = object.owner else { continue };
        let Some(need) = judge.need(edge, object) else { continue };
        let Some(unmet) = judge.judge(need, edge, object) else { continue };
        add(&mut found, app, unmet);
    }
    for unmet in judge.claims() {
        let Owner::App(app) = survey.object(unmet.object).owner else { continue };
        add(&mut found, app, unmet);
    }
    found.into_values().collect()
}

fn add(found: &mut BTreeMap<(AppId, Need, ObjectId), Unmet>, app: AppId, unmet: Unmet) {
    match found.get_mut(&(app, unmet.need, unmet.provider)) {
        Some(known) => {
            let others = known.others + 1;
            if known.stall.is_none() && unmet.stall.is_some() {
                *known = unmet;
            }
            known.others = others;
        }
        None => {
            found.insert((app, unmet.need, unmet.provider), unmet);
        }
    }
}

/// The namespaces that Applications create, by cluster: `CreateNamespace=true`.
fn created_namespaces(survey: &Survey) -> HashSet<(usize, String, String)> {
    let creating = survey.apps.iter().filter(|app| app.application.sync_options().is_on("CreateNamespace"));
    creating
        .map(|app| {
            let namespace = app.application.spec.destination.namespace.clone();
            (app.environment.0, app.cluster().to_owned(), namespace)
        })
        .collect()
}

/// Tells what objects need, and when they get it.
pub(super) struct Judge<'a> {
    pub survey: &'a Survey,
    pub edges: &'a Edges<'a>,
    pub order: &'a Order<'a>,
    pub facts: &'a HealthFacts,
    created: HashSet<(usize, String, String)>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        survey: &'a Survey,
        edges: &'a Edges<'a>,
        order: &'a Order<'a>,
        facts: &'a HealthFacts,
    ) -> Self {
        Self { survey, edges, order, facts, created: created_namespaces(survey) }
    }

    /// What an edge needs of its far end, if the object cannot do without.
    pub(super) fn need(&self, edge: &Edge, object: &Object) -> Option<Need> {
        if edge.optional {
            return None;
        }
        match edge.kind {
            // The engine that syncs is there, with its own definitions and its namespace.
            EdgeKind::DefinedBy if is_engines(object) => None,
            EdgeKind::DefinedBy => Some(Need::Definition),
            EdgeKind::LivesIn => self.is_in_need_of_namespace(object).then_some(Need::Namespace),
            EdgeKind::Mounts | EdgeKind::Env if runs(object) => Some(Need::Config),
            EdgeKind::RunsAs if runs(object) => Some(Need::ServiceAccount),
            EdgeKind::Needs if object.key.group == names::GROUP => Some(Need::Project),
            EdgeKind::Needs => Some(Need::Store),
            _ => None,
        }
    }

    /// Whether a namespace must be there first that nobody creates beside it.
    fn is_in_need_of_namespace(&self, object: &Object) -> bool {
        let namespaced = is_namespaced(&object.value().gvk())
            .unwrap_or_else(|| !object.key.kind.starts_with("Cluster") && self.is_defined_namespaced(object));
        let Some(environment) = object.environment.filter(|_| namespaced) else { return false };
        let created = (environment.0, object.cluster.to_string(), object.key.namespace.clone());
        let app = self.survey.app_of(object).map(|app| app.application.metadata.namespace.as_str());
        let engines = app.filter(|namespace| !namespace.is_empty()).unwrap_or("argocd");
        object.key.namespace != engines && !self.created.contains(&created)
    }

    fn is_defined_namespaced(&self, object: &Object) -> bool {
        let definitions = self.edges.index.definitions(object, &object.key.group, &object.key.kind);
        definitions
            .iter()
            .all(|id| self.survey.object(*id).value().str_at(&["spec", "scope"]) == Some("Namespaced"))
    }

    /// Whether a need is met too late.
    fn judge(&self, need: Need, edge: &Edge, object: &Object) -> Option<Unmet> {
        let providers = self.edges.providers(edge);
        if need == Need::Namespace && !matches!(edge.to, Target::Object(_)) {
            return None;
        }
        let (provider, meeting, same_step) = self.latest(need, object, &providers)?;
        let stall = if same_step { None } else { self.stall(need, object, meeting) };
        let field = edge.field.clone();
        Some(Unmet { need, object: object.id, field, provider, meeting, same_step, stall, others: 0 })
    }

    /// The nearest of several providers, if none of them comes in time.
    fn latest(
        &self,
        need: Need,
        object: &Object,
        providers: &[ObjectId],
    ) -> Option<(ObjectId, Meeting, bool)> {
        let mut nearest: Option<(ObjectId, Meeting, bool)> = None;
        for id in providers {
            let provider = self.survey.object(*id);
            let (meeting, same) = match self.order.relation(object, provider) {
                Relation::Before(meeting) => (meeting, false),
                // Inside one operation the definitions and namespaces of a wave go first; what pods need
                // is retried until it is there.
                Relation::Same(meeting)
                    if need == Need::Definition && !is_direct(&meeting, object, provider) =>
                {
                    (meeting, true)
                }
                Relation::Same(_) | Relation::After(_) | Relation::None => return None,
            };
            // An operation moves its own definitions and namespaces before what needs them.
            if need.refuses() && is_moved(provider) && is_direct(&meeting, object, provider) {
                return None;
            }
            if nearest.as_ref().is_none_or(|(_, known, _)| meeting.second_step < known.second_step) {
                nearest = Some((*id, meeting, same));
            }
        }
        nearest
    }

    /// Why the provider never comes, if it does not.
    fn stall(&self, need: Need, object: &Object, meeting: Meeting) -> Option<Stall> {
        if meeting.first == object.id && need != Need::Project {
            return (need.refuses() || self.has_health(object)).then_some(Stall::Own);
        }
        let health = self.facts.of_applications(self.survey.app(meeting.app).environment)?;
        let first = self.survey.object(meeting.first);
        let waits = match need {
            Need::Project => health.waits_for_content || health.waits_for_operation,
            Need::Definition | Need::Namespace => health.waits_after_failure && health.waits_for_operation,
            _ => self.holds_up(object, &health),
        };
        let ignored = object.value().annotation(names::IGNORE_HEALTHCHECK) == Some("true");
        let waits =
            waits && !ignored && self.order.awaits(first) && self.is_passed_on(object, meeting, &health);
        waits.then(|| Stall::Child(Box::new(health)))
    }

    /// Whether each Application between the one of a waiting object and the operation at the meeting is not
    /// Healthy as long as that object waits.
    fn is_passed_on(&self, object: &Object, meeting: Meeting, health: &ApplicationHealth) -> bool {
        let Owner::App(mut app) = object.owner else { return false };
        // Applications that render each other have no end; no way is longer than all of them.
        for _ in &self.survey.apps {
            let Some((parent, declared)) = self.order.parent(app) else { break };
            if declared == meeting.first {
                break;
            }
            let declared = self.survey.object(declared);
            if health.ignored_while_missing || !self.delays(declared, health) {
                return false;
            }
            app = parent;
        }
        true
    }

    /// Whether an Application is not Healthy, by a check, while one of its objects waits.
    fn holds_up(&self, object: &Object, health: &ApplicationHealth) -> bool {
        self.delays(object, health) && (!object.hooks.is_empty() || self.has_health(object))
    }

    /// Whether an Application is not Healthy, by a check, while one of its objects is not. Between two of its
    /// steps it is Healthy for a moment, and a parent that looks at nothing else may go on just then.
    fn delays(&self, object: &Object, health: &ApplicationHealth) -> bool {
        let Owner::App(app) = object.owner else { return false };
        let own = step_of(object);
        let of = |plain: bool| {
            let counted = self.survey.objects_of(app).filter(move |it| !plain || it.hooks.is_empty());
            counted.filter_map(step_of)
        };
        let is_out_of_sync = health.waits_for_operation && of(true).any(|step| Some(step) > own);
        if !object.hooks.is_empty() {
            return health.waits_for_end || is_out_of_sync;
        }
        let is_first = of(true).min() == own;
        let content = health.waits_for_content && (is_first || health.waits_for_operation);
        let end = health.waits_for_end && of(false).any(|step| Some(step) > own);
        content || end || is_out_of_sync
    }

    /// Whether an operation waits for the health of a kind that has what it needs only later.
    pub(super) fn has_health(&self, object: &Object) -> bool {
        const KINDS: [&str; 12] = [
            "Deployment",
            "StatefulSet",
            "DaemonSet",
            "ReplicaSet",
            "Pod",
            "Job",
            "Rollout",
            "ExternalSecret",
            "Certificate",
            "PersistentVolumeClaim",
            "Application",
            "Gateway",
        ];
        let is_database = object.key.group == "postgresql.cnpg.io" && object.key.kind == "Cluster";
        let runs_none = object.value().int_at(&["spec", "replicas"]) == Some(0);
        (KINDS.contains(&object.key.kind.as_str()) || is_database)
            && !runs_none
            && !self.facts.is_customized(&object.value().gvk())
    }

    /// Claims that are bound only once a pod uses them, and whose pods all come in later steps.
    fn claims(&self) -> Vec<Unmet> {
        let claims = self.survey.objects.iter().filter(|object| {
            object.key.kind == "PersistentVolumeClaim"
                && object.environment.is_some()
                && self.has_health(object)
        });
        let mut found = Vec::new();
        for claim in claims.filter(|claim| self.waits_for_consumer(claim)) {
            let consumers: Vec<ObjectId> = (self.edges.to(claim.id))
                .filter(|edge| edge.kind == EdgeKind::Mounts)
                .map(|edge| edge.from)
                .collect();
            let Some((provider, meeting, false)) = self.latest(Need::Consumer, claim, &consumers) else {
                continue;
            };
            let field = crate::edges::path(&["spec", "storageClassName"]);
            let stall = self.stall(Need::Consumer, claim, meeting);
            let need = Need::Consumer;
            let object = claim.id;
            found.push(Unmet { need, object, field, provider, meeting, same_step: false, stall, others: 0 });
        }
        found
    }

    /// Whether a claim's storage class waits for a pod, by its declaration or by what it is known as.
    pub(super) fn waits_for_consumer(&self, claim: &Object) -> bool {
        const KNOWN: [&str; 9] = [
            "gp2",
            "hcloud-volumes",
            "local-path",
            "managed-csi",
            "managed-csi-premium",
            "openebs-hostpath",
            "premium-rwo",
            "standard-rwo",
            "topolvm-provisioner",
        ];
        let Some(class) = claim.value().str_at(&["spec", "storageClassName"]) else { return false };
        let declared = self.edges.index.objects_named(claim, "StorageClass", class);
        match declared.first() {
            Some(id) => {
                self.survey.object(*id).value().str_at(&["volumeBindingMode"]) == Some("WaitForFirstConsumer")
            }
            None => KNOWN.contains(&class),
        }
    }
}

/// Whether an operation applies an object of its own before what needs it, whatever its wave: a definition or
/// namespace.
pub(super) fn is_moved(object: &Object) -> bool {
    matches!(object.key.kind.as_str(), "CustomResourceDefinition" | "Namespace")
}

/// Whether the operation at the meeting applies both objects itself.
fn is_direct(meeting: &Meeting, object: &Object, provider: &Object) -> bool {
    meeting.first == object.id && meeting.second == provider.id
}

/// Whether an object's kind is one that the engine itself brings.
fn is_engines(object: &Object) -> bool {
    object.key.group == names::GROUP
        && matches!(object.key.kind.as_str(), "Application" | "ApplicationSet" | "AppProject")
}

/// Whether an object runs pods at once: a CronJob waits for its hour.
fn runs(object: &Object) -> bool {
    object.key.kind != "CronJob"
}
