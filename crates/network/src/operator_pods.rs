//! Pods and Services that operators make of their custom resources, by the operators' published conventions.

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::{
    endpoint::{ContainerPort, Pod, Service, ServicePort},
    flow::{Destination, Direction, Flow, Need},
    known_controllers,
    network::Network,
    object::Object,
    port::{PortName, Protocol},
    selector::Labels,
};

/// What an operator makes of an object, as far as it is known: labels and ports beyond these are possible.
#[derive(Clone, Debug)]
pub struct Operated {
    /// The pods.
    pub pod: Pod,
    /// The Services in front of them.
    pub services: Vec<Service>,
}

/// What is known of one kind. `{}` stands for the object's name.
struct Kind {
    group: &'static str,
    kind: &'static str,
    /// Labels of the pods.
    labels: &'static [(&'static str, &'static str)],
    /// Name and number of their ports.
    ports: &'static [(&'static str, u16)],
    /// Name, port and port of the pods of each Service.
    services: &'static [(&'static str, u16, u16)],
    /// The service account.
    account: &'static str,
    /// Whether the pods ask the API server.
    asks_api: bool,
}

macro_rules! kinds {
    ($($group:literal $kind:literal [$($label:literal = $value:literal),*] [$($port:literal : $number:literal),*]
        [$($service:literal $front:literal -> $back:literal),*] $account:literal $asks:literal;)*) => {
        const KINDS: &[Kind] = &[$(Kind {
            group: $group,
            kind: $kind,
            labels: &[$(($label, $value)),*],
            ports: &[$(($port, $number)),*],
            services: &[$(($service, $front, $back)),*],
            account: $account,
            asks_api: $asks,
        }),*];
    };
}

kinds! {
    "postgresql.cnpg.io" "Cluster" ["cnpg.io/cluster" = "{}", "cnpg.io/podRole" = "instance"]
        ["postgresql": 5432, "metrics": 9187, "status": 8000]
        ["{}-rw" 5432 -> 5432, "{}-ro" 5432 -> 5432, "{}-r" 5432 -> 5432] "{}" true;
    "postgresql.cnpg.io" "Pooler" ["cnpg.io/poolerName" = "{}"]
        ["pgbouncer": 5432, "metrics": 9127] ["{}" 5432 -> 5432] "{}" true;
    "acid.zalan.do" "postgresql" ["application" = "spilo", "cluster-name" = "{}"]
        ["postgresql": 5432, "patroni": 8008] ["{}" 5432 -> 5432, "{}-repl" 5432 -> 5432] "postgres-pod" true;
    "rabbitmq.com" "RabbitmqCluster"
        ["app.kubernetes.io/name" = "{}", "app.kubernetes.io/component" = "rabbitmq", "app.kubernetes.io/part-of" = "rabbitmq"]
        ["amqp": 5672, "management": 15672, "prometheus": 15692]
        ["{}" 5672 -> 5672, "{}" 15672 -> 15672, "{}" 15692 -> 15692] "{}-server" false;
    "elasticsearch.k8s.elastic.co" "Elasticsearch"
        ["common.k8s.elastic.co/type" = "elasticsearch", "elasticsearch.k8s.elastic.co/cluster-name" = "{}"]
        ["https": 9200] ["{}-es-http" 9200 -> 9200] "" false;
    "kibana.k8s.elastic.co" "Kibana" ["common.k8s.elastic.co/type" = "kibana", "kibana.k8s.elastic.co/name" = "{}"]
        ["https": 5601] ["{}-kb-http" 5601 -> 5601] "" false;
    "kafka.strimzi.io" "Kafka" ["strimzi.io/cluster" = "{}", "strimzi.io/kind" = "Kafka", "strimzi.io/name" = "{}-kafka"]
        [] ["{}-kafka-bootstrap" 9092 -> 9092, "{}-kafka-bootstrap" 9093 -> 9093] "{}-kafka" false;
    "redis.redis.opstreelabs.in" "Redis" ["app" = "{}"] ["redis": 6379] ["{}" 6379 -> 6379] "" false;
    "databases.spotahome.com" "RedisFailover"
        ["app.kubernetes.io/name" = "{}", "app.kubernetes.io/part-of" = "redis-failover"]
        [] ["rfs-{}" 26379 -> 26379] "" false;
    "dragonflydb.io" "Dragonfly" ["app" = "{}"] ["redis": 6379] ["{}" 6379 -> 6379] "" false;
    "mongodbcommunity.mongodb.com" "MongoDBCommunity" ["app" = "{}-svc"] ["mongodb": 27017]
        ["{}-svc" 27017 -> 27017] "mongodb-database" true;
    "minio.min.io" "Tenant" ["v1.min.io/tenant" = "{}"] [] ["{}-hl" 9000 -> 9000] "{}-sa" false;
    "k8s.keycloak.org" "Keycloak" ["app" = "keycloak", "app.kubernetes.io/instance" = "{}"] []
        ["{}-service" 8443 -> 8443, "{}-service" 8080 -> 8080] "" false;
    "monitoring.coreos.com" "Prometheus" ["app.kubernetes.io/name" = "prometheus", "prometheus" = "{}"] []
        ["prometheus-operated" 9090 -> 9090] "default" false;
    "monitoring.coreos.com" "Alertmanager" ["app.kubernetes.io/name" = "alertmanager", "alertmanager" = "{}"] []
        ["alertmanager-operated" 9093 -> 9093] "default" false;
    "operator.victoriametrics.com" "VMSingle"
        ["app.kubernetes.io/name" = "vmsingle", "app.kubernetes.io/instance" = "{}"] []
        ["vmsingle-{}" 8428 -> 8428, "vmsingle-{}" 8429 -> 8429] "vmsingle-{}" false;
    "opentelemetry.io" "OpenTelemetryCollector"
        ["app.kubernetes.io/component" = "opentelemetry-collector", "app.kubernetes.io/name" = "{}-collector"] []
        ["{}-collector" 4317 -> 4317, "{}-collector" 4318 -> 4318] "{}-collector" false;
}

