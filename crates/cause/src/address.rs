//! Network addresses in texts: URLs, `host:port`, and the forms that clients of databases print.

use crate::pattern::pattern;

/// An address that a text names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// `http`, `amqp`; empty if it is not told.
    pub scheme: String,
    /// A name or an IP address.
    pub host: String,
    /// The port, or the one that the scheme implies.
    pub port: Option<u16>,
}

impl Address {
    /// Whether the host is an IP address.
    #[must_use]
    pub fn is_ip(&self) -> bool {
        self.host.parse::<std::net::IpAddr>().is_ok()
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => write!(formatter, "{}:{port}", self.host),
            None => formatter.write_str(&self.host),
        }
    }
}

/// Ports that schemes imply.
const PORTS: &[(&str, u16)] = &[
    ("http", 80),
    ("ws", 80),
    ("https", 443),
    ("wss", 443),
    ("oci", 443),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("mysql", 3306),
    ("mariadb", 3306),
    ("redis", 6379),
    ("rediss", 6379),
    ("mongodb", 27017),
    ("amqp", 5672),
    ("amqps", 5671),
    ("nats", 4222),
    ("kafka", 9092),
    ("ldap", 389),
    ("ldaps", 636),
    ("smtp", 25),
    ("memcached", 11211),
];

/// Ends of file names, which stand before a line number as a host does before a port.
const FILES: &[&str] = &[
    ".go", ".py", ".js", ".mjs", ".ts", ".java", ".rs", ".rb", ".php", ".cc", ".cpp", ".c", ".cs", ".scala",
    ".kt", ".ex", ".exs", ".lua", ".yaml", ".yml", ".json", ".conf", ".cfg", ".sh", ".h", ".log", ".tsx",
    ".jsx", ".toml", ".ini",
];

