//! How large and how deeply nested a file may be.

use crate::RenderError;

/// The largest file, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// How deep a file may be nested, see [`depth`].
pub(super) const MAX_DEPTH: usize = 2000;

/// Refuses what would use up the stack of the parser, which recurses into brackets and bodies.
pub(super) fn check_size(name: &str, text: &str) -> Result<(), RenderError> {
    let fault = match text.len() > MAX_BYTES {
        true => format!("it is larger than {MAX_BYTES} bytes"),
        false if depth(text.as_bytes()) > MAX_DEPTH => format!("it is nested deeper than {MAX_DEPTH}"),
        false => return Ok(()),
    };
    Err(RenderError::new(format!("{name}: {fault}")))
}

/// How deep a text is nested at most: brackets, and words that open a body, which ends with the next comma or
/// bracket of its level.
fn depth(text: &[u8]) -> usize {
    let (mut deepest, mut depth, mut bodies) = (0, 0, vec![0_usize]);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let step = passed_over(rest);
        if step > 0 {
            at += step;
            continue;
        }
        let word = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        match rest[0] {
            b'{' | b'[' | b'(' => {
                bodies.push(0);
                depth += 1;
            }
            b'}' | b']' | b')' => depth -= bodies.pop().map_or(0, |open| (open + 1).min(depth)),
            b',' => depth -= bodies.last_mut().map_or(0, std::mem::take).min(depth),
            _ if BODIES.contains(&&rest[..word]) => {
                depth += 1;
                bodies.last_mut().into_iter().for_each(|open| *open += 1);
            }
            _ => {}
        }
        deepest = deepest.max(depth);
        at += word.max(1);
    }
    deepest
}

/// Words after which an expression follows inside the one that they stand in.
const BODIES: [&[u8]; 8] = [b"local", b"function", b"if", b"then", b"else", b"assert", b"error", b"for"];

/// The length of the comment or string that a text begins with.
fn passed_over(text: &[u8]) -> usize {
    let until = |start: usize, end: &[u8]| {
        let found = text[start.min(text.len())..].windows(end.len()).position(|window| window == end);
        found.map_or(text.len(), |at| start + at + end.len())
    };
    match text {
        [b'#', ..] | [b'/', b'/', ..] => until(1, b"\n"),
        [b'/', b'*', ..] => until(2, b"*/"),
        [b'|', b'|', b'|', ..] => until(3, b"|||"),
        [b'@', quote @ (b'"' | b'\''), ..] => until(2, &[*quote]),
        [quote @ (b'"' | b'\''), rest @ ..] => {
            let mut escaped = false;
            let end = rest.iter().position(|byte| {
                let is_end = byte == quote && !escaped;
                escaped = *byte == b'\\' && !escaped;
                is_end
            });
            end.map_or(text.len(), |end| end + 2)
        }
        _ => 0,
    }
}
