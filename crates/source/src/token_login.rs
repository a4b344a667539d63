//! Logins that stand for something else: tokens of GitHub Apps and of the identities of clouds.

use tiphys_identity::{Identity, IdentityError, Tokens};

use crate::{Access, github_app::AppTokens, remote::Http};

/// Who a token of Azure is the password of.
pub(crate) const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Tokens that are still good.
#[derive(Default)]
pub(crate) struct Logins {
    apps: AppTokens,
    identities: Tokens<Identity>,
}

impl Logins {
    /// The access to a Git repository with the login that its GitHub App or identity has now, if it has one.
    ///
    /// # Errors
    /// The key is none, or there is no token.
    pub(crate) fn git(&self, url: &str, access: Access) -> Result<Access, String> {
        let access = self.apps.login(url, access)?;
        let Some(identity) = &access.identity else { return Ok(access) };
        let token = Some(self.token(identity, &access)?);
        let login = match identity {
            Identity::Google(google) => {
                Access { username: Some(google.account()), password: token, ..access }
            }
            // Azure DevOps takes it as what it is.
            Identity::Azure(_) | Identity::Aws(_) => Access { bearer_token: token, ..access },
        };
        Ok(Access { identity: None, ..login })
    }

    /// The token of an identity, asked for through the proxy of an access.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn token(&self, identity: &Identity, access: &Access) -> Result<String, String> {
        let through =
            Access { proxy: access.proxy.clone(), no_proxy: access.no_proxy.clone(), ..Access::default() };
        let ask = || {
            let client = Http::default().client("", &through);
            identity.token(&client.map_err(|error| IdentityError(error.to_string()))?)
        };
        self.identities.get_or_request(identity, ask).map_err(|error| error.to_string())
    }
}
