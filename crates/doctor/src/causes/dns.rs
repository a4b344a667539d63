//! The cluster's DNS: its pods, its configuration, the way to it, and pods that ask elsewhere.

use tiphys_cause::{Cause, FailedCall, Failure};
use tiphys_network::Direction;
use tiphys_value::{ObjectExt as _, Value, json};

use crate::{
    Object,
    calls::Caller,
    cluster::{items, pods},
    finding::Finding,
    log_evidence::{Fact, LogFact},
    policy::{End, Port, blocking, newest_change, opening},
    search_context::{Ill, Look},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let Some(service) = service(look) else {
        let told = configuration(look, "kube-system", &pods_by_label(look), None, None);
        return told.into_iter().chain(without_service(look)).collect();
    };
    let object = Object::from_live(service);
    let mut found = Vec::new();
    let workloads = look.cluster.workloads_of(service);
    let workload = workloads.first().map(|live| Object::from_live(live));
    let dns_pods = look.cluster.pods_of(service);
    found.extend(configuration(look, service.namespace(), &dns_pods, Some(&object), workload.as_ref()));
    found.extend(silent_zone(look, service.namespace(), &dns_pods));
    // Nothing that could serve was saved: neither what the Service leads to nor any neighbour of it.
    let slices = look.cluster.endpoint_slices(service.namespace(), service.name());
    let is_saved = !slices.is_empty()
        || workload.is_some()
        || look.cluster.get("Endpoints", service.namespace(), service.name()).is_some()
        || !look.cluster.pods_in(service.namespace()).is_empty();
    if look.cluster.is_served(service) || !is_saved {
        return found;
    }
    let at = workload.clone().unwrap_or_else(|| object.clone());
    let scaled = workloads.first().is_some_and(|live| pods::replicas(live) == 0);
    let mut finding =
        Finding::new(Cause::DnsDown, at.clone(), 0.9, format!("the cluster's DNS has no endpoints: {at}"))
            .evidence(
                object.to_string(),
                if scaled { "its workload is scaled to zero" } else { "none of its pods is ready" },
            )
            .remedy(
                "Bring the DNS pods back.",
                &[format!("kubectl -n {} get pods -l k8s-app=kube-dns", object.namespace)],
            )
            .suffers(object.clone(), "has no endpoints");
    for pod in look.cluster.pods_of(service) {
        finding = finding.below(Object::from_live(pod)).suffers(Object::from_live(pod), "not ready");
        if let Some(node) = pod.str_at(&["spec", "nodeName"]) {
            finding = finding.below(Object::new("Node", "", node));
        }
    }
    for live in workloads {
        finding = finding.below(Object::from_live(live));
    }
    if look.cluster.pods_of(service).is_empty() {
        finding = look.red.keys().filter(|it| it.kind == "Node").cloned().fold(finding, Finding::below);
    }
    // Nodes in trouble keep its pods away: why they are is the cause, and is not known if they were not
    // saved.
    let troubled = look.cluster.pods_of(service).iter().any(|pod| is_kept_away(pod));
    let ends_unseen = dns_pods.iter().any(|pod| {
        pods::statuses(pod).any(|status| pods::ended(status).is_some())
            && look.cluster.logs(pod.namespace(), pod.name()).is_empty()
    });
    let is_unseen = !scaled && !look.cluster.has_kind("Pod") || ends_unseen;
    if troubled && !look.cluster.has_kind("Node") || is_unseen {
        finding = finding.not_known();
    }
    if workload.is_none()
        && let Some(below) = crate::calls::empty_service(look.cluster, service)
    {
        finding = below.suffers(object, "has no endpoints");
    }
    found.push(finding);
    found
}

/// Whether the cluster's DNS answers nobody: its Service is gone, it has no endpoints, or its configuration
/// is wrong.
pub(crate) fn answers_nobody(look: &Look<'_>) -> bool {
    let Some(service) = service(look) else { return without_service(look).is_some() };
    let pods = look.cluster.pods_of(service);
    !look.cluster.is_served(service) || configuration(look, service.namespace(), &pods, None, None).is_some()
}

/// The workloads that cannot look names up, and the Service that they ask.
pub(crate) fn lookups(look: &Look<'_>) -> Vec<(Object, Object)> {
    let Some(service) = service(look) else { return Vec::new() };
    let service = Object::from_live(service);
    let asks = |ill: &&Ill<'_>| ill.facts.iter().any(is_failed_lookup);
    look.ill.iter().filter(asks).map(|ill| (ill.workload.clone(), service.clone())).collect()
}

