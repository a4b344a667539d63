//! Sections of `docs/conformance.md` that commands write: between two comments that name them.

use std::{fs, path::Path};

use anyhow::Context;

const FILE: &str = "docs/conformance.md";

/// Puts a section in the place of the one of that name, or at the end.
///
/// # Errors
/// The file cannot be read or written.
pub(super) fn publish(name: &str, section: &str) -> anyhow::Result<()> {
    let path = Path::new(FILE);
    let text = fs::read_to_string(path).with_context(|| FILE.to_owned())?;
    fs::write(path, replaced(&text, name, section)).with_context(|| FILE.to_owned())
}

fn replaced(text: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->\n"));
    let block = format!("{begin}\n{}\n\n{end}", section.trim());
    match (text.find(&begin), text.find(&end)) {
        (Some(from), Some(to)) if from < to => format!("{}{block}{}", &text[..from], &text[to + end.len()..]),
        _ => format!("{}\n\n{block}", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let first = replaced("# T\n\nwords\n", "a", "one");
        assert_eq!(first, "# T\n\nwords\n\n<!-- begin a -->\n\none\n\n<!-- end a -->\n");
        let second = replaced(&format!("{first}\nmore\n"), "a", "two");
        assert_eq!(second, "# T\n\nwords\n\n<!-- begin a -->\n\ntwo\n\n<!-- end a -->\n\nmore\n");
    }
}
