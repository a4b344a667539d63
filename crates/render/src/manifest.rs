//! Files of manifests: text to objects, with the place of every fault.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde_json::Value;
use tiphys_diag::{Diagnostic, Span};
use tiphys_value::{Budget, Location, ObjectExt, Origin, OriginKind, Origins, RenderedObject, json_within};
use tiphys_vfs::{FileTree, is_lfs_pointer};
use tiphys_yaml::{Content, Node, Position, Profile};

use crate::{Cause, RenderError};

/// A text file of a tree.
///
/// # Errors
/// Missing, too large, a link that leaves the tree, kept elsewhere by Git LFS, or no text.
pub fn read_text(tree: &dyn FileTree, path: &str) -> Result<String, RenderError> {
    let bytes = tree.read(path).map_err(|error| RenderError::new(error.to_string()))?;
    // As Kubernetes' clients read it: in UTF-16 where a byte order mark says so.
    match tiphys_yaml::decode_text(&bytes).as_deref() {
        Ok(text) if is_lfs_pointer(text.as_bytes()) => Err(RenderError::new(format!(
            "{path} is kept by Git LFS, from which nothing is fetched; what is deployed must be in the repository itself"
        ))
        .caused_by(Cause::Unsupported)),
        Ok(text) if !text.contains('\0') => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Ok(_) => Err(RenderError::new(format!("{path} is a binary file, not a manifest"))),
        Err(_) => Err(RenderError::new(match std::str::from_utf8(&bytes) {
            Err(error) if !is_utf16(&bytes) => {
                format!("{path} is not a text file: byte {} is not valid UTF-8", error.valid_up_to())
            }
            _ => format!("{path} is not a text file: its byte order mark says UTF-16, which it is not"),
        })),
    }
}

fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF])
}

/// Whether a text that is no valid manifest was meant to be one: two of the three fields that every object
/// has stand at the start of a line, or in a document in the notation of JSON. (Argo CD wants all three,
/// anywhere and unquoted, and passes over a document whose kind was forgotten.)
pub fn looks_like_manifest(text: &str) -> bool {
    let begins = |with: &str| text.lines().any(|line| line.starts_with(with));
    let as_yaml = ["apiVersion:", "kind:", "metadata:"].iter().filter(|mark| begins(mark)).count();
    let as_json =
        ["\"apiVersion\":", "\"kind\":", "\"metadata\":"].iter().filter(|mark| text.contains(**mark)).count();
    as_yaml >= 2 || (as_json >= 2 && begins("{"))
}

/// The objects of JSON that a program yielded, or that a file holds: one, or a list of them.
///
/// # Errors
/// It is no JSON, or one of them is no object with `apiVersion`, `kind` and name.
pub(crate) fn parse_values(file: &str, text: &str) -> Result<Vec<RenderedObject>, RenderError> {
    let fail = |error: &dyn std::fmt::Display| {
        RenderError::new(format!("{file}: what it yields is no JSON: {error}"))
    };
    let values = match json_within(text.as_bytes(), &Budget::of_text()).map_err(|error| fail(&error))? {
        serde_json::Value::Array(values) => values,
        one => vec![one],
    };
    let mut objects = Vec::new();
    for value in values {
        if value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty) {
            continue;
        }
        check_object((file, text), &|_| Position { line: 1, column: 1, ..Position::default() }, &value)?;
        objects.push(RenderedObject {
            value,
            location: Location::new(file, 1, 1),
            origins: Origins::default(),
        });
    }
    Ok(objects)
}

/// The objects of a YAML or JSON text, one for each document that is not empty.
///
/// # Errors
/// It does not parse, has a key twice, or a document is no object with `apiVersion`, `kind` and name.
pub fn parse_objects(file: &str, text: &str, origins: bool) -> Result<Vec<RenderedObject>, RenderError> {
    let mut repeated = Vec::new();
    let objects = parse_objects_as_argo_cd(file, text, origins, &mut repeated);
    repeated.into_iter().next().map_or(objects, Err)
}

/// The same as Argo CD takes them: of a key that is set twice in one mapping the last counts. Each is told
/// of.
///
/// # Errors
/// It does not parse, or a document is no object with `apiVersion`, `kind` and name.
pub fn parse_objects_as_argo_cd(
    file: &str,
    text: &str,
    origins: bool,
    repeated: &mut Vec<RenderError>,
) -> Result<Vec<RenderedObject>, RenderError> {
    match parse_yaml(file, text, origins, repeated) {
        // JSON has escapes that YAML has not, and keys of any length.
        Err(error) if file.ends_with(".json") => match serde_json::from_str::<Value>(text) {
            Ok(_) => parse_values(file, text),
            Err(_) => Err(error),
        },
        parsed => parsed,
    }
}

