//! Faults as people write them: `kind=target[:how][@start][+duration]`.

mod drain;
mod inject;
mod targets;

use std::time::Duration;

pub use drain::RefusedEviction;
pub use inject::{Injector, MANAGER};
pub use targets::Targets;

/// The kinds of faults, each as it is written and what it does.
pub const KINDS: [(&str, &str); 16] = [
    ("node=NAME", "the node's kubelet stops answering"),
    ("drain=NAME", "the node is drained, as for an upgrade: its pods are evicted as their budgets allow"),
    ("zone=NAME", "the kubelets of all nodes of the zone stop answering"),
    ("git=HOST", "the host of Git repositories or charts cannot be reached"),
    ("image=IMAGE[:notFound|401|403|429|timeout]", "the image cannot be pulled"),
    ("registry=HOST[:timeout|401|403|404|429]", "no image of the registry can be pulled"),
    ("webhook=NAME[:down|timeout|deny]", "the webhook does not answer, or refuses"),
    (
        "pod=NAMESPACE/NAME[:crash|unready]",
        "the containers of the pods of this name, or of this workload, crash or never are ready",
    ),
    ("operator=KIND[:down|late=DURATION]", "nobody attends to the objects of the kind, or late"),
    ("cert=late:DURATION", "certificates are issued late"),
    ("dns", "no name of a Service can be resolved in pods"),
    ("cni", "pods get no network, and every node is tainted"),
    ("quota=NAMESPACE", "no further pod may be made in the namespace"),
    ("api:latency=DURATION", "the API server answers the engine late"),
    ("api[:429|500|503|down]", "the API server refuses the engine's requests, or cannot be reached"),
    ("engine:kill", "the engine is killed, and started again after ten seconds, or after the duration"),
];

/// How long until an engine that was killed is there again, if no duration is given.
const RESTART: Duration = Duration::from_secs(10);

/// What becomes of pulling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// There is no such image.
    NotFound,
    /// Credentials are wanted, and none suffice.
    Unauthorized,
    /// The credentials do not suffice.
    Forbidden,
    /// The registry refuses further pulls.
    RateLimited,
    /// Nobody answers.
    Timeout,
}

/// What becomes of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// The connection is refused.
    Down,
    /// Nobody answers.
    Timeout,
    /// It refuses.
    Deny,
}

/// What becomes of the engine's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// The answer comes late.
    Late(Duration),
    /// The server answers with a status code and does nothing.
    Refuse(u16),
    /// The connection is refused.
    Down,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node is gone.
    Node(String),
    /// A node is cordoned and its pods are evicted.
    Drain(String),
    /// All nodes of a zone are gone.
    Zone(String),
    /// A host of Git repositories or charts is away.
    Git(String),
    /// An image cannot be pulled.
    Image(String, Pull),
    /// No image of a registry can be pulled.
    Registry(String, Pull),
    /// A webhook does not work.
    Webhook(String, Hook),
    /// Containers crash, or are never ready.
    Pod {
        /// Namespace.
        namespace: String,
        /// Of the pod, or of the workload that made it.
        name: String,
        /// Whether they crash; otherwise they never are ready.
        crashes: bool,
    },
    /// Nobody attends to a kind; or its operator takes so long over each object.
    Operator(String, Option<Duration>),
    /// Names of Services are not resolved.
    Dns,
    /// Pods get no network.
    Cni,
    /// No pod may be made in a namespace.
    Quota(String),
    /// The API server, as the engine sees it.
    Api(Api),
    /// The engine dies.
    Kill,
}

/// A fault, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// As it was written.
    pub text: String,
    /// What goes wrong.
    pub fault: Fault,
    /// When it begins, from the beginning of the story.
    pub start: Duration,
    /// How long it lasts; `None`: to the end.
    pub duration: Option<Duration>,
}

impl Timed {
    /// When it is over.
    pub fn end(&self) -> Option<Duration> {
        self.duration.map(|duration| self.start + duration)
    }

    /// Reads a fault. `duration` reads a length of time.
    ///
    /// # Errors
    /// With what is wrong with it, and what there is.
    pub fn parse(text: &str, duration: impl Fn(&str) -> Result<Duration, String>) -> Result<Self, String> {
        let fail = |why: String| format!("fault {text:?}: {why}");
        let (rest, lasts) = match text.rsplit_once('+') {
            Some((rest, lasts)) => match duration(lasts) {
                Ok(lasts) => (rest, Some(lasts)),
                Err(why) => return Err(fail(why)),
            },
            None => (text, None),
        };
        // A digest has the sign of a start, too.
        let (rest, start) = match rest.rsplit_once('@') {
            Some((before, start)) if !start.contains(':') => (before, duration(start).map_err(fail)?),
            _ => (rest, Duration::ZERO),
        };
        let fault = read(rest, &duration).map_err(fail)?;
        let lasts = if fault == Fault::Kill { Some(lasts.unwrap_or(RESTART)) } else { lasts };
        Ok(Self { text: text.to_owned(), fault, start, duration: lasts })
    }
}

