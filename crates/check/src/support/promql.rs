//! What can be told of a PromQL expression from its signs alone: brackets and texts that do not end, signs
//! that are none of the language, operators without anything behind them (Prometheus docs, "Querying basics"
//! and "Operators"). The parser for Rust that there is depends on a crate that nobody maintains any more.

/// A sign of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign<'a> {
    Open(char),
    Close(char),
    Operator(&'a str),
    Other,
}

/// A bracket that is open, the function whose arguments it holds, and whether a range stands in it.
struct Bracket<'a> {
    sign: char,
    function: &'a str,
    has_range: bool,
}

/// Why Prometheus does not read an expression, in its words as far as signs tell; nothing if they do not.
pub(crate) fn fault(expression: &str) -> Option<String> {
    let mut open: Vec<Bracket<'_>> = Vec::new();
    // The sign before: an operator, a word, or the end of arguments.
    let (mut operator, mut word, mut is_closed) = (None::<&str>, "", false);
    let mut rest = expression;
    loop {
        rest = skipped(rest);
        let inside = open.last().map(|bracket| bracket.sign);
        if rest.is_empty() {
            break;
        }
        let (sign, length) = match sign(rest, inside) {
            Ok(found) => found,
            Err(fault) => return Some(fault),
        };
        let text = &rest[..length];
        match sign {
            Sign::Open(bracket) => {
                if bracket == '[' && is_closed && !rest[..rest.find(']').unwrap_or(rest.len())].contains(':')
                {
                    return Some("ranges only allowed for vector selectors".to_owned());
                }
                let is_range = bracket == '[';
                if is_range {
                    // Around one that has a range all have one.
                    let unaware = open.iter_mut().rev().take_while(|outer| !outer.has_range);
                    unaware.for_each(|outer| outer.has_range = true);
                }
                let function = if bracket == '(' { word } else { "" };
                open.push(Bracket { sign: bracket, function, has_range: is_range });
            }
            Sign::Close(bracket) => {
                if let Some(fault) = closed(&mut open, bracket, operator) {
                    return Some(fault);
                }
            }
            Sign::Operator(next) => {
                let is_sign_of_number = matches!(next, "+" | "-");
                if let Some(before) = operator.filter(|_| !is_sign_of_number) {
                    return Some(format!("unexpected {next:?} after {before:?}"));
                }
            }
            Sign::Other => {}
        }
        operator = match sign {
            Sign::Operator(operator) if !matches!(inside, Some('{' | '[')) => Some(operator),
            _ => None,
        };
        word = if sign == Sign::Other { text } else { "" };
        is_closed = sign == Sign::Close(')');
        rest = &rest[length..];
    }
    match (open.last().map(|bracket| bracket.sign), operator) {
        (Some('('), _) => Some("unclosed left parenthesis".to_owned()),
        (Some('{'), _) => Some("unexpected end of input inside braces".to_owned()),
        (Some(_), _) => Some("unclosed left bracket".to_owned()),
        (None, Some(operator)) => Some(format!("unexpected end of input after {operator:?}")),
        (None, None) => None,
    }
}

/// Takes the innermost bracket away, and says what is wrong about that.
fn closed(open: &mut Vec<Bracket<'_>>, bracket: char, operator: Option<&str>) -> Option<String> {
    if let Some(operator) = operator {
        return Some(format!("unexpected {bracket:?} after {operator:?}"));
    }
    let Some(innermost) = open.pop().filter(|inner| Some(inner.sign) == opening(bracket)) else {
        return Some(format!("unexpected character: {bracket:?}"));
    };
    let function = innermost.function;
    (takes_a_range(function) && !innermost.has_range)
        .then(|| format!("expected type range vector in call to function {function:?}, got instant vector"))
}

/// Whether a function is about the values of a time (Prometheus docs, "Functions").
fn takes_a_range(function: &str) -> bool {
    const FUNCTIONS: [&str; 8] =
        ["changes", "delta", "deriv", "idelta", "increase", "irate", "rate", "resets"];
    FUNCTIONS.contains(&function) || function.ends_with("_over_time")
}

/// A text without the space and the comments at its beginning.
fn skipped(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if !text.starts_with('#') {
            return text;
        }
        text = text.find('\n').map_or("", |end| &text[end..]);
    }
}

