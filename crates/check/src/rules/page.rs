//! The page of a rule: the comment at the head of its file. The rest of the file is not kept in the program.

/// The module comment of the file that is named, which stands beside the one that asks.
macro_rules! page {
    ($file:literal) => {{
        const SOURCE: &str = include_str!($file);
        const HEAD: [u8; $crate::rules::page::head_length(SOURCE)] = $crate::rules::page::head(SOURCE);
        match std::str::from_utf8(&HEAD) {
            Ok(head) => head,
            Err(_) => panic!("a line ends within a character"),
        }
    }};
}

/// Bytes of the lines at the head of a file that begin with `//!`, the last line break included.
pub(crate) const fn head_length(source: &str) -> usize {
    let source = source.as_bytes();
    let mut length = 0;
    while length + 2 < source.len()
        && source[length] == b'/'
        && source[length + 1] == b'/'
        && source[length + 2] == b'!'
    {
        while length < source.len() && source[length] != b'\n' {
            length += 1;
        }
        if length < source.len() {
            length += 1;
        }
    }
    length
}

/// As many bytes of a file's beginning.
pub(crate) const fn head<const LENGTH: usize>(source: &str) -> [u8; LENGTH] {
    let source = source.as_bytes();
    let mut head = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        head[at] = source[at];
        at += 1;
    }
    head
}

#[cfg(test)]
mod tests {
    use super::head_length;

    #[test]
    fn the_head_ends_where_the_comment_does() {
        for (source, head) in [
            ("", ""),
            ("use a;\n", ""),
            ("//", ""),
            ("//!", "//!"),
            ("//! A\n//!\n//! b", "//! A\n//!\n//! b"),
            ("//! Ä\n\n//! no more\n", "//! Ä\n"),
            ("//! A\nuse b;\n//! c\n", "//! A\n"),
        ] {
            assert_eq!(&source[..head_length(source)], head, "{source:?}");
        }
    }
}
