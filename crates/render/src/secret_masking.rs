//! Values of Secrets are not shown: what is found is posted into pull requests, and read by more people than
//! the file.

use std::ops::Range;

use tiphys_yaml::{Content, Node, Profile, parse_documents};

/// What stands for each character of a value.
const MASK: char = '*';
/// The fields of a Secret that hold values.
const FIELDS: [&str; 2] = ["data", "stringData"];
/// The annotation that holds a copy of the whole object.
const LAST_APPLIED: &str = "last-applied-configuration";

/// The text of a file with the values of its Secrets masked, character for character; `None` if it has none.
#[must_use]
pub fn mask_secrets(text: &str) -> Option<String> {
    if !text.contains("Secret") {
        return None;
    }
    let mut hidden = Vec::new();
    match parse_documents(text, Profile::Go3) {
        Ok(documents) => documents.iter().for_each(|document| of_node(&document.root, 0, &mut hidden)),
        Err(_) => of_lines(text, &mut hidden),
    }
    if hidden.is_empty() { None } else { Some(with_masks(text, &mut hidden)) }
}

fn with_masks(text: &str, hidden: &mut [Range<usize>]) -> String {
    hidden.sort_by_key(|range| (range.start, range.end));
    let mut next = hidden.iter().peekable();
    let mut end = 0;
    let mask = |(at, c): (usize, char)| {
        while let Some(range) = next.next_if(|range| range.start <= at) {
            end = end.max(range.end);
        }
        if at < end && !c.is_whitespace() { MASK } else { c }
    };
    text.char_indices().map(mask).collect()
}

/// The places of the values of all Secrets in a document, as items of lists too.
fn of_node(node: &Node, depth: usize, hidden: &mut Vec<Range<usize>>) {
    const MAX_DEPTH: usize = 200;
    if depth > MAX_DEPTH {
        return;
    }
    match &node.content {
        Content::Mapping(pairs) => {
            let is_secret = node.get("kind").and_then(Node::as_str) == Some("Secret");
            for (key, value) in pairs {
                let name = key.as_str().unwrap_or_default();
                if is_secret && FIELDS.contains(&name) {
                    values(value, depth, hidden);
                } else if is_secret && name == "metadata" {
                    let annotations = value.get("annotations").and_then(Node::pairs).unwrap_or_default();
                    let copies = annotations
                        .iter()
                        .filter(|(key, _)| key.as_str().is_some_and(|key| key.ends_with(LAST_APPLIED)));
                    copies.for_each(|(_, value)| values(value, depth, hidden));
                } else {
                    of_node(value, depth + 1, hidden);
                }
            }
        }
        Content::Sequence(items) => items.iter().for_each(|item| of_node(item, depth + 1, hidden)),
        Content::Scalar(_) | Content::Alias(_) => {}
    }
}

/// The places of all scalars of a value; keys directly below stay, what is nested deeper is a value as a
/// whole.
fn values(node: &Node, depth: usize, hidden: &mut Vec<Range<usize>>) {
    let mut hide = |node: &Node| {
        hidden.push(node.span.start.offset as usize..node.span.end.offset as usize);
    };
    match &node.content {
        Content::Mapping(pairs) if depth < 200 => pairs.iter().for_each(|(_, value)| match &value.content {
            Content::Alias(_) => {}
            _ => hide(value),
        }),
        Content::Alias(_) => {}
        _ => hide(node),
    }
}

/// The same by the indentation of lines, where the file is a template or no YAML.
fn of_lines(text: &str, hidden: &mut Vec<Range<usize>>) {
    let (mut start, mut within): (usize, Option<usize>) = (0, None);
    let mut is_secret = false;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let documents: Vec<bool> = text
        .split("\n---")
        .map(|document| document.lines().any(|line| line.trim().trim_start_matches("- ") == "kind: Secret"))
        .collect();
    let mut document = 0;
    for line in text.split_inclusive('\n') {
        if start > 0 && line.starts_with("---") {
            document += 1;
            within = None;
        }
        is_secret = documents.get(document).copied().unwrap_or(is_secret);
        let content = line.trim();
        if let Some(column) = within
            && !content.is_empty()
            && indent(line) <= column
        {
            within = None;
        }
        let after_key = start + line.find(':').map_or(0, |at| at + 1);
        let is_copy = line.contains(LAST_APPLIED);
        if is_secret && (within.is_some() || is_copy) {
            hidden.push(after_key..start + line.len());
        } else if is_secret && FIELDS.iter().any(|field| content.starts_with(&format!("{field}:"))) {
            within = Some(indent(line));
            hidden.push(after_key..start + line.len());
        }
        start += line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::mask_secrets;

    #[test]
    fn values_of_secrets_are_masked_where_they_stand() {
        let text = "kind: ConfigMap\ndata: {a: open}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: {b: CANARY}, c: CANARY}\ndata:\n  d: CANARY\n  e: |\n    CANARY one\n    CANARY two\n";
        let shown = mask_secrets(text).expect("there is a Secret");
        assert!(!shown.contains("CANARY"), "{shown}");
        assert!(shown.contains("data: {a: open}") && shown.contains("  d: ******\n"), "{shown}");
        assert_eq!(shown.len(), text.len());
        assert_eq!(shown.lines().count(), text.lines().count());
    }

    #[test]
    fn lists_copies_and_templates_are_masked_too() {
        let list =
            "kind: List\nitems:\n- kind: Secret\n  data: {a: CANARY}\n- kind: ConfigMap\n  data: {a: open}\n";
        let shown = mask_secrets(list).expect("there is a Secret");
        assert!(!shown.contains("CANARY") && shown.contains("open"), "{shown}");
        let copy = "kind: Secret\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '{\"data\":{\"a\":\"CANARY\"}}'\n    other: open\n";
        let shown = mask_secrets(copy).expect("there is a Secret");
        assert!(!shown.contains("CANARY") && shown.contains("open"), "{shown}");
        let template = "{{- if .Values.x }}\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}\nstringData:\n  a: CANARY\n  b: |\n    CANARY\ntype: Opaque\n---\nkind: ConfigMap\ndata:\n  a: open\n{{- end }}\n";
        let shown = mask_secrets(template).expect("there is a Secret");
        assert!(
            !shown.contains("CANARY") && shown.contains("open") && shown.contains("type: Opaque"),
            "{shown}"
        );
        let json = "{\"kind\": \"Secret\", \"data\": {\"a\": \"CANARY\"}}";
        assert!(!mask_secrets(json).expect("there is a Secret").contains("CANARY"));
    }

    #[test]
    fn other_files_are_left_alone() {
        assert_eq!(mask_secrets("kind: ConfigMap\ndata: {a: b}\n"), None);
        assert_eq!(mask_secrets("kind: ExternalSecret\nspec: {data: [a]}\n"), None);
    }
}
