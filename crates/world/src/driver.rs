//! Carries out what the controllers want, on an embedded API server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::json;
use tiphys_apiserver::{
    ApiError, ApiServer, ChangeKind, Client, DeleteOptions, Named, Propagation as Cascade, ResourceId,
    Snapshot,
};
use tiphys_value::{GroupVersionResource, ObjectExt, Value};

use crate::{
    Change, Event, Key, Propagation, Settings, Start, Turn, View, World, Write,
    cluster_view::{Index, stored_as},
    initial_objects,
    object::resources,
    webhooks::Webhooks,
};

/// How many changes are taken at once, and how many turns between two looks at other tasks.
const BATCH: usize = 512;

/// A [`World`] at work on an API server. It acts on nothing but the server's changes and clock, so
/// under a paused clock the same input gives the same history.
pub struct Driver {
    server: ApiServer,
    /// One per field manager.
    clients: BTreeMap<&'static str, Client>,
    world: World,
    index: Index,
    revision: Option<u64>,
    most_pods: usize,
}

impl Driver {
    /// Puts nodes and the storage class on a server and readies the controllers. Nothing else
    /// happens before [`Driver::run`] or [`Driver::settle`].
    ///
    /// # Errors
    /// The server refuses an object (one that is there already is left as it is).
    pub fn new(server: &ApiServer, settings: Settings) -> Result<Self, ApiError> {
        let client = server.client("kube-controller-manager");
        // What was left out is made first: nobody is woken by it.
        let found = match settings.start {
            Start::Fresh => None,
            Start::Found => {
                create_what_was_left_out(&client, &server.snapshot(), &settings)?;
                Some(server.snapshot())
            }
        };
        let is_missing = |resource: &GroupVersionResource| {
            let id = ResourceId::new(&resource.group, &resource.resource);
            found.as_ref().is_none_or(|found| found.list(&id, None).next().is_none())
        };
        let first = initial_objects(&settings).into_iter().filter(|(resource, _)| is_missing(resource));
        for (resource, object) in first {
            let (namespace, status) = (object.namespace().to_owned(), object.get("status").cloned());
            match client.create(&resource, &namespace, object) {
                Err(error) if error.reason() == "AlreadyExists" => {}
                Err(error) => return Err(error),
                Ok(created) => {
                    if let Some(status) = status {
                        let mut object = created.value().clone();
                        object["status"] = status;
                        client.update_status(&resource, object)?;
                    }
                }
            }
        }
        server.set_webhook_backend(Arc::new(Webhooks::new(settings.behaviours.clone())));
        let most_pods = settings.most_pods;
        let world = World::new(settings);
        let clients = world.managers().map(|name| (name, server.client(name))).collect();
        // What was found is known, and not looked at; what was just made is a change.
        let index = found.as_ref().map(Index::of_found).unwrap_or_default();
        let revision = found.map(|found| found.revision());
        Ok(Self { server: server.clone(), clients, world, index, revision, most_pods })
    }

    /// Works until the server is dropped by its other owners' tasks, that is: until cancelled.
    pub async fn run(mut self) {
        loop {
            if self.work(BATCH) == BATCH {
                tokio::task::yield_now().await;
                continue;
            }
            let revision = self.revision.unwrap_or_default();
            match self.world.next_timer() {
                Some(at) => {
                    let left =
                        Duration::try_from(at.duration_since(self.server.now())).unwrap_or(Duration::ZERO);
                    tokio::select! {
                        biased;
                        () = self.server.changed_after(revision) => {}
                        () = tokio::time::sleep(left) => {}
                    }
                }
                None => self.server.changed_after(revision).await,
            }
        }
    }

    /// Works until nothing is due, and says when something will be.
    pub fn settle(&mut self) -> Option<Timestamp> {
        while self.work(BATCH) == BATCH {}
        self.world.next_timer()
    }

    /// Takes up to `most` turns; fewer only if nothing more is due.
    fn work(&mut self, most: usize) -> usize {
        for taken in 0..most {
            self.take_changes();
            let view = View { snapshot: self.server.snapshot(), server: &self.server, index: &self.index };
            let now = self.server.now();
            let Some(turn) = self.world.next_turn(&view, now) else { return taken };
            match self.carry_out(&turn) {
                Ok(()) => self.world.succeeded(&turn),
                Err(error) => {
                    tracing::debug!(controller = turn.controller, %error, "a write failed; trying again later");
                    self.world.failed(turn, &error.to_string(), now);
                }
            }
        }
        most
    }

    /// Shows the controllers what changed since the last time; everything, the first time and
    /// whenever the server's log no longer reaches back.
    fn take_changes(&mut self) {
        loop {
            let changes = self.revision.map(|revision| self.server.changes_since(revision, BATCH));
            let Some(Ok(changes)) = changes else { return self.take_everything() };
            let Some(last) = changes.last() else { return };
            self.revision = Some(last.revision);
            for change in &changes {
                let is_deleted = change.kind == ChangeKind::Deleted;
                let after = (!is_deleted).then(|| change.object.value());
                let before = change.previous.as_ref().map(|object| object.value());
                self.index.observe(&change.resource, before, after);
            }
            let view = View { snapshot: self.server.snapshot(), server: &self.server, index: &self.index };
            for change in &changes {
                let resource = stored_as(&change.resource, &change.object);
                let is_deleted = change.kind == ChangeKind::Deleted;
                self.world.observe(&Change { resource, object: change.object.clone(), is_deleted }, &view);
            }
        }
    }

