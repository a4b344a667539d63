//! Reachability under network policies: which packets that a workload needs arrive, judged as the CNI sees
//! them, after service translation.
//!
//! A packet to a Service has the address of one of its pods when a policy judges it; one to the API server
//! has the address of a node (or of the cloud's control plane), which no pod selector selects. What the
//! repository does not settle (addresses of nodes, labels of namespaces that it does not declare) is answered
//! with [`Tri::Maybe`] and never reported.

mod admin;
mod calico;
mod cilium;
mod cni;
mod configuration;
mod endpoint;
mod evaluate;
mod expression;
mod flows;
mod inbound;
mod known_controllers;
mod operator_pods;
mod policy;
mod refusal;
mod remedy;
mod selector;
mod tiers;
mod tri_state;

use std::collections::BTreeMap;

use tiphys_model::hook::is_ignored;

use tiphys_value::{ObjectExt, Value};

use crate::{Object, ObjectId, Owner, Survey};

pub use calico::{Entity, TierPosition};
pub use cni::{Cni, Detected, detect};
pub use endpoint::{ContainerPort, Namespaces, Pod, PortName, Service, ServicePort};
pub use evaluate::{Judgement, Verdict, is_service_address};
pub use expression::{Comparison, Expression, Label};
pub use flows::{Destination, Direction, Flow, Need};
pub use known_controllers::Controller;
pub use operator_pods::{Operated, operated};
pub use policy::{Action, Address, Layer, Peer, Policy, PortRange, Protocol, Rule};
pub use refusal::{Refusal, refusal};
pub use remedy::Remedy;
pub use selector::Selector;
pub use tri_state::Tri;

/// What lives in one cluster, as far as its network is concerned.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Everything that lives there.
    pub objects: Vec<ObjectId>,
    /// Workloads, each as one pod.
    pub pods: Vec<Pod>,
    /// Services.
    pub services: Vec<Service>,
    /// Labels of namespaces.
    pub namespaces: Namespaces,
    /// Policies of every kind that is understood.
    pub policies: Vec<Policy>,
    /// Objects that restrict the network in ways that are not understood: then nothing is known for sure.
    pub opaque: Vec<ObjectId>,
    /// Calico's tiers by name.
    pub calico_tiers: BTreeMap<String, TierPosition>,
    /// Whether something gives labels to addresses that are no pod's.
    pub has_sets: bool,
    /// The CNIs that the cluster may have.
    pub cnis: Vec<Cni>,
    /// Whether the cloud runs the control plane; `None` if the repository does not say.
    pub is_managed: Option<bool>,
}

/// Whether a policy of Kyverno makes network policies, in namespaces that it chooses: what they let through
/// is not seen.
fn generates_policies(object: &Value) -> bool {
    let is_of_kyverno = object.api_version().starts_with("kyverno.io/");
    let rules = object.at(&["spec", "rules"]).and_then(Value::as_array);
    is_of_kyverno
        && rules.into_iter().flatten().any(|rule| {
            rule.str_at(&["generate", "kind"]).is_some_and(|kind| kind.ends_with("NetworkPolicy"))
        })
}

