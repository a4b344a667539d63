//! Which rows of the page about differences concern an Application or an ApplicationSet, by what it uses.

use std::collections::BTreeSet;

use tiphys_appset::GENERATOR_KINDS;
use tiphys_model::names;
use tiphys_value::{ObjectExt, Value};

use super::plan::Verdict;

/// Nesting deeper than this is no generator.
const MAX_DEPTH: usize = 64;

/// What a rule looks at.
pub(super) struct Subject<'a> {
    /// The Application or ApplicationSet.
    pub object: &'a Value,
    /// The project of an Application, if it is known.
    pub project: Option<&'a Value>,
}

/// One row, and how to see whether it concerns something.
pub(super) struct Rule {
    pub verdict: Verdict,
    /// The first column of the row.
    pub subject: &'static str,
    /// What of it is used; `None` if nothing is.
    pub used: fn(&Subject<'_>) -> Option<String>,
    pub todo: &'static str,
}

const fn differs(subject: &'static str, used: fn(&Subject<'_>) -> Option<String>) -> Rule {
    Rule { verdict: Verdict::Differs, subject, used, todo: "" }
}

const fn unsupported(
    subject: &'static str,
    used: fn(&Subject<'_>) -> Option<String>,
    todo: &'static str,
) -> Rule {
    Rule { verdict: Verdict::NotSupported, subject, used, todo }
}

/// The rules for Applications.
pub(super) const APPLICATION: &[Rule] = &[
    unsupported(
        "config management plugins",
        plugin,
        "allow the plugin: tiphys controller --allow-plugin NAME=COMMAND",
    ),
    unsupported("`spec.sourceHydrator`", hydrator, "name the folder of the sync branch as the source"),
    unsupported(
        "a repository that is a folder of the machine",
        local_repository,
        "name the address of a Git host, or run tiphys controller --local-repositories FOLDER",
    ),
    differs("health of an Application", child_applications),
    differs("automated prune of many", |s| {
        flag(automated(s)?, "prune").then(|| "automated.prune".to_owned())
    }),
    differs(
        "a commit that changes nothing that an Application reads, while an object is changed by hand and `selfHeal` is off",
        |s| (!flag(automated(s)?, "selfHeal")).then(|| "automated without selfHeal".to_owned()),
    ),
    differs("`Validate=false`", |s| option(s, "Validate", "false")),
    differs("custom resources before their definition", |s| option(s, "SkipDryRunOnMissingResource", "true")),
    differs(
        "fields that are ignored with `RespectIgnoreDifferences` within a list that is applied as a whole",
        |s| option(s, "RespectIgnoreDifferences", "true"),
    ),
    differs("an object that another Application tracks", shared),
    differs("`Prune=confirm` where nothing is to be pruned (an operation without `prune`, a dry run)", |s| {
        option(s, "Prune", "confirm")
    }),
    differs("Namespaces and definitions under `force`", |s| {
        option(s, "Replace", "true").or_else(|| option(s, "Force", "true"))
    }),
    differs(
        "items of a list that have one key and differ (a variable that adds to its earlier self, two names or host ports of one port, two host aliases of one address)",
        |s| option(s, "ServerSideApply", "true"),
    ),
    differs("a commit that changes nothing an Application reads", |s| {
        s.object
            .annotation("argocd.argoproj.io/manifest-generate-paths")
            .map(|_| "manifest-generate-paths".to_owned())
    }),
    differs("a values file or file parameter `$name/…` where no source has the `ref`", missing_reference),
    differs("a source with `repoURL: oci://…` and `chart`", oci_chart),
    differs("Jsonnet: program", |s| {
        sources(s)
            .into_iter()
            .find_map(|source| source.at(&["directory", "jsonnet"]))
            .map(|_| "directory.jsonnet".to_owned())
    }),
    differs("`managedFieldsManagers` for an object that is not of its schema", |s| {
        ignores(s, "managedFieldsManagers")
    }),
    differs("limits of jq expressions in ignore rules", |s| ignores(s, "jqPathExpressions")),
    differs("an ignore rule whose expression cannot be used", |s| ignores(s, "jqPathExpressions")),
    differs("PreDelete and PostDelete hooks", deletion_hooks),
    differs("the mirrored waves of what is pruned", |s| {
        flag(automated(s)?, "prune").then(|| waves(s)).flatten()
    }),
    differs("denials in projects (`!`)", denials),
    differs("a sync window's time zone", |s| {
        let windows = s.project?.at(&["spec", "syncWindows"])?.as_array()?;
        windows.iter().find_map(|window| window.str_at(&["timeZone"])).map(|zone| format!("timeZone: {zone}"))
    }),
    differs("signed commits (`signatureKeys`, `sourceIntegrity` of a project)", |s| {
        let used = ["signatureKeys", "sourceIntegrity"];
        used.into_iter()
            .find(|name| s.project.is_some_and(|project| has(project, name)))
            .map(|name| format!("{name} of its project"))
    }),
    differs("orphaned resources", |s| {
        s.project?.at(&["spec", "orphanedResources"]).map(|_| "orphanedResources of its project".to_owned())
    }),
    differs("a status larger than 1 MiB (some thousand objects)", |s| {
        let count = field(s, &["status", "resources"])?.as_array()?.len();
        (count > 3000).then(|| format!("{count} objects"))
    }),
];

/// The rules for ApplicationSets.
pub(super) const SET: &[Rule] = &[
    unsupported(
        "ApplicationSets with generators `scmProvider` and `pullRequest`",
        |s| generators(s).into_iter().find(|name| ["scmProvider", "pullRequest"].contains(&name.as_str())),
        "list the repositories (generators list or git), or keep this set with Argo CD's ApplicationSet controller",
    ),
    unsupported(
        "an ApplicationSet with a generator of no known kind",
        unknown_generator,
        "Argo CD yields nothing for it either: take the generator out",
    ),
    differs("what a plugin generator was asked with (`generator.input.parameters`), in templates", |s| {
        generators(s).into_iter().find(|name| name == "plugin")
    }),
    differs("RollingSync of ApplicationSets", rolling),
    differs(
        "RollingSync, where only the spec of an Application changes and it stays Synced and Healthy",
        rolling,
    ),
    differs("RollingSync without steps", |s| {
        let steps = field(s, &["spec", "strategy", "rollingSync", "steps"]).and_then(Value::as_array);
        rolling(s).filter(|_| steps.is_none_or(Vec::is_empty))
    }),
    differs("`deletionOrder: Reverse`", |s| {
        field(s, &["spec", "strategy", "deletionOrder"])?
            .as_str()
            .map(|order| format!("deletionOrder: {order}"))
    }),
    differs("random functions in templates of ApplicationSets", |s| {
        let text = field(s, &["spec"])?.to_string();
        let random = ["randAlpha", "randNumeric", "randAscii", "uuidv4", "randInt", "shuffle"];
        random.into_iter().find(|name| text.contains(name)).map(str::to_owned)
    }),
    differs("a `templatePatch` of what `valuesObject` already nests", |s| {
        let text = field(s, &["spec", "templatePatch"])?.as_str()?;
        text.contains("valuesObject").then(|| "templatePatch with valuesObject".to_owned())
    }),
];

fn field<'a>(subject: &Subject<'a>, path: &[&str]) -> Option<&'a Value> {
    subject.object.at(path).filter(|value| !value.is_null())
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn has(project: &Value, name: &str) -> bool {
    match project.at(&["spec", name]) {
        None | Some(Value::Null) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    }
}

