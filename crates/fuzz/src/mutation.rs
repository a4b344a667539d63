//! Inputs made from others. The input of a number is a function of seeds, seed and number, so that it can be
//! made again.

/// Longest input, in bytes.
const LONGEST: usize = 64 << 10;
/// Most changes of one input.
const MOST_CHANGES: usize = 8;
/// Longest piece that is copied or removed.
const LONGEST_PIECE: usize = 512;

/// What readers have special words, signs and limits for.
const WORDS: &[&str] = &[
    "---\n",
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "!!float ",
    "|2-\n",
    ">\n",
    "? ",
    "- ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{%",
    "%}",
    "${",
    "$(",
    "${{",
    "\"",
    "'",
    "`",
    "\\",
    "\\u0000",
    "\u{0}",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{feff}",
    "é",
    "\u{10ffff}",
    "\r\n",
    "\t",
    "null",
    "true",
    "~",
    "..",
    "../../",
    "//",
    "**",
    "*?",
    "(a*)*",
    "(",
    ")",
    "|",
    "^",
    "$",
    "%s",
    "%999999999d",
    "%!",
    "@",
    "://",
    ":::",
    "::",
    "[::1]:80",
    "0x",
    "1e999",
    "-",
    ".",
    ",",
    ";",
    "#",
    "=",
    "\n====\n",
    "items: ",
    "metadata: ",
    "ownerReferences: ",
    "name: ",
    "namespace: ",
    "spec: ",
    "status: ",
    "kind: List\n",
    "selector: {}",
    "range ",
    "include ",
    "define ",
    "template ",
    "end",
    "with ",
    "else",
    "printf ",
    "repeat 999999999 ",
    "until 99999999 ",
    "resources: [.]\n",
    "$ref",
    "patternProperties",
    "\"op\": \"copy\"",
    "for_each",
    "depends_on",
];

/// Numbers at which something overflows, or is asked for too much.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "1e400",
    "0.1",
    "1e-400",
    "99999999999999999999999999",
    "9999-12-31T23:59:59Z",
    "-1s",
    "99999999h",
];

/// Numbers that look random and are not.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit; 0 if that is 0.
    fn below(&mut self, limit: usize) -> usize {
        let limit = limit.max(1) as u64;
        usize::try_from(self.next() % limit).unwrap_or_default()
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// A piece of something of a length, which is not empty unless the whole is.
    fn piece(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        let end = start + 1 + self.below(LONGEST_PIECE.min(length - start));
        start..end.min(length)
    }
}

/// The input of a number: the seeds as they are, then changed ones without end.
pub fn input(seeds: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    if let Some(whole) = usize::try_from(number).ok().and_then(|at| seeds.get(at)) {
        return whole.clone();
    }
    let mut random = Random(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
    let mut bytes = seeds.get(random.below(seeds.len())).cloned().unwrap_or_default();
    for _ in 0..=random.below(MOST_CHANGES) {
        change(&mut bytes, seeds, &mut random);
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Changes an input in one way.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    if bytes.is_empty() {
        bytes.extend_from_slice(random.pick(WORDS).as_bytes());
        return;
    }
    let piece = random.piece(bytes.len());
    match random.below(12) {
        0 => bytes[piece.start] = random.next().to_le_bytes()[0],
        1 => drop(bytes.drain(piece)),
        2 => {
            let copy = bytes[piece].to_vec();
            insert(bytes, random, &copy);
        }
        3 | 4 => {
            let word = random.pick(WORDS);
            insert(bytes, random, word.as_bytes());
        }
        5 => replace_run(bytes, piece.start, u8::is_ascii_digit, random.pick(NUMBERS).as_bytes()),
        6 => {
            let word = a_word(seeds, random);
            replace_run(bytes, piece.start, |byte| byte.is_ascii_alphanumeric(), &word);
        }
        7 => repeat_lines(bytes, random),
        8 => {
            let many = bytes[piece.start..piece.end.min(piece.start + 16)].repeat(1 << random.below(13));
            insert(bytes, random, &many);
        }
        9 => {
            let depth = 1 << random.below(13);
            let (open, close) =
                *random.pick(&[&("[", "]"), &("{a: ", "}"), &("(", ")"), &("{{ if . }}", "{{ end }}")]);
            bytes.splice(piece.end..piece.end, close.repeat(depth).into_bytes());
            bytes.splice(piece.start..piece.start, open.repeat(depth).into_bytes());
        }
        10 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len());
            bytes.truncate(piece.start);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => {
            let other = &seeds[random.below(seeds.len())];
            if !other.is_empty() {
                let taken = random.piece(other.len());
                insert(bytes, random, &other[taken]);
            }
        }
    }
}

fn insert(bytes: &mut Vec<u8>, random: &mut Random, piece: &[u8]) {
    let at = random.below(bytes.len() + 1);
    bytes.splice(at..at, piece.iter().copied());
}

/// Puts something in place of the run of bytes of a kind that comes next.
fn replace_run(bytes: &mut Vec<u8>, from: usize, is_kind: impl Fn(&u8) -> bool, new: &[u8]) {
    let Some(start) = bytes[from..].iter().position(&is_kind).map(|at| from + at) else { return };
    let end = bytes[start..].iter().position(|byte| !is_kind(byte)).map_or(bytes.len(), |at| start + at);
    bytes.splice(start..end, new.iter().copied());
}

/// A word of any seed.
fn a_word(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let other = &seeds[random.below(seeds.len())];
    let rest = &other[random.below(other.len())..];
    let words = rest.split(|byte| !byte.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).nth(1).unwrap_or(b"x").to_vec()
}

/// Writes a line, or a few, again and again.
fn repeat_lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1))
        .collect();
    let first = random.below(starts.len());
    let last = (first + 1 + random.below(4)).min(starts.len());
    let end = starts.get(last).copied().unwrap_or(bytes.len());
    let lines = bytes[starts[first]..end].repeat(1 << random.below(10));
    bytes.splice(end..end, lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_of_a_number_is_always_the_same_and_bounded() {
        let seeds = vec![b"a: 1\nb: [x, y]\n".to_vec(), Vec::new(), b"{{ .Values.a }}\n".to_vec()];
        let all = |seed| (0..3000).map(|number| input(&seeds, seed, number)).collect::<Vec<_>>();
        let inputs = all(1);
        assert_eq!(inputs[..3], seeds);
        assert_eq!(inputs, all(1));
        assert_ne!(inputs, all(2));
        assert!(inputs.iter().all(|input| input.len() <= LONGEST));
        let different: std::collections::BTreeSet<_> = inputs.iter().collect();
        assert!(different.len() > 2500, "{}", different.len());
    }
}