fn is_failed_lookup(fact: &LogFact) -> bool {
    matches!(&fact.fact, Fact::Call(call) if matches!(call.failure, Failure::NoSuchHost | Failure::LookupTimeout))
}

/// Whether it is known why a caller gets no answer from the cluster's DNS.
pub(crate) fn is_lookup_explained<'a>(look: &Look<'a>, caller: &Caller<'a>, call: &FailedCall) -> bool {
    lookup_fault(look, caller, call).is_some_and(|finding| finding.is_asserted())
}

/// The Service of the cluster's DNS is gone, while its pods run and lookups fail.
fn without_service(look: &Look<'_>) -> Option<Finding> {
    let knows = look.cluster.all("Service").iter().any(|it| it.namespace() == "kube-system");
    let pod = pods_by_label(look).into_iter().next().filter(|_| knows)?;
    let lost = look.ill.iter().filter(|ill| {
        ill.facts
            .iter()
            .any(|fact| matches!(&fact.fact, Fact::Call(call) if call.failure == Failure::LookupTimeout))
    });
    let lost: Vec<&Object> = lost.map(|ill| &ill.workload).collect();
    let object = Object::new("Service", "kube-system", "kube-dns");
    let summary = format!("{object}, at which pods ask for names, does not exist");
    let finding = Finding::new(Cause::DnsDown, object, 0.92, summary)
        .evidence(look.cluster.workload(pod).to_string(), "it runs, and no Service leads to it")
        .remedy("Make the Service again, with the address that pods have in /etc/resolv.conf.", &[]);
    (!lost.is_empty()).then(|| {
        lost.into_iter().fold(finding, |finding, it| finding.suffers(it.clone(), "gets no answer from DNS"))
    })
}

/// Whether taints by which nodes tell of their own troubles keep a pod away.
fn is_kept_away(pod: &Value) -> bool {
    let message = pods::unscheduled(pod).and_then(|it| it.str_at(&["message"])).unwrap_or_default();
    message.contains("{node.kubernetes.io/") || message.contains("{node.cloudprovider.kubernetes.io/")
}

/// The Service of the cluster's DNS.
pub(crate) fn service<'a>(look: &Look<'a>) -> Option<&'a Value> {
    let all = look
        .cluster
        .all("Service")
        .iter()
        .copied()
        .filter(|it| matches!(it.namespace(), "kube-system" | "openshift-dns"));
    all.clone()
        .find(|it| matches!(it.name(), "kube-dns" | "coredns" | "dns-default" | "rke2-coredns-rke2-coredns"))
        .or_else(|| {
            let mut all = all;
            all.find(|it| {
                it.at(&["spec", "selector", "k8s-app"]).and_then(Value::as_str) == Some("kube-dns")
                    && items(it, &["spec", "ports"]).any(|port| port.int_at(&["port"]) == Some(53))
            })
        })
}

/// The pods of the cluster's DNS where its Service was not saved.
fn pods_by_label<'a>(look: &Look<'a>) -> Vec<&'a Value> {
    let all = look.cluster.pods_in("kube-system").iter().copied();
    all.filter(|pod| pod.label("k8s-app") == Some("kube-dns")).collect()
}

