//! What programs say about themselves in their last lines.

use crate::{
    Cause,
    network::clipped,
    pattern::{has_any, pattern},
};

/// Something that a program says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The mechanism.
    pub cause: Cause,
    /// What it is about: a module, a flag, a path, a port, a word; empty if it is not told.
    pub subject: String,
    /// The line.
    pub line: String,
}

/// Words of a line, in lower case, and the mechanism that they tell of. The first row that fits counts.
const WORDS: &[(Cause, &[&str])] = &[
    (Cause::ImagePlatform, &["exec format error"]),
    (
        Cause::RunCommand,
        &[
            "could not import module",
            "unknown command",
            "unknown flag",
            "unknown shorthand flag",
            "unknown long flag",
            "flag parsing error",
            "undefined flag",
            "unrecognized option",
            "unrecognized arguments",
            "flag provided but not defined",
            "executable file not found",
            "command not found",
            "can't open file '",
            "cannot find module",
            "no module named",
            "modulenotfounderror",
            "could not find or load main class",
            "unable to access jarfile",
            "invalid option --",
            "illegal option",
            "unexpected argument",
            "is not recognized as an option",
            "unknown option",
            "no such option",
            "no such command",
            "failed to find attribute",
            "err_module_not_found",
            "found argument '",
            "error: unexpected argument",
            "unrecognised option",
            "required flag(s)",
            "the following arguments are required",
            "can't find main class",
            "missing script:",
            "unable to load celery application",
            "could not open input file",
            "error loading asgi app",
            "error loading wsgi app",
            "failed to parse module",
            "no main manifest attribute",
        ],
    ),
    (
        Cause::RunPortConflict,
        &[
            "address already in use",
            "eaddrinuse",
            "port is already allocated",
            "only one usage of each socket address",
            "bind: address in use",
            "port already in use",
        ],
    ),
    (
        Cause::RunDiskFull,
        &[
            "no space left on device",
            "enospc",
            "disk quota exceeded",
            // Ceph, of a store that takes no more; one that is nearly full still works.
            " full osd(s)",
            "pool(s) full",
            "could not extend file",
            "disk is full",
            "not enough disk space",
            "low-disk space condition",
            "low disk space condition",
            "insufficient disk space",
            "out of disk space",
        ],
    ),
    (
        Cause::ControlEtcd,
        &[
            "mvcc: database space exceeded",
            "etcdserver: no space",
            "alarm:nospace",
            "nospace alarm",
            "etcdserver: mvcc: database space",
        ],
    ),
    (
        Cause::ApiOverload,
        &[
            "too many requests and has asked us to try again later",
            "leader election lost",
            "leaderelection lost",
        ],
    ),
    (
        Cause::AppBackendState,
        &[
            "too many connections",
            "resource limit alarm",
            "publishers will be blocked",
            "too many clients already",
            "remaining connection slots are reserved",
            "max number of clients reached",
            "read-only transaction",
            "read only replica",
            "--read-only option",
            "readonly you can't write",
            "vault is sealed",
            "error: sealed",
            "is sealed",
            "sealed true",
            "rejecting connections",
            "node is not in primary or recovering state",
            "not_leader_for_partition",
            "no leader",
            "master not discovered",
            "master_not_discovered",
            "cluster_manager_not_discovered",
            "not_leader_or_follower",
            "not_coordinator",
            "coordinator_not_available",
            "fewer in-sync replicas than required",
            "notenoughreplicas",
            "not enough good replicas",
            "no brokers available for partition",
            "not enough in-sync replicas",
            "cannot achieve consistency level",
            "not enough replicas available for query",
            "active cluster node not found",
            "active node address <none>",
            "election timeout reached",
            "lost quorum",
            "no quorum",
            "not the leader",
            "leader not available",
            "leader_not_available",
            "not master",
            "notprimary",
            "not primary",
            "no primary",
            "the database system is starting up",
            "the database system is in recovery mode",
            "the database system is shutting down",
            "misconf redis is configured",
            "oom command not allowed",
            "loading redis is loading",
            "clusterdown",
            "cluster_block_exception",
            "resource_alarm",
            "memory alarm",
            "memory resource limit alarm",
            "disk alarm",
            "not enough replicas",
            "not_enough_replicas",
            "deadlock detected",
            "could not acquire change log lock",
            "lock wait timeout exceeded",
            "because of many connection errors",
            "no reachable servers",
            "no cluster leader",
            "no elected leader",
            "hot standby mode is disabled",
            "not accepting connections",
            "in read-only mode",
            "in readonly mode",
            "timeout_waiting_for_tables",
            "replica set has no primary",
            "replicasetnoprimary",
            "do not have a majority",
            "cannot see a majority",
            "low on memory",
            "connection.blocked",
            "connectionblocked",
            "masterdown",
            "no quorum",
            "quorum lost",
            "cluster is unavailable",
            "index read-only",
            "flood stage",
            "database is locked",
            "database is read-only",
            "lost quorum",
        ],
    ),
    (
        Cause::OperatorCloudCredentials,
        &[
            "accessdenied:",
            "is not authorized to perform",
            "unauthorizedoperation",
            "expiredtoken",
            "invalidclienttokenid",
            "authorizationfailed",
            "error 403: permission",
            "googleapi: error 403",
            "googleapi: error 401",
            "no ec2 imds role found",
            "ec2imds: getmetadata",
            "no valid providers in chain",
            "unable to locate credentials",
            "webidentityerr",
            "invalididentitytoken",
            "could not find default credentials",
            // Google's word for a right that an identity lacks.
            "' denied on resource",
            "unable to acquire impersonated credentials",
            "nocredentialproviders",
            "failed to refresh cached credentials",
            "unrecognizedclientexception",
            "the security token included in the request is",
            "aadsts",
            "assumerolewithwebidentity",
        ],
    ),
    (
        Cause::ConfigCredentials,
        &[
            "password authentication failed",
            // GitHub, Cloudflare, Stripe, OpenAI, Vault.
            "bad credentials",
            "invalid tunnel secret",
            "invalid api key provided",
            "incorrect api key provided",
            "invalid role or secret id",
            "service account name not authorized",
            "namespace not authorized",
            "access denied for user",
            "wrongpass",
            "noauth authentication required",
            "invalid username-password pair",
            "authentication failed",
            "failed to authenticate",
            "could not authenticate",
            "invalid challenge reply",
            "ldap error code 49",
            "ldap result code 49",
            "wrong password",
            "incorrect password",
            "no password supplied",
            "does not support authentication protocol",
            "invalidaccesskeyid",
            "access key id you provided does not exist",
            "user not found",
            "access_refused",
            "login was refused using authentication mechanism",
            "err invalid password",
            "sasl authentication failed",
            "exception authenticating",
            "logon denied",
            "ora-01017",
            "authorization violation",
            "authentication error on",
            "unable to authenticate",
            "password are incorrect",
            "password is incorrect",
            "password authentication is not allowed",
            "authenticationexception",
            "login incorrect",
            "saslauthenticationexception",
            "invalid credentials",
            "incorrect user name or password",
            "incorrect username or password",
            "invalid username or password",
            "cannot complete login",
            "bad credentials",
            "login failed for user",
            "no pg_hba.conf entry",
            "auth failed",
            "authentication failure",
            "authenticationfailed",
            "invalid_client",
            "invalid api key",
            "signaturedoesnotmatch",
            "permission denied for database",
            "permission denied for schema",
            "permission denied for table",
            "permission denied for relation",
            "permission denied for sequence",
            "permission denied for function",
            "permission denied to create",
            "must be owner of",
            "insufficientprivilege",
            "command denied to user",
            "not authorized on ",
            "role \"",
            "535 5.7.8",
            "unauthorized: invalid token",
            "client sent auth, but no password is set",
            // Clients of Git: JGit, and the command.
            ".git: not authorized",
            "no credentialsprovider has been registered",
            "could not read username for",
        ],
    ),
    (
        Cause::RunPermission,
        &[
            "permission denied",
            "operation not permitted",
            "eacces",
            "read-only file system",
            "erofs",
            "permissionerror",
            "accessdeniedexception",
            "not permitted to run as root",
            "are too open",
            "has group or world access",
            "unprotected private key",
            "bad owner or permissions",
            "has invalid permissions",
            "eperm",
            "has wrong ownership",
            "has invalid ownership",
            "incorrect ownership",
            "must be owned by",
            "is not owned by",
            "is owned by uid",
            "not writable",
            "is not writeable",
            "to add write permissions",
        ],
    ),
];