/// All kinds, one a line.
fn kinds() -> String {
    KINDS.iter().map(|(form, what)| format!("\n  {form}: {what}")).collect()
}

fn read(text: &str, duration: &impl Fn(&str) -> Result<Duration, String>) -> Result<Fault, String> {
    let end = text.find(['=', ':']).unwrap_or(text.len());
    let (kind, rest) = text.split_at(end);
    let target = rest.strip_prefix('=');
    let wanted = |what: &str| {
        target
            .filter(|target| !target.is_empty())
            .ok_or_else(|| format!("{kind} needs a {what}: {kind}={}", what.to_uppercase()))
    };
    match kind {
        "node" => Ok(Fault::Node(wanted("name")?.to_owned())),
        "drain" => Ok(Fault::Drain(wanted("name")?.to_owned())),
        "zone" => Ok(Fault::Zone(wanted("name")?.to_owned())),
        "git" => {
            wanted("host").map(|host| Fault::Git(host.strip_suffix(":down").unwrap_or(host).to_lowercase()))
        }
        "image" => wanted("image").map(image),
        "registry" => registry(wanted("host")?),
        "webhook" => webhook(wanted("name")?),
        "pod" => pod(wanted("namespace/name")?),
        "operator" => operator(wanted("kind")?, duration),
        "cert" => match target.and_then(|target| target.strip_prefix("late:")) {
            Some(takes) => Ok(Fault::Operator("Certificate".to_owned(), Some(duration(takes)?))),
            None => Err("write cert=late:DURATION".to_owned()),
        },
        "quota" => Ok(Fault::Quota(wanted("namespace")?.to_owned())),
        "dns" | "cni" if !rest.is_empty() => Err(format!("{kind} takes no target")),
        "dns" => Ok(Fault::Dns),
        "cni" => Ok(Fault::Cni),
        "api" => api(rest, duration).map(Fault::Api),
        "engine" if matches!(rest, "" | ":kill" | "=kill") => Ok(Fault::Kill),
        "engine" => Err(unknown("engine", rest.trim_start_matches([':', '=']), "kill")),
        _ => Err(format!("there is no kind of fault {kind:?}; there are{}", kinds())),
    }
}

fn unknown(kind: &str, how: &str, all: &str) -> String {
    format!("{kind} does not know {how:?}; write one of {all}")
}

fn image(text: &str) -> Fault {
    let (image, how) = split_how(text);
    match how.and_then(pull) {
        Some(pull) => Fault::Image(image.to_owned(), pull),
        // The colon was the one before the tag.
        None => Fault::Image(text.to_owned(), Pull::NotFound),
    }
}

fn registry(text: &str) -> Result<Fault, String> {
    let (host, how) = split_how(text);
    let how = how.unwrap_or("timeout");
    let pull = pull(how).ok_or_else(|| unknown("registry", how, "timeout, 401, 403, 404, 429"))?;
    Ok(Fault::Registry(host.to_owned(), pull))
}

fn webhook(text: &str) -> Result<Fault, String> {
    let (name, how) = split_how(text);
    let hook = match how.unwrap_or("down") {
        "down" => Hook::Down,
        "timeout" => Hook::Timeout,
        "deny" => Hook::Deny,
        how => return Err(unknown("webhook", how, "down, timeout, deny")),
    };
    Ok(Fault::Webhook(name.to_owned(), hook))
}

fn pod(text: &str) -> Result<Fault, String> {
    let (pod, how) = split_how(text);
    let (namespace, name) = pod.split_once('/').ok_or("write pod=NAMESPACE/NAME")?;
    let crashes = match how.unwrap_or("crash") {
        "crash" => true,
        "unready" => false,
        how => return Err(unknown("pod", how, "crash, unready")),
    };
    Ok(Fault::Pod { namespace: namespace.to_owned(), name: name.to_owned(), crashes })
}

