//! The fault behind a message of a comparison, a build or a sync.

use tiphys_cause::{Cause, Failure, addresses, delivery_fault, source_unreachable, unwrapped};
use tiphys_value::{ObjectExt as _, Value};

use super::helm::release;
use crate::{
    Object,
    calls::{self, Caller},
    causes::admission::{self, Refused},
    cluster::{items, time},
    finding::Finding,
    search_context::Look,
};

/// The secret that holds the credentials of a repository.
fn credentials(look: &Look<'_>, url: &str) -> Option<Object> {
    use base64::Engine as _;
    let is_of_argo = |secret: &&&Value| {
        secret.label("argocd.argoproj.io/secret-type").is_some_and(|it| it.starts_with("repo"))
    };
    let fits = |secret: &&&Value| {
        let encoded = secret
            .str_at(&["data", "url"])
            .and_then(|it| base64::engine::general_purpose::STANDARD.decode(it).ok());
        let held = encoded
            .map(|it| String::from_utf8_lossy(&it).into_owned())
            .or_else(|| secret.str_at(&["stringData", "url"]).map(str::to_owned));
        held.is_some_and(|held| {
            !held.is_empty() && url.trim_end_matches(".git").starts_with(held.trim_end_matches(".git"))
        })
    };
    look.cluster.all("Secret").iter().filter(is_of_argo).find(fits).map(|secret| Object::from_live(secret))
}

/// The fault behind a message of a comparison, a build or a sync.
pub(super) fn delivery(
    look: &Look<'_>,
    object: &Object,
    live: &Value,
    message: &str,
    source: &str,
    kind: &str,
) -> Option<Finding> {
    let text = unwrapped(message);
    if let Some(finding) = remote_cluster(look, object, live, message) {
        return Some(finding.evidence(source, message));
    }
    if let Some(finding) = cache_refuses(look, object, text) {
        return Some(finding.evidence(source, message));
    }
    let repository = source_url(live);
    // The repo-server or the repository itself does not answer.
    if let Some(failure) = source_unreachable(text)
        && !text.contains("failed calling webhook")
        && !text.contains("conversion webhook")
    {
        let named = addresses(text);
        // A name server that answers that there is no such name is not who was called.
        let dns = crate::causes::dns::service(look)
            .filter(|_| failure == Failure::NoSuchHost)
            .map(Object::from_live);
        let services: Vec<Object> = named
            .iter()
            .filter_map(|address| match look.cluster.target(address, &object.namespace) {
                crate::address_target::Target::Service(service) => Some(Object::from_live(service)),
                _ => None,
            })
            .filter(|service| dns.as_ref() != Some(service))
            .collect();
        let is_server = text.contains("8081")
            || text.contains("repo-server")
            || kind == "ComparisonError" && text.contains("code = Unavailable");
        if !services.is_empty() || is_server {
            if let Some(finding) = failed_call(look, object, text, source) {
                return Some(finding);
            }
            let finding = unanswered(look, object, failure, &services).evidence(source, message);
            let finding = services.into_iter().fold(finding, Finding::below);
            let servers = look
                .cluster
                .all("Deployment")
                .iter()
                .filter(|it| it.name().contains("repo-server") && it.namespace() == object.namespace);
            return Some(servers.fold(finding, |finding, it| finding.below(Object::from_live(it))));
        }
        if delivery_fault(text).is_none_or(|cause| cause == Cause::GitopsRender)
            && named.iter().any(|address| {
                matches!(
                    look.cluster.target(address, &object.namespace),
                    crate::address_target::Target::Outside
                )
            })
        {
            let host = named
                .iter()
                .find(|address| {
                    matches!(
                        look.cluster.target(address, &object.namespace),
                        crate::address_target::Target::Outside
                    )
                })
                .map(ToString::to_string)
                .unwrap_or_default();
            let finding = Finding::new(
                Cause::ExternalDown,
                object.clone(),
                0.75,
                format!(
                    "{host}, the source of {object}, {}",
                    if failure == Failure::NoSuchHost { "has no address" } else { "does not answer" }
                ),
            )
            .evidence(source, message)
            .remedy("Ask who runs the repository; this cannot be proved from here.", &[]);
            // Who looks a name up asks the cluster's DNS first.
            let is_lookup = matches!(failure, Failure::NoSuchHost | Failure::LookupTimeout);
            let dns = crate::causes::dns::service(look).filter(|_| is_lookup);
            // A name server that does not answer is the cluster's own, most often.
            let is_known = failure != Failure::LookupTimeout;
            let finding = if is_known { finding } else { finding.not_known() };
            return Some(dns.into_iter().fold(finding, |finding, dns| finding.below(Object::from_live(dns))));
        }
    }
    let cause = delivery_fault(text)?;
    let new = |cause, at: Object, confidence, what: String, remedy: &str| {
        Finding::new(cause, at, confidence, what).evidence(source, message).remedy(remedy, &[])
    };
    let finding = match cause {
        Cause::GitopsSourceAuth => {
            let secret = credentials(look, &repository);
            let at = secret.unwrap_or_else(|| object.clone());
            new(
                cause,
                at,
                0.92,
                format!("{repository} refuses the credentials of {object}"),
                "Renew the credentials of the repository.",
            )
            .field(repository.clone())
            .suffers(object.clone(), "cannot read its source")
        }
        Cause::GitopsRevision => new(
            cause,
            object.clone(),
            0.92,
            format!("{object} asks for a revision that {repository} does not have: {text}"),
            if object.kind == "Application" || object.kind == "ApplicationSet" {
                "Correct targetRevision."
            } else {
                "Correct spec.ref."
            },
        )
        .field("spec.source.targetRevision"),
        Cause::GitopsProject => new(
            cause,
            object.clone(),
            0.92,
            format!("its project does not permit {object}: {text}"),
            "Extend the AppProject, or correct the Application.",
        )
        .field("spec.project"),
        Cause::GitopsRender => new(
            cause,
            object.clone(),
            0.92,
            format!("{object} cannot be rendered: {text}"),
            "Correct the file that the message names.",
        ),
        Cause::GitopsHelmRelease => release(look, object, live, text, source),
        Cause::GitopsNamespace if kind == "InvalidSpecError" => new(
            cause,
            object.clone(),
            0.9,
            format!("the destination of {object} does not exist: {text}"),
            "Correct the destination.",
        ),
        _ => {
            let written = None;
            let refused = Refused {
                writer: object.clone(),
                written,
                source: source.to_owned(),
                message: message.to_owned(),
            };
            return admission::fault(look, &refused);
        }
    };
    Some(finding)
}

