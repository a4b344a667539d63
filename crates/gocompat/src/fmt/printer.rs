//! Formatting one argument for one verb.

use super::{Arg, Shape};
use crate::{rawstr, strconv};
use std::borrow::Cow;

/// How deep values may nest; deeper ones (which usually contain themselves) are cut with a marker.
const MAX_DEPTH: usize = 1000;
const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Flags, width and precision of a verb.
#[derive(Default, Clone)]
pub(super) struct Flags {
    pub(super) sharp: bool,
    pub(super) zero: bool,
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) space: bool,
    pub(super) plus_v: bool,
    pub(super) sharp_v: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

/// An element of a list of bytes.
struct Byte(u8);

impl Arg for Byte {
    fn shape(&self) -> Shape<'_> {
        Shape::Uint(u64::from(self.0))
    }

    fn type_name(&self) -> Cow<'_, str> {
        Cow::Borrowed("uint8")
    }
}

#[derive(Default)]
pub(super) struct Printer {
    pub(super) out: String,
    pub(super) flags: Flags,
    /// Inside a `%!verb(...)` marker, where methods are not called.
    erroring: bool,
}

impl Printer {
    pub(super) fn finish(self) -> String {
        rawstr::renormalise(self.out)
    }

    /// Formats an operand.
    pub(super) fn print_arg(&mut self, arg: &dyn Arg, verb: char) {
        if verb == 'T' && !matches!(arg.shape(), Shape::Nil) {
            let name = arg.type_name();
            self.string(&name);
            return;
        }
        if matches!(arg.shape(), Shape::Nil) {
            match verb {
                'T' | 'v' => self.pad("<nil>"),
                _ => self.bad_verb(arg, verb),
            }
            return;
        }
        self.value(arg, verb, 0);
    }

    fn value(&mut self, arg: &dyn Arg, verb: char, depth: usize) {
        if depth > MAX_DEPTH {
            self.out.push_str("%!(VALUE NESTED TOO DEEP)");
            return;
        }
        if !self.erroring
            && !self.flags.sharp_v
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = arg.stringer()
        {
            self.string_verb(arg, &text, verb);
            return;
        }
        if !self.erroring
            && self.flags.sharp_v
            && let Some(text) = arg.go_string()
        {
            self.string(&text);
            return;
        }
        match arg.shape() {
            Shape::Nil if self.flags.sharp_v => self.out.push_str("interface {}(nil)"),
            Shape::Nil => self.out.push_str("<nil>"),
            Shape::Bool(value) if matches!(verb, 't' | 'v') => self.pad(if value { "true" } else { "false" }),
            Shape::Int(value) => self.integer_verb(arg, value.unsigned_abs(), value < 0, true, verb),
            Shape::Uint(value) => self.integer_verb(arg, value, false, false, verb),
            Shape::Float(value) => self.float_verb(arg, value, verb),
            Shape::Str(text) => self.string_verb(arg, &text, verb),
            Shape::Bytes(bytes, nil) => self.bytes_verb(&bytes, nil, verb, depth),
            Shape::List(nil) => self.list(arg, nil, verb, depth),
            Shape::Map(nil) => self.map(arg, nil, verb, depth),
            Shape::Struct => self.fields(arg, verb, depth),
            Shape::Pointer if depth == 0 => {
                self.out.push('&');
                self.fields(arg, verb, depth + 1);
            }
            // Go prints an address, which no two runs share.
            Shape::Pointer => self.out.push_str("0xc000000000"),
            Shape::Bool(_) => self.bad_verb(arg, verb),
        }
    }

    pub(super) fn bad_verb(&mut self, arg: &dyn Arg, verb: char) {
        self.out.push_str("%!");
        self.out.push(verb);
        self.out.push('(');
        if matches!(arg.shape(), Shape::Nil) {
            self.out.push_str("<nil>");
        } else {
            let was = std::mem::replace(&mut self.erroring, true);
            self.out.push_str(&arg.type_name());
            self.out.push('=');
            self.print_arg(arg, 'v');
            self.erroring = was;
        }
        self.out.push(')');
    }

    fn list(&mut self, arg: &dyn Arg, nil: bool, verb: char, depth: usize) {
        let (open, separator, close) = if self.flags.sharp_v {
            self.out.push_str(&arg.type_name());
            if nil {
                self.out.push_str("(nil)");
                return;
            }
            ('{', ", ", '}')
        } else {
            ('[', " ", ']')
        };
        self.out.push(open);
        let mut first = true;
        arg.each(&mut |_, item| {
            if !std::mem::replace(&mut first, false) {
                self.out.push_str(separator);
            }
            self.value(item, verb, depth + 1);
        });
        self.out.push(close);
    }

