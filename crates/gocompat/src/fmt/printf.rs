//! Reading of format strings.

use super::printer::{Flags, Printer};
use super::{Arg, Shape};

/// Largest width and precision.
const LARGEST: i64 = 1_000_000;

struct Formatter<'a> {
    printer: Printer,
    format: &'a str,
    at: usize,
    args: &'a [&'a dyn Arg],
    next: usize,
    /// An explicit index `[n]` occurred: extra arguments are then no error.
    reordered: bool,
    good_index: bool,
    /// The last thing read was an explicit index.
    after_index: bool,
}

/// The text, or the length that it had when it was longer than `most` bytes: widths and arguments that are
/// named again make much of little.
pub(super) fn sprintf(format: &str, args: &[&dyn Arg], most: usize) -> Result<String, usize> {
    let mut formatter = Formatter {
        printer: Printer::default(),
        format,
        at: 0,
        args,
        next: 0,
        reordered: false,
        good_index: true,
        after_index: false,
    };
    formatter.run(most);
    match formatter.printer.out.len() {
        length if length > most => Err(length),
        _ => Ok(formatter.printer.finish()),
    }
}

impl Formatter<'_> {
    fn run(&mut self, most: usize) {
        while self.at < self.format.len() && self.printer.out.len() <= most {
            let rest = &self.format[self.at..];
            let text = rest.find('%').unwrap_or(rest.len());
            self.printer.out.push_str(&rest[..text]);
            self.at += text;
            if self.at >= self.format.len() {
                break;
            }
            self.at += 1;
            self.verb();
        }
        self.extra();
    }

    fn peek(&self) -> Option<u8> {
        self.format.as_bytes().get(self.at).copied()
    }

    fn verb(&mut self) {
        self.good_index = true;
        self.after_index = false;
        self.printer.flags = Flags::default();
        self.read_flags();
        // A verb straight after the flags cannot have been reordered.
        if let Some(byte @ b'a'..=b'z') = self.peek()
            && self.next < self.args.len()
        {
            self.at += 1;
            self.print(char::from(byte));
            return;
        }
        self.read_index();
        self.read_width();
        self.read_precision();
        if !self.after_index {
            self.read_index();
        }
        let Some(verb) = self.format[self.at..].chars().next() else {
            self.printer.out.push_str("%!(NOVERB)");
            return;
        };
        self.at += verb.len_utf8();
        if verb == '%' {
            self.printer.out.push('%');
        } else if !self.good_index {
            self.marker(verb, "(BADINDEX)");
        } else if self.next >= self.args.len() {
            self.marker(verb, "(MISSING)");
        } else {
            self.print(verb);
        }
    }

    fn marker(&mut self, verb: char, text: &str) {
        self.printer.out.push_str("%!");
        self.printer.out.push(verb);
        self.printer.out.push_str(text);
    }

    fn print(&mut self, verb: char) {
        let flags = &mut self.printer.flags;
        if matches!(verb, 'v' | 'w') {
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        let arg = self.args[self.next];
        self.next += 1;
        if verb == 'w' {
            self.printer.bad_verb(arg, verb);
        } else {
            self.printer.print_arg(arg, verb);
        }
    }

    fn read_flags(&mut self) {
        while let Some(byte) = self.peek() {
            let flags = &mut self.printer.flags;
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    fn read_width(&mut self) {
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.int_argument() {
                Some(width) => {
                    self.printer.flags.width = Some(width.unsigned_abs() as usize);
                    if width < 0 {
                        self.printer.flags.minus = true;
                        self.printer.flags.zero = false;
                    }
                }
                None => self.printer.out.push_str("%!(BADWIDTH)"),
            }
            self.after_index = false;
            return;
        }
        self.printer.flags.width = self.number();
        if self.after_index && self.printer.flags.width.is_some() {
            self.good_index = false;
        }
    }

    fn read_precision(&mut self) {
        if self.peek() != Some(b'.') || self.at + 1 >= self.format.len() {
            return;
        }
        self.at += 1;
        if self.after_index {
            self.good_index = false;
        }
        self.read_index();
        if self.peek() == Some(b'*') {
            self.at += 1;
            self.printer.flags.precision =
                self.int_argument().and_then(|number| usize::try_from(number).ok());
            if self.printer.flags.precision.is_none() {
                self.printer.out.push_str("%!(BADPREC)");
            }
            self.after_index = false;
        } else {
            self.printer.flags.precision = Some(self.number().unwrap_or(0));
        }
    }

    /// The next argument as a width or precision.
    fn int_argument(&mut self) -> Option<i64> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        let number = match arg.shape() {
            Shape::Int(number) => number,
            Shape::Uint(number) => i64::try_from(number).ok()?,
            _ => return None,
        };
        (-LARGEST..=LARGEST).contains(&number).then_some(number)
    }

    /// A decimal number; an overlong one swallows the rest of the format, as in Go.
    fn number(&mut self) -> Option<usize> {
        let (mut value, mut found) = (0i64, false);
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            if value > LARGEST {
                self.at = self.format.len();
                return None;
            }
            value = value * 10 + i64::from(byte - b'0');
            found = true;
            self.at += 1;
        }
        found.then_some(value as usize)
    }

    /// `[n]`
    fn read_index(&mut self) {
        self.after_index = false;
        if self.peek() != Some(b'[') {
            return;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        // Go looks for no end in what is too short to hold a number.
        let Some(end) = rest.find(']').filter(|_| rest.len() >= 3) else {
            self.at += 1;
            self.good_index = false;
            return;
        };
        self.at += end + 1;
        match rest[1..end].parse::<usize>() {
            Ok(index) if rest[1..end].bytes().all(|b| b.is_ascii_digit()) && end < 9 => {
                self.after_index = true;
                if index >= 1 && index <= self.args.len() {
                    self.next = index - 1;
                } else {
                    self.good_index = false;
                }
            }
            _ => self.good_index = false,
        }
    }

    fn extra(&mut self) {
        if self.reordered || self.next >= self.args.len() {
            return;
        }
        self.printer.flags = Flags::default();
        self.printer.out.push_str("%!(EXTRA ");
        for (at, arg) in self.args[self.next..].iter().enumerate() {
            if at > 0 {
                self.printer.out.push_str(", ");
            }
            if !matches!(arg.shape(), Shape::Nil) {
                self.printer.out.push_str(&arg.type_name());
                self.printer.out.push('=');
            }
            self.printer.print_arg(*arg, 'v');
        }
        self.printer.out.push(')');
    }
}
