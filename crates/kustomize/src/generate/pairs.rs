//! The keys and values of generated ConfigMaps and Secrets.

use std::collections::BTreeMap;

use tiphys_gocompat::{rawstr::encode, strconv::quote};

use crate::{
    error::{Context as _, Error, Result},
    kustomization::model::GeneratorArgs,
    loader::Loader,
    meter::Meter,
};

type Pair = (String, Vec<u8>);

/// What a key takes beside its texts until it is printed, in bytes, about: as a pair, as nodes, as JSON
/// twice, and with its origin.
const KEY: usize = 1 << 10;

/// Loads all pairs: env files, literals, files.
///
/// # Errors
/// Sources that cannot be read, keys given twice.
pub(super) fn load(
    args: &GeneratorArgs,
    loader: &Loader<'_>,
    meter: &Meter,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let pairs = load_sources(args, loader, meter).context(|| "loading KV pairs")?;
    let mut known = BTreeMap::new();
    for (key, value) in pairs {
        if known.insert(key.clone(), value).is_some() {
            return Err(Error::transform(format!(
                "configmap {} illegally repeats the key `{key}`",
                args.name
            )));
        }
    }
    Ok(known)
}

fn load_sources(args: &GeneratorArgs, loader: &Loader<'_>, meter: &Meter) -> Result<Vec<Pair>> {
    let list = |sources: &[String]| format!("[{}]", sources.join(" "));
    let mut pairs = Vec::new();
    for path in &args.envs {
        let found = loader.load(path).and_then(|bytes| env_pairs(&bytes, meter));
        pairs.extend(found.context(|| format!("env source files: {}", list(&args.envs)))?);
    }
    for literal in &args.literals {
        meter.check(KEY)?;
        pairs.push(literal_pair(literal).context(|| format!("literal sources {}", list(&args.literals)))?);
    }
    for source in &args.files {
        let found = file_source(source).and_then(|(key, path)| {
            let bytes = loader.load(&path)?;
            meter.check(KEY + bytes.len())?;
            Ok((key, bytes.to_vec()))
        });
        pairs.push(found.context(|| format!("file sources: {}", list(&args.files)))?);
    }
    Ok(pairs)
}

fn literal_pair(literal: &str) -> Result<Pair> {
    match literal.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), unquoted(value).as_bytes().to_vec())),
        _ => Err(Error::transform(format!("invalid literal source {literal}, expected key=value"))),
    }
}

/// Without the quotes that enclose a value.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if value.len() >= 2
            && let Some(inner) = value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote))
        {
            return inner;
        }
    }
    value
}

/// `path`, or `key=path`.
fn file_source(source: &str) -> Result<(String, String)> {
    let base = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    match source.split('=').collect::<Vec<_>>().as_slice() {
        [path] => Ok((base(path), (*path).to_owned())),
        ["", path] => Err(Error::transform(format!(
            "missing key name for file path {} in source {}",
            quote(path),
            quote(source)
        ))),
        [key, ""] => Err(Error::transform(format!(
            "missing file path for key name {} in source {}",
            quote(key),
            quote(source)
        ))),
        [key, path] => Ok(((*key).to_owned(), (*path).to_owned())),
        _ => Err(Error::transform(format!("source {} key name or file path contains '='", quote(source)))),
    }
}

/// The lines of an env file; a line without `=` is a key with an empty value.
fn env_pairs(bytes: &[u8], meter: &Meter) -> Result<Vec<Pair>> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(bytes);
    let mut pairs = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(text) = std::str::from_utf8(line) else {
            return Err(Error::transform(format!(
                "line {} has invalid utf8 bytes : {}",
                quote(&encode(line)),
                String::from_utf8_lossy(line)
            )));
        };
        let text = text.trim_start();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        meter.check(KEY + text.len())?;
        if !key.is_empty() {
            pairs.push((key.to_owned(), value.as_bytes().to_vec()));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(text: &str) -> Vec<(String, String)> {
        let meter = Meter::new(8 << 20, std::time::Duration::MAX);
        let pairs = env_pairs(text.as_bytes(), &meter).unwrap();
        pairs.into_iter().map(|(key, value)| (key, String::from_utf8(value).unwrap())).collect()
    }

    #[test]
    fn env_files_keep_quotes_and_trailing_spaces() {
        let pairs = env("\u{feff}# c\nA=1 \n  B=\"x\"\r\n\nC\n=d\nE=f=g\n");
        let expected = [("A", "1 "), ("B", "\"x\""), ("C", ""), ("E", "f=g")];
        assert_eq!(pairs, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn every_line_counts_in_the_memory() {
        let meter = Meter::new(8 << 20, std::time::Duration::MAX);
        let fault = env_pairs("A\n".repeat(10_000).as_bytes(), &meter).unwrap_err();
        assert_eq!(fault.to_string(), "the build makes more than 8 MiB; --limit-memory raises the limit");
    }

    #[test]
    fn literals_lose_quotes() {
        assert_eq!(literal_pair("a='b c'").unwrap().1, b"b c");
        assert_eq!(literal_pair("a=\"").unwrap().1, b"\"");
        assert!(literal_pair("=b").is_err() && literal_pair("a").is_err());
    }

    #[test]
    fn file_sources_name_their_key() {
        assert_eq!(file_source("a/b.txt").unwrap(), ("b.txt".into(), "a/b.txt".into()));
        assert_eq!(file_source("k=a/b").unwrap(), ("k".into(), "a/b".into()));
        assert!(file_source("=a").is_err() && file_source("a=").is_err() && file_source("a=b=c").is_err());
    }
}
