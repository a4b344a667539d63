//! Number literals.

use super::lex::Kind;
use super::node::Number;
use smol_str::SmolStr;
use tiphys_gocompat::strconv;

/// Reads a number or character literal.
pub(super) fn parse(text: &str, kind: Kind) -> Result<Number, String> {
    let mut number = Number { text: SmolStr::new(text), int: None, uint: None, float: None, complex: false };
    match kind {
        Kind::CharConstant => {
            let (unit, tail) = strconv::unquote_char(&text[1..], '\'').map_err(|error| error.to_string())?;
            if tail != "'" {
                return Err(format!("malformed character constant: {text}"));
            }
            let code = unit.code();
            number.int = Some(code);
            number.uint = Some(code as u64);
            number.float = Some(code as f64);
            return Ok(number);
        }
        Kind::Complex => {
            number.complex = true;
            return Ok(number);
        }
        _ => {}
    }
    if let Some(imaginary) = text.strip_suffix('i')
        && strconv::parse_float(imaginary).is_ok()
    {
        number.complex = true;
        return Ok(number);
    }
    read(&mut number, text)?;
    Ok(number)
}

fn read(number: &mut Number, text: &str) -> Result<(), String> {
    number.uint = strconv::parse_uint(text, 0).ok();
    number.int = strconv::parse_int(text, 0).ok();
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Ok(float) = strconv::parse_float(text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", strconv::quote(text)));
        }
        number.float = Some(float);
        if float.fract() == 0.0 && (-9.223372036854776e18..9.223372036854776e18).contains(&float) {
            number.int = Some(float as i64);
        }
        if float.fract() == 0.0 && (0.0..1.8446744073709552e19).contains(&float) {
            number.uint = Some(float as u64);
        }
    } else {
        return Err(format!("illegal number syntax: {}", strconv::quote(text)));
    }
    Ok(())
}
