//! What init containers wait for, as their command lines say: an init container that asks a Service in a loop
//! ends when that answers, and not before.

use tiphys_graph::tools::parse_shell;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_vfs::base_name;
use tiphys_world::behaviour::{ContainerRule, Need, command_line};

use super::{known_services::KnownServices, pod_spec};
use crate::up::plan::Plan;

/// Programs that ask whether something answers, and go on asking until it does.
const WAITERS: [&str; 4] = ["wait-for-it", "wait-for-it.sh", "wait-for", "dockerize"];
const SHELLS: [&str; 4] = ["sh", "bash", "ash", "dash"];

/// A rule for each init container that waits for a Service.
pub(super) fn rules(plan: &Plan) -> Vec<ContainerRule> {
    let known = KnownServices::from_plan(plan);
    let workloads = plan.rendered().filter_map(|object| Some((&object.value, pod_spec(&object.value)?)));
    let waiting = workloads.flat_map(|(workload, spec)| {
        let list = spec.get("initContainers").and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|container| rule(&known, container, workload.namespace())).collect::<Vec<_>>()
    });
    waiting.collect()
}

/// The rule for an init container that waits for Services.
fn rule(known: &KnownServices, container: &Value, namespace: &str) -> Option<ContainerRule> {
    // One that is restarted always stays beside the others.
    if container.str_at(&["restartPolicy"]) == Some("Always") {
        return None;
    }
    let words = command_line(container);
    let awaited = awaited_hosts(&words, container);
    let services = awaited.iter().filter_map(|host| service(known, host, namespace));
    let needs: Vec<Need> =
        services.map(|key| Need::Service { namespace: Some(key.namespace), name: key.name }).collect();
    (!needs.is_empty()).then(|| ContainerRule {
        container: container.str_at(&["name"]).unwrap_or_default().into(),
        image: container.str_at(&["image"]).unwrap_or_default().into(),
        line: words.join(" ").as_str().into(),
        needs,
        ..ContainerRule::default()
    })
}

/// The Service of a host name, if it is known whether it is there.
fn service(known: &KnownServices, host: &str, own: &str) -> Option<ResourceKey> {
    let mut labels = host.trim_end_matches('.').split('.');
    let (name, namespace) = (labels.next()?, labels.next().unwrap_or(own));
    if labels.next().is_some_and(|label| label != "svc") {
        return None;
    }
    // A name of two labels may be one of the internet.
    let is_inside = namespace == own || host.contains(".svc") || known.has_some_in(namespace);
    let is_known = known.has(namespace, name) || is_inside && known.is_surely_absent(namespace, name);
    is_known.then(|| ResourceKey::new("", "Service", namespace, name))
}

/// The hosts that a command line asks until they answer.
fn awaited_hosts(words: &[&str], container: &Value) -> Vec<String> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    if !SHELLS.contains(&base_name(program)) {
        return asked_host(words).into_iter().filter_map(|host| expanded(host, container)).collect();
    }
    let Some(script) = rest.iter().find(|word| !word.starts_with('-')) else { return Vec::new() };
    let commands = parse_shell(script);
    let asks = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        asked_host(&words).and_then(|host| expanded(host, container))
    };
    let is_loop = ["until ", "while !"].iter().any(|word| script.contains(word));
    let counts = |command: &&tiphys_graph::tools::Command| {
        is_loop || command.words.first().is_some_and(|word| WAITERS.contains(&base_name(word)))
    };
    commands.iter().filter(counts).filter_map(|command| asks(&command.words)).collect()
}

/// The host that a command asks.
fn asked_host<'a>(words: &[&'a str]) -> Option<&'a str> {
    let (program, arguments) = words.split_first()?;
    let mut plain = arguments.iter().copied().filter(|word| !word.starts_with('-'));
    let address = |text: &'a str| {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        rest.split(['/', ':']).next().filter(|host| !host.is_empty())
    };
    match base_name(program) {
        // What follows -w is how long it waits.
        "nc" | "ncat" | "netcat" => plain.find(|word| word.parse::<u32>().is_err()),
        "nslookup" => plain.next(),
        "getent" => plain.nth(1),
        "pg_isready" | "psql" | "redis-cli" | "mysqladmin" | "mysql" | "mariadb-admin" => {
            host_option(arguments)
        }
        "curl" | "wget" => plain.find(|word| word.contains("://")).and_then(address),
        "dockerize" => plain.find(|word| word.contains("://")).and_then(address),
        program if WAITERS.contains(&program) => plain.find(|word| word.contains(':')).and_then(address),
        _ => None,
    }
}

/// `-h HOST`, `-hHOST`, `--host=HOST` and `--host HOST`.
fn host_option<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let after = |at: usize| arguments.get(at + 1).copied();
    arguments.iter().enumerate().find_map(|(at, word)| match *word {
        "-h" | "--host" => after(at),
        word => {
            word.strip_prefix("--host=").or_else(|| word.strip_prefix("-h").filter(|host| !host.is_empty()))
        }
    })
}

/// A host whose variable has a value in the container itself; `None` for others.
fn expanded(host: &str, container: &Value) -> Option<String> {
    let Some(variable) = host.strip_prefix('$') else {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        return (host.starts_with(|c: char| c.is_ascii_lowercase()) && host.chars().all(is_name))
            .then(|| host.to_owned());
    };
    let name = variable.trim_start_matches(['{', '(']).trim_end_matches(['}', ')']);
    let variables = container.get("env").and_then(Value::as_array).into_iter().flatten();
    let value = variables.into_iter().find(|it| it.str_at(&["name"]) == Some(name))?.str_at(&["value"])?;
    (!value.starts_with('$')).then(|| expanded(value, container)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn loops_say_what_they_wait_for() {
        let container = json!({"env": [{"name": "DB_HOST", "value": "db.data"}]});
        for (script, hosts) in [
            ("until nc -z -w 2 db 5432; do echo waiting; sleep 2; done", &["db"][..]),
            ("while ! pg_isready -h $DB_HOST -p 5432; do sleep 1; done", &["db.data"]),
            (
                "until nslookup cache.shop.svc.cluster.local; do sleep 2; done",
                &["cache.shop.svc.cluster.local"],
            ),
            ("until curl -fs http://api:8080/ready; do sleep 5; done", &["api"]),
            ("/scripts/wait-for-it.sh queue:5672 -t 60 && exec app", &["queue"]),
            // Who asks once may do without.
            ("curl http://metrics:9090/ping || true", &[]),
            ("until [ -f /ready ]; do sleep 1; done", &[]),
            ("until nc -z $UNKNOWN 80; do sleep 1; done", &[]),
        ] {
            assert_eq!(awaited_hosts(&["sh", "-c", script], &container), hosts, "{script}");
        }
        assert_eq!(awaited_hosts(&["dockerize", "-wait", "tcp://db:5432"], &container), ["db"]);
    }
}