/// The workload of Argo CD beside an Application whose name holds a word.
fn component(look: &Look<'_>, app: &Object, word: &str) -> Option<Object> {
    let mut all = ["StatefulSet", "Deployment"].iter().flat_map(|kind| look.cluster.all(kind).iter());
    let found = all.find(|it| it.namespace() == app.namespace && it.name().contains(word))?;
    Some(Object::from_live(found))
}

/// The cache of Argo CD refuses the password of its other components, in the words of Redis.
fn cache_refuses(look: &Look<'_>, object: &Object, text: &str) -> Option<Finding> {
    const WORDS: &[&str] = &["NOAUTH ", "WRONGPASS "];
    if object.kind != "Application" || !WORDS.iter().any(|word| text.contains(word)) {
        return None;
    }
    let Some(sender) = component(look, object, "repo-server").or_else(|| component(look, object, "redis"))
    else {
        let summary = format!("the cache of Argo CD refuses a password, and {object} cannot be compared");
        return Some(Finding::new(Cause::ConfigCredentials, object.clone(), 0.45, summary));
    };
    let summary = format!("the cache of Argo CD refuses the password of {sender}");
    Some(
        Finding::new(Cause::ConfigCredentials, sender.clone(), 0.85, summary)
            .suffers(object.clone(), "cannot be compared")
            .remedy(
                "Give Redis and all components of Argo CD the same password, and restart those that started with another one.",
                &[format!("kubectl -n {} rollout restart {} {}", sender.namespace, sender.kind.to_lowercase(), sender.name)],
            ),
    )
}

/// What explains the calls of Argo CD's controller that fail, as far as objects tell.
fn failed_call(look: &Look<'_>, object: &Object, text: &str, source: &str) -> Option<Finding> {
    let workload = component(look, object, "application-controller")?;
    let caller = Caller::of_workload(look.cluster, workload);
    let found = calls::explain_text(look, &caller, (source, text), (object, "cannot be compared"));
    found.into_iter().find(|it| it.is_asserted() && it.cause != Cause::ExternalDown)
}

