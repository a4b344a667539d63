//! Rules by which Traefik chooses a route: ``Host(`a.example.com`) && PathPrefix(`/api`)`` (Traefik docs,
//! "Rules & Priority"). They are read as Traefik reads them: Go expressions of functions with texts.

/// A function of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matcher<'a> {
    /// Its name.
    pub name: &'a str,
    /// With how many texts it is called.
    pub arguments: usize,
}

/// The functions of a rule, or what is wrong with it.
pub(crate) fn parse(rule: &str) -> Result<Vec<Matcher<'_>>, String> {
    let mut reader = Reader { rest: rule.trim(), found: Vec::new(), depth: 0 };
    reader.alternatives()?;
    match reader.rest.chars().next() {
        None => Ok(reader.found),
        Some(')') => Err("a parenthesis is closed that was not opened".to_owned()),
        Some(_) => Err(format!("`{}` is not expected here: && or || is missing", head(reader.rest))),
    }
}

struct Reader<'a> {
    rest: &'a str,
    found: Vec<Matcher<'a>>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn alternatives(&mut self) -> Result<(), String> {
        loop {
            self.term()?;
            let Some(sign) = ["&&", "||"].into_iter().find(|sign| self.rest.starts_with(sign)) else {
                return Ok(());
            };
            self.skip(sign.len());
        }
    }

    fn term(&mut self) -> Result<(), String> {
        const DEEPEST: usize = 64;
        while self.rest.starts_with('!') {
            self.skip(1);
        }
        if self.rest.starts_with('(') && self.depth < DEEPEST {
            self.skip(1);
            self.depth += 1;
            self.alternatives()?;
            self.depth -= 1;
            return self.close();
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let name = &self.rest[..end];
        if name.is_empty() {
            return Err(match self.rest {
                "" => "something is missing at the end".to_owned(),
                rest => format!("`{}` is not expected here", head(rest)),
            });
        }
        self.skip(end);
        if !self.rest.starts_with('(') {
            return Err(format!("{name} is no function with parentheses"));
        }
        self.skip(1);
        let arguments = self.texts()?;
        self.found.push(Matcher { name, arguments });
        self.close()
    }

    /// Texts in backticks or double quotes, between commas.
    fn texts(&mut self) -> Result<usize, String> {
        let mut count = 0;
        while let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '`' | '"')) {
            let inner = &self.rest[1..];
            let end = match quote {
                '`' => inner.find('`'),
                _ => end_of_quoted(inner),
            };
            let Some(end) = end else { return Err(format!("a text is not closed: {}", head(self.rest))) };
            self.skip(end + 2);
            count += 1;
            if !self.rest.starts_with(',') {
                break;
            }
            self.skip(1);
        }
        match self.rest.chars().next() {
            Some('\'') => Err(format!(
                "texts stand in backticks or double quotes, not in single ones: {}",
                head(self.rest)
            )),
            _ => Ok(count),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        match self.rest.chars().next() {
            Some(')') => self.skip(1),
            None => return Err("a parenthesis is not closed".to_owned()),
            Some(_) => {
                return Err(format!(
                    "`{}` is not expected before the parenthesis is closed",
                    head(self.rest)
                ));
            }
        }
        Ok(())
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest[length..].trim_start();
    }
}

/// Where a text in double quotes ends.
fn end_of_quoted(inner: &str) -> Option<usize> {
    let mut is_escaped = false;
    inner.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

/// The beginning of a text, for messages.
fn head(text: &str) -> &str {
    const LONGEST: usize = 24;
    &text[..text.floor_char_boundary(LONGEST.min(text.len()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_traefik_does() {
        let names = |rule: &str| -> Result<Vec<String>, String> {
            Ok(parse(rule)?.into_iter().map(|it| format!("{}/{}", it.name, it.arguments)).collect())
        };
        let all = names("(Host(`a.b`, `c.d`) || !PathPrefix(\"/x\\\"y\")) && Method(`GET`)");
        assert_eq!(all, Ok(["Host/2", "PathPrefix/1", "Method/1"].map(str::to_owned).to_vec()));
        for wrong in [
            "Host(`a.b`) PathPrefix(`/x`)",
            "Host(`a.b`",
            "Host(`a.b)",
            "Host('a.b')",
            "Host(`a.b`) &&",
            "Host(`a.b`))",
            "Host(a.b)",
            "a.b",
            "",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