fn parse_yaml(
    file: &str,
    text: &str,
    origins: bool,
    repeated: &mut Vec<RenderError>,
) -> Result<Vec<RenderedObject>, RenderError> {
    let whole_lines = with_whole_lines(text);
    let budget = Budget::of_text();
    let documents = tiphys_yaml::parse_documents_within(&whole_lines, Profile::Go2, &budget)
        .map_err(|error| yaml_error(file, text, &error))?;
    if origins {
        // The place of a node takes about what the node does.
        let places = budget.take(budget.used_bytes());
        places.map_err(|fault| RenderError::new(format!("{file}: with the places of its fields {fault}")))?;
    }
    let name: Arc<str> = file.into();
    let mut objects = Vec::new();
    for document in &documents {
        let root = &document.root;
        if root.is_null() {
            continue;
        }
        check_duplicates(file, text, root, 0, repeated)?;
        let value = tiphys_yaml::to_value_within(root, Profile::Go2, &budget)
            .map_err(|error| yaml_error(file, text, &error))?;
        if value.as_object().is_some_and(serde_json::Map::is_empty) {
            continue;
        }
        let place = |field: Option<&str>| field.map_or(root.span.start, |field| place(root, field));
        check_object((file, text), &place, &value)?;
        let at = root.span.start;
        let mut chains = Origins::default();
        if origins {
            trace(&name, root, &mut chains, 0);
        }
        objects.push(RenderedObject {
            value,
            location: Location::new(name.clone(), at.line, at.column),
            origins: chains,
        });
    }
    Ok(objects)
}

/// Kubernetes' clients read line by line and give the last line a line break too if it has none, which a
/// block scalar then ends with (`k8s.io/apimachinery`, `YAMLReader`).
fn with_whole_lines(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') { text.into() } else { format!("{text}\n").into() }
}

/// A YAML error with its place.
pub fn yaml_error(file: &str, text: &str, error: &tiphys_yaml::Error) -> RenderError {
    let message = error.to_string();
    let message = message.strip_prefix("yaml: ").unwrap_or(&message);
    let diagnostic = Diagnostic::error("yaml", format!("this is not valid YAML: {message}"));
    match error.position() {
        Some(position) => RenderError::in_file(diagnostic.at(point(file, position), ""), file, text),
        None => RenderError::new(format!("{file}: {message}")),
    }
}

fn point(file: &str, position: Position) -> Span {
    Span::point(file, position.line, position.column)
}

/// A mapping that has one key twice means something else to every reader.
fn check_duplicates(
    file: &str,
    text: &str,
    node: &Node,
    depth: usize,
    repeated: &mut Vec<RenderError>,
) -> Result<(), RenderError> {
    // The parser bounds nesting far below what this stack could not hold.
    const MAX_DEPTH: usize = 10_000;
    // Each is told with the file's text, and nobody mends more at once.
    const MAX_REPEATED: usize = 20;
    if depth > MAX_DEPTH {
        return Err(RenderError::new(format!("{file} is nested deeper than {MAX_DEPTH}")));
    }
    match &node.content {
        Content::Mapping(pairs) => {
            let mut seen: HashMap<&str, Position> = HashMap::new();
            for (key, value) in pairs {
                if let Content::Scalar(name) = &key.content
                    && name != "<<"
                    && repeated.len() < MAX_REPEATED
                    && let Some(first) = seen.insert(name, key.span.start)
                {
                    let diagnostic = Diagnostic::error(
                        "duplicate-key",
                        format!("the key {name:?} is set twice in one mapping"),
                    )
                    .at(point(file, key.span.start), "set again here")
                    .see(point(file, first), "first set here")
                    .because("only one of the two values can be meant; readers differ in which they take")
                    .help(format!("remove one of the two {name:?}"));
                    repeated.push(RenderError::in_file(diagnostic, file, text));
                }
                check_duplicates(file, text, value, depth + 1, repeated)?;
            }
            Ok(())
        }
        Content::Sequence(items) => {
            items.iter().try_for_each(|item| check_duplicates(file, text, item, depth + 1, repeated))
        }
        Content::Scalar(_) | Content::Alias(_) => Ok(()),
    }
}

