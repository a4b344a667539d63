//! Another attempt of an operation that failed: whether there is one, and when (Argo CD's docs, "Automated Sync
//! Policy", retries).

use std::time::Duration;

use tiphys_model::{OperationPhase, RetryStrategy, Time, Timestamp};

use crate::{WaitKind, step::Progress};

/// Puts the operation back to work later, if attempts are left.
pub(crate) fn begin(progress: &mut Progress<'_, '_>) {
    let shown = &progress.state.shown;
    let strategy = &shown.operation.retry;
    if strategy.limit >= 0 && shown.retry_count >= strategy.limit {
        return;
    }
    let unreadable = unreadable(strategy);
    if let (Some((_, text)), true) = (&unreadable, progress.input.settings.compat) {
        let message = format!(
            "{} (failed to retry: unable to parse {text} as a duration)",
            progress.state.shown.message
        );
        let shown = &mut progress.state.shown;
        (shown.phase, shown.message) = (OperationPhase::Error, message);
        return;
    }
    let announced = retry_delay(strategy, shown.retry_count);
    // Argo CD announces one delay and waits for the next one.
    let waited = if progress.input.settings.compat {
        retry_delay(strategy, shown.retry_count.saturating_add(1))
    } else {
        announced
    };
    let now = progress.input.now;
    let at = Time::from(tiphys_model::time::after(now, announced));
    let shown = &mut progress.state.shown;
    shown.retry_count = shown.retry_count.saturating_add(1);
    shown.phase = OperationPhase::Running;
    shown.message = format!("{}. Retrying attempt #{} at {}.", shown.message, shown.retry_count, kitchen(at));
    // Times are of whole seconds. A pause that ended before it began would wake nobody.
    let until = tiphys_model::time::after(now, waited);
    let until = match Time::from(until) {
        whole if whole.timestamp() <= now => {
            Time::from(tiphys_model::time::after(now, Duration::from_secs(1)))
        }
        whole => whole,
    };
    progress.state.extension.not_before = Some(until);
    let told = unread(&progress.state.shown.operation.retry);
    progress.wait(WaitKind::Retry, None, &told, Some(until));
}

/// What is told of a strategy that has a duration which cannot be read; empty if it has none.
pub(crate) fn unread(strategy: &RetryStrategy) -> String {
    unreadable(strategy)
        .map(|(field, text)| format!("its back-off's {field} {text:?} is no duration, so the default counts"))
        .unwrap_or_default()
}

/// The first duration of a strategy that cannot be read: its field and what stands there.
fn unreadable(strategy: &RetryStrategy) -> Option<(&'static str, String)> {
    let backoff = strategy.backoff.as_ref()?;
    let fields = [("duration", &backoff.duration), ("maxDuration", &backoff.max_duration)];
    let mut set = fields.into_iter().filter(|(_, text)| !text.is_empty());
    let unread = set.find(|(_, text)| tiphys_model::duration::parse_lenient(text).is_none())?;
    Some((unread.0, unread.1.clone()))
}

/// The pause before attempt number `count` + 1. A duration that cannot be read counts as one that is not
/// given.
pub fn retry_delay(strategy: &RetryStrategy, count: i64) -> Duration {
    let backoff = strategy.backoff.clone().unwrap_or_default();
    let read = |text: &str, default: u64| {
        tiphys_model::duration::parse_lenient(text).unwrap_or(Duration::from_secs(default))
    };
    let (base, cap) = (read(&backoff.duration, 5), read(&backoff.max_duration, 180));
    let factor = backoff.factor.unwrap_or(2).max(1) as f64;
    let seconds = base.as_secs_f64() * factor.powi(i32::try_from(count).unwrap_or(i32::MAX));
    // No longest pause is set by one of zero.
    let cap = if cap.is_zero() { Duration::MAX } else { cap };
    Duration::try_from_secs_f64(seconds).unwrap_or(cap).min(cap)
}

/// A time of day as in `3:04PM`.
fn kitchen(time: Time) -> String {
    time.timestamp().strftime("%-I:%M%p").to_string()
}

/// When an operation that failed at `now` for the `count`th time is repeated.
pub fn next_retry(strategy: &RetryStrategy, count: i64, now: Timestamp) -> Timestamp {
    tiphys_model::time::after(now, retry_delay(strategy, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_model::Backoff;

    #[test]
    fn pauses_grow_up_to_the_longest_which_none_may_be() {
        let pause = |longest: &str, count| {
            let backoff =
                Backoff { duration: "10".into(), max_duration: longest.into(), ..Backoff::default() };
            retry_delay(&RetryStrategy { backoff: Some(backoff), ..RetryStrategy::default() }, count)
                .as_secs()
        };
        assert_eq!((pause("", 2), pause("", 9), pause("1m", 9)), (40, 180, 60));
        assert_eq!((pause("0", 0), pause("0s", 6)), (10, 640));
    }
}
