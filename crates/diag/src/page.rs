//! What pages of reports have in common: files of their own, readable on a phone, in light and dark.

use std::fmt::Write as _;

use crate::sanitize::html;

/// The style of a page, to stand in its `style` element; a report may add to it.
pub const STYLE: &str = include_str!("page.css");

/// Appends a folded list with a title and the number of its lines; nothing for no lines.
pub fn write_list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let count = lines.len();
    let _ =
        writeln!(out, "<details class=\"more\"><summary><b>{title}</b> <span>{count}</span></summary>\n<ul>");
    for line in lines {
        let _ = writeln!(out, "<li>{}</li>", html(line));
    }
    out.push_str("</ul>\n</details>\n");
}