    fn map(&mut self, arg: &dyn Arg, nil: bool, verb: char, depth: usize) {
        let (separator, close) = if self.flags.sharp_v {
            self.out.push_str(&arg.type_name());
            if nil {
                self.out.push_str("(nil)");
                return;
            }
            self.out.push('{');
            (", ", '}')
        } else {
            self.out.push_str("map[");
            (" ", ']')
        };
        let mut first = true;
        arg.each(&mut |key, item| {
            if !std::mem::replace(&mut first, false) {
                self.out.push_str(separator);
            }
            self.value(&key.unwrap_or_default(), verb, depth + 1);
            self.out.push(':');
            self.value(item, verb, depth + 1);
        });
        self.out.push(close);
    }

    fn fields(&mut self, arg: &dyn Arg, verb: char, depth: usize) {
        let separator = if self.flags.sharp_v {
            self.out.push_str(arg.type_name().trim_start_matches('*'));
            ", "
        } else {
            " "
        };
        self.out.push('{');
        let mut first = true;
        arg.each(&mut |name, item| {
            if !std::mem::replace(&mut first, false) {
                self.out.push_str(separator);
            }
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.push_str(name.unwrap_or_default());
                self.out.push(':');
            }
            self.value(item, verb, depth + 1);
        });
        self.out.push('}');
    }

    fn string_verb(&mut self, arg: &dyn Arg, text: &str, verb: char) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.string(text),
            'x' => self.hex(&rawstr::decode(text), LOWER),
            'X' => self.hex(&rawstr::decode(text), UPPER),
            'q' => self.quoted(text),
            _ => self.bad_verb(arg, verb),
        }
    }

    fn bytes_verb(&mut self, bytes: &[u8], nil: bool, verb: char, depth: usize) {
        match verb {
            'v' | 'd' => self.byte_list(bytes, nil, verb, if depth > 0 { "[]uint8" } else { "[]byte" }),
            's' => self.string(&rawstr::encode(bytes)),
            'x' => self.hex(bytes, LOWER),
            'X' => self.hex(bytes, UPPER),
            'q' => self.quoted(&rawstr::encode(bytes)),
            _ => {
                self.out.push('[');
                for (at, byte) in bytes.iter().enumerate() {
                    if at > 0 {
                        self.out.push(' ');
                    }
                    self.integer_verb(&Byte(*byte), u64::from(*byte), false, false, verb);
                }
                self.out.push(']');
            }
        }
    }

    fn byte_list(&mut self, bytes: &[u8], nil: bool, verb: char, type_name: &str) {
        let sharp = self.flags.sharp_v;
        if sharp {
            self.out.push_str(type_name);
            if nil {
                self.out.push_str("(nil)");
                return;
            }
        }
        self.out.push(if sharp { '{' } else { '[' });
        for (at, byte) in bytes.iter().enumerate() {
            if at > 0 {
                self.out.push_str(if sharp { ", " } else { " " });
            }
            if sharp {
                self.hex_number(u64::from(*byte));
            } else {
                self.integer(u64::from(*byte), false, 10, verb, false);
            }
        }
        self.out.push(if sharp { '}' } else { ']' });
    }

    /// Writes text cut to the precision, padded to the width.
    pub(super) fn string(&mut self, text: &str) {
        let cut = self.cut(text);
        self.pad(cut);
    }

    fn cut<'t>(&self, text: &'t str) -> &'t str {
        match self.flags.precision.and_then(|limit| text.char_indices().nth(limit)) {
            Some((end, _)) => &text[..end],
            None => text,
        }
    }

    fn quoted(&mut self, text: &str) {
        let text = self.cut(text);
        let quoted = if self.flags.sharp && strconv::can_backquote(text) {
            format!("`{text}`")
        } else if self.flags.plus {
            strconv::quote_ascii(text)
        } else {
            strconv::quote(text)
        };
        self.pad(&quoted);
    }

    fn hex(&mut self, bytes: &[u8], digits: &[u8; 16]) {
        let bytes = &bytes[..self.flags.precision.map_or(bytes.len(), |limit| limit.min(bytes.len()))];
        let prefix = if std::ptr::eq(digits, UPPER) { "0X" } else { "0x" };
        let mut text = String::with_capacity(bytes.len() * 2);
        for (at, byte) in bytes.iter().enumerate() {
            if self.flags.space && at > 0 {
                text.push(' ');
            }
            if self.flags.sharp && (self.flags.space || at == 0) {
                text.push_str(prefix);
            }
            text.push(char::from(digits[usize::from(byte >> 4)]));
            text.push(char::from(digits[usize::from(byte & 15)]));
        }
        self.pad(&text);
    }

    /// Writes text padded to the width.
    pub(super) fn pad(&mut self, text: &str) {
        let missing = self.flags.width.map_or(0, |width| width.saturating_sub(text.chars().count()));
        if missing == 0 {
            self.out.push_str(text);
        } else if self.flags.minus {
            self.out.push_str(text);
            self.fill(missing);
        } else {
            self.fill(missing);
            self.out.push_str(text);
        }
    }

    pub(super) fn fill(&mut self, count: usize) {
        let with = if self.flags.zero && !self.flags.minus { "0" } else { " " };
        self.out.push_str(&Cow::from(with.repeat(count)));
    }
}
