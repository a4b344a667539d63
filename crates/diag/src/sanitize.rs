//! How text of strangers is written into each form of output. Names, messages and paths come from
//! repositories: a terminal obeys control characters, marks of direction and zero width hide what is there, a
//! log of CI obeys lines that begin with `::`, and a comment of a pull request is Markdown. One function for
//! each form, used by whatever writes it.

use std::borrow::Cow;

/// What stands for a character that must not be written as it is: its picture for a control character, as
/// rustc shows them, otherwise U+FFFD.
#[must_use]
pub fn replacement(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        _ => is_hidden(c).then_some('\u{fffd}'),
    }
}

/// Whether a character changes how others are shown, or is not seen itself.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn is_plain(text: &str) -> bool {
    // Control characters are one byte; all others begin with one of these.
    text.bytes().all(|b| (b >= b' ' && b != 0x7f && b < 0x80) || b == b'\n' || b == b'\t')
        || !text.chars().any(|c| replacement(c).is_some())
}

/// Text without the user names and passwords that stand in addresses (`https://user:password@host`). Of
/// addresses of ssh the user stays, which is no secret.
#[must_use]
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    const SCHEME: &str = "://";
    if !text.contains(SCHEME) || !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(SCHEME) {
        let (before, after) = rest.split_at(at + SCHEME.len());
        out.push_str(before);
        let ends = |c: char| c.is_whitespace() || c.is_control() || "/?#\"'`<>\\".contains(c);
        let authority = &after[..after.find(ends).unwrap_or(after.len())];
        let held = authority.rfind('@').unwrap_or(0);
        let scheme = before[..at].rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let user = authority[..held].split(':').next().unwrap_or_default();
        match held {
            0 => rest = after,
            _ if scheme == "ssh" => {
                out.push_str(user);
                rest = &after[held..];
            }
            _ => rest = &after[held + 1..],
        }
    }
    out.push_str(rest);
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Text of any number of lines, for a terminal or a log. No character of it commands the terminal, and no
/// line of it the runner of a workflow.
#[must_use]
pub fn terminal(text: &str) -> Cow<'_, str> {
    let mut shown = without_passwords(text);
    if !is_plain(&shown) {
        // A line break of Windows is one.
        let text = shown.replace("\r\n", "\n");
        shown = Cow::Owned(text.chars().map(|c| replacement(c).unwrap_or(c)).collect());
    }
    if commands(&shown) { Cow::Owned(without_commands(&shown)) } else { shown }
}

/// The text of a file, character for character, so that places in it stay where they are.
#[must_use]
pub fn source(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    if !is_plain(text) {
        let mut next = text.chars().skip(1);
        let of = |c: char| match (c, next.next()) {
            // A line break of Windows is one.
            ('\r', Some('\n')) => c,
            _ => replacement(c).unwrap_or(c),
        };
        shown = Cow::Owned(text.chars().map(of).collect());
    }
    if shown.contains("##[") { Cow::Owned(shown.replace("##[", "##\u{27e6}")) } else { shown }
}

/// Whether a runner of workflows might read a command in a text.
fn commands(text: &str) -> bool {
    text.contains("##[")
        || (text.contains("::") && text.lines().any(|line| line.trim_start().starts_with("::")))
}

fn without_commands(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive('\n') {
        match line.trim_start().strip_prefix("::") {
            // It looks the same, and is none.
            Some(rest) => {
                out.push_str(&line[..line.len() - rest.len() - 2]);
                out.push('\u{2237}');
                out.push_str(rest);
            }
            None => out.push_str(line),
        }
    }
    out.replace("##[", "##\u{27e6}")
}

/// Text that has to stay on one line, such as a name in a table: line breaks and tabs are shown as their
/// pictures.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    let shown = terminal(text);
    if !shown.contains(['\n', '\t']) {
        return shown;
    }
    Cow::Owned(shown.replace('\n', "\u{240a}").replace('\t', "\u{2409}"))
}

/// Text in HTML.
#[must_use]
pub fn html(text: &str) -> String {
    let escaped = line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    nobody_mentioned(&escaped.replace('"', "&quot;"))
}

