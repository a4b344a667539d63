//! The CustomResourceDefinitions that an engine needs in its cluster.

use tiphys_value::Value;

/// Application, ApplicationSet and AppProject with their structural schemas, see [`tiphys_model::crd`].
pub fn definitions() -> Vec<Value> {
    tiphys_model::crd::definitions()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn application() -> Value {
        let kind = |definition: &Value| definition["spec"]["names"]["kind"] == "Application";
        definitions().into_iter().find(kind).expect("defined")
    }

    #[test]
    fn what_an_operation_keeps_for_itself_survives_pruning() {
        let schema = tiphys_schema::crd_version_schema(&application(), "v1alpha1").expect("schema");
        let mut app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "a"}, "spec": {"project": "p", "destination": {"namespace": "n"}},
            "status": {"operationState": {"phase": "Running", "tiphys": {"waits": [{"kind": "Hook"}]}}}});
        assert!(schema.prune(&mut app).is_empty());
        assert_eq!(app["status"]["operationState"]["tiphys"]["waits"][0]["kind"], "Hook");
    }

    #[test]
    fn lists_of_applications_show_sync_and_health() {
        let columns = &application()["spec"]["versions"][0]["additionalPrinterColumns"];
        assert_eq!(columns[0]["name"], "Sync Status");
        assert_eq!(columns[1]["name"], "Health Status");
    }
}
