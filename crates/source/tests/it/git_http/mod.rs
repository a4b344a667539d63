//! Git hosts that stall, refuse, lose branches and come back; and credentials, which go nowhere they should
//! not.

mod server;

use std::{
    io::{BufRead, BufReader, Read as _, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa,
    signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::json;
use server::{Host, Mode, Stream};
use tempfile::TempDir;
use tiphys_identity::{Azure, AzureLogin, Google, Identity};
use tiphys_source::{
    Access, AccessTable, Checkout, CheckoutOptions, DeclaredAccess, Fetcher, GitCache, GithubApp,
    Repositories, SourceError,
};
use tiphys_vfs::FileTree;

use crate::tls;

/// A limit for hosts that never answer.
const SHORT: Duration = Duration::from_secs(1);

/// A repository, its host, and a cache that asks for news each time.
struct GitHttpFixture {
    folder: TempDir,
    host: Host,
    cache: GitCache,
}

impl GitHttpFixture {
    fn new() -> Self {
        Self::with_access(|_| AccessTable::default())
    }

    fn with_access(access: impl FnOnce(&str) -> AccessTable) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let repository = folder.path().join("shop");
        std::fs::create_dir(&repository).expect("a folder can be made");
        git(&repository, &["init", "-q", "-b", "main"]);
        let host = Host::for_repository(&repository);
        let cache = GitCache::new(folder.path().join("cache"), Duration::ZERO).with_access(access(&host.url));
        let place = Self { folder, host, cache };
        place.commit("one");
        place
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("shop")
    }

    fn git(&self, args: &[&str]) {
        git(&self.repository(), args);
    }

    fn commit(&self, text: &str) {
        std::fs::write(self.repository().join("a.txt"), text).expect("is writable");
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", text]);
    }

    fn checkout(&self, revision: &str, limit: Duration) -> Result<Checkout, SourceError> {
        let options = CheckoutOptions { limit, ..CheckoutOptions::default() };
        self.cache.checkout_with(&self.host.url, revision, options)
    }

    /// What the file says at a revision.
    fn text(&self, revision: &str) -> String {
        let checkout = self.checkout(revision, Duration::from_secs(120)).expect("it is served");
        String::from_utf8_lossy(&checkout.tree.read("a.txt").expect("is there")).into_owned()
    }

    fn error(&self, revision: &str, limit: Duration) -> SourceError {
        match self.checkout(revision, limit) {
            Err(error) => error,
            Ok(checkout) => panic!("{revision} is {}", checkout.revision),
        }
    }
}

fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(identity).args(args).current_dir(folder).output();
    let output = output.expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_host_that_says_nothing_is_given_up_and_asked_again() {
    let place = GitHttpFixture::new();
    place.host.set(Mode::Silent);
    let error = place.error("main", SHORT);
    assert!(matches!(error, SourceError::Timeout { .. }), "{error}");
    assert!(error.is_transient() && error.to_string().contains("no answer within 1 s"), "{error}");
    place.host.set(Mode::Serve);
    assert_eq!(place.text("main"), "one");
}

#[test]
fn a_host_that_stalls_in_the_middle_is_given_up_and_asked_again() {
    let place = GitHttpFixture::new();
    assert_eq!(place.text("main"), "one");
    place.commit("two");
    place.host.set(Mode::StopsMidway);
    let error = place.error("main", SHORT);
    assert!(matches!(error, SourceError::Timeout { .. }), "{error}");
    place.host.set(Mode::HangsUp);
    let error = place.error("main", Duration::from_secs(120));
    assert!(matches!(error, SourceError::Fetch { .. }) && error.is_transient(), "{error}");
    place.host.set(Mode::Serve);
    assert_eq!(place.text("main"), "two");
}

#[test]
fn a_forced_push_is_followed() {
    let place = GitHttpFixture::new();
    place.commit("two");
    assert_eq!(place.text("main"), "two");
    place.git(&["reset", "-q", "--hard", "HEAD~1"]);
    place.commit("instead of two");
    assert_eq!(place.text("main"), "instead of two");
    assert_eq!(place.text(""), "instead of two");
    // A tag may move too.
    place.git(&["tag", "v1"]);
    assert_eq!(place.text("v1"), "instead of two");
    place.commit("three");
    place.git(&["tag", "-f", "v1"]);
    assert_eq!(place.text("v1"), "three");
}

#[test]
fn a_deleted_branch_or_tag_is_gone() {
    let place = GitHttpFixture::new();
    place.git(&["branch", "feature"]);
    place.git(&["tag", "v1"]);
    assert_eq!((place.text("feature"), place.text("v1")), ("one".into(), "one".into()));
    place.git(&["branch", "-q", "-D", "feature"]);
    place.git(&["tag", "-d", "v1"]);
    for name in ["feature", "v1"] {
        let error = place.error(name, Duration::from_secs(120));
        assert!(matches!(error, SourceError::UnknownRevision { .. }), "{error}");
        assert!(
            error.to_string().contains(&format!("no branch, tag or commit {name:?}; it has main")),
            "{error}"
        );
    }
    assert_eq!(place.text("main"), "one");
    place.git(&["branch", "feature/two"]);
    assert_eq!(place.text("feature/two"), "one");
}

#[test]
fn a_missing_submodule_is_named() {
    let place = GitHttpFixture::new();
    let gone = format!("{}-gone", place.host.url);
    std::fs::write(
        place.repository().join(".gitmodules"),
        format!("[submodule \"lib\"]\n\tpath = lib\n\turl = file:///nowhere/lib\n\tnote = {gone}\n"),
    )
    .expect("is writable");
    let commit = "1111111111111111111111111111111111111111";
    place.git(&["add", ".gitmodules"]);
    place.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},lib")]);
    place.git(&["commit", "-q", "-m", "with a submodule"]);
    let error = place.error("main", Duration::from_secs(120));
    assert!(error.to_string().contains("/nowhere/lib"), "{error}");
    // Whoever needs none of it is served.
    let options = CheckoutOptions { submodules: false, ..CheckoutOptions::default() };
    let without = place.cache.checkout_with(&place.host.url, "main", options).expect("is there");
    assert!(without.tree.is_file("a.txt"));
}

