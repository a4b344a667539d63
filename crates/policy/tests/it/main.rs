//! Policies and what they refuse, as files: documents of a case are policies, but those that begin with
//! `# refused: …` (a line for each refusal) or `# passes`, which are objects.

use std::{fs, path::Path};

use tiphys_policy::{Namespace, Policies};
use tiphys_value::Value;

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());
    for file in files {
        judge(&fs::read_to_string(&file).unwrap(), &file.file_name().unwrap().to_string_lossy());
    }
}

/// Compares what is refused with what the comments of a case say.
fn judge(text: &str, name: &str) {
    let documents = text.split("\n---\n").map(str::trim);
    let (objects, policies): (Vec<&str>, Vec<&str>) =
        documents.partition(|it| it.starts_with("# refused: ") || it.starts_with("# passes"));
    let policies: Vec<Value> = policies.iter().map(|it| read(it, name)).collect();
    let policies = Policies::from_objects(&policies);
    assert!(!objects.is_empty(), "{name} has no object");
    for text in objects {
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# refused: ")).collect();
        let labels = text.lines().find_map(|line| line.strip_prefix("# labels of its namespace: "));
        let labels = labels.map(|it| read(it, name));
        let namespace = match text.lines().any(|line| line == "# its namespace is not known") {
            true => Namespace::Unknown,
            false => Namespace::Labels(labels.as_ref()),
        };
        let found = policies.refusals(&read(text, name), namespace);
        let found: Vec<String> = found
            .iter()
            .map(|it| {
                let field = it.field.as_ref().map(|field| format!(" at {field}")).unwrap_or_default();
                let message = if it.message.is_empty() { String::new() } else { format!(": {}", it.message) };
                format!("{:?} by {}{field}{message}", it.refused, it.policy.name)
            })
            .collect();
        assert_eq!(found, expected, "{name}:\n{text}");
    }
}

fn read(text: &str, name: &str) -> Value {
    tiphys_yaml::from_yaml(text).unwrap_or_else(|error| panic!("{name}: {error}:\n{text}"))
}
