//! Who is rolled out by an ApplicationSet, step by step.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_value::{ObjectExt, Value};

/// The step of an Application that no step selects (Argo CD docs, "Progressive Syncs").
const NO_STEP: &str = "-1";

/// Where each Application, by namespace and name, stands in the rollout of its set, in words.
pub(super) fn standings(sets: &[Arc<Value>]) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for set in sets {
        let apps = set.at(&["status", "applicationStatus"]).and_then(Value::as_array);
        for app in apps.into_iter().flatten() {
            let text = |field: &str| app.str_at(&[field]).unwrap_or_default();
            let (set_name, step) = (set.name(), text("step"));
            let told = if step == NO_STEP {
                format!(
                    "no step of the rollout of ApplicationSet {set_name} selects it, so only a person syncs it"
                )
            } else {
                format!("ApplicationSet {set_name} rolls it out: step {step}, {}", text("status"))
            };
            all.insert((set.namespace().to_owned(), text("application").to_owned()), told);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn an_application_is_told_with_its_step() {
        let set = json!({"metadata": {"name": "apps", "namespace": "argocd"}, "status": {"applicationStatus": [
            {"application": "web-prod", "step": "2", "status": "Waiting"},
            {"application": "web-lost", "step": "-1", "status": "Waiting"}]}});
        let all = standings(&[Arc::new(set)]);
        let told = |name: &str| &all[&("argocd".to_owned(), name.to_owned())];
        assert_eq!(told("web-prod"), "ApplicationSet apps rolls it out: step 2, Waiting");
        assert_eq!(
            told("web-lost"),
            "no step of the rollout of ApplicationSet apps selects it, so only a person syncs it"
        );
    }
}
