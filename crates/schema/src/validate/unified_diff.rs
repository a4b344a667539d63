//! The difference of two texts as messages show it: unified, with three lines of context, found by taking the
//! longest common run of lines and then looking left and right of it.

use std::{collections::HashMap, fmt::Write as _, ops::Range};

const CONTEXT: usize = 3;
/// From this length on, lines that are frequent are not looked for.
const LONG: usize = 200;

/// The difference, without a header.
pub(super) fn difference(old: &str, new: &str) -> String {
    let lines = Lines::new(old, new);
    let mut out = String::new();
    for group in lines.groups() {
        lines.write(&group, &mut out);
    }
    out
}

/// A stretch of both texts: equal lines, or lines that are replaced (one side may be empty).
#[derive(Clone)]
struct Stretch {
    equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

struct Lines<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Where the lines of the new text stand that are looked for.
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Lines<'a> {
    fn new(old: &'a str, new: &'a str) -> Self {
        let (old, new): (Vec<_>, Vec<_>) = (old.split('\n').collect(), new.split('\n').collect());
        let mut places = HashMap::<_, Vec<usize>>::new();
        for (at, line) in new.iter().enumerate() {
            places.entry(*line).or_default().push(at);
        }
        if new.len() >= LONG {
            places.retain(|_, at| at.len() <= new.len() / 100 + 1);
        }
        Self { old, new, places }
    }

    /// The longest common run, the earliest of several: its start in both texts and its length.
    fn longest(&self, old: &Range<usize>, new: &Range<usize>) -> (usize, usize, usize) {
        let mut best = (old.start, new.start, 0);
        let mut runs = HashMap::<usize, usize>::new();
        for at in old.clone() {
            let mut next = HashMap::new();
            let places = self.places.get(self.old[at]).map_or(&[][..], Vec::as_slice);
            for &place in places.iter().filter(|place| new.contains(place)) {
                let run = place.checked_sub(1).and_then(|before| runs.get(&before)).copied().unwrap_or(0) + 1;
                next.insert(place, run);
                if run > best.2 {
                    best = (at + 1 - run, place + 1 - run, run);
                }
            }
            runs = next;
        }
        // Frequent lines belong to it where they adjoin.
        while best.0 > old.start && best.1 > new.start && self.old[best.0 - 1] == self.new[best.1 - 1] {
            best = (best.0 - 1, best.1 - 1, best.2 + 1);
        }
        while best.0 + best.2 < old.end
            && best.1 + best.2 < new.end
            && self.old[best.0 + best.2] == self.new[best.1 + best.2]
        {
            best.2 += 1;
        }
        best
    }

    /// All common runs in order. Ranges wait on a stack of our own: a text may have many lines.
    fn runs(&self) -> Vec<(usize, usize, usize)> {
        let (mut waiting, mut found) = (vec![(0..self.old.len(), 0..self.new.len())], Vec::new());
        while let Some((old, new)) = waiting.pop() {
            let (a, b, length) = self.longest(&old, &new);
            if length == 0 {
                continue;
            }
            found.push((a, b, length));
            if old.start < a && new.start < b {
                waiting.push((old.start..a, new.start..b));
            }
            if a + length < old.end && b + length < new.end {
                waiting.push((a + length..old.end, b + length..new.end));
            }
        }
        found.sort_unstable();
        found
    }

    fn stretches(&self) -> Vec<Stretch> {
        let (mut all, mut at) = (Vec::<Stretch>::new(), (0, 0));
        let end = (self.old.len(), self.new.len(), 0);
        for (old, new, length) in self.runs().into_iter().chain([end]) {
            if at.0 < old || at.1 < new {
                all.push(Stretch { equal: false, old: at.0..old, new: at.1..new });
            }
            at = (old + length, new + length);
            match all.last_mut().filter(|last| last.equal && last.old.end == old) {
                Some(last) => (last.old.end, last.new.end) = at,
                None if length > 0 => all.push(Stretch { equal: true, old: old..at.0, new: new..at.1 }),
                None => {}
            }
        }
        all
    }

    /// Stretches that are shown together: what changed and the lines around it.
    fn groups(&self) -> Vec<Vec<Stretch>> {
        let stretches = self.stretches();
        let last = stretches.len().saturating_sub(1);
        let (mut groups, mut group) = (Vec::new(), Vec::new());
        for (index, stretch) in stretches.into_iter().enumerate() {
            let length = stretch.old.len();
            let head = |n: usize| Stretch {
                equal: true,
                old: stretch.old.start..stretch.old.start + n,
                new: stretch.new.start..stretch.new.start + n,
            };
            let tail = |n: usize| Stretch {
                equal: true,
                old: stretch.old.end - n..stretch.old.end,
                new: stretch.new.end - n..stretch.new.end,
            };
            match stretch.equal {
                false => group.push(stretch),
                true if index == 0 => group.push(tail(length.min(CONTEXT))),
                true if index == last => group.push(head(length.min(CONTEXT))),
                true if length > 2 * CONTEXT => {
                    group.push(head(CONTEXT));
                    groups.push(std::mem::replace(&mut group, vec![tail(CONTEXT)]));
                }
                true => group.push(stretch),
            }
        }
        if group.iter().any(|stretch| !stretch.equal) {
            groups.push(group);
        }
        groups
    }

    fn write(&self, group: &[Stretch], out: &mut String) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
        let old = place(first.old.start, last.old.end);
        let new = place(first.new.start, last.new.end);
        // A `String` takes everything.
        let _ = writeln!(out, "@@ -{old} +{new} @@");
        for stretch in group {
            let mark = if stretch.equal { ' ' } else { '-' };
            let gone = self.old[stretch.old.clone()].iter().map(|line| (mark, line));
            let come = if stretch.equal { &[][..] } else { &self.new[stretch.new.clone()] };
            for (mark, line) in gone.chain(come.iter().map(|line| ('+', line))) {
                let _ = writeln!(out, "{mark}{line}");
            }
        }
    }
}

/// First line and number of lines.
fn place(start: usize, end: usize) -> String {
    match end - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_changed_and_three_lines_around() {
        let old = "{\n a\n b\n c\n d\n e\n f\n g\n h\n i\n j\n}";
        let new = "{\n a\n x\n c\n d\n e\n f\n g\n h\n i\n j\n k\n}";
        let expected =
            "@@ -1,6 +1,6 @@\n {\n  a\n- b\n+ x\n  c\n  d\n  e\n@@ -9,4 +9,5 @@\n  h\n  i\n  j\n+ k\n }\n";
        assert_eq!(difference(old, new), expected);
        assert_eq!(difference(old, old), "");
        assert_eq!(difference("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
    }
}
