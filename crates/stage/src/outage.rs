//! What could not be reached for a while.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tiphys_value::{ObjectExt, ResourceKey, Value};

/// A time in which nothing of a workload or behind a Service was ready that had been before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// Workload or Service.
    pub object: ResourceKey,
    /// When it began, in milliseconds since the beginning.
    pub from_ms: u64,
    /// When it was over; `None` if it is not.
    pub to_ms: Option<u64>,
}

/// Watches workloads and Services.
#[derive(Clone, Debug, Default)]
pub(crate) struct Availability {
    /// Services that lead to pods and not to ports of theirs.
    headless: BTreeSet<ResourceKey>,
    /// How many endpoints of each slice are ready, by Service and name of the slice.
    slices: BTreeMap<ResourceKey, BTreeMap<String, usize>>,
    /// Whether something of it is ready; absent before anything was.
    up: BTreeMap<ResourceKey, bool>,
    open: BTreeMap<ResourceKey, u64>,
    /// Since when objects are gone, or are away, that had been ready: an outage if they come again.
    gone: BTreeMap<ResourceKey, u64>,
    closed: Vec<Outage>,
}

const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

impl Availability {
    /// Takes up an object as it is now; `None` if it is gone.
    pub(crate) fn observe(&mut self, at_ms: u64, before: &Value, object: Option<&Value>) {
        let key = before.resource_key();
        if key.group == "discovery.k8s.io" && key.kind == "EndpointSlice" {
            let Some(service) = before.label("kubernetes.io/service-name") else { return };
            let service = ResourceKey::new("", "Service", &key.namespace, service);
            let is_headless = self.headless.contains(&service);
            let slices = self.slices.entry(service.clone()).or_default();
            match object {
                // Where no pod has a port of the name that the Service gives, nobody can be called.
                Some(slice) if !is_headless && has_no_port(slice) => drop(slices.insert(key.name, 0)),
                Some(slice) => drop(slices.insert(key.name, ready_endpoints(slice))),
                None => drop(slices.remove(&key.name)),
            }
            let is_up = slices.values().sum::<usize>() > 0;
            return self.set(at_ms, service, Some(is_up));
        }
        let is_workload = key.group == "apps" && WORKLOADS.contains(&key.kind.as_str());
        let is_service = key.group.is_empty() && key.kind == "Service";
        match object {
            None if is_workload || is_service => self.remove(at_ms, &key),
            Some(service) if is_service && service.str_at(&["spec", "clusterIP"]) == Some("None") => {
                self.headless.insert(key);
            }
            Some(workload) if is_workload => self.set(at_ms, key, is_available(workload)),
            _ => {}
        }
    }

    /// The object is gone. That is an outage only if somebody makes it again.
    fn remove(&mut self, at_ms: u64, key: &ResourceKey) {
        self.slices.remove(key);
        let since = self.open.remove(key).or_else(|| (self.up.remove(key) == Some(true)).then_some(at_ms));
        self.up.remove(key);
        if let Some(since) = since {
            self.gone.insert(key.clone(), since);
        }
    }

    /// `None`: nothing of it is asked for any more.
    fn set(&mut self, at_ms: u64, key: ResourceKey, is_up: Option<bool>) {
        if let Some(since) = is_up.and_then(|_| self.gone.remove(&key)) {
            self.up.insert(key.clone(), false);
            self.open.insert(key.clone(), since);
        }
        match is_up {
            None => {
                self.up.remove(&key);
                self.close(at_ms, key);
            }
            Some(true) => {
                self.up.insert(key.clone(), true);
                self.close(at_ms, key);
            }
            Some(false) => {
                if self.up.insert(key.clone(), false) == Some(true) {
                    self.open.insert(key, at_ms);
                } else if !self.open.contains_key(&key) {
                    // Nothing of it was ever ready.
                    self.up.remove(&key);
                }
            }
        }
    }

    fn close(&mut self, at_ms: u64, object: ResourceKey) {
        if let Some(from_ms) = self.open.remove(&object).filter(|from| *from < at_ms) {
            self.closed.push(Outage { object, from_ms, to_ms: Some(at_ms) });
        }
    }

    /// All outages, the first first. What is gone is missed if it is still wanted.
    pub(crate) fn outages(&self, wanted: &BTreeSet<ResourceKey>) -> Vec<Outage> {
        let gone = self.gone.iter().filter(|(object, _)| wanted.contains(*object));
        let open = self.open.iter().chain(gone).map(|(object, from)| Outage {
            object: object.clone(),
            from_ms: *from,
            to_ms: None,
        });
        let mut all: Vec<Outage> = self.closed.iter().cloned().chain(open).collect();
        all.sort_by(|a, b| (a.from_ms, &a.object).cmp(&(b.from_ms, &b.object)));
        all
    }
}

