//! What real clusters have and no repository brings: classes of storage, runtimes and priorities, load
//! balancers of other classes, nodes with the labels and devices that pods ask for. Something stands in for
//! what nothing brings.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_cluster::{Cluster, LiveCache, PatchType};
use tiphys_diag::similar_names::nearest_slip_beside_numbers;
use tiphys_value::{GroupKind, GroupVersionKind, ObjectExt, Value, json};

use super::{FIELD_MANAGER, apply_options, placeholder_kinds, placeholder_nodes::Nodes};

/// The annotation of the class of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// What has pods, and thereby their classes.
const WORKLOADS: [(&str, &str); 5] =
    [("", "Pod"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")];

/// The claim that names a volume.
type Claim = Arc<Value>;

/// What is missing in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Presupposed {
    storage: BTreeSet<String>,
    /// Volumes that claims name, by name, with those claims.
    volumes: BTreeMap<String, Claim>,
    runtimes: BTreeSet<String>,
    priorities: BTreeSet<String>,
    /// ServiceAccounts of Argo CD's own parts that pods run as, by namespace and name.
    accounts: BTreeSet<(String, String)>,
    nodes: Nodes,
    /// Services that wait for an address, by namespace and name, and their class.
    balancers: BTreeMap<(String, String), String>,
}

/// What is missing in a cluster, and stands among the objects of no Application.
pub(super) fn missing(cache: &LiveCache) -> Presupposed {
    let mut found = Presupposed {
        storage: classes_of_claims(cache),
        volumes: volumes_of_claims(cache),
        ..Presupposed::default()
    };
    for (group, kind) in WORKLOADS {
        for object in cache.of_kind(&GroupKind::new(group, kind)) {
            let spec = if kind == "Pod" { &["spec"][..] } else { &["spec", "template", "spec"] };
            let Some(spec) = object.at(spec) else { continue };
            let name = |field: &str| spec.str_at(&[field]).filter(|name| !name.is_empty()).map(str::to_owned);
            found.runtimes.extend(name("runtimeClassName"));
            found.priorities.extend(name("priorityClassName"));
            let account = name("serviceAccountName").filter(|name| is_of_argo_cd(name));
            found.accounts.extend(account.map(|name| (object.namespace().to_owned(), name)));
        }
    }
    let accounts = cache.of_kind(&GroupKind::new("", "ServiceAccount"));
    // What Applications bring is only read where something is missing, which hardly anything ever is.
    let brought_accounts = LazyCell::new(|| brought(cache, "ServiceAccount"));
    found.accounts.retain(|(namespace, name)| {
        let is_it = |it: &Arc<Value>| it.namespace() == namespace && it.name() == name;
        !accounts.iter().any(is_it) && !brought_accounts.contains(name)
    });
    found.nodes = Nodes::missing(cache);
    let services = cache.of_kind(&GroupKind::new("", "Service"));
    found.balancers = services.iter().filter_map(|service| waiting_balancer(service)).collect();
    for (group, kind, names) in [
        ("storage.k8s.io", "StorageClass", &mut found.storage),
        ("node.k8s.io", "RuntimeClass", &mut found.runtimes),
        ("scheduling.k8s.io", "PriorityClass", &mut found.priorities),
    ] {
        let there = cache.of_kind(&GroupKind::new(group, kind));
        let brought = LazyCell::new(|| brought(cache, kind));
        names.retain(|name| !there.iter().any(|class| class.name() == name) && !brought.contains(name));
    }
    found
}

/// Whether a name is that of a ServiceAccount of an installation of Argo CD: that of its manifests, or of its
/// operator, which puts the name of the installation before it. Hooks that look at the cluster like to run as
/// one.
fn is_of_argo_cd(name: &str) -> bool {
    const PARTS: [&str; 3] =
        ["argocd-application-controller", "argocd-applicationset-controller", "argocd-server"];
    PARTS.iter().any(|part| name.strip_suffix(part).is_some_and(|of| of.is_empty() || of.ends_with('-')))
}

/// The classes of claims that wait, of which there is no free volume.
fn classes_of_claims(cache: &LiveCache) -> BTreeSet<String> {
    let class = |object: &Value| object.str_at(&["spec", "storageClassName"]).unwrap_or_default().to_owned();
    let volumes = cache.of_kind(&GroupKind::new("", "PersistentVolume"));
    // What another claim has helps nobody.
    let free = volumes.iter().filter(|volume| volume.str_at(&["status", "phase"]) != Some("Bound"));
    let of_volumes: BTreeSet<String> = free.map(|volume| class(volume)).collect();
    let claims = cache.of_kind(&GroupKind::new("", "PersistentVolumeClaim"));
    let waiting = claims.iter().filter(|claim| claim.str_at(&["status", "phase"]) == Some("Pending"));
    waiting.map(|claim| class(claim)).filter(|name| !name.is_empty() && !of_volumes.contains(name)).collect()
}

/// The volumes that claims wait for by name, and that neither are there nor brought: somebody made them by
/// hand.
fn volumes_of_claims(cache: &LiveCache) -> BTreeMap<String, Claim> {
    let there = cache.of_kind(&GroupKind::new("", "PersistentVolume"));
    let brought = LazyCell::new(|| brought(cache, "PersistentVolume"));
    let claims = cache.of_kind(&GroupKind::new("", "PersistentVolumeClaim"));
    let waiting = claims.into_iter().filter(|claim| claim.str_at(&["status", "phase"]) == Some("Pending"));
    let named = waiting.filter_map(|claim| {
        let name = claim.str_at(&["spec", "volumeName"]).filter(|name| !name.is_empty())?.to_owned();
        Some((name, claim))
    });
    named
        .filter(|(name, _)| !there.iter().any(|volume| volume.name() == name) && !brought.contains(name))
        .collect()
}

/// A volume that suits a claim.
fn volume_for(name: &str, claim: &Value) -> Value {
    let spec = |path: &[&str]| claim.at(&[&["spec"], path].concat()).cloned();
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": spec(&["resources", "requests", "storage"]).unwrap_or_else(|| "1Gi".into())},
            "accessModes": spec(&["accessModes"]).unwrap_or_else(|| json!(["ReadWriteOnce"])),
            "storageClassName": spec(&["storageClassName"]).unwrap_or_else(|| "".into()),
            "volumeMode": spec(&["volumeMode"]).unwrap_or_else(|| "Filesystem".into()),
            "claimRef": {"namespace": claim.namespace(), "name": claim.name()},
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": format!("/var/lib/stands-in/{name}")},
        },
    })
}

