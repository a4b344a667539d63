//! Workloads that a change gives another ServiceAccount, while their rights stay with the one before, and
//! those from whose ServiceAccount it takes all rights.

use std::collections::BTreeSet;

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, mechanism::Mechanism};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::{
    hidden_cause::hidden_cause,
    workloads::{is_asked_for, same_in, workloads},
};

/// Workloads that had rights before the change and have none at the end, although a binding still gives them
/// to the account that they ran as. Where nobody binds them any more, or others run as that account, it is
/// meant so.
pub(super) fn moved_workloads(before: &Snapshot, end: &Snapshot) -> Vec<Cause> {
    let asked_for = workloads(end).filter(|workload| is_asked_for(workload));
    asked_for
        .filter_map(|workload| {
            let (old, new) = (account(same_in(before, workload)?), account(workload));
            if old == new {
                return None;
            }
            let namespace = workload.namespace();
            let is_left = !workloads(end).any(|it| it.namespace() == namespace && account(it) == old);
            if !is_left || !uses_token(workload) || !bindings(end, namespace, new).is_empty() {
                return None;
            }
            let had = bindings(before, namespace, old);
            let left: Vec<&Value> =
                bindings(end, namespace, old).into_iter().filter(|it| contains(&had, it)).collect();
            let first = left.first()?;
            let text = format!(
                "its account {new:?} has no rights: {} {:?} still gives those of {} {:?} to {old:?}",
                first.kind(),
                first.name(),
                first.str_at(&["roleRef", "kind"]).unwrap_or("Role"),
                first.str_at(&["roleRef", "name"]).unwrap_or_default(),
            );
            let objects: BTreeSet<ResourceKey> = left.iter().map(|binding| binding.resource_key()).collect();
            let mechanism = Mechanism { id: Id::ApiRbac, objects: objects.into_iter().collect() };
            Some(hidden_cause(workload.resource_key(), mechanism, text, "has lost its rights"))
        })
        .collect()
}

/// Workloads that run as an account of their own, which was bound to roles before the change and is bound to
/// none at the end. Where some of its rights are left, it is meant so.
pub(super) fn bereft_workloads(before: &Snapshot, end: &Snapshot) -> Vec<Cause> {
    let asked_for = workloads(end).filter(|workload| is_asked_for(workload));
    asked_for
        .filter_map(|workload| {
            let own = account(workload);
            let is_own = own != "default" && same_in(before, workload).is_some_and(|old| account(old) == own);
            if !is_own || !uses_token(workload) || !bindings(end, workload.namespace(), own).is_empty() {
                return None;
            }
            let had = bindings(before, workload.namespace(), own);
            let first = had.first()?;
            let text =
                format!("its account {own:?} has no rights: {} {:?} is gone", first.kind(), first.name());
            let objects = had.iter().map(|binding| binding.resource_key()).collect();
            let mechanism = Mechanism { id: Id::ApiRbac, objects };
            Some(hidden_cause(workload.resource_key(), mechanism, text, "has lost its rights"))
        })
        .collect()
}

/// Whether pods of a workload can show who they are.
fn uses_token(workload: &Value) -> bool {
    let mounts = workload.at(&["spec", "template", "spec", "automountServiceAccountToken"]);
    mounts.is_none_or(|mounts| *mounts != Value::Bool(false))
}

fn contains(all: &[&Value], wanted: &Value) -> bool {
    all.iter().any(|one| one.resource_key() == wanted.resource_key())
}

/// The ServiceAccount that pods of a workload run as.
fn account(workload: &Value) -> &str {
    let spec = ["spec", "template", "spec"];
    let named = |field: &str| workload.at(&spec)?.str_at(&[field]).filter(|name| !name.is_empty());
    named("serviceAccountName").or_else(|| named("serviceAccount")).unwrap_or("default")
}

/// The bindings that name a ServiceAccount.
fn bindings<'a>(snapshot: &'a Snapshot, namespace: &str, account: &str) -> Vec<&'a Value> {
    let of = |plural: &str, place: Option<&str>| {
        snapshot.list(&ResourceId::new("rbac.authorization.k8s.io", plural), place)
    };
    let all = of("clusterrolebindings", None).chain(of("rolebindings", None)).map(|object| object.value());
    all.filter(|binding| {
        let subjects = binding.at(&["subjects"]).and_then(Value::as_array);
        subjects.into_iter().flatten().any(|subject| {
            subject.str_at(&["kind"]) == Some("ServiceAccount")
                && subject.str_at(&["name"]) == Some(account)
                && subject.str_at(&["namespace"]) == Some(namespace)
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn pods_run_as_default_where_nothing_is_named() {
        let workload = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        assert_eq!(account(&workload(json!({"serviceAccountName": "dns"}))), "dns");
        assert_eq!(account(&workload(json!({"serviceAccount": "dns"}))), "dns");
        assert_eq!(account(&workload(json!({}))), "default");
    }
}