/// A document must say what it is and be called something.
/// `place` is where the object stands, or one of its fields.
fn check_object(
    (file, text): (&str, &str),
    place: &dyn Fn(Option<&str>) -> Position,
    value: &Value,
) -> Result<(), RenderError> {
    let fail = |at: Position, what: &str, help: &str| {
        let diagnostic =
            Diagnostic::error("no-object", what).at(point(file, at), "in this document").help(help);
        Err(RenderError::in_file(diagnostic, file, text))
    };
    let at = place(None);
    if !value.is_object() {
        return fail(
            at,
            "this document is not a Kubernetes object",
            "a manifest is a mapping with apiVersion, kind and metadata",
        );
    }
    for field in ["apiVersion", "kind"] {
        match value.get(field) {
            Some(Value::String(text)) if !text.is_empty() => {}
            None | Some(Value::Null) => {
                let what = format!("this document has no {field}");
                return fail(at, &what, "if it is no manifest, exclude the file (source.directory.exclude)");
            }
            Some(other) => {
                return fail(place(Some(field)), &no_text(field, other), "put it in quotes");
            }
        }
    }
    let is_list = is_list(value) || is_empty_list(value);
    let generated = value.str_at(&["metadata", "generateName"]).is_some_and(|name| !name.is_empty());
    if is_list || generated {
        return Ok(());
    }
    match value.at(&["metadata", "name"]) {
        Some(Value::String(name)) if !name.is_empty() => Ok(()),
        Some(Value::Null) | None => {
            fail(at, &format!("this {} has no metadata.name", value.kind()), "every object needs a name")
        }
        Some(other) => fail(place(Some("metadata")), &no_text("metadata.name", other), "put it in quotes"),
    }
}

/// What is said of a value that has to be a text that is not empty.
fn no_text(field: &str, value: &Value) -> String {
    let why = match value {
        Value::Bool(true) => {
            ": it is the boolean true, as which YAML reads y, yes and on too; put it in quotes"
        }
        Value::Bool(false) => {
            ": it is the boolean false, as which YAML reads n, no and off too; put it in quotes"
        }
        Value::Number(_) => ": it is a number; put it in quotes",
        _ => "",
    };
    format!("{field} must be a non-empty text{why}")
}

/// Whether an object stands for its `items` (`k8s.io/apimachinery`, `Unstructured.IsList`).
pub(crate) fn is_list(value: &Value) -> bool {
    value.get("items").is_some_and(Value::is_array)
}

/// A list whose `items` are null stands for nothing.
pub(crate) fn is_empty_list(value: &Value) -> bool {
    value.get("items").is_some_and(Value::is_null)
        && value.get("spec").is_none()
        && value.get("status").is_none()
}

/// Where the value of a top-level key stands.
fn place(root: &Node, key: &str) -> Position {
    root.get(key).map_or(root.span.start, |node| node.span.start)
}

