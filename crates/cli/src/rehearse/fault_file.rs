//! Faults from a YAML file: a list of what `--fault` takes, or of the same in parts.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;
use tiphys_stage::fault::Timed;

use crate::duration;

/// How many faults a file holds at most.
const MOST: usize = 1000;

/// One fault in parts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    /// Kind, target and how it fails, as `--fault` takes them.
    fault: String,
    /// When it begins.
    #[serde(default)]
    start: Option<String>,
    /// How long it lasts.
    #[serde(default)]
    duration: Option<String>,
}

/// Reads the faults of a file.
///
/// # Errors
/// It cannot be read, is no list, or one of them is no fault.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Timed>> {
    let shown = path.display();
    let text = crate::named_file::read_text(path)?;
    parse(&text).with_context(|| shown.to_string())
}

fn parse(text: &str) -> anyhow::Result<Vec<Timed>> {
    let value = tiphys_yaml::from_yaml(text).context("no valid YAML")?;
    let Value::Array(items) = value else { bail!("no list of faults") };
    if items.len() > MOST {
        bail!("{} faults; at most {MOST} are accepted", items.len());
    }
    items
        .into_iter()
        .enumerate()
        .map(|(at, item)| fault_from_item(item).with_context(|| format!("entry {}", at + 1)))
        .collect()
}

fn fault_from_item(item: Value) -> anyhow::Result<Timed> {
    let read = |text: &str| Timed::parse(text, duration::parse).map_err(anyhow::Error::msg);
    let parts = match item {
        Value::String(text) => return read(&text),
        other => {
            serde_json::from_value::<Parts>(other).context("neither a text nor {fault, start, duration}")?
        }
    };
    let mut fault = read(&parts.fault)?;
    let time = |text: &Option<String>| -> anyhow::Result<Option<Duration>> {
        text.as_deref().map(duration::parse).transpose().map_err(anyhow::Error::msg)
    };
    if let Some(start) = time(&parts.start)? {
        fault.start = start;
        fault.text.push_str(&format!("@{}", parts.start.as_deref().unwrap_or_default()));
    }
    if let Some(lasts) = time(&parts.duration)? {
        fault.duration = Some(lasts);
        fault.text.push_str(&format!("+{}", parts.duration.as_deref().unwrap_or_default()));
    }
    Ok(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_texts_or_parts() {
        let all =
            parse("- node=node-2@5m+10m\n- {fault: \"registry=ghcr.io:401\", start: 1m, duration: 10m}\n")
                .unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].text, "registry=ghcr.io:401@1m+10m");
        assert_eq!(all[1].start.as_secs(), 60);
        assert_eq!(all[1].end().unwrap().as_secs(), 660);
    }

    #[test]
    fn what_is_no_fault_is_told_with_its_place() {
        for (text, why) in [
            ("a: 1", "no list of faults"),
            ("- volcano=x", "there is no kind of fault"),
            ("- {fault: dns, from: 1m}", "neither a text nor"),
            ("- {fault: dns, start: soon}", "soon"),
            ("- [", "no valid YAML"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{text}: {error:#}");
        }
    }
}
