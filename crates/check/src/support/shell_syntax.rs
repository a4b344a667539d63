//! Whether a shell script ends within something that it opens: a quote, a substitution, a here-document.

/// What a script opens and does not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// `'`
    SingleQuote,
    /// `"`
    DoubleQuote,
    /// `` ` ``
    Backtick,
    /// `$(`
    Substitution,
    /// `$((` or `((`
    Arithmetic,
    /// `${`
    Expansion,
    /// `<<EOF`
    HereDocument,
    /// `do`
    Loop,
    /// `if`
    Condition,
}

impl Opened {
    /// How it is written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::SingleQuote => "'",
            Self::DoubleQuote => "\"",
            Self::Backtick => "`",
            Self::Substitution => "$(",
            Self::Arithmetic => "((",
            Self::Expansion => "${",
            Self::HereDocument => "<<",
            Self::Loop => "do",
            Self::Condition => "if",
        }
    }
}

/// The first thing that a script opens and does not close, with its line from 1. `None` also where the script
/// has what this reader does not follow: a `case` within a substitution.
pub(crate) fn unclosed(text: &str) -> Option<(Opened, u32)> {
    let mut reader = Reader {
        text,
        at: 0,
        open: Vec::new(),
        pending: Vec::new(),
        blocks: Vec::new(),
        keyword_end: usize::MAX,
    };
    let lost = reader.read();
    let (opened, at) = match lost {
        Lost::Here(opened, at) => (opened, at),
        Lost::Nowhere => match reader.open.first() {
            Some((opened, at, _)) => (*opened, *at),
            None => *reader.blocks.first()?,
        },
        Lost::Unknown => return None,
    };
    let newlines = text.get(..at)?.matches('\n').count();
    Some((opened, u32::try_from(newlines).unwrap_or(u32::MAX - 1) + 1))
}

/// How reading ended.
enum Lost {
    /// At the end of the text.
    Nowhere,
    /// Within what was opened at a place.
    Here(Opened, usize),
    /// At what cannot be followed.
    Unknown,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// What is open, with its place and the brackets that are open within it.
    open: Vec<(Opened, usize, usize)>,
    /// Here-documents that begin on the next line, with their places.
    pending: Vec<(HereDocument<'t>, usize)>,
    /// Loops and conditions that are open, outside of substitutions.
    blocks: Vec<(Opened, usize)>,
    /// Where the last word ended behind which a command begins.
    keyword_end: usize,
}

/// A here-document that begins on the next line.
struct HereDocument<'t> {
    delimiter: &'t str,
    /// Whether tabs before the delimiter are left out.
    strips: bool,
    /// Whether what stands in it is a text and nothing else.
    is_plain: bool,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn read(&mut self) -> Lost {
        while let Some(next) = self.rest().chars().next() {
            let within = self.open.last().map(|(opened, ..)| *opened);
            let step = match within {
                Some(Opened::DoubleQuote) => self.in_double_quotes(next),
                Some(Opened::Expansion) => self.in_expansion(next),
                Some(Opened::Arithmetic) => self.in_arithmetic(next),
                _ => self.in_code(next),
            };
            if let Some(lost) = step {
                return lost;
            }
        }
        match self.pending.first() {
            Some((_, at)) => Lost::Here(Opened::HereDocument, *at),
            None => Lost::Nowhere,
        }
    }

    fn opens(&mut self, opened: Opened, length: usize) -> Option<Lost> {
        self.open.push((opened, self.at, 0));
        self.at += length;
        None
    }

    fn closes(&mut self, length: usize) -> Option<Lost> {
        self.open.pop();
        self.at += length;
        None
    }

    fn passes(&mut self, next: char) -> Option<Lost> {
        self.at += next.len_utf8();
        None
    }

    /// A backslash and what it stands before.
    fn escape(&mut self) -> Option<Lost> {
        let after = self.rest().chars().nth(1).map_or(0, char::len_utf8);
        self.at += 1 + after;
        None
    }

    /// What begins with a dollar, in code and in double quotes.
    fn dollar(&mut self) -> Option<Lost> {
        let rest = self.rest();
        match () {
            () if rest.starts_with("$((") => self.opens(Opened::Arithmetic, 1),
            () if rest.starts_with("$(") => self.opens(Opened::Substitution, 2),
            () if rest.starts_with("${") => self.opens(Opened::Expansion, 2),
            () => self.passes('$'),
        }
    }

    fn backtick(&mut self) -> Option<Lost> {
        // One within double quotes within backticks closes nothing; scripts do not go further than that.
        match self.open.last() {
            Some((Opened::Backtick, ..)) => self.closes(1),
            _ => self.opens(Opened::Backtick, 1),
        }
    }

