//! The same work for many things, on every processor.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` makes of each item, in the order of the items. A panic of `work` is one of the caller.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if workers <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let share = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return mine };
            mine.push((index, work(item)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(share)).collect();
        let mut done = share();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<usize> = (0..1_000).collect();
        let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
        assert_eq!(super::each(&items, |item| item * 2), doubled);
        assert!(super::each(&[] as &[usize], |item| *item).is_empty());
    }
}