fn automated<'a>(subject: &Subject<'a>) -> Option<&'a Value> {
    let automated = field(subject, &["spec", "syncPolicy", "automated"])?;
    (automated.get("enabled").and_then(Value::as_bool) != Some(false)).then_some(automated)
}

/// All sources of an Application.
fn sources<'a>(subject: &Subject<'a>) -> Vec<&'a Value> {
    let many = field(subject, &["spec", "sources"]).and_then(Value::as_array).into_iter().flatten();
    many.chain(field(subject, &["spec", "source"])).collect()
}

/// A sync option with a value, as it is written.
fn option(subject: &Subject<'_>, name: &str, value: &str) -> Option<String> {
    let options = field(subject, &["spec", "syncPolicy", "syncOptions"])?.as_array()?;
    let wanted = format!("{name}={value}");
    options
        .iter()
        .filter_map(Value::as_str)
        .find(|option| option.replace(' ', "") == wanted)
        .map(str::to_owned)
}

fn plugin(subject: &Subject<'_>) -> Option<String> {
    let plugin = sources(subject)
        .into_iter()
        .find_map(|source| source.get("plugin").filter(|value| !value.is_null()))?;
    match plugin.str_at(&["name"]).unwrap_or_default() {
        "" => Some("a plugin that is found by the files of the source".to_owned()),
        name => Some(format!("plugin {name}")),
    }
}

fn hydrator(subject: &Subject<'_>) -> Option<String> {
    field(subject, &["spec", "sourceHydrator"]).map(|_| "sourceHydrator".to_owned())
}

fn local_repository(subject: &Subject<'_>) -> Option<String> {
    let urls = sources(subject).into_iter().filter_map(|source| source.str_at(&["repoURL"]));
    let mut local = urls.filter(|url| url.starts_with("file://") || url.starts_with('/'));
    local.next().map(str::to_owned)
}

/// The Applications that an Application brings.
fn child_applications(subject: &Subject<'_>) -> Option<String> {
    let resources = field(subject, &["status", "resources"])?.as_array()?;
    let is_app = |entry: &&Value| {
        entry.str_at(&["kind"]) == Some("Application") && entry.str_at(&["group"]) == Some(names::GROUP)
    };
    let count = resources.iter().filter(is_app).count();
    (count > 0).then(|| format!("it brings {count} Applications"))
}

