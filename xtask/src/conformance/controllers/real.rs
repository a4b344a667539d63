//! The real control plane, under real time: one for all sequences.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tiphys_oracles::RealControlPlane;
use tiphys_value::ObjectExt;
use tokio::task::JoinHandle;

use super::cluster::{Cluster, NAMESPACED, PATIENCE, SLICES, STILL};
use crate::{
    conformance::{
        api_client::{Answer, Peer},
        corpus::Exchange,
    },
    https,
};

/// When something in each namespace changed last.
#[derive(Clone, Default)]
struct LastChanges(Arc<Mutex<HashMap<String, Instant>>>);

impl LastChanges {
    fn note(&self, namespace: &str) {
        let mut all = self.0.lock();
        all.insert(namespace.to_owned(), Instant::now());
    }

    fn last_change(&self, namespace: &str) -> Option<Instant> {
        self.0.lock().get(namespace).copied()
    }
}

/// The running programs and those who watch them; dropping it ends them.
pub(super) struct Plane {
    programs: Arc<RealControlPlane>,
    changes: LastChanges,
    watches: Vec<JoinHandle<()>>,
}

impl Plane {
    /// Starts it with these nodes and classes.
    ///
    /// # Errors
    /// A program is missing or does not come up, or an object is refused.
    pub(super) async fn start(stages: &str, first: Vec<(String, Value)>) -> anyhow::Result<Self> {
        let nodes = first.iter().filter(|(_, object)| object.kind() == "Node");
        let nodes: Vec<_> = nodes.map(|(_, node)| node.name().to_owned()).collect();
        let programs = Arc::new(RealControlPlane::start(stages, &nodes)?);
        let changes = LastChanges::default();
        let mut plane = Self { programs, changes: changes.clone(), watches: Vec::new() };
        let mut peer = plane.peer().await?;
        for (collection, object) in first {
            create(&collection, object, &mut peer).await?;
        }
        let (address, token) = (plane.programs.address(), plane.programs.token());
        for (version, plural, _) in NAMESPACED.into_iter().chain([SLICES, ("v1", "namespaces", "Namespace")])
        {
            let root = if version.contains('/') { "apis" } else { "api" };
            let watch = Watch {
                address: address.clone(),
                token: token.to_owned(),
                path: format!("/{root}/{version}/{plural}"),
                changes: changes.clone(),
            };
            plane.watches.push(tokio::spawn(watch.run()));
        }
        Ok(plane)
    }

    async fn peer(&self) -> anyhow::Result<Peer> {
        Peer::open(&self.programs.address(), self.programs.token()).await
    }

    /// Makes a node what it was: there, free of taints, with a kubelet that speaks.
    ///
    /// # Errors
    /// It is refused.
    pub(super) async fn restore(&self, collection: &str, node: Value) -> anyhow::Result<()> {
        let mut peer = self.peer().await?;
        self.programs.silence(node.name(), false)?;
        let change = json!({
            "metadata": {"labels": {"disk": null}},
            "spec": {"taints": null, "unschedulable": null},
        });
        let patch = Exchange::new("PATCH", format!("{collection}/{}", node.name()), &change);
        let patched = peer.send(&patch.of_type("application/merge-patch+json")).await?;
        match patched.code {
            200 => Ok(()),
            404 => create(collection, node, &mut peer).await,
            code => anyhow::bail!("{collection}: {code} {}", patched.body),
        }
    }

    /// A client for one sequence.
    ///
    /// # Errors
    /// Nobody answers.
    pub(super) async fn client(&self) -> anyhow::Result<Real> {
        let (programs, changes) = (Arc::clone(&self.programs), self.changes.clone());
        Ok(Real { peer: self.peer().await?, programs, changes })
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

/// Creates an object with its status.
async fn create(collection: &str, object: Value, peer: &mut Peer) -> anyhow::Result<()> {
    let made = peer.send(&Exchange::new("POST", collection, &object)).await?;
    anyhow::ensure!(made.code == 201, "{collection}: {} {}", made.code, made.body);
    if object.get("status").is_some() {
        let path = format!("{collection}/{}/status", object.name());
        let status = json!({"status": object["status"]});
        let patch = Exchange::new("PATCH", path, &status).of_type("application/merge-patch+json");
        let patched = peer.send(&patch).await?;
        anyhow::ensure!(patched.code == 200, "{collection}: {} {}", patched.code, patched.body);
    }
    Ok(())
}

/// One who watches a collection for changes.
struct Watch {
    address: String,
    token: String,
    path: String,
    changes: LastChanges,
}

impl Watch {
    /// Watches until it is cancelled; a watch that ends is begun anew.
    async fn run(self) {
        loop {
            if let Err(error) = self.once().await {
                eprintln!("a watch of {} ended: {error:#}", self.path);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    async fn once(&self) -> anyhow::Result<()> {
        let mut peer = Peer::open(&self.address, &self.token).await?;
        let list = peer.send(&Exchange::new("GET", format!("{}?limit=1", self.path), &Value::Null)).await?;
        let revision = list.body["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let path = format!("{}?watch=1&timeoutSeconds=600&resourceVersion={revision}", self.path);
        let mut sender = https::connect(self.address.parse()?).await?;
        let request = Request::get(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.token))
            .body(Full::new(Bytes::new()))?;
        let mut body = sender.send_request(request).await?.into_body();
        let mut unread = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            unread.extend_from_slice(&data);
            while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = unread.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).context("no event")?;
                let object = &event["object"];
                let namespace = object.namespace();
                self.changes.note(if namespace.is_empty() { object.name() } else { namespace });
            }
        }
        Ok(())
    }
}

/// The real control plane as one sequence sees it.
pub(super) struct Real {
    peer: Peer,
    programs: Arc<RealControlPlane>,
    changes: LastChanges,
}

impl Cluster for Real {
    async fn send(&mut self, exchange: &Exchange) -> anyhow::Result<Answer> {
        self.peer.send(exchange).await
    }

    async fn settle(&mut self, namespace: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let last = self.changes.last_change(namespace).map_or(began, |last| last.max(began));
            let left = STILL.saturating_sub(last.elapsed());
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(left).await;
        }
        Ok(())
    }

    async fn wait(&mut self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn align(&mut self, second: u32) {
        let now = jiff::Timestamp::now().as_millisecond().rem_euclid(60_000);
        let left = (i64::from(second) * 1000 - now).rem_euclid(60_000);
        tokio::time::sleep(Duration::from_millis(left.unsigned_abs())).await;
    }

    async fn silence(&mut self, node: &str, is_silent: bool) -> anyhow::Result<()> {
        Ok(self.programs.silence(node, is_silent)?)
    }

    /// The names of Events end with the time at which they were made.
    fn moment(&self, event: &Value) -> u128 {
        let end = event.name().rsplit('.').next().unwrap_or_default();
        u128::from_str_radix(end, 16).unwrap_or(u128::MAX)
    }
}