fn has_no_port(slice: &Value) -> bool {
    slice.get("ports").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

fn ready_endpoints(slice: &Value) -> usize {
    let endpoints = slice.get("endpoints").and_then(Value::as_array).into_iter().flatten();
    endpoints.filter(|endpoint| endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false))).count()
}

/// Whether something of a workload is available; `None` if nothing is asked for.
fn is_available(workload: &Value) -> Option<bool> {
    let status = |field: &str| workload.int_at(&["status", field]).unwrap_or_default();
    match workload.kind() {
        "DaemonSet" => (status("desiredNumberScheduled") > 0).then(|| status("numberAvailable") > 0),
        _ => {
            (workload.int_at(&["spec", "replicas"]).unwrap_or(1) > 0).then(|| status("availableReplicas") > 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn deployment(available: i64) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 2}, "status": {"availableReplicas": available}})
    }

    #[test]
    fn only_what_was_there_can_be_missed() {
        let mut seen = Availability::default();
        for (at, available) in [(0, 0), (10, 1), (20, 2), (30, 0), (50, 1)] {
            let object = deployment(available);
            seen.observe(at, &object, Some(&object));
        }
        let outages = seen.outages(&BTreeSet::new());
        assert_eq!(outages.iter().map(|one| (one.from_ms, one.to_ms)).collect::<Vec<_>>(), [(30, Some(50))]);
    }

    #[test]
    fn a_service_is_missed_while_no_slice_has_a_ready_endpoint() {
        let slice = |name: &str, ready: bool| {
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
            "ports": [{"port": 8080}], "endpoints": [{"conditions": {"ready": ready}}]})
        };
        let mut seen = Availability::default();
        for (at, name, ready) in
            [(0, "a", true), (1, "b", true), (2, "a", false), (5, "b", false), (9, "b", false)]
        {
            let slice = slice(name, ready);
            seen.observe(at, &slice, Some(&slice));
        }
        let outages = seen.outages(&BTreeSet::new());
        assert_eq!(outages.len(), 1);
        assert_eq!(
            (outages[0].object.kind.as_str(), outages[0].from_ms, outages[0].to_ms),
            ("Service", 5, None)
        );
    }

    #[test]
    fn a_service_is_missed_whose_port_leads_nowhere_unless_it_is_headless() {
        let slice = |ports: Value| {
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "a", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
            "ports": ports, "endpoints": [{"conditions": {"ready": true}}]})
        };
        let service = |address: &str| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"clusterIP": address}})
        };
        let outages = |address: &str| {
            let mut seen = Availability::default();
            let (led, lost) = (slice(json!([{"port": 80}])), slice(json!([])));
            for (at, object) in [(0, &service(address)), (1, &led), (2, &lost)] {
                seen.observe(at, object, Some(object));
            }
            seen.outages(&BTreeSet::new()).len()
        };
        assert_eq!((outages("10.96.0.7"), outages("None")), (1, 0));
    }

    #[test]
    fn what_is_taken_away_is_no_outage() {
        let mut seen = Availability::default();
        seen.observe(0, &deployment(2), Some(&deployment(2)));
        seen.observe(5, &deployment(2), None);
        assert!(seen.outages(&BTreeSet::new()).is_empty());
        // Unless it is still in Git.
        let missed = seen.outages(&BTreeSet::from([deployment(2).resource_key()]));
        assert_eq!(missed.iter().map(|one| (one.from_ms, one.to_ms)).collect::<Vec<_>>(), [(5, None)]);
    }

    #[test]
    fn what_is_deleted_and_made_again_is_missed_meanwhile() {
        let mut seen = Availability::default();
        seen.observe(0, &deployment(2), Some(&deployment(2)));
        seen.observe(5, &deployment(2), None);
        for (at, available) in [(6, 0), (9, 1)] {
            seen.observe(at, &deployment(available), Some(&deployment(available)));
        }
        let outages = seen.outages(&BTreeSet::new());
        assert_eq!(outages.iter().map(|one| (one.from_ms, one.to_ms)).collect::<Vec<_>>(), [(5, Some(9))]);
        // What had never been ready is not missed.
        let mut seen = Availability::default();
        seen.observe(0, &deployment(0), Some(&deployment(0)));
        seen.observe(5, &deployment(0), None);
        seen.observe(6, &deployment(1), Some(&deployment(1)));
        assert!(seen.outages(&BTreeSet::new()).is_empty());
    }
}
