//! Services of clouds hand out tokens, as their documentation says that they are asked.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use aws_lc_rs::{
    encoding::{AsDer as _, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use tiphys_identity::{Azure, AzureLogin, Google, Identity, Token, Tokens, client};

use crate::server::Server;

fn form(body: &str) -> BTreeMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://form/?{body}")).expect("is a form");
    url.query_pairs().into_owned().collect()
}

fn token(identity: &Identity) -> Result<Token, String> {
    identity.token(&client().expect("TLS can be set up")).map_err(|error| error.to_string())
}

fn good(text: &str) -> (u16, String) {
    (200, json!({"access_token": text, "expires_in": 3600, "token_type": "Bearer"}).to_string())
}

fn is_good_for(token: &Token, seconds: u64) -> bool {
    token.expires > SystemTime::now() + Duration::from_secs(seconds)
}

fn pem(key: &KeyPair) -> String {
    let der: Pkcs8V1Der<'_> = key.as_der().expect("has a form");
    let body = STANDARD.encode(der.as_ref());
    format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
}

fn azure(login: AzureLogin, url: &str) -> Identity {
    Identity::Azure(Azure {
        login,
        tenant: "acme".into(),
        client: "tiphys".into(),
        authority: Some(format!("{url}/")),
        resource: "aks".into(),
    })
}

#[test]
fn an_application_of_azure_proves_itself_by_secret_or_workload() {
    let server = Server::start(|_, _| good("of-azure"));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("token");
    std::fs::write(&file, "signed\n").expect("can be written");
    let secret = token(&azure(AzureLogin::Secret("s3cret".into()), &server.url)).expect("is given");
    assert_eq!(secret.text, "of-azure");
    assert!(is_good_for(&secret, 3000));
    token(&azure(AzureLogin::TokenFile(file), &server.url)).expect("is given");
    let asked = server.requests();
    assert!(asked.iter().all(|(head, _)| head.starts_with("POST /acme/oauth2/v2.0/token ")), "{asked:?}");
    let (first, second) = (form(&asked[0].1), form(&asked[1].1));
    assert_eq!((first["scope"].as_str(), first["client_secret"].as_str()), ("aks/.default", "s3cret"));
    assert_eq!((second["client_id"].as_str(), second["client_assertion"].as_str()), ("tiphys", "signed"));
    let missing = folder.path().join("none");
    let error = token(&azure(AzureLogin::TokenFile(missing), &server.url)).expect_err("there is no file");
    assert!(error.contains("the token of the workload"), "{error}");
}

#[test]
fn a_machine_of_azure_asks_for_its_own_identity() {
    let server = Server::start(|head, _| {
        let is_asked_well = head.to_lowercase().contains("metadata: true");
        // The machine's service writes its numbers as texts.
        let answer = json!({"access_token": "of-machine", "expires_in": "86399"});
        if is_asked_well { (200, answer.to_string()) } else { (400, String::new()) }
    });
    let given = token(&azure(AzureLogin::Managed, &server.url)).expect("is given");
    assert!(is_good_for(&given, 80_000));
    let (head, _) = &server.requests()[0];
    let line = "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=aks&client_id=tiphys ";
    assert!(head.starts_with(line), "{head}");
}

#[test]
fn a_service_account_of_google_signs_what_it_sends() {
    let key = KeyPair::generate(KeySize::Rsa2048).expect("can be made");
    let public = key.public_key().as_ref().to_vec();
    let server = Server::start(move |_, body| {
        let form = form(body);
        let (signed, signature) = form["assertion"].rsplit_once('.').expect("has a signature");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("is base64");
        let claims =
            URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).expect("has claims")).expect("is base64");
        let claims: Value = serde_json::from_slice(&claims).expect("is JSON");
        let is_ours = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public)
            .verify(signed.as_bytes(), &signature)
            .is_ok();
        let scope = claims["scope"].as_str().unwrap_or_default();
        let is_whole = claims["iss"] == "tiphys@acme" && scope.contains("cloud-platform");
        let is_grant = form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer";
        match is_ours && is_whole && is_grant {
            true => good("of-google"),
            false => (400, json!({"error": "no"}).to_string()),
        }
    });
    let file = |private_key: String| {
        let uri = format!("{}/token", server.url);
        let account = json!({"type": "service_account", "client_email": "tiphys@acme", "private_key": private_key, "token_uri": uri});
        account.to_string()
    };
    let google = Google::Key(file(pem(&key)));
    assert_eq!(google.account(), "tiphys@acme");
    assert_eq!(token(&Identity::Google(google)).expect("is given").text, "of-google");
    let refused = |key: String| token(&Identity::Google(Google::Key(key))).expect_err("is refused");
    let other = KeyPair::generate(KeySize::Rsa2048).expect("can be made");
    let error = refused(file(pem(&other)));
    assert!(error.ends_with("the service answers 400 Bad Request: no"), "{error}");
    assert_eq!(refused(file("s3cret".into())), "Google Cloud: private_key is no RSA key in PEM");
    assert_eq!(
        refused("{\"type\": s3cret}".into()),
        "Google Cloud: the key is not valid at line 1, column 10"
    );
}

#[test]
fn a_workload_of_another_cloud_is_federated_with_google() {
    let server = Server::start(|head, body| {
        if head.starts_with("POST /sts ") {
            let form = form(body);
            let is_whole = form["subject_token"] == "signed" && form["audience"] == "//pool";
            return if is_whole { good("federated") } else { (400, String::new()) };
        }
        let is_known = head.to_lowercase().contains("authorization: bearer federated");
        let answer = json!({"accessToken": "of-account", "expireTime": "2999-01-01T00:00:00Z"});
        if is_known { (200, answer.to_string()) } else { (401, String::new()) }
    });
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("token");
    std::fs::write(&file, r#"{"id": "signed"}"#).expect("can be written");
    let credentials = folder.path().join("credentials.json");
    let text = json!({
        "type": "external_account", "audience": "//pool", "token_url": format!("{}/sts", server.url),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "service_account_impersonation_url": format!("{}/account:generateAccessToken", server.url),
        "credential_source": {"file": file, "format": {"type": "json", "subject_token_field_name": "id"}},
    });
    std::fs::write(&credentials, text.to_string()).expect("can be written");
    let given = token(&Identity::Google(Google::Default(Some(credentials)))).expect("is given");
    assert_eq!(given.text, "of-account");
    assert!(is_good_for(&given, 1_000_000_000));
}

#[test]
fn a_token_is_asked_for_once_while_it_is_good_and_refusals_rest() {
    let server = Server::start(|_, body| match form(body)["client_secret"].as_str() {
        "long" => good("long"),
        "short" => (200, json!({"access_token": "short", "expires_in": 30}).to_string()),
        _ => (401, json!({"error": "invalid", "error_description": "who?\r\nTrace ID: 1"}).to_string()),
    });
    let tokens = Tokens::default();
    let of = |secret: &str| {
        let identity = azure(AzureLogin::Secret(secret.into()), &server.url);
        tokens.get_or_request(&identity, || identity.token(&client()?)).map_err(|error| error.to_string())
    };
    let count = |secret: &str| {
        for _ in 0..3 {
            let _ = of(secret);
        }
        server.requests().iter().filter(|(_, body)| form(body)["client_secret"] == secret).count()
    };
    assert_eq!((count("long"), count("short"), count("wrong")), (1, 3, 1));
    let error = of("wrong").expect_err("is refused");
    assert!(
        error.ends_with("/acme/oauth2/v2.0/token: the service answers 401 Unauthorized: who?"),
        "{error}"
    );
}
