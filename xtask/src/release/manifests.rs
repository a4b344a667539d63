//! What package managers are told of a release: templates of `packaging/`, filled with the checksums of its
//! archives.
//!
//! `@VERSION@` and `@SHA256:TARGET@` are replaced. Lines from `#@ if TARGET` to `#@ end` are left out of a
//! release that has no archive for that target.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

/// A template with everything filled in; the checksums are by target.
///
/// # Errors
/// A block does not end, or a checksum is asked for that the release does not have.
pub(super) fn fill(
    template: &str,
    version: &str,
    checksums: &BTreeMap<String, String>,
) -> anyhow::Result<String> {
    let mut filled = String::new();
    let mut block: Option<&str> = None;
    for line in template.lines() {
        match (line.trim().strip_prefix("#@ "), block) {
            (Some("end"), Some(_)) => block = None,
            (Some(command), None) => {
                let target = command.strip_prefix("if ").with_context(|| format!("unknown: #@ {command}"))?;
                block = Some(target);
            }
            (Some(command), Some(target)) => bail!("#@ {command} inside of #@ if {target}"),
            (None, Some(target)) if !checksums.contains_key(target) => {}
            (None, _) => {
                filled.push_str(&fill_line(line, version, checksums)?);
                filled.push('\n');
            }
        }
    }
    match block {
        Some(target) => bail!("#@ if {target} has no #@ end"),
        None => Ok(filled),
    }
}

fn fill_line(line: &str, version: &str, checksums: &BTreeMap<String, String>) -> anyhow::Result<String> {
    const CHECKSUM: &str = "@SHA256:";
    let mut line = line.replace("@VERSION@", version);
    while let Some(start) = line.find(CHECKSUM) {
        let rest = &line[start + CHECKSUM.len()..];
        let (target, _) = rest.split_once('@').with_context(|| format!("no @ after {CHECKSUM}"))?;
        let sum = checksums.get(target).with_context(|| format!("there is no archive for {target}"))?;
        line = line.replace(&format!("{CHECKSUM}{target}@"), sum);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "v @VERSION@\n#@ if a\na @SHA256:a@\n#@ end\n  #@ if b\nb @SHA256:b@\n  #@ end\n";

    fn sums(targets: &[&str]) -> BTreeMap<String, String> {
        targets.iter().map(|target| ((*target).to_owned(), format!("sum-{target}"))).collect()
    }

    #[test]
    fn blocks_of_targets_that_a_release_lacks_are_left_out() {
        assert_eq!(fill(TEMPLATE, "1.2.3", &sums(&["a", "b"])).unwrap(), "v 1.2.3\na sum-a\nb sum-b\n");
        assert_eq!(fill(TEMPLATE, "1.2.3", &sums(&["b"])).unwrap(), "v 1.2.3\nb sum-b\n");
    }

    #[test]
    fn a_checksum_that_is_not_there_is_no_empty_one() {
        let error = fill("@SHA256:c@\n", "1", &sums(&["a"])).unwrap_err();
        assert!(error.to_string().contains("no archive for c"), "{error}");
        assert!(fill("#@ if a\n", "1", &sums(&[])).is_err());
        assert!(fill("#@ unless a\n", "1", &sums(&[])).is_err());
    }
}
