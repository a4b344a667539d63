//! Lists of which a part cannot be read: each item is read by itself, and what is broken is left out.

use tiphys_value::Value;

/// The items of a broken list that are whole.
pub(super) struct Salvaged {
    pub(super) items: Vec<Value>,
    /// How many items are broken or cut off.
    pub(super) broken: usize,
}

/// The items of a YAML list.
pub(super) fn of_yaml(document: &str) -> Option<Salvaged> {
    let lines: Vec<&str> = document.split_inclusive('\n').collect();
    let title = lines.iter().position(|line| line.trim_end() == "items:")?;
    let dash = lines.get(title + 1)?.find("- ")?;
    let starts_item =
        |line: &str| line.find("- ") == Some(dash) && line.get(..dash).is_some_and(|it| it.trim().is_empty());
    let mut salvaged = Salvaged { items: Vec::new(), broken: 0 };
    let mut item = String::new();
    let mut take = |item: &mut String| {
        if item.trim().is_empty() {
            return;
        }
        match tiphys_yaml::from_yaml(item) {
            Ok(Value::Array(found)) => salvaged.items.extend(found),
            _ => salvaged.broken += 1,
        }
        item.clear();
    };
    for line in &lines[title + 1..] {
        if starts_item(line) {
            take(&mut item);
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
pub(super) fn of_json(text: &str) -> Option<Salvaged> {
    let title = text.find("\"items\"")?;
    let mut at = title + text.get(title..)?.find('[')? + 1;
    // Items stand as deep as the first one, where a printer puts each on a line of its own.
    let first = text.get(at..)?;
    let depth = first.len() - first.trim_start().len();
    let start = format!("{}{{", first.get(..depth)?);
    let mut salvaged = Salvaged { items: Vec::new(), broken: 0 };
    loop {
        let rest = text.get(at..)?;
        at += rest.len() - rest.trim_start_matches([',', ' ', '\t', '\n', '\r']).len();
        let rest = text.get(at..)?;
        if !rest.starts_with('{') {
            break;
        }
        let mut read = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match read.next() {
            Some(Ok(item)) => {
                salvaged.items.push(item);
                at += read.byte_offset();
            }
            _ => {
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
        assert_eq!(names(of_yaml(yaml)), (vec!["a".into(), "c".into()], 1));
        let json = "{\n  \"items\": [\n    {\"metadata\": {\"name\": \"a\"}},\n    {\"metadata\": {\"name\": \"b\n    },\n    {\"metadata\": {\"name\": \"c\"}},\n    {\"metadata\": {\"na";
        assert_eq!(names(of_json(json)), (vec!["a".into(), "c".into()], 2));
        assert_eq!(
            names(of_json("{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"met")),
            (vec!["a".into()], 1)
        );
    }
}
