//! What playbooks, scripts, pipelines, Terraform and the sources of Applications ask for, each beside a good
//! one.

use crate::common::found;

#[test]
fn keywords_of_ansible_have_values_of_their_kind() {
    let of_task = |task: &str| found("G2-keyword-values", &[("roles/node/tasks/main.yml", task)]);
    for (task, message) in [
        ("- name: a\n  command: id\n  register: join-command\n", "Invalid variable name in 'register'"),
        ("- name: a\n  command: id\n  when: role = 'server'\n", "unexpected '='"),
        ("- name: a\n  command: id\n  until: a.rc == 0 && b\n", "unexpected '&&'"),
        ("- name: a\n  command: id\n  retries: ten\n", "could not be converted to int"),
        ("- name: a\n  command: id\n  become: root\n", "could not be converted to bool"),
        ("- name: a\n  command: id\n  loop: nodes\n", "it requires a list"),
        ("- name: a\n  command: id\n  vars: name=x\n", "Vars must be specified"),
        ("- name: a\n  when: b\n- name: c\n  command: id\n", "no module/action detected"),
        ("- name: a\n  block: install\n- name: c\n  command: id\n", "A malformed block"),
    ] {
        let found = of_task(task);
        assert!(matches!(&found[..], [only] if only.contains(message)), "{task}{found:?}");
    }
    let of_play = |play: &str| found("G2-keyword-values", &[("ansible/site.yml", play)]);
    let wrong = of_play("- hosts: all\n  task:\n    - command: id\n  tasks:\n    - command: id\n");
    assert!(matches!(&wrong[..], [only] if only.contains("'task' is not a valid attribute")), "{wrong:?}");
    for good in [
        "- name: a\n  command: id\n  register: joined\n  retries: '{{ n }}'\n  delay: 5\n  until: joined.rc == 0 and (x | default(a=1))\n",
        "- name: a\n  block:\n    - command: id\n  rescue:\n    - debug: {msg: a}\n  when:\n    - a is defined\n    - b\n",
        "- name: a\n  shell: |\n    id\n  loop: '{{ nodes }}'\n  become: 'yes'\n  vars: {name: x}\n  no_log: true\n",
        "- <<: *base\n  name: a\n",
        "- import_tasks: a.yml\n  when: a\n",
    ] {
        assert!(of_task(good).is_empty(), "{good}{:?}", of_task(good));
    }
    assert!(of_play("- hosts: all\n  gather_facts: no\n  serial: 1\n  roles: [node]\n  tasks:\n").is_empty());
}

#[test]
fn a_kubelet_gives_only_the_labels_that_it_may() {
    let of = |path: &str, text: &str| found("C2-node-labels", &[(path, text)]);
    for (path, text) in [
        ("nodes.sh", "kubelet --node-labels=a=b,node-role.kubernetes.io/worker=true\n"),
        ("main.tf", "locals {\n  extra = \"--node-labels=kubernetes.io/role=worker\"\n}\n"),
        ("config.yaml", "token: a\nnode-label:\n  - a=b\n  - \"node-role.kubernetes.io/worker=true\"\n"),
        ("kubeadm.yaml", "kubeletExtraArgs:\n  node-labels: \"node-role.kubernetes.io/worker=\"\n"),
    ] {
        assert_eq!(of(path, text).len(), 1, "{text}");
    }
    for (path, text) in [
        ("nodes.sh", "kubelet --node-labels=node.kubernetes.io/role=worker,a.example.com/b=c\n"),
        ("nodes.sh", "# kubelet --node-labels=node-role.kubernetes.io/worker=true\n"),
        ("nodes.sh", "gcloud container node-pools create a \\\n  --node-labels=kubernetes.io/role=worker\n"),
        ("nodes.sh", "kubectl label node a node-role.kubernetes.io/worker=true\n"),
    ] {
        assert!(of(path, text).is_empty(), "{text}");
    }
}

