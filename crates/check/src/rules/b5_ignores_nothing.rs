//! # An ignore rule that fits nothing
//!
//! `ignoreDifferences` names fields of kinds. A group that is no group (`core`, `apps/v1`, or none for a kind
//! that has one), a kind in the plural, a JSON pointer with a wildcard or with an unescaped slash: none of
//! these is refused, none fits, and the difference stays.
//!
//! People see: an Application that stays OutOfSync though the difference is ignored, and that self-heal syncs
//! again and again.
//!
//! ## Bad
//! ```yaml
//! ignoreDifferences:
//! - kind: Deployment                # of group apps
//!   jsonPointers: [/spec/template/spec/containers/*/image]
//! ```
//! ## Good
//! ```yaml
//! ignoreDifferences:
//! - group: apps
//!   kind: Deployment
//!   jqPathExpressions: ['.spec.template.spec.containers[].image']
//! ```
//! ## When to suppress
//! Where a kind of that name and group is served by something that the repository does not have.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use tiphys_diag::Severity;
use tiphys_graph::{Object, Survey};
use tiphys_schema::Catalog;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "B5-ignores-nothing",
    incident: "B5",
    severity: Severity::Warning,
    title: "an ignore rule that fits nothing",
    page: page!("b5_ignores_nothing.rs"),
    check,
};

/// Groups by the names of their kinds.
type Groups<'s> = BTreeMap<&'s str, BTreeSet<&'s str>>;

/// The groups in which Kubernetes itself has a kind, by the kind's name.
static GROUPS: LazyLock<Groups<'_>> = LazyLock::new(|| {
    let mut groups = Groups::new();
    for kind in Catalog::latest().kinds() {
        groups.entry(&kind.gvk.kind).or_default().insert(&kind.gvk.group);
    }
    groups
});

/// The objects of the repository, of which most kinds are never asked for.
struct RepositoryKinds<'s> {
    survey: &'s Survey,
    groups: OnceCell<Groups<'s>>,
}

impl<'s> RepositoryKinds<'s> {
    /// The groups in which there are objects of each kind.
    fn groups(&self) -> &Groups<'s> {
        self.groups.get_or_init(|| {
            let mut groups = Groups::new();
            for object in &self.survey.objects {
                groups.entry(&object.key.kind).or_default().insert(&object.key.group);
            }
            groups
        })
    }
}

/// What is wrong with a rule: where, what it says, and what to write.
struct BadIgnoreRule {
    field: FieldPath,
    what: String,
    effect: &'static str,
    help: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let known = RepositoryKinds { survey: context.survey, groups: OnceCell::new() };
    for object in &context.survey.objects {
        let holder: &[&str] = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("argoproj.io", "Application") => &["spec"],
            ("argoproj.io", "ApplicationSet") => &["spec", "template", "spec"],
            _ => continue,
        };
        let path = keys(holder).key("ignoreDifferences");
        let rules = path.get(object.value()).and_then(Value::as_array).into_iter().flatten();
        for (at, rule) in rules.enumerate() {
            for fault in faults(&known, rule, &path.index(at)) {
                add(context, object, fault, &mut once);
            }
        }
    }
    once.report(report);
}

fn faults(known: &RepositoryKinds<'_>, rule: &Value, path: &FieldPath) -> Vec<BadIgnoreRule> {
    if !rule.is_object() {
        return Vec::new();
    }
    let ways = ["jsonPointers", "jqPathExpressions", "managedFieldsManagers"];
    if ways.iter().all(|way| list(rule, way).is_empty()) {
        return vec![BadIgnoreRule {
            field: path.clone(),
            what: format!("{} without a field", text(rule, "kind")),
            effect: "which fields is not said",
            help: format!("name the fields under `{}`, or take the rule out", ways[1]),
        }];
    }
    let pointers = list(rule, "jsonPointers").iter().enumerate();
    let pointers = pointers.filter_map(|(at, pointer)| Some((at, pointer.as_str()?)));
    let kind = kind_fault(known, text(rule, "group"), text(rule, "kind"), path);
    kind.into_iter()
        .chain(pointers.filter_map(|(at, it)| pointer_fault(it, path.key("jsonPointers").index(at))))
        .collect()
}

