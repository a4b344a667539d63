//! `Sprint`, `Sprintln` and `Sprintf` for any values that implement [`Arg`].

mod number;
mod printer;
mod printf;

use printer::Printer;
use std::borrow::Cow;

/// What a value is to the formatter.
pub enum Shape<'a> {
    /// An untyped nil.
    Nil,
    /// A boolean.
    Bool(bool),
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width.
    Uint(u64),
    /// A `float64`.
    Float(f64),
    /// A string.
    Str(Cow<'a, str>),
    /// A slice of bytes; nil or not.
    Bytes(Cow<'a, [u8]>, bool),
    /// A slice; nil or not. Its items are visited by [`Arg::each`].
    List(bool),
    /// A map; nil or not. Its entries are visited by [`Arg::each`] in key order.
    Map(bool),
    /// A struct. Its fields are visited by [`Arg::each`].
    Struct,
    /// A pointer to a struct. The struct's fields are visited by [`Arg::each`].
    Pointer,
}

/// Receives the items of a list, the entries of a map, or the fields of a struct.
pub type Visitor<'v> = dyn FnMut(Option<&str>, &dyn Arg) + 'v;

/// A value that can be formatted.
pub trait Arg {
    /// What it is.
    fn shape(&self) -> Shape<'_>;

    /// The Go name of its type.
    fn type_name(&self) -> Cow<'_, str>;

    /// The result of its `Error` or `String` method.
    fn stringer(&self) -> Option<String> {
        None
    }

    /// The result of its `GoString` method.
    fn go_string(&self) -> Option<String> {
        None
    }

    /// Visits items (without key), entries (with key) or fields (with name).
    fn each(&self, _visit: &mut Visitor<'_>) {}
}

impl Arg for &str {
    fn shape(&self) -> Shape<'_> {
        Shape::Str(Cow::Borrowed(self))
    }

    fn type_name(&self) -> Cow<'_, str> {
        Cow::Borrowed("string")
    }
}

/// `fmt.Sprint`: default formats, spaces between operands when neither is a string.
pub fn sprint<'a>(args: impl IntoIterator<Item = &'a dyn Arg>) -> String {
    let mut printer = Printer::default();
    let mut after_string = true;
    for arg in args {
        let is_string = matches!(arg.shape(), Shape::Str(_));
        if !is_string && !after_string {
            printer.out.push(' ');
        }
        printer.print_arg(arg, 'v');
        after_string = is_string;
    }
    printer.finish()
}

/// `fmt.Sprintln`: default formats, spaces between operands, a newline at the end.
pub fn sprintln<'a>(args: impl IntoIterator<Item = &'a dyn Arg>) -> String {
    let mut printer = Printer::default();
    for (at, arg) in args.into_iter().enumerate() {
        if at > 0 {
            printer.out.push(' ');
        }
        printer.print_arg(arg, 'v');
    }
    printer.out.push('\n');
    printer.finish()
}

/// `fmt.Sprintf`, with Go's markers for wrong verbs, missing and extra arguments.
pub fn sprintf(format: &str, args: &[&dyn Arg]) -> String {
    printf::sprintf(format, args, usize::MAX).unwrap_or_default()
}

/// [`sprintf`], unless the text would be longer than so many bytes.
///
/// # Errors
/// The length at which it was given up.
pub fn sprintf_within(format: &str, args: &[&dyn Arg], most: usize) -> Result<String, usize> {
    printf::sprintf(format, args, most)
}
