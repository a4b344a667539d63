//! Variables with a value that the repository states once and clearly.

use std::collections::HashMap;

/// Names and their values.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    values: HashMap<String, Option<String>>,
}

/// How often values are looked up in values.
const MAX_DEPTH: usize = 8;

impl Variables {
    /// Adds a value; a name with two different values has none.
    pub fn add(&mut self, name: &str, value: &str) {
        let entry = self.values.entry(name.to_owned()).or_insert_with(|| Some(value.to_owned()));
        if entry.as_deref() != Some(value) {
            *entry = None;
        }
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_deref()
    }

    /// A text with `$name`, `${name}`, `${name:-default}` and `{{ name }}` put in where they are known.
    pub fn expand(&self, text: &str) -> String {
        self.expand_to(text, MAX_DEPTH)
    }

    fn expand_to(&self, text: &str, depth: usize) -> String {
        if depth == 0 || !(text.contains('$') || text.contains("{{")) {
            return text.to_owned();
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let (length, value) = self.reference(rest).unwrap_or((1, None));
            match value {
                Some(value) => out.push_str(&self.expand_to(&value, depth - 1)),
                None => out.push_str(&rest[..length]),
            }
            rest = &rest[length..];
        }
        out.push_str(rest);
        out
    }

    /// The length of the reference that a text starts with, and what it stands for.
    fn reference(&self, text: &str) -> Option<(usize, Option<String>)> {
        if let Some(inner) = text.strip_prefix("{{") {
            let end = inner.find("}}")?;
            let (name, filter) = inner[..end].split_once('|').unwrap_or((&inner[..end], ""));
            let fallback = filter.trim().strip_prefix("default(").and_then(quoted);
            return Some((end + 4, self.get(name.trim()).map(str::to_owned).or(fallback)));
        }
        if let Some(inner) = text.strip_prefix("${") {
            let end = inner.find('}')?;
            let (name, fallback) = match inner[..end].split_once(":-") {
                Some((name, fallback)) => (name, Some(fallback.to_owned())),
                None => (&inner[..end], None),
            };
            return Some((end + 3, self.get(name).map(str::to_owned).or(fallback)));
        }
        let name = text.strip_prefix('$')?;
        let length = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        (length > 0).then(|| (length + 1, self.get(&name[..length]).map(str::to_owned)))
    }
}

/// The text between the quotes that a text starts with.
fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split(quote).next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::Variables;

    #[test]
    fn only_what_is_plain_is_put_in() {
        let mut variables = Variables::default();
        variables.add("VERSION", "v3");
        variables.add("url", "https://a/$VERSION");
        variables.add("two", "a");
        variables.add("two", "b");
        assert_eq!(variables.expand("{{ url }}/x"), "https://a/v3/x");
        assert_eq!(variables.expand("${two} $none ${none:-d} {{ n | default('e') }}"), "${two} $none d e");
        variables.add("loop", "$loop");
        assert_eq!(variables.expand("$loop"), "$loop");
        assert_eq!(variables.expand("${ {{ $"), "${ {{ $");
    }
}
