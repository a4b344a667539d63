//! Server-side diff (Argo CD docs, "Diff Strategies"): what the API server would make of each target, asked
//! by a dry run, for Applications that want to be compared that way. An answer serves until its target or its
//! live object changes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures::{StreamExt, stream};
use tiphys_cluster::{ApplyOptions, ClusterError};
use tiphys_model::{Application, Condition, ConditionType, hook, names};
use tiphys_sync::{LiveObject, target_key};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    apply_fixups::applicable,
    client_side_apply,
    destinations::ConnectedCluster,
    installation::{Installation, Predicted},
    live_state::Kinds,
};

/// How many dry runs of one Application are under way at once.
const PARALLEL: usize = 16;

/// An answer, and what it was asked for.
#[derive(Clone)]
pub(crate) struct CachedPrediction {
    target: Arc<Value>,
    version: String,
    answer: Arc<Value>,
}

/// The answers that there are, by object.
pub(crate) type Answers = HashMap<ResourceKey, CachedPrediction>;

/// What the API server would make of the targets of an Application.
#[derive(Default)]
pub(crate) struct Predictions {
    /// What mutating webhooks change counts too.
    mutations: bool,
    answers: Answers,
    /// Targets that it would not take now.
    refused: BTreeMap<ResourceKey, String>,
}

impl Predictions {
    /// What an object would become, if that was asked for and answered.
    pub(crate) fn get(&self, key: &ResourceKey) -> Option<Predicted<'_>> {
        let known = self.answers.get(key)?;
        Some(Predicted { object: &known.answer, mutations: self.mutations })
    }

    /// All answers, for the next time.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// What is told of targets that the API server would not take: that they were compared otherwise.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = Condition> {
        self.refused.iter().map(|(key, why)| {
            let message =
                format!("server-side diff of {key} failed, its fields were compared instead: {why}");
            Condition::new(ConditionType::ComparisonError, message)
        })
    }
}

/// Whether an Application is compared by dry runs: its annotation decides, else the settings.
fn is_wanted(app: &Application, installation: &Installation) -> bool {
    let options = app.annotation(names::COMPARE_OPTIONS).unwrap_or_default();
    let says = |text: &str| options.split(',').any(|option| option.trim() == text);
    match (says("ServerSideDiff=true"), says("ServerSideDiff=false")) {
        (true, _) => true,
        (_, true) => false,
        _ => installation.argo.controller.server_side_diff.unwrap_or(false),
    }
}

/// Asks what would become of the live objects, where an Application wants that: `None` if it does not.
/// `known` are the answers of the last time.
pub(crate) async fn predictions(
    app: &Application,
    installation: &Installation,
    targets: &[Arc<Value>],
    live: &BTreeMap<ResourceKey, LiveObject>,
    known: Answers,
    cluster: &ConnectedCluster,
) -> Option<Predictions> {
    if !is_wanted(app, installation) {
        return None;
    }
    let options = app.annotation(names::COMPARE_OPTIONS).unwrap_or_default();
    let mutations = options.split(',').any(|option| option.trim() == "IncludeMutationWebhook=true");
    let kinds = Kinds(cluster.cache.cluster().discovery());
    let namespace = &app.spec.destination.namespace;
    let wanted = targets
        .iter()
        .filter(|t| !t.name().is_empty() && !hook::is_hook(t) && !hook::is_ignored(t))
        .filter(|target| !client_side_apply::is_needed(target));
    let asked: Vec<_> = wanted
        .filter_map(|target| {
            let at = target_key(target, namespace, &kinds);
            let version = live.get(&at)?.object.resource_version().to_owned();
            let serves = |known: &&CachedPrediction| known.target == *target && known.version == version;
            let answer = known.get(&at).filter(serves).cloned();
            Some((at, target.clone(), version, answer))
        })
        .collect();
    let ask = |(at, target, version, answer): (ResourceKey, Arc<Value>, String, Option<CachedPrediction>)| async move {
        match answer {
            Some(known) => (at, Ok(known)),
            None => {
                let answer = ask(cluster, &at, &target).await;
                (at, answer.map(|answer| CachedPrediction { target, version, answer: Arc::new(answer) }))
            }
        }
    };
    let results: Vec<_> = stream::iter(asked.into_iter().map(ask)).buffered(PARALLEL).collect().await;
    let mut all = Predictions { mutations, ..Predictions::default() };
    for (at, result) in results {
        match result {
            Ok(known) => {
                all.answers.insert(at, known);
            }
            Err(error) => {
                all.refused.insert(at.clone(), refusal(&at, &error));
            }
        }
    }
    Some(all)
}

async fn ask(cluster: &ConnectedCluster, at: &ResourceKey, target: &Value) -> Result<Value, ClusterError> {
    let mut object = target.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && !at.namespace.is_empty()
    {
        metadata.insert("namespace".into(), at.namespace.clone().into());
    }
    let options = ApplyOptions {
        field_manager: names::FIELD_MANAGER.into(),
        force: true,
        dry_run: true,
        validate: false,
    };
    cluster.cache.cluster().apply(&applicable(&cluster.cache, &object), &options).await
}

/// A refusal; that of a Secret may quote its values.
fn refusal(at: &ResourceKey, error: &ClusterError) -> String {
    match error {
        ClusterError::Api { code, reason, .. } if at.kind == "Secret" => format!("{reason} ({code})"),
        error => error.to_string(),
    }
}
