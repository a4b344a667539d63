//! The Services that operators make of their custom resources: how each kind calls them.

use tiphys_graph::Object;
use tiphys_value::{ObjectExt, Value};

/// How the Services of one kind are called: `{}` is the name of the resource, `*` is any text.
pub(crate) struct OperatedKind {
    pub group: &'static str,
    pub kind: &'static str,
    names: &'static [&'static str],
    /// Those that are there only if the resource asks for them.
    asked_for: &'static [AskedFor],
}

/// The name of a Service, and whether a resource asks for it.
type AskedFor = (&'static str, fn(&Value) -> bool);

const fn kind(group: &'static str, kind: &'static str, names: &'static [&'static str]) -> OperatedKind {
    OperatedKind { group, kind, names, asked_for: &[] }
}

/// From the documentation and the code of the operators.
const KINDS: &[OperatedKind] = &[
    kind("postgresql.cnpg.io", "Cluster", &["{}-rw", "{}-ro", "{}-r", "{}-any"]),
    kind("postgresql.cnpg.io", "Pooler", &["{}"]),
    kind("dragonflydb.io", "Dragonfly", &["{}"]),
    OperatedKind {
        group: "k8s.mariadb.com",
        kind: "MariaDB",
        names: &["{}", "{}-internal", "{}-metrics", "{}-maxscale*"],
        asked_for: &[("{}-primary", is_replicated), ("{}-secondary", is_replicated)],
    },
    kind(
        "kafka.strimzi.io",
        "Kafka",
        &["{}-kafka-*", "{}-zookeeper-*", "{}-cruise-control", "{}-*-bootstrap", "{}-entity-*"],
    ),
    kind("kafka.strimzi.io", "KafkaConnect", &["{}-connect-api", "{}-connect"]),
    kind("kafka.strimzi.io", "KafkaBridge", &["{}-bridge-service"]),
    kind("elasticsearch.k8s.elastic.co", "Elasticsearch", &["{}-es-*"]),
    kind("kibana.k8s.elastic.co", "Kibana", &["{}-kb-http"]),
    kind("apm.k8s.elastic.co", "ApmServer", &["{}-apm-http"]),
    kind("acid.zalan.do", "postgresql", &["{}", "{}-repl", "{}-config", "{}-pooler", "{}-pooler-repl"]),
    kind(
        "postgres-operator.crunchydata.com",
        "PostgresCluster",
        &["{}-primary", "{}-replicas", "{}-ha", "{}-ha-config", "{}-pods", "{}-pgbouncer", "{}-pgadmin"],
    ),
    kind("rabbitmq.com", "RabbitmqCluster", &["{}", "{}-nodes"]),
    kind("databases.spotahome.com", "RedisFailover", &["rfs-{}", "rfr-{}", "rfrm-{}", "rfrs-{}"]),
    kind(
        "redis.redis.opstreelabs.in",
        "RedisReplication",
        &["{}", "{}-headless", "{}-additional", "{}-master", "{}-replica"],
    ),
    kind(
        "redis.redis.opstreelabs.in",
        "RedisSentinel",
        &["{}-sentinel", "{}-sentinel-headless", "{}-sentinel-additional"],
    ),
    kind(
        "pingcap.com",
        "TidbCluster",
        &[
            "{}-pd",
            "{}-pd-peer",
            "{}-tidb",
            "{}-tidb-peer",
            "{}-tikv-peer",
            "{}-tiflash-peer",
            "{}-discovery",
        ],
    ),
    kind("triggers.tekton.dev", "EventListener", &["el-{}"]),
    kind("operator.victoriametrics.com", "VMSingle", &["vmsingle-{}"]),
    kind("operator.victoriametrics.com", "VMAgent", &["vmagent-{}"]),
    kind("operator.victoriametrics.com", "VMAlert", &["vmalert-{}"]),
    kind("operator.victoriametrics.com", "VMAlertmanager", &["vmalertmanager-{}"]),
    kind("operator.victoriametrics.com", "VMAuth", &["vmauth-{}"]),
    kind("operator.victoriametrics.com", "VMCluster", &["vmselect-{}", "vminsert-{}", "vmstorage-{}"]),
    kind("operator.victoriametrics.com", "VLSingle", &["vlsingle-{}"]),
    kind("operator.victoriametrics.com", "VTSingle", &["vtsingle-{}"]),
    kind("ray.io", "RayCluster", &["{}-head-svc"]),
    kind(
        "pxc.percona.com",
        "PerconaXtraDBCluster",
        &[
            "{}-pxc",
            "{}-pxc-unready",
            "{}-haproxy",
            "{}-haproxy-replicas",
            "{}-proxysql",
            "{}-proxysql-unready",
        ],
    ),
    kind("psmdb.percona.com", "PerconaServerMongoDB", &["{}-mongos", "{}-cfg", "{}-rs*"]),
    kind(
        "pgv2.percona.com",
        "PerconaPGCluster",
        &["{}-primary", "{}-replicas", "{}-ha", "{}-ha-config", "{}-pods", "{}-pgbouncer"],
    ),
    kind("scylla.scylladb.com", "ScyllaCluster", &["{}-client"]),
    kind("redis.redis.opstreelabs.in", "RedisCluster", &["{}-leader*", "{}-follower*", "{}-master*"]),
];

