//! # A block of a template that is not indented below its key
//!
//! What a template writes by `toYaml … | nindent N` has to stand further right than the key above it. Where
//! it does not, the manifest is no YAML, or the fields end up beside the key instead of below it. As long as
//! the condition around the block is off nobody sees it; the chart fails for the first who gives the value.
//! So it does where the action before a key takes the line breaks on both of its sides (`{{- if … -}}`): the
//! key comes right behind the line above; and where `{{- toYaml … | indent N }}` takes the line break behind
//! a key, which `nindent` would write again.
//!
//! People see: `error converting YAML to JSON: yaml: line 46: did not find expected key`, or `unknown field
//! "spec.template.spec.containers[0].limits"`.
//!
//! ## Bad
//! ```yaml
//!           {{- with .Values.nodeSelector }}
//!           nodeSelector:
//!             {{- toYaml . | nindent 8 }}
//!           {{- end }}
//! ```
//! ## Good
//! ```yaml
//!           {{- with .Values.nodeSelector }}
//!           nodeSelector:
//!             {{- toYaml . | nindent 12 }}
//!           {{- end }}
//! ```
//! ## When to suppress
//! Where the value is a text, never a list or a mapping.

use std::sync::Arc;

use tiphys_diag::{Edit, Severity, Span};
use tiphys_graph::Files;
use tiphys_value::Location;

use crate::{Context, Finding, Report, Rule, support::unused_files};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-template-indent",
    incident: "D2",
    severity: Severity::Warning,
    title: "a block of a template that is not indented below its key",
    page: page!("d2_template_indent.rs"),
    check,
};

/// Fields of Kubernetes that are mappings, so that what stands right below them is beside them. A list may
/// stand there.
const MAPPINGS: [&str; 14] = [
    "affinity",
    "annotations",
    "data",
    "labels",
    "limits",
    "livenessProbe",
    "matchLabels",
    "nodeSelector",
    "readinessProbe",
    "requests",
    "resources",
    "securityContext",
    "startupProbe",
    "stringData",
];

/// A block that is not below its key.
struct Block<'a> {
    /// The line of the block, from 0.
    line: usize,
    /// The line of its key, from 0.
    of: usize,
    key: &'a str,
    /// How far right the key stands, and the block.
    depth: usize,
    indent: usize,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.ending(&[".yaml", ".yml", ".tpl"]) {
        if !is_of_chart(files, path) || unused_files::is_in_unused_folder(path) {
            continue;
        }
        let Some(text) = files.text(path).filter(|text| text.contains("indent")) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        for block in (1..lines.len()).filter_map(|at| block(&lines, at)) {
            report.add(finding(files, path, lines[block.line], &block));
        }
        for (of, at) in (1..lines.len()).filter_map(|at| Some((same_line(&lines, at)?, at))) {
            report.add(told_of_same_line(files, path, &lines, (of, at)));
        }
    }
    for path in files.ending(&[".yaml", ".yml"]) {
        if !is_of_chart(files, path) || unused_files::is_in_unused_folder(path) {
            continue;
        }
        let Some(text) = files.text(path).filter(|text| text.contains("-}}")) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        for (above, at) in (1..lines.len()).filter_map(|at| Some((joined_line(&lines, at)?, at))) {
            report.add(told_of_joined(files, path, &lines, (above, at)));
        }
    }
}

/// Whether a file is a template of a chart that the repository writes itself.
fn is_of_chart(files: &Files, path: &str) -> bool {
    let mut folders = path.match_indices("/templates/").map(|(at, _)| &path[..at]);
    folders.any(|folder| {
        let vendored = folder.rsplit_once('/').is_some_and(|(above, _)| {
            above.ends_with("/charts")
                && files.contains(&format!("{}/Chart.yaml", above.trim_end_matches("/charts")))
        });
        !vendored && files.contains(&format!("{folder}/Chart.yaml"))
    })
}

/// The block that a line writes, if it is not below its key.
fn block<'a>(lines: &[&'a str], line: usize) -> Option<Block<'a>> {
    let indent = written(lines[line])?;
    // What opens a condition between the key and the block.
    let opens = |text: &str| {
        let inner = text.trim().strip_prefix("{{").map(|inner| inner.trim_start_matches('-').trim_start());
        inner.is_some_and(|inner| inner.starts_with("with ") || inner.starts_with("if "))
    };
    let mut of = line.checked_sub(1)?;
    while opens(lines[of]) || lines[of].trim().is_empty() {
        of = of.checked_sub(1)?;
    }
    let inner = lines[of].trim_start();
    let entry = inner.strip_prefix("- ").unwrap_or(inner);
    let key = entry.trim_end().strip_suffix(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let depth = lines[of].len() - entry.len();
    let is_below = indent > depth || indent == depth && !MAPPINGS.contains(&key);
    let is_meant = !key.is_empty() && key.chars().all(is_name);
    (is_meant && !is_below && !is_in_text(lines, of, depth)).then_some(Block { line, of, key, depth, indent })
}

