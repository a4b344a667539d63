//! What every search for causes gets: the cluster, what is red, and the workloads that are ill.

use std::{cell::OnceCell, collections::BTreeMap};

use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    address_target::Target,
    cluster::{Cluster, pods},
    log_evidence::{Fact, LogFact, log_facts},
    pod_addresses::{settings, wires},
    symptoms::Symptoms,
};

/// A workload with pods that are red.
pub(crate) struct Ill<'a> {
    pub(crate) workload: Object,
    /// Its red pods.
    pub(crate) pods: Vec<&'a Value>,
    /// What its logs say, the weightiest first.
    pub(crate) facts: Vec<LogFact>,
    pub(crate) since: Option<Timestamp>,
}

impl<'a> Ill<'a> {
    /// The specification of its pods.
    pub(crate) fn spec(&self) -> &'a Value {
        self.pods.first().and_then(|pod| pod.get("spec")).unwrap_or(&Value::Null)
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.workload.namespace
    }
}

/// Of what the other pods of a workload complain that name its red ones: why a member is turned away is told
/// by who does it.
fn told_by_others(cluster: &Cluster<'_>, workload: &Object, red: &[&Value]) -> Vec<LogFact> {
    let names_red = |text: &str| red.iter().any(|pod| text.contains(pod.name()));
    let is_red = |pod: &Value| red.iter().any(|it| it.name() == pod.name());
    // Most logs name no other pod, and need not be read for that.
    let tells = |pod: &Value| {
        cluster.logs(pod.namespace(), pod.name()).iter().any(|log| names_red(&log.text))
            || pods::statuses(pod).any(|status| names_red(&status.to_string()))
    };
    let mut others = pods::of_workload(cluster, workload);
    others.retain(|pod| !is_red(pod) && tells(pod));
    let mut facts = log_facts(cluster, &others);
    facts.retain(|fact| matches!(fact.fact, Fact::Complaint(_)) && names_red(&fact.line));
    facts
}

/// What a search looks at.
pub(crate) struct Look<'a> {
    pub(crate) cluster: &'a Cluster<'a>,
    pub(crate) red: &'a Symptoms,
    pub(crate) ill: Vec<Ill<'a>>,
    /// The pods that are not red and have a log, with what it says; read when it is first asked for.
    /// A pod is told by its place among all pods, so that a look may be lent for a shorter time.
    green: OnceCell<Vec<(usize, Vec<LogFact>)>>,
    /// The workloads whose configuration names each Service.
    callers: OnceCell<BTreeMap<Object, Vec<Object>>>,
    /// The workloads that may write the status of custom resources, by the group of these.
    status_writers: OnceCell<BTreeMap<String, Vec<Object>>>,
}

impl<'a> Look<'a> {
    pub(crate) fn new(cluster: &'a Cluster<'a>, red: &'a Symptoms) -> Self {
        let mut groups: BTreeMap<Object, Vec<&'a Value>> = BTreeMap::new();
        for pod in cluster.all("Pod") {
            if red.contains_key(&Object::from_live(pod)) {
                groups.entry(cluster.workload(pod)).or_default().push(*pod);
            }
        }
        let ill = groups.into_iter().map(|(workload, pods)| {
            let since = pods.iter().filter_map(|pod| pods::red_since(pod)).min();
            let mut facts = log_facts(cluster, &pods);
            facts.extend(told_by_others(cluster, &workload, &pods));
            facts.sort_by_key(|fact| std::cmp::Reverse(fact.weight));
            Ill { workload, pods, facts, since }
        });
        Self {
            cluster,
            red,
            ill: ill.collect(),
            green: OnceCell::new(),
            callers: OnceCell::new(),
            status_writers: OnceCell::new(),
        }
    }

    /// The pods that are not red and have a log, with what it says.
    pub(crate) fn green(&self) -> Vec<(&'a Value, &[LogFact])> {
        let pods = self.cluster.all("Pod");
        let read = self.green.get_or_init(|| {
            let green = pods.iter().enumerate().filter(|(_, pod)| !self.is_red(&Object::from_live(pod)));
            let facts = green.map(|(at, pod)| (at, log_facts(self.cluster, &[*pod])));
            facts.filter(|(_, facts)| !facts.is_empty()).collect()
        });
        read.iter().filter_map(|(at, facts)| Some((*pods.get(*at)?, facts.as_slice()))).collect()
    }

    /// The workloads whose configuration names a Service.
    pub(crate) fn callers_of(&self, service: &Object) -> &[Object] {
        let callers = self.callers.get_or_init(|| {
            let mut callers: BTreeMap<Object, Vec<Object>> = BTreeMap::new();
            let kinds = ["Deployment", "StatefulSet", "DaemonSet", "Pod"];
            for live in kinds.iter().flat_map(|kind| self.cluster.all(kind).iter()) {
                let is_owned = live.kind() == "Pod" && crate::cluster::controller(live).is_some();
                let Some(spec) = pods::spec(live).filter(|_| !is_owned) else { continue };
                let settings = settings(self.cluster, spec, live.namespace());
                for (address, _) in wires(&settings) {
                    if let Target::Service(service) = self.cluster.target(&address, live.namespace()) {
                        let users = callers.entry(Object::from_live(service)).or_default();
                        let user = Object::from_live(live);
                        if !users.contains(&user) {
                            users.push(user);
                        }
                    }
                }
            }
            callers
        });
        callers.get(service).map_or(&[], Vec::as_slice)
    }

    /// The workloads that may write the status of custom resources of a group.
    pub(crate) fn status_writers(&self, group: &str) -> &[Object] {
        let writers =
            self.status_writers.get_or_init(|| crate::causes::operator::status_writers(self.cluster));
        writers.get(group).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_red(&self, object: &Object) -> bool {
        self.red.contains_key(object)
    }

    /// Whether any pod or workload that a Service leads to is red.
    pub(crate) fn is_ill_behind(&self, service: &Value) -> bool {
        let pods = self.cluster.pods_of(service);
        let workloads = self.cluster.workloads_of(service);
        pods.iter().chain(&workloads).any(|live| self.is_red(&Object::from_live(live)))
    }
}
