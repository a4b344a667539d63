//! Flow collections of one line.

use std::borrow::Cow;

use super::{MAX_KEY, Make, Reader, quoted_style};
use crate::{
    Style,
    chars::byte,
    resolve::{Scalar, resolve},
};

impl<'a, M: Make> Reader<'a, '_, M> {
    /// A flow collection, and the offset behind it.
    pub(super) fn flow(&mut self, at: usize, keep: bool) -> Option<(M::Node, usize)> {
        self.descend()?;
        let found =
            if self.bytes[at] == b'[' { self.flow_sequence(at, keep) } else { self.flow_mapping(at, keep) };
        self.depth -= 1;
        found
    }

    fn flow_sequence(&mut self, at: usize, keep: bool) -> Option<(M::Node, usize)> {
        let mut items = Vec::new();
        let mut at = self.skip_spaces(at + 1);
        if byte(self.bytes, at) == b']' {
            return Some((self.make.sequence(items, true), at + 1));
        }
        loop {
            let (item, end) = self.flow_value(at, keep)?;
            self.count_item()?;
            if keep {
                items.push(item);
            }
            let end = self.skip_spaces(end);
            match byte(self.bytes, end) {
                b',' => at = self.skip_spaces(end + 1),
                b']' => return Some((self.make.sequence(items, true), end + 1)),
                _ => return None,
            }
        }
    }

    fn flow_mapping(&mut self, at: usize, keep: bool) -> Option<(M::Node, usize)> {
        let mut map = M::Map::default();
        let mut is_first = true;
        let mut at = self.skip_spaces(at + 1);
        if byte(self.bytes, at) == b'}' {
            return Some((self.make.mapping(map, true), at + 1));
        }
        loop {
            let first = byte(self.bytes, at);
            let (name, style, end) = if matches!(first, b'"' | b'\'') {
                let (name, end) = self.quoted(at)??;
                (name, quoted_style(first), end)
            } else {
                let (name, end) = self.flow_word(at)?;
                let is_text = matches!(resolve(name, M::PROFILE), Scalar::Str(_));
                if !is_text || byte(self.bytes, end + 1) != b' ' {
                    return None;
                }
                (Cow::Borrowed(name), Style::Plain, end)
            };
            if byte(self.bytes, end) != b':' || end - at > MAX_KEY {
                return None;
            }
            let (value, end) = self.flow_value(self.skip_spaces(end + 1), keep)?;
            self.count_entry(std::mem::take(&mut is_first))?;
            if keep {
                self.make.pair(&mut map, name, style, value)?;
            }
            let end = self.skip_spaces(end);
            match byte(self.bytes, end) {
                b',' => at = self.skip_spaces(end + 1),
                b'}' => return Some((self.make.mapping(map, true), end + 1)),
                _ => return None,
            }
        }
    }

    fn flow_value(&mut self, at: usize, keep: bool) -> Option<(M::Node, usize)> {
        match byte(self.bytes, at) {
            b'[' | b'{' => self.flow(at, keep),
            quote @ (b'"' | b'\'') => {
                let (text, end) = self.quoted(at)??;
                Some((self.text_if(text, quoted_style(quote), keep), end))
            }
            _ => {
                let (text, end) = self.flow_word(at)?;
                Some((self.typed(text.into(), keep)?, end))
            }
        }
    }

    /// A plain scalar of letters that mean nothing in any place.
    fn flow_word(&self, at: usize) -> Option<(&'a str, usize)> {
        let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-' | b'=');
        let length = self.bytes[at..].iter().take_while(|b| inner(b)).count();
        let text = &self.text[at..at + length];
        let starts_well =
            text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/'));
        starts_well.then_some((text, at + length))
    }
}
