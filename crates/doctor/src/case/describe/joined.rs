//! Lines of a description made whole: a message of several lines is printed as it is, and its later lines
//! stand at the margin, as if they were fields.

use super::text::field;

/// The fields of pods at the margin.
const OF_PODS: &[&str] = &[
    "Name",
    "Namespace",
    "Priority",
    "Priority Class Name",
    "Runtime Class Name",
    "Service Account",
    "Node",
    "NominatedNodeName",
    "Start Time",
    "Labels",
    "Annotations",
    "Status",
    "Termination Grace Period",
    "Reason",
    "Message",
    "SeccompProfile",
    "IP",
    "IPs",
    "Controlled By",
    "Init Containers",
    "Containers",
    "Ephemeral Containers",
    "Readiness Gates",
    "Conditions",
    "Volumes",
    "QoS Class",
    "Node-Selectors",
    "Tolerations",
    "Topology Spread Constraints",
    "Events",
];
/// The fields at the margin of what is printed field by field.
const OF_ALL: &[&str] = &[
    "Name",
    "Namespace",
    "Labels",
    "Annotations",
    "API Version",
    "Kind",
    "Metadata",
    "Spec",
    "Status",
    "Events",
];

/// The lines of one description, with what continues a line put behind it.
pub(super) fn joined(lines: &[&str]) -> Vec<String> {
    let is_generic = lines.iter().any(|line| line.starts_with("API Version:"));
    let is_pod = lines.iter().any(|line| line.trim_end() == "Containers:");
    let mut section = "";
    let mut whole: Vec<String> = Vec::new();
    for line in lines {
        let key = field(line).map(|(key, _)| key).filter(|_| !line.starts_with(' '));
        let is_text = matches!(section, "Spec" | "Status" | "Metadata");
        let is_field = |key: &str| match () {
            () if section == "Events" => false,
            () if is_generic => OF_ALL.contains(&key) || !is_text,
            () if is_pod => OF_PODS.contains(&key),
            () => true,
        };
        if let Some(key) = key.filter(|key| is_field(key)) {
            section = key;
            whole.push((*line).to_owned());
        } else if section == "Events" {
            event_line(line, &mut whole);
        } else if (is_generic || is_pod) && !line.starts_with(' ') && !line.trim().is_empty() {
            continue_last(line, &mut whole);
        } else {
            whole.push((*line).to_owned());
        }
    }
    whole
}

/// A row of the table of events begins with a type; titles and the rule below them are no rows.
fn event_line(line: &str, whole: &mut Vec<String>) {
    const STARTS: &[&str] = &["Normal ", "Warning ", "Type ", "FirstSeen", "----"];
    let told = line.trim_start();
    if STARTS.iter().any(|start| told.starts_with(start)) {
        whole.push(format!("  {told}"));
    } else if !told.is_empty() {
        continue_last(line, whole);
    }
}

fn continue_last(line: &str, whole: &mut [String]) {
    if let Some(last) = whole.iter_mut().rev().find(|line| !line.trim().is_empty()) {
        last.push(' ');
        last.push_str(line.trim());
    }
}
