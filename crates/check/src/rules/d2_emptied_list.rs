//! # A patch takes a list away
//!
//! In a strategic merge patch a key without a value deletes what the base has. So it is where all items below
//! a key were removed or commented out, and the key was left. Lists that are not merged item by item, such as
//! `args`, `rules` or `tolerations`, are lost as a whole.
//!
//! People see: nothing while it is built; a container without its arguments, a role without rules.
//!
//! ## Bad
//! ```yaml
//! # the base has args: [--config, /etc/web.yaml]
//! args:
//!   # - --verbose
//! ```
//! ## Good
//! ```yaml
//! args: [--config, /etc/web.yaml, --verbose]
//! ```
//! ## When to suppress
//! Where the list is to be deleted: write `null` or `[]`, so that readers see it.

use std::sync::Arc;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_kustomize::FILE_NAMES;
use tiphys_value::{FieldPath, Location, ObjectExt, Segment, Value};
use tiphys_vfs::{base_name, join, parent};
use tiphys_yaml::Profile;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::place,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-emptied-list",
    incident: "D2",
    severity: Severity::Warning,
    title: "a patch takes a list away",
    page: page!("d2_emptied_list.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    let mut once = Once::default();
    for kustomization in files.paths().filter(|path| FILE_NAMES.contains(&base_name(path))) {
        let Some(content) = files.value(kustomization) else { continue };
        let folder = parent(kustomization).unwrap_or_default();
        let old = list(&content, "patchesStrategicMerge").iter().filter_map(Value::as_str);
        let new = list(&content, "patches").iter().map(|it| text(it, "path"));
        for patch in old.chain(new).filter(|it| !it.is_empty() && !it.contains('\n')) {
            let known = join(folder, patch).ok().filter(|path| files.contains(path));
            if let Some(path) = known {
                let path: Arc<str> = path.into();
                of_patch(context, &path, &mut once);
            }
        }
    }
    once.report(report);
}

/// The keys of a patch that are left without a value, where a base has a list.
fn of_patch(context: &Context<'_>, path: &Arc<str>, once: &mut Once) -> Option<()> {
    let files = &context.survey.files;
    let content = files.text(path)?;
    let document = tiphys_yaml::parse_first(&content, Profile::Go2).ok()??;
    let patch = files.value(path)?;
    // A patch of one document says which object it is for.
    if patch.kind().is_empty() || patch.name().is_empty() || content.contains("\n---") {
        return None;
    }
    let mut left = Vec::new();
    without_value(&patch, &FieldPath::default(), &mut left, 0);
    for field in left {
        let start = place(&document.root, &field);
        let line = content.lines().nth(start.line.max(1) as usize - 1).unwrap_or_default();
        // Who writes `null` means it.
        if line.contains("null") || line.contains('~') {
            continue;
        }
        let Some((base, items)) = base_of(context, &patch, path, &field) else { continue };
        let span = files.span(&Location::new(path.clone(), start.line, start.column));
        let what =
            format!("{path} leaves {} without a value, and takes away what the base has", field_text(&field));
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(span, "a key without a value deletes")
            .see(context.survey.start(base), format!("the base has {items}"))
            .because("in a strategic merge patch a null deletes the field that it stands for")
            .help("leave the key out, or write `[]` where the list is to be empty");
        once.add(&what, Finding::new(RULE.incident, diagnostic).object(base.title()).likely());
    }
    Some(())
}

fn field_text(field: &FieldPath) -> String {
    field.to_string().trim_start_matches('.').to_owned()
}

/// The fields below a value that are null.
fn without_value(value: &Value, path: &FieldPath, found: &mut Vec<FieldPath>, depth: usize) {
    const DEEPEST: usize = 24;
    match value {
        _ if depth > DEEPEST => {}
        Value::Null if depth > 0 => found.push(path.clone()),
        Value::Object(fields) => {
            for (key, inner) in fields {
                without_value(inner, &path.key(key), found, depth + 1);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                without_value(item, &path.index(at), found, depth + 1);
            }
        }
        _ => {}
    }
}

/// The object of another file that a patch is for, and the items of its list at a field.
fn base_of<'a>(
    context: &Context<'a>,
    patch: &Value,
    path: &str,
    field: &FieldPath,
) -> Option<(&'a Object, String)> {
    let is_meant = |it: &&Object| {
        it.value().kind() == patch.kind()
            && it.value().name() == patch.name()
            && it.rendered.location.file.as_ref() != path
    };
    context.survey.objects.iter().filter(is_meant).find_map(|object| {
        let file = context.survey.files.text(&object.rendered.location.file)?;
        let documents = file.split("\n---").filter_map(|text| tiphys_yaml::from_yaml(text).ok());
        let mut documents =
            documents.filter(|it: &Value| it.kind() == patch.kind() && it.name() == patch.name());
        let base = documents.next()?;
        let items = in_base(&base, patch, field)?.as_array().filter(|items| !items.is_empty())?.clone();
        Some((object, Value::Array(items).to_string()))
    })
}

/// A field of the base: items of lists are found by their names.
fn in_base<'b>(base: &'b Value, patch: &Value, field: &FieldPath) -> Option<&'b Value> {
    let (mut at, mut beside) = (base, patch);
    for step in &field.0 {
        (at, beside) = match step {
            Segment::Key(key) => (at.get(key)?, beside.get(key)?),
            Segment::Index(index) => {
                let item = beside.get(*index)?;
                let name = item.str_at(&["name"])?;
                (at.as_array()?.iter().find(|it| it.str_at(&["name"]) == Some(name))?, item)
            }
        };
    }
    Some(at)
}
