//! Exec plugins, kustomize's older kind: configuration in a file, objects on stdin, arguments in two fields.

use serde_json::Value;

use crate::{
    error::{Error, Result},
    loader::Loader,
};

/// The arguments after the configuration file: of `argsOneLiner`, then a line each of `argsFromFile`.
///
/// # Errors
/// A quote that is not closed, a file that cannot be read.
pub(super) fn arguments(config: &Value, loader: &Loader<'_>) -> Result<Vec<String>> {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut arguments = split_words(text("argsOneLiner"))
        .map_err(|error| Error::transform(format!("failed to parse argsOneLiner: {error}")))?;
    let file = text("argsFromFile");
    if !file.is_empty() {
        let bytes = loader.load(file)?;
        let lines = String::from_utf8_lossy(&bytes);
        let lines =
            lines.split('\n').map(|line| line.trim_start_matches(' ')).filter(|line| !line.is_empty());
        arguments.extend(lines.map(str::to_owned));
    }
    Ok(arguments)
}

/// Splits a line into words as a shell would: quotes, backslashes, and `#` for the rest.
///
/// # Errors
/// A quote that is not closed.
fn split_words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quote, mut escaped) = (None, false);
    for c in line.chars() {
        match c {
            _ if escaped => {
                word.push(c);
                escaped = false;
            }
            '\\' if quote != Some('\'') => escaped = true,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            '#' if quote.is_none() => break,
            _ if c.is_whitespace() && quote.is_none() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(c),
        }
    }
    if quote.is_some() {
        return Err("unclosed quote in string");
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell() {
        let rows: [(&str, &[&str]); 6] = [
            (r#"a "b c" 'd e'"#, &["a", "b c", "d e"]),
            (r"a\ b '\n' \\", &["a b", r"\n", r"\"]),
            ("a#b c", &["a"]),
            ("'' x", &["x"]),
            (r#"x"y"z"#, &["xyz"]),
            ("", &[]),
        ];
        for (line, words) in rows {
            assert_eq!(split_words(line).unwrap(), words, "{line}");
        }
        assert!(split_words("a \"b").is_err());
    }
}
