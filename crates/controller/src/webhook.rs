//! What Git hosts tell of pushes (Argo CD documentation, "Git Webhook Configuration"): who says so, and
//! where.

mod event;

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use tiphys_source::RepoId;
use tiphys_value::{GroupKind, ResourceKey, Value};
use tokio::time::Instant;

use crate::{
    AppKey, Refresh,
    clusters::{ARGOCD_SECRET, secret_reference, secret_text},
    engine::Engine,
    home::Home,
    replicas::ask_owners,
    sets::{repositories_of, set_kind},
    sources::GATHER_EDITS,
    status_writer::application_kind,
};

/// Why nothing is done about what was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// No host that is known tells so.
    #[error("no event of a Git host that is known")]
    Unknown,
    /// Whoever tells it does not prove what `argocd-secret` says.
    #[error("it is not proved by what argocd-secret has for this host")]
    Unproved,
    /// The event is none.
    #[error("the body is no JSON, or names no repository")]
    Malformed,
}

/// What a host proves itself by.
enum Secret {
    /// Nothing, as every other host: whoever comes is believed.
    Unset,
    /// Nothing, while another host proves itself: nobody comes from there.
    Closed,
    Set(String),
    /// It is said where it is, and it is not there.
    Lost,
}

impl Secret {
    fn or_default(text: Option<String>, otherwise: Self) -> Self {
        text.filter(|text| !text.is_empty()).map_or(otherwise, Self::Set)
    }
}

/// Whose events are distinguished by their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    AzureDevops,
    /// Gitea and Forgejo say so, too.
    Gogs,
    Github,
    /// GitHub's registry, which tells of packages in GitHub's way.
    Ghcr,
    Gitlab,
    Bitbucket,
    BitbucketServer,
}

impl Sender {
    fn from_headers(header: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let has = |name: &str| header(name).is_some_and(|text| !text.is_empty());
        // Gogs sends the headers of GitHub besides.
        Some(match () {
            () if has("x-vss-activityid") => Self::AzureDevops,
            () if has("x-gogs-event") => Self::Gogs,
            () if header("x-github-event").as_deref() == Some("package") => Self::Ghcr,
            () if has("x-github-event") => Self::Github,
            () if has("x-gitlab-event") => Self::Gitlab,
            () if has("x-event-key") && has("x-hook-uuid") => Self::Bitbucket,
            () if has("x-event-key") => Self::BitbucketServer,
            () => return None,
        })
    }

    /// Whether the event may say that branches or tags have moved.
    fn is_push(self, header: &dyn Fn(&str) -> Option<String>) -> bool {
        let (name, pushes): (&str, &[&str]) = match self {
            Self::AzureDevops | Self::Ghcr => return true,
            Self::Gogs => ("x-gogs-event", &["push", "create", "delete"]),
            Self::Github => ("x-github-event", &["push", "create", "delete"]),
            Self::Gitlab => ("x-gitlab-event", &["Push Hook", "Tag Push Hook", "System Hook"]),
            Self::Bitbucket => ("x-event-key", &["repo:push"]),
            Self::BitbucketServer => ("x-event-key", &["repo:refs_changed"]),
        };
        header(name).is_some_and(|event| pushes.contains(&event.as_str()))
    }

    /// Whether what the head of a request says may be a proof, or already is one: only then its body is read.
    fn may_be_proved(self, header: &dyn Fn(&str) -> Option<String>, secret: &dyn Fn(&str) -> Secret) -> bool {
        let signature = match self {
            Self::Gogs => "x-gogs-signature",
            Self::Github | Self::Ghcr => "x-hub-signature-256",
            Self::BitbucketServer => "x-hub-signature",
            Self::AzureDevops | Self::Gitlab | Self::Bitbucket => {
                return self.is_proved(header, &[], secret);
            }
        };
        match secret(self.key()) {
            Secret::Unset => true,
            Secret::Closed | Secret::Lost => false,
            Secret::Set(_) => header(signature).is_some_and(|text| !text.is_empty()),
        }
    }

