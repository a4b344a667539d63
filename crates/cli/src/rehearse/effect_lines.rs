//! What a change does to the objects of an Application, as lines for people.

use super::{
    effects::{AppEffects, Effect, FieldChange, ObjectEffect},
    text::{NAMED, OBJECTS, short_name, some_of},
    timeline::waited,
};

/// What becomes of an object. Fields are told one by one where their values are known.
fn object_lines(one: &ObjectEffect) -> Vec<String> {
    let object = short_name(&one.object);
    let placed = |line: String, place: Option<&String>| match place {
        Some(place) => format!("{line}   {place}"),
        None => line,
    };
    let line = match &one.effect {
        Effect::Created => format!("+ {object}"),
        Effect::Deleted => match one.loses_data {
            Some(true) => format!("- {object}: its volume is deleted with all data"),
            Some(false) => format!("- {object}: its volume is kept"),
            None => format!("- {object}"),
        },
        Effect::Terminating => format!("- {object}: deleted, but does not go away"),
        Effect::Replaced => format!("± {object}: deleted and created again"),
        Effect::Left => format!("  {object}: left Git and stays in the cluster, since nobody prunes it"),
        Effect::Changed { fields, values } => match values.as_slice() {
            [] => format!("~ {object}: {}", some_of(fields, NAMED)),
            [one_field] => {
                let line = format!("~ {object}: {}", field_text(one_field));
                return vec![placed(line, one_field.place.as_ref().or(one.place.as_ref()))];
            }
            many => {
                let mut lines =
                    vec![placed(format!("~ {object}: {} fields", many.len()), one.place.as_ref())];
                let told = many.iter().take(NAMED);
                lines.extend(told.map(|it| placed(format!("    {}", field_text(it)), it.place.as_ref())));
                if many.len() > NAMED {
                    lines.push(format!("    and {} more", many.len() - NAMED));
                }
                return lines;
            }
        },
    };
    vec![placed(line, one.place.as_ref())]
}

/// A field with what it was and is: `.spec.replicas 3 → 5`.
fn field_text(change: &FieldChange) -> String {
    match change.values() {
        values if values.is_empty() => change.field.clone(),
        values => format!("{} {values}", change.field),
    }
}

/// What becomes of an Application, a line each.
pub(super) fn effect_lines(app: &AppEffects) -> Vec<String> {
    let mut lines = Vec::new();
    for one in app.objects.iter().take(OBJECTS) {
        lines.extend(object_lines(one));
    }
    if app.objects.len() > OBJECTS {
        lines.push(format!("and {} objects more (--output json names them)", app.objects.len() - OBJECTS));
    }
    lines.extend(app.restarted.iter().map(|one| {
        let pods = if one.pods == 1 { "1 new pod".to_owned() } else { format!("{} new pods", one.pods) };
        format!("{} is rolled out: {pods}", short_name(&one.workload))
    }));
    lines.extend(
        app.held.iter().map(|(workload, why)| format!("{} is not rolled out: {why}", short_name(workload))),
    );
    lines.extend(app.stale.iter().take(OBJECTS).map(|(settings, reader)| {
        format!(
            "{} is not restarted: it has read {} at its start, and keeps the old values",
            short_name(reader),
            short_name(settings)
        )
    }));
    lines.extend(app.waits.iter().take(2).map(waited));
    lines
}