    /// A text up to the next single quote; with `$'`, a backslash stands before a quote.
    fn single_quotes(&mut self, start: usize, escapes: bool) -> Option<Lost> {
        let mut escaped = false;
        for (at, c) in self.text[start..].char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if escapes => escaped = true,
                '\'' => {
                    self.at = start + at + 1;
                    return None;
                }
                _ => {}
            }
        }
        Some(Lost::Here(Opened::SingleQuote, start - 1))
    }

    fn in_double_quotes(&mut self, next: char) -> Option<Lost> {
        match next {
            '\\' => self.escape(),
            '"' => self.closes(1),
            '`' => self.backtick(),
            '$' => self.dollar(),
            _ => self.passes(next),
        }
    }

    fn in_expansion(&mut self, next: char) -> Option<Lost> {
        let is_quoted = self.open.iter().any(|(opened, ..)| *opened == Opened::DoubleQuote);
        match next {
            '\\' => self.escape(),
            '}' => self.closes(1),
            '"' => self.opens(Opened::DoubleQuote, 1),
            '\'' if !is_quoted => self.single_quotes(self.at + 1, false),
            '`' => self.backtick(),
            '$' => self.dollar(),
            _ => self.passes(next),
        }
    }

    fn in_arithmetic(&mut self, next: char) -> Option<Lost> {
        let Some((_, _, depth)) = self.open.last_mut() else { return self.passes(next) };
        match next {
            '(' => *depth += 1,
            ')' if *depth <= 1 => return self.closes(1),
            ')' => *depth -= 1,
            '$' if !self.rest().starts_with("$((") => return self.dollar(),
            '"' => return self.opens(Opened::DoubleQuote, 1),
            _ => {}
        }
        self.passes(next)
    }

    fn in_code(&mut self, next: char) -> Option<Lost> {
        let rest = self.rest();
        let starts_word = self.text[..self.at]
            .chars()
            .next_back()
            .is_none_or(|before| before.is_whitespace() || ";&|()`".contains(before));
        match next {
            '\\' => self.escape(),
            '\'' => self.single_quotes(self.at + 1, false),
            '"' => self.opens(Opened::DoubleQuote, 1),
            '`' => self.backtick(),
            '$' if rest.starts_with("$'") => self.single_quotes(self.at + 2, true),
            '$' => self.dollar(),
            '#' if starts_word => {
                self.at += rest.find('\n').unwrap_or(rest.len());
                None
            }
            '(' if starts_word && rest.starts_with("((") => self.opens(Opened::Arithmetic, 0),
            '(' | ')' => self.bracket(next),
            '<' if rest.starts_with("<<<") => {
                self.at += 3;
                None
            }
            '<' if rest.starts_with("<<") => self.here_document(),
            '\n' => self.newline(),
            'c' if starts_word && rest.starts_with("case ") && self.is_within_substitution() => {
                Some(Lost::Unknown)
            }
            'd' | 'e' | 'f' | 'i' | 't' | 'u' | 'w' if starts_word && self.open.is_empty() => self.word(),
            _ => self.passes(next),
        }
    }

    /// A word that begins or ends a loop or a condition, where a command may stand.
    fn word(&mut self) -> Option<Lost> {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_-./=".contains(c)).unwrap_or(rest.len());
        let before = self.text[..self.at].trim_end_matches([' ', '\t']);
        let begins = before.is_empty()
            || before.ends_with(['\n', ';', '&', '|', '(', ')', '{'])
            || before.len() == self.keyword_end;
        let mut closes = |opened: Opened| {
            if self.blocks.last().is_some_and(|(last, _)| *last == opened) {
                self.blocks.pop();
            }
        };
        match &rest[..end] {
            "do" if begins => self.blocks.push((Opened::Loop, self.at)),
            "if" if begins => self.blocks.push((Opened::Condition, self.at)),
            "done" if begins => closes(Opened::Loop),
            "fi" if begins => closes(Opened::Condition),
            _ => {}
        }
        const LEADING: [&str; 7] = ["do", "elif", "else", "if", "then", "until", "while"];
        if begins && LEADING.contains(&&rest[..end]) {
            self.keyword_end = self.at + end;
        }
        self.at += end.max(1);
        None
    }

    fn is_within_substitution(&self) -> bool {
        self.open.iter().any(|(opened, ..)| *opened == Opened::Substitution)
    }

    fn bracket(&mut self, next: char) -> Option<Lost> {
        match (self.open.last_mut(), next) {
            (Some((Opened::Substitution, _, 0)), ')') => return self.closes(1),
            (Some((Opened::Substitution, _, depth)), ')') => *depth -= 1,
            (Some((Opened::Substitution, _, depth)), _) => *depth += 1,
            _ => {}
        }
        self.passes(next)
    }

    fn here_document(&mut self) -> Option<Lost> {
        let place = self.at;
        let after = &self.rest()[2..];
        let strips = after.starts_with('-');
        let word = after.trim_start_matches('-').trim_start_matches([' ', '\t', '\\']);
        let (quote, word) = match word.chars().next() {
            Some(quote @ ('\'' | '"')) => (Some(quote), &word[1..]),
            _ => (None, word),
        };
        let end = match quote {
            Some(quote) => word.find(quote),
            None => word.find(|c: char| !(c.is_alphanumeric() || "_-.%!".contains(c))).or(Some(word.len())),
        };
        let delimiter = &word[..end.unwrap_or_default()];
        // `1 << 2` is no here-document.
        let is_name = delimiter.starts_with(|c: char| c.is_alphabetic() || "_%!".contains(c));
        if is_name {
            let is_plain =
                quote.is_some() || self.rest()[2..].trim_start_matches(['-', ' ', '\t']).starts_with('\\');
            self.pending.push((HereDocument { delimiter, strips, is_plain }, place));
            self.at = self.text.len() - word.len() + delimiter.len() + usize::from(quote.is_some());
        } else {
            self.at += 2;
        }
        None
    }

    /// The end of a line, and the here-documents that follow it.
    fn newline(&mut self) -> Option<Lost> {
        self.at += 1;
        for (document, place) in std::mem::take(&mut self.pending) {
            let HereDocument { delimiter, strips, is_plain } = document;
            loop {
                let rest = self.rest();
                if rest.is_empty() {
                    return Some(Lost::Here(Opened::HereDocument, place));
                }
                let line = rest.split('\n').next().unwrap_or_default();
                // A name in braces ends on its line, or it is none.
                if let Some(at) = open_name(line).filter(|_| !is_plain) {
                    return Some(Lost::Here(Opened::Expansion, self.at + at));
                }
                self.at += (line.len() + 1).min(rest.len());
                let content = line.trim_end_matches('\r');
                let content = if strips { content.trim_start_matches('\t') } else { content };
                // A delimiter with the bracket that ends the substitution behind it is taken for one.
                if content == delimiter {
                    break;
                }
                if content.strip_prefix(delimiter).is_some_and(|rest| rest.starts_with(')')) {
                    self.at -= line.len() + 1 - delimiter.len();
                    break;
                }
            }
        }
        None
    }
}

