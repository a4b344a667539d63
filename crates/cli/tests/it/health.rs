//! `tiphys health` as a user runs it.

use crate::common::Repo;

const OBJECTS: &str = "apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec: {replicas: 1}
  status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings, namespace: shop}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: tls, namespace: shop}
status:
  conditions:
  - {type: Ready, status: \"False\", reason: Denied, message: the issuer refuses}
";

const SETTINGS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data:
  resource.customizations.health.cert-manager.io_Certificate: |
    return {status = 'Suspended', message = 'on purpose'}
  resource.customizations.health.ConfigMap: |
    return {status = 'Healthy', message = obj.metadata.name}
";

#[test]
fn every_object_is_judged_and_the_exit_code_tells_the_worst() {
    let repo = Repo::with(&[("objects.yaml", OBJECTS)]);
    let run = repo.run(&["health", "repo/objects.yaml"]);
    run.expect(1, &["Deployment", "Healthy", "ConfigMap", "Degraded", "Denied: the issuer refuses"]);
    let run = repo.run(&["health", "repo", "--output", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(rows[0]["rule"], "built-in");
    assert_eq!(rows[1]["status"], serde_json::Value::Null);
}

#[test]
fn lua_of_argocd_cm_comes_first() {
    let repo = Repo::with(&[("objects.yaml", OBJECTS), ("cm/argocd-cm.yaml", SETTINGS)]);
    let run =
        repo.run(&["health", "repo/objects.yaml", "--settings", "repo/cm/argocd-cm.yaml", "-o", "yaml"]);
    run.expect(0, &["on purpose", "message: settings", "resource.customizations.health.ConfigMap"]);
}

#[test]
fn what_cannot_be_used_is_wrong_use() {
    let repo = Repo::with(&[("a.yaml", "a: [\n"), ("objects.yaml", OBJECTS)]);
    repo.run(&["health", "repo/a.yaml"]).expect(2, &["a.yaml"]);
    repo.run(&["health", "none.yaml"]).expect(2, &["none.yaml"]);
    repo.run(&["health", "repo/objects.yaml", "--settings", "repo/objects.yaml"])
        .expect(2, &["no ConfigMap argocd-cm"]);
    repo.write("cm.yaml", SETTINGS.replace("'on purpose'}", "'on purpose'"));
    repo.run(&["health", "repo/objects.yaml", "--settings", "repo/cm.yaml"])
        .expect(1, &["warning: resource.customizations.health.cert-manager.io_Certificate: health.lua:"]);
}