/// What is wrong with the configuration of CoreDNS, told by its log.
fn configuration(
    look: &Look<'_>,
    namespace: &str,
    pods: &[&Value],
    service: Option<&Object>,
    workload: Option<&Object>,
) -> Option<Finding> {
    let (object, corefile) =
        corefile(look, namespace).unwrap_or_else(|| (Object::new("ConfigMap", namespace, "coredns"), ""));
    for pod in pods {
        for log in look.cluster.logs(pod.namespace(), pod.name()) {
            let line = log.last_lines().find_map(|line| Some((line, what_is_wrong(line, corefile)?, 0.93)));
            let silent = || silent_upstream(log).map(|(line, what)| (line, what, 0.65));
            let Some((line, what, confidence)) = line.or_else(silent) else { continue };
            let is_broken = look.is_red(&Object::from_live(pod))
                || look.ill.iter().any(|ill| ill.facts.iter().any(is_failed_lookup));
            if !is_broken {
                continue;
            }
            let mut finding = Finding::new(
                Cause::DnsConfig,
                object.clone(),
                confidence,
                format!("the configuration of the cluster's DNS is wrong: {what}"),
            )
            .field("data.Corefile")
            .evidence(log.source(), line)
            .remedy(
                "Correct the Corefile.",
                &[format!("kubectl -n {} get configmap {} -o yaml", object.namespace, object.name)],
            )
            .suffers(Object::from_live(pod), "does not answer")
            .suffers(look.cluster.workload(pod), "does not answer");
            if let Some(service) = service {
                finding = finding.suffers(service.clone(), "does not answer");
            }
            if let Some(forward) = corefile.lines().find(|line| line.trim_start().starts_with("forward")) {
                finding = finding.evidence(object.to_string(), forward.trim());
            }
            if let Some(workload) = workload {
                finding = finding.suffers(workload.clone(), "does not answer");
            }
            for ill in &look.ill {
                if ill.facts.iter().any(is_failed_lookup) {
                    finding = finding.suffers(ill.workload.clone(), "cannot look names up");
                }
            }
            return Some(finding);
        }
    }
    misspelt(look, &object, corefile, pods)
}

/// The plugins of CoreDNS that come with it.
const COREDNS_PLUGINS: &[&str] = &[
    "acl",
    "any",
    "auto",
    "autopath",
    "azure",
    "bind",
    "bufsize",
    "cache",
    "cancel",
    "chaos",
    "clouddns",
    "debug",
    "dns64",
    "dnssec",
    "dnstap",
    "erratic",
    "errors",
    "etcd",
    "file",
    "forward",
    "geoip",
    "grpc",
    "grpc_server",
    "header",
    "health",
    "hosts",
    "import",
    "k8s_external",
    "kubernetes",
    "loadbalance",
    "local",
    "log",
    "loop",
    "metadata",
    "minimal",
    "multisocket",
    "nomad",
    "nsid",
    "pprof",
    "prometheus",
    "quic",
    "ready",
    "reload",
    "rewrite",
    "root",
    "route53",
    "secondary",
    "sign",
    "template",
    "timeouts",
    "tls",
    "trace",
    "transfer",
    "tsig",
    "view",
    "whoami",
    "on",
];

/// The first word of a server's block that is nearly the name of a plugin, and is none.
fn misspelt_plugin(corefile: &str) -> Option<(&str, &'static str)> {
    let mut depth = 0_usize;
    for line in corefile.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let first = line.split_whitespace().next().unwrap_or_default();
        let is_word = !first.is_empty() && first.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if depth == 1 && is_word && !COREDNS_PLUGINS.contains(&first) {
            let near = |known: &&&str| crate::address_target::distance(known, first) <= 2 && first.len() > 3;
            if let Some(known) = COREDNS_PLUGINS.iter().find(near) {
                return Some((first, known));
            }
        }
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
    }
    None
}

/// A configuration with a misspelt plugin, whose servers end and of which no log was saved.
fn misspelt(look: &Look<'_>, object: &Object, corefile: &str, pods: &[&Value]) -> Option<Finding> {
    let is_silent = pods.iter().all(|pod| look.cluster.logs(pod.namespace(), pod.name()).is_empty());
    let ends = |pod: &&&Value| {
        pods::statuses(pod)
            .any(|it| pods::waiting(it).is_some_and(|(reason, _)| reason == "CrashLoopBackOff"))
    };
    let pod = pods.iter().find(ends).filter(|_| is_silent)?;
    let (word, known) = misspelt_plugin(corefile)?;
    let summary =
        format!("the configuration of the cluster's DNS is wrong: {word} is no plugin, {known} is one");
    let finding = Finding::new(Cause::DnsConfig, object.clone(), 0.85, summary)
        .field("data.Corefile")
        .evidence(object.to_string(), word)
        .remedy(
            "Correct the Corefile.",
            &[format!("kubectl -n {} get configmap {} -o yaml", object.namespace, object.name)],
        )
        .suffers(look.cluster.workload(pod), "does not answer");
    let sufferers = pods.iter().map(|pod| Object::from_live(pod));
    Some(sufferers.fold(finding, |finding, pod| finding.suffers(pod, "does not answer")))
}