/// Keeps a comment from calling people.
fn nobody_mentioned(text: &str) -> String {
    text.replace('@', "@<!-- -->")
}

/// Text in a paragraph, heading or table of Markdown, where it stays text. What stands between two backticks
/// stays code.
#[must_use]
pub fn markdown(text: &str) -> String {
    let text = line(text);
    let mut parts: Vec<&str> =
        text.split('`').filter(|part| !part.is_empty() || !text.contains("``")).collect();
    // Of an odd number of backticks the last one stands for itself.
    let rest = if parts.len().is_multiple_of(2) { parts.pop() } else { None };
    let mut out = String::with_capacity(text.len() + 16);
    for (at, part) in parts.iter().enumerate() {
        match at % 2 {
            0 => push_escaped(&mut out, part),
            _ => {
                out.push('`');
                out.push_str(&part.replace('|', "\\|"));
                out.push('`');
            }
        }
    }
    if let Some(rest) = rest {
        out.push_str("\\`");
        push_escaped(&mut out, rest);
    }
    out
}

fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("@<!-- -->"),
            '\\' | '*' | '_' | '[' | ']' | '!' | '#' | '~' | '|' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
}

/// Text as code within a line of Markdown.
#[must_use]
pub fn code(text: &str) -> String {
    let text = line(text).replace('`', "'").replace('|', "\\|");
    format!("`{text}`")
}

