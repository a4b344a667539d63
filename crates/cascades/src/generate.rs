//! Repositories that are made up: a platform (network, DNS, operators, an admission webhook) and some teams
//! with programs that need each other. What there is, and how it is called, is drawn from a seed.

use tiphys_value::{Value, json};

use crate::{
    random::Random,
    repository::{Need, Repository},
    tree::Tree,
};

/// The address under which Applications name the repository.
pub const URL: &str = "https://git.example.com/acme/platform.git";

struct Maker {
    random: Random,
    tree: Tree,
    /// Rules of containers.
    containers: Vec<Value>,
    needs: Vec<Need>,
}

/// Makes the repository of a seed.
#[must_use]
pub fn generate(seed: u64) -> Repository {
    let mut maker =
        Maker { random: Random::new(seed), tree: Tree::default(), containers: Vec::new(), needs: Vec::new() };
    let network = maker.network();
    maker.dns();
    let has_certificates = maker.random.chance(70);
    if has_certificates {
        maker.certificates();
    }
    let has_stores = maker.random.chance(70);
    if has_stores {
        maker.stores();
    }
    let names = ["shop", "billing", "media", "search", "mail", "fleet"];
    let first = maker.random.below(names.len());
    let count = 2 + maker.random.below(2);
    for at in 0..count {
        maker.team(names[(first + at) % names.len()], has_certificates, has_stores);
    }
    if maker.random.chance(75) {
        maker.webhook();
    }
    let (namespace, name) = &network;
    let rules = json!({
        "containers": maker.containers,
        "nodes": [{"node": "*", "networkBy": {"namespace": namespace, "name": format!("{name}-*")}}],
    });
    Repository {
        name: format!("made-{seed}"),
        tree: maker.tree,
        rules,
        needs: maker.needs,
        network: Some(network),
    }
}

fn metadata(namespace: &str, name: &str) -> Value {
    json!({"name": name, "namespace": namespace, "labels": {"app": name}})
}

