//! Lists of which a part cannot be read: each item is read by itself, and what is broken is left out.

use tiphys_value::{Budget, JsonError, Value, json_prefix_within};
use tiphys_yaml::ErrorKind;

use super::objects::read_document;

/// The items of a broken list that are whole.
pub(super) struct Salvaged {
    pub(super) items: Vec<Value>,
    /// How many items are broken or cut off.
    pub(super) broken: usize,
    /// Whether the rest was not read for want of memory.
    pub(super) is_over_budget: bool,
}

impl Salvaged {
    fn new() -> Self {
        Self { items: Vec::new(), broken: 0, is_over_budget: false }
    }

    /// Whether every item was read.
    pub(super) fn is_whole(&self) -> bool {
        self.broken == 0 && !self.is_over_budget
    }
}

/// The items of a YAML list.
pub(super) fn of_yaml(document: &str, budget: &Budget) -> Option<Salvaged> {
    let lines: Vec<&str> = document.split_inclusive('\n').collect();
    let title = lines.iter().position(|line| line.trim_end() == "items:")?;
    let dash = lines.get(title + 1)?.find("- ")?;
    let starts_item =
        |line: &str| line.find("- ") == Some(dash) && line.get(..dash).is_some_and(|it| it.trim().is_empty());
    let mut salvaged = Salvaged::new();
    let mut item = String::new();
    let mut take = |item: &mut String| {
        if item.trim().is_empty() {
            return true;
        }
        match read_document(item, budget) {
            Ok(Value::Array(found)) => salvaged.items.extend(found),
            Err(error) if error.kind() == ErrorKind::Budget => salvaged.is_over_budget = true,
            _ => salvaged.broken += 1,
        }
        item.clear();
        !salvaged.is_over_budget
    };
    for line in &lines[title + 1..] {
        if starts_item(line) {
            if !take(&mut item) {
                break;
            }
        } else if line.starts_with(|first: char| first.is_ascii_alphabetic()) {
            // A field of the list, behind its items.
            break;
        }
        item.push_str(line);
    }
    take(&mut item);
    Some(salvaged)
}

/// The items of a JSON list.
pub(super) fn of_json(text: &str, budget: &Budget) -> Option<Salvaged> {
    let title = text.find("\"items\"")?;
    let mut at = title + text.get(title..)?.find('[')? + 1;
    // Items stand as deep as the first one, where a printer puts each on a line of its own.
    let first = text.get(at..)?;
    let depth = first.len() - first.trim_start().len();
    let start = format!("{}{{", first.get(..depth)?);
    let mut salvaged = Salvaged::new();
    loop {
        let rest = text.get(at..)?;
        at += rest.len() - rest.trim_start_matches([',', ' ', '\t', '\n', '\r']).len();
        let rest = text.get(at..)?;
        if !rest.starts_with('{') {
            break;
        }
        match json_prefix_within(rest, budget) {
            Ok(Some((item, length))) => {
                salvaged.items.push(item);
                at += length;
            }
            Ok(None) => break,
            Err(JsonError::Budget(_)) => {
                salvaged.is_over_budget = true;
                break;
            }
            Err(JsonError::Syntax(_)) => {
                salvaged.broken += 1;
                let next = rest.get(1..).and_then(|rest| rest.find(&start)).filter(|_| start.contains('\n'));
                let Some(next) = next else { break };
                at += 1 + next;
            }
        }
    }
    Some(salvaged)
}

#[cfg(test)]
mod tests {
    use tiphys_value::ObjectExt as _;

    use super::*;

    fn names(salvaged: Option<Salvaged>) -> (Vec<String>, usize) {
        let salvaged = salvaged.unwrap();
        (salvaged.items.iter().map(|item| item.name().to_owned()).collect(), salvaged.broken)
    }

    #[test]
    fn items_around_a_broken_one() {
        let yaml = "apiVersion: v1\nitems:\n- kind: Pod\n  metadata:\n    name: a\n- kind: Pod\n  metadata: {name: \"b\n- kind: Pod\n  metadata:\n    name: c\nkind: List\n";
        assert_eq!(names(of_yaml(yaml, &Budget::of_saved_state())), (vec!["a".into(), "c".into()], 1));
        let json = "{\n  \"items\": [\n    {\"metadata\": {\"name\": \"a\"}},\n    {\"metadata\": {\"name\": \"b\n    },\n    {\"metadata\": {\"name\": \"c\"}},\n    {\"metadata\": {\"na";
        assert_eq!(names(of_json(json, &Budget::of_saved_state())), (vec!["a".into(), "c".into()], 2));
        assert_eq!(
            names(of_json("{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"met", &Budget::of_saved_state())),
            (vec!["a".into()], 1)
        );
    }

    #[test]
    fn items_end_where_the_budget_does() {
        let item = |at: usize| format!("  {{\"metadata\": {{\"name\": \"n{at}\"}}}}");
        let json = format!("{{\"items\": [\n{}\n]}}", (0..100).map(item).collect::<Vec<_>>().join(",\n"));
        let yaml = format!(
            "items:\n{}",
            (0..100).map(|at| format!("- metadata: {{name: n{at}}}\n")).collect::<String>()
        );
        for salvaged in [of_json(&json, &Budget::new(20_000)), of_yaml(&yaml, &Budget::new(20_000))] {
            let salvaged = salvaged.unwrap();
            assert!(salvaged.is_over_budget && !salvaged.is_whole());
            assert!((5..50).contains(&salvaged.items.len()), "{}", salvaged.items.len());
        }
        assert!(of_yaml(&yaml, &Budget::of_saved_state()).unwrap().is_whole());
    }
}