/// A ServiceAccount, and the role that Argo CD gives its own.
fn account(namespace: &str, name: &str) -> [Value; 2] {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("stands-in:{namespace}:{name}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
    });
    [account, binding]
}

/// The names of the objects of a kind that Applications bring.
fn brought(cache: &LiveCache, kind: &str) -> BTreeSet<String> {
    let resources = placeholder_kinds::applications(cache).flat_map(|app| app.status.resources);
    let of_kind = resources.filter(|resource| resource.kind == kind);
    of_kind.map(|resource| resource.name).collect()
}

/// The names of one kind.
fn names_of_kind<'a>(all: &'a BTreeSet<(String, String)>, kind: &'a str) -> impl Iterator<Item = &'a str> {
    all.iter().filter(move |(own, _)| own == kind).map(|(_, name)| name.as_str())
}

/// A Service that waits for a load balancer of another class than the cluster's own.
fn waiting_balancer(service: &Value) -> Option<((String, String), String)> {
    let class = service.str_at(&["spec", "loadBalancerClass"]).filter(|class| !class.is_empty())?;
    let has_address = service.at(&["status", "loadBalancer", "ingress"]).is_some();
    let is_balanced = service.str_at(&["spec", "type"]) == Some("LoadBalancer");
    let place = (service.namespace().to_owned(), service.name().to_owned());
    (is_balanced && !has_address).then(|| (place, class.to_owned()))
}

impl Presupposed {
    /// Whether nothing is missing.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same without what the repository itself brings, by kind and name, be it later: who waits for that
    /// waits for an order that never comes on a real cluster either, and must be told so. Nor does anything
    /// stand in for a name that is mistyped.
    pub(super) fn without(mut self, brought: &BTreeSet<(String, String)>) -> Self {
        let is_brought = |kind: &str, name: &str| {
            brought.contains(&(kind.to_owned(), name.to_owned()))
                || nearest_slip_beside_numbers(name, names_of_kind(brought, kind)).is_some()
        };
        self.storage.retain(|name| !is_brought("StorageClass", name));
        self.volumes.retain(|name, _| !is_brought("PersistentVolume", name));
        self.runtimes.retain(|name| !is_brought("RuntimeClass", name));
        self.priorities.retain(|name| !is_brought("PriorityClass", name));
        self.accounts.retain(|(_, name)| !is_brought("ServiceAccount", name));
        self
    }

    /// Leaves out kinds of which all that there are are known.
    pub(super) fn leave_out(&mut self, kinds: &BTreeSet<&'static str>) {
        for kind in kinds {
            match *kind {
                "Node" => self.nodes = Nodes::default(),
                "StorageClass" => self.storage.clear(),
                "RuntimeClass" => self.runtimes.clear(),
                "PriorityClass" => self.priorities.clear(),
                _ => {}
            }
        }
    }

    /// Takes up what is missing, and returns what of it is new.
    pub(super) fn add(&mut self, mut found: Self) -> Self {
        found.storage.retain(|name| self.storage.insert(name.clone()));
        found.volumes.retain(|name, claim| self.volumes.insert(name.clone(), claim.clone()).is_none());
        found.runtimes.retain(|name| self.runtimes.insert(name.clone()));
        found.priorities.retain(|name| self.priorities.insert(name.clone()));
        found.accounts.retain(|account| self.accounts.insert(account.clone()));
        found.nodes = self.nodes.add(found.nodes);
        found.balancers.retain(|place, class| self.balancers.insert(place.clone(), class.clone()).is_none());
        found
    }

