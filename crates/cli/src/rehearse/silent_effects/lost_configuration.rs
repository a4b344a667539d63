//! Workloads whose pods run and would not start again: a change takes away what they read at their start.

use tiphys_apiserver::Snapshot;
use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, mechanism::Mechanism, story::Story};
use tiphys_value::{ObjectExt, ResourceKey};
use tiphys_world::{Cause as Lack, missing_configuration};

use super::{
    hidden_cause::{hidden_cause, is_told},
    workloads::{is_asked_for, next_pod, workloads},
};

/// Those of which a ConfigMap, Secret or key was there before the change and is not at the end. What pods
/// already fail for is told with them.
pub(super) fn workloads_without(story: &Story, before: &Snapshot, end: &Snapshot) -> Vec<Cause> {
    let asked_for = workloads(end).filter(|workload| is_asked_for(workload));
    asked_for
        .filter_map(|workload| {
            let pod = next_pod(workload)?;
            let lack = missing_configuration(&pod, end)?;
            if missing_configuration(&pod, before).as_ref() == Some(&lack) {
                return None;
            }
            let mechanism = mechanism(workload.namespace(), &lack)?;
            let is_shown = mechanism
                .objects
                .iter()
                .any(|object| is_told(story, &[Id::ConfigMissing, Id::ConfigKeyMissing], object));
            let state = "would not start again";
            (!is_shown).then(|| hidden_cause(workload.resource_key(), mechanism, lack.to_string(), state))
        })
        .collect()
}

fn mechanism(namespace: &str, lack: &Lack) -> Option<Mechanism> {
    let (id, kind, name) = match lack {
        Lack::Missing { kind, name } if kind == "secret" => (Id::ConfigMissing, "Secret", name.as_str()),
        Lack::Missing { name, .. } => (Id::ConfigMissing, "ConfigMap", name.as_str()),
        Lack::MissingKey { kind, name, .. } => {
            let name = name.rsplit_once('/').map_or(name.as_str(), |(_, name)| name);
            (Id::ConfigKeyMissing, kind.as_str(), name)
        }
        _ => return None,
    };
    Some(Mechanism { id, objects: vec![ResourceKey::new("", kind, namespace, name)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_an_object() {
        let of = |lack: &Lack| mechanism("shop", lack).map(|it| (it.id, it.objects));
        let secret = ResourceKey::new("", "Secret", "shop", "db");
        let missing = Lack::Missing { kind: "secret".into(), name: "db".into() };
        assert_eq!(of(&missing), Some((Id::ConfigMissing, vec![secret.clone()])));
        let key = Lack::MissingKey { kind: "Secret".into(), name: "shop/db".into(), key: "password".into() };
        assert_eq!(of(&key), Some((Id::ConfigKeyMissing, vec![secret])));
    }
}
