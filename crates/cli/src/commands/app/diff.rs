//! `tiphys app diff`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Context as _;
use tiphys_cluster::{Cluster, ClusterError};
use tiphys_diff::{
    DiffOptions, Fields, IgnoreError, IgnoreRules, compare, has_compare_option, known_types, mask_secret,
    unified,
};
use tiphys_model::{Application, ArgoSettings, hook};
use tiphys_schema::{StructuralSchema, crd_version_schema};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey, Value, json};

use crate::{
    app::{
        desired::{self, Wanted},
        session::Session,
    },
    exit::WrongUse,
    output::{Format, print},
};

/// Show what a sync would change: the live objects against what the sources describe.
///
/// Ignored differences do not count, and values of Secrets are masked, different values by runs of
/// different length. Lines with + are what a sync would write.
///
/// Exit codes: 0 nothing differs; 1 something does (--exit-code=false makes that 0); 2 it could not be
/// told.
///
/// Examples:
///   tiphys app diff shop
///   tiphys app diff shop --repo . --exit-code=false
///   tiphys app diff shop --revision v1.2.3 --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    #[command(flatten)]
    wanted: Wanted,
    /// Let the engine look again first.
    #[arg(long)]
    refresh: bool,
    /// Tell by the exit code whether something differs.
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set, value_name = "BOOL")]
    exit_code: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Prints the differences.
///
/// # Errors
/// Something differs (exit code 1), or it could not be told (exit code 2).
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let changes = changes(session, args).await.map_err(|error| WrongUse(format!("{error:#}")))?;
    let text: String = changes.iter().map(Change::text).collect();
    print(args.output, &text, &Value::Array(changes.iter().map(Change::value).collect()))?;
    if args.exit_code && !changes.is_empty() { Err(crate::exit::Reported.into()) } else { Ok(()) }
}

/// An object that a sync would change.
struct Change {
    key: ResourceKey,
    /// `create`, `update` or `delete`.
    action: &'static str,
    diff: String,
    paths: Vec<String>,
}

impl Change {
    fn text(&self) -> String {
        let ResourceKey { group, kind, namespace, name } = &self.key;
        format!("===== {group}/{kind} {namespace}/{name} ({}) ======\n{}\n", self.action, self.diff)
    }

    fn value(&self) -> Value {
        let ResourceKey { group, kind, namespace, name } = &self.key;
        json!({"group": group, "kind": kind, "namespace": namespace, "name": name, "action": self.action,
            "paths": self.paths, "diff": self.diff})
    }
}

async fn changes(session: &Session, args: &Args) -> anyhow::Result<Vec<Change>> {
    let id = session.id(&args.app)?;
    let object = if args.refresh { session.refresh(&id, false).await? } else { session.get(&id).await? };
    let app = Application::from_value(&object)?;
    let settings = desired::settings_of(session).await?;
    let cluster = desired::destination(session, &app).await?;
    let rendered = desired::rendered(session, &cluster, &app, &args.wanted, &settings).await?;
    let mut targets: BTreeMap<ResourceKey, Value> = BTreeMap::new();
    for object in rendered.objects {
        if !hook::is_hook(&object.value) && !object.value.name().is_empty() {
            targets.insert(desired::key_of(&cluster, &object.value, &app), object.value);
        }
    }
    let mut keys: BTreeSet<(ResourceKey, String)> =
        targets.iter().map(|(key, target)| (key.clone(), target.gvk().version)).collect();
    let known: BTreeSet<&ResourceKey> = targets.keys().collect();
    keys.extend(desired::listed(&app).into_iter().filter(|(key, _)| !known.contains(key)));
    let live = desired::live(&cluster, &keys).await?;
    let schemas = schemas(&cluster, targets.values()).await?;
    IgnoreRules::check(&app.spec.ignore_differences)?;
    let mut all = Vec::new();
    for (key, _) in keys {
        all.extend(match (targets.get(&key), live.get(&key)) {
            (Some(target), Some(live)) => {
                updated(key, (target, live), schemas.get(&target.gvk()), &app, &settings)?
            }
            (Some(target), None) => Some(one_sided(key, target, "create", &settings)),
            (None, Some(live)) if is_extra(live, &app, session, &settings) => {
                Some(one_sided(key, live, "delete", &settings))
            }
            (None, _) => None,
        });
    }
    Ok(all)
}