#[test]
fn a_login_is_sent_without_tls_where_the_address_says_so() {
    let place = GitHttpFixture::with_access(login);
    place.host.set(Mode::Login("Basic ZGVwbG95ZXI6aHVudGVyMg==".to_owned()));
    assert_eq!(place.text("main"), "one");
    place.host.set(Mode::Login("Basic bmV3Om5ldw==".to_owned()));
    let error = place.error("main", Duration::from_secs(120));
    assert!(!error.to_string().contains("hunter"), "{error}");
    assert!(error.to_string().ends_with("the host refuses the login that is known for it"), "{error}");
}

/// Credentials for one address.
fn login(url: &str) -> AccessTable {
    let mut table = AccessTable::default();
    let (username, password) = (Some("deployer".to_owned()), Some("hunter2".to_owned()));
    table.insert(url, Access { username, password, ..Access::default() });
    table
}

#[test]
fn cve_2023_25163_a_refused_password_is_in_no_error() {
    let place = GitHttpFixture::with_access(login);
    place.host.set(Mode::Refuse);
    let errors = [
        place.error("main", Duration::from_secs(120)),
        place
            .cache
            .checkout(&place.host.url.replace("http://", "http://deployer:hunter3@"), "main")
            .map(|checkout| checkout.revision)
            .expect_err("is refused"),
    ];
    for error in errors {
        let text = format!("{error} {error:?}");
        assert!(!error.to_string().contains("hunter"), "{error}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    // Another login than the one that is known: to ask again at once changes nothing.
    place.host.set(Mode::Login("Basic b3RoZXI6aHVudGVyMg==".to_owned()));
    let error = place.error("main", Duration::from_secs(120));
    assert!(!error.to_string().contains("hunter"));
    assert!(error.is_out_of_reach() && !error.is_transient(), "{error:?}");
    place.host.set(Mode::Serve);
    assert_eq!(place.text("main"), "one");
}

#[test]
fn each_project_has_its_own_credentials_and_reads_nothing_of_the_others() {
    let place = GitHttpFixture::new();
    place.host.set(Mode::Login("Basic ZGVwbG95ZXI6aHVudGVyMg==".to_owned()));
    let declared = |project: &str, password: &str| DeclaredAccess {
        url: place.host.url.clone(),
        exact: true,
        project: project.to_owned(),
        access: Access {
            username: Some("deployer".to_owned()),
            password: Some(password.to_owned()),
            ..Access::default()
        },
    };
    let fetcher = Fetcher::new(place.folder.path().join("fetched"), Duration::from_secs(60), false, |_| None);
    fetcher.declare(vec![declared("one", "hunter2"), declared("two", "wrong")]);
    let repositories = Repositories::new(Some(Arc::new(fetcher)), false);
    let checkout = |project: &str, revision: &str| {
        let made = repositories.checkout_for(project, &place.host.url, revision);
        made.map(|checkout| checkout.revision).map_err(|error| error.to_string())
    };
    let commit = checkout("one", "main").expect("its password is right");
    // A commit that somebody has fetched is there without asking, but not for everybody.
    assert_eq!(checkout("one", &commit).as_ref(), Ok(&commit));
    let error = checkout("two", &commit).expect_err("its password is wrong");
    assert!(error.ends_with("the host refuses the login that is known for it"), "{error}");
    for project in ["three", ""] {
        checkout(project, &commit).expect_err("it has none");
    }
    let fetcher = repositories.fetcher().expect("it fetches");
    fetcher.declare(vec![declared("", "hunter2"), declared("two", "wrong")]);
    assert_eq!(checkout("three", "main").as_ref(), Ok(&commit), "there is one for all");
    fetcher.expire();
    checkout("two", "main").expect_err("its own comes first");
}

#[test]
fn cve_2020_5260_credentials_go_to_no_other_host() {
    let place = GitHttpFixture::with_access(login);
    let foreign = GitHttpFixture::new();
    foreign.host.set(Mode::Refuse);
    // A host that wants a password for an address that spells the known one out behind a line break.
    let known = place.host.url.trim_start_matches("http://");
    let known = known.split('/').next().expect("has a host");
    let crafted = format!("{}?%0ahost={known}%0aprotocol=http", foreign.host.url);
    for url in [foreign.host.url.clone(), crafted] {
        let error = place.cache.checkout(&url, "main").map(|checkout| checkout.revision);
        let error = error.expect_err("nobody knows the password");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    assert_eq!(foreign.host.authorizations(), [""; 0]);
    // The known host sends us there.
    place.host.set(Mode::Redirect(foreign.host.url.clone()));
    let error = place.error("main", Duration::from_secs(120));
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert_eq!(foreign.host.authorizations(), [""; 0]);
}

impl GitHttpFixture {
    /// What the file says at a revision of which only the newest commit is wanted.
    fn newest(&self, revision: &str) -> Result<String, SourceError> {
        let options = CheckoutOptions { shallow: true, ..CheckoutOptions::default() };
        let checkout = self.cache.checkout_with(&self.host.url, revision, options)?;
        Ok(String::from_utf8_lossy(&checkout.tree.read("a.txt").expect("is there")).into_owned())
    }

    fn head(&self) -> String {
        let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(self.repository()).output();
        String::from_utf8(output.expect("git is installed").stdout).expect("is text").trim().to_owned()
    }

    /// The repositories in the cache: folders below `newest`, and those of whole repositories.
    fn kept_packs(&self) -> (Vec<PathBuf>, usize) {
        let list = |folder: PathBuf| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            let folders = entries.map(|entry| entry.expect("is readable").path());
            folders.filter(|path| path.join("HEAD").is_file()).collect()
        };
        let cache = self.folder.path().join("cache");
        (list(cache.join("newest")), list(cache).len())
    }
}

#[test]
fn of_a_base_only_one_commit_is_fetched() {
    let place = GitHttpFixture::new();
    place.git(&["tag", "v1"]);
    place.commit("two");
    place.commit("three");
    assert_eq!(place.newest("main").expect("is there"), "three");
    let (newest, whole) = place.kept_packs();
    assert_eq!((newest.len(), whole), (1, 0));
    let log = Command::new("git").args(["log", "--all", "--format=%s"]).current_dir(&newest[0]).output();
    assert_eq!(String::from_utf8_lossy(&log.expect("git is installed").stdout), "three\n");
    assert_eq!(place.newest("v1").expect("is there"), "one");
    assert_eq!(place.newest("").expect("is there"), "three");
    place.commit("four");
    assert_eq!(place.newest("main").expect("is there"), "four");
    place.git(&["reset", "-q", "--hard", "HEAD~2"]);
    assert_eq!(place.newest("main").expect("is there"), "two");
    assert_eq!(place.kept_packs().1, 0);
}

#[test]
fn a_commit_is_fetched_alone_where_the_host_hands_it_out() {
    let place = GitHttpFixture::new();
    place.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let first = place.head();
    place.commit("two");
    assert_eq!(place.newest(&first).expect("is there"), "one");
    assert_eq!(place.kept_packs().1, 0);
    // It is never asked for again.
    place.host.set(Mode::Refuse);
    assert_eq!(place.newest(&first).expect("is there"), "one");
}

#[test]
fn all_is_fetched_where_single_commits_cannot_be_had() {
    let place = GitHttpFixture::new();
    let first = place.head();
    place.commit("two");
    place.git(&["tag", "v1.2.0"]);
    place.host.set(Mode::WholeOnly);
    assert_eq!(place.newest("main").expect("is there"), "two");
    assert_eq!(place.kept_packs().1, 1);
    // Shortened commits and ranges are no names of the host's.
    for (revision, text) in [(&first[..9], "one"), (first.as_str(), "one"), ("v1.x", "two")] {
        assert_eq!(place.newest(revision).expect("is there"), text, "{revision}");
    }
    let other = GitHttpFixture::new();
    let commit = other.head();
    other.commit("two");
    assert_eq!(other.newest(&commit[..9]).expect("is there"), "one");
    let error = other.newest("nothing").expect_err("is not there");
    assert!(error.to_string().contains("no branch, tag or commit \"nothing\"; it has main"), "{error}");
}

/// A host that is reached by HTTPS alone, and its certificate.
fn certified(repository: &Path) -> (Host, String) {
    let (config, pem) = tls::certified();
    let layer = move |stream| -> Box<dyn Stream> {
        let connection = rustls::ServerConnection::new(config.clone()).expect("the configuration is sound");
        Box::new(rustls::StreamOwned::new(connection, stream))
    };
    (Host::with_tls(repository, Arc::new(layer)), pem)
}

#[test]
fn a_host_has_the_authority_that_is_declared_for_it() {
    let place = GitHttpFixture::new();
    let (host, pem) = certified(&place.repository());
    let fetched = |name: &str, access: Access| {
        let mut table = AccessTable::default();
        table.insert(&host.url, access);
        let cache = GitCache::new(place.folder.path().join(name), Duration::ZERO).with_access(table);
        cache.checkout(&host.url, "main").map(|checkout| checkout.tree.read("a.txt").expect("is there"))
    };
    let error = fetched("default", Access::default()).expect_err("nobody vouches for it").to_string();
    assert!(error.contains("UnknownIssuer") && error.contains("SSL_CERT_FILE"), "{error}");
    let trusting = Access { ca_pem: Some(pem), ..Access::default() };
    assert_eq!(&*fetched("trusting", trusting.clone()).expect("is vouched for"), b"one");
    let careless = Access { insecure_skip_verify: true, ..Access::default() };
    assert_eq!(&*fetched("careless", careless).expect("anything goes"), b"one");
    // Nobody stands where the proxy should, and the host itself is not asked.
    let proxied = Access { proxy: Some("http://127.0.0.1:1".into()), ..trusting };
    let error = fetched("proxied", proxied.clone()).expect_err("there is no proxy").to_string();
    assert!(error.contains("refuses the connection"), "{error}");
    let around = Access { no_proxy: Some("localhost".into()), ..proxied };
    assert_eq!(&*fetched("around", around.clone()).expect("is asked itself"), b"one");
    // A token is no password.
    host.set(Mode::Login("Bearer t0k".into()));
    let bearer = Access { bearer_token: Some("t0k".into()), ..around.clone() };
    assert_eq!(&*fetched("bearer", bearer).expect("is let in"), b"one");
    let refused = Access { bearer_token: Some("other".into()), ..around };
    let error = fetched("refused", refused).expect_err("is not let in").to_string();
    assert!(error.ends_with("the host refuses the login that is known for it"), "{error}");
}

/// A service that answers by the first line of what it is asked, and what proves who asks; and what was
/// asked, in order.
fn service(
    answer: impl Fn(&str, Option<&str>) -> (u16, &'static str) + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = asked.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
            let first = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
            let proof = head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().expect("is a number"))];
            reader.read_exact(&mut body).expect("the body comes");
            let (code, answer) = answer(&first, proof);
            log.lock().expect("no thread panicked").push(first);
            let length = answer.len();
            let answer =
                format!("HTTP/1.1 {code} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, asked)
}

/// Answers what a GitHub App asks, with a token for the one that holds the key.
fn app_api(public: rsa::PublicKey) -> (String, Arc<Mutex<Vec<String>>>) {
    let (url, asked) = service(move |first, proof| match first {
        _ if !proof.is_some_and(|proof| is_signed(proof, &public)) => (401, "{}"),
        "GET /api/v3/repos/acme/shop/installation" => (200, r#"{"id": 7}"#),
        "POST /api/v3/app/installations/7/access_tokens" => (201, r#"{"token": "t0k"}"#),
        _ => (404, "{}"),
    });
    (format!("{url}/api/v3/"), asked)
}

fn is_signed(token: &str, public: &rsa::PublicKey) -> bool {
    let Some((signed, signature)) = token.rsplit_once('.') else { return false };
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
    let claims = signed.split('.').nth(1).map(decoded).unwrap_or_default();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public.as_ref());
    String::from_utf8_lossy(&claims).contains(r#""iss":"4711""#)
        && key.verify(signed.as_bytes(), &decoded(signature)).is_ok()
}

fn pem(key: &rsa::KeyPair) -> String {
    let der: Pkcs8V1Der<'_> = key.as_der().expect("can be written");
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der.as_ref()))
}

#[test]
fn a_github_app_fetches_with_its_own_tokens() {
    let place = GitHttpFixture::new();
    let key = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).expect("can be made");
    let pem = pem(&key);
    let (api, asked) = app_api(key.public_key().clone());
    place.host.set(Mode::Login(format!("Basic {}", STANDARD.encode("x-access-token:t0k"))));
    let app = GithubApp { id: "4711".into(), installation: None, private_key: pem, base_url: Some(api) };
    let fetched = |name: &str, app: GithubApp, times: usize| {
        let mut table = AccessTable::default();
        table.insert(&place.host.url, Access { github_app: Some(app), ..Access::default() });
        let cache = GitCache::new(place.folder.path().join(name), Duration::ZERO).with_access(table);
        (0..times)
            .map(|_| cache.checkout(&place.host.url, "main").map(|checkout| checkout.revision))
            .last()
            .expect("once")
    };
    assert_eq!(fetched("app", app.clone(), 2).expect("has a token"), place.head());
    let twice =
        ["GET /api/v3/repos/acme/shop/installation", "POST /api/v3/app/installations/7/access_tokens"];
    assert_eq!(*asked.lock().expect("no thread panicked"), twice, "the token is kept");
    let named = GithubApp { installation: Some("7".into()), ..app.clone() };
    assert_eq!(fetched("named", named, 1).expect("has a token"), place.head());
    let stranger = GithubApp { id: "1".into(), ..app.clone() };
    let error = fetched("stranger", stranger, 1).expect_err("is refused").to_string();
    assert!(error.contains("GitHub App 1: ") && error.contains("/installation"), "{error}");
    let broken = GithubApp { private_key: "s3cret".into(), ..app };
    let error = fetched("broken", broken, 1).expect_err("is no key").to_string();
    assert!(error.contains("githubAppPrivateKey") && !error.contains("s3cret"), "{error}");
}

#[test]
fn an_identity_of_a_cloud_fetches_with_its_own_tokens() {
    let place = GitHttpFixture::new();
    let (authority, asked) = service(|first, _| match first {
        "POST /acme/oauth2/v2.0/token" | "POST /google" => {
            (200, r#"{"access_token": "t0k", "expires_in": 3600}"#)
        }
        _ => (400, r#"{"error_description": "no such tenant"}"#),
    });
    let fetched = |name: &str, identity: Identity| {
        let mut table = AccessTable::default();
        table.insert(&place.host.url, Access { identity: Some(identity), ..Access::default() });
        let cache = GitCache::new(place.folder.path().join(name), Duration::ZERO).with_access(table);
        let checkout = || cache.checkout(&place.host.url, "main").map(|checkout| checkout.revision);
        checkout().and_then(|_| checkout()).map_err(|error| error.to_string())
    };
    let azure = |tenant: &str| {
        Identity::Azure(Azure {
            login: AzureLogin::Secret("s3cret".into()),
            tenant: tenant.into(),
            client: "tiphys".into(),
            authority: Some(authority.clone()),
            resource: "devops".into(),
        })
    };
    // Azure DevOps takes a token as what it is, the hosts of Google as a password.
    place.host.set(Mode::Login("Bearer t0k".into()));
    assert_eq!(fetched("azure", azure("acme")), Ok(place.head()));
    assert_eq!(asked.lock().expect("no thread panicked").len(), 1, "the token is kept");
    let error = fetched("stranger", azure("other")).expect_err("is refused");
    assert!(error.contains("no such tenant") && !error.contains("s3cret"), "{error}");
    place.host.set(Mode::Login(format!("Basic {}", STANDARD.encode("tiphys@acme:t0k"))));
    let key = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).expect("can be made");
    let file = json!({"type": "service_account", "client_email": "tiphys@acme", "private_key": pem(&key),
        "token_uri": format!("{authority}/google")});
    assert_eq!(fetched("google", Identity::Google(Google::Key(file.to_string()))), Ok(place.head()));
}

#[test]
fn tags_come_from_a_host_that_does_not_send_them_along() {
    let place = GitHttpFixture::new();
    place.git(&["tag", "-a", "-m", "one", "v1.0.0"]);
    place.commit("two");
    place.host.set(Mode::Old);
    assert_eq!(place.text("main"), "two");
    assert_eq!(place.text("v1.0.0"), "one");
    assert_eq!(place.newest("v1.0.0").expect("is there"), "one");
}

#[test]
fn a_host_that_is_down_is_left_alone_for_a_moment() {
    let place = GitHttpFixture::new();
    let cache = GitCache::new(place.folder.path().join("patient"), Duration::from_secs(3600));
    place.host.set(Mode::Down);
    let failure = || cache.checkout(&place.host.url, "main").err().expect("it is down").to_string();
    let first = failure();
    let asked = place.host.requests();
    assert!(first.contains("503") && asked > 0, "{first}");
    assert_eq!((failure(), place.host.requests()), (first, asked));
    // Whoever means now is not held up.
    place.host.set(Mode::Serve);
    cache.expire_address(&place.host.url);
    cache.checkout(&place.host.url, "main").expect("it is up");
}
