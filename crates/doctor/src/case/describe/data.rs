//! ConfigMaps and Secrets, whose data stands below a heading of its own.

use tiphys_value::{Value, json};

use super::text::{Field, value};

/// Where the data begins: below `Data` and its rule.
pub(super) fn start(lines: &[&str]) -> Option<usize> {
    lines.windows(2).position(|pair| pair[0].trim() == "Data" && pair[1].trim() == "====").map(|at| at + 2)
}

/// The values of a ConfigMap: each a key, a rule, and lines.
pub(super) fn map(lines: &[&str]) -> Value {
    let mut data: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut rest = lines.get(start(lines).unwrap_or(lines.len())..).unwrap_or_default();
    while let [line, after @ ..] = rest {
        rest = after;
        if line.trim() == "BinaryData" {
            break;
        }
        match (line.strip_suffix(':'), after) {
            (Some(key), [rule, ..]) if rule.trim() == "----" && !key.is_empty() => {
                data.push((key, Vec::new()));
                rest = after.get(1..).unwrap_or_default();
            }
            _ => {
                if let Some((_, value)) = data.last_mut() {
                    value.push(line);
                }
            }
        }
    }
    let data = data.into_iter().map(|(key, value)| (key.to_owned(), json!(value.join("\n").trim_end())));
    json!({"data": data.collect::<Value>()})
}

/// The keys of a Secret; how long its values are is told, and nothing else.
pub(super) fn secret(described: &[Field<'_>], lines: &[&str]) -> Value {
    let told = lines.get(start(lines).unwrap_or(lines.len())..).unwrap_or_default();
    let keys =
        told.iter().filter_map(|line| line.split_once(':').filter(|(_, size)| size.ends_with(" bytes")));
    let data: Value = keys.map(|(key, _)| (key.trim().to_owned(), json!(""))).collect();
    json!({"type": value(described, "Type").unwrap_or("Opaque"), "data": data})
}
