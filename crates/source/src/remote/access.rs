//! Credentials and TLS options for addresses.

use std::fmt;

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
            .finish()
    }
}

/// Which access belongs to which addresses: that of the longest prefix.
#[derive(Clone, Debug, Default)]
pub struct AccessTable {
    entries: Vec<(String, Access)>,
}

impl AccessTable {
    /// Adds access for every address at or below `prefix`.
    pub fn insert(&mut self, prefix: &str, access: Access) {
        self.entries.push((prefix.trim_end_matches('/').to_owned(), access));
    }

    /// The access for an address; the default (anonymous) if there is none.
    pub fn lookup(&self, url: &str) -> Access {
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
