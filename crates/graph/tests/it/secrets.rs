//! A survey is only looked at: its charts make no keys.

use std::sync::Arc;

use tiphys_graph::{Input, Survey};
use tiphys_value::Value;
use tiphys_vfs::MemTree;

#[test]
fn every_chart_has_the_same_key() {
    let template = "apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData:\n  key: {{ genPrivateKey \"rsa\" | toJson }}\n  ca: {{ (genCA \"ca\" 1).Key | toJson }}\n";
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let survey = Survey::read(&Input::alone(Arc::new(MemTree::from_files([
        ("one/Chart.yaml", chart("one").as_str()),
        ("one/templates/tls.yaml", template),
        ("two/Chart.yaml", chart("two").as_str()),
        ("two/templates/tls.yaml", template),
    ]))));
    let data = survey.objects.iter().map(|object| &object.value()["stringData"]);
    let keys: Vec<&str> =
        data.flat_map(|data| [&data["key"], &data["ca"]]).filter_map(Value::as_str).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| key.starts_with("-----BEGIN RSA PRIVATE KEY-----") && *key == keys[0]));
}
