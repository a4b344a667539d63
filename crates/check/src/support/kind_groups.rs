//! Groups and kinds that somebody names apart from an object: in ignore rules, in projects.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use tiphys_graph::Survey;
use tiphys_schema::{Catalog, Kind};

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

/// The kinds of Kubernetes and of the repository's objects, of which most are never asked for.
pub(crate) struct KindGroups<'s> {
    survey: &'s Survey,
    of_objects: OnceCell<Groups<'s>>,
}

/// A group and kind that nothing has.
pub(crate) struct UnknownKind {
    /// The field that is wrong, `group` or `kind`.
    pub field: &'static str,
    /// What to write.
    pub help: String,
}

impl<'s> KindGroups<'s> {
    /// Those of a repository.
    pub(crate) fn from_survey(survey: &'s Survey) -> Self {
        Self { survey, of_objects: OnceCell::new() }
    }

    /// The groups in which the repository has objects of each kind.
    fn of_objects(&self) -> &Groups<'s> {
        self.of_objects.get_or_init(|| {
            let mut groups = Groups::new();
            for object in &self.survey.objects {
                groups.entry(&object.key.kind).or_default().insert(&object.key.group);
            }
            groups
        })
    }

    /// Why nothing is of a group and kind; `None` if something may be, as with patterns.
    pub(crate) fn fault(&self, group: &str, kind: &str) -> Option<UnknownKind> {
        let is_open = |text: &str| text.contains(['*', '?', '[', '{', '$']);
        if is_open(group) || is_open(kind) || kind.is_empty() {
            return None;
        }
        // A group that is left out has no place.
        let field = if group.is_empty() { "kind" } else { "group" };
        let of_group = |meant: &str| Some(UnknownKind { field, help: write_group(meant) });
        if let Some((before, _)) = group.split_once('/') {
            return of_group(if before == "core" { "" } else { before });
        }
        if matches!(group, "core" | "v1") {
            return of_group("");
        }
        if let Some(groups) = GROUPS.get(kind) {
            let is_elsewhere = !groups.contains(group) && (group.is_empty() || is_of_kubernetes(group));
            return of_group(groups.iter().next().filter(|_| is_elsewhere)?);
        }
        if let Some(meant) = spelt_otherwise(kind) {
            return Some(UnknownKind { field: "kind", help: format!("write `kind: {meant}`") });
        }
        // Of one without a group nothing is known.
        let groups = self.of_objects().get(kind).filter(|_| group.is_empty())?;
        of_group(groups.first().filter(|other| !other.is_empty())?)
    }
}

fn write_group(group: &str) -> String {
    match group {
        "" => "leave `group` out: the core group has no name".to_owned(),
        group => format!("write `group: {group}`"),
    }
}

/// Whether Kubernetes itself has kinds in a group.
fn is_of_kubernetes(group: &str) -> bool {
    GROUPS.values().any(|groups| groups.contains(group))
}

/// The kind of Kubernetes that a name means which is in the plural, or of other letters.
fn spelt_otherwise(kind: &str) -> Option<&'static str> {
    let small = kind.to_ascii_lowercase();
    let kinds = Catalog::latest().kinds().iter();
    let fits = |known: &&Kind| known.gvk.kind.eq_ignore_ascii_case(kind) || known.plural == small;
    kinds.into_iter().find(fits).map(|known| known.gvk.kind.as_str())
}
