//! `cargo xtask tidy`, second part: comments that fit on a screen, words that a stranger understands, and
//! functions whose names say something where they are called.

use anyhow::bail;

use crate::git_files;

/// The longest line of a comment, in characters.
const COLUMNS: usize = 110;

/// Words that only their author understood, and what to write.
const PRIVATE: &[(&str, &str)] = &[
    ("comes to its end", "ends"),
    ("come to an end", "end"),
    ("in vain", "without effect"),
    ("as good as", "equivalent to"),
    ("plainly", "clearly"),
    ("without a word", "silently"),
    ("told apart", "distinguished"),
    ("tell apart", "distinguish"),
    ("ornament", "decoration"),
    ("nearly called so", "has a similar name"),
    ("gives way to", "yields to"),
    ("laid over", "merged over"),
    ("in the midst of", "during"),
    ("falls behind", "lags"),
    ("no business of", "not checked by"),
];

/// Prepositions and participles that say nothing where a function is called: `of(survey)`, `told(&x)`.
const LONE_NAMES: &[&str] = &[
    "of", "on", "by", "under", "over", "again", "here", "what", "look", "told", "said", "shown", "seen",
    "made", "named", "called", "wanted", "needed", "asked", "held", "kept", "left", "taken", "gone", "both",
];

/// Looks at the comments and the names of functions of every Rust file.
///
/// # Errors
/// Names each line that is too long, each word with what to write, and each function without a noun or verb.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut faults = Vec::new();
    let files = git_files::matching("*.rs")?;
    for (file, text) in files.iter().filter(|(file, _)| file != "xtask/src/wording.rs") {
        faults.extend(in_text(text).into_iter().map(|(line, fault)| format!("{file}:{line}: {fault}")));
    }
    if faults.is_empty() {
        println!("tidy: comments fit on a screen and have no private words, functions have names");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// Line and fault of each comment that is too long or has a private word.
fn in_text(text: &str) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut is_example = false;
    for (line, content) in (1..).zip(text.lines()) {
        let comment = content.trim_start();
        if let Some(name) = lone_name(comment) {
            faults.push((line, format!("a function named {name:?}: name what it returns or does")));
        }
        if !["// ", "///", "//!"].iter().any(|start| comment.starts_with(start)) {
            is_example = false;
            continue;
        }
        is_example ^= comment.contains("```");
        let columns = content.chars().count();
        // What cannot be broken may be longer: an address, a row of a table, a quoted message.
        if columns > COLUMNS && !is_example && !comment.contains(['|', '`', '"']) && !comment.contains("://")
        {
            faults.push((line, format!("a comment of {columns} columns; {COLUMNS} fit on a screen")));
        }
        let lower = comment.to_lowercase();
        for (word, plain) in PRIVATE.iter().filter(|(word, _)| lower.contains(word)) {
            faults.push((line, format!("{word:?} is hard to understand; write {plain:?}")));
        }
    }
    faults
}

/// The name of the function that a line of code defines, if it is a lone preposition or participle.
fn lone_name(code: &str) -> Option<&str> {
    let visible =
        ["pub(crate) ", "pub(super) ", "pub ", ""].iter().find_map(|word| code.strip_prefix(word))?;
    let name = visible.strip_prefix("async ").unwrap_or(visible).strip_prefix("fn ")?;
    let name = &name[..name.find(['(', '<'])?];
    LONE_NAMES.contains(&name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_prepositions_and_participles_are_no_names_of_functions() {
        assert_eq!(lone_name("pub(super) async fn told<'a>(text: &'a str) {"), Some("told"));
        assert_eq!(lone_name("fn of(survey: &Survey) -> Self {"), Some("of"));
        assert_eq!(lone_name("fn from_survey(survey: &Survey) -> Self {"), None);
        assert_eq!(lone_name("let fn_of = of(survey);"), None);
        assert_eq!(in_text("fn shown() {}").len(), 1);
    }

    #[test]
    fn long_comments_and_private_words_are_faults_and_code_is_not() {
        let long = format!("/// {}", "word ".repeat(30));
        assert_eq!(in_text(&long).len(), 1);
        assert!(in_text(&format!("let a = \"{}\";", "x".repeat(200))).is_empty());
        assert!(in_text(&format!("// | {} |", "x".repeat(200))).is_empty(), "a row of a table");
        assert!(
            in_text(&format!("//! ```yaml\n//! {}\n//! ```", "word ".repeat(30))).is_empty(),
            "an example"
        );
        let faults = in_text("a\n    // It was tried in vain.\n");
        assert_eq!(faults[0].0, 2);
        assert!(faults[0].1.contains("without effect"), "{faults:?}");
        assert!(in_text("let text = \"in vain\";").is_empty());
    }
}
