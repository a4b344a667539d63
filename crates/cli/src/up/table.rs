//! The table of all Applications.

use super::app_rows::Row;

const HEADER: [&str; 6] = ["WAVE", "APPLICATION", "SYNC", "HEALTH", "REVISION", "RESOURCES"];

/// One line for each Application under a header, columns aligned.
pub(super) fn table(rows: &[Row]) -> String {
    let mut lines: Vec<[String; 6]> = vec![HEADER.map(str::to_owned)];
    for row in rows {
        lines.push([
            row.wave.to_string(),
            tiphys_diag::sanitize::line(&row.title).into_owned(),
            row.sync.as_str().to_owned(),
            row.health_text().to_owned(),
            row.short_revision(),
            row.resources.to_string(),
        ]);
    }
    let widths: Vec<usize> = (0..HEADER.len())
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