pattern!(
    URL,
    r#"(?i)\b([a-z][a-z0-9+.-]*)://(?:[^\s/@"'<>]*@)?(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?"#
);
pattern!(
    PAIR,
    r"(?i)(?:^|[^a-z0-9_.:/@-])(\[[0-9a-f:]+\]|[a-z0-9](?:[a-z0-9_.-]*[a-z0-9])?):(\d{2,5})(?:$|[^0-9a-z.:-]|\.(?:$|\s)|:(?:$|\s))"
);
// Targets of gRPC: `dns:///host:port`, `etcd-endpoints://0xc0001/host:port`.
pattern!(GRPC, r"(?i)\b[a-z][a-z-]*://(?:0x[0-9a-f]+|[^/\s]*)/([a-z0-9][a-z0-9.-]*[a-z0-9]):(\d{2,5})\b");
pattern!(JDBC, r"(?i)\bjdbc:[a-z0-9]+:(?:thin:@)?//([a-z0-9_.-]+)(?::(\d{1,5}))?");
pattern!(
    NAMED,
    r#"(?ix)
    \bhost \s* [=:] \s* ['"]? ([a-z0-9_.-]+) ['"]? \s* [,;]? \s* port \s* [=:] \s* ['"]? (\d{1,5})
    | \bserver \s at \s "([^"]+)" (?: \s \([^)]*\) )? , \s port \s (\d{1,5})
    | \bconnect \s to \s (?: server \s )? ([a-z0-9_.-]+) \s port \s (\d{1,5})
    | \b([a-z0-9_.-]+) \s port \s (\d{1,5}) \s failed
    | \baddress=([a-z0-9_.-]+)/[0-9.]*:(\d{1,5})
    | \b([a-z0-9_.-]+)/(?:<unresolved>|[0-9.]+):(\d{1,5})
    | \b(?:server|data \s source) \s* = \s* (?:tcp:)? ([a-z0-9_.-]+) , (\d{1,5})
    | \bconnecting \s to \s ([a-z0-9_.-]+) \s (?:on \s)? port \s (\d{1,5})
    "#
);
pattern!(
    HOST,
    r#"(?ix)
    \blookup \s ([a-z0-9_.-]+)
    | (?: ENOTFOUND | EAI_AGAIN ) \s+ ([a-z0-9_.-]+)
    | UnknownHostException: \s+ ([a-z0-9_.-]+)
    | translate \s host \s name \s "([^"]+)"
    | resolve \s (?:host|hostname|proxy|server|address) (?: \s name )? :? \s ['"]? ([a-z0-9_.-]+)
    | bad \s address \s ['"] ([^'"]+)
    | host \s not \s found \s in \s (?:upstream|resolver) \s "([^":]+)
    | error \s for \s host \s ([a-z0-9_.-]+)
    | server \s (?:host \s | on \s) ['"] ([^'"]+) ['"] \s* \( -?\d+
    | Unknown \s (?:MySQL \s server \s)? host \s ['"] ([^'"]+)
    | DNS \s resolution \s failed \s for \s ([a-z0-9_.-]+)
    | dial \s tcp : \s address \s ([a-z0-9_.-]+)
    | no \s such \s host : \s ([a-z0-9_.-]+)
    | Name \s or \s service \s not \s known : \s* ([a-z0-9_.-]+)
    | \b(?:server|host|data \s source) \s* = \s* (?:tcp:)? ([a-z0-9_.-]+) \s* ;
    "#
);

/// The addresses that a text names, in order, each once.
#[must_use]
pub fn addresses(text: &str) -> Vec<Address> {
    let mut found: Vec<(usize, Address)> = Vec::new();
    let mut add = |at: usize, scheme: &str, host: &str, port: Option<u16>| {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        let scheme = scheme.to_ascii_lowercase();
        let port = port.or_else(|| PORTS.iter().find(|(name, _)| *name == scheme).map(|(_, port)| *port));
        if is_host(&host)
            && !found.iter().any(|(_, it)| it.host == host && (it.port == port || port.is_none()))
        {
            found.push((at, Address { scheme, host, port }));
        }
    };
    for it in URL.captures_iter(text) {
        let port = it.get(3).and_then(|port| port.as_str().parse().ok());
        add(it.get(0).map_or(0, |it| it.start()), &it[1], &it[2], port);
    }
    for it in GRPC.captures_iter(text) {
        add(it.get(0).map_or(0, |it| it.start()), "", &it[1], it[2].parse().ok());
    }
    for it in JDBC.captures_iter(text) {
        let port = it.get(2).and_then(|port| port.as_str().parse().ok());
        add(it.get(0).map_or(0, |it| it.start()), "", &it[1], port);
    }
    for it in NAMED.captures_iter(text) {
        let groups: Vec<&str> = it.iter().skip(1).flatten().map(|group| group.as_str()).collect();
        if let [host, port] = groups[..] {
            add(it.get(0).map_or(0, |it| it.start()), "", host, port.parse().ok());
        }
    }
    for it in PAIR.captures_iter(text) {
        if let Ok(port) = it[2].parse::<u16>() {
            add(it.get(1).map_or(0, |it| it.start()), "", &it[1], Some(port));
        }
    }
    for it in HOST.captures_iter(text) {
        if let Some(host) = it.iter().skip(1).flatten().next() {
            add(host.start(), "", host.as_str(), None);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, address)| address).collect()
}

/// Whether a word can be a host: no number, no file, no clock.
fn is_host(host: &str) -> bool {
    let has_letter = host.chars().any(|c| c.is_ascii_alphabetic());
    let is_ip = host.parse::<std::net::IpAddr>().is_ok();
    let is_level = matches!(
        host,
        "error" | "info" | "warn" | "line" | "at" | "code" | "status" | "errno" | "port" | "exit"
            // `failed to lookup address information`
            | "address" | "hostname" | "failed"
    );
    (is_ip || has_letter)
        && !is_level
        && !host.is_empty()
        && host.len() <= 253
        && !FILES.iter().any(|end| host.ends_with(end))
        && !host.starts_with(['.', '-'])
        // A pointer, as clients of gRPC print it.
        && !host.strip_prefix("0x").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit()))
        && !host.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses_in(text: &str) -> Vec<String> {
        addresses(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn urls_pairs_and_what_clients_print() {
        assert_eq!(addresses_in("POST https://pay.example.org/v1: timeout"), ["pay.example.org:443"]);
        assert_eq!(
            addresses_in("connecting to amqp://user:pw@queue.mq.svc:5673/vhost"),
            ["queue.mq.svc:5673"]
        );
        assert_eq!(
            addresses_in("dial tcp 10.96.0.10:5432: connect: connection refused"),
            ["10.96.0.10:5432"]
        );
        assert_eq!(
            addresses_in(r#"connection to server at "db" (10.0.0.1), port 5432 failed: refused"#),
            ["db:5432"]
        );
        assert_eq!(addresses_in("HTTPConnectionPool(host='api', port=8080): Max retries"), ["api:8080"]);
        assert_eq!(addresses_in("Error 111 connecting to redis:6379. Connection refused."), ["redis:6379"]);
        assert_eq!(addresses_in("Connection to node -1 (kafka/10.0.0.7:9092) could not"), ["kafka:9092"]);
        assert_eq!(addresses_in("getaddrinfo ENOTFOUND mongo.data"), ["mongo.data"]);
        assert_eq!(
            addresses_in("dial tcp: lookup db.shop.svc on 10.96.0.10:53: no such host"),
            ["db.shop.svc", "10.96.0.10:53"]
        );
        assert_eq!(addresses_in("jdbc:postgresql://orders-db:5432/orders"), ["orders-db:5432"]);
        assert_eq!(addresses_in("target=etcd-endpoints://0xc00012a/kv.data.svc:2379"), ["kv.data.svc:2379"]);
        assert_eq!(addresses_in("dial dns:///queue.mq.svc:9000 failed"), ["queue.mq.svc:9000"]);
        assert_eq!(addresses_in("Server=sql,1433;Database=bills"), ["sql:1433"]);
        assert_eq!(addresses_in("Host=pg;Port=5432;Database=bills"), ["pg:5432"]);
        assert_eq!(addresses_in("Server=sql;Database=bills"), ["sql"]);
    }

    #[test]
    fn clocks_files_and_numbers_are_no_addresses() {
        assert!(addresses_in("failed to lookup address information: Name or service not known").is_empty());
        assert!(
            addresses_in("E0310 08:58:11 reflector.go:561] failed at 12:30:45, main.py:77: 1:2").is_empty()
        );
    }
}
