//! OCI registries: resolving tags and versions, pulling artifacts of one layer.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use reqwest::{
    StatusCode,
    blocking::Response,
    header::{ACCEPT, HeaderMap, LINK, WWW_AUTHENTICATE},
};
use serde_json::Value;
use tiphys_gocompat::semver::Version;
use tiphys_identity::{Azure, Identity};

use crate::{
    SourceError,
    remote::{
        Access, AccessTable, MAX_ARCHIVE_BYTES,
        charts::check_digest,
        http::{Http, authorize, fetch_error, read_ok},
        index::newest_matching,
    },
    token_login::{Logins, NOBODY},
};

/// Media types of chart archives: Helm's own and the one of its first experiments.
pub(crate) const CHART_LAYERS: [&str; 2] =
    ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];

/// What an Application may name as an artifact: files, or a chart.
pub(crate) const ARTIFACT_LAYERS: [&str; 4] = [
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar",
    CHART_LAYERS[0],
    CHART_LAYERS[1],
];

const MANIFEST_TYPES: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";

/// Manifests and tag lists, in bytes.
const MAX_JSON_BYTES: u64 = 4 * 1024 * 1024;
/// Pages of tags that are read.
const MAX_TAG_PAGES: usize = 100;
/// The Azure Resource Manager, whose tokens registries of Azure take.
const RESOURCE_MANAGER: &str = "https://management.core.windows.net";
/// The user that a token of Google Cloud is the password of.
const GOOGLE_USER: &str = "oauth2accesstoken";

/// A repository in a registry, with the tag or digest that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciReference {
    /// Host, with port if it has one.
    pub registry: String,
    /// Path of the repository in the registry.
    pub repository: String,
    /// Tag, or `sha256:…`; may be empty.
    pub tag: String,
}

impl OciReference {
    /// Reads `oci://host/path`, with `:tag` or `@sha256:…` behind it or not.
    ///
    /// # Errors
    /// [`SourceError::BadUrl`]
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let fail = |reason: &str| SourceError::BadUrl { url: text.to_owned(), reason: reason.to_owned() };
        let rest = text.strip_prefix("oci://").ok_or_else(|| fail("it does not begin with oci://"))?;
        let (registry, path) =
            rest.split_once('/').ok_or_else(|| fail("it has no repository behind the host"))?;
        let path = path.trim_end_matches('/');
        let (repository, tag) = match path.split_once('@') {
            Some(parts) => parts,
            None => path.rsplit_once(':').unwrap_or((path, "")),
        };
        let is_plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let clean = |part: &str| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(is_plain)
                && bytes.last().is_some_and(is_plain)
                && bytes.iter().all(|b| is_plain(b) || b"._-".contains(b))
        };
        if registry.is_empty() || registry.contains(['@', '?', '#']) || !repository.split('/').all(clean) {
            return Err(fail("it is no reference to a repository in a registry"));
        }
        Ok(Self { registry: registry.to_owned(), repository: repository.to_owned(), tag: tag.to_owned() })
    }

    fn address(&self) -> String {
        format!("oci://{}/{}", self.registry, self.repository)
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.registry, self.repository)?;
        match self.tag.as_str() {
            "" => Ok(()),
            digest if digest.contains(':') => write!(f, "@{digest}"),
            tag => write!(f, ":{tag}"),
        }
    }
}

/// What was pulled.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// `sha256:…` of the manifest.
    pub manifest_digest: String,
    /// Media type of the layer.
    pub media_type: String,
    /// The layer.
    pub content: Vec<u8>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// A client of OCI registries.
pub struct Registry {
    access: AccessTable,
    http: Arc<Http>,
    /// Tokens by repository address.
    tokens: Mutex<BTreeMap<String, Access>>,
    logins: Logins,
}

impl Registry {
    /// A client with credentials; see [`crate::registry_credentials`].
    pub fn new(access: AccessTable) -> Self {
        Self::with_http(access, Arc::default())
    }

    pub(crate) fn with_http(access: AccessTable, http: Arc<Http>) -> Self {
        Self { access, http, tokens: Mutex::default(), logins: Logins::default() }
    }

