//! What mends an object that the API server refuses, where its answer and the repository leave one way only.

use std::collections::BTreeSet;

use tiphys_diag::{Edit, Span};
use tiphys_graph::{Object, Survey};
use tiphys_value::{FieldPath, Segment};

use super::{
    field_paths, image_option,
    pods::text,
    refusal::RefusalCause,
    scalar_fixes::{self, Wanted},
};

/// What to do about a refusal of the API server, and the edits that do it.
pub(crate) fn find(
    survey: &Survey,
    object: &Object,
    field: &FieldPath,
    cause: &RefusalCause,
) -> Option<(String, Vec<Edit>)> {
    if image_option::is_entry(field) {
        let entry = image_option::as_text(field.get(object.value())?)?;
        let edits = image_option::rewrite(survey, object, field);
        return Some((format!("write it as a text: {entry}"), edits.into_iter().collect()));
    }
    if let Some(wanted) = Wanted::from_refusal(cause) {
        let edits = scalar_fixes::rewrite(survey, object, field, wanted);
        let description = match wanted {
            Wanted::Text => "put it between quotes",
            Wanted::Number | Wanted::Boolean => "write it without quotes",
        };
        return (!edits.is_empty()).then(|| (description.to_owned(), edits));
    }
    let [Segment::Key(subjects), Segment::Index(_), Segment::Key(last)] = field.0.as_slice() else {
        return None;
    };
    if subjects != "subjects" || last != "namespace" || !cause.is_missing_value() {
        return None;
    }
    let (namespace, edit) = namespace_of_subject(survey, object, &field.parent()?)?;
    Some((format!("say `namespace: {namespace}`"), vec![edit]))
}

/// The namespace of a subject that names none: the only one in which the repository makes its service
/// account.
fn namespace_of_subject(survey: &Survey, object: &Object, subject: &FieldPath) -> Option<(String, Edit)> {
    let named = subject.get(object.value())?;
    if text(named, "kind") != "ServiceAccount" {
        return None;
    }
    let is_meant = |it: &&Object| {
        it.key.kind == "ServiceAccount" && it.key.name == text(named, "name") && it.world() == object.world()
    };
    let all: BTreeSet<&str> =
        survey.objects.iter().filter(is_meant).map(|it| it.key.namespace.as_str()).collect();
    let mut namespaces = all.into_iter().filter(|it| !it.is_empty());
    let only = namespaces.next().filter(|_| namespaces.next().is_none())?;
    let name = subject.key("name");
    let span = survey.span(object, &name);
    let content = survey.files.text(&span.file)?;
    let line = content.lines().nth(span.start.line.max(1) as usize - 1)?;
    // A line of its own behind the name's, as far to the right.
    let indent = line.find("name:")?;
    if !line[..indent].chars().all(|c| c == ' ' || c == '-') || line.contains('{') {
        return None;
    }
    let at = Span::point(span.file.clone(), span.start.line + 1, 1);
    let edit =
        field_paths::rewrite(object, &name, at, &format!("{}namespace: {only}\n", " ".repeat(indent)))?;
    Some((only.to_owned(), edit))
}