/// Where a line opens a name in braces that it does not close: what follows the name is none of what may.
fn open_name(line: &str) -> Option<usize> {
    line.match_indices("${").map(|(at, _)| at).find(|at| {
        let is_escaped = line[..*at].ends_with('\\');
        let inner = &line[at + 2..];
        let name = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        !is_escaped && name > 0 && matches!(inner[name..].chars().next(), None | Some('"' | ' ' | ',' | '$'))
    })
}

#[cfg(test)]
mod tests {
    use super::{Opened, unclosed};

    #[test]
    fn what_is_closed_is_not_told() {
        for script in [
            "echo \"a $(b \"c\" | d) ${e:-'f'} $((1 << 2)) it's\" # don't\n",
            "cat <<EOF\nit's \"\nEOF\necho 'a'\n",
            "cat <<-'EOF' | sh\n\t$(\n\tEOF\n",
            "x=$(cat <<EOF\n(\nEOF\n)\n",
            "echo ${#a[@]} ${a%\\'} $'it\\'s' `date +\"%s\"`",
            "if (( a << 2 )); then (cd b; c); fi",
            "case $a in x) b;; (y) c;; esac",
            "a=$(case $x in y) z;; esac)",
            "cat <<< \"$a\"",
            "for a in b; do if c; then d; fi; done",
            "while read -r a\ndo\n  echo do if done\ndone < b",
            "if a; then b; elif c; then\nfor i in 1; do :; done\nfi",
            "find . -exec if {} +; docker run x; echo fi",
            "cat <<'EOF'\n${a,\nEOF\n",
            "cat <<EOF\n${a:-b c} \\${d, ${e}\nEOF\n",
            "echo a#'b'",
        ] {
            assert_eq!(unclosed(script), None, "{script}");
        }
    }

    #[test]
    fn what_stays_open_is_told_with_its_line() {
        for (script, opened, line) in [
            ("echo\necho \"a\nb", Opened::DoubleQuote, 2),
            ("a=$(b | c\nd", Opened::Substitution, 1),
            ("echo it's", Opened::SingleQuote, 1),
            ("\ncat <<EOF\na\n  EOF\n", Opened::HereDocument, 2),
            ("cat <<EOF", Opened::HereDocument, 1),
            ("echo ${a", Opened::Expansion, 1),
            ("echo `date", Opened::Backtick, 1),
            ("a=$((1 + (2)", Opened::Arithmetic, 1),
            ("for a in b; do c", Opened::Loop, 1),
            ("a\nif b; then\nc", Opened::Condition, 2),
            ("cat <<EOF\n\"${A\",\nEOF\n", Opened::Expansion, 2),
        ] {
            assert_eq!(unclosed(script), Some((opened, line)), "{script}");
        }
    }

    #[test]
    fn no_text_stops_the_reader() {
        for script in ["<<", "<<-", "<<'", "$", "\\", "${", "((", "é\\", "<<EOF)", "$(<<A\nA)"] {
            let _ = unclosed(script);
        }
    }
}
