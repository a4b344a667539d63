//! Texts of others, made fit to be shown.

use serde_json::Value;

use crate::commands::doctor::mask::{mask_object, mask_text};

/// How deep a patch is shown.
const DEEPEST: usize = 64;

/// A text on one line: line breaks and tabs become blanks, other control characters stay for [`shown`].
pub(super) fn one_line(text: &str) -> String {
    text.split([' ', '\n', '\r', '\t']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text without credentials, in which characters that a terminal would obey are visible.
pub(crate) fn sanitize(text: &str) -> String {
    visible(&mask_text(text))
}

/// A text in which characters that a terminal would obey, or that turn the direction of others, are visible.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c if is_obeyed(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Whether a character does something other than be seen.
pub(super) fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Whether a shell runs what a command says and nothing else, whatever names it holds: commands are copied.
pub(super) fn is_safe_command(command: &str) -> bool {
    #[derive(PartialEq)]
    enum Quote {
        None,
        Single,
        Double,
    }
    // What people fill in themselves, and the one pipe that remedies have, do no harm.
    let command = placeholders(command).replace(" | xargs kubectl ", " xargs kubectl ");
    let mut quote = Quote::None;
    for c in command.chars() {
        quote = match (quote, c) {
            (_, c) if is_obeyed(c) => return false,
            (Quote::None, '\'') => Quote::Single,
            (Quote::None, '"') => Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => Quote::None,
            (Quote::None, '`' | '$' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '\\' | '!' | '#' | '~')
            | (Quote::Double, '`' | '$' | '\\' | '!') => return false,
            (quote, _) => quote,
        };
    }
    quote == Quote::None
}

/// A command without `<value>` and the like.
fn placeholders(command: &str) -> String {
    let mut text = String::new();
    let mut rest = command;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        match after.split_once('>') {
            Some((name, after))
                if !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_alphabetic() || c == '-' || c == '_') =>
            {
                rest = after;
            }
            _ => {
                text.push('<');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

/// A patch as YAML.
pub(super) fn patch(patch: &Value) -> String {
    let mut patch = patch.clone();
    // A patch with a credential could not be applied, and must not be shown.
    mask_object(&mut patch);
    if depth(&patch) > DEEPEST {
        return "a patch that is nested too deep to be shown".to_owned();
    }
    visible(tiphys_yaml::to_yaml(&patch).trim_end())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let text = sanitize("a\x1b[2Jb\u{9b}31mc\u{202e}d\x07 password=hunter2");
        assert_eq!(text, "a\\u{1b}[2Jb\\u{9b}31mc\\u{202e}d\\u{7} password=***");
    }

    #[test]
    fn commands_that_a_shell_would_read_otherwise_are_known() {
        for command in [
            "kubectl -n shop get pod web-1 -o yaml",
            "kubectl -n shop patch deploy web --type merge -p '{\"spec\": {\"replicas\": 1}}'",
            "kubectl create secret generic db --from-literal=password=<value>",
            "kubectl get csr -o name | xargs kubectl certificate approve",
        ] {
            assert!(is_safe_command(command), "{command}");
        }
        for command in [
            "kubectl -n a;reboot get pods",
            "kubectl -n $(reboot) get pods",
            "kubectl get pod \"`reboot`\"",
            "kubectl get pod a > ~/.profile",
            "kubectl get pod 'a'\nreboot",
            "kubectl get pod it's",
            "kubectl get pod a | sh",
        ] {
            assert!(!is_safe_command(command), "{command}");
        }
    }
}
