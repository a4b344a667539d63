//! Custom resources, of which kubectl prints every field, with the words of a name parted.

use tiphys_value::{Value, json};

use super::text::{Field, fields};

/// Fields nested deeper than this tell nothing that is needed.
const DEEPEST: usize = 12;

pub(super) fn resource(described: &[Field<'_>]) -> Value {
    let mut live = json!({});
    for field in described.iter().filter(|field| matches!(field.key, "Spec" | "Status")) {
        if !field.lines.is_empty() {
            live[field.key.to_ascii_lowercase()] = nested(&field.lines, 0);
        }
    }
    live
}

/// The object, or the list of objects where a name comes again, that some lines tell.
fn nested(lines: &[&str], depth: usize) -> Value {
    let mut items: Vec<Value> = vec![json!({})];
    for field in fields(lines) {
        let name = name(field.key);
        let is_again = items.last().is_some_and(|item| item.get(&name).is_some());
        if is_again {
            items.push(json!({}));
        }
        let told = if field.lines.is_empty() || depth >= DEEPEST {
            plain(field.value)
        } else {
            let told = nested(&field.lines, depth + 1);
            // Conditions are a list, also where there is only one.
            if name.ends_with("onditions") && told.is_object() { json!([told]) } else { told }
        };
        if let Some(item) = items.last_mut() {
            item[name] = told;
        }
    }
    if items.len() == 1 { items.remove(0) } else { json!(items) }
}

/// `Last Transition Time` is `lastTransitionTime`.
fn name(title: &str) -> String {
    let joined: String = title.split_whitespace().collect();
    let mut letters = joined.chars();
    letters.next().map(|first| first.to_ascii_lowercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// A value: statuses of conditions are words, numbers are numbers.
fn plain(text: &str) -> Value {
    match text {
        "true" => json!(true),
        "false" => json!(false),
        _ => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
    }
}
