//! Identities that a process is given by its environment: each is asked for by a process of its own.

#[path = "it/server.rs"]
mod server;

use std::process::Command;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use server::Server;
use tiphys_identity::{Aws, Google, Identity, client};

/// Names, to a process of our own, the cloud whose token it is to print.
const ASK: &str = "TIPHYS_TEST_ASK";

fn main() {
    match std::env::var(ASK).ok().as_deref() {
        Some("google") => print(&Identity::Google(Google::Default(None))),
        Some("aws") => {
            let role = Some("arn:aws:iam::1:role/deployer".to_owned());
            print(&Identity::Aws(Aws { cluster: "shop".into(), role, ..Aws::default() }));
        }
        _ => {
            a_machine_of_google_gives_its_own_token();
            a_role_of_aws_is_assumed_by_a_workload();
        }
    }
}

fn print(identity: &Identity) {
    #![allow(clippy::print_stdout, reason = "the parent reads it")]
    match identity.token(&client().expect("TLS can be set up")) {
        Ok(token) => println!("{}", token.text),
        Err(error) => println!("refused: {error}"),
    }
}

/// What a process without anything of the surroundings prints.
fn ask(cloud: &str, variables: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = Command::new(std::env::current_exe().expect("has a path"));
    command.env_clear().env(ASK, cloud).env("HOME", folder.path()).envs(variables.iter().copied());
    let output = command.output().expect("can be run");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn a_machine_of_google_gives_its_own_token() {
    let server = Server::start(|head, _| {
        let is_asked_well = head.to_lowercase().contains("metadata-flavor: google");
        let answer = r#"{"access_token": "of-machine", "expires_in": 3599}"#;
        if is_asked_well { (200, answer.to_owned()) } else { (403, String::new()) }
    });
    let host = server.url.strip_prefix("http://").expect("begins so");
    assert_eq!(ask("google", &[("GCE_METADATA_HOST", host)]), "of-machine");
    let (head, _) = &server.requests()[0];
    let line = "GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=";
    assert!(head.starts_with(line), "{head}");
}

fn a_role_of_aws_is_assumed_by_a_workload() {
    let credentials = |action: &str, key: &str| {
        format!(
            "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
             <AccessKeyId>{key}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>\
             <SessionToken>session</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>\
             <AssumedRoleUser><AssumedRoleId>a</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/s</Arn>\
             </AssumedRoleUser></{action}Result></{action}Response>"
        )
    };
    let server = Server::start(move |head, body| {
        if body.contains("Action=AssumeRoleWithWebIdentity") && body.contains("WebIdentityToken=signed") {
            return (200, credentials("AssumeRoleWithWebIdentity", "AKIAWORKLOAD"));
        }
        let is_workload = head.contains("Credential=AKIAWORKLOAD/");
        if is_workload && body.contains("Action=AssumeRole&") && body.contains("role%2Fdeployer") {
            return (200, credentials("AssumeRole", "AKIADEPLOYER"));
        }
        (403, String::new())
    });
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("token");
    std::fs::write(&file, "signed").expect("can be written");
    let variables = [
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/workload"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file.to_str().expect("is text")),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL_STS", &server.url),
    ];
    let token = ask("aws", &variables);
    let encoded = token.strip_prefix("k8s-aws-v1.").unwrap_or_else(|| panic!("{token}"));
    let url = URL_SAFE_NO_PAD.decode(encoded).expect("is base64");
    let url = String::from_utf8_lossy(&url);
    assert!(url.starts_with("https://sts.eu-central-1.amazonaws.com/?Action=GetCallerIdentity&"), "{url}");
    for part in ["X-Amz-Credential=AKIADEPLOYER%2F", "X-Amz-Security-Token=session"] {
        assert!(url.contains(part), "{url}");
    }
    let none = ask("aws", &[("AWS_EC2_METADATA_DISABLED", "true")]);
    assert!(none.starts_with("refused: AWS: "), "{none}");
}