/// Lines as a block of code in Markdown, whose fence is longer than any in the text.
#[must_use]
pub fn markdown_fence(language: &str, text: &str) -> String {
    let text = terminal(text);
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// The message of a workflow command (GitHub docs, "Workflow commands"). Line breaks are shown as such.
#[must_use]
pub fn workflow_message(text: &str) -> String {
    let text = without_passwords(text);
    let shown: String =
        text.chars().map(|c| if c == '\r' { c } else { replacement(c).unwrap_or(c) }).collect();
    let shown = shown.replace("##[", "##\u{27e6}");
    shown.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a workflow command.
#[must_use]
pub fn workflow_property(text: &str) -> String {
    workflow_message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Text and attributes of XML 1.0; characters that it cannot hold are replaced.
#[must_use]
pub fn xml(text: &str) -> String {
    let text = without_passwords(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(replacement(c).unwrap_or(c)),
        }
    }
    // Who prints the file in a log of CI hands its lines to the runner.
    let is_command = |line: &&str| {
        let rest = line.trim_start().strip_prefix("::");
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    if out.lines().any(|line| is_command(&line)) {
        let lines = out.split_inclusive('\n');
        out = lines
            .map(|line| if is_command(&line) { line.replacen("::", "&#58;:", 1) } else { line.into() })
            .collect();
    }
    out.replace("##[", "##&#91;")
}

/// A JSON text, of which no character commands a terminal and nothing a runner of workflows: those are
/// escaped, so that it means the same.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // Two such signs before a bracket stand within a text only.
    if text.contains("##[") {
        return Cow::Owned(json(&text.replace("##[", "##\\u005b")).into_owned());
    }
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Line breaks and blanks between values stay; within texts JSON has them escaped.
        if replacement(c).is_none() {
            out.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a name in a repository may be, to speak to whoever shows it.
    const EVIL: &str = "x\u{1b}[31mE\u{1b}]0;t\u{7}\u{202e}R\u{2066} \r\n::error file=x::pwned\n  ::add-mask::x\n# h <script>a</script> | x | [a](javascript:1) ![i](http://e/x.png) @everyone\u{9b}31m\u{200b}##[error]";

    fn has_raw(text: &str) -> bool {
        text.chars().any(|c| replacement(c).is_some())
    }

    #[test]
    fn every_form_is_clean() {
        for shown in [
            terminal(EVIL).into_owned(),
            line(EVIL).into_owned(),
            html(EVIL),
            markdown(EVIL),
            code(EVIL),
            markdown_fence("text", EVIL),
            workflow_message(EVIL),
            workflow_property(EVIL),
            xml(EVIL),
            json(&format!("\"{}\"", EVIL.replace(['\n', '\r', '\u{1b}', '\u{7}'], ""))).into_owned(),
        ] {
            assert!(!has_raw(&shown), "{shown:?}");
        }
        for shown in
            [terminal(EVIL).into_owned(), line(EVIL).into_owned(), markdown_fence("text", EVIL), xml(EVIL)]
        {
            assert!(!shown.lines().any(|line| line.trim_start().starts_with("::")), "{shown}");
            assert!(!shown.contains("##["), "{shown}");
        }
        for shown in [line(EVIL).into_owned(), html(EVIL), markdown(EVIL), code(EVIL), workflow_message(EVIL)]
        {
            assert!(!shown.contains('\n'), "{shown}");
        }
    }

    #[test]
    fn plain_text_is_left_alone() {
        for text in ["", "web\n\tç ✓ 日本\n", "a::b", "key: value"] {
            assert!(matches!(terminal(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(terminal("a\r\nb\u{1b}"), "a\nb␛");
        assert_eq!(terminal("a\n  ::x"), "a\n  ∷x");
        assert_eq!(line("a\nb"), "a␊b");
    }

    #[test]
    fn sources_keep_their_places() {
        let text = "a\u{202e}b\u{9b}\r\nc\rd\u{1b}";
        assert_eq!(source(text), "a\u{fffd}b\u{fffd}\r\nc\u{240d}d\u{241b}");
        assert_eq!(source(text).chars().count(), text.chars().count());
        assert_eq!(source("a: ##[error]x"), "a: ##\u{27e6}error]x");
    }

    #[test]
    fn passwords_of_addresses_are_left_out() {
        for (text, expected) in [
            ("https://u:p@git.example.com/a", "https://git.example.com/a"),
            ("see https://token@h/x and http://a:b@c:8080?q, ok", "see https://h/x and http://c:8080?q, ok"),
            ("ssh://git:p@h/a ssh://git@h/a", "ssh://git@h/a ssh://git@h/a"),
            ("{\"url\":\"https://u:p@h\"}", "{\"url\":\"https://h\"}"),
            ("https://u:p@w@h/x", "https://h/x"),
            ("https://h/a@b mail a@b oci://x", "https://h/a@b mail a@b oci://x"),
            ("git@github.com:a/b://c", "git@github.com:a/b://c"),
        ] {
            assert_eq!(without_passwords(text), expected);
        }
        let text = "cannot fetch https://u:CANARY@h/x";
        for shown in
            [terminal(text).into_owned(), markdown(text), html(text), xml(text), workflow_message(text)]
        {
            assert!(!shown.contains("CANARY"), "{shown}");
        }
    }

    #[test]
    fn markdown_stays_text() {
        assert_eq!(markdown("write `a|b` now"), "write `a\\|b` now");
        assert_eq!(markdown("one ` tick"), "one \\` tick");
        assert_eq!(markdown("[a](x) <b> @me"), "\\[a\\](x) &lt;b&gt; @<!-- -->me");
        assert_eq!(markdown("![i](u) # *b* _i_"), "\\!\\[i\\](u) \\# \\*b\\* \\_i\\_");
        assert_eq!(code("a`b"), "`a'b`");
        assert_eq!(markdown_fence("", "a\n````\n"), "`````\na\n````\n\n`````\n");
    }

    #[test]
    fn workflow_commands_cannot_be_left() {
        assert_eq!(workflow_message("a\nb%c\r"), "a%0Ab%25c%0D");
        assert_eq!(workflow_property("a:b,c"), "a%3Ab%2Cc");
    }

    #[test]
    fn json_means_the_same() {
        let text = serde_json::json!({"a\u{202e}": "\u{9b}\u{e0001}\u{7f}"}).to_string();
        let shown = json(&text);
        assert!(!has_raw(&shown));
        let (was, is): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(&text).unwrap(), serde_json::from_str(&shown).unwrap());
        assert_eq!(was, is);
    }
}
