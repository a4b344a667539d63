//! Who is rolled out by an ApplicationSet, step by step.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_value::{ObjectExt, Value};

/// Where each Application, by namespace and name, stands in the rollout of its set, in words.
pub fn standings(sets: &[Arc<Value>]) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for set in sets {
        let apps = set.at(&["status", "applicationStatus"]).and_then(Value::as_array);
        for app in apps.into_iter().flatten() {
            let text = |field: &str| app.str_at(&[field]).unwrap_or_default();
            let told = format!(
                "ApplicationSet {} rolls it out: step {}, {}",
                set.name(),
                text("step"),
                text("status")
            );
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
            {"application": "web-prod", "step": "2", "status": "Waiting"}]}});
        let all = standings(&[Arc::new(set)]);
        let told = &all[&("argocd".to_owned(), "web-prod".to_owned())];
        assert_eq!(told, "ApplicationSet apps rolls it out: step 2, Waiting");
    }
}
