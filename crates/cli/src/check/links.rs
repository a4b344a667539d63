//! Places in a terminal's output as links to the files (OSC 8 of the terminals that know it; others show the
//! text).

use std::{fmt::Write as _, path::Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// What stands before a place, once coloured.
const MARKS: [&str; 2] = ["--> \x1b[0m", "::: \x1b[0m"];

/// The coloured text with every place `file:line:column` linked to the file below `root`.
pub(super) fn linked(text: &str, root: &Path) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match MARKS.iter().find_map(|mark| line.split_once(mark).map(|(before, rest)| (before, *mark, rest)))
        {
            Some((before, mark, rest)) => {
                let place = rest.trim_end();
                let file = place.rsplitn(3, ':').nth(2).unwrap_or(place);
                let address = address(&root.join(file));
                let end = &rest[place.len()..];
                // Writing to a String cannot fail.
                let _ = write!(out, "{before}{mark}\x1b]8;;{address}\x1b\\{place}\x1b]8;;\x1b\\{end}");
            }
            None => out.push_str(line),
        }
    }
    out
}

/// What stands in addresses as it is, beside letters and digits.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// A path as a `file:` address (RFC 8089).
fn address(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_encoded_bytes(), ENCODED))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::linked;

    #[test]
    fn places_are_linked_and_nothing_else() {
        let text = "error: a --> b\n \x1b[94m--> \x1b[0mapps/a b.yaml:3:5\n  = help\n";
        assert_eq!(
            linked(text, Path::new("/shop")),
            "error: a --> b\n \x1b[94m--> \x1b[0m\x1b]8;;file:///shop/apps/a%20b.yaml\x1b\\apps/a b.yaml:3:5\x1b]8;;\x1b\\\n  = help\n"
        );
    }
}
