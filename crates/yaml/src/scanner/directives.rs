//! Directives, anchors, aliases and tags.

use super::*;

impl<'a> Scanner<'a> {
    fn token_from(&self, kind: TokenKind<'a>, start: Mark) -> Token<'a> {
        Token { kind, start, end: self.mark() }
    }

    /// `%YAML 1.1` or `%TAG ! prefix`, with its line.
    pub(super) fn scan_directive(&mut self) -> Scan<Token<'a>> {
        let start = self.mark();
        self.skip();
        let name = self.read_alpha();
        if name.is_empty() {
            return self.fault(start, "could not find expected directive name");
        }
        if !is_blankz(self.bytes, self.pos) {
            return self.fault(start, "found unexpected non-alphabetical character");
        }
        let kind = match name {
            "YAML" => self.scan_version(start)?,
            "TAG" => self.scan_tag_directive(start)?,
            _ => return self.fault(start, "found unknown directive name"),
        };
        let token = self.token_from(kind, start);
        self.skip_blanks();
        if self.byte_at(0) == b'#' {
            self.skip_to(self.line_end());
        }
        if !is_breakz(self.bytes, self.pos) {
            return self.fault(start, "did not find expected comment or line break");
        }
        self.read_line();
        Ok(token)
    }

    fn read_alpha(&mut self) -> &'a str {
        let from = self.pos;
        let mut end = from;
        while is_alpha(byte(self.bytes, end)) {
            end += 1;
        }
        self.skip_to(end);
        &self.text[from..end]
    }

    fn scan_version(&mut self, start: Mark) -> Scan<TokenKind<'a>> {
        self.skip_blanks();
        let major = self.scan_version_number(start)?;
        if self.byte_at(0) != b'.' {
            return self.fault(start, "did not find expected digit or '.' character");
        }
        self.skip();
        let minor = self.scan_version_number(start)?;
        Ok(TokenKind::VersionDirective(major, minor))
    }

    fn scan_version_number(&mut self, start: Mark) -> Scan<u8> {
        let mut value = 0;
        let mut length = 0;
        while self.byte_at(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return self.fault(start, "found extremely long version number");
            }
            value = value * 10 + (self.byte_at(0) - b'0');
            self.skip();
        }
        if length == 0 {
            return self.fault(start, "did not find expected version number");
        }
        Ok(value)
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Scan<TokenKind<'a>> {
        self.skip_blanks();
        let handle = self.scan_tag_handle(true, start)?;
        if !is_blank(self.bytes, self.pos) {
            return self.fault(start, "did not find expected whitespace");
        }
        self.skip_blanks();
        let suffix = self.scan_tag_uri("", start)?;
        if !is_blankz(self.bytes, self.pos) {
            return self.fault(start, "did not find expected whitespace or line break");
        }
        Ok(TokenKind::TagDirective(Box::new(TagText { handle, suffix })))
    }

    /// `&name` or `*name`.
    pub(super) fn scan_anchor(&mut self, alias: bool) -> Scan<Token<'a>> {
        let start = self.mark();
        self.skip();
        let name = self.read_alpha();
        let ends = is_blankz(self.bytes, self.pos)
            || matches!(self.byte_at(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            return self.fault(start, "did not find expected alphabetic or numeric character");
        }
        let kind = if alias { TokenKind::Alias(name) } else { TokenKind::Anchor(name) };
        Ok(self.token_from(kind, start))
    }

    /// `!`, `!suffix`, `!!suffix`, `!handle!suffix` or `!<uri>`.
    pub(super) fn scan_tag(&mut self) -> Scan<Token<'a>> {
        let start = self.mark();
        let mut handle = String::new();
        let suffix;
        if self.byte_at(1) == b'<' {
            self.skip();
            self.skip();
            suffix = self.scan_tag_uri("", start)?;
            if self.byte_at(0) != b'>' {
                return self.fault(start, "did not find the expected '>'");
            }
            self.skip();
        } else {
            handle = self.scan_tag_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                suffix = self.scan_tag_uri("", start)?;
            } else {
                let uri = self.scan_tag_uri(&handle, start)?;
                // A lone `!` is a tag of its own, without handle.
                (handle, suffix) =
                    if uri.is_empty() { (String::new(), "!".to_owned()) } else { ("!".to_owned(), uri) };
            }
        }
        if !is_blankz(self.bytes, self.pos) {
            return self.fault(start, "did not find expected whitespace or line break");
        }
        Ok(self.token_from(TokenKind::Tag(Box::new(TagText { handle, suffix })), start))
    }

    fn scan_tag_handle(&mut self, directive: bool, start: Mark) -> Scan<String> {
        if self.byte_at(0) != b'!' {
            return self.fault(start, "did not find expected '!'");
        }
        self.skip();
        let mut handle = format!("!{}", self.read_alpha());
        if self.byte_at(0) == b'!' {
            handle.push('!');
            self.skip();
        } else if directive && handle != "!" {
            return self.fault(start, "did not find expected '!'");
        }
        Ok(handle)
    }

    /// A URI that continues `head` (whose first character, the `!`, is no part of it).
    fn scan_tag_uri(&mut self, head: &str, start: Mark) -> Scan<String> {
        let mut uri = head.get(1..).unwrap_or("").to_owned();
        let mut found = !head.is_empty();
        loop {
            match self.byte_at(0) {
                b'%' => self.scan_uri_escape(&mut uri, start)?,
                b if is_alpha(b) || b";/?:@&=+$,.!~*'()[]".contains(&b) => {
                    uri.push(char::from(b));
                    self.skip();
                }
                _ => break,
            }
            found = true;
        }
        if !found {
            return self.fault(start, "did not find expected tag URI");
        }
        Ok(uri)
    }

    /// One character written as `%XX` per byte.
    fn scan_uri_escape(&mut self, uri: &mut String, start: Mark) -> Scan<()> {
        let mut octets = Vec::with_capacity(4);
        let mut width = 1;
        while octets.len() < width {
            let digits = (self.byte_at(1) as char).to_digit(16).zip((self.byte_at(2) as char).to_digit(16));
            let Some((high, low)) = digits.filter(|_| self.byte_at(0) == b'%') else {
                return self.fault(start, "did not find URI escaped octet");
            };
            let octet = (high * 16 + low) as u8;
            if octets.is_empty() {
                width = match octet {
                    0x00..=0x7F => 1,
                    0xC0..=0xDF => 2,
                    0xE0..=0xEF => 3,
                    0xF0..=0xF7 => 4,
                    _ => return self.fault(start, "found an incorrect leading UTF-8 octet"),
                };
            } else if octet & 0xC0 != 0x80 {
                return self.fault(start, "found an incorrect trailing UTF-8 octet");
            }
            octets.push(octet);
            self.skip_run(self.pos + 3, 3);
        }
        // Overlong forms pass the checks above but are no characters.
        uri.push_str(&String::from_utf8_lossy(&octets));
        Ok(())
    }
}