/// What is said of a component of Argo CD that does not answer, where no object tells why.
fn unanswered(look: &Look<'_>, object: &Object, failure: Failure, services: &[Object]) -> Finding {
    let is_silent = matches!(failure, Failure::Timeout | Failure::Unreachable);
    let is_served = |it: &&Object| look.cluster.live(it).is_some_and(|live| look.cluster.is_served(live));
    if let Some(service) = services.iter().find(is_served).filter(|_| is_silent) {
        let summary = format!("{service} has ready pods, and calls of it time out; why is not known");
        return Finding::new(Cause::NetDegraded, service.clone(), 0.4, summary)
            .shallow()
            .suffers(object.clone(), "cannot be compared");
    }
    let summary = format!("{object} cannot be compared: the repo-server does not answer");
    Finding::new(Cause::GitopsRender, object.clone(), 0.35, summary).shallow()
}

/// A cluster that Argo CD delivers to and does not reach, or that refuses its credentials.
fn remote_cluster(look: &Look<'_>, object: &Object, app: &Value, message: &str) -> Option<Finding> {
    const OWN: &str = "https://kubernetes.default.svc";
    const WORDS: &[&str] = &["cluster info", "cache state", "live state", "server version", "cluster cache"];
    let low = message.to_ascii_lowercase();
    let server = app.str_at(&["spec", "destination", "server"]).filter(|server| *server != OWN)?;
    if !WORDS.iter().any(|word| low.contains(word)) {
        return None;
    }
    let refuses = low.contains("unauthorized") || low.contains("provide credentials");
    let failure = Failure::read(message);
    if failure.is_none() && !refuses {
        return None;
    }
    let secret = cluster_secret(look, server);
    let at = secret.clone().unwrap_or_else(|| object.clone());
    let (cause, what, remedy) = if refuses {
        let what = format!("the cluster {server} refuses the credentials of Argo CD");
        (Cause::ConfigCredentials, what, "Renew the credentials in the cluster's Secret.")
    } else {
        let what = format!("the cluster {server} does not answer Argo CD");
        (
            Cause::ExternalDown,
            what,
            "Look at that cluster and the way to it; this cannot be proved from here.",
        )
    };
    Some(
        Finding::new(cause, at, 0.8, what)
            .field(server.to_owned())
            .suffers(object.clone(), "its cluster cannot be reached")
            .remedy(remedy, &[format!("argocd cluster get {server}")]),
    )
}

/// The Secret by which Argo CD knows a cluster.
fn cluster_secret(look: &Look<'_>, server: &str) -> Option<Object> {
    use base64::Engine as _;
    let is_cluster = |it: &&&Value| it.label("argocd.argoproj.io/secret-type") == Some("cluster");
    let address = |it: &Value| {
        let encoded = it.str_at(&["data", "server"]).unwrap_or_default();
        let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
        String::from_utf8_lossy(&decoded).into_owned()
    };
    let all: Vec<&Value> = look.cluster.all("Secret").iter().filter(is_cluster).copied().collect();
    let named = all.iter().find(|it| address(it) == server);
    // Values are left out of saved states: where there is one other cluster, it is that one.
    let only = all.first().filter(|it| all.len() == 1 && address(it).is_empty());
    named.or(only).map(|it| Object::from_live(it))
}

pub(super) fn source_url(live: &Value) -> String {
    let paths: [&[&str]; 3] = [&["spec", "source", "repoURL"], &["spec", "url"], &["spec", "endpoint"]];
    let first = paths.iter().find_map(|path| live.str_at(path));
    first
        .or_else(|| items(live, &["spec", "sources"]).find_map(|it| it.str_at(&["repoURL"])))
        .unwrap_or("its source")
        .to_owned()
}

pub(super) fn stale(app: &Value, refused: &Refused) -> Finding {
    let object = Object::from_live(app);
    let retries = app.int_at(&["status", "operationState", "retryCount"]).unwrap_or(0);
    Finding::new(
        Cause::GitopsStaleOperation,
        object.clone(),
        0.9,
        format!("the last operation of {object} failed for a reason that is gone, and it is not tried again"),
    )
    .field("status.operationState")
    .since(
        time(app, &["status", "operationState", "finishedAt"])
            .or_else(|| time(app, &["status", "operationState", "startedAt"])),
    )
    .evidence(refused.source.clone(), refused.message.clone())
    .evidence(object.to_string(), format!("tried {} times", retries + 1))
    .remedy(
        "Sync it again.",
        &[format!("argocd app terminate-op {}", object.name), format!("argocd app sync {}", object.name)],
    )
}
