//! Flow collections of one line.

use serde_json::{Map, Value};

use super::{MAX_KEY, Reader, scalars::typed};
use crate::{
    Profile,
    chars::byte,
    resolve::{Scalar, resolve},
};

impl Reader<'_> {
    /// A flow collection, and the offset behind it.
    pub(super) fn flow(&mut self, at: usize, keep: bool) -> Option<(Value, usize)> {
        self.descend()?;
        let found =
            if self.bytes[at] == b'[' { self.flow_sequence(at, keep) } else { self.flow_mapping(at, keep) };
        self.depth -= 1;
        found
    }

    fn flow_sequence(&mut self, at: usize, keep: bool) -> Option<(Value, usize)> {
        let mut items = Vec::new();
        let mut at = self.skip_spaces(at + 1);
        if byte(self.bytes, at) == b']' {
            return Some((Value::Array(items), at + 1));
        }
        loop {
            let (item, end) = self.flow_value(at, keep)?;
            if keep {
                items.push(item);
            }
            let end = self.skip_spaces(end);
            match byte(self.bytes, end) {
                b',' => at = self.skip_spaces(end + 1),
                b']' => return Some((Value::Array(items), end + 1)),
                _ => return None,
            }
        }
    }

    fn flow_mapping(&mut self, at: usize, keep: bool) -> Option<(Value, usize)> {
        let mut map = Map::new();
        let mut at = self.skip_spaces(at + 1);
        if byte(self.bytes, at) == b'}' {
            return Some((Value::Object(map), at + 1));
        }
        loop {
            let (name, end) = if matches!(byte(self.bytes, at), b'"' | b'\'') {
                let (name, end) = self.quoted(at)??;
                (name.into_owned(), end)
            } else {
                let (name, end) = self.flow_word(at)?;
                let is_text = matches!(resolve(name, Profile::Go2), Scalar::Str(_));
                if !is_text || byte(self.bytes, end + 1) != b' ' {
                    return None;
                }
                (name.to_owned(), end)
            };
            if byte(self.bytes, end) != b':' || end - at > MAX_KEY {
                return None;
            }
            let (value, end) = self.flow_value(self.skip_spaces(end + 1), keep)?;
            if map.insert(name, value).is_some() && self.strict {
                return None;
            }
            let end = self.skip_spaces(end);
            match byte(self.bytes, end) {
                b',' => at = self.skip_spaces(end + 1),
                b'}' => return Some((Value::Object(map), end + 1)),
                _ => return None,
            }
        }
    }

    fn flow_value(&mut self, at: usize, keep: bool) -> Option<(Value, usize)> {
        match byte(self.bytes, at) {
            b'[' | b'{' => self.flow(at, keep),
            b'"' | b'\'' => {
                let (text, end) = self.quoted(at)??;
                Some((Value::String(text.into_owned()), end))
            }
            _ => {
                let (text, end) = self.flow_word(at)?;
                Some((typed(text, keep)?, end))
            }
        }
    }

    /// A plain scalar of letters that mean nothing in any place.
    fn flow_word(&self, at: usize) -> Option<(&str, usize)> {
        let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-' | b'=');
        let length = self.bytes[at..].iter().take_while(|b| inner(b)).count();
        let text = &self.text[at..at + length];
        let starts_well =
            text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/'));
        starts_well.then_some((text, at + length))
    }
}
