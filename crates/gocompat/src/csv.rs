//! Go's `encoding/csv`, as far as flags need it that take lists (pflag's `StringSlice`): `a,"b,c"`.

/// The first record of a text: its fields, without their quotes. Of an empty text there are none.
///
/// # Errors
/// Go's words for a text that has no record, or a quote where none may stand.
pub fn record(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let text = text.replace("\r\n", "\n");
    // Only a return at the very end goes, and lines that are empty are passed over.
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let rest = text.trim_start_matches('\n');
    if rest.is_empty() {
        return Err("EOF".to_owned());
    }
    let first = text.len() - rest.len() + 1;
    let mut reader = Reader { rest, first, line: first, column: 1 };
    let mut fields = Vec::new();
    while reader.field(&mut fields)? {}
    Ok(fields)
}

/// What is still to be read, and where it begins. Columns count bytes from 1, as Go's do.
struct Reader<'a> {
    rest: &'a str,
    first: usize,
    line: usize,
    column: usize,
}

impl Reader<'_> {
    /// Reads a field. Whether another one follows.
    fn field(&mut self, fields: &mut Vec<String>) -> Result<bool, String> {
        if self.rest.starts_with('"') {
            self.advance(1);
            return self.quoted(fields);
        }
        let line = self.rest.split('\n').next().unwrap_or_default();
        let (field, follows) = line.split_once(',').map_or((line, false), |(field, _)| (field, true));
        if let Some(at) = field.find('"') {
            self.column += at;
            return Err(self.fault("bare \" in non-quoted-field"));
        }
        fields.push(field.to_owned());
        self.advance(field.len() + usize::from(follows));
        Ok(follows)
    }

    /// Reads what stands behind an opening quote.
    fn quoted(&mut self, fields: &mut Vec<String>) -> Result<bool, String> {
        let mut field = String::new();
        while let Some(at) = self.rest.find('"') {
            field.push_str(&self.rest[..at]);
            self.advance(at + 1);
            match self.rest.bytes().next() {
                Some(b'"') => {
                    field.push('"');
                    self.advance(1);
                }
                Some(b',') => {
                    fields.push(field);
                    self.advance(1);
                    return Ok(true);
                }
                None | Some(b'\n') => {
                    fields.push(field);
                    return Ok(false);
                }
                Some(_) => {
                    self.column -= 1;
                    return Err(self.fault("extraneous or missing \" in quoted-field"));
                }
            }
        }
        self.advance(self.rest.len());
        Err(self.fault("extraneous or missing \" in quoted-field"))
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        match passed.rsplit_once('\n') {
            // The end of the last line is still a place in it.
            Some((lines, "")) if rest.is_empty() => {
                let last = lines.rsplit_once('\n');
                self.line += passed.matches('\n').count() - 1;
                self.column = last.map_or(self.column + lines.len(), |(_, line)| line.len() + 1) + 1;
            }
            Some((_, line)) => {
                self.line += passed.matches('\n').count();
                self.column = line.len() + 1;
            }
            None => self.column += bytes,
        }
        self.rest = rest;
    }

    fn fault(&self, what: &str) -> String {
        let Self { first, line, column, .. } = self;
        let record = if first == line { String::new() } else { format!("record on line {first}; ") };
        format!("{record}parse error on line {line}, column {column}: {what}")
    }
}

#[cfg(test)]
mod tests {
    use super::record;

    fn record_text(text: &str) -> String {
        record(text).map_or_else(|error| error, |fields| format!("{fields:?}"))
    }

    #[test]
    fn fields_as_go_reads_them() {
        for (text, fields) in [
            ("", "[]"),
            ("a", "[\"a\"]"),
            ("a, b,", "[\"a\", \" b\", \"\"]"),
            ("\"a,b\",\"c\"\"d\",", "[\"a,b\", \"c\\\"d\", \"\"]"),
            ("\n\na,b\r\nc", "[\"a\", \"b\"]"),
            ("\"a\nb\",c", "[\"a\\nb\", \"c\"]"),
            ("a\r", "[\"a\"]"),
        ] {
            assert_eq!(record_text(text), fields, "{text:?}");
        }
    }

    #[test]
    fn faults_in_go_s_words() {
        for (text, error) in [
            ("\n", "EOF"),
            ("a\"b", "parse error on line 1, column 2: bare \" in non-quoted-field"),
            ("\na,b\"", "parse error on line 2, column 4: bare \" in non-quoted-field"),
            ("\"a", "parse error on line 1, column 3: extraneous or missing \" in quoted-field"),
            ("\"a\"b", "parse error on line 1, column 3: extraneous or missing \" in quoted-field"),
            (
                "\"a\nb\"c",
                "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field",
            ),
        ] {
            assert_eq!(record_text(text), error, "{text:?}");
        }
    }
}
