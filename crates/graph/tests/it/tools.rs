//! What the other tools of a repository are seen to write.

use std::{fmt::Write as _, sync::Arc};

use tiphys_graph::{Files, tools::Tools};
use tiphys_vfs::MemTree;

fn writers(files: &[(&str, &str)]) -> String {
    let tree = MemTree::from_files(files.iter().copied());
    let tools = Tools::from_files(&Files::list(Arc::new(tree), ""));
    let mut out = String::new();
    for writer in &tools.writers {
        let namespace = writer.namespace.as_deref().unwrap_or("-");
        let (action, subject) = (writer.action, writer.subject());
        writeln!(out, "{} {action:?} {subject} {namespace}", writer.span).expect("a string takes all");
    }
    out
}

#[test]
fn ansible_tasks_are_read() {
    let defaults =
        "calico_version: v3.27.0\ncalico_url: https://example.com/{{ calico_version }}/calico.yaml\n";
    let tasks = r#"- name: Fetch
  ansible.builtin.get_url:
    url: "{{ calico_url }}"
    dest: /tmp/calico.yaml
- name: Install
  block:
    - name: Apply
      command: kubectl apply -f /tmp/calico.yaml
    - name: Directly
      kubernetes.core.k8s:
        state: present
        src: "{{ calico_url }}"
    - name: Inline
      k8s:
        definition:
          apiVersion: operator.tigera.io/v1
          kind: Installation
          metadata: {name: default}
    - kubernetes.core.helm:
        name: argocd
        chart_ref: argo/argo-cd
        release_namespace: argocd
        release_state: absent
    - shell: |
        set -e
        helm upgrade --install cilium cilium/cilium \
          -n kube-system
"#;
    let found = writers(&[
        ("ansible/roles/cni/defaults/main.yml", defaults),
        ("ansible/roles/cni/tasks/main.yml", tasks),
    ]);
    let expected = "\
ansible/roles/cni/tasks/main.yml:8:7 Apply https://example.com/v3.27.0/calico.yaml -
ansible/roles/cni/tasks/main.yml:10:7 Apply https://example.com/v3.27.0/calico.yaml -
ansible/roles/cni/tasks/main.yml:14:7 Apply Installation/default -
ansible/roles/cni/tasks/main.yml:19:7 Delete chart argo/argo-cd argocd
ansible/roles/cni/tasks/main.yml:26:9 Apply chart cilium/cilium kube-system
";
    assert_eq!(found, expected);
}

#[test]
fn terraform_resources_are_read() {
    let text = r#"resource "helm_release" "argocd" {
  name       = "argocd"
  chart      = "argo-cd"
  repository = "https://example.com/charts"
  namespace  = "argocd"
}
resource "kubernetes_config_map_v1" "aws_auth" {
  metadata {
    name      = "aws-auth"
    namespace = "kube-system"
  }
}
resource "kubectl_manifest" "pool" {
  yaml_body = <<-YAML
    apiVersion: karpenter.sh/v1
    kind: NodePool
    metadata:
      name: default
  YAML
}
resource "kubernetes_manifest" "issuer" {
  manifest = {
    apiVersion = "cert-manager.io/v1"
    kind       = "ClusterIssuer"
    metadata   = { name = "letsencrypt" }
  }
}
"#;
    let expected = "\
main.tf:1:1 Apply chart argo-cd argocd
main.tf:7:1 Apply ConfigMap/aws-auth -
main.tf:13:1 Apply NodePool/default -
main.tf:21:1 Apply ClusterIssuer/letsencrypt -
";
    assert_eq!(writers(&[("main.tf", text)]), expected);
}

#[test]
fn scripts_and_pipelines_are_read() {
    let script = "#!/bin/sh\nVERSION=v1.14\nkubectl apply -f https://example.com/cert-manager/$VERSION/a.yaml\n\
                  kubectl -n shop delete ingress web\nkubectl apply -n shop -f \"${ROOT}/manifests\"\n\
                  curl -sL https://example.com/b.yaml | kubectl create -f -\nhelm uninstall old -n shop\n\
                  kubectl create ns shop --dry-run=client -o yaml | kubectl apply -f -\n";
    let workflow = "on: push\njobs:\n  deploy:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          echo hi\n          \
                    helm upgrade --install web ./chart --namespace shop\n";
    let found = writers(&[
        ("scripts/up.sh", script),
        ("manifests/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        (".github/workflows/deploy.yml", workflow),
    ]);
    let expected = "\
.github/workflows/deploy.yml:8:11 Apply chart ./chart shop
scripts/up.sh:3:1 Apply https://example.com/cert-manager/v1.14/a.yaml -
scripts/up.sh:4:1 Delete ingress/web shop
scripts/up.sh:5:1 Apply manifests shop
scripts/up.sh:6:1 Apply https://example.com/b.yaml -
scripts/up.sh:7:1 Delete chart  shop
scripts/up.sh:8:1 Apply Namespace/shop -
";
    assert_eq!(found, expected);
}
