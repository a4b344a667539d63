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
            for object in &open {
                self.evaluate(&object.value);
            }
            let all = open.iter().flat_map(|object| applications(&self.sets, &object.value));
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

    /// Asks an ApplicationSet once what it yields.
    fn evaluate(&mut self, declared: &Value) {
        if declared.kind() == "Application" {
            return;
        }
        let (input, clusters) = (self.input, &self.clusters);
        self.sets
            .entry(declared.to_string())
            .or_insert_with(|| application_sets::evaluate(declared, input, clusters));
    }
}

/// An Application itself, or those that an ApplicationSet yields which was evaluated.
fn applications<'a>(
    sets: &'a HashMap<String, Yielded>,
    declared: &'a Value,
) -> impl Iterator<Item = &'a Value> {
    let is_application = declared.kind() == "Application";
    let yielded = (!is_application).then(|| sets.get(&declared.to_string())).flatten();
    let of_set = yielded.into_iter().flat_map(|yielded| yielded.apps.iter().map(|app| &app.application));
    is_application.then_some(declared).into_iter().chain(of_set)
}

/// The declarations among what an Application renders to.
pub(super) fn declaring(rendering: &Rendering) -> Vec<Arc<RenderedObject>> {
    rendering.objects.iter().filter(|object| declares(&object.value)).cloned().collect()
}

/// What a declaration is distinguished by.
pub(super) fn place(declared: &RenderedObject) -> (Arc<str>, String) {
    (declared.location.file.clone(), declared.value.name().to_owned())
}
