//! Places and words that several rules use.

use tiphys_diag::Span;
use tiphys_graph::{App, Object, order::Step};
use tiphys_model::{SyncPhase, names};
use tiphys_value::{FieldPath, ObjectExt};

use crate::Context;

/// The place that says in which wave an object is applied: its annotation, else where it begins.
pub(crate) fn wave(context: &Context<'_>, object: &Object) -> Span {
    for annotation in [names::SYNC_WAVE, names::HELM_HOOK_WEIGHT] {
        if object.value().annotation(annotation).is_some() {
            let field = FieldPath::default().key("metadata").key("annotations").key(annotation);
            return context.survey.span(object, &field);
        }
    }
    context.survey.start(object)
}

/// The place where an Application names what it renders.
pub(crate) fn source(context: &Context<'_>, app: &App) -> Span {
    let spec = FieldPath::default().key("spec");
    let single = app.declared.value.at(&["spec", "source", "path"]).is_some();
    let field = if single { spec.key("source").key("path") } else { spec.key("sources") };
    context.survey.app_span(app, &field)
}

/// What an Application's operation says when it waits for an object.
pub(crate) fn waiting_for(object: &Object) -> String {
    let what = if object.hooks.is_empty() { "healthy state" } else { "completion of hook" };
    let key = &object.key;
    let what = if object.hooks.is_empty() { format!("{what} of") } else { what.to_owned() };
    format!("`waiting for {what} {}/{}/{}`", key.group, key.kind, key.name)
}

/// A step beside another: with its phase where the two differ in it.
pub(crate) fn step(step: Step, beside: Step) -> String {
    if step.phase == beside.phase && step.phase == SyncPhase::Sync {
        format!("wave {}", step.wave)
    } else {
        format!("{:?} wave {}", step.phase, step.wave)
    }
}
