//! Actions that were read before. Charts write few different ones, and those very often: an action that reads
//! as one before it is not read again.

use super::node::{Pos, Span};
use rustc_hash::FxHashMap;

/// Longer actions are not kept: they rarely occur twice.
const MAX_LENGTH: usize = 256;
/// So many actions may begin alike: to look through more of them may take longer than to read another one.
const MAX_ALIKE: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Control {
    If,
    With,
    Range,
}

impl Control {
    pub(super) fn context(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }
}

/// What an action says: all of what stands between two delimiters. Positions are from the action's beginning
/// on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    /// A string and nothing else, which prints what stands there.
    Text {
        from: Pos,
        to: Pos,
    },
    Pipe(u32),
    Control(Control, u32),
    Else,
    /// `else if` or `else with`.
    ElseControl(Control, u32),
    End,
    Template(u32),
    Break(Pos),
    Continue(Pos),
}

/// An action that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    pub(super) head: Head,
    /// Bytes up to and with the closing delimiter.
    pub(super) length: usize,
    /// Whether the closing delimiter trims what follows.
    pub(super) trims: bool,
}

/// The variables of an action, by their ids.
#[derive(Default)]
pub(super) struct Variables {
    /// Those that have to be in scope before it.
    used: Vec<u32>,
    /// Those that are in scope behind it.
    pub(super) declared: Vec<u32>,
}

impl Variables {
    pub(super) fn clear(&mut self) {
        self.used.clear();
        self.declared.clear();
    }

    /// Adds one that is used.
    pub(super) fn add_used(&mut self, id: u32) {
        if !self.declared.contains(&id) {
            self.used.push(id);
        }
    }
}

struct Kept {
    action: Action,
    text: Span,
    used: Span,
    declared: Span,
    /// The one kept before whose beginning has the same hash.
    alike: Option<u32>,
}

/// Actions by their text, from behind the opening delimiter up to and with the closing one.
#[derive(Default)]
pub(super) struct ParsedActions {
    by_beginning: FxHashMap<u64, u32>,
    kept: Vec<Kept>,
    texts: Vec<u8>,
    variables: Vec<u32>,
}

impl ParsedActions {
    /// The action that a text begins with, if it was read before and all variables are in scope; those that
    /// it declares are added to them.
    pub(super) fn recall(&self, text: &[u8], scope: &mut Vec<u32>) -> Option<Action> {
        let mut at = Some(*self.by_beginning.get(&beginning(text)?)?);
        while let Some(kept) = at.map(|at| &self.kept[at as usize]) {
            if text.starts_with(kept.text.slice(&self.texts)) {
                let in_scope = |id: &u32| scope.contains(id);
                if !kept.used.slice(&self.variables).iter().all(in_scope) {
                    return None;
                }
                scope.extend_from_slice(kept.declared.slice(&self.variables));
                return Some(kept.action);
            }
            at = kept.alike;
        }
        None
    }

    /// Keeps the action that a text begins with.
    pub(super) fn keep(&mut self, text: &[u8], action: Action, variables: &Variables) {
        if action.length > MAX_LENGTH {
            return;
        }
        let Some(beginning) = beginning(text) else { return };
        let alike = self.by_beginning.get(&beginning).copied();
        if self.count_alike(alike) >= MAX_ALIKE {
            return;
        }
        let kept = Kept {
            action,
            text: Span::adding(&mut self.texts, &text[..action.length]),
            used: Span::adding(&mut self.variables, &variables.used),
            declared: Span::adding(&mut self.variables, &variables.declared),
            alike,
        };
        self.by_beginning.insert(beginning, self.kept.len() as u32);
        self.kept.push(kept);
    }

    fn count_alike(&self, first: Option<u32>) -> usize {
        std::iter::successors(first, |at| self.kept[*at as usize].alike).count()
    }
}

/// The hash of a text up to the first closing brace; nothing if there is none near.
fn beginning(text: &[u8]) -> Option<u64> {
    let (words, rest) = text[..text.len().min(MAX_LENGTH)].as_chunks();
    let mut last = [0; WORD];
    last[..rest.len()].copy_from_slice(rest);
    let mut hash = 0;
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        let braces = zero_bytes(word ^ BRACES);
        // Of the last word only what stands before the brace counts.
        let mask = if braces == 0 { u64::MAX } else { (braces & braces.wrapping_neg()) - 1 };
        hash = (hash ^ (word & mask)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        if braces != 0 {
            return Some(hash);
        }
    }
    None
}

const WORD: usize = size_of::<u64>();
const BRACES: u64 = u64::from_ne_bytes([b'}'; WORD]);

/// The highest bit of each byte that is zero, none below the first of them.
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x01; WORD]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; WORD]);
    word.wrapping_sub(LOW) & !word & HIGH
}