impl Network {
    /// The networks of a survey: one for each cluster of each environment, and one for each unit.
    pub fn all(survey: &Survey) -> Vec<Self> {
        let mut groups: BTreeMap<(usize, &str, Option<Owner>), Vec<&Object>> = BTreeMap::new();
        for object in survey.objects.iter().filter(|object| !is_shelved(survey, object)) {
            let unit = object.environment.is_none().then_some(object.owner);
            let environment = object.environment.map_or(usize::MAX, |id| id.0);
            groups.entry((environment, object.cluster.as_ref(), unit)).or_default().push(object);
        }
        groups.retain(|_, objects| objects.iter().any(|object| object.key.kind.ends_with("NetworkPolicy")));
        if groups.is_empty() {
            return Vec::new();
        }
        let detected = detect(survey);
        // A chart or folder by itself does not show what binds the whole cluster that it comes into.
        let wide: Vec<ObjectId> = survey.objects.iter().filter(|it| is_wide(it)).map(|it| it.id).collect();
        let names_wide = wide.is_empty() && names_wide(survey);
        let makers: Vec<ObjectId> =
            survey.objects.iter().filter(|it| generates_policies(it.value())).map(|it| it.id).collect();
        let networks = groups.into_iter().map(|((environment, cluster, unit), objects)| {
            let mut network = Self::from_objects(objects.iter().copied());
            if unit.is_some() {
                network.opaque.extend(wide.iter().filter(|id| !network.objects.contains(id)));
                network.opaque.extend(objects.first().filter(|_| names_wide).map(|it| it.id));
            }
            network
                .opaque
                .extend(makers.iter().filter(|id| !network.opaque.contains(id)).collect::<Vec<_>>());
            network.cnis.clone_from(&detected.cnis);
            network.is_managed = detected.is_managed;
            let apps =
                survey.apps.iter().filter(|app| app.environment.0 == environment && app.cluster() == cluster);
            network.pods.extend(apps.clone().filter_map(known_controllers::unseen_pod));
            network.pods.extend(apps.clone().filter_map(inbound::unseen));
            network.pods.extend(apps.filter_map(inbound::unseen_gateway));
            network
        });
        networks.filter(|network| !network.policies.is_empty()).collect()
    }

    /// The network of some objects, under any CNI.
    pub fn from_objects<'a>(objects: impl Iterator<Item = &'a Object> + Clone) -> Self {
        let ids = objects.clone().map(|object| object.id).collect();
        let mut network = Self { objects: ids, cnis: Cni::ENFORCING.to_vec(), ..Self::default() };
        for object in objects.clone() {
            network.namespaces.add(object.value());
            network.services.extend(Service::of(object));
            // What the engine never applies, such as the tests of a chart, sends nothing.
            network.pods.extend(Pod::of(object).filter(|_| !is_ignored(object.value())));
            network.has_sets |= calico::is_set(object);
            if let Some(operated) = operator_pods::operated(object) {
                network.services.extend(operated.services);
                network.pods.push(operated.pod);
            }
            match Policy::read_object(object) {
                policy::PolicyReading::Policies(policies) => network.policies.extend(policies),
                policy::PolicyReading::Opaque => network.opaque.push(object.id),
                policy::PolicyReading::Other => {}
            }
        }
        network.calico_tiers = calico::tiers(objects.clone());
        flows::note_rights(&mut network.pods, objects.clone());
        configuration::note(&mut network.pods, objects);
        network
    }

    /// The pods of a Service.
    pub fn pods_of<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| pod.namespace == service.namespace && service.selects(&pod.labels))
    }

    /// A Service by namespace and name.
    pub fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.namespace == namespace && service.name == name)
    }
}

/// Kinds of policies that bind whole clusters.
const WIDE: [&str; 5] = [
    "GlobalNetworkPolicy",
    "CiliumClusterwideNetworkPolicy",
    "AdminNetworkPolicy",
    "BaselineAdminNetworkPolicy",
    "ClusterNetworkPolicy",
];

fn is_wide(object: &Object) -> bool {
    WIDE.contains(&object.key.kind.as_str())
}

/// Whether a template that renders nothing by default is for such a policy.
fn names_wide(survey: &Survey) -> bool {
    let mut templates = survey.files.ending(&[".yaml", ".yml", ".tpl"]);
    let is = |line: &str| line.strip_prefix("kind: ").is_some_and(|kind| WIDE.contains(&kind.trim()));
    templates.any(|path| {
        survey.files.text(path).is_some_and(|text| text.lines().any(|line| is(line.trim_start())))
    })
}

/// Whether an object belongs to an Application that lies in a folder for what is not deployed.
fn is_shelved(survey: &Survey, object: &Object) -> bool {
    const SHELVES: [&str; 6] = ["disabled", "archive", "archived", "unused", "deprecated", "_archive"];
    let app = survey.app_of(object);
    app.is_some_and(|app| app.declared.location.file.split('/').any(|step| SHELVES.contains(&step)))
}
