//! What Ansible and Terraform installed before the engine came, where Applications install it too (incident
//! B1).

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cluster::Cluster;
use tiphys_graph::{
    App, Object,
    rival_installs::{Installed, is_same_file},
    survey::unmarked,
    tools::{Action, Tool, What, Writer},
};
use tiphys_model::hook::is_hook;
use tiphys_value::{ObjectExt, Value, json};

use super::text::{object_name, some_of};
use crate::up::{bootstrap, extra_clusters::Beside, placeholder_kinds, plan::Plan};

/// How many objects of a tool are named.
const NAMED: usize = 4;

/// What a tool has put into the cluster.
pub(super) struct EarlierInstall {
    /// `Ansible (ansible/cni.yml:4)`.
    by: String,
    /// The field manager that its client writes as.
    manager: &'static str,
    /// Namespace and name, if it is a Helm release.
    release: Option<(String, String)>,
    /// What it made, as the Application renders it: what the tool makes of it is not known as a whole.
    objects: Vec<Value>,
}

impl EarlierInstall {
    /// What the tools of a repository install that its Applications install, too. What kubectl applies looks
    /// as if a person had, and the engine takes it over.
    pub(super) fn all_of(plan: &Plan) -> Vec<Self> {
        let tools = plan.survey.tools();
        let writers: Vec<&Writer> = tools.writers.iter().filter(|writer| comes_back(writer)).collect();
        if writers.is_empty() {
            return Vec::new();
        }
        let is_beside = |app: &App| {
            let beside = Beside::for_destination(&app.application.spec.destination);
            beside.is_some() && plan.apart.contains(&app.application.spec.destination)
        };
        let mut found = Vec::new();
        for app in plan.survey.apps.iter().filter(|app| !is_beside(app)) {
            let installed = Installed::of_app(&plan.survey, app);
            found
                .extend(writers.iter().filter_map(|writer| Self::from_writer(plan, app, &installed, writer)));
        }
        found
    }

    fn from_writer(plan: &Plan, app: &App, installed: &Installed<'_>, writer: &Writer) -> Option<Self> {
        let shared = installed.shared_with(writer)?;
        let (release, mut found): (_, Vec<&Object>) = match &writer.what {
            What::Release { name, .. } => {
                let release = release_of(app, name, writer.namespace.as_deref())?;
                (Some(release), plan.survey.objects_of(app.id).collect())
            }
            _ => (None, shared.objects),
        };
        found.retain(|it| !is_hook(it.value()) && !it.key.name.is_empty() && !is_same_file(it, writer));
        let mut objects: Vec<Value> = found.into_iter().map(in_namespace).collect();
        if let Some(release) = &release {
            objects.iter_mut().for_each(|object| mark_as_of(object, release));
        }
        let manager = match (&release, writer.tool) {
            (Some(_), _) => "helm",
            (None, Tool::Terraform) => "Terraform",
            (None, _) => "OpenAPI-Generator",
        };
        let by = format!("{} ({}:{})", writer.tool.name(), writer.span.file, writer.span.start.line);
        (!objects.is_empty()).then_some(Self { by, manager, release, objects })
    }