/// Notes the line of every node.
fn trace(file: &Arc<str>, node: &Node, origins: &mut Origins, depth: usize) {
    const MAX_DEPTH: usize = 1_000;
    let at = node.span.start;
    let location = Location::new(file.clone(), at.line, at.column);
    origins.set_own(vec![Origin { kind: OriginKind::Manifest, location, detail: String::new() }]);
    if depth > MAX_DEPTH {
        return;
    }
    match &node.content {
        Content::Mapping(pairs) => {
            for (key, value) in pairs {
                if let Some(key) = key.as_str() {
                    trace(file, value, origins.key(key), depth + 1);
                }
            }
        }
        Content::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                trace(file, item, origins.index(index), depth + 1);
            }
        }
        Content::Scalar(_) | Content::Alias(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::FieldPath;

    use super::*;

    #[test]
    fn what_was_meant_as_a_manifest_is_told_from_other_files() {
        assert!(looks_like_manifest("kind: A\nmetadata: ["));
        assert!(looks_like_manifest("---\n{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {}}\n"));
        assert!(!looks_like_manifest("kind: [broken\nkind: x\n"));
        assert!(!looks_like_manifest("text: '{\"kind\": 1, \"metadata\": 2'"));
    }

    fn fault(text: &str) -> String {
        format!("{:#}", parse_objects("a/b.yaml", text, false).unwrap_err())
    }

    #[test]
    fn names_that_yaml_reads_as_booleans_are_to_be_quoted() {
        for (name, read) in [("n", "the boolean false"), ("y", "the boolean true"), ("12", "a number")] {
            let fault = fault(&format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"));
            assert!(
                fault.contains(&format!("it is {read}")) && fault.contains("put it in quotes"),
                "{fault}"
            );
        }
    }

    #[test]
    fn reads_documents_of_yaml_and_json() {
        let yaml = "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"generateName\": \"b-\"}}\n";
        let objects = parse_objects("f", yaml, true).unwrap();
        let kinds: Vec<&str> = objects.iter().map(|object| object.value.kind()).collect();
        assert_eq!(kinds, ["ConfigMap", "Secret"]);
        let chain = objects[0].origins.lookup(&FieldPath::default().key("metadata").key("name"));
        assert_eq!(chain[0].location.to_string(), "f:6:18");
    }

    #[test]
    fn a_block_scalar_at_the_end_keeps_the_line_break_that_the_file_lacks() {
        let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n";
        for (text, expected) in
            [("  k: |\n    x", "x\n"), ("  k: |-\n    x", "x"), ("  k: |+\n    x\n\n", "x\n\n")]
        {
            let objects = parse_objects("f", &format!("{head}{text}"), false).unwrap();
            assert_eq!(objects[0].value["data"]["k"], expected, "{text:?}");
        }
    }

    #[test]
    fn faults_name_file_line_and_column_and_show_the_line() {
        let missing_kind = fault("apiVersion: v1\nmetadata:\n  name: a\n");
        assert_eq!(missing_kind, "a/b.yaml:1:1: this document has no kind\n    1 | apiVersion: v1");
        let twice = fault("apiVersion: v1\nkind: A\nmetadata:\n  name: x\n  name: y\n");
        assert_eq!(twice, "a/b.yaml:5:3: the key \"name\" is set twice in one mapping\n    5 |   name: y");
        let nameless = fault("apiVersion: v1\nkind: A\nmetadata: {}\n");
        assert!(nameless.starts_with("a/b.yaml:1:1: this A has no metadata.name"), "{nameless}");
        let number = fault("apiVersion: v1\nkind: A\nmetadata:\n  name: 1\n");
        assert!(number.contains("a/b.yaml:4:3: metadata.name must be"), "{number}");
    }

    #[test]
    fn of_a_key_that_is_set_twice_argo_cd_takes_the_last() {
        let mut repeated = Vec::new();
        let text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\ndata:\n  k: x\n  k: y\n  k: z\n";
        let objects = parse_objects_as_argo_cd("f", text, true, &mut repeated).unwrap();
        assert_eq!(objects[0].value["data"]["k"], "z");
        let told: Vec<String> = repeated.iter().map(|error| error.to_string()).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("f:6:3: the key \"k\" is set twice"), "{told:?}");
    }

    #[test]
    fn syntax_errors_show_the_line() {
        let text = fault("apiVersion: v1\nkind: [A\nmetadata: {}\n");
        assert!(
            text.starts_with("a/b.yaml:3:")
                && text.contains("not valid YAML")
                && text.contains("3 | metadata"),
            "{text}"
        );
    }

    #[test]
    fn utf_16_is_read_where_a_byte_order_mark_says_so() {
        let text = "kind: A # é🚀\n";
        let little: Vec<u8> =
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let big: Vec<u8> =
            [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
        let mut tree = tiphys_vfs::MemTree::default();
        tree.insert("little.yaml", little.as_slice()).unwrap();
        tree.insert("big.yaml", big.as_slice()).unwrap();
        tree.insert("marked.json", "\u{feff}{}".as_bytes()).unwrap();
        tree.insert("odd.yaml", b"\xFF\xFEa".as_slice()).unwrap();
        assert_eq!(read_text(&tree, "little.yaml").unwrap(), text);
        assert_eq!(read_text(&tree, "big.yaml").unwrap(), text);
        assert_eq!(read_text(&tree, "marked.json").unwrap(), "{}");
        assert!(read_text(&tree, "odd.yaml").unwrap_err().to_string().contains("UTF-16"));
    }

    #[test]
    fn json_is_read_where_yaml_would_refuse_it() {
        let key = "k".repeat(2000);
        let text = format!(
            r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a\u002db"}}, "data": {{"{key}": "\ud83d\ude80 \/"}}}}"#
        );
        let objects = parse_objects("a.json", &text, true).unwrap();
        assert_eq!(objects[0].value["data"][&key], "🚀 /");
        assert_eq!(objects[0].value["metadata"]["name"], "a-b");
        assert!(parse_objects("a.yaml", &text, true).is_err());
        let error = parse_objects("a.json", "{\"kind\": \"A\", \"x\": \"\\ud83d\"}", true).unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
    }

    #[test]
    fn binary_files_are_refused() {
        let mut tree = tiphys_vfs::MemTree::default();
        tree.insert("x.yaml", b"\x80\x81".as_slice()).unwrap();
        tree.insert("y.yaml", b"a\0b".as_slice()).unwrap();
        assert!(read_text(&tree, "x.yaml").unwrap_err().to_string().contains("byte 0 is not valid UTF-8"));
        assert!(read_text(&tree, "y.yaml").unwrap_err().to_string().contains("binary file"));
    }
}
