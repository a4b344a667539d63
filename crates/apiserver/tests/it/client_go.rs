//! A client-go program on the embedded API: discovery, OpenAPI, informers, leader election.

use std::{path::Path, process::Command};

use tiphys_apiserver::{ApiServer, ApiServerOptions};

/// The program, built, or `None` where Go or the modules that it needs are missing.
fn program(folder: &Path) -> Option<std::path::PathBuf> {
    let binary = folder.join("client");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/client");
    let built = Command::new("go").args(["build", "-o"]).arg(&binary).arg(".").current_dir(source).output();
    match built {
        Ok(output) if output.status.success() => Some(binary),
        other => {
            let why =
                other.map_or_else(|e| e.to_string(), |o| String::from_utf8_lossy(&o.stderr).into_owned());
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "the client-go program cannot be built: {why}"
            );
            eprintln!("skipped: needs go: {why}");
            None
        }
    }
}

#[test]
fn a_client_go_program_works_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = ApiServer::new(ApiServerOptions::default()).unwrap();
    let serving = runtime.block_on(server.bind(([127, 0, 0, 1], 0).into())).unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    serving.write_kubeconfig(&kubeconfig).unwrap();
    runtime.spawn(serving.run());
    let output = Command::new(program).arg(&kubeconfig).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "documents\ninformer\nlead\n");
}