/// What a node gives all its programs together: files that they watch and open, connections that it follows.
/// A line tells that it is used up by one word of each column.
const USED_UP: &[(&[&str], &[&str])] = &[
    (
        &["inotify", "fsnotify", "watcher", "file watch", "directory watch"],
        &["too many open files", "no space left", "enospc", "limit"],
    ),
    (&["too many open files in system", "enfile"], &[""]),
    (&["nf_conntrack", "conntrack"], &["table full"]),
];

/// Words by which a program misses a module of the kernel.
const NO_MODULE: &[&str] = &[
    "modprobe: fatal: module",
    "modprobe: error: could not insert",
    "modprobe: can't change directory",
    "could not open moddep file",
    "do you need to insmod",
    "required kernel modules are not loaded",
    "failed to load kernel module",
    "kernel module not loaded",
    "missing kernel module",
    "try 'modprobe",
    "bridge-nf-call-iptables: no such file",
    "failed to check br_netfilter",
    "could not fetch rule set generation id",
    "failed to initialize nft",
];

/// What a program says of its node: something that all share is used up, or its kernel lacks a module.
fn of_node(low: &str) -> Option<Cause> {
    if USED_UP.iter().any(|(what, end)| has_any(low, what) && has_any(low, end)) {
        Some(Cause::NodePressure)
    } else {
        // Who lacks the right to look says the same of modules that are there.
        let lacks = has_any(low, NO_MODULE)
            && !has_any(low, &["you can ignore this", "permission denied", "not permitted", "must be root"]);
        lacks.then_some(Cause::NodeRuntime)
    }
}

