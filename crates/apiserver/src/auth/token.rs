//! Bearer tokens: the administrator's, and those of service accounts (JWTs signed with a key that is
//! derived from the administrator's token, so only this server accepts them).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use tiphys_value::{ObjectExt, Value, json};

use super::User;
use crate::{ApiError, ApiResult, ApiServer, ops::At, store::ResourceId};

pub(super) const ISSUER: &str = "https://kubernetes.default.svc";
/// Seconds that a token lives if the request does not say.
const DEFAULT_LIFETIME: i64 = 3600;
/// The shortest lifetime that may be asked for, in seconds.
const SHORTEST_LIFETIME: i64 = 600;

/// The user that an `Authorization` header names.
pub(crate) fn authenticate(server: &ApiServer, header: Option<&str>) -> ApiResult<User> {
    authenticate_for(server, header, &[ISSUER]).map(|(user, _)| user).map_err(|_| ApiError::unauthorized())
}

/// Why a token is not accepted.
pub(super) enum TokenFault {
    /// It is none of this server's, or not any more.
    Invalid,
    /// It is meant for others.
    Audience(Vec<String>),
}

/// The user that an `Authorization` header names, if its token is for one of the audiences; and for which of
/// them it is.
pub(super) fn authenticate_for(
    server: &ApiServer,
    header: Option<&str>,
    audiences: &[&str],
) -> Result<(User, Vec<String>), TokenFault> {
    let Some(token) = header.and_then(|h| h.strip_prefix("Bearer ").or_else(|| h.strip_prefix("bearer ")))
    else {
        let groups = vec!["system:unauthenticated".into()];
        return match header {
            None => Ok((User { name: "system:anonymous".into(), groups, ..User::default() }, Vec::new())),
            Some(_) => Err(TokenFault::Invalid),
        };
    };
    if same_bytes(token.as_bytes(), server.token().as_bytes()) {
        // The administrator's token is for this server, whoever asks.
        return match audiences.contains(&ISSUER) {
            true => Ok((User::admin(), vec![ISSUER.to_owned()])),
            false => Err(TokenFault::Invalid),
        };
    }
    let (user, own) = verify(server, token).ok_or(TokenFault::Invalid)?;
    let common: Vec<String> = own.iter().filter(|own| audiences.contains(&own.as_str())).cloned().collect();
    if common.is_empty() { Err(TokenFault::Audience(own)) } else { Ok((user, common)) }
}

/// Compares in a time that does not tell where the first difference is.
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (Sha256::digest(a), Sha256::digest(b));
    a.iter().zip(b.iter()).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}

/// HMAC-SHA256 (RFC 2104) with a key made from the administrator's token.
fn sign(server: &ApiServer, message: &str) -> String {
    let key = Sha256::digest(format!("service-account-tokens\0{}", server.token()));
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key.iter()).for_each(|(b, k)| *b ^= k);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
    URL_SAFE_NO_PAD.encode(outer)
}

/// The service account of a token, and whom the token is for.
fn verify(server: &ApiServer, token: &str) -> Option<(User, Vec<String>)> {
    let (message, signature) = token.rsplit_once('.')?;
    if !same_bytes(sign(server, message).as_bytes(), signature.as_bytes()) {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(message.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    let now = server.now().as_second();
    if claims.int_at(&["exp"])? <= now || claims.int_at(&["nbf"]).is_some_and(|from| from > now) {
        return None;
    }
    let of = claims.at(&["kubernetes.io"])?;
    let (namespace, account) = (of.str_at(&["namespace"])?, of.at(&["serviceaccount"])?);
    let (name, uid) = (account.str_at(&["name"])?, account.str_at(&["uid"])?);
    let snapshot = server.snapshot();
    let live = snapshot.get(&ResourceId::new("", "serviceaccounts"), namespace, name)?;
    if live.uid() != uid || !BOUND.iter().all(|bound| bound.lives(&snapshot, namespace, of, now)) {
        return None;
    }
    let audiences = claims["aud"].as_array().into_iter().flatten();
    let audiences = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
    Some((User::service_account(namespace, name, uid), audiences))
}

/// A kind of object whose life a token may share.
struct Bound {
    kind: &'static str,
    /// The claim that names the object.
    claim: &'static str,
    plural: &'static str,
    is_namespaced: bool,
}

const BOUND: [Bound; 3] = [
    Bound { kind: "Pod", claim: "pod", plural: "pods", is_namespaced: true },
    Bound { kind: "Secret", claim: "secret", plural: "secrets", is_namespaced: true },
    Bound { kind: "Node", claim: "node", plural: "nodes", is_namespaced: false },
];

/// Seconds that a token outlives the time at which its object was to be gone.
const LEEWAY: i64 = 60;

impl Bound {
    fn home<'n>(&self, namespace: &'n str) -> &'n str {
        if self.is_namespaced { namespace } else { "" }
    }

    /// Whether the object that a token names, if it names one, is still there.
    fn lives(&self, snapshot: &crate::Snapshot, namespace: &str, claims: &Value, now: i64) -> bool {
        let Some(named) = claims.get(self.claim) else { return true };
        let of = |key| named.str_at(&[key]).unwrap_or_default();
        let found = snapshot.get(&ResourceId::new("", self.plural), self.home(namespace), of("name"));
        found.is_some_and(|found| {
            let deleted = found.str_at(&["metadata", "deletionTimestamp"]);
            let until = deleted.and_then(|text| text.parse::<Timestamp>().ok());
            found.uid() == of("uid") && until.is_none_or(|until| until.as_second() + LEEWAY > now)
        })
    }
}

