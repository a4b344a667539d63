//! Where in the repository's files something stands.

use tiphys_diag::Span;
use tiphys_value::{FieldPath, Location, ObjectExt, OriginKind, RenderedObject, Value};

use super::{
    contents::Survey,
    files::Files,
    types::{App, Object},
};

impl Survey {
    /// The place of a field of an object: the last writer that stands in this repository, else where the
    /// object starts, else where its Application names the source.
    pub fn span(&self, object: &Object, field: &FieldPath) -> Span {
        let chain = object.rendered.origins.lookup(field);
        let here = chain.iter().map(|origin| &origin.location).find(|at| self.is_here(object, at));
        if let Some(location) = here {
            return self.files.span(location);
        }
        if self.is_here(object, &object.rendered.location) {
            return self.files.span(&object.rendered.location);
        }
        match self.app_of(object) {
            Some(app) => self.app_span(app, &source_field(app)),
            None => self.files.span(&object.rendered.location),
        }
    }

    /// The place of what decided a field of an object: the value that a chart was given, if that is where it
    /// came from, else as [`Self::span`]. Of several values it is that which says most of the field's text,
    /// then the first.
    pub fn value_span(&self, object: &Object, field: &FieldPath) -> Span {
        let chain = object.rendered.origins.lookup(field);
        let text = field.get(object.value()).and_then(Value::as_str).unwrap_or_default();
        let values = chain.iter().filter(|origin| origin.kind == OriginKind::Values);
        let here = values.map(|origin| &origin.location).filter(|at| self.is_here(object, at));
        // Of those that say as much the last counts, which is then the first.
        let here: Vec<_> = here.collect();
        let most = here.into_iter().rev().max_by_key(|at| self.said_of(text, at));
        most.map_or_else(|| self.span(object, field), |location| self.files.span(location))
    }

    /// How much of a text stands at a place of a values file, in bytes.
    fn said_of(&self, text: &str, at: &Location) -> usize {
        let file = self.files.text(&at.file);
        let line = file.as_ref().and_then(|file| file.lines().nth(at.line as usize - 1));
        let value = line.and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value);
        let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        if text.contains(value) { value.len() } else { 0 }
    }

    /// The place of a field of an Application's own declaration.
    pub fn app_span(&self, app: &App, field: &FieldPath) -> Span {
        declared_span(&self.files, &app.declared, field)
    }

    /// The place where an object begins.
    pub fn start(&self, object: &Object) -> Span {
        self.span(object, &FieldPath::default().key("kind"))
    }

    /// Whether a place in an object's origins lies in this repository, not in a chart or repository that
    /// was fetched.
    fn is_here(&self, object: &Object, at: &Location) -> bool {
        at.line > 0 && object.read.contains(&at.file)
    }
}

/// The place of a field of an object as it is declared in a file.
pub fn declared_span(files: &Files, declared: &RenderedObject, field: &FieldPath) -> Span {
    let chain = declared.origins.lookup(field);
    let location = chain.iter().map(|origin| &origin.location).find(|at| files.contains(&at.file));
    files.span(location.unwrap_or(&declared.location))
}

/// The field of an Application that says where its manifests are.
fn source_field(app: &App) -> FieldPath {
    let spec = FieldPath::default().key("spec");
    if app.declared.value.at(&["spec", "source"]).is_some() {
        spec.key("source")
    } else {
        spec.key("sources")
    }
}
