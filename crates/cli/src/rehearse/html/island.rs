//! The story as the data of the page: every text once, every moment a row of numbers.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use tiphys_diag::sanitize;
use tiphys_stage::{
    object_state::Level,
    story::{Moment, Story, What},
};
use tiphys_value::ResourceKey;

use super::super::report::Report;

/// How many moments a page holds; more are slow to draw.
const MOST: usize = 60_000;

/// The data as JSON that ends no script and commands nothing.
pub(super) fn json(report: &Report) -> String {
    let text = data(&report.story, &report.places).to_string();
    let text = sanitize::without_passwords(&text);
    // These three mean something to HTML only, and stand within texts only.
    sanitize::json(&text).replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// Texts by number; 0 is the empty one.
struct Texts {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Texts {
    fn new() -> Self {
        Self { all: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }

    fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Objects by number, in the order in which they appear.
#[derive(Default)]
struct Objects<'a> {
    numbers: BTreeMap<(usize, &'a ResourceKey), usize>,
    rows: Vec<(usize, &'a ResourceKey)>,
    /// Application and maker of each, and whether it came from Git.
    about: Vec<(Option<&'a str>, Option<&'a ResourceKey>, bool)>,
}

impl<'a> Objects<'a> {
    fn number(&mut self, cluster: usize, key: &'a ResourceKey) -> usize {
        *self.numbers.entry((cluster, key)).or_insert_with(|| {
            self.rows.push((cluster, key));
            self.about.push((None, None, false));
            self.rows.len() - 1
        })
    }

    fn take(&mut self, moment: &'a Moment) -> usize {
        let number = self.number(moment.cluster, &moment.object);
        let maker = moment.made_by.as_ref().filter(|maker| **maker != moment.object);
        if let Some(maker) = maker {
            self.number(moment.cluster, maker);
        }
        let about = &mut self.about[number];
        about.0 = about.0.or(moment.application.as_deref());
        about.1 = about.1.or(maker);
        about.2 |= moment.from_git;
        number
    }
}

fn data(story: &Story, places: &BTreeMap<String, String>) -> Value {
    let mut texts = Texts::new();
    let mut objects = Objects::default();
    let moments: Vec<Value> = story
        .moments
        .iter()
        .take(MOST)
        .map(|moment| {
            let number = objects.take(moment);
            json!([
                moment.at_ms,
                number,
                change_code(moment.what),
                texts.number(&moment.from),
                texts.number(&moment.to),
                level(moment.level),
                texts.number(&moment.because),
                texts.number(&moment.fields.join(", "))
            ])
        })
        .collect();
    let causes: Vec<Vec<usize>> = story
        .causes
        .iter()
        .map(|cause| cause.objects.iter().map(|key| objects.number(0, key)).collect())
        .collect();
    let outages: Vec<Value> = story
        .outages
        .iter()
        .map(|one| json!([objects.number(0, &one.object), one.from_ms, one.to_ms]))
        .collect();
    let rows: Vec<Value> = objects
        .rows
        .iter()
        .zip(&objects.about)
        .map(|((cluster, key), (app, maker, from_git))| {
            let maker = maker.and_then(|maker| objects.numbers.get(&(*cluster, maker)));
            json!([
                texts.number(&key.group),
                texts.number(&key.kind),
                texts.number(&key.namespace),
                texts.number(&key.name),
                app,
                maker,
                from_git,
                cluster
            ])
        })
        .collect();
    json!({
        "tookMs": story.took_ms,
        "isGreen": story.is_green(),
        "apps": story.applications.iter().map(|app| json!({
            "id": app.id, "name": app.name, "namespace": app.namespace, "parent": app.parent, "wave": app.wave,
            "state": app.state, "isGreen": app.is_green, "began": app.began_ms, "waits": app.waits,
            "place": places.get(&app.id),
        })).collect::<Vec<_>>(),
        "objects": rows,
        "moments": moments,
        "causes": causes,
        "outages": outages,
        "leftOut": story.moments.len().saturating_sub(MOST),
        "texts": texts.all,
    })
}

fn change_code(what: What) -> u8 {
    match what {
        What::Created => 0,
        What::Changed => 1,
        What::State => 2,
        What::Deleted => 3,
    }
}

fn level(level: Level) -> u8 {
    match level {
        Level::Good => 0,
        Level::Moving => 1,
        Level::Bad => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_there_once() {
        let mut texts = Texts::new();
        let numbers = ["", "a", "b", "a"].map(|text| texts.number(text));
        assert_eq!((numbers, texts.all.len()), ([0, 1, 2, 1], 3));
    }
}