/// Words that make a complaint of the API or the network out of what else looks like one of the program.
const OF_OTHERS: &[&str] =
    &["is forbidden", "cannot list resource", "cannot get resource", "cannot watch resource", "x509"];

pattern!(
    SUBJECT,
    r#"(?ix)
    (?: import \s module | no \s module \s named | cannot \s find \s (?:module|package) | jarfile | main \s class | command | flag | option | argument | role | user ) :? \s* ['"`]? (-{0,2}[\w./@:-]+)
    | ['"`](/[^'"`]+)['"`]
    | \s(/[\w./-]+)
    | (?: address | port | listen | bind ) .{0,40}? :(\d{2,5})
    "#
);

/// Whether a shell says that what it should run is not there.
fn is_no_command(low: &str) -> bool {
    let is_of_shell = has_any(low, &["sh: ", "exec ", "/scripts/", "entrypoint", "exec: "]);
    is_of_shell && has_any(low, &["no such file or directory", ": not found"])
}

/// The complaints of a log, the last ones first, each mechanism once.
#[must_use]
pub fn complaints(log: &str) -> Vec<Complaint> {
    let mut found: Vec<Complaint> = Vec::new();
    for line in log.lines().rev() {
        let line = clipped(line);
        let low = line.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
        if has_any(&low, OF_OTHERS) {
            continue;
        }
        let of_words = || WORDS.iter().find(|(_, words)| has_any(&low, words)).map(|(cause, _)| *cause);
        let known = of_node(&low).or_else(of_words);
        let Some(cause) = known.or_else(|| is_no_command(&low).then_some(Cause::RunCommand)) else {
            continue;
        };
        let is_role = low.contains("role \"") && !low.contains("does not exist");
        if found.iter().any(|it| it.cause == cause) || cause == Cause::ConfigCredentials && is_role {
            continue;
        }
        let subject = SUBJECT
            .captures(line)
            .and_then(|it| it.iter().skip(1).flatten().next().map(|it| it.as_str().to_owned()));
        found.push(Complaint { cause, subject: subject.unwrap_or_default(), line: line.to_owned() });
    }
    found
}

pattern!(
    VALUE,
    r#"(?ix)
    (?: invalid | unsupported | unknown | unrecogni[sz]ed | bad | illegal | unexpected ) \s+ (?: value | level | log \s? level | mode | (?:\w+\s)? (?:setting|config(?:uration)?|parameter|driver|backend|provider|environment|profile|region|scheme|dialect|format|storage|engine|url|port|loglevel|protocol|codec|type|option|key)) (?: \s for \s ['"`]?([\w.-]+)['"`]? )? :? \s* =? \s* ['"`]?([^\s'"`,;)]+)
    | (?: could \s not \s parse | cannot \s parse | failed \s to \s parse | unable \s to \s parse | failed \s parsing | error \s parsing | parse \s error \s in | malformed ) [^'"`]{0,40} ['"`]([^'"`]+)['"`]
    | (?: database | vhost | virtual \s host | bucket | keyspace | realm ) \s ['"`]? ([\w./-]+) ['"`]? \s (?: does \s not \s exist | (?:was \s)? not \s found )
    | unknown \s database \s ['"`] ([^'"`]+) ['"`]
    | (?: not \s a \s valid | is \s not \s a \s supported | is \s not \s supported | is \s not \s one \s of ) ()
    | ((?-i:[A-Z][A-Z0-9_]{2,})) \s? [:=]? \s? (?: is \s (?:required|not \s set|not \s defined|undefined|unset|missing|empty|invalid) | must \s be | not \s set | environment \s variable \s (?:is \s)? (?:required|missing|not \s set) )
    | ['"] ((?-i:[A-Z][A-Z0-9_]{2,})) ['"] \s must \s be
    | (?: missing | required ) \s (?: required \s)? (?: environment \s variable | env(?:ironment)? (?:\s var)? | setting | configuration ) s? :? \s* ['"`]? ((?-i:[A-Z][A-Z0-9_]{2,}))
    | field \s ['"`]? ([\w.-]+) ['"`]? \s not \s found \s in \s (?:type|struct)
    | (?: unknown | unexpected | unrecogni[sz]ed | unsupported | invalid | duplicate ) \s (?: field | key | directive | property | parameter | attribute ) s? :? \s ['"`] ([^'"`]+) ['"`]
    | unknown \s (?: variable | keyword | command \s in \s configuration ) \s ['"`] ([^'"`=]+) (?: = ([^'"`]+) )? ['"`]
    | \b parsing \s \\?["'] ([^"'\\]+) \\?["'] : \s (?: invalid \s syntax | value \s out \s of \s range )
    | For \s input \s string: \s ["'] ([^"']+)
    | invalid \s literal \s for \s int\(\) \s with \s base \s \d+: \s ["'] ([^"']+)
    | \bsection \s ['"] ([^'"]+) ['"] \s tried \s to \s instance
    | \b invalid \s role \s name \s ['"] ([^'"]+)
    | KeyError: \s ['"] ((?-i:[A-Z][A-Z0-9_]{2,})) ['"]
    | key \s not \s found: \s ['"] ((?-i:[A-Z][A-Z0-9_]{2,})) ['"]
    | ['"] ([\w.-]+) ['"] \s attribute \s is \s not \s specified
    | could \s not \s resolve \s placeholder \s ['"] ([^'"]+) ['"]
    | (?: environment \s variable | env \s var ) \s not \s found: \s ['"`]? ((?-i:[A-Z][A-Z0-9_]{2,}))
    | required \s key \s ((?-i:[A-Z][A-Z0-9_]{2,})) \s missing
    | \b ((?-i:[A-Z][A-Z0-9_]{2,})) : \s (?: unbound \s variable | parameter \s (?: null \s or \s )? not \s set | undefined \b )
    | the \s config \s property \s ([\w.-]+) \s is \s required
    | value \s cannot \s be \s null\. \s \( (?: parameter \s )? ['"]? (\w+)
    "#
);

/// A value of the configuration that a program refuses, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedValue {
    /// The words that it quotes: a value, a variable; some may be empty.
    pub words: Vec<String>,
    /// The line.
    pub line: String,
}

/// Whether a word names a flag, and no value.
fn is_flag(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic()))
}

/// The last values that a program refuses.
#[must_use]
pub fn refused_values(log: &str) -> Vec<RefusedValue> {
    let lines = log.lines().rev().map(clipped);
    let found = lines.filter_map(|line| {
        let it = VALUE.captures(line)?;
        let words: Vec<String> = it
            .iter()
            .skip(1)
            .flatten()
            // Quotes inside of quotes are marked.
            .map(|it| it.as_str().trim_end_matches('\\').to_owned())
            .filter(|it| it.chars().any(char::is_alphanumeric) && !is_flag(it))
            .collect();
        Some(RefusedValue { words, line: line.to_owned() })
    });
    found.take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_programs() {
        for (line, cause, subject) in [
            ("ERROR: Error loading ASGI app. Could not import module \"main\".", Cause::RunCommand, "main"),
            ("Error: unknown command \"/bin/x\" for \"x\"", Cause::RunCommand, "/bin/x"),
            ("ModuleNotFoundError: No module named 'app'", Cause::RunCommand, "app"),
            ("Error: listen EADDRINUSE: address already in use 0.0.0.0:8080", Cause::RunPortConflict, "8080"),
            ("mkdir: cannot create directory '/data/x': Permission denied", Cause::RunPermission, "/data/x"),
            ("write /data/wal: no space left on device", Cause::RunDiskFull, "/data/wal"),
            ("FATAL: password authentication failed for user \"shop\"", Cause::ConfigCredentials, "shop"),
            ("FATAL: sorry, too many clients already", Cause::AppBackendState, ""),
            ("NOT_LEADER_OR_FOLLOWER", Cause::AppBackendState, ""),
            ("master_not_discovered_exception", Cause::AppBackendState, ""),
            ("ORA-01017: invalid credential or not authorized; logon denied", Cause::ConfigCredentials, ""),
            ("nats: Authorization Violation", Cause::ConfigCredentials, ""),
            ("permission denied for schema public", Cause::ConfigCredentials, ""),
            ("permissions on /etc/db/keyfile are too open", Cause::RunPermission, "/etc/db/keyfile"),
            ("panic: new certificate watcher: too many open files", Cause::NodePressure, ""),
            ("Error: ENOSPC: System limit for number of file watchers reached", Cause::NodePressure, ""),
            ("modprobe: FATAL: Module wireguard not found in directory", Cause::NodeRuntime, ""),
            (
                "FATAL: data directory \"/var/lib/db\" has wrong ownership",
                Cause::RunPermission,
                "/var/lib/db",
            ),
            ("Unable to load celery application.", Cause::RunCommand, ""),
            ("NOREPLICAS Not enough good replicas to write.", Cause::AppBackendState, ""),
            ("type: 'ReplicaSetNoPrimary',", Cause::AppBackendState, ""),
            (
                "TransportException: https://git.example.org/a.git: not authorized",
                Cause::ConfigCredentials,
                "",
            ),
            ("Error 1129: Host 'a' is blocked because of many connection errors", Cause::AppBackendState, ""),
        ] {
            let read = complaints(line);
            assert_eq!(read.len(), 1, "{line}");
            assert_eq!((read[0].cause, read[0].subject.as_str()), (cause, subject), "{line}");
        }
        assert!(
            complaints("pods is forbidden: User \"x\" cannot list resource \"pods\": permission denied")
                .is_empty()
        );
    }

    #[test]
    fn refused_values_are_quoted() {
        assert_eq!(refused_values("panic: invalid log level: \"verbose\"")[0].words, ["verbose"]);
        assert_eq!(refused_values("DATABASE_URL is required")[0].words, ["DATABASE_URL"]);
        assert_eq!(refused_values("FATAL: database \"orders\" does not exist")[0].words, ["orders"]);
        assert_eq!(refused_values("ERROR 1049: Unknown database 'orders'")[0].words, ["orders"]);
        assert_eq!(refused_values("(530) NOT_ALLOWED - vhost orders not found")[0].words, ["orders"]);
        assert_eq!(
            refused_values("line 5: field endpoints not found in type s3.Config")[0].words,
            ["endpoints"]
        );
        assert_eq!(
            refused_values("[emerg] 1#1: unknown directive \"srever\" in /etc/a.conf:3")[0].words,
            ["srever"]
        );
        assert_eq!(
            refused_values("strconv.ParseInt: parsing \"tcp://10.96.0.7:6379\": invalid syntax")[0].words,
            ["tcp://10.96.0.7:6379"]
        );
        assert_eq!(
            refused_values("section 'search' tried to instance a plugin name that doesn't exist")[0].words,
            ["search"]
        );
        assert!(refused_values("Invalid value for '-A' / '--app':")[0].words.is_empty());
        assert!(refused_values("started").is_empty());
        assert!(refused_values("field notes were found").is_empty());
    }
}