/// The configuration of CoreDNS, and its text.
fn corefile<'a>(look: &Look<'a>, namespace: &str) -> Option<(Object, &'a str)> {
    let configs = look.cluster.all("ConfigMap").iter().filter(|it| it.namespace() == namespace);
    let mut texts = configs.filter_map(|it| Some((Object::from_live(it), it.str_at(&["data", "Corefile"])?)));
    texts.next()
}

/// Whether a name is a zone, or lies in it.
fn lies_in(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// A zone of its own whose name server does not answer: names of that zone cannot be looked up, others can.
fn silent_zone(look: &Look<'_>, namespace: &str, pods: &[&Value]) -> Option<Finding> {
    let (object, text) = corefile(look, namespace)?;
    let logs = pods.iter().flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
    let logs: Vec<&crate::Log> = logs.collect();
    forwarded_zones(text).into_iter().find_map(|(zone, servers)| {
        let is_silent = |line: &&str| {
            line.contains("plugin/errors")
                && line.contains(&format!("{zone}."))
                && servers.iter().any(|server| line.contains(&format!("->{server}:")))
        };
        let (source, line) =
            logs.iter().find_map(|log| Some((log.source(), log.last_lines().find(is_silent)?)))?;
        let asks = |fact: &LogFact| match &fact.fact {
            Fact::Call(call) if is_failed_lookup(fact) => {
                call.targets.iter().any(|it| lies_in(&it.host, &zone))
            }
            _ => false,
        };
        let lost: Vec<&Ill<'_>> = look.ill.iter().filter(|ill| ill.facts.iter().any(asks)).collect();
        let servers = servers.join(", ");
        let what = format!("the cluster's DNS forwards {zone} to {servers}, which does not answer");
        let finding = Finding::new(Cause::DnsConfig, object.clone(), 0.85, what)
            .field("data.Corefile")
            .evidence(source, line)
            .evidence(object.to_string(), format!("{zone} is forwarded to {servers}"))
            .remedy(
                "Forward the zone to a name server that answers, or bring that one back.",
                &[format!("kubectl -n {} get configmap {} -o yaml", object.namespace, object.name)],
            );
        (!lost.is_empty()).then(|| {
            lost.iter().fold(finding, |finding, ill| {
                let pods = ill.pods.iter().map(|pod| Object::from_live(pod));
                let all = pods.chain([ill.workload.clone()]);
                all.fold(finding, |finding, it| finding.suffers(it, "cannot look names of the zone up"))
            })
        })
    })
}

/// The zones that a Corefile forwards to servers of their own, apart from the root.
fn forwarded_zones(corefile: &str) -> Vec<(String, Vec<String>)> {
    let (mut zones, mut found): (Vec<&str>, Vec<_>) = (Vec::new(), Vec::new());
    for line in corefile.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["forward" | "proxy", _, ..] => {
                let is_address = |word: &&&str| word.starts_with(|first: char| first.is_ascii_digit());
                let server = |word: &&str| word.split(':').next().unwrap_or(word).to_owned();
                let servers: Vec<String> = words[2..].iter().filter(is_address).map(server).collect();
                let own = zones.iter().filter(|_| !servers.is_empty());
                found.extend(own.map(|zone| ((*zone).to_owned(), servers.clone())));
            }
            // A block of a server begins with its zones; those of plugins begin with their names.
            [first, .., "{"] if first.contains('.') => {
                let named = words[..words.len() - 1].iter().map(|word| word.trim_start_matches("dns://"));
                let bare = named.map(|word| word.split(':').next().unwrap_or(word).trim_end_matches('.'));
                zones = bare.filter(|zone| !zone.is_empty()).collect();
            }
            _ => {}
        }
    }
    found
}

/// The name server of the nodes to which the DNS forwards, if it lets most questions of a log unanswered.
fn silent_upstream(log: &crate::Log) -> Option<(&str, String)> {
    /// Fewer may be a moment in which it was busy.
    const FEWEST: usize = 8;
    let is_silent = |line: &&str| {
        line.contains("plugin/errors") && line.contains("->") && line.contains(":53: i/o timeout")
    };
    let lines: Vec<&str> = log.last_lines().filter(is_silent).collect();
    let line = *lines.first().filter(|_| lines.len() >= FEWEST)?;
    let server = line.rsplit("->").next()?.split(':').next()?;
    Some((line, format!("it forwards to {server}, which does not answer")))
}

