//! A recording of a program in a terminal, as an animated SVG: lines appear when they were written, and the
//! text moves up where it is longer than the picture. Who wants no motion sees its end.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};

use super::escaped;

/// Lines that are seen at one time.
const ROWS: usize = 26;
/// Characters of a line that are seen; the rest is cut off.
const COLUMNS: usize = 118;
/// Height of a line and width of a character, in the units of the picture.
const LINE: f64 = 17.0;
const CHARACTER: f64 = 7.25;
/// What is above the first line and beside all lines.
const TOP: f64 = 44.0;
const SIDE: f64 = 16.0;
/// How long the end stays before it begins again.
const REST: Duration = Duration::from_secs(6);

/// Words of states, with the class that colours them.
const WORDS: &[(&str, &str)] = &[
    ("Healthy", "good"),
    ("Synced", "good"),
    ("Progressing", "busy"),
    ("OutOfSync", "busy"),
    ("Missing", "busy"),
    ("syncing", "busy"),
    ("Degraded", "bad"),
    ("Unknown", "faint"),
];

/// A line and when it was written, from the start.
pub(super) struct Line {
    at: Duration,
    text: String,
}

/// Runs the program in a folder and notes what it writes. State is kept in a folder that is gone afterwards,
/// and shown as the one that users have.
///
/// # Errors
/// It cannot be run, or fails.
pub(super) fn record(tiphys: &Path, folder: &Path, arguments: &[&str]) -> anyhow::Result<Vec<Line>> {
    let state = tempfile::tempdir()?;
    let mut child = Command::new(tiphys)
        .current_dir(folder)
        .args(arguments)
        .env("XDG_STATE_HOME", state.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", tiphys.display()))?;
    let start = Instant::now();
    let home = state.path().display().to_string();
    let written = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
    let mut lines = Vec::new();
    for line in written {
        lines.push(Line { at: start.elapsed(), text: line?.replace(&home, "~/.local/state") });
    }
    ensure!(child.wait()?.success(), "tiphys {} failed", arguments.join(" "));
    Ok(lines)
}

/// The picture of a recording, below the command that was typed.
pub(super) fn draw(command: &str, lines: &[Line]) -> String {
    let (width, height) = (CHARACTER * COLUMNS as f64 + 2.0 * SIDE, TOP + LINE * (ROWS as f64 + 1.5));
    let last = lines.last().map_or(Duration::ZERO, |line| line.at);
    let total = (last + REST).as_secs_f64();
    let percent = |at: Duration| 100.0 * at.as_secs_f64() / total;
    let (mut style, mut body) = (String::new(), String::new());
    let mut moves = String::from("0%{transform:translateY(0)}");
    for (at, line) in lines.iter().enumerate() {
        let (begin, class) = (percent(line.at), format!("l{at}"));
        let _ = write!(
            style,
            ".{class}{{animation:{class} {total:.2}s step-end infinite}}@keyframes {class}{{0%{{opacity:0}}{begin:.2}%{{opacity:1}}}}"
        );
        if at + 1 > ROWS {
            let _ =
                write!(moves, "{begin:.2}%{{transform:translateY(-{}px)}}", LINE * (at + 1 - ROWS) as f64);
        }
        let y = TOP + LINE * (at as f64 + 1.0);
        let _ = writeln!(
            body,
            "<text class=\"{class}\" x=\"{SIDE}\" y=\"{y}\">{}</text>",
            coloured(&cut(&line.text))
        );
    }
    let hidden = LINE * lines.len().saturating_sub(ROWS) as f64;
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}" role="img" aria-label="A terminal: {command}">
<style>text{{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d5dde5;white-space:pre}}.command{{font-weight:600;fill:#fff}}.good{{fill:#6fd08c}}.busy{{fill:#e5c76b}}.bad{{fill:#f2777a}}.faint{{fill:#7d8b99}}
.all{{transform:translateY(-{hidden}px)}}@media (prefers-reduced-motion:no-preference){{.all{{animation:scroll {total:.2}s step-end infinite}}@keyframes scroll{{{moves}}}{style}}}</style>
<rect width="{width}" height="{height}" rx="8" fill="#14191f"/>
<text class="command" x="{SIDE}" y="26">$ {}</text>
<svg x="0" y="{TOP}" width="{width}" height="{}" viewBox="0 {TOP} {width} {}"><g class="all">
{body}</g></svg>
</svg>
"##,
        escaped(command),
        LINE * (ROWS as f64 + 0.5),
        LINE * (ROWS as f64 + 0.5),
    )
}

/// As much of a line as is seen.
fn cut(text: &str) -> String {
    if text.chars().count() <= COLUMNS {
        return text.to_owned();
    }
    text.chars().take(COLUMNS - 1).chain(['…']).collect()
}

/// A line with its words of states coloured.
fn coloured(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(' ') {
        let word = part.trim_end();
        match WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, class)) => {
                let blanks = &part[word.len()..];
                let _ = write!(out, "<tspan class=\"{class}\">{word}</tspan>{blanks}");
            }
            None => out.push_str(&escaped(part)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_coloured_and_text_stays_text() {
        assert_eq!(coloured("web  Synced <b>"), "web  <tspan class=\"good\">Synced</tspan> &lt;b&gt;");
    }

    #[test]
    fn what_is_longer_than_the_picture_moves_up() {
        let lines: Vec<Line> = (0..30_u64)
            .map(|at| Line { at: Duration::from_millis(100 * at), text: format!("line {at}") })
            .collect();
        let picture = draw("tiphys", &lines);
        assert_eq!(picture.matches("<text class=\"l").count(), 30);
        assert!(picture.contains("translateY(-68px)"), "four lines of 17 are above the picture at its end");
        assert_eq!(cut(&"x".repeat(200)).chars().count(), COLUMNS);
    }
}
