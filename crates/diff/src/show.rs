//! Differences for people.

use serde_json::Value;
use similar::TextDiff;

/// Two objects as sorted YAML, compared line by line, in unified form with three lines of context. Mask
/// Secrets before. Empty if the texts are equal.
pub fn unified(live: &Value, target: &Value, live_name: &str, target_name: &str) -> String {
    let (old, new) = (tiphys_yaml::to_yaml(live), tiphys_yaml::to_yaml(target));
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old.as_str(), new.as_str())
        .unified_diff()
        .context_radius(3)
        .header(live_name, target_name)
        .to_string()
}
