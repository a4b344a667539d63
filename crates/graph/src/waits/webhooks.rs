//! Objects that an admission webhook is asked about while what answers is not there yet.

use crate::{
    App, Object, ObjectId, Owner, Survey,
    edges::{EdgeKind, Edges, Target, Webhook, webhooks},
    order::{Meeting, Order, Relation, step_of},
};

/// What a fail-closed webhook stands in the way of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The webhook configuration.
    pub configuration: ObjectId,
    /// Position of the webhook in it.
    pub at: usize,
    /// The workload that answers.
    pub backend: ObjectId,
    /// The object that is refused.
    pub object: ObjectId,
    /// Where the object and the backend meet; `None` if the object is the backend itself.
    pub meeting: Option<Meeting>,
    /// Whether both come in the same step.
    pub same_step: bool,
    /// Whether the operation fails at the object before it comes to the backend.
    pub stalls: bool,
    /// How many objects more are refused in the same way.
    pub others: usize,
}

/// Everything that fail-closed webhooks with a known backend stand in the way of: the backend's own pods,
/// and, once for each webhook and kind of trouble, objects that come before the backend or with it.
pub fn blocked(survey: &Survey, edges: &Edges<'_>, order: &Order<'_>) -> Vec<Blocked> {
    let mut found = Vec::new();
    each(survey, edges, |configuration, at, webhook, backend| {
        let asked = Asked { survey, edges, order, configuration, at, webhook };
        asked.own(backend, &mut found);
        asked.others(backend, &mut found);
    });
    found
}

/// Tells `visit` of each webhook that Applications bring, that fails closed and whose backend is known: the
/// configuration, the position in it, the webhook, and the workload behind the Service that is called.
pub(super) fn each<'a>(
    survey: &'a Survey,
    edges: &'a Edges<'a>,
    mut visit: impl FnMut(&'a Object, usize, &Webhook<'a>, &'a Object),
) {
    for configuration in &survey.objects {
        let is_configuration = matches!(
            configuration.key.kind.as_str(),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration"
        );
        let (true, Owner::App(_)) = (is_configuration, configuration.owner) else { continue };
        for (at, webhook) in webhooks(configuration.value()).iter().enumerate() {
            if !webhook.fails_closed() {
                continue;
            }
            if let Some(backend) = backend(survey, edges, configuration, webhook) {
                visit(configuration, at, webhook, backend);
            }
        }
    }
}

/// The workload behind the Service that a webhook calls.
fn backend<'a>(
    survey: &'a Survey,
    edges: &'a Edges<'a>,
    configuration: &Object,
    webhook: &Webhook<'_>,
) -> Option<&'a Object> {
    let mut calls = edges.from(configuration.id).iter().filter(|edge| edge.field.starts_with(&webhook.field));
    let service = calls.find_map(|edge| match edge.to {
        Target::Object(id) => Some(id),
        Target::Named(_) => None,
    })?;
    let mut selected = edges.from(service).iter().filter(|edge| edge.kind == EdgeKind::Selects);
    match selected.next()?.to {
        Target::Object(id) => Some(survey.object(id)),
        Target::Named(_) => None,
    }
}

/// A webhook that is asked.
struct Asked<'a> {
    survey: &'a Survey,
    edges: &'a Edges<'a>,
    order: &'a Order<'a>,
    configuration: &'a Object,
    at: usize,
    webhook: &'a Webhook<'a>,
}

impl Asked<'_> {
    /// The webhook is asked about its own backend, or about its pods: once they are gone, they cannot come
    /// back, and if it is in force before them, they never come.
    fn own(&self, backend: &Object, found: &mut Vec<Blocked>) {
        let first = matches!(self.order.relation(self.configuration, backend), Relation::Before(_));
        if first && self.webhook.asks_about(&self.edges.index, backend) {
            found.push(self.blocked(backend, backend, None, false, true));
        } else if self.webhook.asks_about_pods(&self.edges.index, backend) {
            found.push(self.blocked(backend, backend, None, false, first));
        }
    }

    fn others(&self, backend: &Object, found: &mut Vec<Blocked>) {
        let scope = self.edges.index.scope(self.configuration.id);
        let (mut earlier, mut beside): (Option<Blocked>, Option<Blocked>) = (None, None);
        let candidates = self.survey.objects.iter().filter(|object| {
            self.edges.index.scope(object.id) == scope && object.id != backend.id && step_of(object).is_some()
        });
        for object in candidates {
            let (meeting, same) = match self.order.relation(object, backend) {
                Relation::Before(meeting) => (meeting, false),
                Relation::Same(meeting) => (meeting, true),
                Relation::After(_) | Relation::None => continue,
            };
            if !self.is_in_force(object, same) || !self.webhook.asks_about(&self.edges.index, object) {
                continue;
            }
            let stalls = !same && meeting.first == object.id;
            let slot = if same { &mut beside } else { &mut earlier };
            match slot {
                Some(known) => {
                    let others = known.others + 1;
                    if stalls && !known.stalls {
                        *known = self.blocked(backend, object, Some(meeting), same, stalls);
                    }
                    known.others = others;
                }
                None => *slot = Some(self.blocked(backend, object, Some(meeting), same, stalls)),
            }
        }
        found.extend(earlier);
        found.extend(beside);
    }

    /// Whether the configuration is applied before an object: in an earlier step, or in the same one, where
    /// it comes after all kinds that have a place in the order, and else by name.
    fn is_in_force(&self, object: &Object, with_backend: bool) -> bool {
        match self.order.relation(self.configuration, object) {
            Relation::Before(_) => true,
            Relation::Same(meeting) => {
                let direct = meeting.first == self.configuration.id && meeting.second == object.id;
                let custom = object.key.group.contains('.') && !object.key.group.ends_with(".k8s.io");
                // Within one operation only what comes later in the same wave; across operations that run
                // side by side, nobody knows: only what the webhook is for.
                custom
                    && (!direct || self.configuration.key.name <= object.key.name)
                    && (direct || with_backend)
            }
            Relation::After(_) | Relation::None => false,
        }
    }

    fn blocked(
        &self,
        backend: &Object,
        object: &Object,
        meeting: Option<Meeting>,
        same_step: bool,
        stalls: bool,
    ) -> Blocked {
        Blocked {
            configuration: self.configuration.id,
            at: self.at,
            backend: backend.id,
            object: object.id,
            meeting,
            same_step,
            stalls,
            others: 0,
        }
    }
}

/// How often an Application's failed sync is repeated: what it says, else five times where it syncs by
/// itself and never where a person does it. Less than zero is for ever.
pub fn retries(app: &App) -> i64 {
    let policy = app.application.spec.sync_policy.as_ref();
    match policy.and_then(|policy| policy.retry.as_ref()) {
        Some(retry) => retry.limit,
        None if app.application.automated_policy().is_some() => 5,
        None => 0,
    }
}