    fn take_everything(&mut self) {
        let snapshot = self.server.snapshot();
        let before = self.revision.replace(snapshot.revision());
        self.index.rebuild(&snapshot);
        let view = View { snapshot: snapshot.clone(), server: &self.server, index: &self.index };
        // Of a cluster that was found only what has changed since is looked at.
        let since = before.filter(|_| self.index.is_of_found());
        let is_news = |object: &Value| {
            since.is_none_or(|since| object.resource_version().parse().is_ok_and(|at: u64| at > since))
        };
        for id in snapshot.resources() {
            for object in snapshot.list(id, None).filter(|object| is_news(object.value())) {
                let change =
                    Change { resource: stored_as(id, object), object: object.clone(), is_deleted: false };
                self.world.observe(&change, &view);
            }
        }
    }

    fn carry_out(&self, turn: &Turn) -> Result<(), ApiError> {
        let client = self.clients.get(turn.manager).expect("a client was made for every manager");
        let mut room = self.most_pods.saturating_sub(self.index.pods());
        turn.writes.iter().try_for_each(|write| {
            if let Write::Create { resource, object } = write
                && *resource == resources::pods()
            {
                room = room.checked_sub(1).ok_or_else(|| self.too_many_pods(object))?;
            }
            self.write(client, write)
        })
    }

    fn too_many_pods(&self, pod: &Value) -> ApiError {
        let pod = Named { group: "", resource: "pods", name: pod.name() };
        let why = format!("the embedded cluster holds no more than {} pods", self.most_pods);
        ApiError::forbidden(pod, &why)
    }

    fn write(&self, client: &Client, write: &Write) -> Result<(), ApiError> {
        match write {
            Write::Create { resource, object } => {
                client.create(resource, object.namespace(), object.clone()).map(drop)
            }
            Write::Update { resource, object } => client.update(resource, object.clone()).map(drop),
            Write::UpdateStatus { resource, object } => {
                client.update_status(resource, object.clone()).map(drop)
            }
            Write::Bind { key, node } => {
                let binding = json!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": key.name},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                let (namespace, name) = (&key.namespace, &key.name);
                client.create_subresource(&resources::pods(), namespace, name, "binding", binding).map(drop)
            }
            Write::Delete { resource, key, uid, propagation } => {
                let cascade = match propagation {
                    Propagation::Background => Cascade::Background,
                    Propagation::Foreground => Cascade::Foreground,
                };
                let options = DeleteOptions {
                    propagation: Some(cascade),
                    uid: Some(uid.clone()),
                    ..Default::default()
                };
                gone_is_fine(client.delete(resource, &key.namespace, &key.name, &options).map(drop))
            }
            Write::Forget { resource, key, uid } => {
                let options = DeleteOptions {
                    grace_period_seconds: Some(0),
                    uid: Some(uid.clone()),
                    ..Default::default()
                };
                gone_is_fine(client.delete(resource, &key.namespace, &key.name, &options).map(drop))
            }
            Write::Tell(event) => {
                self.tell(client, event);
                Ok(())
            }
            Write::Finalize { key } => finalize(client, key),
        }
    }

    /// Events are told at best: what cannot be told is no reason to stop.
    fn tell(&self, client: &Client, event: &Event) {
        let now = self.server.now();
        let told = match client.get(&resources::events(), event.namespace(), &event.name()) {
            Ok(existing) => client.update(&resources::events(), event.repeated(&existing, now)),
            Err(_) => client.create(&resources::events(), event.namespace(), event.first(now)),
        };
        if let Err(error) = told {
            tracing::debug!(%error, "an event could not be told");
        }
    }
}

/// Gives namespaces the account and the authority that pods need, if a found cluster has no object of the
/// kind at all: they were left out.
fn create_what_was_left_out(client: &Client, found: &Snapshot, settings: &Settings) -> Result<(), ApiError> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let authority = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"},
        "data": {"ca.crt": settings.root_ca}});
    let every = [(resources::service_accounts(), account), (resources::config_maps(), authority)];
    for (resource, object) in every {
        let id = ResourceId::new(&resource.group, &resource.resource);
        if found.list(&id, None).next().is_some() {
            continue;
        }
        let namespaces = found.list(&ResourceId::new("", "namespaces"), None);
        for namespace in namespaces.filter(|namespace| !namespace.value().is_terminating()) {
            client.create(&resource, namespace.value().name(), object.clone())?;
        }
    }
    Ok(())
}

fn finalize(client: &Client, key: &Key) -> Result<(), ApiError> {
    let mut namespace = client.get(&resources::namespaces(), "", &key.name)?.value().clone();
    namespace["spec"]["finalizers"] = Value::Array(Vec::new());
    gone_is_fine(client.update_subresource(&resources::namespaces(), namespace, "finalize").map(drop))
}

fn gone_is_fine(result: Result<(), ApiError>) -> Result<(), ApiError> {
    match result {
        Err(error) if error.reason() == "NotFound" => Ok(()),
        result => result,
    }
}
