//! What a project demands of its sources' integrity: signatures of Git commits and tags (Argo CD docs,
//! "Source Integrity Verification", and "Git GnuPG signature verification" for the older `signatureKeys`).

use serde::Deserialize;
use serde_json::Value;

use crate::{AppProjectSpec, glob, repository};

/// The signatures that one repository's commits need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignaturePolicy {
    /// Which commits.
    pub extent: SignatureExtent,
    /// Ids of the keys that may sign, 16 upper-case hexadecimal digits each. What is written as none is left
    /// out.
    pub keys: Vec<String>,
}

/// How much of a history has to be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureExtent {
    /// The annotated tag that a revision names, or else its commit (`head`).
    Head,
    /// Every commit back to the first one, or to commits that seal what is before them (`strict`).
    History,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SourceIntegrity {
    git: Option<GitIntegrity>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitIntegrity {
    policies: Vec<Policy>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Policy {
    repos: Vec<Repository>,
    gpg: Option<Gpg>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Repository {
    url: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Gpg {
    mode: String,
    keys: Vec<String>,
}

impl Policy {
    /// A denial goes before everything else. What is demanded of a repository is demanded of it by its other
    /// spellings too; what is waived only of this one.
    fn concerns(&self, repo_url: &str) -> bool {
        let wanted = repository::normalize(repo_url);
        let denies = |repository: &Repository| {
            repository.url.strip_prefix('!').is_some_and(|url| glob::matches(url, repo_url))
        };
        let permits = |repository: &Repository| {
            let url = &repository.url;
            glob::matches(url, repo_url)
                || glob::matches_with(&repository::normalize(url), &wanted, Some('/'))
        };
        !self.repos.iter().any(denies) && self.repos.iter().any(permits)
    }

    fn demand(&self) -> Result<Option<SignaturePolicy>, String> {
        let Some(gpg) = &self.gpg else {
            return Err("a git source integrity policy says no way of verification (gpg)".to_owned());
        };
        let extent = match gpg.mode.as_str() {
            "none" => return Ok(None),
            "head" => SignatureExtent::Head,
            "strict" => SignatureExtent::History,
            other => {
                return Err(format!("unknown GPG mode {other:?} configured for GIT source integrity"));
            }
        };
        Ok(Some(SignaturePolicy { extent, keys: gpg.keys.iter().filter_map(|key| key_id(key)).collect() }))
    }
}

/// The id of a key: as it is, or the end of a fingerprint.
fn key_id(text: &str) -> Option<String> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = match (text.len(), is_hex) {
        (16, true) => text,
        (40, true) => text.get(24..)?,
        _ => return None,
    };
    Some(id.to_ascii_uppercase())
}

impl AppProjectSpec {
    /// The signatures that a Git repository's commits need; `None` if they need none. `signatureKeys` counts
    /// where `sourceIntegrity` says nothing of Git, and then for every repository.
    ///
    /// # Errors
    /// It cannot be told what is demanded, so that nothing satisfies it.
    pub fn signatures_of(&self, repo_url: &str) -> Result<Option<SignaturePolicy>, String> {
        let integrity = self.source_integrity.clone().unwrap_or_default();
        let integrity: Option<SourceIntegrity> =
            serde_json::from_value(integrity).map_err(|error| format!("spec.sourceIntegrity: {error}"))?;
        let Some(git) = integrity.and_then(|integrity| integrity.git) else {
            return Ok(self.signatures_by_keys());
        };
        let mut concerned = git.policies.iter().filter(|policy| policy.concerns(repo_url));
        match (concerned.next(), concerned.count()) {
            (None, _) => Ok(None),
            (Some(policy), 0) => policy.demand(),
            (Some(_), more) => Err(format!(
                "multiple ({}) git source integrity policies found for repo URL: {repo_url}",
                more + 1
            )),
        }
    }

    fn signatures_by_keys(&self) -> Option<SignaturePolicy> {
        let ids = self.signature_keys.iter().filter_map(|key| key_id(key.get("keyID")?.as_str()?));
        let policy = SignaturePolicy { extent: SignatureExtent::Head, keys: ids.collect() };
        (!self.signature_keys.is_empty()).then_some(policy)
    }

    /// Everything that says which signatures are demanded, for who has to know whether it has changed.
    pub fn integrity(&self) -> Value {
        serde_json::json!([self.source_integrity, self.signature_keys])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEY: &str = "4AEE18F83AFDEB23";

    fn spec(value: Value) -> AppProjectSpec {
        serde_json::from_value(value).expect("a spec")
    }

    fn policies(policies: Value) -> AppProjectSpec {
        spec(json!({"sourceIntegrity": {"git": {"policies": policies}}}))
    }

    #[test]
    fn keys_of_a_project_are_demanded_of_every_repository() {
        let keys =
            json!([{"keyID": KEY}, {"keyID": "none"}, {"keyID": "0123456789abcdef0123456789abcdef01234567"}]);
        let demanded = spec(json!({"signatureKeys": keys})).signatures_of("https://git.example.com/a");
        let keys = vec![KEY.to_owned(), "89ABCDEF01234567".to_owned()];
        assert_eq!(demanded, Ok(Some(SignaturePolicy { extent: SignatureExtent::Head, keys })));
        assert_eq!(spec(json!({})).signatures_of("https://git.example.com/a"), Ok(None));
    }

    #[test]
    fn policies_go_before_the_keys_of_a_project() {
        let both =
            spec(json!({"signatureKeys": [{"keyID": KEY}], "sourceIntegrity": {"git": {"policies": []}}}));
        assert_eq!(both.signatures_of("https://git.example.com/a"), Ok(None));
    }

    #[test]
    fn a_policy_concerns_what_it_names_and_does_not_deny() {
        let spec = policies(json!([
            {"repos": [{"url": "https://git.example.com/acme/*"}, {"url": "!https://git.example.com/acme/free.git"}],
             "gpg": {"mode": "strict", "keys": [KEY]}},
            {"repos": [{"url": "https://git.example.com/open/*"}], "gpg": {"mode": "none"}}]));
        let extent = |url: &str| spec.signatures_of(url).map(|policy| policy.map(|policy| policy.extent));
        assert_eq!(extent("https://git.example.com/acme/shop.git"), Ok(Some(SignatureExtent::History)));
        assert_eq!(extent("https://git.example.com/acme/free.git"), Ok(None));
        assert_eq!(extent("https://git.example.com/open/a"), Ok(None));
        assert_eq!(extent("https://git.example.com/other"), Ok(None));
    }

    #[test]
    fn what_cannot_be_told_is_satisfied_by_nothing() {
        let url = json!([{"url": "*"}]);
        let fault =
            |value: Value| policies(value).signatures_of("https://git.example.com/a").expect_err("fails");
        assert!(
            fault(json!([{"repos": url, "gpg": {"mode": "deep"}}])).contains("unknown GPG mode \"deep\"")
        );
        assert!(fault(json!([{"repos": url}])).contains("no way of verification"));
        assert!(fault(json!("all")).contains("spec.sourceIntegrity"));
        let twice =
            fault(json!([{"repos": url, "gpg": {"mode": "head"}}, {"repos": url, "gpg": {"mode": "none"}}]));
        assert!(twice.starts_with("multiple (2) git source integrity policies"), "{twice}");
    }
}
