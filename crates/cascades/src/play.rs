//! Brings repositories up on a stage under virtual time, and plays faults on forks of them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::Context as _;
use tempfile::TempDir;
use tiphys_cluster::{Cluster, ClusterError, PatchType, Propagation};
use tiphys_controller::{Settings, crds};
use tiphys_health::HealthSettings;
use tiphys_source::{Repositories, WorkingTree};
use tiphys_stage::fault::{Injector, Timed};
use tiphys_stage::{Next, Site, SiteOptions, Stage, Still, Watcher, virtual_runtime};
use tiphys_sync::{AutoSettings, SyncSettings};
use tiphys_value::{GroupKind, ObjectExt as _, Value, json};
use tiphys_world::Behaviours;

use crate::{generate::URL, plant::Planted, repository::Repository, tree::Tree};

/// How long a repository has to come up.
const BRING_UP: Duration = Duration::from_secs(20 * 60);
/// How long a fault has to take effect.
const FAULTY: Duration = Duration::from_secs(25 * 60);

/// How long a change of the repository has to reach the cluster before pods are deleted.
const TO_SYNC: Duration = Duration::from_secs(3 * 60);

/// Lets time pass.
struct Passing;

impl Watcher for Passing {
    async fn next_step(&mut self, _: &mut Stage) -> Next {
        Next::Wait(None)
    }
}

/// A repository that was brought up.
pub struct Ground {
    /// The cluster as it is then.
    pub still: Still,
    rules: Behaviours,
}

fn behaviours(rules: &Value) -> anyhow::Result<Behaviours> {
    if rules.is_null() {
        return Ok(Behaviours::default());
    }
    Behaviours::from_yaml("cascades", &rules.to_string()).context("the rules of a cascade")
}

/// The files of a tree as the engine reads them, under the addresses that the repository has without a fault.
fn repositories(tree: &Tree, known: &Tree) -> anyhow::Result<(TempDir, Arc<Repositories>)> {
    let folder = tempfile::tempdir()?;
    tree.write(folder.path())?;
    let repositories = Repositories::new(None, false);
    repositories.give_working_tree(Arc::new(WorkingTree::open(folder.path())?));
    repositories.add_address(URL);
    let mut addresses = BTreeSet::new();
    known.objects().for_each(|(_, object)| collect_addresses(object, &mut addresses));
    addresses.iter().for_each(|address| repositories.add_address(address));
    Ok((folder, Arc::new(repositories)))
}

fn collect_addresses(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str().filter(|_| key == "repoURL") {
                    Some(url) => {
                        found.insert(url.to_owned());
                    }
                    None => collect_addresses(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_addresses(item, found)),
        _ => {}
    }
}

fn settings() -> Settings {
    let played = tiphys_world::Settings::default().behaviours.operators;
    let attended = played.iter().map(|operator| GroupKind::new(&operator.group, &operator.kind));
    let own = ["Application", "ApplicationSet", "AppProject"].map(|kind| GroupKind::new("argoproj.io", kind));
    Settings {
        sync: SyncSettings::compat(),
        auto: AutoSettings { compat: true, ..AutoSettings::default() },
        health: HealthSettings { compat: true, attended: Some(attended.chain(own).collect()) },
        ..Settings::default()
    }
}

async fn apply(cluster: &Cluster, object: &Value) -> anyhow::Result<()> {
    let what = || format!("{} {}", object.kind(), object.name());
    match cluster.create(object, "cascades", false).await {
        Ok(_) => Ok(()),
        Err(ClusterError::Api { code: 409, .. }) => {
            let resource = cluster.resource(&object.gvk()).await?;
            let patch = json!({"spec": object["spec"]});
            cluster
                .patch(
                    &resource,
                    (object.namespace(), object.name()),
                    "",
                    PatchType::Merge,
                    &patch,
                    "cascades",
                )
                .await
                .map(drop)
                .with_context(what)
        }
        Err(error) => Err(error).with_context(what),
    }
}

