//! Faults on a stage, each in its time.

use std::{collections::BTreeMap, time::Duration};

use tiphys_apiserver::{ApiError, ApiServer, DeleteOptions, Patch, ResourceId};
use tiphys_value::{GroupVersionResource, ObjectExt, Value, json};
use tiphys_world::Behaviours;

use super::{
    Api, Fault, Hook, Pull, Timed,
    drain::{Drain, RefusedEviction, cordon},
    targets::operator_groups,
};
use crate::{Stage, request_faults};

/// Who writes faults.
pub const MANAGER: &str = "tiphys-rehearse";
/// Where the world reads its rules.
const RULES: (&str, &str) = ("kube-system", "tiphys-world");
/// How long until an engine that could not start is started again.
const START_AGAIN: Duration = Duration::from_secs(5);
/// The name of the quota that lets no pod be made.
const QUOTA: &str = "no-pods";

/// Begins and ends faults.
#[derive(Clone, Debug, Default)]
pub struct Injector {
    faults: Vec<(Timed, Phase)>,
    /// Drains that have begun, by the number of their fault.
    drains: BTreeMap<usize, Drain>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    ToCome,
    Present,
    Over,
}

/// Why a fault cannot be put on a stage: the cluster refuses it.
#[derive(Debug, thiserror::Error)]
#[error("a fault cannot be put into the cluster: {0}")]
pub struct InjectError(String);

impl From<ApiError> for InjectError {
    fn from(error: ApiError) -> Self {
        Self(error.to_string())
    }
}

impl Injector {
    /// These faults, none of which has begun.
    pub fn new(faults: Vec<Timed>) -> Self {
        let faults = faults.into_iter().map(|fault| (fault, Phase::ToCome)).collect();
        Self { faults, drains: BTreeMap::new() }
    }

    /// When the next one begins or ends, after so much time.
    pub fn next_after(&self, elapsed: Duration) -> Option<Duration> {
        let due = self.faults.iter().filter_map(|(fault, phase)| match phase {
            Phase::ToCome => Some(fault.start),
            Phase::Present => fault.end(),
            Phase::Over => None,
        });
        let drains = self.drains.values().filter_map(|drain| drain.next);
        due.chain(drains).filter(|at| *at > elapsed).min()
    }

    /// The pods that drains could not evict.
    pub fn refused_evictions(&self) -> impl Iterator<Item = &RefusedEviction> {
        self.drains.values().filter_map(|drain| drain.refused.as_ref())
    }

    /// When the last one is over, of those that end.
    pub fn last_end(&self) -> Option<Duration> {
        self.faults.iter().filter_map(|(fault, _)| fault.end()).max()
    }

    /// What the engine's requests meet now, if anything does.
    pub fn present_api_fault(&self) -> Option<&Timed> {
        // Of several, the one that was asked for last.
        let mut present = self.faults.iter().filter(|(_, phase)| *phase == Phase::Present);
        present.rfind(|(fault, _)| matches!(fault.fault, Fault::Api(_))).map(|(fault, _)| fault)
    }

    /// Begins and ends what is due, and returns whether anything was.
    ///
    /// # Errors
    /// The cluster refuses.
    pub async fn apply(&mut self, stage: &mut Stage) -> Result<bool, InjectError> {
        let now = stage.elapsed();
        let mut has_changed = false;
        for at in 0..self.faults.len() {
            let (fault, phase) = &self.faults[at];
            let phase = match phase {
                Phase::ToCome if fault.start <= now => Phase::Present,
                Phase::Present if fault.end().is_some_and(|end| end <= now) => Phase::Over,
                _ => continue,
            };
            let fault = fault.clone();
            // Where the cluster does not answer, an engine that starts fails, and is started again.
            if fault.fault == Fault::Kill && phase == Phase::Over && stage.start().await.is_err() {
                self.faults[at].0.duration = Some(now + START_AGAIN - fault.start);
                continue;
            }
            self.faults[at].1 = phase;
            self.change(stage, at, &fault.fault, phase == Phase::Present)?;
            has_changed = true;
        }
        let server = stage.site().server();
        for drain in self.drains.values_mut().filter(|drain| drain.next.is_some_and(|at| at <= now)) {
            drain.go_on(server, now);
        }
        Ok(has_changed)
    }

    fn change(
        &mut self,
        stage: &mut Stage,
        at: usize,
        fault: &Fault,
        begins: bool,
    ) -> Result<(), InjectError> {
        match fault {
            Fault::Kill if begins => stage.kill(),
            // It was started above.
            Fault::Kill => {}
            Fault::Api(_) => self.plan_requests(stage),
            Fault::Git(host) if begins => stage.outages.begin(host),
            Fault::Git(host) => stage.outages.end(host),
            Fault::Drain(node) if begins => {
                let drain = Drain::begin(stage.site().server(), node, stage.elapsed())?;
                self.drains.insert(at, drain);
            }
            Fault::Drain(node) => {
                cordon(stage.site().server(), node, false)?;
                if let Some(drain) = self.drains.get_mut(&at) {
                    drain.next = None;
                }
            }
            Fault::Quota(namespace) => quota(stage.site().server(), namespace, begins)?,
            other => {
                for site in stage.sites() {
                    let rules = begins.then(|| rules(other, site.server()));
                    set_rules(site.server(), &format!("fault-{at:03}.yaml"), rules.as_deref())?;
                }
            }
        }
        Ok(())
    }