fn operator(text: &str, duration: &impl Fn(&str) -> Result<Duration, String>) -> Result<Fault, String> {
    let (kind, how) = split_how(text);
    let takes = match how.unwrap_or("down") {
        "down" => None,
        how => match how.strip_prefix("late=") {
            Some(takes) => Some(duration(takes)?),
            None => return Err(unknown("operator", how, "down, late=DURATION")),
        },
    };
    Ok(Fault::Operator(kind.to_owned(), takes))
}

/// A target and how it fails: what stands behind the last colon.
fn split_how(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        // A port is no way to fail.
        Some((_, port)) if port.len() > 3 && port.bytes().all(|byte| byte.is_ascii_digit()) => (text, None),
        Some((target, how)) if !how.contains('/') => (target, Some(how)),
        _ => (text, None),
    }
}

fn pull(how: &str) -> Option<Pull> {
    Some(match how {
        "notFound" | "404" => Pull::NotFound,
        "401" => Pull::Unauthorized,
        "403" => Pull::Forbidden,
        "429" => Pull::RateLimited,
        "timeout" => Pull::Timeout,
        _ => return None,
    })
}

fn api(how: &str, duration: &impl Fn(&str) -> Result<Duration, String>) -> Result<Api, String> {
    let how = how.trim_start_matches([':', '=']);
    if let Some(latency) = how.strip_prefix("latency=") {
        return duration(latency).map(Api::Late);
    }
    match how {
        "" | "down" => Ok(Api::Down),
        "429" | "500" | "503" => Ok(Api::Refuse(how.parse().unwrap_or(503))),
        _ => Err(format!("api does not know {how:?}; write one of latency=DURATION, 429, 500, 503, down")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Result<Duration, String> {
        let number = text.trim_end_matches('s').parse().map_err(|_| format!("{text:?} is no duration"))?;
        Ok(Duration::from_secs(number))
    }

    fn parse(text: &str) -> Result<Timed, String> {
        Timed::parse(text, seconds)
    }

    #[test]
    fn faults_are_read_with_their_times() {
        let node = parse("node=node-2@5s+10s").unwrap();
        assert_eq!(node.fault, Fault::Node("node-2".into()));
        assert_eq!((node.start, node.end()), (Duration::from_secs(5), Some(Duration::from_secs(15))));
        let image = |text: &str| parse(text).unwrap().fault;
        assert_eq!(image("image=r.io:5000/a/b:1"), Fault::Image("r.io:5000/a/b:1".into(), Pull::NotFound));
        assert_eq!(image("image=a:1:403@1s"), Fault::Image("a:1".into(), Pull::Forbidden));
        assert_eq!(
            image("image=a@sha256:0a1b:timeout+3s"),
            Fault::Image("a@sha256:0a1b".into(), Pull::Timeout)
        );
        assert_eq!(image("registry=ghcr.io:401"), Fault::Registry("ghcr.io".into(), Pull::Unauthorized));
        assert_eq!(image("registry=docker.io:429"), Fault::Registry("docker.io".into(), Pull::RateLimited));
        assert_eq!(image("registry=r.io:5000"), Fault::Registry("r.io:5000".into(), Pull::Timeout));
        assert_eq!(image("zone=a@1s"), Fault::Zone("a".into()));
        assert_eq!(image("drain=node-1+5s"), Fault::Drain("node-1".into()));
        assert_eq!(image("git=GitHub.com:down+5s"), Fault::Git("github.com".into()));
        assert_eq!(image("operator=Kafka:down"), Fault::Operator("Kafka".into(), None));
        assert_eq!(image("api:latency=2s"), Fault::Api(Api::Late(Duration::from_secs(2))));
        assert_eq!(image("api:429@1s+30s"), Fault::Api(Api::Refuse(429)));
        assert_eq!(image("webhook=a.b.c"), Fault::Webhook("a.b.c".into(), Hook::Down));
        let late = Some(Duration::from_secs(300));
        assert_eq!(image("cert=late:300s"), Fault::Operator("Certificate".into(), late));
        assert_eq!(image("operator=Kafka:late=300s@1s"), Fault::Operator("Kafka".into(), late));
        assert_eq!(image("operator=Kafka"), Fault::Operator("Kafka".into(), None));
        assert_eq!(parse("engine:kill@90s").unwrap().duration, Some(RESTART));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_what_there_is() {
        for (text, told) in [
            ("volcano=x", "there is no kind of fault \"volcano\""),
            ("node", "node needs a name"),
            ("registry=ghcr.io:402", "write one of timeout, 401, 403, 404, 429"),
            ("pod=web", "write pod=NAMESPACE/NAME"),
            ("dns=x", "dns takes no target"),
            ("node=a@soon", "is no duration"),
            ("node=a+", "is no duration"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }
}
