//! `tiphys migrate plan` on files that somebody exported. `controller.rs` has it on a cluster.

use serde_json::Value;

use crate::common::Repo;

const SETTINGS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm}
data:
  url: https://argocd.example.com
  configManagementPlugins: "- {name: tanka, generate: {command: [tk]}}"
  timeout.reconciliation: soon
  resource.customizations.health.argoproj.io_Application: return {status = "Healthy"}
  kustomize.buildOptions: --enable-helm --enable-exec
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cmd-params-cm}
data: {controller.status.processors: "50"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-rbac-cm}
data: {policy.csv: "g, team, role:admin"}
---
apiVersion: v1
kind: Secret
metadata: {name: prod, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData:
  name: prod
  server: https://prod.example.com
  config: '{"execProviderConfig": {"command": "argocd-k8s-auth"}, "bearerToken": "hush"}'
---
apiVersion: v1
kind: Secret
metadata: {name: assets, labels: {argocd.argoproj.io/secret-type: repository}}
stringData: {url: "https://git.example.com/acme/assets", enableLfs: "true", password: hush}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: team}
spec:
  sourceRepos: ["*", "!https://git.example.com/secret"]
  syncWindows: [{kind: deny, schedule: "0 22 * * *", duration: 1h, timeZone: Europe/Berlin}]
"#;

/// An Application as it is exported: without a namespace.
fn application(name: &str, project: &str, more: &str) -> String {
    format!(
        "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec:\n  project: {project}\n  \
         destination: {{server: https://kubernetes.default.svc, namespace: {name}}}\n{more}"
    )
}

const PLAIN: &str = "  source: {repoURL: https://git.example.com/acme/shop, path: shop}\n";

fn set(name: &str, generators: &str) -> String {
    format!(
        "---\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: {name}}}\nspec:\n  \
         generators: {generators}\n  template: {{metadata: {{name: x}}, spec: {{}}}}\n"
    )
}

/// The plan for a text, as JSON, with its exit code.
fn plan(text: &str) -> (Value, i32) {
    let repo = Repo::with(&[("export.yaml", text)]);
    let run = repo.run(&["migrate", "plan", "--from", "repo/export.yaml", "--output", "json"]);
    let code = run.code().unwrap();
    (serde_json::from_str(&run.stdout()).unwrap(), code)
}

/// The subjects of the findings of the one Application, with what of them is used.
fn findings(more: &str) -> Vec<(String, String)> {
    let (plan, _) = plan(&format!("{SETTINGS}{}", application("a", "default", more)));
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    let found = plan["applications"][0]["findings"].as_array().cloned().unwrap_or_default();
    found.iter().map(|finding| (text(finding, "subject"), text(finding, "used"))).collect()
}

#[test]
fn an_application_that_uses_nothing_special_is_the_same() {
    let (plan, code) = plan(&application("shop", "default", PLAIN));
    assert_eq!(code, 0);
    let app = &plan["applications"][0];
    assert_eq!((&app["namespace"], &app["verdict"]), (&"argocd".into(), &"same".into()));
    assert!(plan["everywhere"].as_array().unwrap().iter().any(|finding| finding["subject"] == "apply"));
    let steps = plan["steps"].to_string();
    for command in ["-k deploy/shadow", "shadow report", "--replicas=0", "app adopt", "--replicas=1"] {
        assert!(steps.contains(command), "{command} is missing in {steps}");
    }
}

#[test]
fn what_differs_is_told_by_the_option_that_is_used() {
    let options = |options: &str| format!("{PLAIN}  syncPolicy: {{syncOptions: [{options}]}}\n");
    let cases = [
        (options("Validate=false"), "`Validate=false`", "Validate=false"),
        (options("FailOnSharedResource=true"), "an object that another Application tracks", "FailOnSharedResource=true"),
        (format!("{PLAIN}  syncPolicy: {{automated: {{prune: true, selfHeal: true}}}}\n"), "automated prune of many", "automated.prune"),
        (
            "  sources: [{repoURL: https://git.example.com/a, path: a, helm: {valueFiles: [$values/x.yaml]}}]\n".to_owned(),
            "a values file or file parameter `$name/…` where no source has the `ref`",
            "$values/x.yaml",
        ),
        (
            "  source: {repoURL: oci://registry.example.com/charts, chart: shop, targetRevision: 1.0.0}\n".to_owned(),
            "a source with `repoURL: oci://…` and `chart`",
            "chart shop",
        ),
        (
            format!("{PLAIN}status: {{resources: [{{group: argoproj.io, kind: Application, name: b}}]}}\n"),
            "health of an Application",
            "it brings 1 Applications",
        ),
    ];
    for (more, subject, used) in cases {
        let found = findings(&more);
        assert!(found.contains(&(subject.to_owned(), used.to_owned())), "{subject}: {found:?}");
    }
    let referenced = "  sources:\n  - {repoURL: https://git.example.com/a, path: a, helm: {valueFiles: [$values/x.yaml]}}\n  \
        - {repoURL: https://git.example.com/b, ref: values}\n";
    assert_eq!(findings(referenced), [], "its source is there");
    let off = format!("{PLAIN}  syncPolicy: {{automated: {{enabled: false, prune: true}}}}\n");
    assert_eq!(findings(&off), [], "it is not automated");
}