    /// The version that a constraint means: one version (`v1.2` is one too) is the tag as it is written, as
    /// for Helm, else the newest of the tags that are SemVer and satisfy it (empty: the newest release). In
    /// tags `_` stands for `+`.
    ///
    /// # Errors
    /// Unreachable, denied, or no such version.
    pub fn resolve_version(&self, reference: &OciReference, version: &str) -> Result<String, SourceError> {
        if Version::parse(version).is_ok() || version.starts_with("sha256:") {
            return Ok(version.to_owned());
        }
        let tags = self.tags(reference)?;
        let mut versions: Vec<(Version, String)> = tags
            .iter()
            .map(|tag| tag.replace('_', "+"))
            .filter_map(|tag| Version::parse_strict(&tag).ok().map(|version| (version, tag)))
            .collect();
        versions.sort_by(|a, b| b.0.cmp(&a.0));
        if let Some((_, exact)) = versions.iter().find(|(_, tag)| tag == version) {
            return Ok(exact.clone());
        }
        match newest_matching(versions.iter().map(|(_, tag)| tag.as_str()), version) {
            Some(at) => Ok(versions[at].1.clone()),
            None => {
                let some: Vec<&str> = versions.iter().take(5).map(|(_, tag)| tag.as_str()).collect();
                let hint = match some.as_slice() {
                    [] => "; it has no tags that are versions".to_owned(),
                    some => format!("; its newest versions are {}", some.join(", ")),
                };
                Err(SourceError::UnknownChart {
                    repository: reference.address(),
                    name: String::new(),
                    version: version.to_owned(),
                    hint,
                })
            }
        }
    }

    /// All tags of a repository.
    ///
    /// # Errors
    /// Unreachable or denied.
    pub fn tags(&self, reference: &OciReference) -> Result<Vec<String>, SourceError> {
        let mut tags = Vec::new();
        let mut path = "tags/list".to_owned();
        for _ in 0..MAX_TAG_PAGES {
            let (headers, body) = self.get(reference, &path, "application/json", MAX_JSON_BYTES)?;
            let value = json(reference, &body)?;
            let page = value.get("tags").and_then(Value::as_array).into_iter().flatten();
            tags.extend(page.filter_map(|tag| tag.as_str().map(str::to_owned)));
            match next_page(&headers) {
                Some(query) => path = format!("tags/list?{query}"),
                None => break,
            }
        }
        Ok(tags)
    }

    /// The digest (`sha256:…`) that a tag has now.
    ///
    /// # Errors
    /// Unreachable, denied, or no such tag.
    pub fn digest(&self, reference: &OciReference) -> Result<String, SourceError> {
        self.manifest(reference).map(|(digest, _)| digest)
    }

