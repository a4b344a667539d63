//! Root causes of a broken cluster, found in what was saved of it: objects, events, logs. Text and objects
//! in, a diagnosis out: no network, no clock.

mod address_target;
mod calls;
mod case;
mod causes;
mod cluster;
mod dependencies;
mod diagnosis;
mod finding;
mod log_evidence;
mod missing_data;
mod pod_addresses;
mod policy;
mod root_causes;
mod search_context;
mod symptoms;

pub use case::{Case, Event, HostNote, Log, ReadError, Unreadable};
pub use diagnosis::{
    Change, Consequence, Diagnosis, Evidence, Object, Proof, Remedy, Root, RuledOut, Unexplained, Written,
};
pub use tiphys_cause::Cause;

/// Which workloads call which Services: by the addresses in their configuration, and the cluster's DNS by
/// the lookups of names that fail.
#[must_use]
pub fn calls(case: &Case) -> Vec<(Object, Object)> {
    let cluster = cluster::Cluster::new(case);
    let red = symptoms::symptoms(&cluster);
    let look = search_context::Look::new(&cluster, &red);
    let services = cluster.all("Service").iter().map(|service| Object::from_live(service));
    let calls = services.flat_map(|service| {
        look.callers_of(&service).iter().map(|caller| (caller.clone(), service.clone())).collect::<Vec<_>>()
    });
    let mut calls: Vec<(Object, Object)> = calls.collect();
    calls.extend(causes::dns::lookups(&look));
    calls
}

/// What is wrong in a case, the surest root first.
#[must_use]
pub fn diagnose(case: &Case) -> Diagnosis {
    let cluster = cluster::Cluster::new(case);
    let red = symptoms::symptoms(&cluster);
    let look = search_context::Look::new(&cluster, &red);
    let findings = causes::findings(&look);
    let mut diagnosis = root_causes::resolve(&cluster, &red, findings);
    diagnosis.not_seen = missing_data::not_seen(&look);
    diagnosis
}
