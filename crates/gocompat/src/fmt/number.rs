//! Formatting of integers and floats.

use super::Arg;
use super::printer::Printer;
use crate::strconv::{self, FloatFormat};
use crate::unicode;

impl Printer {
    pub(super) fn integer_verb(
        &mut self,
        arg: &dyn Arg,
        magnitude: u64,
        negative: bool,
        signed: bool,
        verb: char,
    ) {
        match verb {
            'v' if self.flags.sharp_v && !signed => self.hex_number(magnitude),
            'v' | 'd' => self.integer(magnitude, negative, 10, verb, false),
            'b' => self.integer(magnitude, negative, 2, verb, false),
            'o' | 'O' => self.integer(magnitude, negative, 8, verb, false),
            'x' => self.integer(magnitude, negative, 16, verb, false),
            'X' => self.integer(magnitude, negative, 16, verb, true),
            'c' => {
                let text = character(magnitude, negative).to_string();
                self.pad(&text);
            }
            'q' => {
                let c = character(magnitude, negative);
                let text =
                    if self.flags.plus { strconv::quote_rune_ascii(c) } else { strconv::quote_rune(c) };
                self.pad(&text);
            }
            'U' => self.unicode(if negative { magnitude.wrapping_neg() } else { magnitude }),
            _ => self.bad_verb(arg, verb),
        }
    }

    /// Hexadecimal with a prefix, as `%#v` shows unsigned numbers.
    pub(super) fn hex_number(&mut self, value: u64) {
        let was = std::mem::replace(&mut self.flags.sharp, true);
        self.integer(value, false, 16, 'v', false);
        self.flags.sharp = was;
    }

    pub(super) fn integer(&mut self, magnitude: u64, negative: bool, base: u32, verb: char, upper: bool) {
        let width = self.flags.width.unwrap_or(0);
        let zero = std::mem::take(&mut self.flags.zero);
        if self.flags.precision == Some(0) && magnitude == 0 {
            self.fill(width);
            self.flags.zero = zero;
            return;
        }
        let signed = negative || self.flags.plus || self.flags.space;
        let wanted = match self.flags.precision {
            Some(precision) => precision,
            None if zero && !self.flags.minus => width.saturating_sub(usize::from(signed)),
            None => 0,
        };
        let digits = digits(magnitude, base, upper);
        let mut text = String::with_capacity(wanted + 4);
        text.push_str(if negative {
            "-"
        } else if self.flags.plus {
            "+"
        } else if self.flags.space {
            " "
        } else {
            ""
        });
        if verb == 'O' {
            text.push_str("0o");
        }
        let padded = wanted.saturating_sub(digits.len());
        if self.flags.sharp {
            text.push_str(match base {
                2 => "0b",
                8 if padded == 0 && !digits.starts_with('0') => "0",
                16 if upper => "0X",
                16 => "0x",
                _ => "",
            });
        }
        text.extend(std::iter::repeat_n('0', padded));
        text.push_str(&digits);
        self.pad(&text);
        self.flags.zero = zero;
    }

    fn unicode(&mut self, code: u64) {
        let precision = self.flags.precision.unwrap_or(0).max(4);
        let mut text = format!("U+{code:0precision$X}");
        if self.flags.sharp
            && let Some(c) = u32::try_from(code).ok().and_then(char::from_u32)
            && unicode::is_print(c)
        {
            text.push_str(&format!(" '{c}'"));
        }
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(&text);
        self.flags.zero = zero;
    }

    pub(super) fn float_verb(&mut self, arg: &dyn Arg, value: f64, verb: char) {
        let (format, default) = match verb {
            'v' | 'g' | 'G' => (FloatFormat::General, None),
            'b' => (FloatFormat::Binary, None),
            'x' | 'X' => (FloatFormat::Hex, None),
            'e' | 'E' => (FloatFormat::Exponent, Some(6)),
            'f' | 'F' => (FloatFormat::Decimal, Some(6)),
            _ => return self.bad_verb(arg, verb),
        };
        let mut text = strconv::format_float(value, format, self.flags.precision.or(default));
        if value.is_finite() && matches!(verb, 'G' | 'E' | 'X') {
            text.make_ascii_uppercase();
        }
        self.float_text(text, value, verb);
    }

    fn float_text(&mut self, text: String, value: f64, verb: char) {
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) => (&text[..1], digits),
            None => ("+", text.as_str()),
        };
        let sign = if self.flags.space && sign == "+" && !self.flags.plus { " " } else { sign };
        if !value.is_finite() {
            let shown = if value.is_nan() && !self.flags.space && !self.flags.plus {
                digits.to_owned()
            } else if self.flags.plus || sign != "+" {
                format!("{sign}{digits}")
            } else {
                text.clone()
            };
            let zero = std::mem::take(&mut self.flags.zero);
            self.pad(&shown);
            self.flags.zero = zero;
            return;
        }
        let digits =
            if self.flags.sharp && verb != 'b' { self.with_point(digits, verb) } else { digits.to_owned() };
        if !self.flags.plus && sign == "+" {
            self.pad(&digits);
            return;
        }
        let length = digits.len() + 1;
        match self.flags.width {
            Some(width) if self.flags.zero && !self.flags.minus && width > length => {
                self.out.push_str(sign);
                self.fill(width - length);
                self.out.push_str(&digits);
            }
            _ => self.pad(&format!("{sign}{digits}")),
        }
    }

    /// The `#` flag: always a decimal point, and the zeros that `%g` drops.
    fn with_point(&self, digits: &str, verb: char) -> String {
        let hex = matches!(verb, 'x' | 'X');
        let exponent = digits.find(if hex { ['p', 'P'] } else { ['e', 'E'] }).unwrap_or(digits.len());
        let (number, tail) = digits.split_at(exponent);
        let mut missing = match verb {
            'v' | 'g' | 'G' | 'x' => self.flags.precision.unwrap_or(6) as i64,
            _ => 0,
        };
        let significant = number.trim_start_matches(['0', '.']);
        missing -= significant.bytes().filter(|byte| *byte != b'.').count() as i64;
        let mut text = number.to_owned();
        if !number.contains('.') {
            if number == "0" {
                missing -= 1;
            }
            text.push('.');
        }
        text.extend(std::iter::repeat_n('0', missing.max(0) as usize));
        text.push_str(tail);
        text
    }
}

fn character(magnitude: u64, negative: bool) -> char {
    if negative {
        return '\u{FFFD}';
    }
    u32::try_from(magnitude).ok().and_then(char::from_u32).unwrap_or('\u{FFFD}')
}

fn digits(value: u64, base: u32, upper: bool) -> String {
    match base {
        2 => format!("{value:b}"),
        8 => format!("{value:o}"),
        16 if upper => format!("{value:X}"),
        16 => format!("{value:x}"),
        _ => value.to_string(),
    }
}