fn what_is_wrong(line: &str, corefile: &str) -> Option<String> {
    let low = line.to_ascii_lowercase();
    if low.contains("plugin/loop: loop") || low.contains("loop (127.0.0.1") {
        return Some("it forwards to itself".to_owned());
    }
    if low.contains("no nameservers found") {
        return Some("it forwards to the servers of a file that names none".to_owned());
    }
    if low.contains("corefile:") || low.contains("error during parsing") || low.contains("unknown directive")
    {
        return Some(format!("it cannot be read ({})", line.trim()));
    }
    let forward = corefile.lines().find(|line| line.trim_start().starts_with("forward"))?;
    let upstreams: Vec<&str> = forward
        .split_whitespace()
        .skip(2)
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let is_upstream = upstreams.iter().any(|upstream| line.contains(*upstream));
    (is_upstream && low.contains("[error]"))
        .then(|| format!("it forwards to {}, which does not answer", upstreams.join(", ")))
}

/// The pods of the DNS, as a policy sees them; as they usually are if they were not saved.
fn end<'a>(look: &Look<'a>, usual: &'a Value) -> (End<'a>, u16) {
    let Some(service) = service(look) else { return (End::of_pod(usual), 53) };
    let port = items(service, &["spec", "ports"])
        .next()
        .and_then(|port| port.int_at(&["targetPort"]))
        .and_then(|port| u16::try_from(port).ok())
        .unwrap_or(53);
    let pod = look.cluster.pods_of(service).into_iter().next();
    (pod.map_or_else(|| End::of_pod(usual), End::of_pod), port)
}

/// Whether a workload serves the cluster's DNS.
pub(crate) fn is_server(look: &Look<'_>, workload: &Object) -> bool {
    let pods = service(look).map(|service| look.cluster.pods_of(service)).unwrap_or_default();
    pods.iter().any(|pod| look.cluster.workload(pod) == *workload)
        || workload.namespace == "kube-system" && workload.name.contains("dns")
}

/// The DaemonSet that answers for the cluster's DNS on each node, if a name server is its address.
fn node_cache(look: &Look<'_>, servers: &[&str]) -> Option<Object> {
    const LINK_LOCAL: &str = "169.254.";
    servers.iter().find(|server| server.starts_with(LINK_LOCAL))?;
    let sets = look.cluster.all("DaemonSet").iter();
    let set = sets.filter(|set| set.name().contains("dns")).map(|set| Object::from_live(set)).next();
    let is_seen = look.cluster.has_kind("DaemonSet");
    set.or_else(|| (!is_seen).then(|| Object::new("DaemonSet", "kube-system", "node-local-dns")))
}

/// A caller that asks the cache of its node: why that does not answer is told by its pod there.
fn node_cache_fault(look: &Look<'_>, caller: &Caller<'_>, cache: &Object) -> Finding {
    let nodes: Vec<&str> = caller.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"])).collect();
    let here = crate::cluster::pods::of_workload(look.cluster, cache).into_iter();
    let here = here.filter(|pod| pod.str_at(&["spec", "nodeName"]).is_some_and(|node| nodes.contains(&node)));
    let summary = format!("{} gets no answer from {cache} on its node", caller.workload);
    let finding = Finding::new(Cause::DnsDown, caller.workload.clone(), 0.35, summary).shallow();
    here.map(Object::from_live).fold(finding, Finding::below)
}

/// A name of the cluster under a domain that its DNS does not serve.
fn other_domain(look: &Look<'_>, call: &FailedCall) -> Option<Finding> {
    let (object, text) = corefile(look, service(look)?.namespace())?;
    let plugin = text.lines().map(str::trim).find(|line| line.starts_with("kubernetes "))?;
    let words = plugin.split_whitespace().skip(1).filter(|word| *word != "{");
    let zones: Vec<&str> = words.map(|zone| zone.trim_end_matches('.')).collect();
    let is_served = |domain: &str| zones.iter().any(|zone| zone.is_empty() || lies_in(domain, zone));
    let domains = call.targets.iter().filter_map(|target| Some((target, target.host.split_once(".svc.")?.1)));
    // What templates leave open is filled in when the DNS starts.
    let is_plain = !zones.is_empty() && !plugin.contains(['$', '_']);
    let (target, domain) = domains.filter(|_| is_plain).find(|(_, domain)| !is_served(domain))?;
    let what = format!("the cluster's DNS serves {}, and {target} is of {domain}", zones.join(", "));
    Some(
        Finding::new(Cause::DnsConfig, object.clone(), 0.85, what)
            .field("data.Corefile")
            .evidence(object.to_string(), plugin)
            .remedy(
                "Serve the domain that pods search, or use the cluster's domain in addresses.",
                &[format!("kubectl -n {} get configmap {} -o yaml", object.namespace, object.name)],
            ),
    )
}

