//! `tiphys app undo`.

use std::{collections::BTreeMap, fmt::Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tiphys_cluster::ApplyOptions;
use tiphys_model::{Time, names};
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};

use crate::{
    app::session::Session,
    exit::WrongUse,
    output::{Format, print, table},
};

/// Who owns what is brought back.
const FIELD_MANAGER: &str = "tiphys-undo";

/// Bring back what pruning deleted, or list it.
///
/// The engine keeps what it prunes for a week. What is brought back is marked with the sync option
/// Prune=false, so that the next sync does not prune it again: put it into the sources, or delete it. Data
/// that went with an object (of a volume, of a namespace's other objects) does not come back.
///
/// Examples:
///   tiphys app undo shop --list
///   tiphys app undo shop
///   tiphys app undo shop ConfigMap/settings --dry-run
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// Only these objects, as KIND/NAME; by default all of the last prune.
    objects: Vec<String>,
    /// List what can be brought back, and change nothing.
    #[arg(long)]
    list: bool,
    /// Ask the cluster whether it would take the objects, and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// An object that was pruned.
struct Pruned {
    at: Time,
    server: String,
    object: Value,
}

impl Pruned {
    fn name(&self) -> String {
        format!("{}/{}", self.object.kind(), self.object.name())
    }

    fn value(&self) -> Value {
        let gvk = self.object.gvk();
        json!({"at": self.at, "server": self.server, "group": gvk.group, "kind": gvk.kind,
            "namespace": self.object.namespace(), "name": self.object.name()})
    }
}

/// Lists or brings back.
///
/// # Errors
/// Nothing was recorded, an object lies in another cluster, or the cluster refuses one.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    let mut all = recorded(session, &format!("{}/{}", id.namespace, id.name)).await?;
    all.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.name().cmp(&b.name())));
    if args.list {
        return Ok(print(args.output, &listed(&all), &all.iter().map(Pruned::value).collect())?);
    }
    let chosen = chosen(all, &args.objects)?;
    let (mut text, mut values) = (String::new(), Vec::new());
    for pruned in &chosen {
        if pruned.server != names::IN_CLUSTER_SERVER {
            let name = pruned.name();
            return Err(WrongUse(format!(
                "{name} was in the cluster {}, which this command does not reach",
                pruned.server
            ))
            .into());
        }
        let options = ApplyOptions {
            field_manager: FIELD_MANAGER.into(),
            force: false,
            dry_run: args.dry_run,
            validate: true,
        };
        session
            .cluster
            .apply(&marked_as_kept(&pruned.object), &options)
            .await
            .map_err(|error| anyhow::anyhow!("{} cannot be brought back: {error}", pruned.name()))?;
        let verb = if args.dry_run { "would be brought back" } else { "is back" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {verb}", pruned.name());
        values.push(pruned.value());
    }
    Ok(print(args.output, &text, &Value::Array(values))?)
}

/// What was recorded of an Application.
async fn recorded(session: &Session, app: &str) -> anyhow::Result<Vec<Pruned>> {
    let secrets = session.cluster.resource(&GroupVersionKind::new("", "v1", "Secret")).await?;
    let mut all = Vec::new();
    for record in session.cluster.list(&secrets, &session.namespace).await?.items {
        if record.label(names::TOMBSTONE).is_none() || record.annotation(names::TOMBSTONE_APP) != Some(app) {
            continue;
        }
        let Some(at) = record.annotation(names::TOMBSTONE_TIME).and_then(Time::parse) else { continue };
        let server = record.annotation(names::TOMBSTONE_SERVER).unwrap_or_default().to_owned();
        let data = record.get("data").and_then(Value::as_object).into_iter().flatten();
        for text in data.filter_map(|(_, text)| text.as_str()) {
            let object =
                STANDARD.decode(text).ok().and_then(|bytes: Vec<u8>| serde_json::from_slice(&bytes).ok());
            all.extend(object.map(|object| Pruned { at, server: server.clone(), object }));
        }
    }
    Ok(all)
}

/// The objects asked for, each as it was last; all of the last prune if none is named.
fn chosen(all: Vec<Pruned>, names: &[String]) -> anyhow::Result<Vec<Pruned>> {
    let Some(last) = all.first().map(|pruned| pruned.at) else {
        return Err(WrongUse("nothing that was pruned is recorded".into()).into());
    };
    if names.is_empty() {
        return Ok(all.into_iter().filter(|pruned| pruned.at == last).collect());
    }
    let mut found: BTreeMap<String, Pruned> = BTreeMap::new();
    for pruned in all.into_iter().filter(|pruned| names.contains(&pruned.name())) {
        // The latest comes first.
        found.entry(format!("{}/{}", pruned.object.namespace(), pruned.name())).or_insert(pruned);
    }
    let missing = names.iter().find(|name| !found.values().any(|pruned| pruned.name() == **name));
    if let Some(missing) = missing {
        return Err(WrongUse(format!("{missing} is not among what is recorded; --list shows that")).into());
    }
    Ok(found.into_values().collect())
}

/// The object with a mark that keeps it from being pruned again.
fn marked_as_kept(object: &Value) -> Value {
    let mut object = object.clone();
    let own = object.annotation(names::SYNC_OPTIONS).unwrap_or_default();
    let others =
        own.split(',').map(str::trim).filter(|option| !option.is_empty() && !option.starts_with("Prune="));
    let options = others.chain(["Prune=false"]).collect::<Vec<_>>().join(",");
    object["metadata"]["annotations"][names::SYNC_OPTIONS] = options.into();
    object
}

fn listed(all: &[Pruned]) -> String {
    let rows: Vec<[String; 5]> = all
        .iter()
        .map(|pruned| {
            let gvk = pruned.object.gvk();
            let namespace = pruned.object.namespace().to_owned();
            [pruned.at.to_string(), gvk.group, gvk.kind, namespace, pruned.object.name().to_owned()]
        })
        .collect();
    table(["PRUNED", "GROUP", "KIND", "NAMESPACE", "NAME"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pruned(at: &str, name: &str) -> Pruned {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        Pruned { at: Time::parse(at).expect("a time"), server: String::new(), object }
    }

    #[test]
    fn the_last_prune_or_what_is_named() {
        let all = || {
            vec![
                pruned("2026-01-02T00:00:00Z", "a"),
                pruned("2026-01-02T00:00:00Z", "b"),
                pruned("2026-01-01T00:00:00Z", "c"),
            ]
        };
        let names = |found: Vec<Pruned>| found.iter().map(Pruned::name).collect::<Vec<_>>();
        assert_eq!(names(chosen(all(), &[]).expect("recorded")), ["ConfigMap/a", "ConfigMap/b"]);
        assert_eq!(names(chosen(all(), &["ConfigMap/c".into()]).expect("recorded")), ["ConfigMap/c"]);
        assert!(chosen(all(), &["ConfigMap/d".into()]).is_err());
        assert!(chosen(Vec::new(), &[]).is_err());
    }

    #[test]
    fn what_is_brought_back_is_not_pruned_again() {
        let object = json!({"metadata": {"annotations": {names::SYNC_OPTIONS: "Prune=true, Replace=true"}}});
        assert_eq!(marked_as_kept(&object).annotation(names::SYNC_OPTIONS), Some("Replace=true,Prune=false"));
        assert_eq!(
            marked_as_kept(&json!({"metadata": {}})).annotation(names::SYNC_OPTIONS),
            Some("Prune=false")
        );
    }
}
