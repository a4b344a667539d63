//! Values that an Application gives as text. In the template of an ApplicationSet they may stand before the
//! template is filled in: `key: {{ .name }}` is no YAML until then.

use tiphys_model::HelmSource;
use tiphys_value::Value;

/// The values that a source of an Application has itself, the weakest first.
pub(crate) fn of_source(helm: &HelmSource) -> impl Iterator<Item = Value> {
    read(&helm.values).into_iter().chain(helm.values_object.clone())
}

/// The values of a text, with what a template would fill in as text; nothing if it is no YAML then either.
pub(crate) fn read(text: &str) -> Option<Value> {
    tiphys_yaml::from_yaml(text).ok().or_else(|| match text.contains("{{") {
        true => tiphys_yaml::from_yaml(&quoted(text)).ok(),
        false => None,
    })
}

/// The text with its open values in quotes, and without the lines that only steer a template.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !line.trim_start().starts_with("{{")) {
        let open = [": {{", "- {{"].iter().filter_map(|mark| line.find(mark)).min();
        match open {
            Some(at) => {
                let (before, value) = line.split_at(at + 2);
                out.extend([before, "'", &value.trim_end().replace('\'', "''"), "'"]);
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn open_values_are_texts() {
        let text =
            "{{- if .a }}\nhost: {{ .host }}\n{{- end }}\nname: 'x-{{ .name }}'\nlist:\n- {{ .one }}\n";
        let values = json!({"host": "{{ .host }}", "name": "x-{{ .name }}", "list": ["{{ .one }}"]});
        assert_eq!(read(text), Some(values));
        assert_eq!(read("a: 1\n"), Some(json!({"a": 1})));
        assert_eq!(read("a: [1\n"), None);
    }
}