    /// Pulls the one layer of an artifact that has one of the media types. `have` returns layers that
    /// are here already, by SHA-256.
    ///
    /// # Errors
    /// Unreachable, denied, no such artifact, not exactly one such layer, or a wrong digest.
    pub fn pull(
        &self,
        reference: &OciReference,
        media_types: &[&str],
        have: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Artifact, SourceError> {
        let (manifest_digest, manifest) = self.manifest(reference)?;
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let layers: Vec<&Value> = manifest
            .get("layers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|layer| media_types.contains(&text(layer, "mediaType").as_str()))
            .collect();
        let [layer] = layers.as_slice() else {
            let found = layers.len();
            let reason = format!("it has {found} layers of type {} instead of one", media_types.join(" or "));
            return Err(SourceError::Archive { what: reference.to_string(), reason });
        };
        let digest = text(layer, "digest");
        let Some(hex) = digest.strip_prefix("sha256:") else {
            let reason = format!("its layer has digest {digest:?}, and only sha256 is known");
            return Err(SourceError::Archive { what: reference.to_string(), reason });
        };
        let content = match have(hex) {
            Some(content) => content,
            None => {
                let blob = format!("blobs/{digest}");
                let (_, content) =
                    self.get(reference, &blob, "application/octet-stream", MAX_ARCHIVE_BYTES)?;
                check_digest(&reference.to_string(), hex, &content)?;
                content
            }
        };
        let annotations = manifest
            .get("annotations")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        Ok(Artifact { manifest_digest, media_type: text(layer, "mediaType"), content, annotations })
    }

    fn manifest(&self, reference: &OciReference) -> Result<(String, Value), SourceError> {
        let tag = if reference.tag.is_empty() { "latest" } else { &reference.tag };
        let (_, body) = self.get(reference, &format!("manifests/{tag}"), MANIFEST_TYPES, MAX_JSON_BYTES)?;
        if let Some(wanted) = tag.strip_prefix("sha256:") {
            check_digest(&reference.to_string(), wanted, &body)?;
        }
        let digest = format!("sha256:{}", crate::remote::content_store::sha256(&body));
        Ok((digest, json(reference, &body)?))
    }

    /// GET below `/v2/<repository>/`; answers a challenge once.
    fn get(
        &self,
        reference: &OciReference,
        path: &str,
        accept: &str,
        limit: u64,
    ) -> Result<(HeaderMap, Vec<u8>), SourceError> {
        let address = reference.address();
        let own = self.access.lookup(&address);
        let scheme = if own.plain_http { "http" } else { "https" };
        let host =
            if reference.registry == "docker.io" { "registry-1.docker.io" } else { &reference.registry };
        let url = format!("{scheme}://{host}/v2/{}/{path}", reference.repository);
        self.http.pauses.ask(&url, || self.get_now(reference, (&url, &own), accept, limit))
    }

    /// As [`Registry::get`], of an address with the access that was declared for it.
    fn get_now(
        &self,
        reference: &OciReference,
        (url, own): (&str, &Access),
        accept: &str,
        limit: u64,
    ) -> Result<(HeaderMap, Vec<u8>), SourceError> {
        let address = reference.address();
        let send = |access: &Access| -> Result<Response, SourceError> {
            let request = self.http.client(url, own)?.get(url).header(ACCEPT, accept);
            authorize(request, access).send().map_err(|e| fetch_error(url, &e))
        };
        let known = self.tokens.lock().get(&address).cloned();
        let mut response = send(&known.unwrap_or_default())?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            let access = self.answer(challenge.unwrap_or_default(), reference, own)?;
            response = send(&access)?;
            self.tokens.lock().insert(address, access);
        }
        if response.status() == StatusCode::NOT_FOUND {
            let hint = "; the registry does not know it".to_owned();
            return Err(SourceError::UnknownChart {
                repository: reference.address(),
                name: String::new(),
                version: reference.tag.clone(),
                hint,
            });
        }
        let headers = response.headers().clone();
        Ok((headers, read_ok(url, response, limit)?))
    }

    /// What to send to a registry that asked who we are.
    fn answer(&self, challenge: &str, reference: &OciReference, own: &Access) -> Result<Access, SourceError> {
        let parameters = challenge_parameters(challenge);
        let is_bearer = challenge.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
        let realm = parameters.get("realm").filter(|_| is_bearer);
        let Some(realm) = realm else { return Ok(own.clone()) };
        let scope = format!("repository:{}:pull", reference.repository);
        let service = parameters.get("service").map(String::as_str);
        let own = &self.with_login(realm, service, reference, own)?;
        let client = self.http.client(realm, own)?;
        let mut query = vec![("scope", scope.as_str())];
        query.extend(service.map(|service| ("service", service)));
        let mut url = reqwest::Url::parse(realm)
            .map_err(|e| SourceError::BadUrl { url: realm.clone(), reason: e.to_string() })?;
        url.query_pairs_mut().extend_pairs(query);
        let response = authorize(client.get(url), own).send().map_err(|e| fetch_error(realm, &e))?;
        let value = json(reference, &read_ok(realm, response, MAX_JSON_BYTES)?)?;
        let token = value.get("token").or_else(|| value.get("access_token")).and_then(Value::as_str);
        let token = token.ok_or_else(|| SourceError::Fetch {
            url: realm.clone(),
            reason: "the answer has no token".to_owned(),
        })?;
        Ok(Access { bearer_token: Some(token.to_owned()), ..Access::default() })
    }

    /// The access with the login that an identity has at a registry.
    fn with_login(
        &self,
        realm: &str,
        service: Option<&str>,
        reference: &OciReference,
        own: &Access,
    ) -> Result<Access, SourceError> {
        let fail = |reason: String| SourceError::Fetch { url: reference.address(), reason };
        let (user, password) = match &own.identity {
            None => return Ok(own.clone()),
            Some(Identity::Azure(azure)) => {
                let resource = std::env::var("AZURE_ARM_TOKEN_RESOURCE");
                let resource = resource.unwrap_or_else(|_| RESOURCE_MANAGER.to_owned());
                let manager = Identity::Azure(Azure { resource, ..azure.clone() });
                let token = self.logins.token(&manager, own).map_err(fail)?;
                (NOBODY, self.exchanged(realm, service, &token, reference, own)?)
            }
            Some(identity) => (GOOGLE_USER, self.logins.token(identity, own).map_err(fail)?),
        };
        Ok(Access {
            username: Some(user.to_owned()),
            password: Some(password),
            identity: None,
            ..own.clone()
        })
    }

    /// The password that a registry of Azure hands out for a token (Azure Container Registry documentation,
    /// "AAD OAuth").
    fn exchanged(
        &self,
        realm: &str,
        service: Option<&str>,
        token: &str,
        reference: &OciReference,
        own: &Access,
    ) -> Result<String, SourceError> {
        let fail = |reason: &str| SourceError::Fetch { url: realm.to_owned(), reason: reason.to_owned() };
        let mut url = reqwest::Url::parse(realm).map_err(|_| fail("is no address"))?;
        // Whoever gets the token may do what it may: it stays with the host that was declared.
        let host = format!(
            "{}:{}",
            url.host_str().unwrap_or_default(),
            url.port_or_known_default().unwrap_or_default()
        );
        let declared = &reference.registry;
        if host != *declared && host.strip_suffix(":443") != Some(declared) {
            return Err(fail("the registry names another host for its tokens, which is sent none of Azure"));
        }
        url.set_path("/oauth2/exchange");
        url.set_query(None);
        let mut form = vec![("grant_type", "access_token"), ("access_token", token)];
        form.extend(service.map(|service| ("service", service)));
        let request = tiphys_identity::form(&self.http.client(realm, own)?, url.as_str(), &form);
        let response = request.send().map_err(|e| fetch_error(realm, &e))?;
        let answer = json(reference, &read_ok(realm, response, MAX_JSON_BYTES)?)?;
        let password = answer.get("refresh_token").and_then(Value::as_str);
        password.map(str::to_owned).ok_or_else(|| fail("the answer has no refresh token"))
    }
}

fn json(reference: &OciReference, body: &[u8]) -> Result<Value, SourceError> {
    serde_json::from_slice(body).map_err(|e| SourceError::Fetch {
        url: reference.to_string(),
        reason: format!("the answer is no JSON: {e}"),
    })
}

/// `key="value"` pairs behind the scheme.
fn challenge_parameters(challenge: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    let mut rest = challenge.split_once(' ').map_or("", |(_, rest)| rest);
    while let Some((key, after)) = rest.split_once('=') {
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        parameters.insert(key.trim_matches([' ', ',']).to_lowercase(), value.to_owned());
        rest = behind;
    }
    parameters
}

/// The query of the next page in a `Link` header.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let target = link.split_once('<')?.1.split_once('>')?.0;
    let is_next = link.contains("rel=\"next\"") || link.contains("rel=next");
    target.split_once('?').map(|(_, query)| query.to_owned()).filter(|_| is_next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_printed() {
        let reference = |text: &str| OciReference::parse(text).expect(text);
        assert_eq!(reference("oci://r.example.com:5000/a/b").registry, "r.example.com:5000");
        assert_eq!(reference("oci://r.example.com/a/b:1.0_x").tag, "1.0_x");
        let digest = format!("oci://r.example.com/a@sha256:{}", "0".repeat(64));
        assert_eq!(reference(&digest).to_string(), digest);
        for wrong in
            ["https://r/a", "oci://r", "oci://r/", "oci:///a", "oci://r/a/../b", "oci://u@r/a", "oci://r/A b"]
        {
            assert!(OciReference::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn challenges_are_read() {
        let parameters =
            challenge_parameters(r#"Bearer realm="https://a.example.com/token",service="r, s",scope=x"#);
        assert_eq!(parameters["realm"], "https://a.example.com/token");
        assert_eq!(parameters["service"], "r, s");
        assert_eq!(parameters["scope"], "x");
        assert!(challenge_parameters("Basic").is_empty());
    }
}
