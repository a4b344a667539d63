//! Credentials and TLS options for addresses.

use std::{collections::BTreeSet, fmt, sync::Arc};

use parking_lot::RwLock;
use tiphys_identity::Identity;

use crate::{GithubApp, RepoId};

/// How to reach an address: what Argo CD's repository Secrets and Helm's repository options hold.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// User for basic authentication, or for fetching a registry's token.
    pub username: Option<String>,
    /// Password or token of that user.
    pub password: Option<String>,
    /// A token sent as it is.
    pub bearer_token: Option<String>,
    /// Certificate authorities in PEM that are trusted instead of the system's.
    pub ca_pem: Option<String>,
    /// Client certificate in PEM.
    pub client_certificate_pem: Option<String>,
    /// Its key in PEM.
    pub client_key_pem: Option<String>,
    /// Accept any certificate.
    pub insecure_skip_verify: bool,
    /// Send the credentials also to other hosts that an index points to.
    pub pass_credentials_all: bool,
    /// Speak HTTP to a registry.
    pub plain_http: bool,
    /// Address of the proxy that the host is reached through, in place of the environment's.
    pub proxy: Option<String>,
    /// Hosts and networks that are reached without that proxy, as in `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// A GitHub App that fetches with tokens of its own.
    pub github_app: Option<GithubApp>,
    /// What a cloud knows the asker as: a Git host is sent its token, a registry of Azure what it hands out
    /// for one.
    pub identity: Option<Identity>,
    /// Private key in PEM for `ssh`.
    pub ssh_private_key: Option<String>,
    /// Lines of `known_hosts` that hosts are held against, for `ssh`.
    pub known_hosts: Option<String>,
    /// Believe any host's key, for `ssh`.
    pub insecure_ignore_host_key: bool,
}

impl Access {
    /// This access, with what it leaves open from another one: who asks is said by one of them alone.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        let ca_pem = self.ca_pem.clone().or_else(|| other.ca_pem.clone());
        let says_who = self.has_credentials() || self.username.is_some();
        let (asker, rest) = if says_who { (self, other) } else { (other, self) };
        Self {
            ca_pem,
            insecure_skip_verify: asker.insecure_skip_verify || rest.insecure_skip_verify,
            pass_credentials_all: asker.pass_credentials_all || rest.pass_credentials_all,
            plain_http: asker.plain_http || rest.plain_http,
            ..asker
        }
    }

    /// Whether it says how a host is reached by HTTP beyond who asks.
    pub(crate) fn has_transport(&self) -> bool {
        self.insecure_skip_verify
            || self.ca_pem.is_some()
            || self.client_certificate_pem.is_some()
            || self.proxy.is_some()
    }

    /// Whether it says who asks.
    pub fn has_credentials(&self) -> bool {
        self.password.is_some()
            || self.bearer_token.is_some()
            || self.client_certificate_pem.is_some()
            || self.ssh_private_key.is_some()
            || self.github_app.is_some()
            || self.identity.is_some()
    }
}

/// What somebody declared for a repository, or for all below an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredAccess {
    /// Address of the repository, or beginning of addresses.
    pub url: String,
    /// The address is that of one repository.
    pub exact: bool,
    /// Only Applications of this project may use it; empty means any.
    pub project: String,
    /// The access.
    pub access: Access,
}

impl DeclaredAccess {
    /// How well it fits an address: not at all, or the better the greater.
    fn fit(&self, url: &str) -> Option<(bool, usize)> {
        let prefix = self.url.trim_end_matches('/');
        let is_same = || {
            let secure_shell = |url: &str| url.starts_with("ssh://") || !url.contains("://");
            secure_shell(prefix) == secure_shell(url)
                && RepoId::parse(prefix).is_some_and(|id| Some(id) == RepoId::parse(url))
        };
        let fits = covers(prefix, url) || (self.exact && is_same());
        fits.then_some((self.exact, prefix.len()))
    }
}