    /// The field of `argocd-secret` that signatures are made with.
    fn key(self) -> &'static str {
        match self {
            Self::AzureDevops => "webhook.azuredevops.password",
            Self::Gogs => "webhook.gogs.secret",
            Self::Github | Self::Ghcr => "webhook.github.secret",
            Self::Gitlab => "webhook.gitlab.secret",
            Self::Bitbucket => "webhook.bitbucket.uuid",
            Self::BitbucketServer => "webhook.bitbucketserver.secret",
        }
    }

    /// Whether the event is of who knows the secret, or none is set.
    fn is_proved(
        self,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
        secret: &dyn Fn(&str) -> Secret,
    ) -> bool {
        let is_same =
            |given: &str, wanted: &str| verify_slices_are_equal(given.as_bytes(), wanted.as_bytes()).is_ok();
        let equals = |name: &str, wanted: &str| header(name).is_some_and(|given| is_same(&given, wanted));
        let signs = |name: &str, key: &str| {
            let given = header(name).unwrap_or_default();
            let given = given.strip_prefix("sha256=").unwrap_or(&given);
            let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
            HEXLOWER_PERMISSIVE
                .decode(given.as_bytes())
                .is_ok_and(|signature| hmac::verify(&key, body, &signature).is_ok())
        };
        let holds = |key: &str, proof: &dyn Fn(&str) -> bool| match secret(key) {
            Secret::Unset => true,
            Secret::Closed | Secret::Lost => false,
            Secret::Set(text) => proof(&text),
        };
        match self {
            Self::AzureDevops => {
                let login = header("authorization").unwrap_or_default();
                let login = login.strip_prefix("Basic ").and_then(|text| BASE64.decode(text.as_bytes()).ok());
                let login = String::from_utf8(login.unwrap_or_default()).unwrap_or_default();
                let (user, password) = login.split_once(':').unwrap_or_default();
                holds("webhook.azuredevops.username", &|wanted| is_same(user, wanted))
                    && holds("webhook.azuredevops.password", &|wanted| is_same(password, wanted))
            }
            Self::Gogs => holds(self.key(), &|key| signs("x-gogs-signature", key)),
            Self::Github | Self::Ghcr => holds(self.key(), &|key| signs("x-hub-signature-256", key)),
            Self::Gitlab => holds(self.key(), &|key| equals("x-gitlab-token", key)),
            Self::Bitbucket => holds(self.key(), &|uuid| equals("x-hook-uuid", uuid)),
            Self::BitbucketServer => holds(self.key(), &|key| signs("x-hub-signature", key)),
        }
    }

    /// Whether an event whose header says that it may be a push is one. GitLab sends a system hook for
    /// whatever happens on the host, users and groups included, and switches off a hook that answers with
    /// errors.
    fn tells_push(self, header: &dyn Fn(&str) -> Option<String>, event: &Value) -> bool {
        if self == Self::Ghcr {
            return publishes(event);
        }
        const PUSHES: [&str; 3] = ["push", "tag_push", "repository_update"];
        if self != Self::Gitlab || header("x-gitlab-event").as_deref() != Some("System Hook") {
            return true;
        }
        let name = ["event_name", "object_kind"].iter().find_map(|key| event.get(*key)?.as_str());
        name.is_none_or(|name| PUSHES.contains(&name))
    }

    /// The addresses of the repository that an event is of.
    fn addresses(self, event: &Value) -> Vec<String> {
        let paths: &[&str] = match self {
            Self::AzureDevops => &["/resource/repository/remoteUrl"],
            Self::Gogs | Self::Github => {
                &["/repository/html_url", "/repository/clone_url", "/repository/ssh_url"]
            }
            Self::Gitlab => &["/project/web_url", "/project/git_http_url", "/project/git_ssh_url"],
            Self::Bitbucket => &["/repository/links/html/href"],
            Self::BitbucketServer => {
                let links = event.pointer("/repository/links/clone").and_then(Value::as_array);
                let links = links.into_iter().flatten();
                return links.filter_map(|link| Some(link.get("href")?.as_str()?.to_owned())).collect();
            }
            Self::Ghcr => {
                let text = |path: &str| event.pointer(path).and_then(Value::as_str);
                let names = text("/package/owner/login").zip(text("/package/name"));
                return names
                    .map(|(owner, name)| format!("oci://ghcr.io/{owner}/{name}"))
                    .into_iter()
                    .collect();
            }
        };
        paths.iter().filter_map(|path| Some(event.pointer(path)?.as_str()?.to_owned())).collect()
    }
}

/// Whether an event of GitHub's registry says that a tag of an image or artifact was published.
fn publishes(event: &Value) -> bool {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    text("/action") == "published"
        && text("/package/package_type").eq_ignore_ascii_case("container")
        && !text("/package/package_version/container_metadata/tag/name").is_empty()
}

