//! Workloads whose pods run on though a change has the API server refuse the next one: the level of a
//! namespace, limits, a policy, or a class that is gone.

use tiphys_apiserver::{ApiError, ApiServer};
use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, fault::MANAGER, mechanism::refused, story::Story};
use tiphys_value::{GroupVersionResource, ObjectExt, Value};

use super::{
    hidden_cause::hidden_cause,
    workloads::{is_asked_for, next_pod, same_in, workloads},
};

/// Those of which a pod would have been taken before the change, and would not be at the end. What is told
/// of a workload already is not told again; quotas count the pods that are there.
pub(in crate::rehearse) fn refused_workloads(
    story: &Story,
    before: &ApiServer,
    end: &ApiServer,
) -> Vec<Cause> {
    let (was, is) = (before.snapshot(), end.snapshot());
    let asked_for = workloads(&is).filter(|workload| is_asked_for(workload));
    asked_for
        .filter_map(|workload| {
            let key = workload.resource_key();
            let is_told = story
                .causes
                .iter()
                .any(|cause| cause.objects.contains(&key) || cause.consequences.contains(&key));
            let old = same_in(&was, workload).filter(|_| !is_told)?;
            let error = try_pod(end, workload).err()?;
            let mechanism = refused(workload.namespace(), error.message())?;
            let is_new = mechanism.id != Id::AdmitQuota && try_pod(before, old).is_ok();
            let text = error.message().to_owned();
            is_new.then(|| hidden_cause(key, mechanism, text, "would get no further pod"))
        })
        .collect()
}

/// Asks the API server for the next pod of a workload, without making it.
fn try_pod(server: &ApiServer, workload: &Value) -> Result<(), ApiError> {
    let Some(pod) = next_pod(workload) else { return Ok(()) };
    let pods = GroupVersionResource::new("", "v1", "pods");
    server.client(MANAGER).dry_run().create(&pods, workload.namespace(), pod).map(drop)
}