/// Secrets stay out of logs.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("username", &self.username)
            .field("has_password", &self.password.is_some())
            .field("has_bearer_token", &self.bearer_token.is_some())
            .field("has_client_certificate", &self.client_certificate_pem.is_some())
            .field("has_ca", &self.ca_pem.is_some())
            .field("insecure_skip_verify", &self.insecure_skip_verify)
            .field("pass_credentials_all", &self.pass_credentials_all)
            .field("plain_http", &self.plain_http)
            .field("has_proxy", &self.proxy.is_some())
            .field("has_github_app", &self.github_app.is_some())
            .field("identity", &self.identity)
            .field("has_ssh_key", &self.ssh_private_key.is_some())
            .finish_non_exhaustive()
    }
}

/// Which access belongs to which addresses: that of the longest prefix.
#[derive(Clone, Debug, Default)]
pub struct AccessTable {
    entries: Vec<(String, Access)>,
    /// What is declared for this project counts, and before what is for all; empty means no project.
    project: String,
    /// What was declared in a cluster; shared by all copies, and may change.
    declared: Arc<RwLock<Vec<DeclaredAccess>>>,
}

impl AccessTable {
    /// Adds access for every address at or below `prefix`.
    pub fn insert(&mut self, prefix: &str, access: Access) {
        self.entries.push((prefix.trim_end_matches('/').to_owned(), access));
    }

    /// What was added by [`Self::insert`], the newest last.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Access)> {
        self.entries.iter().map(|(prefix, access)| (prefix.as_str(), access))
    }

    /// Replaces what was declared, in this table and all its copies.
    pub fn declare(&self, all: Vec<DeclaredAccess>) {
        *self.declared.write() = all;
    }

    /// The same declarations as another table, as the same project sees them.
    #[must_use]
    pub fn sharing(self, other: &Self) -> Self {
        Self { entries: self.entries, ..other.clone() }
    }

    /// The same table as a project sees it.
    #[must_use]
    pub fn of_project(&self, project: &str) -> Self {
        Self { project: project.to_owned(), ..self.clone() }
    }

    /// The best declaration for an address that says who asks: of those of one repository, and then of those
    /// of many, the project's own before one for all, and then the closest.
    fn declaration(&self, url: &str) -> Option<DeclaredAccess> {
        let declared = self.declared.read();
        let rank = |entry: &&DeclaredAccess| {
            let (exact, length) = entry.fit(url).unwrap_or_default();
            (exact, !entry.project.is_empty(), length)
        };
        let is_ours = |entry: &&DeclaredAccess| entry.project.is_empty() || entry.project == self.project;
        let fitting = || declared.iter().filter(|entry| entry.fit(url).is_some()).filter(is_ours);
        let mut best = fitting().max_by_key(rank)?.clone();
        if !best.access.has_credentials()
            && let Some(other) = fitting().filter(|entry| entry.access.has_credentials()).max_by_key(rank)
        {
            // A repository without credentials of its own has those of its template.
            let own = best.access;
            best.access = other.access.clone();
            best.access.insecure_skip_verify |= own.insecure_skip_verify;
            best.access.insecure_ignore_host_key |= own.insecure_ignore_host_key;
            if own.proxy.is_some() {
                (best.access.proxy, best.access.no_proxy) = (own.proxy, own.no_proxy);
            }
        }
        Some(best)
    }

    /// The projects for which access to an address was declared.
    pub fn projects_of(&self, url: &str) -> BTreeSet<String> {
        let declared = self.declared.read();
        let fitting = declared.iter().filter(|entry| entry.fit(url).is_some() && !entry.project.is_empty());
        fitting.map(|entry| entry.project.clone()).collect()
    }

    /// The access for an address; the default (anonymous) if there is none.
    pub fn lookup(&self, url: &str) -> Access {
        if let Some(declared) = self.declaration(url) {
            return declared.access;
        }
        self.entries
            .iter()
            .filter(|(prefix, _)| covers(prefix, url))
            .max_by_key(|(prefix, _)| prefix.len())
            .map(|(_, access)| access.clone())
            .unwrap_or_default()
    }
}