/// Whether the body of a request is worth reading.
///
/// # Errors
/// See [`WebhookError`].
fn is_worth_reading(
    header: &dyn Fn(&str) -> Option<String>,
    secret: &dyn Fn(&str) -> Secret,
) -> Result<(), WebhookError> {
    let sender = Sender::from_headers(header).ok_or(WebhookError::Unknown)?;
    let is_ping =
        sender == Sender::BitbucketServer && header("x-event-key").as_deref() == Some("diagnostics:ping");
    if is_ping || sender.may_be_proved(header, secret) { Ok(()) } else { Err(WebhookError::Unproved) }
}

/// The fields of `argocd-secret` that hosts prove themselves by.
const PROOFS: [&str; 7] = [
    "webhook.azuredevops.password",
    "webhook.azuredevops.username",
    "webhook.bitbucket.uuid",
    "webhook.bitbucketserver.secret",
    "webhook.github.secret",
    "webhook.gitlab.secret",
    "webhook.gogs.secret",
];

/// What a host proves itself by, from the fields that there are. Where one host has to, no other one is
/// believed without.
fn required(field: &str, found: &dyn Fn(&str) -> Secret) -> Secret {
    match found(field) {
        Secret::Unset => {
            // Azure DevOps may be asked for a user or a password alone.
            let beside = match field {
                "webhook.azuredevops.username" => Some("webhook.azuredevops.password"),
                "webhook.azuredevops.password" => Some("webhook.azuredevops.username"),
                _ => None,
            };
            let is_set = |field: &str| !matches!(found(field), Secret::Unset);
            match beside.is_some_and(is_set) || !PROOFS.into_iter().any(is_set) {
                true => Secret::Unset,
                false => Secret::Closed,
            }
        }
        found => found,
    }
}

/// The addresses of the repository that was pushed to; none if the event tells something else. Nothing of the
/// body is read before it is proved who sends it.
///
/// # Errors
/// See [`WebhookError`].
fn hear(
    header: &dyn Fn(&str) -> Option<String>,
    body: &[u8],
    secret: &dyn Fn(&str) -> Secret,
) -> Result<Vec<String>, WebhookError> {
    let sender = Sender::from_headers(header).ok_or(WebhookError::Unknown)?;
    // It tells nothing and is not signed: Bitbucket's test of the connection.
    if sender == Sender::BitbucketServer && header("x-event-key").as_deref() == Some("diagnostics:ping") {
        return Ok(Vec::new());
    }
    if !sender.is_proved(header, body, secret) {
        return Err(WebhookError::Unproved);
    }
    if !sender.is_push(header) {
        return Ok(Vec::new());
    }
    let event = event::read(body).ok_or(WebhookError::Malformed)?;
    if !sender.tells_push(header, &event) {
        return Ok(Vec::new());
    }
    let addresses = sender.addresses(&event);
    if addresses.is_empty() { Err(WebhookError::Malformed) } else { Ok(addresses) }
}

/// Takes up what a Git host tells; how many Applications and ApplicationSets it concerns.
///
/// # Errors
/// See [`WebhookError`].
pub(crate) fn heard(
    engine: &Engine,
    header: &dyn Fn(&str) -> Option<String>,
    body: &[u8],
) -> Result<usize, WebhookError> {
    let addresses = hear(header, body, &|key| proof(&engine.home, key))?;
    let pushed = addresses.iter().filter_map(|url| RepoId::parse(url)).filter(|id| !id.is_folder());
    let readers = pushed_to(engine, &pushed.collect());
    // Of repositories that nobody reads anybody could tell without end.
    if let Some(first) = addresses.first().filter(|_| readers > 0) {
        engine.metrics.told_of(first);
    }
    Ok(readers)
}

/// Whether what a request tells is worth reading, by its head alone.
///
/// # Errors
/// See [`WebhookError`].
pub(crate) fn may_tell(engine: &Engine, header: &dyn Fn(&str) -> Option<String>) -> Result<(), WebhookError> {
    is_worth_reading(header, &|key| proof(&engine.home, key))
}

/// What `argocd-secret` has in a field that a host proves itself by.
fn proof(home: &Home, key: &str) -> Secret {
    let namespace = &home.settings.namespace;
    let text = |name: &str, key: &str| {
        let secret = home.cache.get(&ResourceKey::new("", "Secret", namespace, name));
        secret.and_then(|secret| secret_text(&secret, key))
    };
    let found = |key: &str| {
        let own = text(ARGOCD_SECRET, key);
        // A value may say where it is instead.
        match own.as_deref().and_then(secret_reference) {
            None => Secret::or_default(own, Secret::Unset),
            Some((name, key)) => Secret::or_default(text(name, key), Secret::Lost),
        }
    };
    required(key, &found)
}

