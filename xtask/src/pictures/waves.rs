//! A drawing of the waves of a repository: a column for each wave, its Applications below each other, and
//! lines from what is needed to who needs it.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, process::Command};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::escaped;

/// Width and height of a box and what is between boxes, in the units of the picture.
const BOX: (f64, f64) = (112.0, 30.0);
const GAP: (f64, f64) = (20.0, 14.0);
const MARGIN: f64 = 14.0;
/// What the names of waves take above the boxes.
const HEAD: f64 = 30.0;

/// The Applications by wave, and who needs whom.
pub(super) struct Waves {
    waves: BTreeMap<i64, Vec<String>>,
    /// Who needs, and what is needed.
    needs: Vec<(String, String)>,
}

/// Asks the program for the order of a repository.
///
/// # Errors
/// It cannot be run, fails, or says something else than `docs/cli.md` tells.
pub(super) fn read(tiphys: &Path, folder: &Path, repository: &str) -> anyhow::Result<Waves> {
    let output = Command::new(tiphys)
        .current_dir(folder)
        .args(["graph", repository, "--offline", "--output", "json"])
        .output()
        .with_context(|| format!("cannot run {}", tiphys.display()))?;
    ensure!(output.status.success(), "tiphys graph failed: {}", String::from_utf8_lossy(&output.stderr));
    let environments: Value = serde_json::from_slice(&output.stdout)?;
    Ok(from_environment(&environments[0]))
}

/// Applications without a wave are roots, which are not drawn: everything would lead to them.
fn from_environment(environment: &Value) -> Waves {
    let list = |key: &str| environment[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut waves: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for app in list("applications") {
        if let Some(wave) = app["wave"].as_i64() {
            waves.entry(wave).or_default().push(text(&app["name"]));
        }
    }
    let needs = list("needs").iter().map(|need| (text(&need["from"]), text(&need["to"]))).collect();
    Waves { waves, needs }
}

/// The picture.
pub(super) fn draw(order: &Waves) -> String {
    let mut corners: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let (mut heads, mut boxes) = (String::new(), String::new());
    for (column, (wave, names)) in order.waves.iter().enumerate() {
        let x = MARGIN + column as f64 * (BOX.0 + GAP.0);
        let _ = writeln!(
            heads,
            "<text class=\"wave\" x=\"{}\" y=\"{}\">wave {wave}</text>",
            x + BOX.0 / 2.0,
            MARGIN + 10.0
        );
        for (row, name) in names.iter().enumerate() {
            let y = MARGIN + HEAD + row as f64 * (BOX.1 + GAP.1);
            corners.insert(name, (x, y));
            let _ = writeln!(
                boxes,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\"/><text x=\"{}\" y=\"{}\">{}</text>",
                BOX.0,
                BOX.1,
                x + BOX.0 / 2.0,
                y + BOX.1 / 2.0 + 4.0,
                escaped(name)
            );
        }
    }
    let rows = order.waves.values().map(Vec::len).max().unwrap_or(1);
    let columns = order.waves.len().max(1);
    let boxes_end = MARGIN + HEAD + rows as f64 * (BOX.1 + GAP.1);
    let (lines, depth) = lines(order, &corners, boxes_end);
    let width = 2.0 * MARGIN + columns as f64 * (BOX.0 + GAP.0) - GAP.0;
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {}" role="img" aria-label="Applications by wave, and what each needs">
<style>text{{font:13px system-ui,sans-serif;text-anchor:middle;fill:#1f2933}}.wave{{fill:#6b7785}}rect{{fill:#e8f1fb;stroke:#4a86c5}}path{{fill:none;stroke:#8db4dd}}@media (prefers-color-scheme:dark){{text{{fill:#e3e9ef}}.wave{{fill:#93a1af}}rect{{fill:#1d2b3a}}}}</style>
{heads}{lines}{boxes}</svg>
"##,
        depth + MARGIN
    )
}

/// The lines below the boxes: down from what is needed, along, and up to who needs it. What is needed by many
/// has one line with branches. Also how far down they reach.
fn lines(order: &Waves, corners: &BTreeMap<&str, (f64, f64)>, below: f64) -> (String, f64) {
    let mut needed: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (who, what) in &order.needs {
        if let Some(corner) = corners.get(who.as_str()).filter(|_| corners.contains_key(what.as_str())) {
            needed.entry(what).or_default().push(*corner);
        }
    }
    let (mut text, mut y) = (String::new(), below);
    for (what, who) in &needed {
        let Some((x, top)) = corners.get(what) else { continue };
        let start = x + BOX.0 / 2.0;
        for (x, top_of_who) in who {
            let end = x - GAP.0 / 2.0;
            let _ = writeln!(
                text,
                "<path d=\"M{start} {} V{y} H{end} V{middle} H{x}\"/>",
                top + BOX.1,
                middle = top_of_who + BOX.1 / 2.0
            );
        }
        y += GAP.1;
    }
    (text, y)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_application_stands_in_the_column_of_its_wave() {
        let app = |name: &str, wave: Option<i64>| json!({"name": name, "wave": wave});
        let order = from_environment(&json!({
            "applications": [app("root", None), app("crds", Some(-1)), app("web", Some(3)), app("api", Some(3))],
            "needs": [{"from": "web", "to": "crds"}, {"from": "web", "to": "elsewhere"}],
        }));
        let picture = draw(&order);
        assert_eq!(picture.matches("<rect").count(), 3);
        assert_eq!(picture.matches("<path").count(), 1, "who is not drawn has no line");
        assert!(picture.contains(">wave -1<") && picture.contains(">wave 3<") && !picture.contains(">root<"));
    }
}
