//! As much of a shell's syntax as it takes to see which programs a script calls with which words.
//! Control words and function heads are left out; what an expansion yields is not known.

/// One call of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments, unquoted, expansions as they are written.
    pub words: Vec<String>,
    /// The line of the first word, from 1.
    pub line: u32,
    /// What a here-document gives it on its standard input.
    pub stdin: Option<String>,
    /// Whether its standard input is what the command before it prints.
    pub is_piped: bool,
}

/// Words that open or go on a compound command, before the program.
const LEADING: [&str; 12] =
    ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec", "sudo"];

/// The calls of a script, in its order.
pub fn commands(text: &str) -> Vec<Command> {
    let mut reader = Reader { rest: text, line: 1, ..Reader::default() };
    while let Some(next) = reader.rest.chars().next() {
        reader.step(next);
    }
    reader.end_command(false);
    reader.commands.retain(|command| !command.words.is_empty());
    reader.commands
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    line: u32,
    current: Command,
    word: Option<String>,
    /// Delimiters of here-documents that begin on the next line, with whether tabs are stripped.
    pending: Vec<(String, bool)>,
    commands: Vec<Command>,
    pipes: bool,
}

impl Reader<'_> {
    fn step(&mut self, next: char) {
        match next {
            '\\' => self.escape(),
            '\'' | '"' | '`' => self.quoted(next),
            '$' if self.rest.starts_with("$(") => self.nested("$(", '(', ')'),
            '$' if self.rest.starts_with("${") => self.nested("${", '{', '}'),
            '{' if self.rest.starts_with("{{") => self.template(),
            '#' if self.word.is_none() => self.skip_line(),
            '\n' => self.newline(),
            ' ' | '\t' | '\r' => {
                self.advance(1);
                self.end_word();
            }
            '<' if self.rest.starts_with("<<<") => self.redirect(3),
            '<' if self.rest.starts_with("<<") => self.here_document(),
            '>' | '<' => self.redirect(1),
            '|' if !self.rest.starts_with("||") => {
                self.advance(1);
                self.end_command(true);
            }
            ';' | '&' | '|' | '(' | ')' => {
                self.advance(1);
                self.end_command(false);
            }
            other => {
                self.push(other);
                self.advance(other.len_utf8());
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        let newlines = self.rest[..bytes].matches('\n').count();
        self.line += u32::try_from(newlines).unwrap_or(u32::MAX);
        self.rest = &self.rest[bytes..];
    }

    fn push(&mut self, c: char) {
        if self.word.is_none() && self.current.words.is_empty() {
            self.current.line = self.line;
        }
        self.word.get_or_insert_default().push(c);
    }

    fn push_str(&mut self, text: &str) {
        if self.word.is_none() && self.current.words.is_empty() {
            self.current.line = self.line;
        }
        self.word.get_or_insert_default().push_str(text);
    }

    fn escape(&mut self) {
        let mut chars = self.rest.chars().skip(1);
        match chars.next() {
            Some('\n') => self.advance(2),
            Some('\r') => self.advance(2),
            Some(c) => {
                self.push(c);
                self.advance(1 + c.len_utf8());
            }
            None => self.advance(1),
        }
    }

    fn quoted(&mut self, quote: char) {
        let body = &self.rest[1..];
        let mut end = None;
        let mut escaped = false;
        for (at, c) in body.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quote != '\'' => escaped = true,
                c if c == quote => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let inner = &body[..end.unwrap_or(body.len())];
        let text =
            if quote == '"' { inner.replace("\\\n", "").replace("\\\"", "\"") } else { inner.to_owned() };
        self.push_str(&text);
        self.advance((inner.len() + 2).min(self.rest.len()));
    }

    /// An expansion up to its closing bracket, kept as it is written.
    fn nested(&mut self, opening: &str, open: char, close: char) {
        let mut depth = 0usize;
        let mut length = self.rest.len();
        for (at, c) in self.rest.char_indices().skip(opening.len() - 1) {
            if c == open {
                depth += 1;
            } else if c == close {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    length = at + c.len_utf8();
                    break;
                }
            }
        }
        let text = self.rest[..length].to_owned();
        self.push_str(&text);
        self.advance(length);
    }

    /// `{{ … }}` of Ansible, with the blanks inside it.
    fn template(&mut self) {
        let length = self.rest.find("}}").map_or(2, |end| end + 2);
        let text = self.rest[..length].to_owned();
        self.push_str(&text);
        self.advance(length);
    }

    fn skip_line(&mut self) {
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        self.advance(length);
    }

    /// Leaves out a redirection and its target; digits before it are a descriptor.
    fn redirect(&mut self, width: usize) {
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.advance(width);
        let trimmed = self.rest.trim_start_matches(['>', '&', ' ', '\t']);
        let skipped = self.rest.len() - trimmed.len();
        let target = trimmed.find([' ', '\t', '\n', ';', '|', ')']).unwrap_or(trimmed.len());
        self.advance(skipped + target);
    }

    fn here_document(&mut self) {
        self.end_word();
        self.advance(2);
        let strips = self.rest.starts_with('-');
        self.advance(usize::from(strips));
        let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        self.advance(blanks);
        let length = self.rest.find([' ', '\t', '\n', ';', '|', ')', '>']).unwrap_or(self.rest.len());
        let delimiter = self.rest[..length].replace(['\'', '"', '\\'], "");
        self.advance(length);
        if !delimiter.is_empty() {
            self.pending.push((delimiter, strips));
        }
    }

    fn newline(&mut self) {
        self.advance(1);
        for (delimiter, strips) in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            while !self.rest.is_empty() {
                let length = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
                let line = self.rest[..length].to_owned();
                self.advance(length);
                let content = line.trim_end_matches(['\n', '\r']);
                // An indented end is no end for a shell; but scripts inside of YAML are often cut so.
                if content == delimiter || (strips && content.trim_start_matches('\t') == delimiter) {
                    break;
                }
                body.push_str(&line);
            }
            self.current.stdin = Some(body);
        }
        self.end_command(false);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            let is_leading = self.current.words.is_empty() && LEADING.contains(&word.as_str());
            if !is_leading && word != "}" {
                self.current.words.push(word);
            }
        }
    }

    fn end_command(&mut self, pipes: bool) {
        self.end_word();
        let mut command = std::mem::take(&mut self.current);
        command.is_piped = self.pipes;
        if !command.words.is_empty() {
            self.pipes = pipes;
            self.commands.push(command);
        } else if !pipes {
            // A line may be broken after the bar.
            self.pipes = self.pipes && self.rest.starts_with([' ', '\t', '\n']);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::commands;

    fn words(text: &str) -> Vec<Vec<String>> {
        commands(text).into_iter().map(|command| command.words).collect()
    }

    #[test]
    fn calls_are_told_apart() {
        let text = "set -e # stop\nif ! helm status a; then\n  helm install a \\\n    'my chart' --set \"x=1\" 2>&1 >/dev/null && echo ok\nfi\n";
        assert_eq!(
            words(text),
            [
                vec!["set", "-e"],
                vec!["helm", "status", "a"],
                vec!["helm", "install", "a", "my chart", "--set", "x=1"],
                vec!["echo", "ok"],
                vec!["fi"],
            ]
        );
        assert_eq!(commands(text)[2].line, 3);
    }

    #[test]
    fn here_documents_are_standard_input() {
        let found = commands("kubectl apply -f - <<EOF\nkind: A\nEOF\necho done\n");
        assert_eq!(found[0].words, ["kubectl", "apply", "-f", "-"]);
        assert_eq!(found[0].stdin.as_deref(), Some("kind: A\n"));
        assert_eq!((found[1].words[0].as_str(), found[1].line), ("echo", 4));
    }

    #[test]
    fn pipes_are_noted() {
        let found = commands("curl -sL https://a/b.yaml | kubectl apply -f -");
        assert!(found[1].is_piped && !found[0].is_piped);
        assert_eq!(words("k $(a b) ${c:-d e} {{ f g }}"), [["k", "$(a b)", "${c:-d e}", "{{ f g }}"]]);
    }

    #[test]
    fn no_text_is_too_odd() {
        for text in ["'", "\"", "$(", "${", "\\", "<<", "<<EOF", "|", "a |\n", "{{", "é'ü", ">"] {
            commands(text);
        }
    }
}
