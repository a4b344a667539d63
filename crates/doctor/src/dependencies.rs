//! What an object depends on: the edges along which faults travel, upstream.

use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::{Cluster, is_workload, items, pod_references, pods},
};

/// The objects that this one depends on, missing ones too.
pub(crate) fn upstream(cluster: &Cluster<'_>, object: &Object) -> Vec<Object> {
    let Some(live) = cluster.live(object) else { return maker(cluster, object) };
    let named = |kind: &str, name: Option<&str>| name.map(|name| Object::new(kind, live.namespace(), name));
    let mut found = Vec::new();
    match object.kind.as_str() {
        "Service" => {
            let selected = cluster.pods_of(live);
            // While nobody leads, a Service of the leader selects no pod.
            let others = if selected.is_empty() { cluster.pods_without_role(live) } else { Vec::new() };
            found.extend(selected.into_iter().chain(others).map(Object::from_live));
            found.extend(cluster.workloads_of(live).into_iter().map(Object::from_live));
            found.extend(crate::cluster::services::awaited(cluster, live));
        }
        "EndpointSlice" | "Endpoints" => {
            found.extend(named("Service", live.label("kubernetes.io/service-name").or(Some(live.name()))));
        }
        "Pod" => pod(live, &mut found),
        "PersistentVolumeClaim" => {
            found.extend(
                live.str_at(&["spec", "storageClassName"])
                    .map(|class| Object::new("StorageClass", "", class)),
            );
            found.extend(
                live.str_at(&["spec", "volumeName"])
                    .map(|volume| Object::new("PersistentVolume", "", volume)),
            );
            found.extend(data_source(live));
        }
        "PersistentVolume" => found.extend(volume_of_engine(cluster, live)),
        "Volume" => found.extend(homes_of_replicas(cluster, live)),
        "StorageClass" => {
            let driver = live.str_at(&["provisioner"]).unwrap_or_default();
            found.extend(drivers(cluster, driver));
            found.extend(stores_of_class(cluster, live, driver));
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for hook in items(live, &["webhooks"]) {
                found.extend(service_of(hook.at(&["clientConfig", "service"])));
            }
        }
        "APIService" => found.extend(service_of(live.at(&["spec", "service"]))),
        "CustomResourceDefinition" => {
            found.extend(service_of(live.at(&["spec", "conversion", "webhook", "clientConfig", "service"])));
        }
        "Ingress" => ingress(live, &mut found),
        "Route" if live.api_version().starts_with("route.openshift.io/") => {
            let others = items(live, &["spec", "alternateBackends"]);
            let backends = live.at(&["spec", "to"]).into_iter().chain(others);
            found.extend(backends.filter_map(|it| named("Service", it.str_at(&["name"]))));
        }
        "HorizontalPodAutoscaler" => {
            let target = |key| live.str_at(&["spec", "scaleTargetRef", key]).unwrap_or_default();
            found.push(Object::new(target("kind"), live.namespace(), target("name")));
            found.push(Object::new("APIService", "", "v1beta1.metrics.k8s.io"));
        }
        "Application" => application(cluster, live, &mut found),
        "Subscription" if live.api_version().starts_with("operators.coreos.com/") => {
            let text = |key: &str| live.str_at(&["spec", key]).unwrap_or_default();
            found.push(Object::new("CatalogSource", text("sourceNamespace"), text("source")));
        }
        "ClusterOperator" => {
            found.extend(operated(live.name()));
            if live.name() == "machine-config" {
                let pools = cluster.all("MachineConfigPool").iter();
                found.extend(pools.map(|pool| Object::from_live(pool)));
            }
            found.extend(related(cluster, live));
        }
        "Namespace" => {}
        _ => references(live, &mut found),
    }
    if is_workload(&object.kind) {
        found.extend(daemons_below(cluster, live));
        found.extend(cluster.owned(object).iter().map(|child| Object::from_live(child)));
        if let Some(spec) = pods::spec(live) {
            configuration(spec, live.namespace(), &mut found);
        }
        let claims = items(live, &["spec", "volumeClaimTemplates"]);
        for claim in claims.filter_map(|claim| claim.str_at(&["metadata", "name"])) {
            found.push(Object::new(
                "PersistentVolumeClaim",
                live.namespace(),
                &format!("{claim}-{}-0", live.name()),
            ));
        }
    }
    if live.gvk().group.contains('.') && !is_workload(&object.kind) {
        let made = made_by_named(cluster, &found);
        found.extend(made);
    }
    found.extend(maker(cluster, object));
    found
}