impl Maker {
    fn application(&mut self, name: &str, namespace: &str) {
        let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd"},
            "spec": {"project": "default", "source": {"repoURL": URL, "path": name, "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}}});
        self.tree.add(&format!("apps/{name}.yaml"), app);
    }

    fn add(&mut self, file: &str, object: Value) {
        self.tree.add(file, object);
    }

    fn network(&mut self) -> (String, String) {
        let known = [
            ("calico-node", "docker.io/calico/node:v3.28.1"),
            ("cilium", "quay.io/cilium/cilium:v1.15.6"),
            ("kube-flannel-ds", "ghcr.io/flannel-io/flannel:v0.25.4"),
            ("aws-node", "602401143452.dkr.ecr.eu-west-1.amazonaws.com/amazon-k8s-cni:v1.18.2"),
        ];
        let (name, image) = *self.random.pick(&known);
        self.application("network", "kube-system");
        let labels = json!({"k8s-app": name});
        self.add(
            "network/agent.yaml",
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"hostNetwork": true, "priorityClassName": "system-node-critical",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "agent", "image": image}]}}}}),
        );
        ("kube-system".to_owned(), name.to_owned())
    }

    fn dns(&mut self) {
        self.application("dns", "kube-system");
        self.add("dns/class.yaml", json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "nginx"},
            "spec": {"controller": "k8s.io/ingress-nginx"}}));
        let labels = json!({"k8s-app": "kube-dns"});
        let corefile = ".:53 {\n    errors\n    health\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa\n    forward . /etc/resolv.conf\n    cache 30\n    loop\n}\n";
        self.add(
            "dns/config.yaml",
            json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "coredns", "namespace": "kube-system"}, "data": {"Corefile": corefile}}),
        );
        self.add("dns/coredns.yaml", json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "coredns", "namespace": "kube-system", "labels": labels},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"priorityClassName": "system-cluster-critical",
                    "volumes": [{"name": "config", "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}}],
                    "containers": [{"name": "coredns", "image": "registry.k8s.io/coredns/coredns:v1.11.1",
                        "args": ["-conf", "/etc/coredns/Corefile"],
                        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
                        "ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}, {"name": "dns-tcp", "containerPort": 53}],
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}}}]}}}}));
        self.add(
            "dns/service.yaml",
            json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
            "spec": {"clusterIP": "10.96.0.10", "selector": labels, "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]}}),
        );
    }

    /// An operator with its namespace, account, rights and definitions. It needs the API server.
    fn operator(&mut self, name: &str, image: &str, group: &str, kinds: &[(&str, &str, bool)]) {
        self.application(name, name);
        let labels = json!({"app": name});
        self.add(
            &format!("{name}/namespace.yaml"),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        for (kind, plural, is_namespaced) in kinds {
            let scope = if *is_namespaced { "Namespaced" } else { "Cluster" };
            self.add(&format!("{name}/crds.yaml"), json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{group}")},
                "spec": {"group": group, "scope": scope,
                    "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                    "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}));
        }
        self.rights(&format!("{name}/rbac.yaml"), name, name, group);
        self.add(&format!("{name}/deployment.yaml"), json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": metadata(name, name),
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"serviceAccountName": name, "containers": [{"name": "controller", "image": image,
                    "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}}}]}}}}));
        self.needs_kubernetes(name, name);
    }

    fn rights(&mut self, file: &str, namespace: &str, name: &str, group: &str) {
        self.add(file, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}));
        self.add(file, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": format!("{namespace}-{name}")},
            "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": ["*"]},
                {"apiGroups": [""], "resources": ["pods", "secrets", "configmaps", "events"], "verbs": ["get", "list", "watch", "create", "update"]}]}));
        self.add(file, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("{namespace}-{name}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("{namespace}-{name}")},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]}));
    }

    fn needs_kubernetes(&mut self, namespace: &str, workload: &str) {
        self.containers.push(json!({"pods": {"namespace": namespace, "name": format!("{workload}-*")},
            "needs": [{"kubernetes": {}}], "exits": {"code": 1, "after": "30s"}}));
        let [namespace, workload] = [namespace, workload].map(str::to_owned);
        self.needs.push(Need { namespace, workload, service: String::new(), port: 443 });
    }

    fn needs_service(&mut self, namespace: &str, workload: &str, service: &str, port: u16, ends: bool) {
        let mut rule = json!({"pods": {"namespace": namespace, "name": format!("{workload}-*")},
            "needs": [{"service": {"name": service}}]});
        if ends {
            rule["exits"] = json!({"code": 1, "after": "5s"});
        }
        self.containers.push(rule);
        let [namespace, workload, service] = [namespace, workload, service].map(str::to_owned);
        self.needs.push(Need { namespace, workload, service, port });
    }

    fn certificates(&mut self) {
        self.operator(
            "cert-manager",
            "quay.io/jetstack/cert-manager-controller:v1.15.1",
            "cert-manager.io",
            &[("Certificate", "certificates", true), ("ClusterIssuer", "clusterissuers", false)],
        );
        self.application("issuers", "cert-manager");
        self.add(
            "issuers/issuer.yaml",
            json!({"apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer",
            "metadata": {"name": "internal"}, "spec": {"ca": {"secretName": "internal-ca"}}}),
        );
    }

    fn stores(&mut self) {
        self.operator(
            "external-secrets",
            "ghcr.io/external-secrets/external-secrets:v0.9.20",
            "external-secrets.io",
            &[
                ("ExternalSecret", "externalsecrets", true),
                ("ClusterSecretStore", "clustersecretstores", false),
            ],
        );
        self.application("stores", "external-secrets");
        self.add("stores/store.yaml", json!({"apiVersion": "external-secrets.io/v1", "kind": "ClusterSecretStore",
            "metadata": {"name": "vault"}, "spec": {"provider": {"vault": {"server": "https://vault.example.com:8200", "path": "kv"}}}}));
    }

    /// A webhook that judges the workloads of teams, and its program.
    fn webhook(&mut self) {
        let name = *self.random.pick(&["policy-guard", "image-verifier", "quota-guard"]);
        self.application(name, name);
        let labels = json!({"app": name});
        let file = |end: &str| format!("{name}/{end}.yaml");
        self.add(
            &file("namespace"),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        self.rights(&file("rbac"), name, name, "example.com");
        self.add(&file("deployment"), json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name, name),
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"serviceAccountName": name, "containers": [{"name": "webhook", "image": format!("ghcr.io/acme/{name}:1.4.0"),
                    "ports": [{"name": "https", "containerPort": 9443}],
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": "https", "scheme": "HTTPS"}}}]}}}}));
        self.add(
            &file("service"),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, name),
            "spec": {"selector": labels, "ports": [{"name": "https", "port": 443, "targetPort": "https"}]}}),
        );
        self.add(&file("webhook"), json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{"name": format!("{name}.acme.example.com"), "failurePolicy": "Fail", "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
                "clientConfig": {"service": {"name": name, "namespace": name, "path": "/validate"}},
                "namespaceSelector": {"matchLabels": {"team": "true"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]}));
        self.needs_kubernetes(name, name);
    }

    fn team(&mut self, team: &str, has_certificates: bool, has_stores: bool) {
        self.application(team, team);
        let file = |end: &str| format!("{team}/{end}.yaml");
        self.add(&file("namespace"), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team, "labels": {"team": "true"}}}));
        let database = *self.random.pick(&["postgres", "ledger", "store"]);
        self.database(team, database, has_stores);
        let api = *self.random.pick(&["api", "orders", "catalog"]);
        let web = *self.random.pick(&["web", "gateway", "frontend"]);
        let ends = self.random.chance(50);
        self.program(team, api, 8080, Some((database, 5432)), ends);
        self.program(team, web, 8080, Some((api, 80)), false);
        if self.random.chance(60) {
            let cache = *self.random.pick(&["cache", "redis"]);
            self.program(team, cache, 6379, None, false);
        }
        if self.random.chance(60) {
            let worker = *self.random.pick(&["worker", "janitor", "scheduler-agent"]);
            self.rights(&file(worker), team, worker, "batch");
            let labels = json!({"app": worker});
            self.add(&file(worker), json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(team, worker),
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                    "spec": {"serviceAccountName": worker, "containers": [{"name": worker, "image": format!("registry.acme.example.com/{team}/{worker}:0.9.1")}]}}}}));
            self.needs_kubernetes(team, worker);
        }
        let host = format!("{web}.{team}.example.com");
        self.add(&file("ingress"), json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": web, "namespace": team},
            "spec": {"ingressClassName": "nginx", "tls": [{"hosts": [host], "secretName": format!("{web}-tls")}],
                "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix",
                    "backend": {"service": {"name": web, "port": {"number": 80}}}}]}}]}}));

        let secret = format!("{web}-tls");
        if has_certificates {
            self.add(&file("certificate"), json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": web, "namespace": team},
                "spec": {"secretName": secret, "dnsNames": [host], "issuerRef": {"name": "internal", "kind": "ClusterIssuer"}}}));
        } else {
            self.add(
                &file("certificate"),
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": team},
                "type": "kubernetes.io/tls", "data": {"tls.crt": "c2ltdWxhdGVk", "tls.key": "c2ltdWxhdGVk"}}),
            );
        }
        if self.random.chance(50) {
            self.add(&file("migrate"), json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "migrate", "namespace": team, "annotations": {"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation"}},
                "spec": {"backoffLimit": 1, "template": {"spec": {"restartPolicy": "Never",
                    "containers": [{"name": "migrate", "image": format!("registry.acme.example.com/{team}/migrate:1.0.0")}]}}}}));
        }
    }

    fn database(&mut self, team: &str, name: &str, has_stores: bool) {
        let file = format!("{team}/{name}.yaml");
        let labels = json!({"app": name});
        let secret = format!("{name}-credentials");
        if has_stores {
            self.add(&file, json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": secret, "namespace": team},
                "spec": {"secretStoreRef": {"name": "vault", "kind": "ClusterSecretStore"}, "target": {"name": secret},
                    "data": [{"secretKey": "password", "remoteRef": {"key": format!("{team}/{name}"), "property": "password"}}]}}));
        } else {
            self.add(&file, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": team}, "stringData": {"password": "simulated"}}));
        }
        self.add(
            &file,
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(team, name),
            "spec": {"selector": labels, "ports": [{"name": "sql", "port": 5432, "targetPort": 5432}]}}),
        );
        self.add(&file, json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(team, name),
            "spec": {"replicas": 1, "serviceName": name, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "postgres", "image": "docker.io/library/postgres:16.3",
                    "env": [{"name": "POSTGRES_PASSWORD", "valueFrom": {"secretKeyRef": {"name": secret, "key": "password"}}}],
                    "ports": [{"name": "sql", "containerPort": 5432}],
                    "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
                    "readinessProbe": {"exec": {"command": ["pg_isready"]}},
                    "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql"}]}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
                    "resources": {"requests": {"storage": "10Gi"}}}}]}}));
    }

    fn program(&mut self, team: &str, name: &str, port: u16, needs: Option<(&str, u16)>, ends: bool) {
        let file = format!("{team}/{name}.yaml");
        let labels = json!({"app": name});
        let settings = format!("{name}-settings");
        let mut data = json!({"LOG_LEVEL": "info"});
        if let Some((service, port)) = needs {
            data["UPSTREAM"] = format!("{service}.{team}.svc.cluster.local:{port}").into();
        }
        self.add(&file, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": settings, "namespace": team}, "data": data}));
        self.add(&file, json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(team, name),
            "spec": {"selector": labels, "ports": [{"name": "http", "port": if needs.is_some() { 80 } else { port }, "targetPort": "http"}]}}));
        let replicas = 1 + self.random.below(2);
        let mut container = json!({"name": name, "image": format!("registry.acme.example.com/{team}/{name}:1.{}.0", self.random.below(9)),
            "envFrom": [{"configMapRef": {"name": settings}}],
            "ports": [{"name": "http", "containerPort": port}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}});
        container["readinessProbe"] = match needs {
            Some(_) => json!({"httpGet": {"path": "/healthz", "port": "http"}}),
            None => json!({"tcpSocket": {"port": "http"}}),
        };
        self.add(&file, json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(team, name),
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [container]}}}}));
        if let Some((service, port)) = needs {
            self.needs_service(team, name, service, port, ends);
        }
        if self.random.chance(30) {
            self.add(&file, json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": team},
                "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "minReplicas": replicas, "maxReplicas": 5,
                    "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]}}));
        }
        if self.random.chance(30) {
            self.add(&file, json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": team},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}}}));
        }
    }
}
