//! What changed fields were, what they are, and where that is written.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tiphys_apiserver::Snapshot;
use tiphys_value::{FieldPath, Location, ObjectExt, Origin, OriginKind, RenderedObject, ResourceKey, Value};

use super::{
    effects::{Effect, Effects, FieldChange},
    story_locations::line_of,
};
use crate::up::plan::Plan;

/// How long a value is that is told.
const LONG: usize = 80;

/// Adds to the changed objects of a change what their fields were and are.
pub(super) fn add(effects: &mut Effects, (was, is): (&Snapshot, &Snapshot), plans: (Option<&Plan>, &Plan)) {
    let changed = effects.applications.values().flat_map(|app| &app.objects);
    let wanted: BTreeSet<&ResourceKey> =
        changed.filter(|one| one.effect.is_change()).map(|one| &one.object).collect();
    if wanted.is_empty() {
        return;
    }
    let rendered = plans.1.rendered().map(|object| (object.value.resource_key(), object));
    let rendered: HashMap<ResourceKey, &RenderedObject> =
        rendered.filter(|(key, _)| wanted.contains(key)).collect();
    let lines = NewLines { before: plans.0, after: plans.1 };
    for one in effects.applications.values_mut().flat_map(|app| &mut app.objects) {
        let Effect::Changed { fields, values } = &mut one.effect else { continue };
        let (Some(was), Some(is)) = (was.with_key(&one.object), is.with_key(&one.object)) else { continue };
        let is_secret = one.object.group.is_empty() && one.object.kind == "Secret";
        let of_field = |field: &String| {
            let Ok(path) = field.parse::<FieldPath>() else {
                return FieldChange { field: field.clone(), ..FieldChange::default() };
            };
            let place = rendered.get(&one.object).and_then(|object| lines.place(object, &path));
            let (from, to) = if is_secret {
                (None, None)
            } else {
                short_values(path.get(was.value()), path.get(is.value()))
            };
            FieldChange { field: field.clone(), from, to, place }
        };
        *values = fields.iter().map(of_field).collect();
    }
}

/// Both values as texts, or neither if one of them is too long.
fn short_values(from: Option<&Value>, to: Option<&Value>) -> (Option<String>, Option<String>) {
    let texts = (from.map(short_text), to.map(short_text));
    match texts {
        (Some(None), _) | (_, Some(None)) => (None, None),
        (from, to) => (from.flatten(), to.flatten()),
    }
}

fn short_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let is_told = text.chars().count() <= LONG && !text.contains('\n');
    is_told.then(|| if text.is_empty() { "\"\"".to_owned() } else { text })
}

/// Which lines a change wrote.
struct NewLines<'a> {
    before: Option<&'a Plan>,
    after: &'a Plan,
}

impl NewLines<'_> {
    /// Where a field is written: of its writers the one whose line is new, or else the last one that people
    /// write values in.
    fn place(&self, object: &RenderedObject, path: &FieldPath) -> Option<String> {
        path.get(&object.value)?;
        let chain = object.origins.lookup(path).iter();
        let chain: Vec<&Origin> =
            chain.filter(|origin| origin.location.line > 0 && !origin.location.file.is_empty()).collect();
        let new = chain.iter().find(|origin| self.is_new(&origin.location));
        let value = || chain.iter().rfind(|origin| origin.kind == OriginKind::Values);
        new.or_else(value).or_else(|| chain.first()).map(|origin| line_of(&origin.location))
    }

    fn is_new(&self, place: &Location) -> bool {
        let text = |plan: &Plan| -> Option<Arc<str>> { plan.survey.files.text(&place.file) };
        let (Some(before), Some(after)) = (self.before, text(self.after)) else { return false };
        let at = usize::try_from(place.line).unwrap_or(usize::MAX).saturating_sub(1);
        let Some(line) = after.lines().nth(at) else { return false };
        text(before).is_none_or(|before| !before.lines().any(|old| old == line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn values_are_told_where_they_are_short() {
        let told = |from: Option<Value>, to: Option<Value>| {
            let (from, to) = short_values(from.as_ref(), to.as_ref());
            FieldChange { from, to, ..FieldChange::default() }.values()
        };
        assert_eq!(told(Some(json!(3)), Some(json!(5))), "3 → 5");
        assert_eq!(told(None, Some(json!("a"))), "nothing → a");
        assert_eq!(told(Some(json!(true)), None), "true → nothing");
        assert_eq!(told(Some(json!("")), Some(json!(["x"]))), "\"\" → [\"x\"]");
        assert_eq!(told(Some(json!("a\nb")), Some(json!(1))), "");
    }
}
