//! How results are written: tables for people, JSON and YAML for programs.

use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, IsTerminal as _, Write as _},
};

use clap::ValueEnum;
use serde_json::Value;
use tiphys_diag::sanitize;

/// The form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON text.
    Json,
    /// One YAML text.
    Yaml,
}

/// Stands for the standard library's macro in this program: what is said on stderr holds names and messages
/// of repositories, and those must not command the terminal, or the runner of a workflow.
macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::output::notice(format_args!($($argument)*)) };
}

/// Writes lines to stderr for people. That nobody reads them ends nobody's work.
pub(crate) fn notice(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", sanitize::terminal(&text.to_string()));
}

/// Writes a line to stdout, as a terminal may have it. Unlike `println!` it does not panic when nobody reads
/// any more.
///
/// # Errors
/// stdout cannot be written.
pub(crate) fn say(line: impl Display) -> io::Result<()> {
    write(sanitize::terminal(&format!("{line}\n")).as_bytes())
}

/// Prints text for people, or the value that says the same to programs.
///
/// # Errors
/// stdout cannot be written.
pub(crate) fn print(format: Format, text: &str, value: &Value) -> io::Result<()> {
    match format {
        Format::Text => write(sanitize::terminal(text).as_bytes()),
        Format::Json => write(json_text(value).as_bytes()),
        Format::Yaml => write(yaml_text(value).as_bytes()),
    }
}

/// Prints manifests as they are, to be read by programs in every form.
///
/// # Errors
/// stdout cannot be written.
pub(crate) fn print_manifests(format: Format, text: &str, value: &Value) -> io::Result<()> {
    match format {
        Format::Text => write_manifests(text.as_bytes()),
        Format::Json => write(sanitize::json(&format!("{value:#}\n")).as_bytes()),
        Format::Yaml => write_manifests(tiphys_yaml::to_yaml(value).as_bytes()),
    }
}

/// Writes manifests to stdout, byte for byte. Only on a terminal, where a person reads them, characters that
/// would command it are shown as pictures.
///
/// # Errors
/// stdout cannot be written.
pub(crate) fn write_manifests(bytes: &[u8]) -> io::Result<()> {
    write(&for_reader(bytes, io::stdout().is_terminal()))
}

fn for_reader(bytes: &[u8], is_terminal: bool) -> Cow<'_, [u8]> {
    if !is_terminal {
        return Cow::Borrowed(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    Cow::Owned(sanitize::source(&text).into_owned().into_bytes())
}

/// A value as JSON text for programs, without passwords of addresses and without what commands a terminal.
pub(crate) fn json_text(value: &Value) -> String {
    let text = format!("{value:#}\n");
    let text = sanitize::without_passwords(&text);
    sanitize::json(&text).into_owned()
}

/// A value as YAML text for programs, without passwords of addresses and without what commands a terminal:
/// YAML leaves marks of direction and zero width as they are, and JSON, which is YAML too, escapes them.
fn yaml_text(value: &Value) -> String {
    let text = tiphys_yaml::to_yaml(value);
    if sanitize::source(&text) != text {
        return json_text(value);
    }
    sanitize::without_passwords(&text).into_owned()
}

/// Writes to stdout, all of it before this returns: what is left for the end of the process fails unheard.
///
/// # Errors
/// stdout cannot be written; of the kind that the system told.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}

/// Rows under a header, columns aligned, the last one as wide as it likes.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let header = header.map(str::to_owned);
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| sanitize::line(cell).into_owned())).collect();
    let lines: Vec<&[String; N]> = std::iter::once(&header).chain(&rows).collect();
    let widths: Vec<usize> = (0..N)
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A text on one line: line breaks become blanks.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_has_no_marks_of_direction() {
        assert_eq!(yaml_text(&serde_json::json!({"name": "web"})), "name: web\n");
        let name = "a\u{202e}b";
        let text = yaml_text(&serde_json::json!({ "name": name }));
        assert_eq!(text, "{\n  \"name\": \"a\\u202eb\"\n}\n");
        assert_eq!(tiphys_yaml::from_yaml(&text).unwrap(), serde_json::json!({ "name": name }));
    }

    #[test]
    fn a_cell_is_one_line_and_commands_nothing() {
        let rows = [["a\n::error::x\u{1b}[31m".into(), "b".into()]];
        assert_eq!(
            table(["NAME", "X"], &rows),
            "NAME              X\na\u{240a}\u{2237}error::x\u{241b}[31m  b\n"
        );
    }

    #[test]
    fn manifests_command_no_terminal_and_stay_as_they_are_for_programs() {
        let manifest = "a: \u{1b}[2J\u{202e}\nb: x\n";
        assert_eq!(for_reader(manifest.as_bytes(), false), manifest.as_bytes());
        assert_eq!(for_reader(manifest.as_bytes(), true), "a: \u{241b}[2J\u{fffd}\nb: x\n".as_bytes());
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a".into(), "Healthy".into()], ["longer".into(), String::new()]];
        assert_eq!(table(["NAME", "HEALTH"], &rows), "NAME    HEALTH\na       Healthy\nlonger\n");
    }
}