/// Whether `url` is `prefix` or lies below it; `https://a.b/c` does not cover `https://a.b/cd`.
fn covers(prefix: &str, url: &str) -> bool {
    url.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins_at_path_boundaries() {
        let named = |name: &str| Access { username: Some(name.to_owned()), ..Access::default() };
        let mut table = AccessTable::default();
        table.insert("https://charts.example.com/", named("host"));
        table.insert("https://charts.example.com/team", named("team"));
        let user = |url| table.lookup(url).username.unwrap_or_default();
        assert_eq!(user("https://charts.example.com/team/index.yaml"), "team");
        assert_eq!(user("https://charts.example.com/teams/index.yaml"), "host");
        assert_eq!(user("https://charts.example.com"), "host");
        assert_eq!(user("https://charts.example.com.evil.org/index.yaml"), "");
    }

    #[test]
    fn what_an_access_leaves_open_comes_from_another_and_who_asks_from_one() {
        let known = Access {
            username: Some("known".into()),
            password: Some("p".into()),
            ca_pem: Some("known".into()),
            ..Access::default()
        };
        let plain = Access { plain_http: true, ca_pem: Some("given".into()), ..Access::default() };
        let both = plain.or(known.clone());
        assert_eq!(
            (both.password.as_deref(), both.ca_pem.as_deref(), both.plain_http),
            (Some("p"), Some("given"), true)
        );
        let user = Access { username: Some("given".into()), ..Access::default() };
        let both = user.or(known);
        assert_eq!((both.username.as_deref(), both.password), (Some("given"), None));
    }

    #[test]
    fn what_is_declared_comes_first_and_may_change() {
        let table = AccessTable::default();
        let copy = table.clone();
        let entry = |url: &str, exact, password: Option<&str>, project: &str| DeclaredAccess {
            url: url.into(),
            exact,
            project: project.into(),
            access: Access { password: password.map(str::to_owned), ..Access::default() },
        };
        table.declare(vec![
            entry("https://git.example.com/acme", false, Some("template"), ""),
            entry("https://git.example.com/acme/shop.git", true, Some("own"), "team"),
            entry("https://git.example.com/acme/bare", true, None, ""),
        ]);
        let password = |url: &str| copy.lookup(url).password.unwrap_or_default();
        assert_eq!(password("https://git.example.com/acme/other"), "template");
        let of_team = copy.of_project("team").lookup("https://git.example.com/Acme/shop").password;
        assert_eq!(of_team.as_deref(), Some("own"));
        assert_eq!(password("https://git.example.com/acme/shop"), "template", "of no project");
        assert_eq!(password("https://git.example.com/acme/bare.git"), "template");
        assert_eq!(password("https://git.example.com/acme-evil/x"), "");
        assert_eq!(password("git@git.example.com:acme/shop.git"), "", "another way in");
        let projects = |url: &str| copy.projects_of(url).into_iter().collect::<Vec<_>>();
        assert_eq!(projects("https://git.example.com/acme/shop.git"), ["team"]);
        assert!(projects("https://git.example.com/acme/other").is_empty());
        table.declare(Vec::new());
        assert_eq!(password("https://git.example.com/acme/other"), "");
    }

    #[test]
    fn each_project_has_its_own_access_to_one_address() {
        let url = "https://git.example.com/acme/shop.git";
        let entry = |url: &str, project: &str| DeclaredAccess {
            url: url.into(),
            exact: true,
            project: project.into(),
            access: Access { password: Some(format!("of {project}")), ..Access::default() },
        };
        let table = AccessTable::default();
        table.declare(vec![entry(url, "a"), entry("https://git.example.com/acme/shop", "b"), entry(url, "")]);
        let password = |project: &str| table.of_project(project).lookup(url).password.unwrap_or_default();
        assert_eq!(
            [password("a"), password("b"), password("c"), password("")],
            ["of a", "of b", "of ", "of "]
        );
    }

    #[test]
    fn secrets_are_not_printed() {
        let access = Access {
            password: Some("hunter2".into()),
            bearer_token: Some("t0k".into()),
            ..Access::default()
        };
        let printed = format!("{access:?}");
        assert!(!printed.contains("hunter2") && !printed.contains("t0k"), "{printed}");
    }
}
