//! Patterns, compiled when they are first used.

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: std::sync::LazyLock<regex::Regex> = std::sync::LazyLock::new(|| {
            regex::Regex::new($text).expect("the pattern is a literal that a test compiles")
        });
    };
}

pub(crate) use pattern;

/// Whether a text holds one of these words; the words are in lower case, as is the text.
pub(crate) fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}
