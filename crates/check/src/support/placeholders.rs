//! Texts that wait for another tool to put something in their place, so that they say little.

use tiphys_graph::survey::ANY_CLUSTER;
use tiphys_value::Value;

/// Whether a text of a value is a placeholder: `${NAME}`, `{{ name }}`, `<path:…>`, `<NAME>`, `$(name)`,
/// `ENC[…]`, `ref+…`, or what stands in for a cluster that only the installation knows.
pub(crate) fn has_placeholder(value: &Value) -> bool {
    has_placeholder_within(value, 0)
}

/// Whether a text is, or begins with or holds, a placeholder.
pub(crate) fn is_in(text: &str) -> bool {
    const LONGEST: usize = 256;
    const STARTS: [&str; 6] = ["<path:", "$(", "<%", "ENC[", "__", "ref+"];
    STARTS.iter().any(|mark| text.starts_with(mark))
        || text.contains(ANY_CLUSTER)
        || asks_for_a_value(text)
        || is_open_host(text)
        || has_uppercase_host(text)
        || is_sample_address(text)
        || (text.len() <= LONGEST && (text.contains("${") || text.contains("{{") || has_bracketed_name(text)))
}

/// Whether a text in capitals asks to be replaced: `CHANGE_ME`, `AUTOMATIC_REPLACE`.
fn asks_for_a_value(text: &str) -> bool {
    const WORDS: [&str; 9] =
        ["REPLACE", "REPLACED", "CHANGE", "CHANGEME", "DEFINED", "PLACEHOLDER", "TBD", "TODO", "YOUR"];
    let is_constant = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    text.chars().all(is_constant) && text.split(['_', '-']).any(|word| WORDS.contains(&word))
}

/// Whether a label of a host asks to be replaced: `shop.REPLACE_ME`.
fn is_open_host(text: &str) -> bool {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
    text.contains('.')
        && text.chars().all(is_host)
        && text.split('.').any(|label| label.contains('_') && asks_for_a_value(label))
}

/// Whether an address names a constant in the place of a host: `https://CLUSTER_API_SERVER`.
fn has_uppercase_host(text: &str) -> bool {
    let host =
        text.split_once("://").map_or("", |(_, rest)| rest.split(['/', ':']).next().unwrap_or_default());
    host.contains('_') && host.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Whether an address is that of whoever reads it: `https://github.com/your-org/shop.git`.
fn is_sample_address(text: &str) -> bool {
    let is_address = text.contains("://") || text.starts_with("git@");
    let is_yours = |step: &str| {
        let small = step.to_ascii_lowercase();
        small.starts_with("your-") || small.starts_with("your_")
    };
    is_address && text.split(['/', ':', '@', '.']).any(is_yours)
}

/// Whether a text holds lines of a template language, so that it is no YAML before another tool has read it.
pub(crate) fn is_template(text: &str) -> bool {
    const DIRECTIVES: [&str; 5] = ["<#", "<%", "%{", "{%", "[#"];
    text.lines().any(|line| DIRECTIVES.iter().any(|mark| line.trim_start().starts_with(mark)))
}

/// `<NAME>`, wherever it stands.
pub(crate) fn has_bracketed_name(text: &str) -> bool {
    text.split('<').skip(1).any(|rest| {
        let name = rest.split('>').next().unwrap_or_default();
        name.len() < rest.len()
            && name.len() >= 2
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '-') || c.is_ascii_digit())
    })
}

/// Whether a path lies in a folder of templates or test data, which nobody applies as they are.
pub(crate) fn is_skeleton(path: &str) -> bool {
    const FOLDERS: [&str; 9] =
        ["templates", "template", "skeleton", "skeletons", "testdata", "test", "tests", "fixtures", "hack"];
    // `_flux_templates`, `app-template`
    let is_form = |step: &str| {
        step.split(['-', '_', '.']).any(|word| matches!(word, "template" | "templates" | "tmpl"))
    };
    let is_file = |step: &str| step.contains('.') && path.ends_with(step);
    path.split('/').any(|step| FOLDERS.contains(&step) || is_form(step) && !is_file(step))
}

fn has_placeholder_within(value: &Value, depth: usize) -> bool {
    const MAX_DEPTH: usize = 64;
    if depth > MAX_DEPTH {
        return false;
    }
    match value {
        Value::String(text) => is_in(text),
        Value::Array(items) => items.iter().any(|item| has_placeholder_within(item, depth + 1)),
        Value::Object(map) => {
            map.iter().any(|(key, value)| key.contains("${") || has_placeholder_within(value, depth + 1))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_in, is_skeleton};

    #[test]
    fn folders_of_forms_are_known() {
        for path in [
            "_flux_templates/a.yaml",
            "tmpl/cluster/a.yaml",
            "app-template/a.yaml",
            "chart/templates/a.yaml",
            "_flux_templates",
        ] {
            assert!(is_skeleton(path), "{path}");
        }
        assert!(!is_skeleton("apps/template.yaml") && !is_skeleton("apps/contemplates/a.yaml"));
    }

    #[test]
    fn placeholders_are_recognised() {
        for text in [
            "${ENV}",
            "a-{{ b }}",
            "<path:secret#key>",
            "x-<CLUSTER_NAME>-y",
            "ENC[AES]",
            "CHANGE_ME",
            "TODO",
            "DEFINED-ELSEWHERE",
            "shop.REPLACE_ME",
            "ref+vault://web/login#/password",
            "https://CLUSTER_API_SERVER:6443",
            "https://github.com/your-org/shop.git",
            "git@github.com:YOUR_USERNAME/shop.git",
        ] {
            assert!(is_in(text), "{text}");
        }
        for text in ["a < b > c", "<b>bold</b>", "plain", "$5", "NO_CHANGES", "ReplaceMe Inc"] {
            assert!(!is_in(text), "{text}");
        }
    }
}