/// Lets those be looked at that read repositories whose branches may have moved; how many these are. What
/// a plugin reads nobody knows: whoever asks one is looked at besides.
fn pushed_to(engine: &Engine, pushed: &BTreeSet<RepoId>) -> usize {
    let Engine { home, sources, apps: memory, queue, sets: all_sets, .. } = engine;
    if pushed.is_empty() {
        return 0;
    }
    let is_pushed = |url: &str| {
        RepoId::parse(url)
            .is_some_and(|id| pushed.contains(&id) || id.beside_ssh().is_some_and(|id| pushed.contains(&id)))
    };
    let ours = |object: &Value| -> BTreeSet<String> {
        let urls = repositories_of(object.get("spec").unwrap_or(object), 0).into_iter();
        urls.filter(|url| is_pushed(url)).map(str::to_owned).collect()
    };
    let readers = |kind: &GroupKind| -> Vec<(AppKey, BTreeSet<String>)> {
        let read = home.cache.each_of(kind).map(|object| (AppKey::of_object(&object), ours(&object)));
        read.filter(|(_, urls)| !urls.is_empty()).collect()
    };
    let (apps, named) = (readers(&application_kind()), readers(&set_kind()));
    let (read, asking) = all_sets.reading(&is_pushed);
    let mut sets: BTreeMap<AppKey, BTreeSet<String>> = BTreeMap::new();
    for (key, urls) in named.into_iter().chain(read) {
        sets.entry(key).or_default().extend(urls);
    }
    let urls: BTreeSet<&String> = apps.iter().map(|(_, urls)| urls).chain(sets.values()).flatten().collect();
    // What was fetched a moment ago is no longer fresh.
    urls.into_iter().for_each(|url| sources.repositories.expire_address(url));
    let at = Instant::now() + GATHER_EDITS;
    for (key, _) in &apps {
        memory.doubt_revisions(key);
        queue.add(key.clone(), Refresh::Sources, at);
    }
    for key in sets.keys().chain(&asking) {
        all_sets.queue.add(key.clone(), Refresh::Sources, at);
    }
    ask_owners(home, apps.iter().map(|(key, _)| key), sets.keys().chain(&asking));
    apps.len() + sets.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn pushed_urls(
        headers: &[(&str, &str)],
        body: &Value,
        secrets: &[(&str, &str)],
    ) -> Result<Vec<String>, WebhookError> {
        let found = |pairs: &[(&str, &str)], wanted: &str| {
            pairs.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        };
        let header = |name: &str| found(headers, name);
        let set = |key: &str| Secret::or_default(found(secrets, key), Secret::Unset);
        let secret = |key: &str| required(key, &set);
        is_worth_reading(&header, &secret)?;
        hear(&header, body.to_string().as_bytes(), &secret)
    }

    fn signature(key: &str, body: &Value) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        HEXLOWER_PERMISSIVE.encode(hmac::sign(&key, body.to_string().as_bytes()).as_ref())
    }

    #[test]
    fn each_host_says_in_its_way_what_was_pushed_to() {
        let url = "https://git.example.com/acme/shop";
        let github = json!({"repository": {"html_url": url}});
        let server =
            json!({"repository": {"links": {"clone": [{"name": "http", "href": url}, {"name": "x"}]}}});
        let cases = [
            (vec![("x-github-event", "push")], github.clone()),
            (vec![("x-gogs-event", "push"), ("x-github-event", "push")], github),
            (vec![("x-gitlab-event", "Tag Push Hook")], json!({"project": {"web_url": url}})),
            (
                vec![("x-event-key", "repo:push"), ("x-hook-uuid", "u")],
                json!({"repository": {"links": {"html": {"href": url}}}}),
            ),
            (vec![("x-event-key", "repo:refs_changed")], server),
            (vec![("x-vss-activityid", "1")], json!({"resource": {"repository": {"remoteUrl": url}}})),
        ];
        for (headers, body) in cases {
            assert_eq!(pushed_urls(&headers, &body, &[]), Ok(vec![url.to_owned()]), "{headers:?}");
        }
    }

    #[test]
    fn what_is_no_push_is_nothing_and_what_is_no_event_is_refused() {
        assert_eq!(pushed_urls(&[("x-github-event", "ping")], &json!({}), &[]), Ok(Vec::new()));
        assert_eq!(pushed_urls(&[], &json!({}), &[]), Err(WebhookError::Unknown));
        let system = |body: Value| pushed_urls(&[("x-gitlab-event", "System Hook")], &body, &[]);
        assert_eq!(system(json!({"event_name": "user_create", "name": "a"})), Ok(Vec::new()));
        let merge =
            json!({"object_kind": "merge_request", "project": {"web_url": "https://git.example.com/a/b"}});
        assert_eq!(system(merge), Ok(Vec::new()));
        let update =
            json!({"event_name": "repository_update", "project": {"web_url": "https://git.example.com/a/b"}});
        assert_eq!(system(update), Ok(vec!["https://git.example.com/a/b".to_owned()]));
        assert_eq!(system(json!({"event_name": "push"})), Err(WebhookError::Malformed));
        for body in [json!({}), json!([]), json!({"repository": {"html_url": 1}})] {
            assert_eq!(
                pushed_urls(&[("x-github-event", "push")], &body, &[]),
                Err(WebhookError::Malformed),
                "{body}"
            );
        }
    }

    #[test]
    fn a_test_of_the_connection_needs_no_proof() {
        let secret = [("webhook.bitbucketserver.secret", "s")];
        let ask = |event: &str| pushed_urls(&[("x-event-key", event)], &json!({"test": true}), &secret);
        assert_eq!(ask("diagnostics:ping"), Ok(Vec::new()));
        assert_eq!(ask("repo:refs_changed"), Err(WebhookError::Unproved));
    }

    #[test]
    fn a_registry_tells_of_tags_that_are_published() {
        let package = |action: &str, kind: &str, tag: &str| {
            let version = json!({"container_metadata": {"tag": {"name": tag}}});
            let package = json!({"name": "shop", "package_type": kind, "owner": {"login": "Acme"},
                "package_version": version});
            pushed_urls(&[("x-github-event", "package")], &json!({"action": action, "package": package}), &[])
        };
        let address = Ok(vec!["oci://ghcr.io/Acme/shop".to_owned()]);
        assert_eq!(package("published", "CONTAINER", "1.0.0"), address);
        for (action, kind, tag) in
            [("updated", "container", "1"), ("published", "npm", "1"), ("published", "container", "")]
        {
            assert_eq!(package(action, kind, tag), Ok(Vec::new()), "{action} {kind} {tag:?}");
        }
        let body = json!({"action": "published"});
        let secret = [("webhook.github.secret", "s")];
        assert_eq!(
            pushed_urls(&[("x-github-event", "package")], &body, &secret),
            Err(WebhookError::Unproved)
        );
    }

    #[test]
    fn cve_2025_59531_cve_2025_59537_cve_2025_59538_events_of_any_form_end_in_an_answer() {
        let senders = [
            vec![("x-github-event", "push")],
            vec![("x-gogs-event", "push")],
            vec![("x-gitlab-event", "Push Hook")],
            vec![("x-event-key", "repo:push"), ("x-hook-uuid", "u")],
            vec![("x-event-key", "repo:refs_changed")],
            vec![("x-vss-activityid", "1")],
        ];
        let odd = [json!(null), json!([]), json!(1), json!("x"), json!({}), json!([{"href": [1]}, 2])];
        let nested = odd.iter().flat_map(|inner| {
            let links = json!({"clone": inner, "html": inner});
            let repository = json!({"html_url": inner, "links": links, "remoteUrl": inner});
            [
                inner.clone(),
                json!({"repository": inner, "project": inner, "resource": inner}),
                json!({"repository": repository, "resource": {"repository": repository}, "project": {"web_url": inner}}),
            ]
        });
        for body in nested {
            for sender in &senders {
                let answer = pushed_urls(sender, &body, &[]);
                let is_text = body.to_string().contains("\"x\"");
                assert!(answer == Err(WebhookError::Malformed) || is_text, "{sender:?} {body}: {answer:?}");
            }
        }
        assert_eq!(hear(&|_| Some("x".into()), b"\xff{", &|_| Secret::Unset), Err(WebhookError::Malformed));
    }

    #[test]
    fn a_host_without_a_secret_is_believed_only_if_no_other_has_one() {
        let senders = [
            vec![("x-github-event", "push")],
            vec![("x-gogs-event", "push")],
            vec![("x-gitlab-event", "Push Hook")],
            vec![("x-event-key", "repo:push"), ("x-hook-uuid", "u")],
            vec![("x-event-key", "repo:refs_changed")],
            vec![("x-vss-activityid", "1")],
        ];
        let repository = json!({"html_url": "https://a/b", "remoteUrl": "https://a/b",
            "links": {"html": {"href": "https://a/b"}, "clone": [{"href": "https://a/b"}]}});
        let body = json!({"repository": repository, "resource": {"repository": repository},
            "project": {"web_url": "https://a/b"}});
        for (at, sender) in senders.iter().enumerate() {
            assert!(pushed_urls(sender, &body, &[]).is_ok(), "{sender:?}");
            let another = if at == 0 { "webhook.gitlab.secret" } else { "webhook.github.secret" };
            let answer = pushed_urls(sender, &body, &[(another, "s3cret")]);
            assert_eq!(answer, Err(WebhookError::Unproved), "{sender:?}");
        }
        let azure = [("x-vss-activityid", "1"), ("authorization", "Basic dTpw")];
        assert!(
            pushed_urls(&azure, &body, &[("webhook.azuredevops.password", "p")]).is_ok(),
            "a password alone"
        );
    }

    #[test]
    fn without_a_chance_of_a_proof_no_body_is_read() {
        let set = |key: &str| match key {
            "webhook.github.secret" | "webhook.gitlab.secret" => Secret::Set("s3cret".to_owned()),
            _ => Secret::Unset,
        };
        let ask = |headers: &[(&str, &str)]| {
            let header = |name: &str| {
                headers.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            is_worth_reading(&header, &|key| required(key, &set))
        };
        let (unproved, event) = (Err(WebhookError::Unproved), ("x-github-event", "push"));
        assert_eq!(ask(&[event]), unproved);
        assert_eq!(ask(&[event, ("x-hub-signature-256", "sha256=00")]), Ok(()), "the body decides");
        assert_eq!(ask(&[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "other")]), unproved);
        assert_eq!(ask(&[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "s3cret")]), Ok(()));
        assert_eq!(ask(&[("x-gogs-event", "push"), ("x-gogs-signature", "00")]), unproved);
        assert_eq!(ask(&[]), Err(WebhookError::Unknown));
    }

    #[test]
    fn who_does_not_know_the_secret_is_not_listened_to() {
        let body = json!({"repository": {"html_url": "https://git.example.com/acme/shop"}});
        let github = [("webhook.github.secret", "s3cret")];
        let signed = |key: &str| {
            let signature = format!("sha256={}", signature(key, &body));
            pushed_urls(&[("x-github-event", "push"), ("x-hub-signature-256", &signature)], &body, &github)
        };
        assert!(signed("s3cret").is_ok());
        assert_eq!(signed("other"), Err(WebhookError::Unproved));
        assert_eq!(pushed_urls(&[("x-github-event", "push")], &body, &github), Err(WebhookError::Unproved));
        // Where another host has a secret, nobody is believed without; a ping proves itself, too.
        let other = [("webhook.gitlab.secret", "s3cret")];
        assert_eq!(pushed_urls(&[("x-github-event", "push")], &body, &other), Err(WebhookError::Unproved));
        assert_eq!(pushed_urls(&[("x-github-event", "ping")], &body, &github), Err(WebhookError::Unproved));
        let gitlab = |token: &str| {
            let headers = [("x-gitlab-event", "Push Hook"), ("x-gitlab-token", token)];
            pushed_urls(
                &headers,
                &json!({"project": {"web_url": "https://a/b"}}),
                &[("webhook.gitlab.secret", "s3cret")],
            )
        };
        assert!(gitlab("s3cret").is_ok());
        assert_eq!(gitlab("s3cre"), Err(WebhookError::Unproved));
        let azure = |login: &str| {
            let headers = [("x-vss-activityid", "1"), ("authorization", login)];
            let secrets = [("webhook.azuredevops.username", "u"), ("webhook.azuredevops.password", "p")];
            pushed_urls(
                &headers,
                &json!({"resource": {"repository": {"remoteUrl": "https://a/b"}}}),
                &secrets,
            )
        };
        assert!(azure("Basic dTpw").is_ok());
        assert_eq!(azure("Basic dTo="), Err(WebhookError::Unproved));
    }
}
