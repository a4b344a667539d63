//! Following what Applications and ApplicationSets declare, to its end.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use tiphys_value::{ObjectExt, RenderedObject, Value};

use super::{
    application_sets::{self, Yielded},
    declarations::declares,
    found::Found,
    render_cache::MAX_APPLICATIONS,
    rendering::Rendering,
};

/// An Application that was followed: its name, and what it renders to.
pub(super) struct Followed {
    name: String,
    pub rendering: Arc<Rendering>,
}

impl Followed {
    /// Whether what the Application leads to is that Application. An ApplicationSet may well have the name of
    /// the Application that renders it.
    pub(super) fn is_from(&self, declared: &Value) -> bool {
        declared.kind() == "Application" && declared.name() == self.name
    }
}

impl Found<'_> {
    /// Where the Applications stand that these lead to.
    pub(super) fn declared_from(
        &mut self,
        declared: Vec<Arc<RenderedObject>>,
    ) -> HashSet<(Arc<str>, String)> {
        let followed = self.follow(declared);
        followed.iter().flat_map(|it| declaring(&it.rendering)).map(|object| place(&object)).collect()
    }

    /// Renders Applications and what they declare in turn, to the end. Returns what each rendered to.
    pub(super) fn follow(&mut self, declared: Vec<Arc<RenderedObject>>) -> Vec<Followed> {
        let mut done: Vec<Followed> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut open = declared;
        while !open.is_empty() && done.len() < MAX_APPLICATIONS {
            let texts: Vec<Option<String>> = open.iter().map(|it| self.evaluate(&it.value)).collect();
            let declared = open.iter().zip(&texts);
            let all = declared.flat_map(|(it, text)| applications(&self.sets, &it.value, text.as_ref()));
            let applications: Vec<&Value> = all.filter(|it| seen.insert(it.to_string())).collect();
            self.memo.render(&applications, self.input);
            let rendered = applications.into_iter().filter_map(|application| {
                let rendering = self.memo.get(application)?.clone();
                Some(Followed { name: application.name().to_owned(), rendering })
            });
            let rendered: Vec<Followed> = rendered.collect();
            open = rendered.iter().flat_map(|followed| declaring(&followed.rendering)).collect();
            done.extend(rendered);
        }
        done
    }

    /// Asks an ApplicationSet once what it yields. Returns its text, by which that is found; `None` for an
    /// Application.
    fn evaluate(&mut self, declared: &Value) -> Option<String> {
        if declared.kind() == "Application" {
            return None;
        }
        let (input, clusters, text) = (self.input, &self.clusters, declared.to_string());
        if !self.sets.contains_key(&text) {
            self.sets.insert(text.clone(), application_sets::evaluate(declared, input, clusters));
        }
        Some(text)
    }
}

/// An Application itself, or those that an ApplicationSet of this text yields.
fn applications<'a>(
    sets: &'a HashMap<String, Yielded>,
    declared: &'a Value,
    text_of_set: Option<&String>,
) -> impl Iterator<Item = &'a Value> {
    let yielded = text_of_set.and_then(|text| sets.get(text));
    let of_set = yielded.into_iter().flat_map(|yielded| yielded.apps.iter().map(|app| &app.application));
    text_of_set.is_none().then_some(declared).into_iter().chain(of_set)
}

/// The declarations among what an Application renders to.
pub(super) fn declaring(rendering: &Rendering) -> Vec<Arc<RenderedObject>> {
    rendering.objects.iter().filter(|object| declares(&object.value)).cloned().collect()
}

/// What a declaration is distinguished by.
pub(super) fn place(declared: &RenderedObject) -> (Arc<str>, String) {
    (declared.location.file.clone(), declared.value.name().to_owned())
}
