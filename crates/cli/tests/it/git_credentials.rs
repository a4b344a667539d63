//! Commands of a person reach what that person's Git reaches.

#[path = "../../../source/tests/it/git_http/server.rs"]
#[allow(dead_code, reason = "the tests of fetching have it do more")]
mod server;

use server::{Host, Mode};

use crate::common::Repo;

#[test]
fn a_login_comes_from_gits_credential_helpers() {
    let repo = Repo::with(&[("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")]);
    repo.git_init();
    let host = Host::for_repository(&repo.path(""));
    // `deployer:hunter2`.
    host.set(Mode::Login("Basic ZGVwbG95ZXI6aHVudGVyMg==".to_owned()));
    let helper = |password: &str| {
        let text = format!(
            "[credential]\n\thelper = \"!f() {{ echo username=deployer; echo password={password}; }}; f\"\n"
        );
        let file = repo.run_dir().join(format!("{password}.gitconfig"));
        std::fs::write(&file, text).unwrap();
        file
    };
    let check = |config: &std::path::Path| {
        let mut command = repo.command(&["check", &host.url]);
        let output =
            command.env("GIT_CONFIG_GLOBAL", config).env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, text) = check("/dev/null".as_ref());
    assert!(code == Some(2) && text.contains("the host wants a login, and none is known for it"), "{text}");
    let (code, text) = check(&helper("wrong"));
    assert!(
        code == Some(2) && text.contains("the host refuses the login") && !text.contains("wrong"),
        "{text}"
    );
    let (code, text) = check(&helper("hunter2"));
    assert!(code == Some(0) && text.contains("1 file"), "{text}");
}