/// The key behind which a block comes on its line, because the action takes the line break before it and
/// `indent`, other than `nindent`, does not begin with one.
fn same_line(lines: &[&str], line: usize) -> Option<usize> {
    let trims = |line: usize| lines[line].trim().starts_with("{{-");
    let opens = |text: &str| {
        let inner = text.trim().strip_prefix("{{-").map(str::trim_start);
        inner.is_some_and(|inner| inner.starts_with("with ") || inner.starts_with("if "))
    };
    let inner = lines[line].trim().strip_prefix("{{-")?.strip_suffix("}}")?.trim_end_matches('-').trim();
    let (value, indent) = inner.rsplit_once('|')?;
    let indent: usize = indent.trim().strip_prefix("indent ")?.trim().parse().ok()?;
    if !value.contains("toYaml") || inner.contains("}}") || indent == 0 {
        return None;
    }
    let mut of = line.checked_sub(1)?;
    while trims(of) && opens(lines[of]) || lines[of].trim().is_empty() {
        of = of.checked_sub(1)?;
    }
    let text = lines[of].trim_start();
    let entry = text.strip_prefix("- ").unwrap_or(text);
    let key = entry.trim_end().strip_suffix(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let depth = lines[of].len() - entry.len();
    (!key.is_empty() && key.chars().all(is_name) && !is_in_text(lines, of, depth)).then_some(of)
}

fn told_of_same_line(files: &Files, path: &Arc<str>, lines: &[&str], (of, at): (usize, usize)) -> Finding {
    let place = |line: usize| {
        let number = u32::try_from(line + 1).unwrap_or(u32::MAX);
        files.span(&Location::new(path.clone(), number, 0))
    };
    let line = lines[at];
    let start = line.rfind("indent ").unwrap_or_default();
    let column = u32::try_from(line[..start].chars().count() + 1).unwrap_or(u32::MAX);
    let mut span = Span::point(path.clone(), u32::try_from(at + 1).unwrap_or(u32::MAX), column);
    span.end.column = column + 6;
    let key = lines[of].trim().trim_start_matches("- ").trim_end_matches(':');
    let diagnostic = RULE
        .diagnostic(format!("what the template writes comes on the line of {key}: the action takes the line break before it"))
        .at(span.clone(), "begins without a line break")
        .see(place(of), "behind this key")
        .because("where a list or a mapping is given, the manifest is no YAML: mapping values are not allowed in this context")
        .help("write nindent, which begins with a line break");
    let edit = Edit { span, replacement: "nindent".to_owned() };
    Finding::new(RULE.incident, diagnostic).likely().fix("begin with a line break", vec![edit])
}

/// How far right a line writes a block, if it does nothing else: `{{- toYaml . | nindent 8 }}`.
fn written(line: &str) -> Option<usize> {
    let inner = line.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.trim_matches('-').trim();
    let (value, indent) = inner.rsplit_once('|')?;
    let indent = indent.trim().strip_prefix("nindent ")?.trim().parse().ok()?;
    // Of what a named template or a text writes, nobody knows whether it is one line.
    (value.contains("toYaml") && !inner.contains("}}")).then_some(indent)
}

/// Whether a line lies in a text, such as the value of a ConfigMap: one of the lines that it is below opens
/// one.
fn is_in_text(lines: &[&str], at: usize, depth: usize) -> bool {
    let mut depth = depth;
    for line in lines[..at].iter().rev() {
        // Nothing is further left.
        if depth == 0 {
            break;
        }
        let inner = line.trim_start();
        let own = line.len() - inner.len();
        if inner.is_empty() || inner.starts_with("{{") || inner.starts_with('#') || own >= depth {
            continue;
        }
        depth = own;
        let last = inner.trim_end().rsplit([' ', ':']).next().unwrap_or_default();
        if last.starts_with(['|', '>']) {
            return true;
        }
    }
    false
}

/// The line to whose end a line is put, because the action between the two takes the blanks on both of its
/// sides.
fn joined_line(lines: &[&str], at: usize) -> Option<usize> {
    let line = lines[at].trim();
    let (key, rest) = line.strip_prefix("- ").unwrap_or(line).split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let is_key = !key.is_empty() && key.chars().all(is_name) && (rest.is_empty() || rest.starts_with(' '));
    let filled = |at: usize| (0..at).rev().find(|at| !lines[*at].trim().is_empty());
    let action = filled(at)?;
    let takes_both = |line: &str| line.starts_with("{{-") && line.ends_with("-}}");
    if !is_key || !takes_both(lines[action].trim()) || !is_silent(lines[action]) {
        return None;
    }
    // What another branch writes is not there together with this one, and what a definition holds is not
    // written here.
    let opened = |at: usize| match word(lines[at]) {
        branch if branch.starts_with("else") => opener(lines, at),
        "end" => opener(lines, at).filter(|at| word(lines[*at]).starts_with("define ")).or(Some(at)),
        _ => Some(at),
    };
    let mut above = opened(action)?;
    // Actions that take the blanks before them and write nothing.
    while lines[above].trim().starts_with("{{-") && is_silent(lines[above]) {
        above = opened(filled(above)?)?;
    }
    let text = lines[above].trim();
    let depth = lines[at].len() - lines[at].trim_start().len();
    // Helm takes a manifest apart at three dashes, whatever follows them; a comment of a template may end
    // here. What is indented ends without a line break.
    let writes = !text.starts_with("{{") || text.contains("indent ");
    let is_text = text != "---"
        && writes
        && !text.ends_with("-}}")
        && !text.ends_with('|')
        && (text.contains("{{") || !text.contains("}}"));
    (is_text && !is_in_text(lines, at, depth)).then_some(above)
}

/// What an action that is all of a line begins with; empty if it is none.
fn word(line: &str) -> &str {
    let inner = line.trim().strip_prefix("{{").and_then(|line| line.strip_suffix("}}")).unwrap_or_default();
    inner.trim_matches('-').trim()
}

/// The line that opens what the `else` or `end` of a line belongs to.
fn opener(lines: &[&str], at: usize) -> Option<usize> {
    let mut closed = 0;
    for line in (0..at).rev() {
        let word = word(lines[line]);
        let opens = ["if ", "with ", "range ", "define ", "block "].iter().any(|it| word.starts_with(it));
        match () {
            () if word.contains("}}") => {}
            () if word == "end" => closed += 1,
            () if opens && closed == 0 => return Some(line),
            () if opens => closed -= 1,
            () => {}
        }
    }
    None
}

/// Whether a line is one action that writes nothing.
fn is_silent(line: &str) -> bool {
    const WORDS: [&str; 6] = ["if ", "else", "with ", "range ", "end", "/*"];
    let inner = word(line);
    let is_assignment = inner.starts_with('$') && inner.contains('=');
    !inner.contains("}}") && (is_assignment || WORDS.iter().any(|word| inner.starts_with(word)))
}

fn told_of_joined(files: &Files, path: &Arc<str>, lines: &[&str], (above, at): (usize, usize)) -> Finding {
    let place = |line: usize| {
        let number = u32::try_from(line + 1).unwrap_or(u32::MAX);
        files.span(&Location::new(path.clone(), number, 0))
    };
    let key = lines[at].trim().split(':').next().unwrap_or_default().trim_start_matches("- ");
    let diagnostic = RULE
        .diagnostic(format!("the template puts {key} behind the line above: the action between them takes the line breaks on both sides"))
        .at(place(at), "comes right behind")
        .see(place(above), "this line")
        .because("the manifest is no YAML, or what comes behind a comment is lost, as soon as the template gets there")
        .help("leave one of the two dashes of the action out");
    Finding::new(RULE.incident, diagnostic).likely()
}

fn finding(files: &Files, path: &Arc<str>, line: &str, block: &Block<'_>) -> Finding {
    let at = |line: usize| u32::try_from(line + 1).unwrap_or(u32::MAX);
    let (wanted, found) = (block.depth + 2, format!("nindent {}", block.indent));
    let start = line.find(&found).unwrap_or_default();
    let column = |byte: usize| u32::try_from(line[..byte].chars().count() + 1).unwrap_or(u32::MAX);
    let mut span = Span::point(path.clone(), at(block.line), column(start));
    span.end.column = column((start + found.len()).min(line.len()));
    let diagnostic = RULE
        .diagnostic(format!("what the template writes is not below {}: it stands {} to the right, and the key {}", block.key, block.indent, block.depth))
        .at(span.clone(), "too far left")
        .see(files.span(&Location::new(path.clone(), at(block.of), 0)), "below this key")
        .because("where the value is given, the manifest is no YAML, or the fields are beside the key instead of below it")
        .help(format!("write nindent {wanted}"));
    let edit = Edit { span, replacement: format!("nindent {wanted}") };
    Finding::new(RULE.incident, diagnostic).likely().fix("move the block below its key", vec![edit])
}