/// Why a caller cannot look a name up.
pub(crate) fn lookup_fault<'a>(look: &Look<'a>, caller: &Caller<'a>, call: &FailedCall) -> Option<Finding> {
    let pod = caller.pods.first()?;
    let policy = pod.str_at(&["spec", "dnsPolicy"]).unwrap_or("ClusterFirst");
    let is_host = pod.at(&["spec", "hostNetwork"]).and_then(Value::as_bool) == Some(true);
    let servers: Vec<&str> =
        items(pod, &["spec", "dnsConfig", "nameservers"]).filter_map(Value::as_str).collect();
    let dns = service(look).and_then(|it| it.str_at(&["spec", "clusterIP"])).unwrap_or_default();
    let asks_elsewhere = matches!(policy, "None") && !servers.contains(&dns)
        || policy == "Default"
        || is_host && policy == "ClusterFirst";
    let is_local = call.targets.iter().any(|address| {
        address.host.contains(".svc")
            || !address.host.contains('.')
            || !matches!(
                look.cluster.target(address, &caller.workload.namespace),
                crate::address_target::Target::Outside
            )
    });
    if let Some(cache) = node_cache(look, &servers).filter(|_| asks_elsewhere) {
        return Some(node_cache_fault(look, caller, &cache));
    }
    if asks_elsewhere && (is_local || policy == "None") {
        let text = format!("dnsPolicy {policy}, nameservers {}", servers.join(", "));
        return Some(
            Finding::new(Cause::DnsPolicy, caller.workload.clone(), 0.9, format!("{} does not ask the cluster's DNS", caller.workload))
                .field("spec.template.spec.dnsPolicy")
                .evidence(caller.workload.to_string(), text)
                .remedy("Set dnsPolicy: ClusterFirst (ClusterFirstWithHostNet on the node's network), or the right name server.", &[]),
        );
    }
    if call.failure == Failure::NoSuchHost
        && let Some(finding) = other_domain(look, call)
    {
        return Some(finding);
    }
    if call.failure != Failure::LookupTimeout {
        return None;
    }
    let usual = json!({"metadata": {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}});
    let (to, number) = end(look, &usual);
    let from = End::of_pod(pod);
    for (way, protocol) in [(Direction::Egress, "UDP"), (Direction::Ingress, "UDP")] {
        let policies = blocking(look.cluster, way, &from, &to, Port { number, protocol });
        let ports = ["UDP", "TCP"].map(|protocol| Port { number, protocol });
        // A rule may name port 53 although the pods listen on another.
        if let Some(policy) = policies.first() {
            let object = Object::from_live(policy);
            let rules = if way == Direction::Egress { "egress" } else { "ingress" };
            return Some(
                Finding::new(
                    Cause::NetPolicyDns,
                    object.clone(),
                    0.94,
                    format!(
                        "{object} cuts {} off from the cluster's DNS: no rule of {rules} allows UDP {number}",
                        caller.workload
                    ),
                )
                .field(format!("spec.{rules}"))
                .since(newest_change(policy))
                .evidence(
                    object.to_string(),
                    policy
                        .at(&["spec", rules])
                        .map_or_else(|| format!("no rule of {rules}"), ToString::to_string),
                )
                .remedy("Allow UDP and TCP 53 to the DNS pods.", &[])
                .change(opening(
                    policy,
                    way,
                    if way == Direction::Egress { &to } else { &from },
                    &ports,
                )),
            );
        }
    }
    let plain = Finding::new(
        Cause::DnsDown,
        caller.workload.clone(),
        0.35,
        format!("{} gets no answer from the cluster's DNS", caller.workload),
    )
    .shallow();
    let plain = match service(look) {
        Some(service) => plain.below(Object::from_live(service)),
        None => plain,
    };
    Some(
        caller
            .pods
            .iter()
            .filter_map(|pod| pod.str_at(&["spec", "nodeName"]))
            .fold(plain, |finding, node| finding.below(Object::new("Node", "", node))),
    )
}