    /// Has the engine's requests meet what is present.
    fn plan_requests(&self, stage: &Stage) {
        match self.present_api_fault().map(|fault| &fault.fault) {
            Some(&Fault::Api(api)) => {
                stage.faults.plan(move |_, _, _| {
                    Some(match api {
                        Api::Late(time) => request_faults::RequestFault::Late(time),
                        Api::Refuse(code) => request_faults::RequestFault::Refuse(code),
                        Api::Down => request_faults::RequestFault::Unreachable,
                    })
                });
                if matches!(api, Api::Down) {
                    stage.faults.cut_watches();
                }
            }
            _ => stage.faults.end(),
        }
    }
}

/// The nodes of a zone.
fn nodes_of(server: &ApiServer, zone: &str) -> Vec<String> {
    let snapshot = server.snapshot();
    let nodes = snapshot.list(&ResourceId::new("", "nodes"), None).map(|node| node.value());
    let own = nodes.filter(|node| node.label(tiphys_world::ZONE) == Some(zone));
    own.map(|node| node.name().to_owned()).collect()
}

fn rules(fault: &Fault, server: &ApiServer) -> String {
    let pull = |pull: &Pull| match pull {
        Pull::NotFound => "notFound",
        Pull::Unauthorized => "unauthorized",
        Pull::Forbidden => "forbidden",
        Pull::RateLimited => "rateLimited",
        Pull::Timeout => "timeout",
    };
    let rules = match fault {
        Fault::Node(name) => json!({"nodes": [{"node": name, "unreachable": {}}]}),
        Fault::Zone(zone) => {
            let nodes = nodes_of(server, zone).into_iter();
            json!({"nodes": nodes.map(|node| json!({"node": node, "unreachable": {}})).collect::<Vec<_>>()})
        }
        Fault::Image(image, how) => json!({"images": [{"image": image, "pull": pull(how)}]}),
        Fault::Registry(host, how) => json!({"images": [{"image": format!("{host}/*"), "pull": pull(how)}]}),
        Fault::Webhook(name, how) => {
            let answer = match how {
                Hook::Down => json!({"refuse": {}}),
                Hook::Timeout => json!({"timeout": {}}),
                Hook::Deny => json!({"deny": {"message": "a fault of the rehearsal"}}),
            };
            json!({"webhooks": [{"webhook": name, "answer": answer}]})
        }
        Fault::Pod { namespace, name, crashes } => {
            // A pod of a workload has its name and something random, or its number.
            let pods = |name: String| json!({"namespace": namespace, "name": name});
            let rule = |name: String| match crashes {
                true => json!({"pods": pods(name), "exits": {"code": 1, "after": "1s"}}),
                false => json!({"pods": pods(name), "ready": {"never": "a fault of the rehearsal"}}),
            };
            json!({"containers": [rule(name.clone()), rule(format!("{name}-*"))]})
        }
        Fault::Operator(kind, None) => {
            let operator =
                |group| json!({"name": "nobody", "group": group, "kind": kind, "image": "nobody/runs-this:"});
            json!({"operators": operator_groups(kind).map(operator).collect::<Vec<_>>()})
        }
        Fault::Operator(kind, Some(takes)) => {
            Behaviours::operators_that_take(|_, known| known == kind, *takes).unwrap_or_default()
        }
        Fault::Dns => json!({"network": [{"to": {"service": {"namespace": "*", "name": "*"}}}]}),
        Fault::Cni => json!({"nodes": [{"node": "*", "networkBy": {"name": "no-cni-runs"}}]}),
        Fault::Quota(_) | Fault::Api(_) | Fault::Git(_) | Fault::Drain(_) | Fault::Kill => Value::Null,
    };
    // JSON is YAML.
    rules.to_string()
}

/// Puts rules under a key of the world's ConfigMap, or takes them away.
fn set_rules(server: &ApiServer, key: &str, rules: Option<&str>) -> Result<(), ApiError> {
    let maps = GroupVersionResource::new("", "v1", "configmaps");
    let client = server.client(MANAGER);
    let (namespace, name) = RULES;
    if client.get(&maps, namespace, name).is_err() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}});
        client.create(&maps, namespace, map)?;
    }
    let patch = json!({"data": {key: rules}});
    client.patch(&maps, namespace, name, None, &Patch::merge(patch)).map(drop)
}

fn quota(server: &ApiServer, namespace: &str, begins: bool) -> Result<(), ApiError> {
    let quotas = GroupVersionResource::new("", "v1", "resourcequotas");
    let client = server.client(MANAGER);
    if !begins {
        return match client.delete(&quotas, namespace, QUOTA, &DeleteOptions::default()) {
            // It went with its namespace.
            Err(error) if error.reason() == "NotFound" => Ok(()),
            deleted => deleted.map(drop),
        };
    }
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": QUOTA, "namespace": namespace},
        "spec": {"hard": {"pods": "0"}}});
    let namespaces = GroupVersionResource::new("", "v1", "namespaces");
    if client.get(&namespaces, "", namespace).is_ok() {
        return client.create(&quotas, namespace, quota).map(drop);
    }
    // Pods come in the same moment as their namespace: the quota has to be there before, and the namespace
    // with it, which nobody is the owner of.
    server.import(vec![quota]);
    Ok(())
}
