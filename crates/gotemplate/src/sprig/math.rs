//! Arithmetic.

use super::cast::{to_float, to_int};
use super::{add, add_variadic, fail, int};
use crate::{CallError, CallResult, Context, Functions, List, ListType, Type, Value, format};
use tiphys_gocompat::decimal::Decimal;
use tiphys_gocompat::strconv;

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];
const INTS: &[Type] = &[Type::Int];

pub(super) fn register(functions: &mut Functions) {
    conversions(functions);
    integers(functions);
    floats(functions);
    sequences(functions);
}

fn conversions(f: &mut Functions) {
    add(f, &["atoi"], &[Type::String], |_, args| {
        let text = super::text(args, 0);
        Ok(Value::Int(match strconv::parse_int(text, 10) {
            Ok(number) => number,
            // Atoi's error is dropped, the clamped number is not.
            Err(strconv::NumError::Range) if text.starts_with('-') => i64::MIN,
            Err(strconv::NumError::Range) => i64::MAX,
            Err(strconv::NumError::Syntax) => 0,
        }))
    });
    add(f, &["int64"], ANY, |_, args| Ok(Value::Int64(to_int(&args[0]))));
    add(f, &["int"], ANY, |_, args| Ok(Value::Int(to_int(&args[0]))));
    add(f, &["float64"], ANY, |_, args| Ok(Value::Float64(to_float(&args[0]))));
    add(f, &["toDecimal"], ANY, |_, args| {
        Ok(Value::Int64(strconv::parse_int(&format::sprint(&args[..1]), 8).unwrap_or(0)))
    });
}

fn integers(f: &mut Functions) {
    add(f, &["add1"], ANY, |_, args| Ok(Value::Int64(to_int(&args[0]).wrapping_add(1))));
    add_variadic(f, &["add"], ANY, |_, args| {
        Ok(Value::Int64(args.iter().fold(0, |sum: i64, arg| sum.wrapping_add(to_int(arg)))))
    });
    add(f, &["sub"], TWO, |_, args| Ok(Value::Int64(to_int(&args[0]).wrapping_sub(to_int(&args[1])))));
    add(f, &["div"], TWO, |_, args| match to_int(&args[1]) {
        0 => fail("runtime error: integer divide by zero"),
        divisor => Ok(Value::Int64(to_int(&args[0]).wrapping_div(divisor))),
    });
    add(f, &["mod"], TWO, |_, args| match to_int(&args[1]) {
        0 => fail("runtime error: integer divide by zero"),
        divisor => Ok(Value::Int64(to_int(&args[0]).wrapping_rem(divisor))),
    });
    add_variadic(f, &["mul"], TWO, |_, args| {
        Ok(Value::Int64(args.iter().fold(1, |product: i64, arg| product.wrapping_mul(to_int(arg)))))
    });
    add_variadic(f, &["max", "biggest"], TWO, |_, args| {
        Ok(Value::Int64(args.iter().map(to_int).max().unwrap_or_default()))
    });
    add_variadic(f, &["min"], TWO, |_, args| {
        Ok(Value::Int64(args.iter().map(to_int).min().unwrap_or_default()))
    });
}

/// `math.Max` and `math.Min`: not-a-number wins, and zero has a sign.
fn extreme(args: &[Value], larger: bool) -> f64 {
    let mut values = args.iter().map(to_float);
    let first = values.next().unwrap_or_default();
    values.fold(first, |best, value| {
        if best.is_infinite() && (best > 0.0) == larger {
            best
        } else if value.is_infinite() && (value > 0.0) == larger {
            value
        } else if best.is_nan() || value.is_nan() {
            f64::NAN
        } else if best == 0.0 && value == 0.0 {
            if best.is_sign_negative() == larger { value } else { best }
        } else if (value > best) == larger {
            value
        } else {
            best
        }
    })
}

fn floats(f: &mut Functions) {
    add_variadic(f, &["maxf"], TWO, |_, args| Ok(Value::Float64(extreme(args, true))));
    add_variadic(f, &["minf"], TWO, |_, args| Ok(Value::Float64(extreme(args, false))));
    add(f, &["floor"], ANY, |_, args| Ok(Value::Float64(to_float(&args[0]).floor())));
    add(f, &["ceil"], ANY, |_, args| Ok(Value::Float64(to_float(&args[0]).ceil())));
    add_variadic(f, &["round"], &[Type::Any, Type::Int, Type::Float64], |_, args| {
        let threshold = args.get(2).map_or(0.5, to_float);
        Ok(Value::Float64(round(to_float(&args[0]), int(args, 1), threshold)))
    });
    add(f, &["add1f"], ANY, |_, args| decimal(&args[0], &[Value::Int(1)], |a, b| Ok(a.add(b))));
    add_variadic(f, &["addf"], ANY, |_, args| decimal(&Value::Float64(0.0), args, |a, b| Ok(a.add(b))));
    add_variadic(f, &["subf"], TWO, |_, args| decimal(&args[0], &args[1..], |a, b| Ok(a.sub(b))));
    add_variadic(f, &["mulf"], TWO, |_, args| decimal(&args[0], &args[1..], |a, b| Ok(a.mul(b))));
    add_variadic(f, &["divf"], TWO, |_, args| {
        decimal(&args[0], &args[1..], |a, b| a.div(b).ok_or_else(|| CallError::new("decimal division by 0")))
    });
}