/// Whether a MariaDB has several instances, of which one is the primary.
fn is_replicated(value: &Value) -> bool {
    let is_on = |field: &str| value.at(&["spec", field]).is_some_and(|it| it["enabled"] != false);
    is_on("replication") || is_on("galera") || value.at(&["spec", "primaryService"]).is_some()
}

impl OperatedKind {
    /// The kind of an object, if an operator makes Services of it.
    pub(crate) fn of_object(object: &Object) -> Option<&'static Self> {
        KINDS.iter().find(|it| it.kind == object.key.kind && it.group == object.key.group)
    }

    /// The Services of a resource, as patterns.
    pub(crate) fn services(&self, value: &Value) -> Vec<String> {
        let asked_for = self.asked_for.iter().filter(|(_, is_there)| is_there(value)).map(|(name, _)| *name);
        self.names.iter().copied().chain(asked_for).map(|name| name.replace("{}", value.name())).collect()
    }

    /// The name that a resource would have if a Service were one of its kind's, by words that say so: the
    /// name alone says nothing.
    pub(crate) fn resource_of<'n>(&self, service: &'n str) -> Option<&'n str> {
        let all = self.names.iter().chain(self.asked_for.iter().map(|(name, _)| name));
        all.filter(|name| name.len() > "{}".len() && !name.starts_with("{}-*")).find_map(|name| {
            let (before, after) = name.split_once("{}")?;
            let rest = service.strip_prefix(before)?;
            let own = match after.strip_suffix('*') {
                Some(after) => rest.rsplit_once(after).map(|(own, _)| own),
                None => rest.strip_suffix(after),
            };
            own.filter(|own| !own.is_empty())
        })
    }
}

/// Whether a name is one that a pattern stands for.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    name.strip_prefix(before).is_some_and(|rest| rest.len() > after.len() && rest.ends_with(after))
}

#[cfg(test)]
mod tests {
    use super::{KINDS, fits};

    #[test]
    fn names_say_which_resource_is_meant() {
        let of = |kind: &str, service| {
            KINDS.iter().find(|it| it.kind == kind).and_then(|it| it.resource_of(service))
        };
        assert_eq!(of("Cluster", "shop-rw"), Some("shop"));
        assert_eq!(of("Cluster", "shop"), None);
        assert_eq!(of("MariaDB", "db-primary"), Some("db"));
        assert_eq!(of("Kafka", "shop-kafka-bootstrap"), Some("shop"));
        assert_eq!(of("RedisFailover", "rfs-shop"), Some("shop"));
        assert_eq!(of("postgresql", "shop"), None);
    }

    #[test]
    fn patterns_have_one_gap() {
        assert!(fits("a-kafka-*", "a-kafka-brokers") && fits("a", "a"));
        assert!(!fits("a-kafka-*", "a-kafka-") && !fits("a", "ab"));
    }
}