/// Brings a repository up.
///
/// # Errors
/// The cluster cannot be set up.
pub fn bring_up(repository: &Repository, seed: u64) -> anyhow::Result<Ground> {
    let mut rules = behaviours(&repository.rules)?;
    rules.extend(Behaviours::builtin());
    let world = tiphys_world::Settings {
        pod_start: Duration::from_secs(2),
        job_run: Duration::from_secs(5),
        behaviours: rules.clone(),
        ..tiphys_world::Settings::default()
    };
    let (_folder, repositories) = repositories(&repository.tree, &repository.tree)?;
    let still = virtual_runtime()?.block_on(async {
        let site = Site::fresh(SiteOptions { seed, service_network: None, world, is_isolated: true })?;
        let cluster = site.cluster();
        for definition in crds::definitions() {
            apply(&cluster, &definition).await?;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        cluster.discover().await?;
        apply(&cluster, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})).await?;
        apply(&cluster, &json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "default", "namespace": "argocd"},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}}))
        .await?;
        for mut root in Repository::roots(&repository.tree) {
            if root.namespace().is_empty() {
                root["metadata"]["namespace"] = "argocd".into();
            }
            apply(&cluster, &root).await?;
        }
        let mut stage = Stage::new(site, &repositories, settings());
        stage.start().await?;
        stage.play(BRING_UP, &mut Passing).await;
        stage.kill();
        anyhow::Ok(stage.site().still())
    })?;
    Ok(Ground { still, rules })
}

/// The faults of the stage.
fn faults(planted: &Planted) -> anyhow::Result<Vec<Timed>> {
    let duration = |text: &str| {
        let hours = text.strip_suffix('h').and_then(|hours| hours.parse::<u64>().ok());
        hours.map(|hours| Duration::from_secs(hours * 3600)).ok_or_else(|| format!("{text:?} are no hours"))
    };
    let read = |fault: &String| Timed::parse(fault, duration).map_err(|why| anyhow::anyhow!(why));
    planted.faults.iter().map(read).collect()
}

/// Plays a fault on a fork.
///
/// # Errors
/// The cluster cannot be set up.
pub fn play(repository: &Repository, ground: &Ground, planted: &Planted) -> anyhow::Result<Still> {
    let mut rules = behaviours(&planted.rules)?;
    rules.extend(ground.rules.clone());
    let tree = planted.tree.as_ref().unwrap_or(&repository.tree);
    let (_folder, repositories) = repositories(tree, &repository.tree)?;
    virtual_runtime()?.block_on(async {
        let site = ground.still.with_rules(rules).resume()?;
        let cluster = site.cluster();
        cluster.discover().await?;
        // Who applied the Applications by hand applies them again.
        if planted.tree.is_some() {
            for root in Repository::roots(tree)
                .iter()
                .filter(|root| !Repository::roots(&repository.tree).contains(root))
            {
                let mut root = root.clone();
                if root.namespace().is_empty() {
                    root["metadata"]["namespace"] = "argocd".into();
                }
                apply(&cluster, &root).await?;
            }
        }
        for object in &planted.objects {
            apply(&cluster, object).await?;
        }
        let mut stage = Stage::new(site, &repositories, settings());
        stage.start().await?;
        Injector::new(faults(planted)?).apply(&mut stage).await?;
        stage.play(TO_SYNC, &mut Passing).await;
        for (kind, namespace, name) in &planted.deleted {
            let resource = cluster.resource(kind).await?;
            let names: Vec<String> = match name.strip_suffix('*') {
                None => vec![name.clone()],
                Some(start) => {
                    let list = cluster.list(&resource, namespace).await?;
                    let names = list.items.iter().map(|object| object.name().to_owned());
                    names.filter(|name| name.starts_with(start)).collect()
                }
            };
            for name in names {
                cluster.delete(&resource, (namespace, &name), Propagation::Background, "", false).await?;
            }
        }
        stage.play(FAULTY, &mut Passing).await;
        stage.kill();
        Ok(stage.site().still())
    })
}
