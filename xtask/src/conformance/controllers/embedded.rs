//! The embedded cluster, under virtual time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apiserver::{ApiServer, ApiServerOptions, ChangeKind};
use tiphys_value::ObjectExt;
use tiphys_world::{Behaviours, Driver, Settings, VirtualClock};
use tokio::task::JoinHandle;

use super::cluster::{Cluster, PATIENCE, STILL};
use crate::conformance::{
    api_client::{Answer, Peer},
    corpus::Exchange,
};

/// How much time passes between two looks at whether the cluster is still.
const STEP: Duration = Duration::from_millis(500);

/// How much time passes after a write, as it does on a real cluster, whose controllers act meanwhile.
const BETWEEN_WRITES: Duration = Duration::from_millis(50);

/// A cluster of its own for one sequence; dropping it ends it.
pub(super) struct Embedded {
    server: ApiServer,
    driver: Driver,
    clock: Arc<VirtualClock>,
    peer: Peer,
    serving: JoinHandle<()>,
    /// Up to where the changes have been read.
    read: u64,
    /// When each Event was told first.
    told: BTreeMap<String, u64>,
}

impl Embedded {
    /// Starts one whose containers behave as `rules` say.
    ///
    /// # Errors
    /// It does not start, or the rules cannot be read.
    pub(super) async fn start(rules: &str) -> anyhow::Result<Self> {
        let clock = VirtualClock::starting_at(Timestamp::from_second(1_700_000_000)?);
        let options = ApiServerOptions { clock: Some(clock.clone()), seed: Some(1), ..Default::default() };
        let server = ApiServer::new(options)?;
        let mut behaviours = Behaviours::from_yaml("rules.yaml", rules)?;
        behaviours.extend(Behaviours::builtin());
        let mut driver = Driver::new(&server, Settings { behaviours, ..Settings::default() })?;
        driver.pass(&clock, Duration::from_secs(1));
        let serving = server.bind(([127, 0, 0, 1], 0).into()).await?;
        let address = serving.address().to_string();
        let serving = tokio::spawn(serving.run());
        let peer = Peer::open(&address, server.token()).await?;
        let read = server.revision();
        Ok(Self { server, driver, clock, peer, serving, read, told: BTreeMap::new() })
    }

    /// Reads what has changed; says whether something in a namespace has.
    fn read_changes(&mut self, namespace: &str) -> anyhow::Result<bool> {
        let changes = self.server.changes_since(self.read, usize::MAX);
        let changes = changes.ok().context("the log of changes does not reach back")?;
        let mut has_changed = false;
        for change in changes {
            self.read = change.revision;
            if change.resource.resource() == "events" {
                if change.kind == ChangeKind::Added {
                    self.told.insert(change.object.name().to_owned(), change.revision);
                }
                continue;
            }
            let object = &change.object;
            has_changed |= object.namespace() == namespace || object.name() == namespace;
        }
        Ok(has_changed)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Cluster for Embedded {
    async fn send(&mut self, exchange: &Exchange) -> anyhow::Result<Answer> {
        let answer = self.peer.send(exchange).await?;
        if exchange.method != "GET" {
            self.driver.pass(&self.clock, BETWEEN_WRITES);
        }
        Ok(answer)
    }

    async fn settle(&mut self, namespace: &str) -> anyhow::Result<()> {
        let (mut still, mut waited) = (Duration::ZERO, Duration::ZERO);
        self.read_changes(namespace)?;
        while still < STILL && waited < PATIENCE {
            self.driver.pass(&self.clock, STEP);
            waited += STEP;
            still = if self.read_changes(namespace)? { Duration::ZERO } else { still + STEP };
        }
        Ok(())
    }

    async fn wait(&mut self, duration: Duration) {
        self.driver.pass(&self.clock, duration);
    }

    async fn align(&mut self, second: u32) {
        let now = self.server.now().as_second().rem_euclid(60);
        let left = (i64::from(second) - now).rem_euclid(60);
        self.driver.pass(&self.clock, Duration::from_secs(left.unsigned_abs()));
    }

    async fn silence(&mut self, node: &str, is_silent: bool) -> anyhow::Result<()> {
        let rules = match is_silent {
            true => format!("nodes: [{{node: {node}, unreachable: {{}}}}]"),
            false => "nodes: []".to_owned(),
        };
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "tiphys-world", "namespace": "kube-system"}, "data": {"nodes.yaml": rules}});
        let maps = "/api/v1/namespaces/kube-system/configmaps";
        let answer = self.send(&Exchange::new("POST", maps, &map)).await?;
        if answer.code == 409 {
            self.send(&Exchange::new("PUT", format!("{maps}/tiphys-world"), &map)).await?;
        }
        Ok(())
    }

    fn moment(&self, event: &Value) -> u128 {
        self.told.get(event.name()).copied().unwrap_or(u64::MAX).into()
    }
}
