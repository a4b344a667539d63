//! Bearer tokens: the administrator's, and those of service accounts (JWTs signed with a key that is
//! derived from the administrator's token, so only this server accepts them).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use tiphys_value::{ObjectExt, Value, json};

use super::User;
use crate::{ApiError, ApiResult, ApiServer, ops::At, store::ResourceId};

const ISSUER: &str = "https://kubernetes.default.svc";
/// Seconds that a token lives if the request does not say.
const DEFAULT_LIFETIME: i64 = 3600;
/// The shortest lifetime that may be asked for, in seconds.
const SHORTEST_LIFETIME: i64 = 600;

/// The user that an `Authorization` header names.
pub(crate) fn authenticate(server: &ApiServer, header: Option<&str>) -> ApiResult<User> {
    let Some(token) = header.and_then(|h| h.strip_prefix("Bearer ").or_else(|| h.strip_prefix("bearer ")))
    else {
        let groups = vec!["system:unauthenticated".into()];
        return match header {
            None => Ok(User { name: "system:anonymous".into(), groups, ..User::default() }),
            Some(_) => Err(ApiError::unauthorized()),
        };
    };
    if same_bytes(token.as_bytes(), server.token().as_bytes()) {
        return Ok(User::admin());
    }
    verify(server, token).ok_or_else(ApiError::unauthorized)
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

fn verify(server: &ApiServer, token: &str) -> Option<User> {
    let (message, signature) = token.rsplit_once('.')?;
    if !same_bytes(sign(server, message).as_bytes(), signature.as_bytes()) {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(message.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    if claims.int_at(&["exp"])? <= server.now().as_second() {
        return None;
    }
    let of = claims.at(&["kubernetes.io"])?;
    let (namespace, account) = (of.str_at(&["namespace"])?, of.at(&["serviceaccount"])?);
    let (name, uid) = (account.str_at(&["name"])?, account.str_at(&["uid"])?);
    let snapshot = server.snapshot();
    let live = snapshot.get(&ResourceId::new("", "serviceaccounts"), namespace, name)?;
    (live.uid() == uid).then(|| User::service_account(namespace, name, uid))
}

/// Answers a `TokenRequest`.
/// The object whose life a token shares.
fn check_bound(server: &ApiServer, at: &At, reference: &Value) -> ApiResult<()> {
    if !reference.is_object() {
        return Ok(());
    }
    let (kind, version) = (reference.kind(), reference.api_version());
    let (plural, namespace) = match (version, kind) {
        ("v1", "Pod") => ("pods", at.namespace.as_str()),
        ("v1", "Secret") => ("secrets", at.namespace.as_str()),
        ("v1", "Node") => ("nodes", ""),
        _ => {
            let kind = reference.gvk();
            return Err(ApiError::bad_request(format!("cannot bind token to object of type {kind}")));
        }
    };
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
    Ok(())
}

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
    check_bound(server, at, &request["spec"]["boundObjectRef"])?;
    let now = server.now();
    let expires = now.checked_add(SignedDuration::from_secs(asked)).unwrap_or(Timestamp::MAX);
    let mut audiences = request.at(&["spec", "audiences"]).cloned().unwrap_or_default();
    if audiences.as_array().is_none_or(Vec::is_empty) {
        audiences = json!([ISSUER]);
    }
    let claims = json!({
        "iss": ISSUER, "sub": format!("system:serviceaccount:{}:{}", at.namespace, at.name),
        "aud": audiences, "iat": now.as_second(), "nbf": now.as_second(), "exp": expires.as_second(),
        "jti": server.entropy().uuid(),
        "kubernetes.io": {"namespace": at.namespace, "serviceaccount": {"name": at.name, "uid": account.uid()}},
    });
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
