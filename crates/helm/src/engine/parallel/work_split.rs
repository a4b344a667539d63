//! Which of two threads takes which template.

use std::ops;

use parking_lot::{Mutex, MutexGuard};

/// The templates that nobody has taken, each named by its place in their order: the first thread takes them
/// from the front, the second one from the back.
pub(super) struct Range {
    all: usize,
    left: Mutex<Left>,
}

struct Left {
    range: ops::Range<usize>,
    is_parted: bool,
}

impl Range {
    pub(super) fn new(all: usize) -> Self {
        Self { all, left: Mutex::new(Left { range: 0..all, is_parted: false }) }
    }

    fn lock(&self) -> MutexGuard<'_, Left> {
        self.left.lock()
    }

    /// The next template for the first thread.
    pub(super) fn next(&self) -> Option<usize> {
        self.lock().range.next()
    }

    /// The next template for the second thread.
    pub(super) fn next_back(&self) -> Option<usize> {
        let mut left = self.lock();
        if left.is_parted { None } else { left.range.next_back() }
    }

    /// Leaves to the first thread all that it has not taken, whether the second one has or not, which gets no
    /// more.
    pub(super) fn part(&self) {
        let mut left = self.lock();
        left.is_parted = true;
        left.range.end = self.all;
    }

    /// Whether [`Range::part`] was called.
    pub(super) fn is_parted(&self) -> bool {
        self.lock().is_parted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_take_until_they_meet() {
        let range = Range::new(4);
        let taken = [range.next(), range.next_back(), range.next_back(), range.next()];
        assert_eq!(taken, [Some(0), Some(3), Some(2), Some(1)]);
        assert_eq!((range.next(), range.next_back()), (None, None));
        assert!(!range.is_parted());
    }

    #[test]
    fn once_parted_the_first_takes_what_the_second_had() {
        for part_twice in [false, true] {
            let range = Range::new(4);
            assert_eq!((range.next(), range.next_back(), range.next_back()), (Some(0), Some(3), Some(2)));
            range.part();
            assert!(range.is_parted());
            assert_eq!((range.next_back(), range.next()), (None, Some(1)));
            if part_twice {
                range.part();
            }
            assert_eq!([range.next(), range.next(), range.next()], [Some(2), Some(3), None]);
        }
    }
}