fn waves(subject: &Subject<'_>) -> Option<String> {
    let resources = field(subject, &["status", "resources"])?.as_array()?;
    let has_wave = resources
        .iter()
        .any(|entry| entry.get("syncWave").and_then(Value::as_i64).is_some_and(|wave| wave != 0));
    has_wave.then(|| "sync waves and automated.prune".to_owned())
}

fn shared(subject: &Subject<'_>) -> Option<String> {
    let conditions =
        field(subject, &["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    let mut shared =
        conditions.filter(|condition| condition.str_at(&["type"]) == Some("SharedResourceWarning"));
    let told = shared.next().and_then(|condition| condition.str_at(&["message"])).map(str::to_owned);
    let set = ["true", "false"].into_iter().find_map(|value| option(subject, "FailOnSharedResource", value));
    told.or(set)
}

/// A file by the name of a source that no source has.
fn missing_reference(subject: &Subject<'_>) -> Option<String> {
    let all = sources(subject);
    let known: BTreeSet<&str> = all.iter().filter_map(|source| source.str_at(&["ref"])).collect();
    let files = all.iter().flat_map(|source| {
        let values = source.at(&["helm", "valueFiles"]).and_then(Value::as_array).into_iter().flatten();
        let parameters =
            source.at(&["helm", "fileParameters"]).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str).chain(parameters.filter_map(|parameter| parameter.str_at(&["path"])))
    });
    let mut missing = files.filter(|file| {
        let name = file.strip_prefix('$').and_then(|rest| rest.split('/').next());
        name.is_some_and(|name| !known.contains(name))
    });
    missing.next().map(str::to_owned)
}

fn oci_chart(subject: &Subject<'_>) -> Option<String> {
    let is_one = |source: &&Value| {
        source.str_at(&["repoURL"]).is_some_and(|url| url.starts_with("oci://"))
            && source.str_at(&["chart"]).is_some_and(|chart| !chart.is_empty())
    };
    sources(subject).into_iter().find(is_one)?.str_at(&["chart"]).map(|chart| format!("chart {chart}"))
}

fn ignores(subject: &Subject<'_>, name: &str) -> Option<String> {
    let rules = field(subject, &["spec", "ignoreDifferences"])?.as_array()?;
    let mut with = rules
        .iter()
        .filter(|rule| rule.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty()));
    let kind = with.next()?.str_at(&["kind"]).unwrap_or_default();
    Some(format!("ignoreDifferences of {kind}: {name}"))
}

fn deletion_hooks(subject: &Subject<'_>) -> Option<String> {
    let held = field(subject, &["metadata", "finalizers"])?.as_array()?;
    let hooks = ["pre-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io"];
    let mut held = held.iter().filter_map(Value::as_str);
    held.find(|held| hooks.iter().any(|hook| held.starts_with(hook))).map(str::to_owned)
}

/// A denial in the project of an Application.
fn denials(subject: &Subject<'_>) -> Option<String> {
    let spec = subject.project?.get("spec")?;
    let list = |name: &str| spec.get(name).and_then(Value::as_array).into_iter().flatten();
    let repositories = list("sourceRepos").filter_map(Value::as_str);
    let destinations = list("destinations").flat_map(|destination| {
        ["server", "name", "namespace"].into_iter().filter_map(|field| destination.str_at(&[field]))
    });
    let mut all = repositories.chain(destinations);
    all.find(|pattern| pattern.starts_with('!')).map(|pattern| format!("{pattern} in its project"))
}

fn rolling(subject: &Subject<'_>) -> Option<String> {
    let kind = field(subject, &["spec", "strategy", "type"])?.as_str()?;
    (kind == "RollingSync").then(|| "strategy: RollingSync".to_owned())
}

/// The names of all generators of a set, nested ones included.
fn generators(subject: &Subject<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(field(subject, &["spec", "generators"]), 0, &mut names);
    names
}

fn collect(list: Option<&Value>, depth: usize, names: &mut BTreeSet<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    for generator in list.and_then(Value::as_array).into_iter().flatten() {
        for (name, value) in generator.as_object().into_iter().flatten() {
            if name != "selector" && !value.is_null() {
                names.insert(name.clone());
            }
            collect(value.get("generators"), depth + 1, names);
        }
    }
}

fn unknown_generator(subject: &Subject<'_>) -> Option<String> {
    generators(subject).into_iter().find(|name| !GENERATOR_KINDS.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::{differences::row, plan::EVERYWHERE, settings};

    #[test]
    fn each_rule_is_a_row_of_the_page() {
        let rules = APPLICATION.iter().chain(SET).map(|rule| rule.subject);
        for subject in rules.chain(EVERYWHERE).chain(settings::SUBJECTS) {
            assert!(row(subject).is_some(), "docs/differences.md has no row {subject:?}");
        }
    }
}