#[test]
fn what_its_project_uses_concerns_an_application() {
    let (plan, code) = plan(&format!("{SETTINGS}{}", application("shop", "team", PLAIN)));
    let findings = plan["applications"][0]["findings"].to_string();
    assert_eq!(code, 0);
    assert!(
        findings.contains("timeZone: Europe/Berlin") && findings.contains("!https://git.example.com/secret")
    );
}

#[test]
fn what_is_not_supported_is_told_with_what_to_do() {
    let plugin = "  source: {repoURL: https://git.example.com/acme/shop, path: shop, plugin: {name: tanka}}\n\
        status: {operationState: {phase: Running}}\n";
    let pulls =
        "[{matrix: {generators: [{list: {elements: []}}, {pullRequest: {github: {owner: a, repo: b}}}]}}]";
    let text = format!(
        "{}{}{}{}",
        application("shop", "default", plugin),
        set("previews", pulls),
        set("odd", "[{nothing: {}}]"),
        set("all", "[{list: {elements: []}, selector: {matchLabels: {a: b}}}]")
    );
    let (plan, code) = plan(&text);
    assert_eq!(code, 1);
    let app = &plan["applications"][0];
    assert_eq!(app["verdict"], "notSupported");
    assert!(app["findings"][0]["todo"].as_str().unwrap().contains("--allow-plugin"), "{app}");
    assert!(app["before"][0].as_str().unwrap().contains("under way"), "{app}");
    let verdict = |name: &str| {
        let sets = plan["applicationSets"].as_array().unwrap();
        sets.iter().find(|set| set["name"] == name).unwrap()["verdict"].clone()
    };
    assert_eq!(
        [verdict("previews"), verdict("odd"), verdict("all")],
        ["notSupported", "notSupported", "same"]
    );
}

#[test]
fn settings_without_effect_are_told_and_no_secret_is() {
    let text = format!("{SETTINGS}{}", application("shop", "default", PLAIN));
    let repo = Repo::with(&[("export.yaml", &text)]);
    for form in ["text", "json", "markdown"] {
        let run = repo.run(&["migrate", "plan", "--from", "repo/export.yaml", "--output", form]);
        run.expect(
            0,
            &[
                "argocd-cm: url",
                "timeout.reconciliation",
                "health.argoproj.io_Application",
                "--enable-exec",
                "controller.status.processors",
                "argocd-rbac-cm",
                "--allow-plugin NAME=COMMAND",
                "cluster prod: argocd-k8s-auth",
                "Secret assets",
            ],
        );
        assert!(!run.stdout().contains("hush"), "{}", run.stdout());
    }
}

#[test]
fn several_files_and_folders_are_one_installation() {
    let repo = Repo::with(&[
        ("apps/one.yaml", &application("one", "default", PLAIN)),
        ("apps/two.yaml", &application("two", "team", PLAIN)),
        ("apps/values.yaml", "a: b\n"),
        ("settings.yaml", SETTINGS),
    ]);
    let run = repo.run(&["migrate", "plan", "--from", "repo/apps", "repo/settings.yaml"]);
    run.expect(
        0,
        &["2 Applications", "argocd/one: the same", "argocd/two: differs", "not looked at", "values.yaml"],
    );
}

#[test]
fn what_is_no_installation_is_wrong_use() {
    let repo = Repo::with(&[
        ("cut.json", "{\"kind\": \"List\", \"items\": ["),
        ("other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        ("values.yaml", "a: b\n"),
    ]);
    for (file, why) in [
        ("repo/cut.json", "cut.json"),
        ("repo/other.yaml", "no Application, ApplicationSet or AppProject"),
        ("repo/values.yaml", "values.yaml"),
        ("repo/missing", "missing"),
    ] {
        let run = repo.run(&["migrate", "plan", "--from", file]);
        assert_eq!(run.code(), Some(2), "{file}: {}", run.text());
        let told = run.text();
        assert!(told.contains(why), "{file}: {told}");
    }
    assert_eq!(repo.run(&["migrate", "plan", "--from", "x", "--context", "y"]).code(), Some(2));
    assert_eq!(repo.run(&["migrate", "plan", "--kubeconfig", "none"]).code(), Some(2));
}

/// Whatever stands where something else belongs, nothing panics.
#[test]
fn odd_shapes_are_read_as_far_as_they_go() {
    for more in [
        "  source: 1\n",
        "  sources: {a: b}\n",
        "  source: null\n  syncPolicy: []\n",
        "  source: {repoURL: 5, plugin: [], helm: {valueFiles: {a: 1}}}\n  syncPolicy: {automated: true, syncOptions: 7}\n",
        "  ignoreDifferences: [1, {jqPathExpressions: x}]\nstatus: {resources: 9, conditions: [1], operationState: x}\n",
    ] {
        let (plan, _) = plan(&application("odd", "default", more));
        assert_eq!(plan["applications"][0]["name"], "odd", "{more}");
    }
    let (plan_of_number, _) = plan(&application("odd", "default", "  source: 1\n"));
    assert_eq!(plan_of_number["applications"][0]["verdict"], "notSupported", "neither engine can use it");
    for generators in ["1", "[1, [], {a: 1}]", "{list: []}", "null"] {
        let (plan, _) = plan(&set("odd", generators));
        assert_eq!(plan["applicationSets"][0]["name"], "odd", "{generators}");
    }
}
