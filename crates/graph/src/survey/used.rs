//! Which declarations somebody means to run: not those in folders of tests or of what is put away, and no
//! templates that another tool has still to fill in.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_value::{ObjectExt, RenderedObject, Value};

use super::notice::Notice;
use crate::unused_folders::put_away;

/// What files declare, sorted.
#[derive(Default)]
pub(super) struct Sorted {
    /// What somebody means to run.
    pub used: Vec<Arc<RenderedObject>>,
    /// What lies in folders that are put away, with the folder.
    aside: Vec<(String, Arc<RenderedObject>)>,
    /// What is told of templates.
    templates: Vec<Notice>,
}

impl Sorted {
    /// Everything, as it stands.
    pub(super) fn all(declared: Vec<Arc<RenderedObject>>) -> Self {
        Self { used: declared, ..Self::default() }
    }

    /// Sorts what the files of a folder declare. What lies above the folder does not count; what is put away,
    /// or a template, is used if there is nothing else.
    pub(super) fn among(declared: Vec<Arc<RenderedObject>>, folder: &str) -> Self {
        let named = declared.into_iter().filter(|it| !is_unnamed(&it.value));
        let (templates, declared): (Vec<_>, Vec<_>) = named.partition(|it| is_template(&it.value));
        if declared.is_empty() {
            // The API server says what is wrong with them.
            return Self::all(templates);
        }
        let templates = templates.iter().map(|it| template_notice(it)).collect();
        let (aside, used): (Vec<_>, Vec<_>) =
            declared.into_iter().partition(|it| folder_aside(&it.location.file, folder).is_some());
        if used.is_empty() {
            return Self { used: aside, templates, ..Self::default() };
        }
        let of = |it: Arc<RenderedObject>| Some((folder_aside(&it.location.file, folder)?, it));
        Self { used, aside: aside.into_iter().filter_map(of).collect(), templates }
    }

    /// Whether nothing of folders that are put away is used.
    pub(super) fn leaves_out(&self) -> bool {
        !self.aside.is_empty()
    }

    /// What is told of those that are left out, and that nothing used renders.
    pub(super) fn notices(&self, is_rendered: impl Fn(&RenderedObject) -> bool) -> Vec<Notice> {
        let mut folders: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (folder, declared) in self.aside.iter().filter(|(_, declared)| !is_rendered(declared)) {
            folders.entry(folder).or_default().push(declared.value.name().to_owned());
        }
        let aside =
            folders.into_iter().map(|(folder, names)| Notice::PutAway { folder: folder.clone(), names });
        self.templates.iter().cloned().chain(aside).collect()
    }
}

/// The folder above a file that says that what lies in it is put away; `start` is the folder that is looked
/// at.
pub(super) fn folder_aside(file: &str, start: &str) -> Option<String> {
    let start = if start.is_empty() { 0 } else { start.len() + 1 };
    let below = put_away(file.get(start..)?)?;
    Some(file[..start + below.len()].to_owned())
}

/// Of AppProjects, cluster Secrets and the like those that somebody means to run: those of a test would be
/// known to all others, too.
pub(super) fn used(
    objects: Vec<Arc<RenderedObject>>,
    folder: &str,
    leaves_out: bool,
) -> Vec<Arc<RenderedObject>> {
    let is_used = |it: &Arc<RenderedObject>| {
        let is_aside = leaves_out && folder_aside(&it.location.file, folder).is_some();
        !is_aside && !is_unnamed(&it.value) && !is_template(&it.value)
    };
    objects.into_iter().filter(is_used).collect()
}

/// Whether a name is one that some generator of files has still to fill in.
fn is_unnamed(object: &Value) -> bool {
    let name = object.name();
    let is_upper = |c: char| c.is_ascii_uppercase() || c == '_';
    is_open(name) || (name.starts_with("__") && name.chars().all(is_upper))
}

/// Whether a namespace is one that another tool (Terraform, envsubst, Jinja) has still to fill in: nothing of
/// the object can be applied as it stands.
fn is_template(object: &Value) -> bool {
    is_open(object.namespace())
}

fn is_open(text: &str) -> bool {
    ["${", "{{", "<"].iter().any(|mark| text.contains(mark))
}

fn template_notice(declared: &RenderedObject) -> Notice {
    let location = &declared.location;
    Notice::Template {
        place: format!("{}:{}", location.file, location.line),
        kind: declared.value.kind().to_owned(),
        name: declared.value.name().to_owned(),
        namespace: declared.value.namespace().to_owned(),
    }
}