/// The schemas of the custom resources among targets. Lists of those whose definitions may not be read are
/// compared as a whole.
async fn schemas(
    cluster: &Cluster,
    targets: impl Iterator<Item = &Value>,
) -> anyhow::Result<HashMap<GroupVersionKind, StructuralSchema>> {
    let discovery = cluster.discovery();
    let custom = targets.map(ObjectExt::gvk).filter(|kind| Fields::built_in(kind).is_none());
    let definitions: HashMap<GroupVersionKind, ResourceKey> =
        custom.filter_map(|kind| Some((kind.clone(), discovery.definition_key(&kind)?))).collect();
    let keys = definitions.values().map(|key| (key.clone(), "v1".to_owned())).collect();
    let found = match desired::live(cluster, &keys).await {
        Err(error) if is_forbidden(&error) => {
            eprintln!(
                "custom resources are compared without their definitions, which may not be read: {error:#}"
            );
            BTreeMap::new()
        }
        found => found.context("the definitions of custom resources cannot be read")?,
    };
    let schema = |(kind, key): (GroupVersionKind, ResourceKey)| {
        let schema = crd_version_schema(found.get(&key)?, &kind.version)?;
        Some((kind, schema))
    };
    Ok(definitions.into_iter().filter_map(schema).collect())
}

/// Whether a request failed because whoever asked may not do that.
fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClusterError::Api { code: 403, .. }))
}

/// Whether a live object that no source describes belongs to the Application.
fn is_extra(live: &Value, app: &Application, session: &Session, settings: &ArgoSettings) -> bool {
    let owner = settings.tracking.owner(live);
    owner.is_some_and(|owner| owner == app.instance_name(&session.namespace))
        && settings.tracking.is_self_referencing(live)
        && live.at(&["metadata", "ownerReferences"]).is_none()
        && !has_compare_option(live, "IgnoreExtraneous")
        && !hook::is_hook(live)
}

fn updated(
    key: ResourceKey,
    (target, live): (&Value, &Value),
    schema: Option<&StructuralSchema>,
    app: &Application,
    settings: &ArgoSettings,
) -> Result<Option<Change>, IgnoreError> {
    let mut rules = app.spec.ignore_differences.clone();
    rules.extend(settings.customizations.ignore_differences());
    let ignore = IgnoreRules::for_object(target, &rules)?;
    let known = known_types(&target.gvk(), &settings.customizations);
    let options = DiffOptions {
        known: &known,
        fields: Fields::for_kind(&target.gvk(), schema),
        ignore: (!ignore.is_empty()).then_some(&ignore),
        ignore_aggregated_roles: settings.compare.ignore_aggregated_roles,
        ..DiffOptions::default()
    };
    let mut target = target.clone();
    if let Some(metadata) = target.get_mut("metadata").and_then(Value::as_object_mut)
        && !key.namespace.is_empty()
    {
        metadata.insert("namespace".into(), key.namespace.clone().into());
    }
    let aligned = settings.tracking.align_tracking(&target, live);
    let mut difference = compare(&target, aligned.as_ref().unwrap_or(live), &options);
    if !difference.is_modified() {
        return Ok(None);
    }
    mask_secret(&mut [&mut difference.live, &mut difference.predicted], &settings.masked_annotations);
    let diff = unified(&difference.live, &difference.predicted, "live", "desired");
    let paths = difference.paths.iter().map(ToString::to_string).collect();
    Ok(Some(Change { key, action: "update", diff, paths }))
}

/// An object that is only wanted, or only there.
fn one_sided(key: ResourceKey, object: &Value, action: &'static str, settings: &ArgoSettings) -> Change {
    let mut object = object.clone();
    mask_secret(&mut [&mut object], &settings.masked_annotations);
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "uid", "resourceVersion", "generation", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    let sign = if action == "create" { '+' } else { '-' };
    let text = tiphys_yaml::to_yaml(&object);
    let diff = text.lines().map(|line| format!("{sign}{line}\n")).collect();
    Change { key, action, diff, paths: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_not_be_read_is_done_without() {
        let error = |code| {
            anyhow::Error::from(ClusterError::Api { code, reason: String::new(), message: "no".to_owned() })
        };
        assert!(is_forbidden(&error(403)) && !is_forbidden(&error(500)));
        assert!(!is_forbidden(&ClusterError::Transport("away".to_owned()).into()));
    }
}
