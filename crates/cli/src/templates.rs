//! Templates in place of what they render to.

use std::path::Path;

/// What helps whoever gave a template in place of what it renders to; `onward` leads to the command that was
/// given.
pub(crate) fn advice(file: &Path, onward: &str) -> Option<String> {
    let is_chart = |folder: &&Path| folder.join("Chart.yaml").is_file();
    let chart = file.ancestors().skip(1).find(is_chart);
    let inner = chart.and_then(|chart| Some((chart, file.strip_prefix(chart).ok()?)));
    if let Some((chart, file)) = inner.filter(|(_, inner)| inner.starts_with("templates")) {
        let (chart, file) = (chart.display(), file.display());
        return Some(format!(
            "it is a template of a chart: `tiphys render helm NAME {chart} --show-only {file}{onward}` reads what it renders to"
        ));
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let is_bare =
        |line: &str| line.trim_start().trim_start_matches("- ").starts_with("{{") || line.contains(": {{");
    let line = text.lines().position(is_bare)?;
    Some(format!("a value that begins with {{{{ has to be in quotes (line {})", line + 1))
}
