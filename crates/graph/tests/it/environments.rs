//! Which clusters a repository has: none is hidden behind another.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_graph::{Input, Notice, Survey};
use tiphys_vfs::MemTree;

fn application(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  \
         project: default\n  source: {{repoURL: https://git.example.com/x.git, path: {path}}}\n  \
         destination: {{server: https://kubernetes.default.svc, namespace: {name}}}\n"
    )
}

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

fn survey(files: &[(String, String)]) -> Survey {
    let files = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    Survey::read(&Input::alone(Arc::new(MemTree::from_files(files))))
}

fn names(survey: &Survey) -> BTreeSet<String> {
    let title = |app: &tiphys_graph::App| {
        let environment = &survey.environments[app.environment.0].name;
        format!("{environment}: {}", app.name())
    };
    survey.apps.iter().map(title).collect()
}

#[test]
fn roots_of_one_name_in_sibling_folders_are_of_two_clusters() {
    let mut files = Vec::new();
    for cluster in ["alpha", "beta"] {
        files.push((format!("{cluster}/root.yaml"), application("root", &format!("{cluster}/apps"))));
        let web = application(&format!("web-{cluster}"), &format!("{cluster}/web"));
        files.push((format!("{cluster}/apps/web.yaml"), web));
        files.push((format!("{cluster}/web/a.yaml"), config_map("a")));
        // Most of the roots beside it have names of their own.
        for other in ["one", "two", "three"] {
            let path = format!("{cluster}/{other}");
            files.push((format!("{path}.yaml"), application(&format!("{cluster}-{other}"), &path)));
            files.push((format!("{path}/a.yaml"), config_map("a")));
        }
    }
    let survey = survey(&files);
    let names = names(&survey);
    assert!(names.contains("alpha: web-alpha") && names.contains("beta: web-beta"), "{names:?}");
    assert!(survey.apps.iter().all(|app| app.is_rendered()));
}

#[test]
fn each_values_file_that_an_installer_names_is_an_environment() {
    let root = "{{- range .Values.apps }}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: {{ . }}, namespace: argocd}\n\
                spec:\n  project: default\n  source: {repoURL: https://git.example.com/x.git, path: web}\n  \
                destination: {server: https://kubernetes.default.svc, namespace: web}\n{{- end }}\n";
    let mut files: Vec<(String, String)> = [
        ("root/Chart.yaml", "apiVersion: v2\nname: root\nversion: 1.0.0\n"),
        ("root/values.yaml", "apps: [web]\n"),
        ("root/values-hub.yaml", "apps: [web, registry]\n"),
        ("root/values-spoke.yaml", "apps: [web, agent]\n"),
        ("root/values-secret.yaml", "apps: [web, never]\n"),
        ("root/templates/apps.yaml", root),
        ("install.sh", "helm template root -f root/values-$1.yaml | kubectl apply -f -\n"),
    ]
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .to_vec();
    files.push(("web/a.yaml".to_owned(), config_map("a")));
    let found = survey(&files);
    let expected = ["root/hub: registry", "root/hub: web", "root/spoke: agent", "root/spoke: web"];
    assert_eq!(names(&found), expected.map(str::to_owned).into());
    assert_eq!(found.choices.keys().collect::<Vec<_>>(), ["root/hub", "root/spoke"]);
    files.retain(|(path, _)| path != "install.sh");
    assert_eq!(names(&survey(&files)), BTreeSet::from([": web".to_owned()]));
}

#[test]
fn the_cluster_of_an_example_is_none_of_the_repository() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: mine, labels: {argocd.argoproj.io/secret-type: cluster}}\n\
                  stringData: {name: mine, server: https://mine.example.com}\n";
    let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: webs, namespace: argocd}\nspec:\n  \
               goTemplate: true\n  goTemplateOptions: [missingkey=error]\n  \
               generators: [{clusters: {selector: {matchLabels: {env: prod}}}}]\n  template:\n    \
               metadata: {name: 'web-{{.metadata.labels.region}}'}\n    spec:\n      project: default\n      \
               source: {repoURL: https://git.example.com/x.git, path: web}\n      \
               destination: {server: '{{.server}}', namespace: web}\n";
    let mut files = vec![
        ("docs/cluster.yaml".to_owned(), secret.to_owned()),
        ("sets/webs.yaml".to_owned(), set.to_owned()),
        ("web/a.yaml".to_owned(), config_map("a")),
    ];
    let found = survey(&files);
    assert_eq!(names(&found), BTreeSet::from([": web-any-cluster".to_owned()]));
    assert!(found.notices.contains(&Notice::ExampleClusters(vec!["mine".to_owned()])));
    files[0].0 = "clusters/mine.yaml".to_owned();
    assert!(survey(&files).apps.is_empty(), "it lacks the label");
}
