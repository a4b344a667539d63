//! Numbers and quoting as Go's `strconv` does them.

mod float;
mod int;
mod quote;

pub use float::{FloatFormat, append_float, format_float, parse_float};
pub use int::{NumError, parse_int, parse_uint};
pub use quote::{can_backquote, quote, quote_ascii, quote_rune, quote_rune_ascii, unquote, unquote_char};
