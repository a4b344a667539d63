//! Tokens by which a GitHub App fetches (GitHub documentation, "Authenticating as a GitHub App installation";
//! Argo CD documentation, "Private Repositories", "GitHub App Credential").

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tiphys_identity::{IdentityError, Token, Tokens};

use crate::{
    Access, RepoId,
    remote::{Http, post_json},
};

/// Where GitHub itself is asked.
const BASE_URL: &str = "https://api.github.com";
/// The user that a token is the password of.
const USER: &str = "x-access-token";
/// GitHub's tokens are good for an hour.
const KEPT_FOR: Duration = Duration::from_secs(50 * 60);
/// How long GitHub may take to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// The largest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// A GitHub App, as a repository's Secret names it.
#[derive(Clone, PartialEq, Eq)]
pub struct GithubApp {
    /// `githubAppID`: its identity.
    pub id: String,
    /// `githubAppInstallationID`: where it is installed; asked for if it is not said.
    pub installation: Option<String>,
    /// `githubAppPrivateKey`: an RSA key in PEM.
    pub private_key: String,
    /// `githubAppEnterpriseBaseUrl`: the API of a GitHub Enterprise.
    pub base_url: Option<String>,
}

/// Tokens that are still good, by App and owner.
#[derive(Default)]
pub(crate) struct AppTokens(Tokens<(GithubApp, String)>);

impl AppTokens {
    /// The access with the login of its GitHub App, if it has one.
    ///
    /// # Errors
    /// The key is none, or GitHub hands out no token.
    pub(crate) fn login(&self, url: &str, access: Access) -> Result<Access, String> {
        let Some(app) = access.github_app.clone() else { return Ok(access) };
        let path = RepoId::parse(url).map(|id| id.to_string()).unwrap_or_default();
        let mut steps = path.rsplitn(3, '/');
        let (Some(repository), Some(owner)) = (steps.next(), steps.next()) else {
            return Err("a GitHub App can only reach a repository of an owner".to_owned());
        };
        let ask = || {
            let fail = |reason| IdentityError(format!("GitHub App {}: {reason}", app.id));
            let text = app.token(owner, repository, &access).map_err(fail)?;
            Ok(Token::good_for(&text, KEPT_FOR))
        };
        let text = self
            .0
            .get_or_request(&(app.clone(), owner.to_owned()), ask)
            .map_err(|error| error.to_string())?;
        Ok(Access { username: Some(USER.to_owned()), password: Some(text), github_app: None, ..access })
    }
}

impl GithubApp {
    /// A new token for the repositories of an owner.
    fn token(&self, owner: &str, repository: &str, access: &Access) -> Result<String, String> {
        let base = self.base_url.as_deref().unwrap_or(BASE_URL).trim_end_matches('/');
        let access = Access {
            username: None,
            password: None,
            bearer_token: Some(self.proof()?),
            github_app: None,
            ..access.clone()
        };
        let installation = match &self.installation {
            Some(installation) => installation.clone(),
            None => {
                let url = format!("{base}/repos/{owner}/{repository}/installation");
                let answer = Http::default().get(&url, &access, MAX_ANSWER_BYTES);
                let answer: Value = serde_json::from_slice(&answer.map_err(|e| e.to_string())?)
                    .map_err(|e| format!("the answer of {url} is no JSON: {e}"))?;
                answer["id"].as_u64().ok_or_else(|| format!("{url} names no installation"))?.to_string()
            }
        };
        let url = format!("{base}/app/installations/{installation}/access_tokens");
        let answer = post_json(&url, &access, &json!({}), LIMIT).map_err(|e| e.to_string())?;
        answer["token"].as_str().map(str::to_owned).ok_or_else(|| format!("{url} hands out no token"))
    }

    /// What proves that the key is here: a signed JSON Web Token (RFC 7519).
    fn proof(&self) -> Result<String, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // Clocks differ; GitHub takes none from the future.
        let claims = json!({"iss": self.id, "iat": now.saturating_sub(60), "exp": now + 300});
        tiphys_identity::signed_rs256(&self.private_key, &claims)
            .ok_or_else(|| "githubAppPrivateKey is no RSA key in PEM".to_owned())
    }
}