/// The sign at the beginning of a text, and its length.
fn sign(text: &str, inside: Option<char>) -> Result<(Sign<'_>, usize), String> {
    const OPERATORS: [&str; 13] = ["==", "!=", ">=", "<=", "=~", "!~", "+", "-", "*", "/", "%", "^", ">"];
    let first = text.chars().next().unwrap_or_default();
    let word = |is_part: fn(char) -> bool| text.find(|c| !is_part(c)).unwrap_or(text.len());
    let is_matching = |operator: &str| matches!(operator, "=~" | "!~") && inside != Some('{');
    match first {
        '(' | '{' | '[' => return Ok((Sign::Open(first), 1)),
        ')' | '}' | ']' => return Ok((Sign::Close(first), 1)),
        '"' | '\'' | '`' => return quoted_length(text, first).map(|length| (Sign::Other, length)),
        '0'..='9' | '.' => return Ok((Sign::Other, number(text))),
        'a'..='z' | 'A'..='Z' | '_' | ':' => {
            let length = word(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
            let is_binary = matches!(&text[..length], "and" | "or" | "unless" | "atan2");
            let sign =
                if is_binary && inside != Some('{') { Sign::Operator(&text[..length]) } else { Sign::Other };
            return Ok((sign, length));
        }
        ',' | '@' => return Ok((Sign::Other, 1)),
        '=' if inside == Some('{') && !text.starts_with("=~") => return Ok((Sign::Operator(&text[..1]), 1)),
        '<' => {
            let length = if text.starts_with("<=") { 2 } else { 1 };
            return Ok((Sign::Operator(&text[..length]), length));
        }
        _ => {}
    }
    let operator =
        OPERATORS.into_iter().find(|operator| text.starts_with(operator) && !is_matching(operator));
    operator
        .map(|operator| (Sign::Operator(operator), operator.len()))
        .ok_or_else(|| format!("unexpected character: {first:?}"))
}

/// The length of a text between quotes.
fn quoted_length(text: &str, quote: char) -> Result<usize, String> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if quote != '`' => is_escaped = true,
            c if c == quote => return Ok(at + 1),
            '\n' if quote != '`' => break,
            _ => {}
        }
    }
    Err("unterminated quoted string".to_owned())
}

/// The length of a number or a duration, with the sign of its exponent.
fn number(text: &str) -> usize {
    let mut before = ' ';
    let is_part = |c: char, before: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '.' | '_')
            || matches!(c, '+' | '-') && matches!(before, 'e' | 'E')
    };
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    for (at, c) in text.char_indices() {
        if !is_part(c, before) || is_hexadecimal && matches!(c, '+' | '-') {
            return at;
        }
        before = c;
    }
    text.len()
}

fn opening(bracket: char) -> Option<char> {
    match bracket {
        ')' => Some('('),
        '}' => Some('{'),
        ']' => Some('['),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn expressions_that_are_right_have_no_fault() {
        for expression in [
            "up == 0",
            "up{job=\"a\", path!~\"/x.*\", b=~'c|d', e!=`f\\`} == 0 and on (job) group_left (b) rate(x_total[5m]) > 1e-3",
            "sum by (le) (rate(x_bucket{a=\"&|;\"}[5m:1m])) * -1 ^ +2 % 0xE+1",
            "absent(up offset -5m) or x @ start() # a comment with ) in it\n unless y",
            "{\"metric.name\", a=\"b\"} >= bool 1.5",
            "avg_over_time(x[1h:]) <= 2 < 3 atan2 Inf",
            "-x",
            "max_over_time(rate(x[5m])[1h:1m]) + rate + rate{a=\"b\"} + x:rate5m",
            "label_replace(x, \"a\", \"$1\", \"b\", \"(.*)\")",
            "{and=\"x\"}",
            "",
        ] {
            assert_eq!(fault(expression), None, "{expression}");
        }
    }

    #[test]
    fn faults_are_named() {
        for (expression, why) in [
            ("up == 0 && slow > 1", "unexpected character: '&'"),
            ("up = 0", "unexpected character: '='"),
            ("sum(rate(x[5m])", "unclosed left parenthesis"),
            ("sum(x))", "unexpected character: ')'"),
            ("x{a=\"b\"", "unexpected end of input inside braces"),
            ("rate(x[5m)", "unexpected character: ')'"),
            ("x >", "unexpected end of input after \">\""),
            ("x and", "unexpected end of input after \"and\""),
            ("(x >) > 1", "unexpected ')' after \">\""),
            ("x > > 1", "unexpected \">\" after \">\""),
            ("x or and y", "unexpected \"and\" after \"or\""),
            ("x{a=\"b} > 1", "unterminated quoted string"),
            ("x =~ \"a\"", "unexpected character: '='"),
            ("a;b", "unexpected character: ';'"),
            (
                "sum(rate(x)[5m])",
                "expected type range vector in call to function \"rate\", got instant vector",
            ),
            ("sum(x)[5m]", "ranges only allowed for vector selectors"),
        ] {
            assert_eq!(fault(expression).as_deref(), Some(why), "{expression}");
        }
    }

    #[test]
    fn any_depth_ends() {
        for part in ["(", "-", "abs(", "a or ", "a+", "é", "\"", "0e", "[", "{"] {
            let _ = fault(&part.repeat(200_000));
        }
    }
}