/// What the custom resources among some objects have made and run: who names a resource needs that.
fn made_by_named(cluster: &Cluster<'_>, named: &[Object]) -> Vec<Object> {
    let custom = named.iter().filter(|it| {
        cluster.live(it).is_some_and(|live| live.gvk().group.contains('.') && !is_workload(live.kind()))
    });
    let made =
        custom.flat_map(|it| cluster.owned(it)).filter(|it| it.kind() == "Pod" || is_workload(it.kind()));
    made.map(|it| Object::from_live(it)).collect()
}

/// Kind, namespace and name of an object.
type Named = (&'static str, &'static str, &'static str);

/// What the operators of OpenShift look after, and which of them others need.
const OPERATED: &[(&str, &[Named])] = &[
    ("authentication", &[("Deployment", "openshift-authentication", "oauth-openshift"), INGRESS]),
    ("console", &[("Deployment", "openshift-console", "console"), INGRESS]),
    ("dns", &[("DaemonSet", "openshift-dns", "dns-default")]),
    ("image-registry", &[("Deployment", "openshift-image-registry", "image-registry")]),
    ("ingress", &[("Deployment", "openshift-ingress", "router-default")]),
    ("monitoring", &[("StatefulSet", "openshift-monitoring", "prometheus-k8s")]),
    (
        "network",
        &[
            ("DaemonSet", "openshift-ovn-kubernetes", "ovnkube-node"),
            ("DaemonSet", "openshift-multus", "multus"),
        ],
    ),
];
/// The operator of the routers, over which people reach what has a route.
const INGRESS: Named = ("ClusterOperator", "", "ingress");

fn operated(operator: &str) -> impl Iterator<Item = Object> {
    let known = OPERATED.iter().find(|(name, _)| *name == operator);
    let needs = known.into_iter().flat_map(|(_, needs)| needs.iter());
    needs.map(|(kind, namespace, name)| Object::new(kind, namespace, name))
}

/// The workloads of the namespaces that an operator of OpenShift says are its own.
fn related(cluster: &Cluster<'_>, operator: &Value) -> Vec<Object> {
    let namespaces: Vec<&str> = items(operator, &["status", "relatedObjects"])
        .filter(|it| it.str_at(&["resource"]) == Some("namespaces"))
        .filter_map(|it| it.str_at(&["name"]))
        // Those that many operators write to tell nothing about one.
        .filter(|name| !name.ends_with("-config") && !name.ends_with("-config-managed"))
        .collect();
    let kinds = ["Deployment", "DaemonSet", "StatefulSet"];
    let all = kinds.iter().flat_map(|kind| cluster.all(kind).iter());
    all.filter(|it| namespaces.contains(&it.namespace())).map(|it| Object::from_live(it)).collect()
}

/// The resources of a storage system that a class names by its parameters.
fn stores_of_class(cluster: &Cluster<'_>, class: &Value, driver: &str) -> Vec<Object> {
    let parameters = class.get("parameters").and_then(Value::as_object);
    let named: Vec<&str> = parameters.into_iter().flatten().filter_map(|(_, value)| value.as_str()).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let is_of_driver = |live: &Value| {
        let group = live.gvk().group;
        group.contains('.') && (driver.contains(group.as_str()) || group.ends_with(driver))
    };
    let stores = named.iter().flat_map(|name| cluster.extensions_named(name)).filter(|live| {
        (live.namespace().is_empty() || named.contains(&live.namespace())) && is_of_driver(live)
    });
    stores.map(|live| Object::from_live(live)).collect()
}

/// What the daemons of a storage system need: those that keep the data, and those that know where it is.
pub(crate) fn daemons_below(cluster: &Cluster<'_>, live: &Value) -> Vec<Object> {
    const NEEDS: &[(&str, &[&str])] = &[
        ("rook-ceph-rgw", &["rook-ceph-osd", "rook-ceph-mon"]),
        ("rook-ceph-mds", &["rook-ceph-osd", "rook-ceph-mon"]),
        ("rook-ceph-osd", &["rook-ceph-mon"]),
        ("rook-ceph-mgr", &["rook-ceph-mon"]),
    ];
    let app = |live: &Value| live.label("app").unwrap_or_default().to_owned();
    let Some((_, needs)) = NEEDS.iter().find(|(name, _)| *name == app(live)) else { return Vec::new() };
    let beside = cluster.all("Deployment").iter().filter(|it| it.namespace() == live.namespace());
    beside.filter(|it| needs.contains(&app(it).as_str())).map(|it| Object::from_live(it)).collect()
}

/// The volume of a storage engine behind a persistent one, if the engine keeps it as a resource.
fn volume_of_engine(cluster: &Cluster<'_>, live: &Value) -> Vec<Object> {
    let class = live.str_at(&["spec", "storageClassName"]).filter(|class| !class.is_empty());
    let class = class.map(|class| Object::new("StorageClass", "", class));
    let handle = live.str_at(&["spec", "csi", "volumeHandle"]);
    let engines = cluster.all("Volume").iter().filter(|it| Some(it.name()) == handle);
    engines.map(|it| Object::from_live(it)).chain(class).collect()
}

/// The nodes where a storage engine keeps the copies of a volume that is not well.
fn homes_of_replicas(cluster: &Cluster<'_>, live: &Value) -> Vec<Object> {
    if live.str_at(&["status", "robustness"]).is_none_or(|it| it == "healthy") {
        return Vec::new();
    }
    let replicas = cluster.all("Replica").iter().filter(|it| {
        it.namespace() == live.namespace() && it.str_at(&["spec", "volumeName"]) == Some(live.name())
    });
    let nodes = replicas.filter_map(|it| it.str_at(&["spec", "nodeID"])).filter(|node| !node.is_empty());
    nodes.map(|node| Object::new("Node", "", node)).collect()
}

/// What a claim is filled with: a snapshot, or another claim.
pub(crate) fn data_source(claim: &Value) -> Option<Object> {
    let source = claim.at(&["spec", "dataSourceRef"]).or_else(|| claim.at(&["spec", "dataSource"]))?;
    let namespace = source.str_at(&["namespace"]).unwrap_or(claim.namespace());
    Some(Object::new(source.str_at(&["kind"])?, namespace, source.str_at(&["name"])?))
}

fn pod(live: &Value, found: &mut Vec<Object>) {
    if let Some(node) = live.str_at(&["spec", "nodeName"]) {
        found.push(Object::new("Node", "", node));
    }
    if let Some(spec) = live.get("spec") {
        configuration(spec, live.namespace(), found);
    }
}

/// The claims, ConfigMaps, Secrets and the account that a pod's specification names.
pub(crate) fn configuration(spec: &Value, namespace: &str, found: &mut Vec<Object>) {
    let mut add = |kind: &str, name: Option<&str>| {
        if let Some(name) = name {
            let object = Object::new(kind, namespace, name);
            if !found.contains(&object) {
                found.push(object);
            }
        }
    };
    for reference in pod_references::of_volumes(spec).chain(pod_references::of_variables(spec)) {
        add(reference.kind, Some(reference.name));
    }
    for secret in items(spec, &["imagePullSecrets"]) {
        add("Secret", secret.str_at(&["name"]));
    }
    add("ServiceAccount", spec.str_at(&["serviceAccountName"]));
}

fn service_of(reference: Option<&Value>) -> Option<Object> {
    let reference = reference?;
    Some(Object::new("Service", reference.str_at(&["namespace"])?, reference.str_at(&["name"])?))
}

fn ingress(live: &Value, found: &mut Vec<Object>) {
    let rules = items(live, &["spec", "rules"]).flat_map(|rule| items(rule, &["http", "paths"]));
    let backends = rules.filter_map(|path| path.get("backend")).chain(live.at(&["spec", "defaultBackend"]));
    for name in backends.filter_map(|backend| backend.str_at(&["service", "name"])) {
        found.push(Object::new("Service", live.namespace(), name));
    }
    for name in items(live, &["spec", "tls"]).filter_map(|tls| tls.str_at(&["secretName"])) {
        found.push(Object::new("Secret", live.namespace(), name));
    }
    if let Some(class) = live.str_at(&["spec", "ingressClassName"]) {
        found.push(Object::new("IngressClass", "", class));
    }
}

/// The objects of an Application: those of its status, those that bear its mark, and what lies in its
/// destination if neither tells.
fn application(cluster: &Cluster<'_>, live: &Value, found: &mut Vec<Object>) {
    // Nothing can be brought into a namespace that ends.
    let destination = live.str_at(&["spec", "destination", "namespace"]).unwrap_or_default();
    let ends = cluster.get("Namespace", "", destination).is_some_and(|it| it.is_terminating());
    if ends {
        found.push(Object::new("Namespace", "", destination));
    }
    let text = |value: &Value, key: &str| value.str_at(&[key]).unwrap_or_default().to_owned();
    for resource in items(live, &["status", "resources"]) {
        found.push(Object {
            kind: text(resource, "kind"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
        });
    }
    for resource in items(live, &["status", "operationState", "syncResult", "resources"]) {
        found.push(Object {
            kind: text(resource, "kind"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
        });
    }
    let tracked = cluster.tracked(live.name()).iter().filter(|object| !std::ptr::eq(**object, live));
    found.extend(tracked.map(|object| Object::from_live(object)));
    let message = live.str_at(&["status", "operationState", "message"]).unwrap_or_default();
    if let Some(wait) = tiphys_cause::waits_for(message) {
        let named = cluster.all(&wait.kind).iter().filter(|it| it.name() == wait.name);
        found.extend(named.map(|it| Object::from_live(it)));
    }
    found.push(Object::new(
        "AppProject",
        live.namespace(),
        live.str_at(&["spec", "project"]).unwrap_or_default(),
    ));
}

/// The workloads of a storage driver, by the name that its pods are given.
pub(crate) fn drivers(cluster: &Cluster<'_>, provisioner: &str) -> Vec<Object> {
    let short: Vec<&str> = provisioner
        .split(['.', '/'])
        .filter(|part| {
            part.len() > 2
                && !matches!(
                    *part,
                    "csi"
                        | "com"
                        | "aws"
                        | "io"
                        | "amazonaws"
                        | "azure"
                        | "gke"
                        | "kubernetes"
                        | "storage"
                        | "cluster"
                        | "local"
                )
        })
        .collect();
    let kinds = ["Deployment", "StatefulSet", "DaemonSet"];
    let all = kinds.iter().flat_map(|kind| cluster.all(kind).iter());
    // Storage systems live in a namespace of their own, and their drivers are named after it.
    let is_own = |namespace: &str| {
        short.iter().any(|part| {
            namespace == *part || namespace.strip_prefix(part).is_some_and(|rest| rest.starts_with('-'))
        })
    };
    let of_driver = all.filter(|workload| {
        let name = workload.name();
        if is_own(workload.namespace()) {
            return true;
        }
        name.contains("csi") && (short.iter().any(|part| name.contains(part)))
            || name.contains("provisioner") && short.iter().any(|part| name.contains(part))
    });
    of_driver.map(|workload| Object::from_live(workload)).collect()
}

/// Fields of custom resources that name others, as path and kind; an empty kind is told beside the name.
const REFERENCES: &[(&[&str], &str)] = &[
    (&["spec", "secretStoreRef"], "SecretStore"),
    (&["spec", "issuerRef"], "Issuer"),
    (&["spec", "sourceRef"], ""),
    (&["spec", "chart", "spec", "sourceRef"], ""),
    (&["spec", "chartRef"], ""),
    (&["spec", "gatewayClassName"], "GatewayClass"),
    (&["spec", "storageClassName"], "StorageClass"),
    (&["spec", "template", "spec", "nodeClassRef"], ""),
];

/// Ends of the names of fields by which the API's conventions refer to another object.
const REFERENCE_ENDS: &[&str] = &["SecretRef", "secretRef", "Ref"];
/// Fields whose name tells less than the kind of what they name.
const FIELDS_OF_KIND: &[(&str, &str)] = &[
    ("authenticationRef", "TriggerAuthentication"),
    ("secretTargetRef", "Secret"),
    ("configMapTargetRef", "ConfigMap"),
    ("configMapRef", "ConfigMap"),
    ("credentialsSecretRef", "Secret"),
    ("scaleTargetRef", "Deployment"),
];
/// Fields that name who uses an object, or what is made of it, and nothing that it needs.
const NO_NEED: &[&str] =
    &["claimRef", "ownerRef", "consumerRef", "writeConnectionSecretToRef", "privateKeySecretRef"];

/// The objects that fields called `…Ref` and `…Refs` of a specification name.
fn by_convention(spec: &Value, namespace: &str, depth: usize, found: &mut Vec<Object>) {
    /// References stand near the top; what lies deeper is of another kind.
    const DEEPEST: usize = 5;
    /// More references of one object lead nowhere.
    const MOST: usize = 64;
    if depth > DEEPEST || found.len() > MOST {
        return;
    }
    match spec {
        Value::Object(fields) => {
            for (key, value) in fields {
                let single = key.strip_suffix('s').filter(|key| key.ends_with("Ref")).unwrap_or(key);
                let is_reference = REFERENCE_ENDS.iter().any(|end| single.ends_with(end));
                if NO_NEED.contains(&single) {
                    continue;
                }
                if is_reference {
                    let many = value.as_array().map(Vec::as_slice).unwrap_or_default();
                    let all = many.iter().chain([value]);
                    found.extend(all.filter_map(|value| referenced(single, value, namespace)));
                    found.extend(value.as_str().and_then(|name| by_name_alone(single, name, namespace)));
                }
                by_convention(value, namespace, depth + 1, found);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| by_convention(item, namespace, depth + 1, found));
        }
        _ => {}
    }
}

/// The object that a field names by its name alone, with its namespace before it or not: `vaultAuthRef: k8s`.
fn by_name_alone(field: &str, name: &str, namespace: &str) -> Option<Object> {
    let stem = field.strip_suffix("Ref").filter(|stem| !stem.is_empty())?;
    let mut letters = stem.chars();
    let kind = letters.next()?.to_ascii_uppercase().to_string() + letters.as_str();
    let (namespace, name) = name.split_once('/').unwrap_or((namespace, name));
    (!name.is_empty()).then(|| Object::new(&kind, namespace, name))
}

/// The object of one reference. The field tells its kind where the reference does not: `providerConfigRef`.
fn referenced(field: &str, reference: &Value, namespace: &str) -> Option<Object> {
    let name = reference.str_at(&["name"])?;
    let of_field = || {
        if let Some((_, kind)) = FIELDS_OF_KIND.iter().find(|(known, _)| *known == field) {
            return Some((*kind).to_owned());
        }
        let stem = field.strip_suffix("Ref").unwrap_or(field);
        let stem = if stem.ends_with("Secret") || stem.ends_with("secret") { "secret" } else { stem };
        let mut letters = stem.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    let kind = reference.str_at(&["kind"]).map(str::to_owned).or_else(of_field)?;
    let is_wide = kind.starts_with("Cluster") && kind != "Cluster" || kind == "ProviderConfig";
    let namespace = reference.str_at(&["namespace"]).unwrap_or(if is_wide { "" } else { namespace });
    Some(Object::new(&kind, namespace, name))
}

/// What holds the work of Kueue back: a Workload's queue, its cluster queue, the flavors of that.
fn queues(live: &Value, found: &mut Vec<Object>) {
    match live.kind() {
        "Workload" => found.extend(
            live.str_at(&["spec", "queueName"]).map(|name| Object::new("LocalQueue", live.namespace(), name)),
        ),
        "LocalQueue" => {
            found.extend(
                live.str_at(&["spec", "clusterQueue"]).map(|name| Object::new("ClusterQueue", "", name)),
            );
        }
        "ClusterQueue" => {
            let groups = items(live, &["spec", "resourceGroups"]);
            let names =
                groups.flat_map(|group| items(group, &["flavors"])).filter_map(|it| it.str_at(&["name"]));
            found.extend(names.map(|name| Object::new("ResourceFlavor", "", name)));
        }
        _ => {}
    }
}

/// Where the controllers of Flux run.
const FLUX_HOME: &str = "flux-system";

/// The controller of Flux that cares for a resource.
fn flux_controller(live: &Value) -> Option<&'static str> {
    match live.gvk().group.as_str() {
        "helm.toolkit.fluxcd.io" => Some("helm-controller"),
        "kustomize.toolkit.fluxcd.io" => Some("kustomize-controller"),
        "source.toolkit.fluxcd.io" => Some("source-controller"),
        "image.toolkit.fluxcd.io" => Some("image-automation-controller"),
        _ => None,
    }
}

fn references(live: &Value, found: &mut Vec<Object>) {
    queues(live, found);
    if live.gvk().group.contains('.')
        && let Some(spec) = live.get("spec")
    {
        by_convention(spec, live.namespace(), 0, found);
    }
    for (path, kind) in REFERENCES {
        let Some(reference) = live.at(path) else { continue };
        if let Some(name) = reference.as_str() {
            found.push(Object::new(kind, "", name));
            continue;
        }
        let kind = reference.str_at(&["kind"]).unwrap_or(kind);
        let namespace = if kind.starts_with("Cluster") {
            ""
        } else {
            reference.str_at(&["namespace"]).unwrap_or(live.namespace())
        };
        found.push(Object::new(kind, namespace, reference.str_at(&["name"]).unwrap_or_default()));
    }
    found.extend(flux_controller(live).map(|name| Object::new("Deployment", FLUX_HOME, name)));
    if live.kind() == "HelmRelease" {
        // Flux makes a HelmChart beside the source, and names it after the release.
        let beside = ["spec", "chart", "spec", "sourceRef", "namespace"];
        let namespace = live.str_at(&beside).unwrap_or(live.namespace());
        found.push(Object::new("HelmChart", namespace, &format!("{}-{}", live.namespace(), live.name())));
    }
    for parent in items(live, &["spec", "parentRefs"]) {
        let namespace = parent.str_at(&["namespace"]).unwrap_or(live.namespace());
        found.push(Object::new("Gateway", namespace, parent.str_at(&["name"]).unwrap_or_default()));
    }
    for backend in items(live, &["spec", "rules"]).flat_map(|rule| items(rule, &["backendRefs"])) {
        let namespace = backend.str_at(&["namespace"]).unwrap_or(live.namespace());
        found.push(Object::new("Service", namespace, backend.str_at(&["name"]).unwrap_or_default()));
    }
    for dependency in items(live, &["spec", "dependsOn"]) {
        let namespace = dependency.str_at(&["namespace"]).unwrap_or(live.namespace());
        found.push(Object::new(live.kind(), namespace, dependency.str_at(&["name"]).unwrap_or_default()));
    }
    for entry in items(live, &["status", "inventory", "entries"]) {
        // NAMESPACE_NAME_GROUP_KIND
        if let Some([namespace, name, _, kind]) = entry
            .str_at(&["id"])
            .map(|id| id.split('_').collect::<Vec<_>>())
            .as_deref()
            .and_then(|parts| <[&str; 4]>::try_from(parts).ok())
        {
            found.push(Object::new(kind, namespace, name));
        }
    }
}

/// Whether a custom resource keeps the credentials of what it makes in a Secret, or a Job is told to make it.
fn writes_secret(maker: &Value, secret: &Object) -> bool {
    if maker.kind() == "Job" {
        let Some(spec) = pods::spec(maker).filter(|_| maker.namespace() == secret.namespace) else {
            return false;
        };
        return pods::containers(spec).any(|container| {
            let words = items(container, &["command"]).chain(items(container, &["args"]));
            let mut words = words.filter_map(Value::as_str);
            words.any(|word| word.rsplit('=').next() == Some(secret.name.as_str()))
        });
    }
    let reference = |key| maker.str_at(&["spec", "writeConnectionSecretToRef", key]);
    reference("name") == Some(secret.name.as_str())
        && reference("namespace").unwrap_or(maker.namespace()) == secret.namespace
}

/// The resources from which operators make a definition: templates of constraints, composite definitions.
fn definers(cluster: &Cluster<'_>, plural: &str, group: &str) -> Vec<Object> {
    let is_named = |live: &Value, path: &[&str]| {
        live.str_at(path).is_some_and(|name| plural.starts_with(&name.to_ascii_lowercase()))
    };
    let templates = cluster.all("ConstraintTemplate").iter().filter(|live| {
        group == "constraints.gatekeeper.sh" && is_named(live, &["spec", "crd", "spec", "names", "kind"])
    });
    let composites = cluster.all("CompositeResourceDefinition").iter().filter(|live| {
        live.str_at(&["spec", "group"]) == Some(group)
            && (is_named(live, &["spec", "names", "kind"]) || is_named(live, &["spec", "claimNames", "kind"]))
    });
    let versions = cluster.all("ClusterServiceVersion").iter().filter(|live| {
        let owned = items(live, &["spec", "customresourcedefinitions", "owned"]);
        let name = format!("{plural}.{group}");
        owned.filter_map(|it| it.str_at(&["name"])).any(|it| it == name)
    });
    let live = templates.chain(composites).chain(versions).map(|live| Object::from_live(live));
    live.chain(packages(cluster, group)).collect()
}

/// The packages that bring the kinds of a group: `provider-aws-rds` those of `rds.aws.upbound.io`, and
/// `provider-gcp` those of `database.gcp.crossplane.io`.
fn packages(cluster: &Cluster<'_>, group: &str) -> Vec<Object> {
    let labels: Vec<&str> = group.split('.').collect();
    let is_meant = |live: &&&Value| {
        let package = live.str_at(&["spec", "package"]).unwrap_or_default();
        let (_, path, _) = tiphys_cause::image_parts(package);
        let name = path.rsplit('/').next().unwrap_or_default();
        let mut parts = name.strip_prefix("provider-").unwrap_or_default().split('-').peekable();
        parts.peek().is_some_and(|part| !part.is_empty()) && parts.all(|part| labels.contains(&part))
    };
    let all = cluster.all("Provider").iter().filter(|it| it.gvk().group == "pkg.crossplane.io");
    all.filter(is_meant).map(|live| Object::from_live(live)).collect()
}

/// Kinds that copy a Secret out of a store, and the field that names it; without it, it bears their name.
const COPIERS: &[(&str, &[&str])] = &[
    ("VaultStaticSecret", &["spec", "destination", "name"]),
    ("VaultDynamicSecret", &["spec", "destination", "name"]),
    ("VaultPKISecret", &["spec", "destination", "name"]),
    ("HCPVaultSecretsApp", &["spec", "destination", "name"]),
    ("OnePasswordItem", &["spec", "destination", "name"]),
    ("InfisicalSecret", &["spec", "managedSecretReference", "secretName"]),
    ("DopplerSecret", &["spec", "managedSecret", "name"]),
    ("AzureKeyVaultSecret", &["spec", "output", "secret", "name"]),
];

fn copiers<'a>(cluster: &'a Cluster<'_>, secret: &'a Object) -> impl Iterator<Item = Object> + use<'a> {
    let all = COPIERS.iter().flat_map(|(kind, path)| cluster.all(kind).iter().map(move |live| (live, *path)));
    let is_maker = move |(live, path): &(&&Value, &[&str])| {
        live.namespace() == secret.namespace && live.str_at(path).unwrap_or(live.name()) == secret.name
    };
    all.filter(is_maker).map(|(live, _)| Object::from_live(live))
}

/// Kinds of custom resources, a part of their group, and what operators put after the resource's name to name
/// the Secrets that they make for it.
const NAMED_AFTER: &[(&str, &str, &[&str])] = &[
    ("Cluster", "cnpg.io", &["-app", "-superuser", "-ca", "-server", "-replication"]),
    ("KafkaUser", "strimzi.io", &[""]),
    ("Kafka", "strimzi.io", &["-cluster-ca-cert", "-clients-ca-cert", "-kafka-brokers"]),
    ("Elasticsearch", "elastic.co", &["-es-elastic-user", "-es-http-certs-public", "-es-http-ca-internal"]),
    ("Kibana", "elastic.co", &["-kb-http-certs-public"]),
    ("RabbitmqCluster", "rabbitmq.com", &["-default-user"]),
    ("PostgresCluster", "crunchydata.com", &["-pguser-*", "-cluster-cert"]),
    ("postgresql", "zalan.do", &[".credentials.postgresql.acid.zalan.do"]),
    ("PerconaXtraDBCluster", "percona.com", &["-secrets", "-ssl"]),
    ("PerconaServerMongoDB", "percona.com", &["-secrets", "-ssl"]),
    ("MongoDBCommunity", "mongodb.com", &["-admin-*", "-*-connection-string"]),
    ("Keycloak", "keycloak.org", &["-initial-admin"]),
    ("MariaDB", "mmontes.io", &["-root", "-ca"]),
    ("K8ssandraCluster", "k8ssandra.io", &["-superuser"]),
    ("CassandraDatacenter", "datastax.com", &["-superuser"]),
    ("Redis", "redis", &["-auth"]),
];

/// The custom resources after which an absent Secret is named.
fn makers_by_name(cluster: &Cluster<'_>, secret: &Object) -> Vec<Object> {
    let is_end = |rest: &str, end: &str| match end.split_once('*') {
        Some((before, after)) => {
            rest.len() > before.len() + after.len() && rest.starts_with(before) && rest.ends_with(after)
        }
        None => rest == end,
    };
    let makers = NAMED_AFTER.iter().flat_map(|(kind, group, ends)| {
        cluster.all(kind).iter().filter(move |live| {
            // The operator for several databases names a Secret after the user, and the resource after it.
            let rest = match secret.name.strip_prefix(live.name()) {
                Some(rest) => rest,
                None => match secret.name.split_once(live.name()) {
                    Some((_, rest)) if *kind == "postgresql" => rest,
                    _ => return false,
                },
            };
            live.namespace() == secret.namespace
                && live.api_version().contains(group)
                && ends.iter().any(|end| is_end(rest, end))
        })
    });
    makers.map(|live| Object::from_live(live)).collect()
}

/// What keeps the Applications from an object that they have not brought yet: what their operation waits for,
/// or their own failure.
fn undelivered(cluster: &Cluster<'_>, object: &Object) -> Vec<Object> {
    let mut found = Vec::new();
    for app in cluster.all("Application") {
        let text = |value: &Value, key: &str| value.str_at(&[key]).unwrap_or_default().to_owned();
        let operation = app.at(&["status", "operationState"]).unwrap_or(&Value::Null);
        let phase = text(operation, "phase");
        if !matches!(phase.as_str(), "Running" | "Failed" | "Error") {
            continue;
        }
        let is_wanted = items(app, &["status", "resources"]).any(|resource| {
            resource.str_at(&["kind"]) == Some(&object.kind)
                && resource.str_at(&["name"]) == Some(&object.name)
                && resource.str_at(&["namespace"]).unwrap_or_default() == object.namespace
        });
        if !is_wanted {
            continue;
        }
        match tiphys_cause::waits_for(&text(operation, "message")) {
            Some(wait) => {
                let namespace = app.str_at(&["spec", "destination", "namespace"]).unwrap_or_default();
                let named = cluster.all(&wait.kind).iter().filter(|it| {
                    it.name() == wait.name && (it.namespace().is_empty() || it.namespace() == namespace)
                });
                found.extend(named.map(|it| Object::from_live(it)));
            }
            None => found.push(Object::from_live(app)),
        }
    }
    found
}

/// The custom resources of the same name beside an absent Secret or ConfigMap: many operators write what they
/// made under the resource's own name.
fn namesakes(cluster: &Cluster<'_>, object: &Object) -> Vec<Object> {
    let beside = cluster.extensions_named(&object.name).iter().filter(|live| {
        // A resource of the whole cluster may write to every namespace, and says so.
        let is_wide = live.namespace().is_empty() && live.at(&["spec", "target"]).is_some();
        (live.namespace() == object.namespace || is_wide) && crate::causes::operator::is_custom(live)
    });
    beside.map(|live| Object::from_live(live)).collect()
}

/// The policies that are told to make an absent object, and their requests: Kyverno copies Secrets so.
fn generators(cluster: &Cluster<'_>, object: &Object) -> Vec<Object> {
    let policies = cluster.all("ClusterPolicy").iter().chain(cluster.all("Policy")).filter(|policy| {
        items(policy, &["spec", "rules"]).filter_map(|rule| rule.get("generate")).any(|made| {
            made.str_at(&["kind"]) == Some(&object.kind) && made.str_at(&["name"]) == Some(&object.name)
        })
    });
    let with_requests = policies.flat_map(|policy| {
        let requests = cluster.all("UpdateRequest").iter().filter(|request| {
            request.str_at(&["spec", "policy"]) == Some(policy.name())
                && request.str_at(&["spec", "resource", "name"]).is_none_or(|name| name == object.namespace)
        });
        requests.chain([policy]).map(|live| Object::from_live(live)).collect::<Vec<_>>()
    });
    with_requests.collect()
}

/// What should have made an object: an ExternalSecret, a Certificate, an owner that is a custom resource.
fn maker(cluster: &Cluster<'_>, object: &Object) -> Vec<Object> {
    let mut found = Vec::new();
    if object.kind == "Secret" {
        let makers: [(&str, &[&str]); 3] = [
            ("ExternalSecret", &["spec", "target", "name"]),
            ("Certificate", &["spec", "secretName"]),
            ("SealedSecret", &["spec", "template", "metadata", "name"]),
        ];
        for (kind, path) in makers {
            let all = cluster.all(kind).iter().filter(|maker| maker.namespace() == object.namespace);
            let of_object = all.filter(|maker| maker.str_at(path).unwrap_or(maker.name()) == object.name);
            found.extend(of_object.map(|maker| Object::from_live(maker)));
        }
        found.extend(copiers(cluster, object));
        if cluster.live(object).is_none() {
            found.extend(makers_by_name(cluster, object));
        }
        if cluster.live(object).is_none() {
            let writers = cluster.secret_writers().iter().filter(|it| writes_secret(it, object));
            found.extend(writers.map(|it| Object::from_live(it)));
        }
    }
    if cluster.live(object).is_none() {
        found.extend(undelivered(cluster, object));
        if matches!(object.kind.as_str(), "Secret" | "ConfigMap") {
            found.extend(namesakes(cluster, object));
        }
        found.extend(generators(cluster, object));
    }
    if object.kind == "CustomResourceDefinition"
        && let Some((plural, group)) = object.name.split_once('.')
    {
        found.extend(definers(cluster, plural, group));
    }
    if let Some(live) = cluster.live(object)
        && let Some(owner) = crate::cluster::controller(live)
        && !is_workload(&owner.kind)
    {
        found.push(owner);
    }
    found
}
