//! Applications that cannot be rendered or synced.

use tiphys_value::{ObjectExt as _, json};

use super::{Planted, Scene, place};

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for app in scene.declared("Application").filter(|app| app.at(&["spec", "source", "path"]).is_some()) {
        let planted = |kind, causes: &[&'static str]| {
            Planted::new(kind, place(app), causes)
                .with_object("Application", app.namespace(), app.name())
                .of_argo_only()
        };
        let tree = scene.edited(app, |app| app["spec"]["source"]["path"] = "deploy/none".into());
        found.extend(planted("gitops: path absent", &["gitops/render"]).edit(tree));
        let tree = scene.edited(app, |app| app["spec"]["project"] = "payments".into());
        let absent = planted("gitops: project absent", &["gitops/project"]).with_object(
            "AppProject",
            app.namespace(),
            "payments",
        );
        found.extend(absent.edit(tree));
        let tree = scene.edited(app, |app| {
            app["spec"]["source"]["repoURL"] = "https://git.example.com/acme/gone.git".into()
        });
        let mut away =
            planted("gitops: repository away", &["gitops/source-auth", "gitops/revision", "gitops/render"]);
        // A project may name its repositories, and does not permit another one.
        away.expected.also.push("gitops/project");
        found.extend(away.edit(tree));
    }
    for app in scene.declared("Application") {
        let name =
            app.at(&["spec", "destination"]).and_then(|it| it.str_at(&["namespace"])).unwrap_or_default();
        if scene.declared("Namespace").all(|it| it.name() != name) || app.name() != name {
            continue;
        }
        let file = format!("{name}/widget.yaml");
        let mut tree = scene.repository.tree.clone();
        tree.add(&file, json!({"apiVersion": "acme.example.com/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": name}}));
        let planted = Planted::new("api: kind not installed", place(app), &["api/crd-missing"])
            .with_object("Application", app.namespace(), app.name())
            .with_object("Widget", name, "one")
            .with_object("CustomResourceDefinition", "", "widgets.acme.example.com");
        found.extend(planted.edit(Some(tree)));
        let mut tree = scene.repository.tree.clone();
        tree.add(&file, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "elsewhere"}, "data": {}}));
        let planted = Planted::new("gitops: namespace absent", place(app), &["gitops/namespace"])
            .with_object("Application", app.namespace(), app.name())
            .with_object("Namespace", "", "elsewhere")
            .of_argo_only();
        found.extend(planted.edit(Some(tree)));
    }
    for job in
        scene.repository.tree.objects().map(|(_, object)| object).filter(|object| object.kind() == "Job")
    {
        let namespace = job.namespace();
        let Some(app) = scene.declared("Application").find(|app| app.name() == namespace) else { continue };
        let tree =
            scene.edited(job, |job| job["spec"]["template"]["metadata"]["labels"] = json!({"rev": "2"}));
        // The hook runs again with the next sync, and something has to be synced.
        let tree = tree.map(|mut tree| {
            tree.add(&format!("{namespace}/more.yaml"), json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more", "namespace": namespace}}));
            tree
        });
        let line =
            "migrate: error: relation \"orders\" already exists in line 0: CREATE TABLE orders (id bigint)";
        let mut planted =
            Planted::new("gitops: hook fails", place(job), &["gitops/hook-failed", "run/exits"])
                .with_object("Application", app.namespace(), app.name())
                .with_object("Job", namespace, job.name())
                .with_object("Pod", namespace, &format!("{}-*", job.name()))
                .of_argo_only();
        planted.lines.push((namespace.to_owned(), job.name().to_owned(), line.to_owned()));
        let rules = json!({"containers": [{"pods": {"namespace": namespace, "name": format!("{}-*", job.name())}, "exits": {"code": 1, "after": "3s"}}]});
        found.extend(planted.rules(rules).edit(tree));
    }
}