    /// What is to be told, one line each.
    pub(super) fn notices(&self) -> Vec<String> {
        let classes: BTreeSet<String> = self.balancers.values().cloned().collect();
        let nodes = self.nodes.descriptions();
        let volumes: BTreeSet<String> = self.volumes.keys().cloned().collect();
        let accounts = self.accounts.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        let lines = [
            ("storage classes that nothing in reach brings are there, with volumes at once", &self.storage),
            ("volumes that claims name and nothing in reach brings are there", &volumes),
            ("runtime classes that nothing in reach brings are there", &self.runtimes),
            ("priority classes that nothing in reach brings are there, of priority 0", &self.priorities),
            ("ServiceAccounts of Argo CD itself are there, with all rights", &accounts),
            ("load balancers of these classes are played", &classes),
            ("nodes that pods ask for have joined", &nodes),
        ];
        let filled = lines.into_iter().filter(|(_, names)| !names.is_empty());
        let joined =
            |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        filled
            .map(|(what, names)| format!("{what} (--stand-ins never leaves them out): {}", joined(names)))
            .collect()
    }

    /// Puts all of it into a cluster.
    ///
    /// # Errors
    /// The cluster refuses something.
    pub(super) async fn provide(&self, cluster: &Cluster, cache: &LiveCache) -> anyhow::Result<()> {
        let volumes = self.volumes.iter().map(|(name, claim)| volume_for(name, claim));
        let accounts = self.accounts.iter().flat_map(|(namespace, name)| account(namespace, name));
        for object in self.classes(cache).into_iter().chain(volumes).chain(accounts) {
            cluster.apply(&object, &apply_options()).await?;
        }
        self.nodes.join(cluster, cache).await?;
        let services = cluster.resource(&GroupVersionKind::new("", "v1", "Service")).await?;
        for (at, (namespace, name)) in self.balancers.keys().enumerate() {
            let ingress = json!([{"ip": format!("198.51.100.{}", 1 + at % 254), "ipMode": "VIP"}]);
            let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
            cluster
                .patch(&services, (namespace, name), "status", PatchType::Merge, &status, FIELD_MANAGER)
                .await?;
        }
        Ok(())
    }

    fn classes(&self, cache: &LiveCache) -> Vec<Value> {
        let known = cache.of_kind(&GroupKind::new("storage.k8s.io", "StorageClass"));
        let own = known.iter().find(|class| class.annotation(DEFAULT_CLASS) == Some("true"));
        let storage = own.into_iter().flat_map(|own| {
            self.storage.iter().map(|name| {
                let mut class = (**own).clone();
                class["metadata"] = json!({"name": name});
                // What a class does that says nothing.
                class["volumeBindingMode"] = "Immediate".into();
                class
            })
        });
        let runtimes = self.runtimes.iter().map(|name| {
            json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name})
        });
        let priorities = self.priorities.iter().map(|name| {
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 0})
        });
        storage.chain(runtimes).chain(priorities).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_that_a_claim_names_suits_it() {
        let claim = json!({"metadata": {"namespace": "n", "name": "data"}, "spec": {"volumeName": "pv", "storageClassName": "fast",
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "5Gi"}}}});
        let volume = volume_for("pv", &claim);
        assert_eq!(volume["spec"]["claimRef"], json!({"namespace": "n", "name": "data"}));
        assert_eq!(
            (&volume["spec"]["capacity"]["storage"], &volume["spec"]["storageClassName"]),
            (&json!("5Gi"), &json!("fast"))
        );
        assert_eq!(volume["spec"]["accessModes"], json!(["ReadWriteMany"]));
    }

    #[test]
    fn nothing_stands_in_for_a_name_that_is_mistyped() {
        let missing =
            |name: &str| Presupposed { storage: [name.to_owned()].into(), ..Presupposed::default() };
        let brought = [("StorageClass", "fast-ssd"), ("StorageClass", "gp3"), ("PriorityClass", "local")];
        let brought = brought.map(|(kind, name)| (kind.to_owned(), name.to_owned())).into();
        assert!(missing("fast-sdd").without(&brought).storage.is_empty());
        for own in ["gp2", "slow-hdd", "locale"] {
            assert_eq!(missing(own).without(&brought), missing(own));
        }
    }

    #[test]
    fn service_accounts_of_argo_cd_are_known_by_name() {
        for name in ["argocd-server", "openshift-gitops-argocd-application-controller"] {
            assert!(is_of_argo_cd(name), "{name}");
        }
        for name in ["default", "myargocd-server", "argocd-server-2"] {
            assert!(!is_of_argo_cd(name), "{name}");
        }
    }

    #[test]
    fn load_balancers_of_other_classes_are_those_without_an_address() {
        let service = |status: Value| json!({"metadata": {"namespace": "n", "name": "s"}, "spec": {"type": "LoadBalancer", "loadBalancerClass": "vpn"}, "status": status});
        assert!(waiting_balancer(&service(json!({}))).is_some_and(|(_, class)| class == "vpn"));
        assert!(
            waiting_balancer(&service(json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}))).is_none()
        );
    }
}