#[test]
fn commands_apply_files_that_are_there() {
    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let of = |path: &str, text: &str| {
        found(
            "G6-missing-manifest",
            &[("bootstrap/root.yaml", MAP), ("bootstrap/other.yaml", MAP), (path, text)],
        )
    };
    let play = |command: &str| format!("- hosts: all\n  tasks:\n    - shell: {command}\n");
    for (path, text) in [
        ("up.sh", "kubectl apply -f bootstrap/root-app.yaml\n".to_owned()),
        ("up.sh", "kubectl apply -f old/root.yaml\n".to_owned()),
        (".github/workflows/up.yml", "jobs:\n  a:\n    steps:\n      - run: kubectl apply -n a -f bootstrap/rot.yaml\n".to_owned()),
        ("main.tf", "resource \"null_resource\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"kubectl apply -f bootstrap/rot.yaml\"\n  }\n}\n".to_owned()),
        ("site.yml", play("kubectl apply -f bootstrap/rot.yaml")),
    ] {
        assert_eq!(of(path, &text).len(), 1, "{text}");
    }
    for (path, text) in [
        ("up.sh", "kubectl apply -f bootstrap/root.yaml\n"),
        ("up.sh", "kubectl apply -f bootstrap/$name.yaml\n"),
        ("up.sh", "sed s/a/b/ form > bootstrap/made.yaml\nkubectl apply -f bootstrap/made.yaml\n"),
        ("up.sh", "cd elsewhere\nkubectl apply -f bootstrap/made.yaml\n"),
        ("up.sh", "kubectl apply -f elsewhere/made.yaml\n"),
        ("up.sh", "[ -f bootstrap/more.yaml ] && kubectl apply -f bootstrap/more.yaml\n"),
    ] {
        assert!(of(path, text).is_empty(), "{text}");
    }
}

#[test]
fn one_branch_that_is_left_over_is_told() {
    let of = |branch: &str, usual: &str| {
        let app = |name: &str, revision: &str| {
            format!(
                "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  source: {{repoURL: 'https://git.example.com/x', path: {name}, targetRevision: '{revision}'}}\n  destination: {{server: 'https://kubernetes.default.svc', namespace: {name}}}\n"
            )
        };
        let mut apps: String = ["a", "b", "c", "d", "e"].map(|name| app(name, usual)).concat();
        apps.push_str(&app("f", branch));
        let mut files = vec![("apps.yaml".to_owned(), apps)];
        for name in ["a", "b", "c", "d", "e", "f"] {
            let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
            files.push((format!("{name}/map.yaml"), map));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        found("D2-odd-branch", &files)
    };
    assert_eq!(of("feature/new", "main").len(), 1);
    assert_eq!(of("feature/new", "HEAD").len(), 1);
    assert!(of("HEAD", "main").is_empty());
    assert!(of("v1.2.0", "main").is_empty());
}

#[test]
fn an_ingress_needs_its_controller_to_be_admitted() {
    const APPS: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x', path: web}\n  destination: {server: 'https://kubernetes.default.svc', namespace: web}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: ingress-nginx, namespace: argocd}\nspec:\n  project: default\n  source: {repoURL: 'https://kubernetes.github.io/ingress-nginx', chart: ingress-nginx, targetRevision: 4.12.0}\n  destination: {server: 'https://kubernetes.default.svc', namespace: ingress-nginx}\n";
    let of = |from: &str, class: &str| {
        let web = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{automountServiceAccountToken: false, containers: [{{name: web, image: 'example.com/web:1', ports: [{{containerPort: 8080}}]}}]}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec:\n  ingressClassName: {class}\n  rules: [{{http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}}}]\n---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: web}}\nspec: {{podSelector: {{matchLabels: {{app: web}}}}, policyTypes: [Ingress], ingress: [{{from: [{from}]}}]}}\n"
        );
        found("F1-ingress-blocked", &[("apps.yaml", APPS), ("web/web.yaml", &web)])
    };
    let told = of("{podSelector: {}}", "nginx");
    assert!(
        matches!(&told[..], [only] if only.starts_with("the Ingress controller cannot reach")),
        "{told:?}"
    );
    let admitted = "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress-nginx}}}";
    assert!(of(admitted, "nginx").is_empty());
    // Of another class it is not known where the packets come from.
    assert!(of("{podSelector: {}}", "alb").is_empty());
}

#[test]
fn a_kind_that_two_operators_have_is_named_with_its_group() {
    let of = |word: &str, other: &str| {
        let script = format!(
            "#!/bin/sh\nkubectl -n \"$CNPG_NAMESPACE\" wait --for=condition=ready pod/a\nphase=$(kubectl -n \"$CNPG_NAMESPACE\" get {word} \"$name\" -o json)\n"
        );
        let objects = format!(
            "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {{name: db, namespace: db}}\nspec: {{instances: 1, storage: {{size: 1Gi}}}}\n---\napiVersion: {other}\nmetadata: {{name: all, namespace: store}}\n"
        );
        let files = [("db/objects.yaml", objects.as_str()), ("scripts/wait.sh", &script)];
        found("G1-command-target", &files).iter().filter(|it| it.contains("to kubectl")).count()
    };
    assert_eq!(of("backup", "longhorn.io/v1beta2\nkind: RecurringJob"), 1);
    assert_eq!(of("backups.postgresql.cnpg.io", "longhorn.io/v1beta2\nkind: RecurringJob"), 0);
    assert_eq!(of("backup", "v1\nkind: ConfigMap"), 0);
    // This one comes behind cnpg.
    assert_eq!(of("backup", "velero.io/v1\nkind: Schedule"), 0);
}
