//! The order in which go-yaml writes the keys of a map.

use std::cmp::Ordering;

/// Sorts by go-yaml's order: digits by their number, letters behind everything else.
///
/// A merge sort of our own, because that order is not transitive for every set of strings and the
/// standard library may panic on such.
pub fn sort_keys<T: Copy>(keys: &mut [T], text: impl Fn(&T) -> &str + Copy) {
    let mut width = 1;
    let mut merged: Vec<T> = Vec::with_capacity(keys.len());
    while width < keys.len() {
        merged.clear();
        for pair in keys.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([a, ..], [b, ..]) = (left, right) {
                if compare_keys(text(b), text(a)) == Ordering::Less {
                    merged.push(*b);
                    right = &right[1..];
                } else {
                    merged.push(*a);
                    left = &left[1..];
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        keys.copy_from_slice(&merged);
        width *= 2;
    }
}

/// go-yaml's comparison of two string keys.
pub(crate) fn compare_keys(a: &str, b: &str) -> Ordering {
    let common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let rest = (a.as_bytes().get(common), b.as_bytes().get(common));
    let (x, y) = match rest {
        (Some(&x), Some(&y)) => (x, y),
        _ => return a.len().cmp(&b.len()),
    };
    if x.is_ascii_lowercase() && y.is_ascii_lowercase() {
        return x.cmp(&y);
    }
    // Back to the start of a character that differs only in its last bytes.
    let start = (0..=common).rev().find(|&at| a.is_char_boundary(at) && b.is_char_boundary(at)).unwrap_or(0);
    compare_difference(&a[..start], &a[start..], &b[start..])
}

/// Compares two texts that differ in their first character, behind a common prefix.
fn compare_difference(prefix: &str, a: &str, b: &str) -> Ordering {
    let (Some(x), Some(y)) = (a.chars().next(), b.chars().next()) else { return a.len().cmp(&b.len()) };
    match (is_letter(x), is_letter(y)) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let mut seed = 0;
    if x == '0' || y == '0' {
        // Leading zeros count for nothing, but these zeros stand inside a number.
        let inside = prefix.chars().rev().take_while(char::is_ascii_digit).any(|c| c != '0');
        seed = i64::from(inside);
    }
    let (x_number, x_length) = leading_number(a, seed);
    let (y_number, y_length) = leading_number(b, seed);
    x_number.cmp(&y_number).then(x_length.cmp(&y_length)).then(x.cmp(&y))
}

fn leading_number(text: &str, seed: i64) -> (i64, usize) {
    let digits = text.chars().take_while(|&c| c.is_ascii_digit() || is_wide_digit(c));
    digits.fold((seed, 0), |(number, length), digit| {
        let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}

/// A decimal digit of another script (`Nd`). Numeric characters of other classes are few and rare.
fn is_wide_digit(c: char) -> bool {
    !c.is_ascii() && c.is_numeric() && !c.is_alphabetic() && u32::from(c) >= 0x660 && u32::from(c) < 0x2000
}

fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { c.is_alphabetic() }
}