/// A group and kind that nothing has.
fn kind_fault(
    known: &RepositoryKinds<'_>,
    group: &str,
    kind: &str,
    path: &FieldPath,
) -> Option<BadIgnoreRule> {
    let is_open = |text: &str| text.contains(['*', '?', '[', '{', '$']);
    if is_open(group) || is_open(kind) || kind.is_empty() {
        return None;
    }
    // A group that is left out has no place.
    let place = |field: &str| path.key(if group.is_empty() { "kind" } else { field });
    let fault = |field: &str, what: String, help: String| {
        Some(BadIgnoreRule { field: place(field), what, effect: "nothing is of this group and kind", help })
    };
    let said = |group: &str| format!("{kind} of group {group:?}");
    let write = |group: &str| match group {
        "" => "leave `group` out: the core group has no name".to_owned(),
        group => format!("write `group: {group}`"),
    };
    if let Some((before, _)) = group.split_once('/') {
        return fault("group", said(group), write(if before == "core" { "" } else { before }));
    }
    if matches!(group, "core" | "v1") {
        return fault("group", said(group), write(""));
    }
    if let Some(groups) = GROUPS.get(kind) {
        let is_elsewhere = !groups.contains(group) && (group.is_empty() || is_of_kubernetes(group));
        let first = groups.iter().next().filter(|_| is_elsewhere)?;
        return fault("group", said(group), write(first));
    }
    if let Some(meant) = spelt_otherwise(kind) {
        return fault("kind", said(group), format!("write `kind: {meant}`"));
    }
    // Of one without a group nothing is known.
    let first =
        known.groups().get(kind).filter(|_| group.is_empty())?.first().filter(|other| !other.is_empty())?;
    fault("kind", said(group), write(first))
}

/// Whether Kubernetes itself has kinds in a group.
fn is_of_kubernetes(group: &str) -> bool {
    GROUPS.values().any(|groups| groups.contains(group))
}

/// The kind of Kubernetes that a name means which is in the plural, or of other letters.
fn spelt_otherwise(kind: &str) -> Option<&'static str> {
    let small = kind.to_ascii_lowercase();
    let kinds = Catalog::latest().kinds().iter();
    let fits =
        |known: &&tiphys_schema::Kind| known.gvk.kind.eq_ignore_ascii_case(kind) || known.plural == small;
    kinds.into_iter().find(fits).map(|known| known.gvk.kind.as_str())
}

/// A JSON pointer that leads nowhere in any object.
fn pointer_fault(pointer: &str, field: FieldPath) -> Option<BadIgnoreRule> {
    let fault = |effect: &'static str, help: String| {
        Some(BadIgnoreRule { field: field.clone(), what: format!("JSON pointer {pointer:?}"), effect, help })
    };
    if pointer.contains("{{") {
        return None;
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return fault("no JSON pointer: one begins with a slash", "write `/spec/replicas`, say".to_owned());
    };
    let steps: Vec<&str> = rest.split('/').collect();
    if steps.contains(&"*") {
        return fault(
            "a JSON pointer has no wildcards",
            "write a jq path expression, such as `.spec.containers[].image`".to_owned(),
        );
    }
    // Keys below these have no maps in them.
    let holder = steps
        .windows(2)
        .position(|pair| pair[0] == "metadata" && matches!(pair[1], "annotations" | "labels"))?;
    let key = steps.get(holder + 2..).filter(|key| key.len() > 1)?;
    let way = steps[..holder + 2].join("/");
    fault("the slash in the key parts it in two", format!("write `/{way}/{}`", key.join("~1")))
}

fn add(context: &Context<'_>, object: &Object, fault: BadIgnoreRule, once: &mut Once) {
    if placeholders::is_in(&fault.what) {
        return;
    }
    let diagnostic = RULE
        .diagnostic(format!("{} ignores {}, which fits nothing", object.title(), fault.what))
        .at(context.survey.span(object, &fault.field), fault.effect)
        .because("a rule that fits nothing is passed over without a word, and the difference stays")
        .help(fault.help);
    once.add(&fault.what, RULE.finding(context, object, diagnostic));
}