/// The labels that an object gives its pods beside those of its operator, where operators look for such.
fn given_labels(spec: &Value) -> Labels {
    const PLACES: [&[&str]; 5] = [
        &["inheritedMetadata", "labels"],
        &["podMetadata", "labels"],
        &["template", "metadata", "labels"],
        &["kafka", "template", "pod", "metadata", "labels"],
        &["labels"],
    ];
    let maps = PLACES.iter().filter_map(|place| spec.at(place)?.as_object());
    maps.flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// What an operator makes of an object.
pub fn operated(object: Object<'_>) -> Option<Operated> {
    let key = &object.key;
    let kind = KINDS.iter().find(|kind| kind.group == key.group && kind.kind == key.kind)?;
    let named = |text: &str| text.replace("{}", &key.name);
    let spec = object.value.get("spec").unwrap_or(&Value::Null);
    let fixed: Labels = kind.labels.iter().map(|(key, value)| ((*key).to_owned(), named(value))).collect();
    let mut labels = given_labels(spec);
    labels.extend(fixed.clone());
    let account = spec.str_at(&["serviceAccountName"]).map_or_else(|| named(kind.account), str::to_owned);
    let mut services: Vec<Service> = Vec::new();
    for (name, front, back) in kind.services {
        let port = ServicePort {
            name: String::new(),
            number: *front,
            target: PortName::Number(*back),
            protocol: Protocol::Tcp,
        };
        let name = named(name);
        match services.iter_mut().find(|service| service.name == name) {
            Some(service) => service.ports.push(port),
            None => services.push(Service {
                object: object.id,
                namespace: key.namespace.clone(),
                name,
                labels: Labels::new(),
                selector: fixed.clone(),
                is_outside: false,
                ports: vec![port],
            }),
        }
    }
    let ports = kind.ports.iter().map(|(name, number)| ContainerPort {
        name: (*name).to_owned(),
        number: *number,
        protocol: Protocol::Tcp,
    });
    let ports = ports.collect();
    let pod = Pod {
        object: Some(object.id),
        service_account: account,
        has_token: true,
        uses_host_network: spec.get("hostNetwork").and_then(Value::as_bool) == Some(true),
        ports,
        controller: kind.asks_api.then_some(&known_controllers::INSTANCE),
        ..Pod::foreseen(format!("the pods of {}", object.title()), &key.namespace, labels)
    };
    Some(Operated { pod, services })
}

/// Operators that ask the pods that they made: the custom resource, the `app.kubernetes.io/name` of the
/// operator's own pods, and the port that they ask at. Without an answer they take the pods for dead.
const ASKED: [(&str, &str, &str, u16); 5] = [
    // CloudNativePG docs, "Networking".
    ("postgresql.cnpg.io", "Cluster", "cloudnative-pg", 8000),
    // Zalando's operator, "Patroni REST API".
    ("acid.zalan.do", "postgresql", "postgres-operator", 8008),
    ("dragonflydb.io", "Dragonfly", "dragonfly-operator", 6379),
    ("elasticsearch.k8s.elastic.co", "Elasticsearch", "elastic-operator", 9200),
    ("redis.redis.opstreelabs.in", "Redis", "redis-operator", 6379),
];

impl Network {
    /// What operators ask the pods that they made of custom resources.
    pub(crate) fn operators(&self, objects: &[Object<'_>], flows: &mut Vec<Flow>) {
        for object in objects {
            let key = &object.key;
            let Some((_, _, name, port)) =
                ASKED.iter().find(|(group, kind, ..)| key.group == *group && key.kind == *kind)
            else {
                continue;
            };
            let is_operator =
                |pod: &Pod| pod.labels.get("app.kubernetes.io/name").is_some_and(|it| it == name);
            let mut operators = self.pods.iter().enumerate().filter(|(_, pod)| is_operator(pod));
            let (Some((operator, _)), None) = (operators.next(), operators.next()) else { continue };
            let Some(own) = self.pods.iter().position(|pod| pod.object == Some(object.id)) else { continue };
            flows.push(Flow {
                pod: own,
                direction: Direction::Ingress,
                other: Destination::Pod(operator),
                addresses: Vec::new(),
                ports: vec![(Protocol::Tcp, *port)],
                need: Need::Operator(object.id),
            });
        }
    }
}
