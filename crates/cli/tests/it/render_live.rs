//! `tiphys render helm --dry-run=server` on the cluster of a `tiphys twin`.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

const DUMP: &str = "apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {level: high}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}, data: {level: low}}
";

const TEMPLATE: &str = r#"kind: Seen
level: {{ (lookup "v1" "ConfigMap" .Release.Namespace "a").data.level }}
missing: {{ lookup "v1" "ConfigMap" .Release.Namespace "c" | toJson }}
names:{{ range (lookup "v1" "ConfigMap" "shop" "").items }} {{ .metadata.name }}{{ end }}
other: {{ lookup "v1" "Thing" "" "x" | toJson }}
list: {{ (lookup "v1" "ConfigMap" "shop" "").kind }}
namespace: {{ (lookup "v1" "Namespace" "" "shop").metadata.name }}
version: {{ .Capabilities.KubeVersion.Version }}
serves: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }} {{ .Capabilities.APIVersions.Has "x.io/v1" }}
"#;

struct Twin(Child);

impl Twin {
    /// Starts one in a folder and waits for the line that says it is ready.
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
        command.args([
            "twin",
            "--kubeconfig",
            "config",
            "--from",
            "dump.yaml",
            "--kubernetes-version",
            "1.34",
        ]);
        let mut child = command
            .current_dir(folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        Self(child)
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn write_chart(folder: &Path, template: &str) {
    fs::create_dir_all(folder.join("web/templates")).unwrap();
    fs::write(folder.join("web/Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.0.0\n").unwrap();
    fs::write(folder.join("web/templates/a.yaml"), template).unwrap();
}

/// Exit code, stdout and stderr of a rendering for the namespace `shop`.
fn render(folder: &Path, flags: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.args(["render", "helm", "web", "--namespace", "shop", "--kubeconfig", "config"]);
    let output =
        command.args(flags).current_dir(folder).env("XDG_STATE_HOME", folder.join("state")).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn templates_see_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dump.yaml"), DUMP).unwrap();
    write_chart(folder.path(), TEMPLATE);
    let twin = Twin::start(folder.path());
    let expected = "---\n# Source: web/templates/a.yaml\nkind: Seen\nlevel: high\nmissing: {}\nnames: a b\nother: {}\nlist: ConfigMapList\nnamespace: shop\nversion: v1.34.";
    let (code, stdout, stderr) = render(folder.path(), &["--dry-run=server"]);
    assert!(code == 0 && stdout.starts_with(expected), "{stdout}{stderr}");
    assert!(stdout.contains("serves: true false"), "{stdout}");

    write_chart(folder.path(), "a: {{ lookup \"x.io/v1\" \"Thing\" \"\" \"\" | toJson }}");
    let (code, _, stderr) = render(folder.path(), &["--dry-run=server"]);
    assert!(code == 1 && stderr.contains("x.io/v1, Kind=Thing: the server could not find"), "{stderr}");
    let (code, stdout, _) = render(folder.path(), &["--dry-run=client"]);
    assert!(code == 0 && stdout.ends_with("a: {}\n"), "{stdout}");

    drop(twin);
    let (code, stdout, stderr) = render(folder.path(), &["--dry-run=server"]);
    assert!(code == 1 && stdout.is_empty() && stderr.contains("cannot reach the cluster"), "{stderr}");
}