/// What a token says of the object whose life it shares: claim, name and uid.
fn bound_claim(server: &ApiServer, at: &At, reference: &Value) -> ApiResult<Option<(&'static str, Value)>> {
    if !reference.is_object() {
        return Ok(None);
    }
    let (kind, version) = (reference.kind(), reference.api_version());
    let Some(bound) = BOUND.iter().find(|bound| version == "v1" && bound.kind == kind) else {
        let kind = reference.gvk();
        return Err(ApiError::bad_request(format!("cannot bind token to object of type {kind}")));
    };
    let (plural, namespace) = (bound.plural, bound.home(&at.namespace));
    let name = reference.str_at(&["name"]).unwrap_or_default();
    let named = crate::Named { group: "", resource: plural, name };
    let snapshot = server.snapshot();
    let found = snapshot.get(&crate::ResourceId::new("", plural), namespace, name);
    let Some(found) = found else { return Err(ApiError::not_found(named)) };
    let uid = reference.str_at(&["uid"]).unwrap_or_default();
    if !uid.is_empty() && uid != found.uid() {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(crate::Named { resource: kind, ..named }, &why));
    }
    Ok(Some((bound.claim, json!({"name": name, "uid": found.uid()}))))
}

/// Answers a `TokenRequest`.
pub(crate) fn issue_token(server: &ApiServer, at: &At, mut request: Value) -> ApiResult<Value> {
    let account = crate::ops::get(server, at)?;
    let asked = request.int_at(&["spec", "expirationSeconds"]).unwrap_or(DEFAULT_LIFETIME);
    if asked < SHORTEST_LIFETIME {
        let path = tiphys_schema::Path::new("spec.expirationSeconds");
        let fault = tiphys_schema::FieldError::invalid(
            &path,
            asked,
            "may not specify a duration less than 10 minutes",
        );
        let kind = tiphys_value::GroupKind::new("authentication.k8s.io", "TokenRequest");
        return Err(ApiError::invalid(&kind, "", &tiphys_schema::ErrorList(vec![fault])));
    }
    if asked > 1 << 32 {
        let path = tiphys_schema::Path::new("spec.expirationSeconds");
        let detail = "may not specify a duration larger than 2^32 seconds";
        let fault = tiphys_schema::FieldError::invalid(&path, asked, detail);
        let kind = tiphys_value::GroupKind::new("authentication.k8s.io", "TokenRequest");
        return Err(ApiError::invalid(&kind, "", &tiphys_schema::ErrorList(vec![fault])));
    }
    let bound = bound_claim(server, at, &request["spec"]["boundObjectRef"])?;
    let now = server.now();
    let expires = now.checked_add(SignedDuration::from_secs(asked)).unwrap_or(Timestamp::MAX);
    let mut audiences = request.at(&["spec", "audiences"]).cloned().unwrap_or_default();
    if audiences.as_array().is_none_or(Vec::is_empty) {
        audiences = json!([ISSUER]);
    }
    let mut claims = json!({
        "iss": ISSUER, "sub": format!("system:serviceaccount:{}:{}", at.namespace, at.name),
        "aud": audiences, "iat": now.as_second(), "nbf": now.as_second(), "exp": expires.as_second(),
        "jti": server.entropy().uuid(),
        "kubernetes.io": {"namespace": at.namespace, "serviceaccount": {"name": at.name, "uid": account.uid()}},
    });
    if let Some((claim, object)) = bound {
        claims["kubernetes.io"][claim] = object;
    }
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let message = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let token = format!("{message}.{}", sign(server, &message));
    request["metadata"] =
        json!({"name": at.name, "namespace": at.namespace, "creationTimestamp": crate::rfc3339_seconds(now)});
    request["spec"]["audiences"] = audiences;
    request["spec"]["expirationSeconds"] = asked.into();
    request["status"] = json!({"token": token, "expirationTimestamp": crate::rfc3339_seconds(expires)});
    Ok(request)
}