    /// Puts it into the cluster, with definitions that take any field where nothing in reach has them.
    /// Returns what is to be told.
    ///
    /// # Errors
    /// The cluster refuses a namespace or a definition.
    pub(super) async fn provide(&self, cluster: &Cluster) -> anyhow::Result<Vec<String>> {
        let install = bootstrap::Install { cluster, projects: &[], settings: None };
        let namespaces = self.objects.iter().map(|object| object.namespace().to_owned());
        let of_release = self.release.iter().map(|(namespace, _)| namespace.clone());
        let namespaces: BTreeSet<String> =
            namespaces.chain(of_release).filter(|name| !name.is_empty()).collect();
        install.stand_ins(&namespaces, &BTreeSet::new()).await?;
        let is_definition = |object: &&Value| object.kind() == "CustomResourceDefinition";
        let (definitions, others): (Vec<_>, Vec<_>) = self.objects.iter().partition(is_definition);
        let (mut made, mut refused) = (Vec::new(), BTreeMap::new());
        for object in definitions {
            self.create(cluster, object, &mut made, &mut refused).await;
        }
        cluster.discover().await?;
        let kinds = placeholder_kinds::unserved(cluster, others.iter().copied());
        let all = kinds.keys().cloned().collect();
        placeholder_kinds::provide(cluster, &kinds, &all).await?;
        for object in others {
            self.create(cluster, object, &mut made, &mut refused).await;
        }
        if let Some((namespace, name)) = &self.release {
            match cluster.create(&record(namespace, name), self.manager, false).await {
                Err(error) if !error.is_conflict() => return Err(error.into()),
                _ => {}
            }
        }
        let mut told = Vec::new();
        if !made.is_empty() {
            told.push(format!(
                "taken to be there before the first sync, as {} installs it: {}",
                self.by,
                some_of(&made, NAMED)
            ));
        }
        for (why, objects) in refused {
            told.push(format!("{} cannot have made {}: {why}", self.by, some_of(&objects, NAMED)));
        }
        Ok(told)
    }

    async fn create(
        &self,
        cluster: &Cluster,
        object: &Value,
        made: &mut Vec<String>,
        refused: &mut BTreeMap<String, Vec<String>>,
    ) {
        let mut object = object.clone();
        let shown = object_name(&object.resource_key());
        let created = match cluster.resource(&object.gvk()).await {
            Ok(resource) => {
                if let Some(metadata) = object["metadata"].as_object_mut().filter(|_| !resource.namespaced) {
                    metadata.remove("namespace");
                }
                cluster.create(&object, self.manager, false).await
            }
            Err(unknown) => Err(unknown),
        };
        match created {
            Ok(_) => made.push(shown),
            // Every cluster has it, or another task made it.
            Err(error) if error.is_conflict() => {}
            Err(error) => refused.entry(error.to_string()).or_default().push(shown),
        }
    }
}

/// Whether a tool comes back and sets its fields again, in clusters that Applications are for.
fn comes_back(writer: &Writer) -> bool {
    matches!(writer.tool, Tool::Ansible | Tool::Terraform)
        && writer.action == Action::Apply
        && !writer.is_by_kubectl
        && !writer.installs_argo_cd()
        && !writer.is_for_trials()
}

/// Namespace and name of a release, if the Application's objects have the same names: they are called after
/// it.
fn release_of(app: &App, name: &str, namespace: Option<&str>) -> Option<(String, String)> {
    let spec = &app.application.spec;
    let own_namespace = spec.destination.namespace.as_str();
    let namespace = namespace.unwrap_or(own_namespace);
    let sources = spec.effective_sources();
    let named = sources.iter().find_map(|source| Some(source.helm.as_ref()?.release_name.as_str()));
    let own_name = named.filter(|name| !name.is_empty()).unwrap_or_else(|| app.name());
    let name = if name.is_empty() { own_name } else { name };
    let is_same = name == own_name && namespace == own_namespace && !namespace.is_empty();
    is_same.then(|| (namespace.to_owned(), name.to_owned()))
}

/// The object without the mark of its Application, and in its namespace if it names none.
fn in_namespace(object: &Object) -> Value {
    let mut value = unmarked(object.value().clone());
    if !object.key.namespace.is_empty() {
        value["metadata"]["namespace"] = object.key.namespace.as_str().into();
    }
    value
}

/// Puts the marks of Helm on an object of a release.
fn mark_as_of(object: &mut Value, (namespace, name): &(String, String)) {
    let metadata = &mut object["metadata"];
    metadata["labels"]["app.kubernetes.io/managed-by"] = "Helm".into();
    metadata["annotations"]["meta.helm.sh/release-name"] = name.as_str().into();
    metadata["annotations"]["meta.helm.sh/release-namespace"] = namespace.as_str().into();
}

/// Helm's record of a release, as long as which it owns its objects.
fn record(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": format!("sh.helm.release.v1.{name}.v1"),
            "namespace": namespace,
            "labels": {"owner": "helm", "name": name, "status": "deployed", "version": "1"},
        },
    })
}