fn round(value: f64, places: i64, threshold: f64) -> f64 {
    let power = power_of_ten(places);
    let digits = power * value;
    let fraction = digits - digits.trunc();
    let rounded = if fraction >= threshold { digits.ceil() } else { digits.floor() };
    rounded / power
}

/// `math.Pow(10, places)` by Go's own steps, since the last digits of a correctly rounded power differ.
fn power_of_ten(places: i64) -> f64 {
    let (mut result, mut exponent) = (1.0f64, 0i64);
    // Ten is 0.625 times two to the fourth.
    let (mut square, mut square_exponent) = (0.625f64, 4i64);
    let mut rest = places.unsigned_abs();
    while rest != 0 {
        if square_exponent > 1 << 12 {
            exponent += square_exponent;
            break;
        }
        if rest & 1 == 1 {
            result *= square;
            exponent += square_exponent;
        }
        square *= square;
        square_exponent <<= 1;
        if square < 0.5 {
            square += square;
            square_exponent -= 1;
        }
        rest >>= 1;
    }
    if places < 0 {
        (result, exponent) = (1.0 / result, -exponent);
    }
    // In two steps, so that neither factor overflows before the result does.
    let half = exponent.clamp(-2400, 2400) as i32 / 2;
    result * 2f64.powi(half) * 2f64.powi(exponent.clamp(-2400, 2400) as i32 - half)
}

/// Folds numbers with exact decimal arithmetic.
fn decimal(
    first: &Value,
    rest: &[Value],
    operation: impl Fn(&Decimal, &Decimal) -> Result<Decimal, CallError>,
) -> CallResult {
    let read = |value: &Value| {
        let float = to_float(value);
        Decimal::from_f64(float).ok_or_else(|| {
            let shown = strconv::format_float(float, strconv::FloatFormat::General, None);
            CallError::new(format!("Cannot create a Decimal from {shown}"))
        })
    };
    let mut result = read(first)?;
    for value in rest {
        result = operation(&result, &read(value)?)?;
    }
    Ok(Value::Float64(result.to_f64()))
}

fn sequences(f: &mut Functions) {
    add(f, &["until"], INTS, |ctx, args| {
        let count = int(args, 0);
        Ok(ints(steps(ctx, 0, count, if count < 0 { -1 } else { 1 })?))
    });
    add(f, &["untilStep"], &[Type::Int, Type::Int, Type::Int], |ctx, args| {
        Ok(ints(steps(ctx, int(args, 0), int(args, 1), int(args, 2))?))
    });
    add_variadic(f, &["seq"], INTS, |ctx, args| {
        let numbers: Vec<i64> = args.iter().map(to_int).collect();
        let (start, step, end) = match numbers.as_slice() {
            [end] => (1, None, *end),
            [start, end] => (*start, None, *end),
            [start, step, end] => (*start, Some(*step), *end),
            _ => return Ok("".into()),
        };
        let direction = if end < start { -1 } else { 1 };
        if direction < 0 && step.is_some_and(|step| step > 0) {
            return Ok("".into());
        }
        let numbers = steps(ctx, start, end.wrapping_add(direction), step.unwrap_or(direction))?;
        let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
        Ok(texts.join(" ").into())
    });
}

fn ints(numbers: Vec<i64>) -> Value {
    List::with_type(ListType::Int, numbers.into_iter().map(Value::Int).collect()).into()
}

/// Numbers from `start` to before `stop`.
fn steps(ctx: &Context<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, CallError> {
    if (stop < start && step >= 0) || (stop >= start && step <= 0) {
        return Ok(Vec::new());
    }
    let count = start.abs_diff(stop).div_ceil(step.unsigned_abs());
    ctx.check_size(
        usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(std::mem::size_of::<Value>()),
    )?;
    let mut numbers = Vec::with_capacity(count as usize);
    let mut at = start;
    for _ in 0..count {
        numbers.push(at);
        at = at.wrapping_add(step);
    }
    Ok(numbers)
}
